//! What the changelog has to know of an object's identity: its uid.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The identity of an object, as a `deleted` frame tells it. Cheap to clone, since tombstones and streams keep it.
pub trait Identified {
    /// The object's uid, which is all that two states of one object must have in common.
    fn uid(&self) -> &str;
}

impl<T: Identified + ?Sized> Identified for Arc<T> {
    fn uid(&self) -> &str {
        T::uid(self)
    }
}

/// An identity as a map's key: equal and hashed as its uid alone, so that no uid is stored twice.
#[derive(Debug)]
pub(super) struct ByUid<I>(pub(super) I);

impl<I: Identified> PartialEq for ByUid<I> {
    fn eq(&self, other: &Self) -> bool {
        self.0.uid() == other.0.uid()
    }
}

impl<I: Identified> Eq for ByUid<I> {}

impl<I: Identified> Hash for ByUid<I> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.uid().hash(state);
    }
}

impl<I: Identified> Borrow<str> for ByUid<I> {
    fn borrow(&self) -> &str {
        self.0.uid()
    }
}
