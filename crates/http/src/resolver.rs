//! The seam that says who is calling.

use std::error::Error;

use http::request::Parts;
use krm_stream_protocol::{BoxFuture, Principal, StreamError};

/// Why a caller could not be resolved. A `StreamError` chooses its own code and text; anything else is
/// `UNAUTHENTICATED` with a fixed text, and goes to diagnostics.
pub type ResolveError = Box<dyn Error + Send + Sync>;

/// Turns a request into a principal.
///
/// A function from the request's parts to a result is a resolver. One that has to wait, for a session store say,
/// implements the trait.
pub trait Resolver: Send + Sync {
    /// Resolves to who is calling.
    ///
    /// # Errors
    /// See [`ResolveError`].
    ///
    /// # Cancel safety
    /// The future may be dropped at any time.
    fn resolve<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, Result<Principal, ResolveError>>;
}

impl<F> Resolver for F
where
    F: Fn(&Parts) -> Result<Principal, ResolveError> + Send + Sync,
{
    fn resolve<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, Result<Principal, ResolveError>> {
        Box::pin(std::future::ready(self(request)))
    }
}

/// What the consumer is told.
pub(crate) fn refusal(error: &ResolveError) -> StreamError {
    error.downcast_ref::<StreamError>().cloned().unwrap_or_else(|| {
        StreamError::unauthenticated("the gateway does not know who you are; sign in again")
    })
}
