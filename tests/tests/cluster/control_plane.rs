//! A control plane of a test's own, for what would disturb other tests.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command as BlockingCommand, Stdio};

use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::process::Command;

/// A control plane that nobody else uses. It ends with this value, or with this process, however that ends.
pub(crate) struct ControlPlane {
    state: PathBuf,
    kubeconfig: PathBuf,
    cleanup: Cleanup,
}

/// What can be done to a process of a control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// SIGKILL; returns when it is gone.
    Kill,
    /// It runs again, on its port and data; returns when the API server is ready.
    Start,
    /// SIGSTOP.
    Pause,
    /// SIGCONT.
    Resume,
}

/// The process of xtask that ends the control plane once its standard input closes.
struct Cleanup {
    input: Option<ChildStdin>,
    process: Child,
}

impl ControlPlane {
    /// Starts one, unless the provider of this run has no processes that a test may break; it says so then.
    pub(crate) async fn start() -> Option<Self> {
        let provider = std::env::var("KRM_E2E_PROVIDER").unwrap_or_default();
        if provider != "control-plane" {
            eprintln!(
                "not run: provider {provider} has no processes to break; run with --provider control-plane"
            );
            return None;
        }
        let state = tempfile::tempdir()
            .expect("a temporary folder can be made")
            .keep();
        let cleanup = Cleanup::of(&state);
        let output = xtask("up", &state)
            .stderr(Stdio::inherit())
            .output()
            .await
            .expect("xtask starts");
        assert!(output.status.success(), "the second control plane does not start");
        let printed = String::from_utf8(output.stdout).expect("xtask prints text");
        let kubeconfig = PathBuf::from(printed.lines().last().expect("xtask prints a path"));
        Some(Self {
            state,
            kubeconfig,
            cleanup,
        })
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Does something to the API server's process.
    pub(crate) async fn api_server(&self, fault: Fault) {
        let mut command = xtask("process", &self.state);
        let status = command.args(["kube-apiserver", fault.word()]).status().await;
        assert!(
            status.expect("xtask starts").success(),
            "{fault:?} of the API server failed"
        );
    }

    /// Compacts etcd at its current revision, and returns that.
    pub(crate) async fn compact(&self) -> u64 {
        // A range of one key that nobody has; the answer's header names the revision.
        let answer = self.etcd("/v3/kv/range", &json!({"key": "AA=="})).await;
        let revision = answer["header"]["revision"].as_str().unwrap_or_default();
        let revision: u64 = revision.parse().expect("etcd names its revision");
        self.etcd(
            "/v3/kv/compaction",
            &json!({"revision": revision.to_string(), "physical": true}),
        )
        .await;
        revision
    }

    async fn etcd(&self, path: &str, question: &Value) -> Value {
        let record = std::fs::read(self.state.join("control-plane.json")).expect("the record is there");
        let record: Value = serde_json::from_slice(&record).expect("the record is JSON");
        let port = &record["etcd"]["port"];
        let request = http::Request::post(format!("http://127.0.0.1:{port}{path}"))
            .body(Full::new(bytes::Bytes::from(question.to_string())))
            .expect("the address of etcd is legal");
        let client: Client<_, Full<bytes::Bytes>> = Client::builder(TokioExecutor::new()).build_http();
        let response = client.request(request).await.expect("etcd answers");
        let status = response.status();
        let body = response.into_body().collect().await;
        let body = body.expect("the answer of etcd arrives whole").to_bytes();
        assert!(
            status.is_success(),
            "{path}: {status} {}",
            String::from_utf8_lossy(&body)
        );
        serde_json::from_slice(&body).expect("etcd answers in JSON")
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.cleanup.finish();
    }
}

impl Fault {
    const fn word(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Start => "start",
            Self::Pause => "pause",
            Self::Resume => "resume",
        }
    }
}

impl Cleanup {
    fn of(state: &Path) -> Self {
        use std::io::Write as _;

        let mut process = BlockingCommand::new(program())
            .arg("cleanup")
            .stdin(Stdio::piped())
            // Whoever ends the group of the tests leaves it alive.
            .process_group(0)
            .spawn()
            .expect("xtask starts");
        let mut input = process.stdin.take().expect("stdin is piped");
        writeln!(input, "control-plane {}", state.display()).expect("xtask reads what is to be undone");
        Self {
            input: Some(input),
            process,
        }
    }

    /// Has it done now, and waits for that.
    fn finish(&mut self) {
        drop(self.input.take());
        // Nothing can be done about a failure here; it has said why.
        let _ = self.process.wait();
    }
}

fn program() -> PathBuf {
    std::env::var_os("KRM_XTASK_BIN")
        .expect("KRM_XTASK_BIN names xtask's binary; `cargo xtask e2e` sets it")
        .into()
}

fn xtask(action: &str, state: &Path) -> Command {
    let mut command = Command::new(program());
    command.args(["control-plane", action, "--state"]).arg(state);
    command.stdin(Stdio::null());
    command
}
