//! What may share a service identity, and what may not.

use std::sync::Arc;

use krm_stream_http::GatewayBuilder;
use krm_stream_protocol::{AllowAll, Partition, ScopePolicy, StreamError, Target, UpstreamError};

use super::support::{
    AsCaller, QUERY, Reports, Script, ScriptedUpstream, Seam, builder, code_of, get, scope_policy, text_of,
};

fn shared() -> (GatewayBuilder, Arc<Reports>, Script) {
    let (upstream, script) = ScriptedUpstream::new();
    let reports = Arc::new(Reports::default());
    let builder = builder(&upstream)
        .client_for(AsCaller::partitioned(&upstream, Partition::shared("gateway")))
        .diagnostics(reports.clone());
    (builder, reports, script)
}

fn allows() -> Seam<Result<(), StreamError>> {
    Seam::new(|_| Some(Ok(())))
}

fn any_resource() -> ScopePolicy {
    scope_policy().any_resource().allow_target(Target::default())
}

async fn is_refused(builder: GatewayBuilder, reports: &Reports, script: &Script, way_out: &str) {
    let gateway = builder.build().unwrap();
    let event = get(&gateway, QUERY).only_event().await;
    assert_eq!(code_of(&event), "INTERNAL");
    assert!(event.contains("\"terminal\":true"));
    assert_eq!(
        text_of(&event, "message").unwrap(),
        "the gateway is not configured for this; ask its operator"
    );
    let reports = reports.all();
    assert!(reports.len() == 1 && reports[0].contains(way_out), "{reports:?}");
    assert_eq!(script.asked(), 0);
}

async fn is_served(builder: GatewayBuilder, script: &mut Script) {
    let gateway = builder.build().unwrap();
    let mut connection = get(&gateway, QUERY);
    let (types, _session) = tokio::join!(connection.types(2), async {
        script.next_open().await.accept_with([], "1")
    });
    assert_eq!(types, ["reset", "synced"]);
}

#[tokio::test(start_paused = true)]
async fn allowing_all_on_a_shared_identity_is_refused_and_the_operator_is_told_the_way_out() {
    let (builder, reports, script) = shared();
    is_refused(
        builder,
        &reports,
        &script,
        "AllowAll::dangerously_for_shared_feeds",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn allowing_all_on_a_shared_identity_is_served_where_it_is_named_dangerous() {
    let (builder, _, mut script) = shared();
    is_served(
        builder.authorizer(AllowAll::dangerously_for_shared_feeds()),
        &mut script,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_authorizer_that_decides_is_served_on_a_shared_identity() {
    let (builder, _, mut script) = shared();
    is_served(builder.authorizer(allows()), &mut script).await;
}

#[tokio::test(start_paused = true)]
async fn any_resource_on_a_shared_identity_is_refused_whatever_the_authorizer() {
    let (builder, reports, script) = shared();
    let builder = builder.authorizer(allows()).scope_policy(any_resource());
    is_refused(builder, &reports, &script, "named resources").await;
    let (builder, reports, script) = shared();
    let builder = builder
        .authorizer(AllowAll::dangerously_for_shared_feeds())
        .scope_policy(any_resource());
    is_refused(builder, &reports, &script, "named resources").await;
}

#[tokio::test(start_paused = true)]
async fn any_resource_is_served_where_the_upstream_acts_as_the_caller() {
    for partition in [Partition::per_caller(), Partition::Isolated] {
        let (upstream, mut script) = ScriptedUpstream::new();
        let builder = builder(&upstream)
            .scope_policy(any_resource())
            .client_for(AsCaller::partitioned(&upstream, partition));
        is_served(builder, &mut script).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_service_identity_is_not_blamed_on_the_caller() {
    let (builder, _, mut script) = shared();
    let gateway = builder.authorizer(allows()).build().unwrap();
    let connection = get(&gateway, QUERY);
    let (event, ()) = tokio::join!(connection.only_event(), async {
        let text = "configmaps is forbidden: User \"system:serviceaccount:canary:gateway\" cannot list";
        script
            .next_open()
            .await
            .refuse(UpstreamError::forbidden(Some(text)));
    });
    assert_eq!(code_of(&event), "FORBIDDEN");
    assert!(!event.contains("canary"), "{event}");
}
