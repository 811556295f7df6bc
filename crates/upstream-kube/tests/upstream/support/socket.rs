//! A server on a real socket that answers with the bytes it is given.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use krm_stream_upstream_kube::kube;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The raw bytes of an answer, and what becomes of the connection then.
#[derive(Clone, Debug)]
pub(crate) struct RawAnswer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) then: Then,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Then {
    /// It stays open and is read from again.
    KeepAlive,
    /// It stays open, silent, until the client closes it.
    Hold,
    /// It is closed.
    Close,
    /// It is reset.
    Reset,
}

impl RawAnswer {
    /// A whole answer of known length.
    pub(crate) fn whole(code: u16, body: &str) -> Self {
        Self {
            bytes: format!(
                "HTTP/1.1 {code} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            )
            .into_bytes(),
            then: Then::KeepAlive,
        }
    }

    /// The beginning of a chunked body.
    pub(crate) fn chunked(body: &str, then: Then) -> Self {
        Self {
            bytes: format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n",
                body.len()
            )
            .into_bytes(),
            then,
        }
    }
}

/// What the server saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The head of each request, as it was sent.
    pub(crate) heads: Vec<String>,
    pub(crate) accepted: usize,
    pub(crate) closed: usize,
}

/// A running server. It ends with the runtime.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

impl Server {
    /// Answers the request that `answer` is given the head of.
    pub(crate) async fn start(answer: impl Fn(&str) -> RawAnswer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
        };
        let answer = Arc::new(answer);
        let seen = Arc::clone(&server.seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                seen.lock().unwrap().accepted += 1;
                let (answer, seen) = (Arc::clone(&answer), Arc::clone(&seen));
                tokio::spawn(async move {
                    serve(stream, &*answer, &seen).await;
                    seen.lock().unwrap().closed += 1;
                });
            }
        });
        server
    }

    pub(crate) fn config(&self) -> kube::Config {
        kube::Config::new(format!("http://{}", self.address).parse().unwrap())
    }

    pub(crate) fn heads(&self) -> Vec<String> {
        self.seen.lock().unwrap().heads.clone()
    }

    pub(crate) fn accepted(&self) -> usize {
        self.seen.lock().unwrap().accepted
    }

    /// Resolves once `count` connections are over.
    pub(crate) async fn wait_for_closed(&self, count: usize) {
        until(|| self.seen.lock().unwrap().closed >= count).await;
    }
}

/// Polls a condition, with a deadline.
pub(crate) async fn until(mut condition: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the condition never came true"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: &(dyn Fn(&str) -> RawAnswer + Send + Sync),
    seen: &Mutex<Seen>,
) {
    while let Some(head) = request(&mut stream).await {
        let RawAnswer { bytes, then } = answer(&head);
        seen.lock().unwrap().heads.push(head);
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
        match then {
            Then::KeepAlive => {}
            Then::Hold => {
                let mut rest = [0; 64];
                while matches!(stream.read(&mut rest).await, Ok(1..)) {}
                return;
            }
            Then::Close => return,
            Then::Reset => {
                stream.set_zero_linger().unwrap();
                return;
            }
        }
    }
}

async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let length = header(&head, "content-length").map_or(0, |value| value.parse().unwrap());
    while bytes.len() < head_end + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some(head)
}

/// A header of a request's head.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}
