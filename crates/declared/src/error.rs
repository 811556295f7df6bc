//! Why a declared stream is not watched, in words for its status.

use krm_stream_protocol::ScopeError;
use krm_stream_status::{BlockReason, Blockage};

/// Why a declared stream is not watched. The text says what to do and repeats no part of the declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeclaredStreamError {
    /// An earlier stream has the name.
    #[error("another stream of this resource has this name: give each its own")]
    NameRepeated,
    /// The scope is not legal, or the gateway's policy does not allow it.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// The projection is not allowed.
    #[error("the gateway does not allow this projection for declared streams")]
    ProjectionNotAllowed,
    /// The gateway has no allow-list of scopes.
    #[error(
        "the gateway allows any resource and leaves admission to its callers' rights, which declared streams do not \
         have: its operator must list the resources that may be declared"
    )]
    NoAllowList,
}

impl DeclaredStreamError {
    /// What the stream's state is to say.
    pub fn blockage(&self) -> Blockage {
        Blockage::new(self.reason(), self.to_string())
    }

    const fn reason(&self) -> BlockReason {
        match self {
            Self::ProjectionNotAllowed
            | Self::NoAllowList
            | Self::Scope(
                ScopeError::TargetNotAllowed
                | ScopeError::ResourceNotAllowed
                | ScopeError::AllNamespacesNotAllowed
                | ScopeError::LabelSelectorNotAllowed,
            ) => BlockReason::WatchNotPermitted,
            Self::NameRepeated
            | Self::Scope(
                ScopeError::Missing(_)
                | ScopeError::Empty(_)
                | ScopeError::Repeated(_)
                | ScopeError::Misspelled(_)
                | ScopeError::UndecodableName
                | ScopeError::Undecodable(_)
                | ScopeError::Disguised(_)
                | ScopeError::Address(_)
                | ScopeError::FieldSelector
                | ScopeError::InvalidTarget
                | ScopeError::InvalidGroup
                | ScopeError::InvalidVersion
                | ScopeError::Kind
                | ScopeError::Subresource
                | ScopeError::InvalidResource
                | ScopeError::InvalidNamespace
                | ScopeError::InvalidName
                | ScopeError::LabelSelector(_)
                | ScopeError::InvalidProjection
                | ScopeError::ClusterScoped,
            ) => BlockReason::WatchError,
        }
    }
}
