//! A cluster that refuses streaming lists, as aggregated API servers do.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use krm_stream_protocol::Scope;
use tempfile::TempDir;

use crate::api_server::ApiServer;
use crate::expectation::Versions;
use crate::gateway::Gateway;
use crate::objects::{built, limit_range, pod_template};
use crate::{lifecycle, secrets, selectors};

/// A control plane of this test's own; it ends with this value.
struct ControlPlane {
    xtask: PathBuf,
    state: TempDir,
}

impl ControlPlane {
    /// Starts one. Blocks for the seconds that it takes.
    fn without_streaming_lists() -> (Self, PathBuf) {
        let xtask = std::env::var_os("KRM_XTASK_BIN")
            .expect("KRM_XTASK_BIN names xtask's binary; `cargo xtask e2e` sets it");
        let control_plane = Self {
            xtask: xtask.into(),
            state: tempfile::tempdir().expect("a temporary folder can be made"),
        };
        let output = control_plane
            .command("up")
            .arg("--watch-list=false")
            .stderr(Stdio::inherit())
            .output()
            .expect("xtask starts");
        assert!(output.status.success(), "the second control plane does not start");
        let printed = String::from_utf8(output.stdout).expect("xtask prints text");
        let kubeconfig = printed.lines().last().expect("xtask prints a path");
        (control_plane, PathBuf::from(kubeconfig))
    }

    fn command(&self, action: &str) -> Command {
        let mut command = Command::new(&self.xtask);
        command
            .args(["control-plane", action, "--state"])
            .arg(self.state_folder());
        command
    }

    fn state_folder(&self) -> &Path {
        self.state.path()
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // Nothing can be done about a failure here; it has said why.
        let _ = self.command("down").status();
    }
}

pub(crate) async fn everything_is_the_same_by_list_and_watch() {
    let provider = std::env::var("KRM_E2E_PROVIDER").unwrap_or_default();
    if provider != "control-plane" {
        eprintln!(
            "not run: provider {provider} has no cluster that refuses streaming lists; run with --provider control-plane"
        );
        return;
    }
    let (_control_plane, kubeconfig) = ControlPlane::without_streaming_lists();
    let api = ApiServer::reached_with(&kubeconfig).await;

    refusals_are_remembered(&api).await;
    lifecycle::a_snapshot_holds_what_is_there(&api).await;
    lifecycle::what_is_added_modified_and_deleted_is_told_as_such(&api).await;
    lifecycle::a_recreated_name_is_another_object(&api).await;
    lifecycle::one_named_object_is_a_scope_present_or_absent(&api).await;
    lifecycle::an_emptied_namespace_is_told_object_by_object(&api).await;
    selectors::an_object_leaves_and_enters_a_selector(&api).await;
    secrets::a_secret_is_withheld_and_its_rotation_is_seen(&api).await;
}

/// The first streaming list of a group-version is refused; after that nobody asks for one again.
async fn refusals_are_remembered(api: &ApiServer) {
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
        let mut viewer = gateway.open(&scope).await;
        viewer.until_synced().await;
        assert_eq!(refused_and_listed(api, scope.resource()).await, (refusals, 1));
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
