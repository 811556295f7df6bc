//! Byte-verbatim projection and redaction of Kubernetes objects over raw JSON.
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
