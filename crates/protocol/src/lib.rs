//! The wire, the scopes, the seams and the continuity rules of krm-stream.
//!
//! A Kubernetes watch goes in, a stream that a browser can simply trust comes out. This crate says what such a
//! stream is. It reads no clock, spawns nothing and names no runtime: the time and random seeds are arguments.
//! It does not open connections, project objects or keep state for readers; the crates above it do.
//!
//! Two ways in:
//! - **Serving**: [`ScopeRequest`] and [`ScopePolicy`] decide what may be asked for, [`Event`] and [`frame`] write the
//!   wire, [`Continuity`] decides what follows a session's end, and the traits ([`Upstream`], [`Authorizer`],
//!   [`ClientFor`], [`ProjectionPolicy`], [`Observer`], [`Diagnostics`]) are what a host provides.
//! - **Reading**: [`SseDecoder`] turns bytes into events and [`Consumer`] turns events into the objects that are there;
//!   [`FrameGrammar`] checks a gateway's output in tests.
//!
//! ```
//! use krm_stream_protocol::{Consumer, Event, EventType, ScopeRequest, SseDecoder, frame};
//!
//! // What a browser asks for.
//! let request = ScopeRequest::parse("version=v1&resource=configmaps&namespace=shop")?;
//! assert_eq!(request.scope().api_path(), "/api/v1/namespaces/shop/configmaps");
//!
//! // What a gateway answers.
//! let mut wire = Vec::new();
//! let projection = "krm-full/v1".into();
//! Event::Reset { scope: request.scope(), projection: &projection }.encode(1, &mut wire);
//! frame::begin(&mut wire, 2, EventType::Added);
//! wire.extend_from_slice(br#","object":{"kind":"ConfigMap","metadata":{"uid":"u-1"},"n":1E5},"redacted":[]"#);
//! frame::end(&mut wire);
//! Event::Synced.encode(3, &mut wire);
//!
//! // What the browser's side then holds: the object as it was sent, every byte of it.
//! let mut decoder = SseDecoder::new(8 << 20);
//! let mut consumer = Consumer::new();
//! for event in decoder.push(&wire)? {
//!     let _step = consumer.apply(event.data())?;
//! }
//! assert!(consumer.is_synced());
//! assert_eq!(
//!     consumer.get("u-1").map(|object| object.json()),
//!     Some(r#"{"kind":"ConfigMap","metadata":{"uid":"u-1"},"n":1E5}"#),
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod authorizer;
mod client_for;
mod consumer;
mod continuity;
mod diagnostics;
mod error;
mod event;
mod future;
mod identity;
pub mod json;
mod moment;
mod object;
mod observer;
mod principal;
mod projection_policy;
mod resource_version;
mod scope;
mod sse;
mod upstream;

pub use authorizer::{AllowAll, Authorizer, Boundary, Check};
pub use client_for::{Client, ClientFor, Partition, PartitionKey};
pub use consumer::{
    Consumer, ConsumerError, Decision, FrameGrammar, FrameGrammarError, HeldObject, Redaction, ReportedError,
    Step,
};
pub use continuity::{Continuity, FeedEnd, Next, Verdict};
pub use diagnostics::{Diagnosing, Diagnostic, Diagnostics};
pub use error::{ErrorCode, StreamError};
pub use event::{Event, frame};
pub use future::BoxFuture;
pub use identity::Identity;
pub use moment::Moment;
pub use object::{Object, ObjectError};
pub use observer::{AuthorizationOutcome, EventType, Observation, Observer, Observing, SessionEndReason};
pub use principal::{Principal, Subject, SubjectError};
pub use projection_policy::{GrantNamed, ProjectionName, ProjectionPolicy};
pub use resource_version::{Ordering, ResourceVersion};
pub use scope::{
    LabelSelector, LabelSelectorError, ResourceRule, Scope, ScopeBuilder, ScopeError, ScopeField,
    ScopePolicy, ScopeRequest, Target,
};
pub use sse::{SseDecoder, SseError, SseEvent};
pub use upstream::{
    ActsAs, OpenError, Session, SessionEnd, SessionItem, Start, Upstream, UpstreamError, UpstreamErrorKind,
    WatchEvent,
};

/// The examples of the README and of the documentation compile.
#[cfg(doctest)]
mod documentation {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/protocol.md")]
    struct Protocol;
    #[doc = include_str!("../../../docs/scopes.md")]
    struct Scopes;
}
