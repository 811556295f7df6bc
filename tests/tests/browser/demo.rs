//! The demo's binary as a process of its own.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

const START_WITHIN: Duration = Duration::from_mins(1);

/// A running demo; it ends with this value.
pub(crate) struct Demo {
    page_url: String,
    output: Arc<Mutex<String>>,
    _process: Child,
}

impl Demo {
    /// Starts `KRM_DEMO_BIN` on a free port and waits until it printed its address.
    pub(crate) async fn start(flags: &[&str]) -> Self {
        let binary = std::env::var("KRM_DEMO_BIN").expect(
            "KRM_DEMO_BIN names the demo's binary; `cargo xtask e2e --browser` builds it and sets it",
        );
        let mut process = Command::new(&binary)
            .args(["--listen", "127.0.0.1:0"])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{binary} cannot be started: {error}"));
        let output = Arc::new(Mutex::new(String::new()));
        collect(process.stdout.take().expect("stdout is piped"), &output);
        collect(process.stderr.take().expect("stderr is piped"), &output);
        let page_url = printed(&output, |line| {
            let url = &line[line.find("http://127.0.0.1:")?..];
            let end = url.find(char::is_whitespace).unwrap_or(url.len());
            let url = &url[..end];
            // The simulator's line has no path.
            url.ends_with('/').then(|| url.to_owned())
        })
        .await;
        Self {
            page_url,
            output,
            _process: process,
        }
    }

    /// The address of the page, with a `/` at its end.
    pub(crate) fn page_url(&self) -> &str {
        &self.page_url
    }

    /// Host and port of the embedded simulator, which prints `simulator http://127.0.0.1:PORT`.
    pub(crate) async fn simulator_address(&self) -> String {
        printed(&self.output, |line| {
            let (_, after) = line.split_once("simulator http://")?;
            Some(after.trim().trim_end_matches('/').to_owned())
        })
        .await
    }

    /// All that it has printed so far.
    pub(crate) fn output(&self) -> String {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
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

async fn printed<T>(output: &Mutex<String>, find: impl Fn(&str) -> Option<T>) -> T {
    let deadline = Instant::now() + START_WITHIN;
    loop {
        let so_far = output.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(found) = so_far.lines().find_map(&find) {
            return found;
        }
        assert!(
            Instant::now() < deadline,
            "the demo did not print the line within {START_WITHIN:?}, but:\n{so_far}"
        );
        sleep(Duration::from_millis(20)).await;
    }
}
