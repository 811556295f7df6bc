//! The task that accepts connections.

use std::sync::Arc;

use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinHandle, JoinSet},
};

use crate::{connection::serve_connection, shared::Shared};

/// A listener and its connections, until it is stopped or dropped.
#[derive(Debug)]
pub(super) struct Acceptor {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Acceptor {
    pub(super) fn start(shared: Arc<Shared>, listener: TcpListener) -> Self {
        let (stop, mut stopped) = watch::channel(false);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    biased;
                    // An error means that the handle is gone.
                    _ = stopped.changed() => break,
                    Some(_) = connections.join_next(), if !connections.is_empty() => {}
                    accepted = listener.accept() => match accepted {
                        Ok((stream, _)) => {
                            connections.spawn(serve_connection(Arc::clone(&shared), stream));
                        }
                        // Out of file descriptors, or the peer is gone already: others may succeed.
                        Err(_) => tokio::task::yield_now().await,
                    },
                }
            }
            drop(listener);
            connections.shutdown().await;
        });
        Self { stop, task }
    }

    pub(super) async fn stop(self) {
        self.stop.send_replace(true);
        // It fails only if the runtime is going down, and then everything ends.
        let _ = self.task.await;
    }
}
