//! Plain Kubernetes REST calls to the simulator: what a person with kubectl would do.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

pub(crate) struct Kubernetes {
    address: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Kubernetes {
    /// `address` is host and port.
    pub(crate) fn at(address: String) -> Self {
        Self {
            address,
            client: Client::builder(TokioExecutor::new()).build_http(),
        }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The path of a collection: `api` is `api/v1` or `apis/GROUP/VERSION`.
    #[expect(clippy::unused_self, reason = "reads as a question to the API server")]
    pub(crate) fn collection(&self, api: &str, namespace: &str, resource: &str) -> String {
        format!("/{api}/namespaces/{namespace}/{resource}")
    }

    pub(crate) async fn create_namespace(&self, name: &str) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let (status, body) = self
            .call(Method::POST, "/api/v1/namespaces", "application/json", &namespace)
            .await;
        assert!(
            status.is_success() || status == StatusCode::CONFLICT,
            "namespace {name}: {status} {body}"
        );
    }

    pub(crate) async fn create(&self, collection: &str, object: &Value) {
        self.succeed(Method::POST, collection, "application/json", object)
            .await;
    }

    pub(crate) async fn merge_patch(&self, path: &str, change: &Value) {
        self.succeed(Method::PATCH, path, "application/merge-patch+json", change)
            .await;
    }

    pub(crate) async fn delete(&self, path: &str) {
        self.succeed(Method::DELETE, path, "application/json", &json!({}))
            .await;
    }

    /// The names of all objects of a collection, in order.
    pub(crate) async fn names(&self, api: &str, namespace: &str, resource: &str) -> Vec<String> {
        let collection = self.collection(api, namespace, resource);
        let list = self
            .succeed(Method::GET, &collection, "application/json", &Value::Null)
            .await;
        let items = list["items"].as_array().expect("a list has items");
        let names = items
            .iter()
            .filter_map(|item| item["metadata"]["name"].as_str().map(ToOwned::to_owned));
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }

    async fn succeed(&self, method: Method, path: &str, content_type: &str, body: &Value) -> Value {
        let (status, answer) = self.call(method.clone(), path, content_type, body).await;
        assert!(status.is_success(), "{method} {path}: {status} {answer}");
        answer
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> (StatusCode, Value) {
        let body = if body.is_null() {
            Bytes::new()
        } else {
            Bytes::from(body.to_string())
        };
        let request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address))
            .header("Content-Type", content_type)
            .body(Full::new(body))
            .expect("a path of this test is a legal one");
        let response = self.client.request(request).await.expect("the simulator answers");
        let status = response.status();
        let body = response
            .into_body()
            .collect()
            .await
            .expect("the answer arrives whole")
            .to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }
}
