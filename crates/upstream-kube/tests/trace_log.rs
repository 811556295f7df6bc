//! The log of everything, at its most talkative, holds no credential and no content of an object.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use krm_stream_protocol::{Scope, SessionItem, Start, Subject, Upstream as _};
use krm_stream_simulator::{Simulator, User};
use krm_stream_upstream_kube::{KubeUpstream, kube};
use serde_json::json;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn nothing_that_is_secret_is_logged_at_trace_level() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .init();
    tracing::trace!("the log is on");

    for streaming in [true, false] {
        let simulator = Simulator::builder()
            .streaming_lists(streaming)
            .start()
            .await
            .unwrap();
        simulator
            .access()
            .add_token("canary-token", User::new("gateway").group("system:masters"));
        simulator
            .create(
                "secrets",
                json!({"metadata": {"name": "s", "namespace": "shop"}, "stringData": {"p": "canary-plain"}, "data": {"q": "Y2FuYXJ5"}}),
            )
            .unwrap();
        let mut config = kube::Config::new(simulator.url().parse().unwrap());
        config.auth_info.token = Some(String::from("canary-token").into());
        let scope = Scope::builder("v1", "secrets").namespace("shop").build().unwrap();
        let upstream = KubeUpstream::from_config(config.clone()).unwrap();
        let subject = Subject::new("ada").unwrap().extra("session", "canary-extra");
        for upstream in [upstream.clone(), upstream.acting_as(&subject).unwrap()] {
            let mut session = upstream.open(&scope, Start::Fresh).await.unwrap();
            let item = std::future::poll_fn(|cx| session.poll_next(cx)).await;
            assert!(matches!(item, SessionItem::Event(_)), "{item:?}");
            assert!(!format!("{item:?} {upstream:?}").contains("canary"));
        }
        config.auth_info.token = Some(String::from("canary-wrong").into());
        let Err(error) = KubeUpstream::from_config(config)
            .unwrap()
            .open(&scope, Start::Fresh)
            .await
        else {
            unreachable!("the token is not known");
        };
        assert!(!format!("{error:?}").contains("canary"));
    }

    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("the log is on"));
    for secret in ["canary", "Y2FuYXJ5"] {
        let found = log.lines().find(|line| line.contains(secret));
        assert_eq!(found, None);
    }
}
