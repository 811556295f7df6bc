//! The wire, the scopes, the seams and the continuity rules of krm-stream.
//!
//! A Kubernetes watch goes in, a stream that a browser can simply trust comes out. This crate says what such a
//! stream is. It reads no clock, spawns nothing and names no runtime: the time and random seeds are arguments.
//! It does not open connections, project objects or keep state for readers; the crates above it do.

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

pub use authorizer::{AllowAll, Authorizer, Boundary};
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
