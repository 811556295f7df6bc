//! The gateway's own credential: rotated while streams are open, and revoked.

use krm_stream_protocol::ErrorCode;
use serde_json::json;

use crate::access::group;
use crate::api_server::ApiServer;
use crate::expectation::Versions;
use crate::gateway::Gateway;
use crate::identity::{Kubeconfig, ServiceAccount};
use crate::objects::{config_map, config_maps, has_value, path, set_value};
use crate::reach::let_read;
use crate::wait::until;

/// Watches that were opened with the new token, before that is believed.
const REOPENED: u64 = 3;

pub(crate) async fn a_rotated_token_is_unseen_and_a_revoked_one_is_told(api: &ApiServer) {
    let namespace = api.create_namespace().await;
    let scope = config_maps(&namespace);
    api.create(&scope.api_path(), &config_map("settings", "old"))
        .await;
    let accounts = group(&format!("system:serviceaccounts:{namespace}"));
    let_read(api, &namespace, "configmaps", &accounts).await;
    let old = ServiceAccount::create(api, &namespace, "old").await;
    let new = ServiceAccount::create(api, &namespace, "new").await;
    let (old_token, new_token) = (old.token(api).await, new.token(api).await);
    let kubeconfig = Kubeconfig::with_token(api, &old_token).await;
    let flags = ["--allow", "configmaps", "--watch-timeout", "2"];
    let gateway = Gateway::start_with(&kubeconfig.path(), &flags).await;
    let mut viewers = [
        gateway.open_admitted(&scope, &[]).await,
        gateway.open_admitted(&scope, &[]).await,
    ];
    for viewer in &mut viewers {
        viewer.until_synced().await;
    }

    // The next token is there before the one before is refused, as a kubelet sees to.
    kubeconfig.set_token(&new_token);
    old.revoke(api).await;
    until_refused(api, &old_token).await;
    let before = ended(&gateway).await;
    until("watches are opened with the new token", async || {
        (ended(&gateway).await >= before + REOPENED).then_some(())
    })
    .await;
    api.merge_patch(&path(&scope, "settings"), &set_value("new"))
        .await;
    for viewer in &mut viewers {
        viewer.until_shows("settings", has_value("new")).await;
        viewer.agrees_with_kubectl(api, Versions::Equal).await;
    }

    new.revoke(api).await;
    let mut refusals = Vec::new();
    for viewer in &mut viewers {
        refusals.push(viewer.until_ended().await);
    }
    let mut late = gateway.open(&scope).await;
    refusals.push(late.until_ended().await);
    assert_eq!(late.types(), ["error"], "a refusal at open");
    for refusal in &refusals {
        assert_eq!(refusal.code(), Some(ErrorCode::Unauthenticated), "{refusal:?}");
    }
    eprintln!("the browser is told: {}", refusals[0].message());
    for token in [old_token, new_token] {
        // The signature is what must not be known; the rest could be guessed.
        let signature = token.rsplit('.').next().unwrap_or(&token);
        assert!(!gateway.output().contains(signature), "a token was printed");
        for viewer in viewers.iter().chain([&late]) {
            let raw = String::from_utf8_lossy(viewer.raw());
            assert!(!raw.contains(signature), "a token is on the wire");
        }
    }
}

/// The API server caches that a token was good, for some 10 s.
async fn until_refused(api: &ApiServer, token: &str) {
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token},
    });
    until("the API server refuses the token", async || {
        let answer = api
            .create("/apis/authentication.k8s.io/v1/tokenreviews", &review)
            .await;
        (answer["status"]["authenticated"] != true).then_some(())
    })
    .await;
}

/// How many watches of the gateway have ended as watches do.
async fn ended(gateway: &Gateway) -> u64 {
    let labels = [("reason", "closed")];
    gateway.metric("watch_sessions_ended_total", &labels).await
}
