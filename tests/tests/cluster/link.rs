//! The network between a gateway and the API server: a relay that can be cut, stalled, and counts.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use crate::api_server::ApiServer;

/// A relay on loopback, and a kubeconfig that leads through it. It ends with this value.
pub(crate) struct Link {
    folder: TempDir,
    condition: watch::Sender<Condition>,
    attempts: Arc<AtomicUsize>,
    relay: AbortHandle,
}

/// What the network does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// It carries.
    Up,
    /// Every connection is dropped, new ones at once.
    Cut,
    /// Connections stay, and carry nothing; nothing that they held back is ever delivered.
    Stalled,
}

impl Link {
    pub(crate) async fn to(api: &ApiServer) -> Self {
        let minified = api
            .kubectl(
                &[
                    "config",
                    "view",
                    "--raw",
                    "--minify",
                    "--flatten",
                    "--output=json",
                ],
                "",
            )
            .await;
        let mut config: Value = serde_json::from_str(&minified).expect("kubectl prints JSON");
        let server = config["clusters"][0]["cluster"]["server"]
            .as_str()
            .and_then(|server| server.strip_prefix("https://"))
            .expect("a cluster of these tests has an https:// address")
            .to_owned();

        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("a bound socket has an address");
        config["clusters"][0]["cluster"]["server"] = json!(format!("https://{address}"));
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        std::fs::write(folder.path().join("kubeconfig"), config.to_string())
            .expect("the temporary folder can be written");

        let (condition, _) = watch::channel(Condition::Up);
        let attempts = Arc::new(AtomicUsize::new(0));
        let relay = tokio::spawn(relay(listener, server, condition.clone(), Arc::clone(&attempts)));
        Self {
            folder,
            condition,
            attempts,
            relay: relay.abort_handle(),
        }
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    pub(crate) fn set(&self, condition: Condition) {
        self.condition.send_replace(condition);
    }

    /// How many connections were asked for so far, the refused ones included.
    pub(crate) fn attempts(&self) -> usize {
        self.attempts.load(Ordering::SeqCst)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.relay.abort();
    }
}

async fn relay(
    listener: TcpListener,
    server: String,
    condition: watch::Sender<Condition>,
    attempts: Arc<AtomicUsize>,
) {
    // Dropped with this future, and all connections with it.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (socket, _) = accepted.expect("loopback accepts connections");
                attempts.fetch_add(1, Ordering::SeqCst);
                connections.spawn(connection(socket, server.clone(), condition.subscribe()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Carries one connection until an end closes it, the network is cut, or it comes back from a stall.
async fn connection(mut near: TcpStream, server: String, mut condition: watch::Receiver<Condition>) {
    let now = *condition.borrow_and_update();
    match now {
        Condition::Cut => return,
        Condition::Stalled => {}
        Condition::Up => {
            // An API server that refuses ends the near side as well.
            let Ok(mut far) = TcpStream::connect(&server).await else {
                return;
            };
            let (mut up, mut down) = (vec![0; 16 << 10], vec![0; 64 << 10]);
            loop {
                let goes_on = tokio::select! {
                    Ok(()) = condition.changed() => match *condition.borrow_and_update() {
                        Condition::Up => true,
                        Condition::Cut => return,
                        Condition::Stalled => break,
                    },
                    read = near.read(&mut up) => carry(read, &up, &mut far).await,
                    read = far.read(&mut down) => carry(read, &down, &mut near).await,
                };
                if !goes_on {
                    return;
                }
            }
        }
    }
    // Stalled: what was held back is never delivered, and the connection is dropped when the network is back.
    while condition.changed().await.is_ok() && *condition.borrow_and_update() == Condition::Stalled {}
}

/// Whether it goes on.
async fn carry(read: std::io::Result<usize>, buffer: &[u8], to: &mut TcpStream) -> bool {
    match read {
        Ok(0) | Err(_) => false,
        Ok(bytes) => to.write_all(&buffer[..bytes]).await.is_ok(),
    }
}
