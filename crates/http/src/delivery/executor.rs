//! The guard of each stream of an HTTP/2 connection.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::rt::Executor;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Connection, StreamSlot};

/// Runs the streams of one HTTP/2 connection on tokio, each until it ends or is overdue.
#[derive(Clone, Debug)]
pub struct BoundedExecutor(pub(super) Arc<Connection>);

impl<F> Executor<F> for BoundedExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        match self.0.begin_stream() {
            Some((slot, open)) => {
                slot.watch();
                tokio::spawn(async move {
                    bounded(&slot, future).await;
                    drop(open);
                });
            }
            None => {
                tokio::spawn(future);
            }
        }
    }
}

/// Runs a stream. An overdue one is dropped, which resets it: RFC 9113, section 6.4.
async fn bounded(slot: &StreamSlot, stream: impl Future) {
    let mut stream = pin!(stream);
    let mut overdue = Overdue::default();
    poll_fn(|cx| {
        if stream.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        // The body, which sets the deadline, is polled by this stream alone.
        if overdue.poll(cx, slot.deadline()).is_ready() {
            slot.cut();
            return Poll::Ready(());
        }
        Poll::Pending
    })
    .await;
}

/// A timer that exists only while there is something to wait for.
#[derive(Default)]
struct Overdue(Option<Pin<Box<Sleep>>>);

impl Overdue {
    fn poll(&mut self, cx: &mut Context<'_>, deadline: Option<Instant>) -> Poll<()> {
        let Some(deadline) = deadline else {
            self.0 = None;
            return Poll::Pending;
        };
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if sleep.deadline() != deadline {
            sleep.as_mut().reset(deadline);
        }
        sleep.as_mut().poll(cx)
    }
}
