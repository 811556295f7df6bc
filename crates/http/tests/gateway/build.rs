//! What a builder refuses to build.

use std::time::Duration;

use krm_stream_http::{BuildError, Gateway, GatewayBuilder};
use krm_stream_protocol::{AllowAll, GrantNamed, Principal, Subject};

use super::support::{AsCaller, ScriptedUpstream, builder, scope_policy};

/// A builder without the seam at this place.
fn without(missing: usize) -> GatewayBuilder {
    let (upstream, _) = ScriptedUpstream::new();
    let mut builder = Gateway::builder();
    if missing != 0 {
        builder = builder.resolver(|_: &http::request::Parts| Ok(Principal::new(Subject::new("ada")?)));
    }
    if missing != 1 {
        builder = builder.scope_policy(scope_policy());
    }
    if missing != 2 {
        builder = builder.authorizer(AllowAll::where_upstream_acts_as_caller());
    }
    if missing != 3 {
        builder = builder.client_for(AsCaller::new(&upstream));
    }
    if missing != 4 {
        builder = builder.projection_policy(GrantNamed::default());
    }
    builder
}

#[tokio::test]
async fn each_missing_seam_is_named_by_the_method_that_sets_it() {
    let methods = [
        "resolver",
        "scope_policy",
        "authorizer",
        "client_for",
        "projection_policy",
    ];
    for (at, method) in methods.into_iter().enumerate() {
        let error = without(at).build().unwrap_err();
        assert!(matches!(error, BuildError::Missing { seam, .. } if seam == method));
        assert!(
            error.to_string().contains(&format!("call .{method}(…)")),
            "{error}"
        );
    }
    assert!(without(methods.len()).build().is_ok());
}

#[tokio::test]
async fn settings_without_a_meaning_are_named() {
    let (upstream, _) = ScriptedUpstream::new();
    let complete = || builder(&upstream);
    for (builder, name) in [
        (
            complete().heartbeat_interval(Duration::ZERO),
            "heartbeat_interval",
        ),
        (complete().heartbeat_interval(Duration::MAX), "heartbeat_interval"),
        (
            complete().reauthorization_timeout(Duration::ZERO),
            "reauthorization_timeout",
        ),
        (complete().queue_depth(0), "queue_depth"),
    ] {
        let error = builder.build().unwrap_err();
        assert!(matches!(error, BuildError::Setting { setting, .. } if setting == name));
        assert!(error.to_string().starts_with(name), "{error}");
    }
}
