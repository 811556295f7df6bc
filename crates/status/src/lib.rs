//! What a controller publishes about its watch streams: grading, summary, readiness and conditions as pure values.
//!
//! A watch ends every few minutes, and nearly always that is no news. This crate decides what is: values go in, values
//! come out. It reads no clock, spawns nothing, sends nothing and names no client of an API server; the time is an
//! argument and the writer is a seam.
//!
//! From the bottom up:
//! 1. a [`WatchStream`] holds the state of one stream, changed by [grades](grade_session_end) of ends and failed opens;
//! 2. a [`StreamSummary`] says in figures and words what many streams do, and is a [`Gate`];
//! 3. [`Readiness`] takes in gates and derives Ready, Reconciling and Stalled, which go into [`Conditions`];
//! 4. [`plan_write`] compares the status with the one last read: no difference, no write, no Event;
//! 5. a [`StatusWriter`] carries the [`WritePlan`] out.
//!
//! # Features
//! - `k8s-openapi` (off): [`Timestamp`], [`Condition`] and [`Conditions`] convert to and from the types of that crate. Its
//!   version of the Kubernetes API is chosen by whoever builds the program.
//!
//! ```
//! use krm_stream_protocol::{ResourceVersion, SessionEnd, Start};
//! use krm_stream_status::{
//!     Conditions, Ended, ReadStatus, Readiness, Status, StreamSummary, Timestamp, WatchStream, plan_write,
//! };
//! use serde::Serialize;
//!
//! #[derive(Clone, Serialize)]
//! struct MyStatus {
//!     conditions: Conditions,
//! }
//!
//! impl Status for MyStatus {
//!     fn conditions(&self) -> &Conditions {
//!         &self.conditions
//!     }
//! }
//!
//! /// What is to be published of one stream, at this time.
//! fn evaluate(read: &MyStatus, stream: &WatchStream, now: i64) -> MyStatus {
//!     let mut status = read.clone();
//!     let summary = StreamSummary::of([("orders", stream.state())]);
//!     Readiness::of(summary.gate()).publish(&mut status.conditions, 1, Timestamp::from_unix_seconds(now));
//!     status
//! }
//!
//! let mut stream = WatchStream::new();
//! stream.opened(&Start::Fresh);
//! stream.synced();
//! let status = evaluate(&MyStatus { conditions: Conditions::default() }, &stream, 1_000);
//! assert!(status.conditions.is_ready());
//!
//! // The watch reaches its timeout and goes on from its cursor: there is nothing to write.
//! stream.ended(Ended::Session(&SessionEnd::Closed));
//! stream.opened(&Start::After("812".into()));
//! let version = ResourceVersion::from("4711");
//! let read = ReadStatus { resource_version: &version, status: Some(&status) };
//! assert_eq!(plan_write(&read, &evaluate(&status, &stream, 1_600))?, None);
//! # Ok::<(), krm_stream_status::PlanError>(())
//! ```

mod condition;
mod conditions;
mod grade;
#[cfg(feature = "k8s-openapi")]
mod kubernetes;
mod plan;
mod readiness;
mod stream;
mod summary;
mod timestamp;
mod writer;

pub use condition::{
    Condition, ConditionStatus, ConditionUpdate, MESSAGE_BYTES, READY, RECONCILING, STALLED, UNSPECIFIED,
};
pub use conditions::Conditions;
pub use grade::{Ended, Grade, Retries, grade_failed_open, grade_feed_end, grade_session_end};
#[cfg(feature = "k8s-openapi")]
pub use kubernetes::ConditionStatusError;
pub use plan::{
    AfterWrite, EventPlan, EventSeverity, PlanError, ReadStatus, Status, StatusPatch, WriteOutcome,
    WritePlan, plan_write,
};
pub use readiness::{Gate, Level, NotReady, Readiness};
pub use stream::{BlockReason, Blockage, ReplayReason, StreamState, WatchStream};
pub use summary::{ALL_STREAMS_READY, NO_RESOLVED_TYPES, PENDING_SAMPLE, REPLAYING, StreamSummary};
pub use timestamp::{Timestamp, TimestampError};
pub use writer::{PublishError, StatusWriter, WriteError, publish};

/// The examples of the README and of the documentation compile.
#[cfg(doctest)]
mod documentation {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/status.md")]
    struct Status;
}
