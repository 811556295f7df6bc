//! A headless Chromium, driven through a chromedriver that this test starts and ends.

use std::process::Stdio;
use std::time::Duration;

use fantoccini::wd::Capabilities;
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

const START_WITHIN: Duration = Duration::from_mins(1);

/// Neither update, sign in, report nor ask anyone: the browser of a test talks to loopback alone.
const FLAGS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--window-size=1440,900",
];

/// A browser with one window. It and its driver end with this value, also when a test fails half way.
pub(crate) struct Chromium {
    client: Client,
    /// The browser's process, until its session was closed.
    browser: Option<u64>,
    _driver: Child,
    _profile: TempDir,
}

impl Chromium {
    pub(crate) async fn start() -> Self {
        let program = std::env::var("KRM_CHROMEDRIVER").unwrap_or_else(|_| "chromedriver".to_owned());
        let mut driver = Command::new(&program)
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{program} cannot be started ({error}): install chromium and chromium-driver")
            });
        let stdout = driver.stdout.take().expect("stdout is piped");
        let port = timeout(START_WITHIN, port_in(stdout))
            .await
            .expect("chromedriver prints its port");

        let profile = tempfile::tempdir().expect("a temporary folder");
        let mut flags: Vec<String> = FLAGS.iter().map(ToString::to_string).collect();
        flags.push(format!("--user-data-dir={}", profile.path().display()));
        let mut capabilities = Capabilities::new();
        capabilities.insert("goog:chromeOptions".to_owned(), json!({ "args": flags }));
        let client = timeout(
            START_WITHIN,
            ClientBuilder::new(HttpConnector::new())
                .capabilities(capabilities)
                .connect(&format!("http://127.0.0.1:{port}")),
        )
        .await
        .expect("a session opens in time")
        .unwrap_or_else(|error| panic!("chromedriver opens no session: {error}"));
        let browser = client
            .capabilities()
            .and_then(|capabilities| capabilities.get("goog:processID")?.as_u64());
        Self {
            client,
            browser,
            _driver: driver,
            _profile: profile,
        }
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Ends the session, and with it the browser.
    pub(crate) async fn close(mut self) {
        self.client.clone().close().await.expect("the session closes");
        self.browser = None;
    }
}

impl Drop for Chromium {
    /// A driver that is killed leaves its browser behind.
    fn drop(&mut self) {
        if let Some(browser) = self.browser {
            let _ = std::process::Command::new("kill")
                .arg(browser.to_string())
                .status();
        }
    }
}

/// The port in `ChromeDriver was started successfully on port N.`; goes on reading, so that the pipe never fills.
async fn port_in(stdout: tokio::process::ChildStdout) -> u16 {
    let mut lines = BufReader::new(stdout).lines();
    loop {
        let line = lines.next_line().await.expect("chromedriver's output is text");
        let line = line.expect("chromedriver runs until it is ended");
        let port = line
            .split_once("started successfully on port ")
            .map(|(_, port)| port.trim_end_matches('.'));
        if let Some(port) = port.and_then(|port| port.parse().ok()) {
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return port;
        }
    }
}
