//! An API server without sockets, so that tests can pause the clock.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::BodyExt as _;
use krm_stream_upstream_kube::{KubeUpstream, KubeUpstreamBuilder, kube};
use tokio::time::Sleep;

/// A request that was received.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) method: http::Method,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Received {
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_streaming_list(&self) -> bool {
        self.parameter("sendInitialEvents") == Some("true")
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.parameter("watch").is_some() && !self.is_streaming_list()
    }

    /// `list`, `list continue=TOKEN`, `watch VERSION` or `streaming list`.
    pub(crate) fn summary(&self) -> String {
        let mut text = if self.is_streaming_list() {
            "streaming list".to_owned()
        } else if self.is_watch() {
            format!(
                "watch {}",
                self.parameter("resourceVersion").unwrap_or("anything")
            )
        } else {
            "list".to_owned()
        };
        if let Some(token) = self.parameter("continue") {
            write!(text, " continue={token}").unwrap();
        }
        text
    }
}

/// An answer: what the headers wait for, the status and headers, and the steps of the body.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    code: u16,
    headers: Vec<(&'static str, String)>,
    hangs_before_headers: bool,
    delay: Duration,
    steps: VecDeque<Step>,
}

/// A step of a body. After the last it ends cleanly.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Data(Bytes),
    Wait(Duration),
    /// For ever.
    Hang,
    /// The connection breaks.
    Break,
}

impl Answer {
    pub(crate) fn new(code: u16, body: impl Into<Bytes>) -> Self {
        Self {
            code,
            headers: Vec::new(),
            hangs_before_headers: false,
            delay: Duration::ZERO,
            steps: VecDeque::from([Step::Data(body.into())]),
        }
    }

    pub(crate) fn ok(body: impl Into<Bytes>) -> Self {
        Self::new(200, body)
    }

    pub(crate) fn hanging() -> Self {
        Self {
            hangs_before_headers: true,
            ..Self::ok("")
        }
    }

    /// The headers come that much later.
    pub(crate) fn delayed(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn then(mut self, step: Step) -> Self {
        self.steps.push_back(step);
        self
    }

    pub(crate) fn then_data(self, data: impl Into<Bytes>) -> Self {
        self.then(Step::Data(data.into()))
    }

    /// The same body in chunks of `size` bytes.
    pub(crate) fn in_chunks_of(mut self, size: usize) -> Self {
        self.steps = self
            .steps
            .into_iter()
            .flat_map(|step| match step {
                Step::Data(data) => data
                    .chunks(size)
                    .map(|chunk| Step::Data(Bytes::copy_from_slice(chunk)))
                    .collect(),
                other => vec![other],
            })
            .collect();
        self
    }
}

/// What the server received, and whether its bodies are still read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    requests: Arc<Mutex<Vec<Received>>>,
    dropped: Arc<AtomicBool>,
}

impl Record {
    pub(crate) fn requests(&self) -> Vec<Received> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn summaries(&self) -> Vec<String> {
        self.requests().iter().map(Received::summary).collect()
    }

    /// Whether a body was dropped before its end.
    pub(crate) fn a_body_was_dropped(&self) -> bool {
        self.dropped.load(Ordering::SeqCst)
    }
}

/// An upstream whose requests are answered by `answer`.
pub(crate) fn upstream(
    answer: impl Fn(&Received) -> Answer + Send + Sync + 'static,
) -> (KubeUpstream, Record) {
    let (builder, record) = builder(answer);
    (builder.build().unwrap(), record)
}

/// The same, with settings.
pub(crate) fn builder(
    answer: impl Fn(&Received) -> Answer + Send + Sync + 'static,
) -> (KubeUpstreamBuilder, Record) {
    let record = Record::default();
    let answer = Arc::new(answer);
    let of_service = record.clone();
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let record = of_service.clone();
        let answer = Arc::clone(&answer);
        async move {
            let received = receive(request).await;
            let answer = answer(&received);
            record.requests.lock().unwrap().push(received);
            if answer.hangs_before_headers {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(answer.delay).await;
            let mut response = Response::builder().status(answer.code);
            for (name, value) in &answer.headers {
                response = response.header(*name, value);
            }
            let body = ScriptedBody {
                steps: answer.steps,
                waiting: None,
                ended: false,
                dropped: Arc::clone(&record.dropped),
            };
            Ok::<_, Infallible>(response.body(body).unwrap())
        }
    });
    let client = kube::Client::new(service, "default");
    (KubeUpstream::builder_with_client(client), record)
}

async fn receive(request: Request<kube::client::Body>) -> Received {
    let (parts, body) = request.into_parts();
    let query = parts.uri.query().unwrap_or_default();
    let decode = |text: &str| {
        percent_encoding::percent_decode_str(text)
            .decode_utf8()
            .unwrap()
            .into_owned()
    };
    Received {
        method: parts.method,
        path: parts.uri.path().to_owned(),
        query: query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (decode(name), decode(value)))
            .collect(),
        headers: parts.headers,
        body: body.collect().await.unwrap().to_bytes(),
    }
}

struct ScriptedBody {
    steps: VecDeque<Step>,
    waiting: Option<Pin<Box<Sleep>>>,
    ended: bool,
    dropped: Arc<AtomicBool>,
}

impl http_body::Body for ScriptedBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                std::task::ready!(waiting.as_mut().poll(cx));
                self.waiting = None;
            }
            match self.steps.pop_front() {
                Some(Step::Data(data)) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Some(Step::Wait(duration)) => self.waiting = Some(Box::pin(tokio::time::sleep(duration))),
                Some(Step::Hang) => {
                    self.steps.push_front(Step::Hang);
                    return Poll::Pending;
                }
                Some(Step::Break) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(std::io::ErrorKind::ConnectionReset.into())));
                }
                None => {
                    self.ended = true;
                    return Poll::Ready(None);
                }
            }
        }
    }
}

impl Drop for ScriptedBody {
    fn drop(&mut self) {
        if !self.ended {
            self.dropped.store(true, Ordering::SeqCst);
        }
    }
}
