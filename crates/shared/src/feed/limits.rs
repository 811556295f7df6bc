//! How large a scope may be.

use krm_stream_protocol::StreamError;

use super::held::Held;
use crate::settings::FeedSettings;

/// The limits that a host has set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    objects: Option<usize>,
    bytes: Option<u64>,
}

/// A scope has more than this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exceeded {
    Objects(usize),
    Bytes(u64),
}

impl Limits {
    pub(super) fn of(settings: &FeedSettings) -> Self {
        Self {
            objects: settings.max_snapshot_objects,
            bytes: settings.max_snapshot_bytes,
        }
    }

    /// What so many objects of so many bytes amount to with one more, or with another state of one that had been `before`.
    pub(super) fn grown(
        &self,
        objects: usize,
        bytes: u64,
        held: &Held,
        before: Option<&Held>,
    ) -> Result<u64, Exceeded> {
        let grown = bytes - before.map_or(0, Held::bytes) + held.bytes();
        match (self.objects, self.bytes) {
            (Some(limit), _) if before.is_none() && objects >= limit => Err(Exceeded::Objects(limit)),
            (_, Some(limit)) if grown > limit => Err(Exceeded::Bytes(limit)),
            (Some(_) | None, Some(_) | None) => Ok(grown),
        }
    }
}

impl Exceeded {
    /// What the streams of the scope are told.
    pub(crate) fn to_stream_error(self) -> StreamError {
        StreamError::internal(match self {
            Self::Objects(limit) => {
                format!(
                    "this scope has more than {limit} objects, the most that this gateway serves of one; ask for less"
                )
            }
            Self::Bytes(limit) => {
                format!(
                    "this scope has more than {limit} bytes, the most that this gateway serves of one; ask for less"
                )
            }
        })
    }
}
