//! Which of two guards keeps the time, where one stands over the other.
//!
//! The one over TLS polls the one of the socket within its own poll, so on the same thread. It leaves the time to the socket's
//! as long as it is that one which waits. Nothing else would tell the two apart from the sockets of two connections.

use std::cell::Cell;
use std::sync::Arc;
use std::task::Poll;

use super::Connection;

thread_local! {
    /// Where the connection lies whose guard waited last.
    static WAITED: Cell<Option<usize>> = const { Cell::new(None) };
}

fn place(connection: &Arc<Connection>) -> usize {
    Arc::as_ptr(connection).addr()
}

/// A guard of the connection waits.
pub(super) fn waits(connection: &Arc<Connection>) {
    WAITED.set(Some(place(connection)));
}

/// Polls what is below a guard. Returns also whether another guard of the same connection waits there.
pub(super) fn poll<T>(connection: &Arc<Connection>, poll: impl FnOnce() -> Poll<T>) -> (Poll<T>, bool) {
    WAITED.set(None);
    let polled = poll();
    (polled, WAITED.get() == Some(place(connection)))
}
