//! From a request to a caller and what for.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use krm_stream_protocol::{ScopeRequest, StreamError};

use crate::gateway::{Host, Request};
use crate::resolver;

/// Finds out who is calling and what for. The caller first: a scope's refusal is told to nobody unknown.
pub(super) async fn resolve(host: Arc<Host>, request: Parts) -> Result<Request, StreamError> {
    let answer = tokio::time::timeout(host.settings.check_timeout, host.resolver.resolve(&request)).await;
    let principal = match answer {
        Ok(Ok(principal)) => principal,
        Ok(Err(error)) => {
            host.diagnosing.report("resolving the caller", None, &*error);
            return Err(resolver::refusal(&error));
        }
        Err(elapsed) => {
            host.diagnosing.report("resolving the caller", None, &elapsed);
            return Err(StreamError::unavailable(
                "who you are could not be found out in time",
                Some(Duration::from_secs(5)),
            ));
        }
    };
    let wanted = ScopeRequest::parse(request.uri.query().unwrap_or_default()).map_err(StreamError::from)?;
    host.scope_policy
        .check(wanted.scope())
        .map_err(StreamError::from)?;
    Ok(Request {
        principal,
        scope: wanted.scope().clone(),
        projection: wanted.projection().cloned(),
    })
}
