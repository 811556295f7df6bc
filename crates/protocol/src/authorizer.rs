//! The seam that decides whether a caller may see a scope.

use crate::{BoxFuture, Principal, Scope, StreamError};

/// Decides whether a principal may read a scope. Asked before a feed is joined and at every cycle of a stream.
pub trait Authorizer: Send + Sync {
    /// Resolves to `Ok` if `principal` may list and watch `scope`.
    ///
    /// # Errors
    /// The error the stream ends with: `FORBIDDEN` for a denial, `UPSTREAM_UNAVAILABLE` where the question could not
    /// be put. Its text is shown to a browser.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time; a dropped check has no effect.
    fn authorize<'a>(
        &'a self,
        principal: &'a Principal,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<(), StreamError>>;

    /// Whether this authorizer is a boundary at all. A feed that a service identity opened for everyone is refused
    /// unless it is, or says by name that it is not.
    fn boundary(&self) -> Boundary {
        Boundary::Checked
    }
}

/// What stands between a caller and the objects of a shared feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// The authorizer decides for each caller.
    Checked,
    /// It allows everything: fit only where the upstream acts as the caller.
    AllowsAll,
    /// It allows everything, and the host said that it means that for shared feeds too.
    DangerouslyAllowsAll,
}

/// Allows every caller every scope that the scope policy admits.
#[derive(Clone, Copy, Debug)]
pub struct AllowAll {
    boundary: Boundary,
}

impl AllowAll {
    /// For upstreams that act as the caller, so that the API server's RBAC stays the boundary. Refused together with
    /// a shared partition.
    ///
    /// Whether an upstream acts as the caller is known from its [`Partition`](crate::Partition) alone, and that is the
    /// host's word: nothing can check it. One that does not makes this allow everything the gateway's own identity may read.
    pub const fn where_upstream_acts_as_caller() -> Self {
        Self {
            boundary: Boundary::AllowsAll,
        }
    }

    /// For shared partitions too: **whoever reaches the gateway reads whatever its service identity can read** within
    /// the scope policy.
    pub const fn dangerously_for_shared_feeds() -> Self {
        Self {
            boundary: Boundary::DangerouslyAllowsAll,
        }
    }
}

impl Authorizer for AllowAll {
    fn authorize<'a>(&'a self, _: &'a Principal, _: &'a Scope) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn boundary(&self) -> Boundary {
        self.boundary
    }
}
