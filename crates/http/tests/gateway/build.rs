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
        (
            complete()
                .write_timeout(Duration::from_secs(30))
                .reauthorization_interval(Duration::ZERO),
            "reauthorization_interval",
        ),
        (
            complete().delivery_interval(Duration::from_secs(61)),
            "delivery_interval",
        ),
        (complete().max_streams(0), "max_streams"),
        (complete().max_streams_per_caller(0), "max_streams_per_caller"),
        (complete().max_snapshot_objects(0), "max_snapshot_objects"),
        (complete().max_snapshot_bytes(0), "max_snapshot_bytes"),
    ] {
        let error = builder.build().unwrap_err();
        assert!(matches!(error, BuildError::Setting { setting, .. } if setting == name));
        assert!(error.to_string().starts_with(name), "{error}");
    }
}

#[tokio::test]
async fn timed_checks_without_bounded_delivery_are_a_mistake_that_is_named() {
    let (upstream, _) = ScriptedUpstream::new();
    let checked = || builder(&upstream).reauthorization_interval(Duration::from_secs(5));
    let error = checked().build().unwrap_err();
    assert!(matches!(error, BuildError::UnboundedDelivery));
    assert!(error.to_string().contains("call .write_timeout(…)"), "{error}");
    assert!(checked().write_timeout(Duration::from_secs(30)).build().is_ok());
}
