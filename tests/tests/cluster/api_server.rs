//! The API server under test, as an administrator with kubectl sees it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::metrics;
use crate::wait::WITHIN;

/// A cluster, reached with a kubeconfig whose current context is an administrator's.
///
/// Single requests go through a `kubectl proxy` of its own, which knows how to reach and convince any cluster.
pub(crate) struct ApiServer {
    kubeconfig: PathBuf,
    address: String,
    client: Client<HttpConnector, Full<Bytes>>,
    discovery_cache: TempDir,
    _proxy: Child,
}

impl ApiServer {
    /// The cluster that the whole run is about.
    pub(crate) async fn of_this_run() -> Self {
        let kubeconfig = std::env::var_os("KRM_E2E_KUBECONFIG")
            .expect("KRM_E2E_KUBECONFIG names a kubeconfig; `cargo xtask e2e` starts a cluster and sets it");
        Self::reached_with(Path::new(&kubeconfig)).await
    }

    pub(crate) async fn reached_with(kubeconfig: &Path) -> Self {
        let mut proxy = Command::new("kubectl")
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(["proxy", "--address=127.0.0.1", "--port=0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("kubectl is on the PATH");
        let mut lines = BufReader::new(proxy.stdout.take().expect("stdout is piped")).lines();
        let line = timeout(WITHIN, lines.next_line())
            .await
            .expect("kubectl proxy says where it listens in time")
            .expect("what kubectl proxy says is text")
            .expect("kubectl proxy says where it listens before it ends");
        let (_, address) = line
            .rsplit_once(' ')
            .expect("kubectl proxy prints `Starting to serve on ADDRESS`");
        Self {
            kubeconfig: kubeconfig.to_owned(),
            address: address.trim().to_owned(),
            client: Client::builder(TokioExecutor::new()).build_http(),
            discovery_cache: tempfile::tempdir().expect("a temporary folder can be made"),
            _proxy: proxy,
        }
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Creates a namespace that nobody had before, and returns its name.
    pub(crate) async fn create_namespace(&self) -> String {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"generateName": "krm-e2e-", "labels": {"app.kubernetes.io/part-of": "krm-stream-e2e"}},
        });
        let created = self.create("/api/v1/namespaces", &namespace).await;
        text(&created["metadata"]["name"])
    }

    /// Creates an object in a collection, and returns it.
    pub(crate) async fn create(&self, collection: &str, object: &Value) -> Value {
        self.succeed(Method::POST, collection, "application/json", object)
            .await
    }

    /// Changes an object by an RFC 7386 patch, and returns it.
    pub(crate) async fn merge_patch(&self, path: &str, change: &Value) -> Value {
        self.succeed(Method::PATCH, path, "application/merge-patch+json", change)
            .await
    }

    /// Deletes an object, or all of a collection.
    pub(crate) async fn delete(&self, path: &str) {
        self.succeed(Method::DELETE, path, "application/json", &json!({}))
            .await;
    }

    /// What the API server answers, byte for byte.
    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Bytes) {
        self.request(Method::GET, path, "application/json", Bytes::new())
            .await
    }

    /// The lines of an answer that goes on, such as a watch, up to the first that is the last one wanted.
    pub(crate) async fn lines_until(&self, path: &str, is_last: impl Fn(&str) -> bool) -> Vec<String> {
        let response = timeout(
            WITHIN,
            self.answer(&Method::GET, path, "application/json", &Bytes::new()),
        )
        .await
        .unwrap_or_else(|_| panic!("no answer within {WITHIN:?}: {path}"));
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let (mut body, mut rest, mut lines) = (response.into_body(), Vec::new(), Vec::new());
        loop {
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                let line = String::from_utf8(line).expect("the answer is text");
                let is_last = is_last(&line);
                lines.push(line);
                if is_last {
                    return lines;
                }
            }
            let frame = timeout(WITHIN, body.frame())
                .await
                .unwrap_or_else(|_| panic!("nothing came for {WITHIN:?}: {path}; came: {lines:?}"));
            let frame = frame
                .unwrap_or_else(|| panic!("the last line did not come: {path}; came: {lines:?}"))
                .expect("the answer does not break off");
            rest.extend_from_slice(&frame.into_data().unwrap_or_default());
        }
    }

    /// The sum of the series of a metric that counts, of those that have all of `labels`.
    pub(crate) async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        metrics::sum(&self.metrics().await, name, labels)
    }

    /// All metrics, as they are at one time.
    pub(crate) async fn metrics(&self) -> String {
        let (status, text) = self.get("/metrics").await;
        assert_eq!(status, StatusCode::OK, "the API server serves its metrics");
        String::from_utf8_lossy(&text).into_owned()
    }

    /// What kubectl prints; `input` is its standard input.
    pub(crate) async fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        let mut kubectl = Command::new("kubectl")
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .arg("--cache-dir")
            .arg(self.discovery_cache.path())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("kubectl is on the PATH");
        let mut stdin = kubectl.stdin.take().expect("stdin is piped");
        stdin
            .write_all(input.as_bytes())
            .await
            .expect("kubectl reads its input");
        drop(stdin);
        let output = timeout(WITHIN, kubectl.wait_with_output())
            .await
            .expect("kubectl ends in time")
            .expect("kubectl can be waited for");
        assert!(
            output.status.success(),
            "kubectl {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("kubectl prints text")
    }

    async fn succeed(&self, method: Method, path: &str, content_type: &str, body: &Value) -> Value {
        let body = Bytes::from(body.to_string());
        let (status, answer) = self.request(method.clone(), path, content_type, body).await;
        assert!(
            status.is_success(),
            "{method} {path}: {status} {}",
            String::from_utf8_lossy(&answer)
        );
        serde_json::from_slice(&answer).expect("the API server answers in JSON")
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Bytes,
    ) -> (StatusCode, Bytes) {
        let exchange = async {
            let response = self.answer(&method, path, content_type, &body).await;
            let status = response.status();
            let body = response
                .into_body()
                .collect()
                .await
                .expect("the answer arrives whole");
            (status, body.to_bytes())
        };
        timeout(WITHIN, exchange)
            .await
            .unwrap_or_else(|_| panic!("no answer within {WITHIN:?}: {path}"))
    }

    /// The answer to a request that is made again, as often as that is asked for, when the API server says to come
    /// back later: one that has started anew says so of each kind until it has read all its objects.
    ///
    /// Such a request was not carried out
    /// ([RFC 6585](https://www.rfc-editor.org/rfc/rfc6585#section-4)), so none is carried out twice.
    async fn answer(
        &self,
        method: &Method,
        path: &str,
        content_type: &str,
        body: &Bytes,
    ) -> Response<Incoming> {
        loop {
            let request = Request::builder()
                .method(method)
                .uri(format!("http://{}{path}", self.address))
                .header(CONTENT_TYPE, content_type)
                .body(Full::new(body.clone()))
                .expect("a path of these tests is a legal one");
            let response = self.client.request(request).await.expect("kubectl proxy answers");
            if response.status() != StatusCode::TOO_MANY_REQUESTS {
                return response;
            }
            let after = response.headers().get(RETRY_AFTER);
            let after = after.and_then(|seconds| seconds.to_str().ok()?.parse().ok());
            sleep(Duration::from_secs(after.unwrap_or(1))).await;
        }
    }
}

impl Drop for ApiServer {
    /// A cluster that outlives the tests is left as it was, but for the ends of its namespaces.
    fn drop(&mut self) {
        if std::env::var("KRM_E2E_PROVIDER").is_ok_and(|provider| provider == "kubeconfig") {
            let _ = std::process::Command::new("kubectl")
                .arg("--kubeconfig")
                .arg(&self.kubeconfig)
                .args([
                    "delete",
                    "namespaces,clusterroles,customresourcedefinitions",
                    "--selector=app.kubernetes.io/part-of=krm-stream-e2e",
                    "--wait=false",
                ])
                .stdout(Stdio::null())
                .status();
        }
    }
}

/// A field that must be a string.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().expect("the field is a string").to_owned()
}
