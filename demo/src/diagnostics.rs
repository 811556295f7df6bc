//! The log: to standard error, filtered by `KRM_LOG`.

use std::error::Error;

use krm_stream_protocol::{Diagnostic, Diagnostics, ErrorCode, StreamError};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

/// The environment variable with the log's filter, as `info` or `krm_stream_shared=debug`.
const FILTER: &str = "KRM_LOG";

/// kube logs each failed request as an error of its own; whoever sent it says what it was for, and what it means.
const SAID_TWICE: &str = "kube_client::client::builder=off";

/// Raw causes, which browsers never see: warnings of the log, but those that callers bring about as often as they like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log;

impl Diagnostics for Log {
    fn report(&self, diagnostic: &Diagnostic<'_>) {
        let scope = diagnostic.scope.map(krm_stream_protocol::Scope::canonical_query);
        let cause = with_causes(diagnostic.cause);
        match fault(diagnostic.cause) {
            Fault::OfCaller => tracing::debug!(scope, cause, "{}", diagnostic.operation),
            Fault::OfUpstreamOrHost => tracing::warn!(scope, cause, "{}", diagnostic.operation),
        }
    }
}

/// Whose fault a cause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    OfCaller,
    OfUpstreamOrHost,
}

fn fault(cause: &(dyn Error + 'static)) -> Fault {
    match cause.downcast_ref().map(StreamError::code) {
        Some(ErrorCode::Unauthenticated | ErrorCode::Forbidden | ErrorCode::ScopeInvalid) => Fault::OfCaller,
        Some(
            ErrorCode::UpstreamUnavailable
            | ErrorCode::ResyncRequired
            | ErrorCode::SlowConsumer
            | ErrorCode::Internal,
        )
        | None => Fault::OfUpstreamOrHost,
    }
}

/// Starts the log.
///
/// # Errors
/// If the filter cannot be read.
pub(crate) fn start_log() -> Result<(), Box<dyn Error>> {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .with_env_var(FILTER)
        .from_env()
        .map_err(|error| format!("{FILTER}: {error}; write a level, as info, or target=level"))?;
    let filter = filter.add_directive(SAID_TWICE.parse()?);
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    Ok(())
}

/// An error and each of its causes, in one line; a cause that its error repeats is said once.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.ends_with(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_caller_did_is_no_warning() {
        let unknown = StreamError::unauthenticated("sign in again");
        assert_eq!(fault(&unknown), Fault::OfCaller);
        assert_eq!(fault(&StreamError::scope_invalid("no")), Fault::OfCaller);
        for trouble in [
            StreamError::unavailable("later", None),
            StreamError::internal("broken"),
        ] {
            assert_eq!(fault(&trouble), Fault::OfUpstreamOrHost, "{trouble}");
        }
        assert_eq!(fault(&std::io::Error::other("reset")), Fault::OfUpstreamOrHost);
    }
}
