//! The page as a test sees it: through scripts in the browser, and by waiting for what they find.

use std::time::Duration;

use fantoccini::Client;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

const WITHIN: Duration = Duration::from_mins(1);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Names for what the tests ask of the document.
const VOCABULARY: &str = r"
    const state = () => document.querySelector('#state')?.dataset.state;
    const connections = () => Number(document.querySelector('#connections').dataset.count);
    const row = (name) => [...document.querySelectorAll('tr[data-uid]')]
        .find((element) => element.querySelector('[data-column=name]').textContent === name);
    const summary = (name) => row(name)?.querySelector('[data-column=status]').textContent;
    const flashed = (name, kind) => window.flashes.some((entry) => entry.name === name && entry.kind === kind);
    const withheld = (path) => document.querySelector(`.redacted[data-path='${path}']`)?.textContent;
    const streamRequests = () => performance.getEntriesByType('resource')
        .filter((entry) => new URL(entry.name).pathname.endsWith('/resource-stream/v1'));
    const cameBackAfterMs = () => Number(document.querySelector('#connections').dataset.openedAt)
        - Number(document.querySelector('#last-error').dataset.at);
    const filter = (text) => {
        const input = document.querySelector('#filter');
        input.value = text;
        input.dispatchEvent(new Event('input', { bubbles: true }));
    };
";

/// The last error, as the page shows it.
#[derive(Debug)]
pub(crate) struct ShownError {
    pub(crate) code: String,
    pub(crate) terminal: bool,
    pub(crate) message: String,
    /// All of it that a person reads.
    pub(crate) text: String,
    pub(crate) retry_after: Option<Duration>,
}

/// How frames came while the page was busy.
#[derive(Debug)]
pub(crate) struct Frames {
    count: u64,
    longest: Duration,
}

impl Frames {
    /// Whether the page never stood still in these seconds.
    pub(crate) fn keep_coming(&self) -> bool {
        self.count >= 20 && self.longest < Duration::from_millis(1500)
    }
}

pub(crate) struct Page {
    client: Client,
    url: String,
}

impl Page {
    pub(crate) fn new(client: Client, url: String) -> Self {
        Self { client, url }
    }

    /// Opens the page for a scope, given as its query.
    pub(crate) async fn open(&self, query: &str) {
        self.open_at(&self.url, query).await;
    }

    /// Opens another gateway's page for a scope.
    pub(crate) async fn open_at(&self, url: &str, query: &str) {
        self.client
            .goto(&format!("{url}#{query}"))
            .await
            .expect("the page loads");
    }

    pub(crate) async fn reload(&self) {
        self.client.refresh().await.expect("the page loads again");
    }

    /// Runs a script in the page; its `return` is the value.
    pub(crate) async fn script(&self, body: &str) -> Value {
        let script = format!("{VOCABULARY}\n{body}");
        self.client
            .execute(&script, Vec::new())
            .await
            .unwrap_or_else(|error| panic!("the script failed: {error}\n{body}"))
    }

    /// Waits until a script returns something true.
    pub(crate) async fn until(&self, what: &str, body: &str) {
        let deadline = Instant::now() + WITHIN;
        loop {
            let value = self.script(body).await;
            if value == json!(true) {
                return;
            }
            if Instant::now() >= deadline {
                let text = self.script("return document.body.innerText").await;
                panic!("not within {WITHIN:?}: {what} ({body} is {value}); the page says:\n{text}");
            }
            sleep(BETWEEN_LOOKS).await;
        }
    }

    /// Looks again and again for some time, and fails as soon as the script returns true.
    pub(crate) async fn never_within(&self, time: Duration, what: &str, body: &str) {
        let deadline = Instant::now() + time;
        while Instant::now() < deadline {
            assert_ne!(self.script(body).await, json!(true), "{what}");
            sleep(BETWEEN_LOOKS).await;
        }
    }

    pub(crate) async fn error(&self) -> ShownError {
        let shown = self
            .script(
                "const e = document.querySelector('#last-error');
                 return { ...e.dataset, text: e.innerText, message: document.querySelector('#error-message').textContent };",
            )
            .await;
        let text = |field: &str| shown[field].as_str().unwrap_or_default().to_owned();
        ShownError {
            code: text("code"),
            terminal: text("terminal") == "true",
            message: text("message"),
            text: text("text"),
            retry_after: text("retryAfterMs").parse().ok().map(Duration::from_millis),
        }
    }

    /// From now on notes which rows were highlighted, however briefly.
    pub(crate) async fn record_flashes(&self) {
        self.script(
            "window.flashes = [];
             const note = (element) => {
                 if (element instanceof HTMLTableRowElement && element.classList.contains('flash')) {
                     const name = element.querySelector('[data-column=name]').textContent;
                     window.flashes.push({ name, kind: element.dataset.flash });
                 }
             };
             new MutationObserver((records) => records.forEach((record) => {
                 note(record.target);
                 record.addedNodes.forEach(note);
             })).observe(document.querySelector('#rows'), {
                 subtree: true, childList: true, attributes: true, attributeFilter: ['data-flash', 'class'],
             });",
        )
        .await;
    }

    /// Fills in the form's fields and sends it, as a person would.
    pub(crate) async fn fill(&self, fields: &[(&str, &str)]) {
        for (field, value) in fields {
            let script = format!(
                "document.querySelector('#scope-{field}').value = {}",
                json!(value)
            );
            self.script(&script).await;
        }
        self.script("document.querySelector('#watch').click()").await;
    }

    /// Scrolls up and down the table in small steps and measures the time between frames.
    pub(crate) async fn start_frame_meter(&self) {
        self.script(
            "const frame = document.querySelector('#objects-frame');
             const meter = { count: 0, longest: 0, last: performance.now(), running: true };
             window.frameMeter = meter;
             const step = () => {
                 const now = performance.now();
                 meter.count += 1;
                 meter.longest = Math.max(meter.longest, now - meter.last);
                 meter.last = now;
                 frame.scrollTop = (meter.count * 731) % frame.scrollHeight;
                 if (meter.running) { requestAnimationFrame(step); }
             };
             requestAnimationFrame(step);",
        )
        .await;
    }

    pub(crate) async fn stop_frame_meter(&self) -> Frames {
        let meter = self
            .script("window.frameMeter.running = false; return window.frameMeter")
            .await;
        Frames {
            count: meter["count"].as_u64().unwrap_or(0),
            longest: Duration::from_secs_f64(meter["longest"].as_f64().unwrap_or(f64::MAX.sqrt()) / 1000.0),
        }
    }
}
