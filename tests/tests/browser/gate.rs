//! A gate in front of an API server: open, it passes bytes on; shut, it answers 503 and names a time.

use std::io::Write;
use std::time::Duration;

use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Open,
    Shut { retry_after: Duration },
}

pub(crate) struct Gate {
    address: String,
    position: watch::Sender<Position>,
}

impl Gate {
    /// Listens on a free port, open, before the API server at `upstream` (host and port).
    pub(crate) async fn open_to(upstream: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener
            .local_addr()
            .expect("a bound listener has an address")
            .to_string();
        let (position, receiver) = watch::channel(Position::Open);
        let upstream = upstream.to_owned();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(serve(connection, upstream.clone(), receiver.clone()));
            }
        });
        Self { address, position }
    }

    /// From now on answers 503 with `Retry-After`; connections that were passed on break off.
    pub(crate) fn shut(&self, retry_after: Duration) {
        self.position.send_replace(Position::Shut { retry_after });
    }

    pub(crate) fn open(&self) {
        self.position.send_replace(Position::Open);
    }

    /// A kubeconfig whose only cluster is behind this gate.
    pub(crate) fn kubeconfig(&self) -> NamedTempFile {
        let mut file = NamedTempFile::new().expect("a temporary file");
        let text = format!(
            "apiVersion: v1
kind: Config
current-context: gate
clusters: [{{name: gate, cluster: {{server: 'http://{}'}}}}]
users: [{{name: nobody, user: {{}}}}]
contexts: [{{name: gate, context: {{cluster: gate, user: nobody}}}}]
",
            self.address
        );
        file.write_all(text.as_bytes())
            .expect("the kubeconfig is written");
        file
    }
}

async fn serve(mut connection: TcpStream, upstream: String, mut position: watch::Receiver<Position>) {
    let begin = *position.borrow_and_update();
    match begin {
        Position::Open => {
            let Ok(mut upstream) = TcpStream::connect(upstream).await else {
                return;
            };
            tokio::select! {
                _ = copy_bidirectional(&mut connection, &mut upstream) => {}
                _ = position.changed() => {}
            }
        }
        Position::Shut { retry_after } => {
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") {
                if !matches!(connection.read(&mut byte).await, Ok(1)) {
                    return;
                }
                head.push(byte[0]);
            }
            let body = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server is currently unable to handle the request","reason":"ServiceUnavailable","code":503}"#;
            let answer = format!(
                "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                retry_after.as_secs(),
                body.len(),
            );
            // A client that has gone needs no answer.
            let _ = connection.write_all(answer.as_bytes()).await;
        }
    }
}
