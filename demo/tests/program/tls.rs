//! The page and the stream by TLS.

use std::fs;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::CONFIG_MAPS;
use crate::demo::Demo;
use crate::stream::Stream;

/// A program that serves by TLS, and what a client needs to trust it.
struct Served {
    demo: Demo,
    trusted: RootCertStore,
    _folder: tempfile::TempDir,
}

impl Served {
    async fn start(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (chain, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
        fs::write(&chain, cert.pem()).unwrap();
        fs::write(&key, signing_key.serialize_pem()).unwrap();
        let (chain, key) = (chain.to_str().unwrap(), key.to_str().unwrap());
        let with_tls: Vec<&str> = ["--tls-cert", chain, "--tls-key", key]
            .into_iter()
            .chain(flags.iter().copied())
            .collect();
        let demo = Demo::start(&with_tls).await;
        let mut trusted = RootCertStore::empty();
        trusted.add(cert.der().clone()).unwrap();
        Self {
            demo,
            trusted,
            _folder: folder,
        }
    }

    /// A connection whose client would speak these protocols.
    async fn connect(&self, protocols: &[&str]) -> TlsStream<TcpStream> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.trusted.clone())
            .with_no_client_auth();
        config.alpn_protocols = protocols
            .iter()
            .map(|protocol| protocol.as_bytes().to_vec())
            .collect();
        let socket = TcpStream::connect(self.demo.address()).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, socket)
            .await
            .unwrap()
    }
}

fn stream_request(authority: &str) -> Request<Empty<Bytes>> {
    Request::get(format!("https://{authority}/resource-stream/v1?{CONFIG_MAPS}"))
        .header("host", authority)
        .body(Empty::new())
        .unwrap()
}

/// A browser opens six HTTP/1.1 connections to one origin; over TLS it is offered HTTP/2 and needs one for all tabs.
#[tokio::test]
async fn http_2_is_offered_by_tls_and_carries_more_streams_than_a_browser_has_connections() {
    let served = Served::start(&["--simulator-tick", "0"]).await;
    let connection = served.connect(&["h2", "http/1.1"]).await;
    assert_eq!(connection.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (requests, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(connection))
            .await
            .unwrap();
    tokio::spawn(connection);
    let mut streams = Vec::new();
    for _ in 0..20 {
        let mut requests = requests.clone();
        let response: Response<Incoming> = requests.send_request(stream_request("localhost")).await.unwrap();
        assert_eq!(response.version(), Version::HTTP_2);
        streams.push(Stream::of(response));
    }
    for stream in &mut streams {
        stream.until(|event| event["type"] == "synced").await;
    }
}

#[tokio::test]
async fn http_1_is_spoken_by_tls_with_a_client_that_knows_no_other() {
    let served = Served::start(&[]).await;
    let connection = served.connect(&["http/1.1"]).await;
    assert_eq!(connection.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let (mut requests, connection) = hyper::client::conn::http1::handshake(TokioIo::new(connection))
        .await
        .unwrap();
    tokio::spawn(connection);
    let response = requests.send_request(stream_request("localhost")).await.unwrap();
    let mut stream = Stream::of(response);
    stream.until(|event| event["type"] == "synced").await;
}

#[tokio::test]
async fn who_speaks_no_tls_is_not_served_and_holds_up_nobody() {
    let served = Served::start(&[]).await;
    // Neither says a word of TLS.
    let _silent = TcpStream::connect(served.demo.address()).await.unwrap();
    let plain = TcpStream::connect(served.demo.address()).await.unwrap();
    let (mut requests, connection) = hyper::client::conn::http1::handshake(TokioIo::new(plain))
        .await
        .unwrap();
    tokio::spawn(connection);
    requests
        .send_request(stream_request("localhost"))
        .await
        .unwrap_err();

    let connection = served.connect(&["http/1.1"]).await;
    let (mut requests, connection) = hyper::client::conn::http1::handshake(TokioIo::new(connection))
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = Request::get("https://localhost/livez")
        .header("host", "localhost")
        .body(Empty::<Bytes>::new())
        .unwrap();
    let response = requests.send_request(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "ok\n");
}
