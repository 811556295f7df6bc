//! What a feed holds of an object's state.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use krm_stream_projection::{Projected, StateDigest};

/// The projected state of one object, as long as a stream may need it.
#[derive(Debug)]
pub(crate) enum Held {
    /// For any number of streams, as often as they need it.
    Kept(Arc<Projected>),
    /// For one stream, once: a thousand isolated callers are not a thousand copies of a namespace. The digest stays, so
    /// that a state that makes no difference is still known as such.
    UntilTaken {
        digest: StateDigest,
        bytes: u64,
        projected: Mutex<Option<Projected>>,
    },
}

impl Held {
    pub(crate) fn kept(projected: Projected) -> Self {
        Self::Kept(Arc::new(projected))
    }

    pub(crate) fn until_taken(projected: Projected) -> Self {
        Self::UntilTaken {
            digest: projected.state(),
            bytes: projected.tail().len() as u64,
            projected: Mutex::new(Some(projected)),
        }
    }

    /// How many bytes of a frame the state is, whether they are still here or were taken.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Kept(projected) => projected.tail().len() as u64,
            Self::UntilTaken { bytes, .. } => *bytes,
        }
    }

    /// Whether a browser would see no difference, resourceVersion aside.
    pub(crate) fn is_same_state(&self, other: &Self) -> bool {
        self.digest() == other.digest()
    }

    /// The state, as one of many owners; `None` where there is to be one only.
    pub(crate) fn shared(&self) -> Option<Arc<Projected>> {
        match self {
            Self::Kept(projected) => Some(Arc::clone(projected)),
            Self::UntilTaken { .. } => None,
        }
    }

    /// Gives the state to `send`. `None` if it was taken before.
    pub(crate) fn send<R>(&self, send: impl FnOnce(&Projected) -> R) -> Option<R> {
        match self {
            Self::Kept(projected) => Some(send(projected)),
            Self::UntilTaken { projected, .. } => lock(projected).take().as_ref().map(send),
        }
    }

    /// This state in place of `previous`, from which it does not differ: what was taken of that needs not be kept of this.
    pub(super) fn replacing_unsent(self, previous: Option<&Self>) -> Self {
        match (&self, previous) {
            (
                Self::UntilTaken { projected, .. },
                Some(Self::UntilTaken {
                    projected: before, ..
                }),
            ) => {
                if lock(before).is_none() {
                    *lock(projected) = None;
                }
                self
            }
            (Self::Kept(_) | Self::UntilTaken { .. }, _) => self,
        }
    }

    fn digest(&self) -> StateDigest {
        match self {
            Self::Kept(projected) => projected.state(),
            Self::UntilTaken { digest, .. } => *digest,
        }
    }
}

fn lock(projected: &Mutex<Option<Projected>>) -> MutexGuard<'_, Option<Projected>> {
    projected.lock().unwrap_or_else(PoisonError::into_inner)
}
