//! The manifests under `deploy/`, put to the API server, and the rights that they grant, put to use.

use std::path::{Component, Path, PathBuf};

use krm_stream_protocol::ErrorCode;
use tempfile::TempDir;

use crate::access::{until_reviewed, user};
use crate::api_server::ApiServer;
use crate::expectation::Versions;
use crate::gateway::{Gateway, USER};
use crate::identity::Kubeconfig;
use crate::objects::{built, config_map, config_maps, has_value};
use crate::reach::let_read;

/// An overlay of `deploy/kustomize`, as a site makes it its own: with names that nobody else has.
pub(crate) struct Site {
    folder: TempDir,
    namespace: String,
    suffix: String,
}

impl Site {
    /// The overlay and these components, in a namespace that is there.
    pub(crate) fn new(namespace: &str, overlay: &str, components: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let kit = relative(
            &folder.path().canonicalize().expect("the folder is there"),
            &Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/kustomize"))
                .canonicalize()
                .expect("the kit is there"),
        );
        let suffix = format!("-{overlay}-{namespace}");
        let components: Vec<String> = components
            .iter()
            .map(|component| format!("  - {kit}/components/{component}", kit = kit.display()))
            .collect();
        let kustomization = format!(
            "namespace: {namespace}\nnameSuffix: {suffix}\n\
             labels:\n  - pairs: {{app.kubernetes.io/part-of: krm-stream-e2e}}\n\
             resources:\n  - {kit}/overlays/{overlay}\ncomponents:\n{components}\n",
            kit = kit.display(),
            components = components.join("\n")
        );
        std::fs::write(folder.path().join("kustomization.yaml"), kustomization)
            .expect("the temporary folder can be written");
        Self {
            folder,
            namespace: namespace.to_owned(),
            suffix,
        }
    }

    /// The manifests that are not of one of these kinds. The namespace itself is there already.
    async fn manifests_without(&self, api: &ApiServer, kinds: &[&str]) -> String {
        let folder = self.folder.path().to_str().expect("the path is text");
        let all = api.kubectl(&["kustomize", folder], "").await;
        let documents = all.split("\n---\n");
        let wanted = documents.filter(|document| {
            kinds
                .iter()
                .all(|kind| !document.lines().any(|line| line == format!("kind: {kind}")))
        });
        wanted.collect::<Vec<_>>().join("\n---\n")
    }

    fn account(&self) -> String {
        format!("krm-stream{}", self.suffix)
    }

    /// Applies the manifests, but for the Deployment and for documents that have one of these lines. The namespace of a site
    /// is that of all it has, so what belongs into `default` is put back there.
    pub(crate) async fn apply_without(&self, api: &ApiServer, lines: &[&str]) {
        let manifests = self.manifests_without(api, &["Namespace", "Deployment"]).await;
        let moved = format!("  namespace: {}", self.namespace);
        let documents = manifests
            .split("\n---\n")
            .filter(|document| !lines.iter().any(|line| document.contains(line)))
            .map(|document| {
                if document.contains("  name: krm-stream-events") {
                    document.replacen(&moved, "  namespace: default", 1)
                } else {
                    document.to_owned()
                }
            });
        let manifests = documents.collect::<Vec<_>>().join("\n---\n");
        api.kubectl(&["apply", "--server-side", "--filename=-"], &manifests)
            .await;
    }

    /// A kubeconfig of the gateway's own account.
    pub(crate) async fn kubeconfig(&self, api: &ApiServer) -> Kubeconfig {
        let namespace = format!("--namespace={}", self.namespace);
        let token = api
            .kubectl(&["create", "token", &self.account(), &namespace], "")
            .await;
        Kubeconfig::with_token(api, token.trim()).await
    }

    /// The gateway's own account, as a role binding names it.
    pub(crate) fn subject(&self) -> serde_json::Value {
        serde_json::json!({"kind": "ServiceAccount", "namespace": self.namespace, "name": self.account()})
    }

    /// Waits until the authorizer knows what the gateway may do with this, in the namespace.
    pub(crate) async fn until_may(&self, api: &ApiServer, verb: &str, resource: &str) {
        may(api, self, verb, resource, true).await;
    }
}

/// The way from one folder to another: kustomize takes no absolute paths.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let up = from
        .components()
        .filter(|component| matches!(component, Component::Normal(_)));
    let mut way: PathBuf = up.map(|_| "..").collect();
    way.push(to.strip_prefix("/").expect("the path is absolute"));
    way
}

pub(crate) async fn the_manifests_are_accepted(api: &ApiServer) {
    let namespace = api.create_namespace().await;
    // What the manifests' own namespace asks for: the API server then warns of every pod that is not restricted.
    let restricted = ["enforce", "warn"].map(|mode| format!("pod-security.kubernetes.io/{mode}=restricted"));
    let label = [
        "label",
        "namespace",
        &namespace,
        restricted[0].as_str(),
        restricted[1].as_str(),
    ];
    api.kubectl(&label, "").await;
    let all = ["declared-streams", "tls", "network-policy"];
    for (overlay, components) in [
        ("shared", &all[..]),
        ("per-caller", &all[..]),
        ("shared", &[]),
        ("per-caller", &[]),
    ] {
        let site = Site::new(&namespace, overlay, components);
        // The namespace is there already: a dry run of a new one would leave nothing to put the rest into.
        let manifests = site.manifests_without(api, &[]).await;
        let apply = [
            "apply",
            "--server-side",
            "--dry-run=server",
            "--warnings-as-errors",
            "--filename=-",
        ];
        let said = api.kubectl(&apply, &manifests).await;
        for kind in [
            "deployment.apps",
            "poddisruptionbudget.policy",
            "serviceaccount",
            "service",
        ] {
            assert!(said.contains(&format!("{kind}/krm-stream")), "{overlay}: {said}");
        }
        assert!(
            said.contains(&format!("namespace/{namespace} serverside-applied")),
            "{overlay}: {said}"
        );
        let rolls = said.lines().filter(|line| line.contains("role")).count();
        assert_eq!(
            rolls,
            if components.is_empty() { 4 } else { 10 },
            "{overlay}: {said}"
        );
    }
}

pub(crate) async fn the_gateway_runs_with_the_rights_of_the_manifests(api: &ApiServer) {
    for overlay in ["shared", "per-caller"] {
        let namespace = api.create_namespace().await;
        let site = Site::new(&namespace, overlay, &[]);
        site.apply_without(api, &[]).await;
        // A gateway that may not ask yet refuses as one that may not ask at all.
        site.until_may(api, "create", "subjectaccessreviews.authorization.k8s.io")
            .await;
        if overlay == "shared" {
            for verb in ["list", "watch"] {
                site.until_may(api, verb, "configmaps").await;
            }
        } else {
            site.until_may(api, "impersonate", "users").await;
        }
        let kubeconfig = site.kubeconfig(api).await;
        let identity = format!("header:{USER}");
        let flags = [
            "--sharing",
            overlay,
            "--authorize",
            "subject-access-review",
            "--identity",
            &identity,
            "--allow",
            "configmaps,secrets",
        ];
        let gateway = Gateway::start_with(&kubeconfig.path(), &flags).await;

        let scope = config_maps(&namespace);
        api.create(&scope.api_path(), &config_map("settings", "1")).await;
        let_read(api, &namespace, "configmaps", &user("ada")).await;
        let_read(api, &namespace, "secrets", &user("ada")).await;
        let mut ada = gateway.open_admitted(&scope, &[(USER, "ada")]).await;
        ada.until_shows("settings", has_value("1")).await;
        ada.until_synced().await;
        ada.agrees_with_kubectl(api, Versions::Equal).await;
        let refusal = gateway.open_as(&scope, "bob").await.until_refused().await;
        assert_eq!(
            refusal.code(),
            Some(ErrorCode::Forbidden),
            "{overlay}: {refusal:?}"
        );

        let secrets = built(krm_stream_protocol::Scope::builder("v1", "secrets").namespace(&*namespace));
        if overlay == "shared" {
            // The caller may, and the gateway may not.
            let refusal = gateway.open_as(&secrets, "ada").await.until_refused().await;
            assert_eq!(refusal.code(), Some(ErrorCode::Forbidden), "{refusal:?}");
        } else {
            gateway
                .open_admitted(&secrets, &[(USER, "ada")])
                .await
                .until_synced()
                .await;
        }
        let may_read_by_itself = overlay == "shared";
        for (verb, resource, allowed) in [
            ("list", "configmaps", may_read_by_itself),
            ("watch", "configmaps", may_read_by_itself),
            ("get", "configmaps", false),
            ("list", "secrets", false),
            ("create", "subjectaccessreviews.authorization.k8s.io", true),
            ("create", "tokenreviews.authentication.k8s.io", false),
            ("impersonate", "users", !may_read_by_itself),
            ("delete", "configmaps", false),
            ("create", "events.events.k8s.io", false),
        ] {
            may(api, &site, verb, resource, allowed).await;
        }
    }
}

/// Whether the gateway's own account may do this, once the authorizer has learnt of all roles.
async fn may(api: &ApiServer, site: &Site, verb: &str, resource: &str, expected: bool) {
    let account = format!("system:serviceaccount:{}:{}", site.namespace, site.account());
    let attributes = attributes(verb, resource, &site.namespace);
    let asked = serde_json::json!({"user": account, "resourceAttributes": attributes});
    until_reviewed(api, &asked, expected).await;
}

fn attributes(verb: &str, resource: &str, namespace: &str) -> serde_json::Value {
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    serde_json::json!({"verb": verb, "group": group, "resource": resource, "namespace": namespace})
}
