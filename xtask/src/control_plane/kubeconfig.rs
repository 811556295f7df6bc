//! Who may do what at the started API server: its tokens, and the kubeconfig with a context for each.

use std::fmt::Write as _;
use std::path::Path;

use super::certificates::Certificates;

/// A user known by a token. The tokens are no secrets: the server listens on the loopback interface only
/// and lives as long as a test run.
struct User {
    name: &'static str,
    token: &'static str,
    group: &'static str,
}

const USERS: [User; 3] = [
    // May do everything.
    User {
        name: "admin",
        token: "krm-admin-token",
        group: "system:masters",
    },
    // Is known and has no role: what it asks for is answered 403 until a test binds one.
    User {
        name: "viewer",
        token: "krm-viewer-token",
        group: "krm:viewers",
    },
    // The service identity of a gateway, with the role below.
    User {
        name: "gateway",
        token: "krm-gateway-token",
        group: "krm:gateways",
    },
];

/// The context that is current: the administrator by token.
pub(crate) const ADMIN: &str = "admin";
/// The context of the administrator by client certificate.
const ADMIN_CERTIFICATE: &str = "admin-certificate";

/// The `--token-auth-file`: token, user, uid, groups.
pub(crate) fn token_file() -> String {
    USERS
        .iter()
        .fold(String::new(), |mut text, User { name, token, group }| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{token},{name},{name},\"{group}\"");
            text
        })
}

/// What the gateway's service identity may do, as API path and object to create there: read every kind, ask
/// for access reviews, and act as somebody else.
pub(crate) const GATEWAY_ROLE: [(&str, &str); 2] = [
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"krm-stream-gateway"},"rules":[
            {"apiGroups":["*"],"resources":["*"],"verbs":["get","list","watch"]},
            {"apiGroups":["authorization.k8s.io"],"resources":["subjectaccessreviews"],"verbs":["create"]},
            {"apiGroups":[""],"resources":["users","groups"],"verbs":["impersonate"]},
            {"apiGroups":["authentication.k8s.io"],"resources":["uids","userextras/*"],"verbs":["impersonate"]}]}"#,
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"krm-stream-gateway"},
            "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"krm-stream-gateway"},
            "subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"krm:gateways"}]}"#,
    ),
];

/// The kubeconfig: one cluster, and a context for each user, named as the user.
pub(crate) fn kubeconfig(port: u16, certificates: &Certificates) -> String {
    let mut contexts = String::new();
    let mut users = String::new();
    for User {
        name,
        token,
        group: _,
    } in USERS
    {
        contexts.push_str(&context(name));
        let _ = write!(users, "- name: {name}\n  user:\n    token: {token}\n");
    }
    contexts.push_str(&context(ADMIN_CERTIFICATE));
    let _ = write!(
        users,
        "- name: {ADMIN_CERTIFICATE}\n  user:\n    client-certificate: {}\n    client-key: {}\n",
        quoted(&certificates.client()),
        quoted(&certificates.client_key()),
    );
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: krm-stream\n  cluster:\n    server: https://127.0.0.1:{port}\n    \
         certificate-authority: {}\ncontexts:\n{contexts}current-context: {ADMIN}\nusers:\n{users}",
        quoted(&certificates.authority()),
    )
}

fn context(user: &str) -> String {
    format!("- name: {user}\n  context:\n    cluster: krm-stream\n    user: {user}\n")
}

/// A path as a YAML string; JSON's strings are YAML's.
fn quoted(path: &Path) -> String {
    serde_json::Value::from(path.to_string_lossy()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_user_has_a_token_and_a_context() {
        let file = kubeconfig(6443, &Certificates::at("/state/\"odd\"/keys".into()));
        for user in ["admin", "viewer", "gateway", "admin-certificate"] {
            assert!(file.contains(&format!("    user: {user}\n")), "{file}");
        }
        assert!(
            file.contains(r#"certificate-authority: "/state/\"odd\"/keys/authority.crt""#),
            "{file}"
        );
        assert_eq!(token_file().lines().count(), USERS.len());
        assert!(token_file().contains("krm-admin-token,admin,admin,\"system:masters\"\n"));
    }

    #[test]
    fn the_gateways_role_is_json_that_names_its_group() {
        for (path, object) in GATEWAY_ROLE {
            let object: serde_json::Value = serde_json::from_str(object).unwrap();
            let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
            assert!(path.ends_with(&plural), "{path} takes no {plural}");
        }
    }
}
