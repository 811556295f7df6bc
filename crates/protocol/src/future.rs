//! The boxed future that keeps the asynchronous seams usable as trait objects.

use std::future::Future;
use std::pin::Pin;

/// A future that a seam returns: boxed, so that the trait stays usable as `dyn`, and `Send`, so that any runtime can
/// run it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
