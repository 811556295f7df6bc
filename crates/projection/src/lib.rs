//! Byte-verbatim projection and redaction of Kubernetes objects over raw JSON.
//!
//! A [`Projection`] is a named, fixed set of rules: what of an object is removed, and what is withheld but named. What
//! no rule names is carried byte for byte: key order, number text, escapes, nulls, unknown fields, any nesting depth.
//! Nothing is parsed into a tree and nothing is written again; the text is cut and spliced.
//!
//! [`Projection::project`] turns an [`Object`](krm_stream_protocol::Object) into a [`Projected`], and only a `Projected`
//! becomes an object frame: a value that was not projected cannot reach a consumer. What is withheld is dropped as soon
//! as it is read; a digest keyed with a random [`DigestKey`] stays, and [`Revisions`] turns it, for each connection, into
//! the revision that a consumer sees. [`validate_merge_patch`] guards the way back, a host's save endpoint.
//!
//! This crate keeps no objects, reads no clock, draws no randomness and does no I/O.
//!
//! ```
//! use krm_stream_projection::{Applies, DigestKey, Projection, Revisions, Upsert};
//! use krm_stream_protocol::{Object, Scope};
//!
//! let secrets = Scope::builder("v1", "secrets").namespace("shop").build()?;
//! let sent = r#"{"kind":"Secret","metadata":{"uid":"7d","name":"db","annotations":{"example.io/copy":"aHVudGVyMg=="}},
//!   "data":{"password":"aHVudGVyMg=="}}"#;
//! let object = Object::parse(sent.into())?;
//!
//! // The built-in projection withholds the values of Secrets; this host's own also removes an annotation.
//! let projection = Projection::define("example.io/full/v1")
//!     .based_on(Projection::full())
//!     .remove_annotation(Applies::ToSecrets, "example.io/copy")
//!     .build()?;
//!
//! // Random bytes, drawn once when the process starts.
//! let digest_key = DigestKey::new([0x5a; 32]);
//! let projected = projection.project(&secrets, &object, &digest_key)?;
//!
//! // What one connection sends: its own prefix, the bytes that all connections share, its own revisions.
//! let mut revisions = Revisions::new();
//! let mut frame = Vec::new();
//! projected.write_prefix(2, Upsert::Added, &mut frame);
//! frame.extend_from_slice(projected.tail());
//! revisions.write_redacted(&projected, &mut frame);
//! assert_eq!(
//!     String::from_utf8(frame)?,
//!     r#"data: {"seq":2,"type":"added","object":{"kind":"Secret","metadata":{"uid":"7d","name":"db"}},"redacted":[{"path":"/data/password","rev":1}]}"#
//!         .to_owned() + "\n\n",
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod digest;
mod merge_patch;
mod projected;
mod projection;
mod redaction;
mod revisions;
mod rules;
mod splice;

pub use digest::{DigestKey, StateDigest, ValueDigest};
pub use merge_patch::{Editor, PatchViolation, validate_merge_patch};
pub use projected::{Projected, Upsert};
pub use projection::{ProjectError, Projection, ProjectionBuilder, ProjectionError, Projections};
pub use redaction::{Redaction, Redactions};
pub use revisions::Revisions;
pub use rules::{Applies, GroupResource, PointerError};

/// The examples of the README and of the documentation compile.
#[cfg(doctest)]
mod documentation {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/projections.md")]
    struct Projections;
    #[doc = include_str!("../../../docs/saving.md")]
    struct Saving;
}
