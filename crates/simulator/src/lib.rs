//! A Kubernetes API server in a process, over real HTTP, with faults on command: for tests and demos.
//!
//! [`Simulator::start`] listens on a free loopback port and speaks HTTP/1.1 and cleartext HTTP/2 (by prior knowledge).
//! Any client may talk to it: `kube`, `curl`, one's own. Bodies, field order, status texts and headers follow what a
//! real `kube-apiserver` sends. It holds everything in memory, runs no controllers and no admission, and checks objects
//! against no schema.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use krm_stream_simulator::{Ending, Fault, RequestMatch, Simulator, StreamAction, StreamPoint};
//! use serde_json::json;
//!
//! let simulator = Simulator::start().await?;
//! simulator.create("configmaps", json!({"metadata": {"name": "a", "namespace": "shop"}, "data": {"k": "v"}}))?;
//!
//! // The next watch of ConfigMaps is cut off in the middle of its third line.
//! let cut = StreamAction::CutLine { bytes: 20, ending: Ending::Abort };
//! simulator.faults().add(
//!     RequestMatch::watch().resource("configmaps"),
//!     Fault::stream(StreamPoint::AfterLines(2), cut),
//! );
//!
//! // Here the code under test would list and watch `simulator.url()`, while the objects change.
//! simulator.patch("configmaps", "shop", "a", &json!({"data": {"k": "w"}}))?;
//! assert_eq!(simulator.resource_version(), "3");
//! assert_eq!(simulator.counts().watch, 0);
//! simulator.shutdown().await;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! # What to start with
//!
//! - [`Simulator`]: objects ([`Simulator::create`], [`Simulator::put_raw`] for text that is sent byte for byte), the
//!   history ([`Simulator::compact`]), open watches ([`Simulator::inject`], [`Simulator::end_watches`]), and what was
//!   asked ([`Simulator::counts`], [`Simulator::requests`]).
//! - [`Faults`]: what goes wrong with requests to come.
//! - [`Workload`]: a believable cluster that changes step by step.
//! - [`Access`]: tokens and rules; 401, 403 and `SubjectAccessReview` follow from them.

mod access;
mod answer;
mod base64;
mod builder;
mod connection;
mod draw;
mod encode;
mod faults;
mod merge_patch;
mod object;
mod raw;
mod record;
mod request;
mod resource;
mod selector;
mod serve;
mod shared;
mod simulator;
mod status;
mod store;
mod time;
mod watch;
mod workload;

pub use access::{Access, Rule, User};
pub use answer::Answer;
pub use builder::Builder;
pub use faults::{
    BodyFault, Ending, Fault, FaultId, Faults, RequestMatch, StreamAction, StreamPoint, StreamStep,
};
pub use record::Counts;
pub use request::{ReceivedRequest, Verb};
pub use resource::Resource;
pub use simulator::Simulator;
pub use status::Status;
pub use store::{RawObject, WriteError};
pub use workload::Workload;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
