//! Identities of the gateway itself: service accounts, whose tokens can be made and revoked while all runs.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api_server::{ApiServer, text};

/// A service account of a test.
pub(crate) struct ServiceAccount {
    namespace: String,
    name: String,
}

/// A kubeconfig whose user is known by a token in a file.
pub(crate) struct Kubeconfig {
    folder: TempDir,
}

impl ServiceAccount {
    pub(crate) async fn create(api: &ApiServer, namespace: &str, name: &str) -> Self {
        let account = Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
        api.create(&account.collection(), &object).await;
        account
    }

    /// As a role binding names it.
    pub(crate) fn subject(&self) -> Value {
        json!({"kind": "ServiceAccount", "namespace": self.namespace, "name": self.name})
    }

    /// A new token, good for as long as the account is there.
    pub(crate) async fn token(&self, api: &ApiServer) -> String {
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let path = format!("{}/{}/token", self.collection(), self.name);
        text(&api.create(&path, &request).await["status"]["token"])
    }

    /// Deletes the account; the API server may honour its tokens for some 10 s more, from a cache.
    pub(crate) async fn revoke(self, api: &ApiServer) {
        api.delete(&format!("{}/{}", self.collection(), self.name)).await;
    }

    fn collection(&self) -> String {
        format!("/api/v1/namespaces/{}/serviceaccounts", self.namespace)
    }
}

impl Kubeconfig {
    /// A kubeconfig that has this token in a file.
    pub(crate) async fn with_token(api: &ApiServer, token: &str) -> Self {
        let kubeconfig = Self {
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
        };
        kubeconfig.set_token(token);
        let arguments = [
            "config",
            "view",
            "--raw",
            "--minify",
            "--flatten",
            "--output=json",
        ];
        let mut config: Value =
            serde_json::from_str(&api.kubectl(&arguments, "").await).expect("kubectl prints JSON");
        config["users"][0]["user"] = json!({"tokenFile": kubeconfig.token_file()});
        std::fs::write(kubeconfig.path(), config.to_string()).expect("the temporary folder can be written");
        kubeconfig
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Replaces the token, as a whole or not at all, as a kubelet does.
    pub(crate) fn set_token(&self, token: &str) {
        let new = self.folder.path().join("token.new");
        std::fs::write(&new, token).expect("the temporary folder can be written");
        std::fs::rename(&new, self.token_file()).expect("a file can be replaced");
    }

    fn token_file(&self) -> PathBuf {
        self.folder.path().join("token")
    }
}
