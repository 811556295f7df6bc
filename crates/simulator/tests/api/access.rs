//! Tokens, rules, impersonation, reviews.

use krm_stream_simulator::{Rule, Simulator, User};
use serde_json::{Value, json};

use crate::client::Client;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

async fn with_viewer() -> Simulator {
    let simulator = Simulator::start().await.unwrap();
    let access = simulator.access();
    access.add_token("viewer", User::new("viewer").group("readers"));
    access.add_token("gateway", User::new("gateway"));
    let rules = [
        Rule::allow()
            .group("readers")
            .verbs(["list", "watch"])
            .resource("", "configmaps")
            .namespace("shop"),
        Rule::allow()
            .user("viewer")
            .verbs(["get"])
            .resource("apps", "deployments")
            .name("web"),
        Rule::allow()
            .user("gateway")
            .verbs(["create"])
            .resource("authorization.k8s.io", "*"),
        Rule::allow()
            .user("gateway")
            .verbs(["impersonate"])
            .resource("", "users")
            .resource("", "groups"),
    ];
    access.set_rules(rules);
    simulator
}

#[tokio::test]
async fn without_tokens_and_rules_everybody_may_do_everything() {
    let simulator = Simulator::start().await.unwrap();
    assert_eq!(Client::new(&simulator).get("/api/v1/secrets").await.status, 200);
    assert_eq!(
        Client::new(&simulator)
            .with_token("any")
            .get("/api/v1/secrets")
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn with_tokens_a_known_one_is_needed() {
    let simulator = with_viewer().await;
    let path = "/api/v1/namespaces/shop/configmaps";
    assert_eq!(Client::new(&simulator).get(path).await.status, 401);
    assert_eq!(
        Client::new(&simulator)
            .with_token("unknown")
            .get(path)
            .await
            .status,
        401
    );
    assert_eq!(
        Client::new(&simulator)
            .with_token("viewer")
            .get(path)
            .await
            .status,
        200
    );
    assert!(simulator.access().remove_token("viewer"));
    assert_eq!(
        Client::new(&simulator)
            .with_token("viewer")
            .get(path)
            .await
            .status,
        401
    );
    simulator.access().allow_anonymous(true);
    let anonymous = Client::new(&simulator).get(path).await;
    assert_eq!(
        anonymous.json()["message"],
        "configmaps is forbidden: User \"system:anonymous\" cannot list resource \"configmaps\" in API group \"\" in \
         the namespace \"shop\""
    );
}

#[tokio::test]
async fn rules_hold_for_verb_resource_namespace_and_name() {
    let simulator = with_viewer().await;
    simulator
        .create(
            "configmaps",
            json!({"metadata": {"name": "a", "namespace": "shop"}}),
        )
        .unwrap();
    let client = Client::new(&simulator).with_token("viewer");
    for (path, message) in [
        ("/api/v1/namespaces/shop/configmaps?watch=1&timeoutSeconds=1", ""),
        (
            "/api/v1/configmaps",
            "configmaps is forbidden: User \"viewer\" cannot list resource \"configmaps\" in API group \"\" at the \
             cluster scope",
        ),
        (
            "/api/v1/namespaces/shop/configmaps/a",
            "configmaps \"a\" is forbidden: User \"viewer\" cannot get resource \"configmaps\" in API group \"\" in \
             the namespace \"shop\"",
        ),
        (
            "/apis/apps/v1/namespaces/shop/deployments?fieldSelector=metadata.name%3Dweb&watch=1",
            "deployments.apps \"web\" is forbidden: User \"viewer\" cannot watch resource \"deployments\" in API group \
             \"apps\" in the namespace \"shop\"",
        ),
        (
            "/apis/nosuch.example.com/v1/namespaces/shop/things",
            "things.nosuch.example.com is forbidden: User \"viewer\" cannot list resource \"things\" in API group \
             \"nosuch.example.com\" in the namespace \"shop\"",
        ),
    ] {
        let reply = client.get(path).await;
        if message.is_empty() {
            assert_eq!(reply.status, 200, "{path}");
        } else {
            assert_eq!(reply.status, 403, "{path}");
            assert_eq!(reply.json()["message"], message);
        }
    }
    assert_eq!(
        client
            .get("/apis/apps/v1/namespaces/shop/deployments/web")
            .await
            .status,
        404,
        "allowed, but absent"
    );
}

#[tokio::test]
async fn impersonation_takes_a_right_and_gives_the_rights_of_the_other() {
    let simulator = with_viewer().await;
    let path = "/api/v1/namespaces/shop/configmaps";
    let as_reader = Client::new(&simulator)
        .with_token("gateway")
        .with_header("impersonate-user", "jane")
        .with_header("impersonate-group", "others")
        .with_header("impersonate-group", "readers");
    assert_eq!(as_reader.get(path).await.status, 200);
    let without_group = Client::new(&simulator)
        .with_token("gateway")
        .with_header("impersonate-user", "jane")
        .get(path)
        .await;
    assert!(
        without_group.json()["message"]
            .as_str()
            .unwrap()
            .contains("User \"jane\" cannot list")
    );
    let not_allowed = Client::new(&simulator)
        .with_token("viewer")
        .with_header("impersonate-user", "jane")
        .get(path)
        .await;
    assert_eq!(
        not_allowed.json()["message"],
        "users \"jane\" is forbidden: User \"viewer\" cannot impersonate resource \"users\" in API group \"\" at the \
         cluster scope"
    );
    let extra = Client::new(&simulator)
        .with_token("gateway")
        .with_header("impersonate-user", "jane")
        .with_header("impersonate-extra-example.com%2fscope", "all")
        .get(path)
        .await;
    assert_eq!(extra.status, 403);
    assert!(
        extra.json()["message"]
            .as_str()
            .unwrap()
            .contains("userextras/example.com/scope")
    );
    let nobody = Client::new(&simulator)
        .with_token("gateway")
        .with_header("impersonate-group", "readers");
    assert_eq!(nobody.get(path).await.status, 500);
}

#[tokio::test]
async fn reviews_are_answered_from_the_same_rules() {
    let simulator = with_viewer().await;
    simulator.access().add_rule(Rule::deny().user("mallory"));
    let client = Client::new(&simulator).with_token("gateway");
    let review = |spec: Value| json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec});
    let attributes =
        json!({"verb": "list", "group": "", "version": "v1", "resource": "configmaps", "namespace": "shop"});
    let spec = json!({"user": "jane", "groups": ["readers"], "uid": "1", "extra": {"a": ["b"]}, "resourceAttributes": attributes});
    let allowed = client.post(REVIEWS, &review(spec.clone())).await;
    assert_eq!(allowed.status, 201);
    assert_eq!(allowed.json()["status"]["allowed"], true);
    assert_eq!(allowed.json()["spec"], spec);
    let unknown = client
        .post(
            REVIEWS,
            &review(json!({"user": "jane", "resourceAttributes": attributes})),
        )
        .await;
    assert_eq!(unknown.json()["status"], json!({"allowed": false}));
    let denied = json!({"user": "mallory", "groups": ["readers"], "resourceAttributes": attributes});
    let denied = client.post(REVIEWS, &review(denied)).await.json();
    assert_eq!(denied["status"]["denied"], true);
    assert_eq!(denied["status"]["allowed"], false);
    for bad in [json!({"resourceAttributes": attributes}), json!({"user": "jane"})] {
        assert_eq!(client.post(REVIEWS, &review(bad)).await.status, 422);
    }
    let viewer = Client::new(&simulator).with_token("viewer");
    assert_eq!(viewer.post(REVIEWS, &review(spec)).await.status, 403);
    let own = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    simulator.access().set_rules([]);
    let own = viewer
        .post(own, &review(json!({"resourceAttributes": attributes})))
        .await
        .json();
    assert_eq!(own["status"]["allowed"], true);
    assert_eq!(simulator.counts().create, 7);
}
