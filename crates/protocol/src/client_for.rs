//! The seam that says which upstream serves a caller, and with whom the feed may be shared.

use std::sync::Arc;

use crate::{BoxFuture, Principal, StreamError, Subject, Target, Upstream};

/// Chooses the upstream for a caller on a target. Asked at every cycle of a stream, so that a refreshed credential is
/// picked up.
pub trait ClientFor: Send + Sync {
    /// Resolves to the upstream that this principal's streams read from.
    ///
    /// # Errors
    /// The error the stream ends with, for example `UNAUTHENTICATED` where the caller has no credential.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time.
    fn client_for<'a>(
        &'a self,
        target: &'a Target,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<Client, StreamError>>;
}

/// An upstream, and whose identity it has.
#[derive(Clone, Debug)]
pub struct Client {
    /// Where sessions are opened.
    pub upstream: Arc<dyn Upstream>,
    /// Whose identity the upstream has, hence who may share what it reads.
    pub partition: Partition,
}

/// Whose identity an upstream has.
///
/// This is the host's word, and **nothing can check it**: an upstream that is said to be the caller's and reads with the
/// gateway's own rights shows every caller what the gateway may read. Say [`Isolated`](Self::Isolated) or
/// [`PerCaller`](Self::PerCaller) only of an upstream that was made from this principal, by impersonation or with the
/// caller's own credential.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Partition {
    /// The caller's, for one stream alone.
    Isolated,
    /// The caller's: all streams of one complete subject share. `narrowed_by` is added to the key; it can divide a
    /// subject's streams, never join two subjects.
    PerCaller {
        /// A host's own addition to the key, for example the id of a login.
        narrowed_by: Option<Box<str>>,
    },
    /// A service identity of this name, shared by all callers: then the [`Authorizer`](crate::Authorizer) is the only
    /// boundary.
    Shared(Arc<str>),
}

/// The part of a feed's key that keeps identities apart. Computed by the library from the complete subject.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PartitionKey {
    /// Never equal to another stream's.
    Isolated(u64),
    /// One complete subject, and the host's addition.
    PerCaller(Subject, Option<Box<str>>),
    /// One service identity.
    Shared(Arc<str>),
}

impl Partition {
    /// All tabs of one caller share, still as that caller. It makes no upstream act as anyone: the upstream beside it in
    /// the [`Client`] must do so.
    pub const fn per_caller() -> Self {
        Self::PerCaller { narrowed_by: None }
    }

    /// One service identity for everyone.
    pub fn shared(name: impl Into<Arc<str>>) -> Self {
        Self::Shared(name.into())
    }

    /// The key for this caller; `stream` is a number that no other stream of the process has.
    pub fn key(&self, principal: &Principal, stream: u64) -> PartitionKey {
        match self {
            Self::Isolated => PartitionKey::Isolated(stream),
            Self::PerCaller { narrowed_by } => {
                PartitionKey::PerCaller(principal.subject().clone(), narrowed_by.clone())
            }
            Self::Shared(name) => PartitionKey::Shared(Arc::clone(name)),
        }
    }

    /// Whether the upstream acts as the caller, so that an API server's refusal is about the caller.
    pub const fn acts_as_caller(&self) -> bool {
        match self {
            Self::Isolated | Self::PerCaller { .. } => true,
            Self::Shared(_) => false,
        }
    }
}
