//! A browser's connection, over a real socket.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use krm_stream_protocol::{SseDecoder, SseEvent};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::type_of;

/// Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct SocketStream {
    pub(crate) response: Response<Incoming>,
    connection: JoinHandle<()>,
    decoder: SseDecoder,
    decoded: VecDeque<SseEvent>,
}

impl SocketStream {
    /// Sends a request over HTTP/1.1.
    pub(crate) async fn http1(address: SocketAddr, request: Request<Full<Bytes>>) -> Self {
        let socket = TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await.unwrap();
        let connection = tokio::spawn(async move { drop(connection.await) });
        Self::new(sender.send_request(request).await.unwrap(), connection)
    }

    /// Sends a request over HTTP/2 without TLS.
    pub(crate) async fn http2(address: SocketAddr, request: Request<Full<Bytes>>) -> Self {
        let socket = TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(socket))
            .await
            .unwrap();
        let connection = tokio::spawn(async move { drop(connection.await) });
        Self::new(sender.send_request(request).await.unwrap(), connection)
    }

    fn new(response: Response<Incoming>, connection: JoinHandle<()>) -> Self {
        Self {
            response,
            connection,
            decoder: SseDecoder::new(64 << 20),
            decoded: VecDeque::new(),
        }
    }

    /// The data of the next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<String> {
        while self.decoded.is_empty() {
            let frame = tokio::time::timeout(Duration::from_secs(20), self.response.frame())
                .await
                .expect("an event should have come");
            let chunk = frame?.unwrap().into_data().unwrap();
            self.decoded.extend(self.decoder.push(&chunk).unwrap());
        }
        self.decoded.pop_front().map(|event| event.data().to_owned())
    }

    /// The types of the next `count` events; an error's is its code.
    pub(crate) async fn types(&mut self, count: usize) -> Vec<String> {
        let mut types = Vec::with_capacity(count);
        for _ in 0..count {
            types.push(type_of(&self.next().await.expect("the stream should go on")));
        }
        types
    }

    /// The whole body as text.
    pub(crate) async fn text(mut self) -> String {
        let body = self.response.body_mut().collect().await.unwrap();
        String::from_utf8(body.to_bytes().to_vec()).unwrap()
    }
}

impl Drop for SocketStream {
    fn drop(&mut self) {
        self.connection.abort();
    }
}
