//! The gateway under test: the demo's binary on the cluster of a test.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::Uri;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use krm_stream_projection::Projection;
use krm_stream_protocol::Scope;
use krm_stream_tests::ConsumerClient;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::api_server::ApiServer;
use crate::metrics;
use crate::viewer::Viewer;
use crate::wait::{WITHIN, until};

/// A running gateway; it ends with this value.
pub(crate) struct Gateway {
    /// With a `/` at its end.
    address: String,
    output: Arc<Mutex<String>>,
    process: Child,
}

impl Gateway {
    /// Starts `KRM_DEMO_BIN` on a free port and waits until it has printed its address.
    pub(crate) async fn start(api: &ApiServer, flags: &[&str]) -> Self {
        Self::start_with(api.kubeconfig(), flags).await
    }

    /// Starts it with a log of everything, which is part of what it prints.
    pub(crate) async fn start_traced(api: &ApiServer, flags: &[&str]) -> Self {
        Self::start_logging(api.kubeconfig(), flags, "trace").await
    }

    /// Starts it on the cluster of another kubeconfig.
    pub(crate) async fn start_with(kubeconfig: &Path, flags: &[&str]) -> Self {
        Self::start_logging(kubeconfig, flags, "info").await
    }

    async fn start_logging(kubeconfig: &Path, flags: &[&str], log: &str) -> Self {
        let binary = std::env::var("KRM_DEMO_BIN")
            .expect("KRM_DEMO_BIN names the demo's binary; `cargo xtask e2e` builds it and sets it");
        let mut process = Command::new(&binary)
            .args(["--listen", "127.0.0.1:0", "--kubeconfig"])
            .arg(kubeconfig)
            .args(flags)
            .env("KRM_LOG", log)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{binary} cannot be started: {error}"));
        let output = Arc::new(Mutex::new(String::new()));
        collect(process.stdout.take().expect("stdout is piped"), &output);
        collect(process.stderr.take().expect("stderr is piped"), &output);
        let address = until("the demo prints its address", async || {
            let output = output.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(status) = process.try_wait().expect("the demo can be waited for") {
                panic!("the demo ended with {status}:\n{output}");
            }
            output.lines().find_map(|line| {
                let address = line[line.find("http://127.0.0.1:")?..]
                    .split_whitespace()
                    .next()?;
                address.ends_with('/').then(|| address.to_owned())
            })
        })
        .await;
        Self {
            address,
            output,
            process,
        }
    }

    /// Opens a stream with the gateway's own choice of a projection, which is `krm-full/v1`.
    pub(crate) async fn open(&self, scope: &Scope) -> Viewer {
        let client = self.connect(&scope.canonical_query(), &[]).await;
        Viewer::new(client, scope.clone(), Projection::full())
    }

    /// Opens a stream with this projection.
    pub(crate) async fn open_projected(&self, scope: &Scope, projection: Arc<Projection>) -> Viewer {
        let query = format!("{}&projection={}", scope.canonical_query(), projection.name());
        Viewer::new(self.connect(&query, &[]).await, scope.clone(), projection)
    }

    /// Opens a stream as this user, whom the gateway is told of by a header.
    pub(crate) async fn open_as(&self, scope: &Scope, user: &str) -> Viewer {
        let client = self.connect(&scope.canonical_query(), &[(USER, user)]).await;
        Viewer::new(client, scope.clone(), Projection::full())
    }

    /// Opens a stream with these headers.
    pub(crate) async fn open_with(&self, scope: &Scope, headers: &[(&str, &str)]) -> Viewer {
        let client = self.connect(&scope.canonical_query(), headers).await;
        Viewer::new(client, scope.clone(), Projection::full())
    }

    /// Has all streams checked, as a change of roles calls for.
    pub(crate) fn recheck(&self) {
        self.signal("HUP");
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.process.id().expect("the demo runs").to_string();
        let sent = std::process::Command::new("sh")
            .args(["-c", &format!("kill -{name} {id}")])
            .status();
        assert!(sent.expect("a shell can be run").success());
    }

    /// Waits until the process has ended.
    pub(crate) async fn until_ended(&mut self) -> ExitStatus {
        timeout(WITHIN, self.process.wait())
            .await
            .expect("the demo ends in time")
            .expect("the demo can be waited for")
    }

    /// Opens a stream with these headers, as often as it takes until the API server's authorizer has learnt of the role.
    pub(crate) async fn open_admitted(&self, scope: &Scope, headers: &[(&str, &str)]) -> Viewer {
        until("the role reaches the API server's authorizer", async || {
            let client = self.connect(&scope.canonical_query(), headers).await;
            let mut viewer = Viewer::new(client, scope.clone(), Projection::full());
            (!viewer.is_forbidden().await).then_some(viewer)
        })
        .await
    }

    /// Opens the stream of a viewer anew, anonymously and without a choice of a projection.
    pub(crate) async fn reopen(&self, viewer: &mut Viewer) {
        let address = self.stream_address(&viewer.scope().canonical_query());
        timeout(WITHIN, viewer.reopen(&address))
            .await
            .expect("the gateway answers in time")
            .unwrap_or_else(|error| panic!("{address}: {error}"));
    }

    async fn connect(&self, query: &str, headers: &[(&str, &str)]) -> ConsumerClient {
        let address = self.stream_address(query);
        timeout(WITHIN, ConsumerClient::open(&address, headers))
            .await
            .expect("the gateway answers in time")
            .unwrap_or_else(|error| panic!("{address}: {error}"))
    }

    fn stream_address(&self, query: &str) -> Uri {
        let address = format!("{}resource-stream/v1?{query}", self.address);
        address.parse().expect("the query is legal in an address")
    }

    /// The sum of the series of a metric that counts, of those that have all of `labels`.
    pub(crate) async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        metrics::sum(&self.metrics().await, name, labels)
    }

    /// All metrics, as they are at one time.
    pub(crate) async fn metrics(&self) -> String {
        let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
        let address = format!("{}metrics", self.address);
        let address = address.parse().expect("the address is legal");
        let exchange = async {
            let response = client.get(address).await.expect("the gateway serves its metrics");
            let body = response.into_body().collect().await;
            body.expect("the metrics arrive whole").to_bytes()
        };
        let body = timeout(WITHIN, exchange).await.expect("the metrics come in time");
        String::from_utf8_lossy(&body).into_owned()
    }

    /// All that it has printed so far.
    pub(crate) fn output(&self) -> String {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The header of `--identity`.
pub(crate) const USER: &str = "x-e2e-user";

impl Drop for Gateway {
    /// What it printed is half of the story of a failed test.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the demo printed:\n{}", self.output());
        }
    }
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
