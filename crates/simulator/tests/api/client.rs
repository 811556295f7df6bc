//! A client that keeps bytes as they come.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client as HttpClient, Error, connect::HttpConnector},
    rt::TokioExecutor,
};
use krm_stream_simulator::Simulator;
use serde_json::Value;
use tokio::time::timeout;

/// How long anything may take before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Client {
    base: String,
    http: HttpClient<HttpConnector, Full<Bytes>>,
    headers: Vec<(String, String)>,
}

pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

impl Client {
    pub(crate) fn new(simulator: &Simulator) -> Self {
        let http = HttpClient::builder(TokioExecutor::new()).build(HttpConnector::new());
        Self {
            base: simulator.url(),
            http,
            headers: Vec::new(),
        }
    }

    pub(crate) fn http2(simulator: &Simulator) -> Self {
        let http = HttpClient::builder(TokioExecutor::new())
            .http2_only(true)
            .build(HttpConnector::new());
        Self {
            base: simulator.url(),
            http,
            headers: Vec::new(),
        }
    }

    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn with_token(self, token: &str) -> Self {
        self.with_header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) async fn open(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &str,
    ) -> Result<http::Response<Incoming>, Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base));
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request
            .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
            .unwrap();
        timeout(PATIENCE, self.http.request(request))
            .await
            .expect("no headers in time")
    }

    async fn send(&self, method: &str, path: &str, content_type: &str, body: &str) -> Reply {
        let response = self.open(method, path, content_type, body).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = timeout(PATIENCE, body.collect())
            .await
            .expect("no body in time")
            .unwrap()
            .to_bytes();
        Reply {
            status: parts.status,
            headers: parts.headers,
            body,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, "", "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, "application/json", &body.to_string())
            .await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Reply {
        self.send("PUT", path, "application/json", &body.to_string())
            .await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Reply {
        self.send("PATCH", path, "application/merge-patch+json", &body.to_string())
            .await
    }

    pub(crate) async fn delete(&self, path: &str, body: &str) -> Reply {
        self.send("DELETE", path, "application/json", body).await
    }

    pub(crate) async fn send_as(&self, method: &str, path: &str, content_type: &str, body: &str) -> Reply {
        self.send(method, path, content_type, body).await
    }

    pub(crate) async fn watch(&self, path: &str) -> Watch {
        let response = self.open("GET", path, "", "").await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert_eq!(response.headers()["content-type"], "application/json");
        Watch {
            body: response.into_body(),
            read: BytesMut::new(),
        }
    }
}

/// The body of a watch, line by line.
pub(crate) struct Watch {
    body: Incoming,
    read: BytesMut,
}

/// How a watch ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    Clean,
    Broken,
}

impl Watch {
    /// The next line without its end, or how the body ended and what of a line was left.
    pub(crate) async fn try_line(&mut self) -> Result<String, (End, String)> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line = self.read.split_to(end + 1);
                return Ok(String::from_utf8(line[..end].to_vec()).unwrap());
            }
            let frame = timeout(PATIENCE, self.body.frame())
                .await
                .expect("nothing came in time");
            let rest = || String::from_utf8_lossy(&self.read).into_owned();
            match frame {
                None => return Err((End::Clean, rest())),
                Some(Err(_)) => return Err((End::Broken, rest())),
                Some(Ok(frame)) => self
                    .read
                    .extend_from_slice(&frame.into_data().unwrap_or_default()),
            }
        }
    }

    pub(crate) async fn line(&mut self) -> String {
        self.try_line().await.unwrap()
    }

    pub(crate) async fn event(&mut self) -> Value {
        let line = self.line().await;
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// `TYPE name@version` of the next event.
    pub(crate) async fn summary(&mut self) -> String {
        let event = self.event().await;
        let metadata = &event["object"]["metadata"];
        format!(
            "{} {}@{}",
            event["type"].as_str().unwrap(),
            metadata["name"].as_str().unwrap_or("-"),
            metadata["resourceVersion"].as_str().unwrap_or("-")
        )
    }

    pub(crate) async fn end(&mut self) -> End {
        match self.try_line().await {
            Ok(line) => panic!("the watch goes on: {line}"),
            Err((end, rest)) => {
                assert_eq!(rest, "", "half a line was left");
                end
            }
        }
    }

    /// Waits a moment for a line that must not come.
    pub(crate) async fn is_silent(&mut self) -> bool {
        timeout(Duration::from_millis(150), self.try_line())
            .await
            .is_err()
    }
}
