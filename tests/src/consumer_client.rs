//! A consumer at the end of a real connection: HTTP in, the reducer's state out.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use krm_stream_protocol::{
    Consumer, ConsumerError, EventType, FrameGrammar, FrameGrammarError, ReportedError, SseDecoder, SseError,
    SseEvent, Step, json,
};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// An object of the largest size that an API server stores takes less, whatever its escapes.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// One connection to a gateway's stream, the consumer behind it, and all that came so far.
///
/// Every event is checked against the order of the protocol as well. Dropping it closes the connection.
pub struct ConsumerClient {
    body: Incoming,
    connection: JoinHandle<()>,
    decoder: SseDecoder,
    undelivered: VecDeque<SseEvent>,
    consumer: Consumer,
    grammar: FrameGrammar,
    received: Vec<ReceivedEvent>,
    raw: Vec<u8>,
}

/// One event as it came.
pub struct ReceivedEvent {
    event_type: EventType,
    uid: Option<Box<str>>,
    name: Option<Box<str>>,
    error: Option<ReportedError>,
    data: Box<str>,
}

/// The stream could not be opened, or breaks a rule of the protocol.
#[derive(Debug, thiserror::Error)]
pub enum ConsumerClientError {
    /// The address is no `http://HOST:PORT/PATH`.
    #[error("`{0}` is no http:// address with a host and a port")]
    Address(Uri),
    /// Nobody listens there.
    #[error("cannot connect to {address}")]
    Connect {
        /// Host and port.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// A header, or what was made of the address, is illegal.
    #[error("the request cannot be made")]
    Request(#[from] http::Error),
    /// The connection failed.
    #[error("the connection failed")]
    Connection(#[from] hyper::Error),
    /// The answer is no event stream of this protocol.
    #[error("expected a stream, found status {status}, content type `{content_type}`, protocol `{protocol}`")]
    NotAStream {
        /// The answer's status.
        status: StatusCode,
        /// Its content type.
        content_type: String,
        /// Its `X-KRM-Stream-Protocol`.
        protocol: String,
    },
    /// An event is too large.
    #[error(transparent)]
    Sse(#[from] SseError),
    /// An event may not stand where it stands.
    #[error("the event breaks the protocol: {start}")]
    Grammar {
        /// The event's first characters.
        start: String,
        /// The rule.
        source: FrameGrammarError,
    },
    /// The consumer cannot use an event.
    #[error("the consumer cannot use the event: {start}")]
    Consumer {
        /// The event's first characters.
        start: String,
        /// Why.
        source: ConsumerError,
    },
}

impl ConsumerClient {
    /// Opens a stream as a browser would, over HTTP/1.1, and waits for its headers.
    ///
    /// # Errors
    /// [`ConsumerClientError`] if nobody answers, or not with a stream.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn open(address: &Uri, headers: &[(&str, &str)]) -> Result<Self, ConsumerClientError> {
        let (body, connection) = Self::connect(address, headers).await?;
        Ok(Self {
            body,
            connection,
            decoder: SseDecoder::new(MAX_EVENT_BYTES),
            undelivered: VecDeque::new(),
            consumer: Consumer::new(),
            grammar: FrameGrammar::new(),
            received: Vec::new(),
            raw: Vec::new(),
        })
    }

    /// Opens the stream anew, after it ended: the consumer keeps what it holds, until a cycle says otherwise.
    ///
    /// # Errors
    /// [`ConsumerClientError`] if nobody answers, or not with a stream.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn reopen(
        &mut self,
        address: &Uri,
        headers: &[(&str, &str)],
    ) -> Result<(), ConsumerClientError> {
        let (body, connection) = Self::connect(address, headers).await?;
        self.connection.abort();
        self.body = body;
        self.connection = connection;
        self.decoder = SseDecoder::new(MAX_EVENT_BYTES);
        self.undelivered.clear();
        self.grammar = FrameGrammar::new();
        self.consumer.reconnected();
        Ok(())
    }

    async fn connect(
        address: &Uri,
        headers: &[(&str, &str)],
    ) -> Result<(Incoming, JoinHandle<()>), ConsumerClientError> {
        let authority = address
            .authority()
            .filter(|authority| address.scheme_str() == Some("http") && authority.port().is_some())
            .ok_or_else(|| ConsumerClientError::Address(address.clone()))?
            .as_str();
        let socket = TcpStream::connect(authority)
            .await
            .map_err(|source| ConsumerClientError::Connect {
                address: authority.to_owned(),
                source,
            })?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
        // It ends by itself when the request is given up; how it ends shows in the body.
        let connection = tokio::spawn(async move {
            let _ = connection.await;
        });
        let path = address.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::get(path)
            .header(HOST, authority)
            .header(ACCEPT, "text/event-stream");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
        let header = |name: &str| {
            let value = response
                .headers()
                .get(name)
                .map(|value| String::from_utf8_lossy(value.as_bytes()));
            value.unwrap_or_default().into_owned()
        };
        let (content_type, protocol) = (header(CONTENT_TYPE.as_str()), header("x-krm-stream-protocol"));
        if response.status() != StatusCode::OK || content_type != "text/event-stream" || protocol != "1" {
            return Err(ConsumerClientError::NotAStream {
                status: response.status(),
                content_type,
                protocol,
            });
        }
        Ok((response.into_body(), connection))
    }

    /// Waits for the next event and applies it; `None` once the connection has ended.
    ///
    /// # Errors
    /// [`ConsumerClientError`] if the connection broke or the event breaks the protocol.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Result<Option<&ReceivedEvent>, ConsumerClientError> {
        while self.undelivered.is_empty() {
            let Some(frame) = self.body.frame().await else {
                return Ok(None);
            };
            if let Ok(bytes) = frame?.into_data() {
                self.raw.extend_from_slice(&bytes);
                self.undelivered.extend(self.decoder.push(&bytes)?);
            }
        }
        match self.undelivered.pop_front() {
            Some(event) => self.apply(event).map(Some),
            None => Ok(None),
        }
    }

    fn apply(&mut self, event: SseEvent) -> Result<&ReceivedEvent, ConsumerClientError> {
        let data = event.into_data();
        let event_type = self
            .grammar
            .check(&data)
            .map_err(|source| ConsumerClientError::Grammar {
                start: start(&data),
                source,
            })?;
        let step = self
            .consumer
            .apply(&data)
            .map_err(|source| ConsumerClientError::Consumer {
                start: start(&data),
                source,
            })?;
        let (uid, error) = match step {
            Step::Upserted { uid } | Step::Deleted { uid, .. } => (Some((*uid).into()), None),
            Step::Error { error, .. } => (None, Some(error)),
            Step::Reset | Step::Synced { .. } | Step::Ignored => (None, None),
        };
        let name = name(&data);
        self.received.push(ReceivedEvent {
            event_type,
            uid,
            name,
            error,
            data,
        });
        Ok(&self.received[self.received.len() - 1])
    }

    /// What the consumer holds.
    pub const fn consumer(&self) -> &Consumer {
        &self.consumer
    }

    /// Every event so far, in order.
    pub fn received(&self) -> &[ReceivedEvent] {
        &self.received
    }

    /// Every byte of the body so far, comments included.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }
}

impl Drop for ConsumerClient {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl fmt::Debug for ConsumerClient {
    /// Shows no object: one may hold what must not be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumerClient")
            .field("consumer", &self.consumer)
            .field("received", &self.received.len())
            .field("bytes", &self.raw.len())
            .finish_non_exhaustive()
    }
}

impl ReceivedEvent {
    /// Its type.
    pub const fn event_type(&self) -> EventType {
        self.event_type
    }

    /// The uid of the object that it carries or deletes.
    pub fn uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }

    /// The name of the object that it carries or deletes.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The error, if it is one.
    pub const fn error(&self) -> Option<&ReportedError> {
        self.error.as_ref()
    }

    /// Its data.
    pub fn data(&self) -> &str {
        &self.data
    }
}

impl fmt::Debug for ReceivedEvent {
    /// Shows no object.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.event_type.as_str())?;
        match (&self.name, &self.uid, &self.error) {
            (Some(name), Some(uid), _) => write!(f, " {name} ({uid})"),
            (None, Some(uid), _) => write!(f, " {uid}"),
            (_, None, Some(error)) => write!(f, " {}: {}", error.code_text(), error.message()),
            (_, None, None) => Ok(()),
        }
    }
}

/// The name in the object's metadata, or in the identity.
fn name(data: &str) -> Option<Box<str>> {
    let data = data.as_bytes();
    let named = match json::last_member(data, "object") {
        Some(object) => json::last_member(object, "metadata"),
        None => json::last_member(data, "identity"),
    };
    let name = json::last_member(named?, "name")?;
    json::string(name).map(|name| Box::from(&*name))
}

/// Enough of an event to know it by, and nothing of what an object holds.
fn start(data: &str) -> String {
    data.chars().take(60).collect()
}
