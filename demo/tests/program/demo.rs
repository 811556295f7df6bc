//! The program under test, and requests to it.

use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

const WITHIN: Duration = Duration::from_secs(30);

/// A header of a request.
pub(crate) type Header = (HeaderName, &'static str);
type HttpClient = Client<HttpConnector, Empty<Bytes>>;

/// A running program; it ends with this value.
pub(crate) struct Demo {
    process: Child,
    output: Arc<Mutex<String>>,
    base: String,
    http1: HttpClient,
    http2: HttpClient,
}

/// The head of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
}

impl Demo {
    /// Starts it on a free port of the loopback interface.
    pub(crate) async fn start(flags: &[&str]) -> Self {
        Self::start_logging(flags, "info").await
    }

    pub(crate) async fn start_logging(flags: &[&str], filter: &str) -> Self {
        Self::start_in(&[("KRM_LOG", filter)], flags).await
    }

    /// Starts it with these environment variables.
    pub(crate) async fn start_in(variables: &[(&str, &str)], flags: &[&str]) -> Self {
        let mut process = command()
            .args(["--listen", "127.0.0.1:0"])
            .args(flags)
            .envs(variables.iter().copied())
            .spawn()
            .unwrap();
        let output = Arc::new(Mutex::new(String::new()));
        collect(process.stdout.take().unwrap(), &output);
        collect(process.stderr.take().unwrap(), &output);
        let mut http1 = Client::builder(TokioExecutor::new());
        // A request after an idle time must not meet a connection that was closed meanwhile.
        http1.pool_max_idle_per_host(0);
        let mut demo = Self {
            process,
            output,
            base: String::new(),
            http1: http1.build_http(),
            http2: Client::builder(TokioExecutor::new())
                .http2_only(true)
                .build_http(),
        };
        let line = demo.printed("page http").await;
        line.trim_start_matches("page ")
            .trim_end_matches('/')
            .clone_into(&mut demo.base);
        demo
    }

    /// Host and port of the page.
    pub(crate) fn address(&self) -> String {
        let (_, address) = self.base.split_once("://").unwrap();
        address.to_owned()
    }

    /// All that it has printed so far, the log included.
    pub(crate) fn output(&self) -> String {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The first line that contains this, once it is printed.
    pub(crate) async fn printed(&self, part: &str) -> String {
        let deadline = Instant::now() + WITHIN;
        loop {
            let output = self.output();
            if let Some(line) = output.lines().find(|line| line.contains(part)) {
                return line.to_owned();
            }
            assert!(Instant::now() < deadline, "no line with {part:?} in:\n{output}");
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Sends a request; the answer's body is still to be read. A path is one of the page's address.
    pub(crate) async fn send(&self, target: &str, headers: &[Header]) -> Response<Incoming> {
        answered(self.http1.request(self.request(target, headers))).await
    }

    pub(crate) async fn send_http2(&self, target: &str) -> Response<Incoming> {
        answered(self.http2.request(self.request(target, &[]))).await
    }

    fn request(&self, target: &str, headers: &[Header]) -> Request<Empty<Bytes>> {
        let uri: Uri = if target.starts_with('/') {
            format!("{}{target}", self.base).parse().unwrap()
        } else {
            target.parse().unwrap()
        };
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = uri;
        for (name, value) in headers {
            request.headers_mut().append(name, value.parse().unwrap());
        }
        request
    }

    /// The head of an answer; its body is left unread.
    pub(crate) async fn get(&self, target: &str, headers: &[Header]) -> (Head, Response<Incoming>) {
        let response = self.send(target, headers).await;
        let head = Head {
            status: response.status(),
            headers: response.headers().clone(),
        };
        (head, response)
    }

    /// An answer as a whole.
    pub(crate) async fn read(&self, target: &str, headers: &[Header]) -> (Head, String) {
        let (mut head, response) = self.get(target, headers).await;
        head.headers.remove("date");
        let body = timeout(WITHIN, response.into_body().collect()).await.unwrap();
        let text = String::from_utf8(body.unwrap().to_bytes().into()).unwrap();
        (head, text)
    }

    pub(crate) async fn json(&self, target: &str) -> Value {
        let (head, text) = self.read(target, &[]).await;
        assert_eq!(head.headers["content-type"], "application/json");
        serde_json::from_str(&text).unwrap()
    }

    /// The short answer in plain text that a test expects.
    #[expect(clippy::unused_self, reason = "reads as what the program answers")]
    pub(crate) fn plain(&self, status: StatusCode, text: &str) -> (Head, String) {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-type", "text/plain; charset=utf-8"),
            ("cache-control", "no-store"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        headers.insert("content-length", text.len().into());
        (Head { status, headers }, text.to_owned())
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.process.id().unwrap();
        let sent = std::process::Command::new("sh")
            .args(["-c", &format!("kill -{name} {id}")])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    pub(crate) async fn wait(&mut self) -> ExitStatus {
        self.process.wait().await.unwrap()
    }
}

/// Runs it with flags with which it does not start.
pub(crate) async fn run_to_its_end(flags: &[&str]) -> (ExitStatus, String) {
    let output = timeout(WITHIN, command().args(flags).output())
        .await
        .unwrap()
        .unwrap();
    assert!(output.stdout.is_empty());
    (output.status, String::from_utf8(output.stderr).unwrap())
}

/// The environment variables of its flags.
pub(crate) async fn variables() -> Vec<String> {
    let output = timeout(WITHIN, command().arg("--help").output())
        .await
        .unwrap()
        .unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    help.split("[env: ")
        .skip(1)
        .filter_map(|rest| rest.split('=').next())
        .map(str::to_owned)
        .collect()
}

/// Runs it with an environment variable with which it does not start.
pub(crate) async fn refuse_variable(name: &str, value: &str) -> (ExitStatus, String) {
    let output = timeout(WITHIN, command().env(name, value).output())
        .await
        .unwrap()
        .unwrap();
    (output.status, String::from_utf8(output.stderr).unwrap())
}

/// The program with none of its environment variables.
fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_krm-stream-demo"));
    command
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

async fn answered<E: std::fmt::Debug>(
    response: impl Future<Output = Result<Response<Incoming>, E>>,
) -> Response<Incoming> {
    timeout(WITHIN, response).await.unwrap().unwrap()
}

/// Reads on until the process ends, so that it never blocks on a full pipe.
fn collect(stream: impl AsyncRead + Unpin + Send + 'static, output: &Arc<Mutex<String>>) {
    let output = Arc::clone(output);
    tokio::spawn(async move {
        let mut lines = BufReader::new(stream).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            output.push_str(&line);
            output.push('\n');
        }
    });
}
