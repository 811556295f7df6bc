//! A cluster that refuses streaming lists, as aggregated API servers do.

use krm_stream_protocol::Scope;

use crate::api_server::ApiServer;
use crate::expectation::Versions;
use crate::gateway::Gateway;
use crate::objects::{built, limit_range, pod_template};
use crate::wait::until;

/// The first streaming list of a group-version is refused; after that nobody asks for one again.
pub(crate) async fn refusals_are_remembered(api: &ApiServer) {
    let namespace = api.create_namespace().await;
    let of = |resource: &str| Scope::builder("v1", resource).namespace(&*namespace);
    let allowed = ["podtemplates", "limitranges", "apps/deployments"].map(|resource| ["--allow", resource]);
    let gateway = Gateway::start(api, allowed.as_flattened()).await;
    // Another group-version may be served by somebody else, and is asked.
    for (scope, object, refusals) in [
        (built(of("podtemplates")), Some(pod_template("one")), 1),
        (built(of("limitranges")), Some(limit_range("one")), 0),
        (built(of("deployments").group("apps")), None, 1),
    ] {
        if let Some(object) = object {
            api.create(&scope.api_path(), &object).await;
        }
        let (refused, listed) = refused_and_listed(api, scope.resource()).await;
        let mut viewer = gateway.open(&scope).await;
        viewer.until_synced().await;
        // It counts a request when it is over, which may be after the answer has come.
        let counted = until("the API server has counted", async || {
            let counted = refused_and_listed(api, scope.resource()).await;
            (counted.0 >= refused + refusals && counted.1 > listed).then_some(counted)
        })
        .await;
        assert_eq!(counted, (refused + refusals, listed + 1));
        viewer.agrees_with_kubectl(api, Versions::Equal).await;
        assert_eq!(viewer.object("one").is_some(), scope.group().is_none());
    }
}

/// How often a watch of the resource in one namespace was answered 422, and how often it was listed, by whomever.
async fn refused_and_listed(api: &ApiServer, resource: &str) -> (u64, u64) {
    let requests = async |verb, code| {
        let labels = [
            ("resource", resource),
            ("scope", "namespace"),
            ("verb", verb),
            ("code", code),
        ];
        api.metric("apiserver_request_total", &labels).await
    };
    (requests("WATCH", "422").await, requests("LIST", "200").await)
}
