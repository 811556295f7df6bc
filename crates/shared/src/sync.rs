//! The locks of what is shared between a feed's task and its streams, in one place: the model check of the hand-over compiles
//! the same files with locks of its own.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
