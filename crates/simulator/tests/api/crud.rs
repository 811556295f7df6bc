//! Create, read, update, patch, delete.

use http::StatusCode;
use krm_stream_simulator::{Resource, Simulator};
use serde_json::json;

use crate::client::Client;

const CONFIGMAPS: &str = "/api/v1/namespaces/shop/configmaps";

#[tokio::test]
async fn an_object_goes_through_its_life_over_both_versions_of_http() {
    let simulator = Simulator::start().await.unwrap();
    for client in [Client::new(&simulator), Client::http2(&simulator)] {
        let created = client
            .post(
                CONFIGMAPS,
                &json!({"metadata": {"name": "a"}, "data": {"k": "<v>"}}),
            )
            .await;
        assert_eq!(created.status, StatusCode::CREATED);
        let object = created.json();
        assert_eq!(object["kind"], "ConfigMap");
        assert_eq!(object["metadata"]["namespace"], "shop");
        assert_eq!(object["metadata"]["uid"].as_str().unwrap().len(), 36);
        assert!(
            object["metadata"]["creationTimestamp"]
                .as_str()
                .unwrap()
                .ends_with('Z')
        );
        assert!(created.text().contains(r#""k":"\u003cv\u003e""#));
        assert!(created.text().starts_with(
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"shop","uid":""#
        ));

        let again = client.post(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
        assert_eq!(again.status, StatusCode::CONFLICT);
        assert_eq!(again.json()["reason"], "AlreadyExists");
        assert_eq!(again.json()["message"], "configmaps \"a\" already exists");

        let one = format!("{CONFIGMAPS}/a");
        assert_eq!(client.get(&one).await.body, created.body);

        let patched = client
            .patch(
                &one,
                &json!({"data": {"k": null, "l": "w"}, "metadata": {"labels": {"x": "y"}}}),
            )
            .await;
        assert_eq!(patched.status, StatusCode::OK);
        assert_eq!(patched.json()["data"], json!({"l": "w"}));
        assert_eq!(patched.json()["metadata"]["uid"], object["metadata"]["uid"]);
        assert_ne!(
            patched.json()["metadata"]["resourceVersion"],
            object["metadata"]["resourceVersion"]
        );

        let mut stale = object.clone();
        stale["data"] = json!({"k": "stale"});
        let conflict = client.put(&one, &stale).await;
        assert_eq!(conflict.status, StatusCode::CONFLICT);
        assert_eq!(
            conflict.json()["message"],
            "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your \
             changes to the latest version and try again"
        );
        let mut fresh = patched.json();
        fresh["data"] = json!({"k": "fresh"});
        assert_eq!(
            client.put(&one, &fresh).await.json()["data"],
            json!({"k": "fresh"})
        );

        let wrong = client.delete(&one, r#"{"preconditions":{"uid":"other"}}"#).await;
        assert_eq!(wrong.status, StatusCode::CONFLICT);
        let deleted = client.delete(&one, "").await;
        assert_eq!(
            deleted.text().trim_end(),
            format!(
                r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Success","details":{{"name":"a","kind":"configmaps","uid":{}}}}}"#,
                object["metadata"]["uid"]
            )
        );
        let missing = client.get(&one).await;
        assert_eq!(missing.status, StatusCode::NOT_FOUND);
        assert_eq!(
            missing.text(),
            concat!(
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"configmaps \"a\" not found","#,
                r#""reason":"NotFound","details":{"name":"a","kind":"configmaps"},"code":404}"#,
                "\n"
            )
        );
    }
}

#[tokio::test]
async fn a_patch_that_changes_nothing_makes_no_version() {
    let simulator = Simulator::start().await.unwrap();
    let client = Client::new(&simulator);
    client
        .post(
            CONFIGMAPS,
            &json!({"metadata": {"name": "a"}, "data": {"k": "v"}}),
        )
        .await;
    let before = simulator.resource_version();
    let patched = client
        .patch(&format!("{CONFIGMAPS}/a"), &json!({"data": {"k": "v"}}))
        .await;
    assert_eq!(patched.status, StatusCode::OK);
    assert_eq!(simulator.resource_version(), before);
}

#[tokio::test]
async fn status_and_spec_are_written_through_their_own_paths() {
    let simulator = Simulator::builder()
        .resource(Resource::custom("example.com", "v1", "widgets", "Widget"))
        .resource(Resource::custom("example.com", "v1", "plain", "Plain").without_status())
        .start()
        .await
        .unwrap();
    let client = Client::new(&simulator);
    for (collection, kind) in [
        ("/apis/apps/v1/namespaces/shop/deployments", "Deployment"),
        ("/apis/example.com/v1/namespaces/shop/widgets", "Widget"),
    ] {
        let new = json!({"kind": kind, "metadata": {"name": "w"}, "spec": {"replicas": 1}, "status": {"replicas": 9}});
        let created = client.post(collection, &new).await.json();
        assert!(created["status"].get("replicas").is_none(), "{kind}");
        assert_eq!(created["metadata"]["generation"], 1);
        let one = format!("{collection}/w");
        let main = json!({"spec": {"replicas": 2}, "status": {"replicas": 9}});
        let patched = client.patch(&one, &main).await.json();
        assert_eq!(patched["metadata"]["generation"], 2);
        assert!(patched["status"].get("replicas").is_none());
        let sub = json!({"spec": {"replicas": 3}, "status": {"replicas": 2}});
        let patched = client.patch(&format!("{one}/status"), &sub).await.json();
        assert_eq!(patched["spec"]["replicas"], 2);
        assert_eq!(patched["status"]["replicas"], 2);
        assert_eq!(patched["metadata"]["generation"], 2);
        let labelled = client
            .patch(&one, &json!({"metadata": {"labels": {"a": "b"}}}))
            .await
            .json();
        assert_eq!(labelled["metadata"]["generation"], 2);
        assert_eq!(labelled["status"]["replicas"], 2);
    }
    let plain = "/apis/example.com/v1/namespaces/shop/plain";
    let created = client
        .post(plain, &json!({"metadata": {"name": "p"}, "status": {"a": 1}}))
        .await
        .json();
    assert_eq!(created["status"]["a"], 1);
    assert_eq!(
        client
            .patch(&format!("{plain}/p/status"), &json!({}))
            .await
            .status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn finalizers_hold_a_deletion_back() {
    let simulator = Simulator::start().await.unwrap();
    let client = Client::new(&simulator);
    let one = format!("{CONFIGMAPS}/a");
    client
        .post(
            CONFIGMAPS,
            &json!({"metadata": {"name": "a", "finalizers": ["example.com/f"]}}),
        )
        .await;
    let marked = client.delete(&one, "").await.json();
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    let version = simulator.resource_version();
    client.delete(&one, "").await;
    assert_eq!(
        simulator.resource_version(),
        version,
        "a second deletion changes nothing"
    );
    client
        .patch(&one, &json!({"metadata": {"finalizers": null}}))
        .await;
    assert_eq!(client.get(&one).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_cannot_be_written_is_refused_in_words() {
    let simulator = Simulator::builder()
        .require_namespaces(true)
        .start()
        .await
        .unwrap();
    let client = Client::new(&simulator);
    let no_namespace = client.post(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    assert_eq!(no_namespace.json()["message"], "namespaces \"shop\" not found");
    client
        .post("/api/v1/namespaces", &json!({"metadata": {"name": "shop"}}))
        .await;
    for (body, code) in [
        (json!({"metadata": {}}), 422),
        (json!({"metadata": {"name": "a/b"}}), 422),
        (json!({"metadata": {"name": "a", "namespace": "other"}}), 400),
        (json!({"kind": "Secret", "metadata": {"name": "a"}}), 400),
        (json!([]), 400),
    ] {
        assert_eq!(client.post(CONFIGMAPS, &body).await.status, code, "{body}");
    }
    assert_eq!(
        client
            .send_as("POST", CONFIGMAPS, "application/json", "{")
            .await
            .status,
        400
    );
    assert_eq!(
        client
            .post(CONFIGMAPS, &json!({"metadata": {"generateName": "a-"}}))
            .await
            .status,
        201
    );
    let one = format!("{CONFIGMAPS}/b");
    client.post(CONFIGMAPS, &json!({"metadata": {"name": "b"}})).await;
    assert_eq!(
        client
            .send_as("PATCH", &one, "application/json-patch+json", "[]")
            .await
            .status,
        415
    );
    assert_eq!(
        client
            .patch(&one, &json!({"metadata": {"name": "c"}}))
            .await
            .status,
        422
    );
    assert_eq!(
        client
            .patch(&one, &json!({"metadata": {"uid": "c"}}))
            .await
            .status,
        409
    );
    assert_eq!(
        client
            .patch(&one, &json!({"metadata": {"resourceVersion": "1"}}))
            .await
            .status,
        409
    );
    assert_eq!(client.post(&one, &json!({})).await.status, 405);
}

#[tokio::test]
async fn secrets_take_plain_values_and_keep_encoded_ones() {
    let simulator = Simulator::start().await.unwrap();
    let client = Client::new(&simulator);
    let path = "/api/v1/namespaces/shop/secrets";
    let created = client
        .post(
            path,
            &json!({"metadata": {"name": "db"}, "stringData": {"user": "app"}}),
        )
        .await;
    assert!(
        created
            .text()
            .ends_with("\"data\":{\"user\":\"YXBw\"},\"type\":\"Opaque\"}\n")
    );
}

#[tokio::test]
async fn cluster_scoped_objects_and_odd_names_have_paths() {
    let simulator = Simulator::start().await.unwrap();
    let client = Client::new(&simulator);
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    assert_eq!(
        client
            .post(path, &json!({"metadata": {"name": "system:node"}, "rules": []}))
            .await
            .status,
        201
    );
    assert_eq!(
        client.get(&format!("{path}/system%3Anode")).await.json()["metadata"]["name"],
        "system:node"
    );
    assert!(
        client.get(&format!("{path}/system:node")).await.json()["metadata"]
            .get("namespace")
            .is_none()
    );
    client
        .post("/api/v1/namespaces", &json!({"metadata": {"name": "shop"}}))
        .await;
    assert_eq!(
        client.get("/api/v1/namespaces/shop").await.json()["status"]["phase"],
        "Active"
    );
    assert_eq!(
        client.delete("/api/v1/namespaces/shop", "").await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_whole_collection_is_deleted_by_selector() {
    let simulator = Simulator::start().await.unwrap();
    let client = Client::new(&simulator);
    for (name, app) in [("a", "x"), ("b", "y"), ("c", "x")] {
        client
            .post(
                CONFIGMAPS,
                &json!({"metadata": {"name": name, "labels": {"app": app}}}),
            )
            .await;
    }
    assert_eq!(
        client
            .delete(&format!("{CONFIGMAPS}?labelSelector=app%3Dx"), "")
            .await
            .status,
        StatusCode::OK
    );
    assert_eq!(simulator.objects("configmaps").len(), 1);
}
