//! What a test plays on: the demo with its simulator, and a browser.

use tokio::sync::{Mutex, MutexGuard};

use crate::chromium::Chromium;
use crate::demo::Demo;
use crate::kubernetes::Kubernetes;
use crate::page::Page;

/// One browser at a time: several at once would measure each other.
static ALONE: Mutex<()> = Mutex::const_new(());

pub(crate) struct Stage {
    pub(crate) page: Page,
    pub(crate) kubernetes: Kubernetes,
    demo: Demo,
    chromium: Chromium,
    _alone: MutexGuard<'static, ()>,
}

impl Stage {
    /// Starts the demo with its embedded simulator reachable, and a browser; `flags` are added to the demo's.
    pub(crate) async fn start(flags: &[&str]) -> Self {
        let alone = ALONE.lock().await;
        let demo = Demo::start(&[&["--simulator-listen", "127.0.0.1:0"], flags].concat()).await;
        let kubernetes = Kubernetes::at(demo.simulator_address().await);
        let chromium = Chromium::start().await;
        let page = Page::new(chromium.client(), demo.page_url().to_owned());
        Self {
            page,
            kubernetes,
            demo,
            chromium,
            _alone: alone,
        }
    }

    /// All that the demo has printed so far.
    pub(crate) fn demo_output(&self) -> String {
        self.demo.output()
    }

    /// Ends the test: the page must not have had a fault of its own, a refused script or style included.
    pub(crate) async fn finish(self) {
        let faults = self
            .page
            .script("return document.documentElement.dataset.faults ?? null")
            .await;
        assert_eq!(
            faults,
            serde_json::Value::Null,
            "the page had faults: {:?}",
            self.page.error().await
        );
        self.chromium.close().await;
    }
}
