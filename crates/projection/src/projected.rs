//! A projected object: the only thing that becomes an object frame.

use std::fmt;
use std::sync::Arc;

use bytes::{BufMut, Bytes};
use krm_stream_protocol::{EventType, Identity, ResourceVersion, frame};

use crate::digest::StateDigest;
use crate::redaction::Redactions;

/// An object as a consumer may see it. Nothing else can be made into an `added` or `modified` frame, and only
/// [`Projection::project`](crate::Projection::project) makes one, so a frame that skipped projection cannot be built.
///
/// A frame is three parts: [`write_prefix`](Self::write_prefix) differs for each stream, [`tail`](Self::tail) is shared by
/// all of them, and where values are withheld [`Revisions::write_redacted`](crate::Revisions::write_redacted) ends the
/// frame. Cloning is cheap.
#[derive(Clone)]
pub struct Projected {
    identity: Arc<Identity>,
    resource_version: Option<ResourceVersion>,
    tail: Bytes,
    state: StateDigest,
    redactions: Option<Redactions>,
}

/// Which of the two types that carry an object a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Upsert {
    /// Before `synced`, or where the stream is known not to have had the uid in this cycle.
    Added,
    /// Otherwise.
    Modified,
}

impl Upsert {
    /// The type of the event.
    pub const fn event_type(self) -> EventType {
        match self {
            Self::Added => EventType::Added,
            Self::Modified => EventType::Modified,
        }
    }
}

/// What stands between the type and the object.
pub(crate) const BEFORE_OBJECT: &[u8] = br#","object":"#;

/// What ends a frame that withholds nothing.
pub(crate) const NOTHING_REDACTED: &[u8] = b",\"redacted\":[]}\n\n";

impl Projected {
    /// `tail` is [`BEFORE_OBJECT`], the object, and [`NOTHING_REDACTED`] where `redactions` is `None`.
    pub(crate) fn new(
        identity: Arc<Identity>,
        resource_version: Option<ResourceVersion>,
        tail: Bytes,
        state: StateDigest,
        redactions: Option<Redactions>,
    ) -> Self {
        Self {
            identity,
            resource_version,
            tail,
            state,
            redactions,
        }
    }

    /// Who the object is.
    pub fn identity(&self) -> &Arc<Identity> {
        &self.identity
    }

    /// `metadata.resourceVersion`, if it is a string.
    pub fn resource_version(&self) -> Option<&ResourceVersion> {
        self.resource_version.as_ref()
    }

    /// The projected object's JSON.
    pub fn object(&self) -> &[u8] {
        let end = match self.redactions {
            Some(_) => self.tail.len(),
            None => self.tail.len() - NOTHING_REDACTED.len(),
        };
        &self.tail[BEFORE_OBJECT.len()..end]
    }

    /// What is withheld; `None` if that is nothing.
    pub fn redactions(&self) -> Option<&Redactions> {
        self.redactions.as_ref()
    }

    /// The digest of what a consumer sees of the object, `resourceVersion` aside: small enough to keep where the bytes
    /// are not.
    pub const fn state(&self) -> StateDigest {
        self.state
    }

    /// Whether a consumer that has `previous` would learn nothing from this but a `resourceVersion`. Both must have
    /// been made with one [`DigestKey`](crate::DigestKey).
    pub fn is_same_state(&self, previous: &Self) -> bool {
        self.state == previous.state
    }

    /// Appends what comes before the shared part of the frame: `data: {"seq":N,"type":"added"`.
    pub fn write_prefix(&self, seq: u64, upsert: Upsert, out: &mut impl BufMut) {
        frame::begin(out, seq, upsert.event_type());
    }

    /// The shared part of the frame: `,"object":{…}`. Where nothing is withheld it is the whole rest of the frame,
    /// `,"redacted":[]}` and the blank line included; otherwise
    /// [`Revisions::write_redacted`](crate::Revisions::write_redacted) follows.
    pub fn tail(&self) -> &Bytes {
        &self.tail
    }
}

impl fmt::Debug for Projected {
    /// Shows lengths only, no content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Projected")
            .field("resource_version", &self.resource_version)
            .field("bytes", &self.tail.len())
            .field(
                "redactions",
                &self.redactions.as_ref().map_or(0, |some| some.as_slice().len()),
            )
            .finish_non_exhaustive()
    }
}
