//! `SubjectAccessReview` and `SelfSubjectAccessReview`
//! (<https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/subject-access-review-v1/>).

use std::collections::BTreeMap;

use hyper::body::Incoming;
use serde_json::{Map, Value, json};

use crate::{
    access::{Attributes, Decision, User},
    encode::{Keys, write_value},
    request::{ReceivedRequest, Verb},
    status::Status,
};

use super::{
    Exchange, Reply, json as json_answer,
    write::{parse, read_body},
};

/// Whether the request is a review.
pub(super) fn is_review(request: &ReceivedRequest) -> bool {
    request.verb() == Verb::Create
        && request.group() == "authorization.k8s.io"
        && request.key().version == "v1"
        && matches!(
            request.resource(),
            "subjectaccessreviews" | "selfsubjectaccessreviews"
        )
        && request.name().is_empty()
}

pub(super) async fn answer(exchange: &Exchange, incoming: Incoming) -> Result<Reply, Status> {
    let review = parse(&read_body(incoming).await?)?;
    let own = exchange.request.resource() == "selfsubjectaccessreviews";
    let kind = if own {
        "SelfSubjectAccessReview"
    } else {
        "SubjectAccessReview"
    };
    let spec = review
        .get("spec")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let user = if own {
        exchange.user.clone()
    } else {
        subject(&spec)
    };
    if user.name.is_empty() && user.groups.is_empty() {
        return Err(invalid(
            kind,
            "spec.user",
            "at least one of user or group must be specified",
        ));
    }
    let decision = match (spec.get("resourceAttributes"), spec.get("nonResourceAttributes")) {
        (Some(Value::Object(attributes)), None) => exchange
            .shared
            .access
            .decide(&user, &resource_attributes(attributes)),
        (None, Some(Value::Object(_))) => Decision::NoOpinion,
        _ => {
            let problem = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            return Err(invalid(kind, "spec.resourceAttributes", problem));
        }
    };
    let status = match decision {
        Decision::Allowed => json!({"allowed": true, "reason": "a rule of the simulator allows it"}),
        Decision::Denied => {
            json!({"allowed": false, "denied": true, "reason": "a rule of the simulator denies it"})
        }
        Decision::NoOpinion => json!({"allowed": false}),
    };
    let answer = json!({
        "kind": kind,
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": spec,
        "status": status,
    });
    let mut out = Vec::new();
    write_value(&mut out, &answer, Keys::AsGiven);
    out.push(b'\n');
    Ok(json_answer(201, out).into())
}

fn subject(spec: &Map<String, Value>) -> User {
    let mut user = User::new(text(spec, "user")).uid(text(spec, "uid"));
    let strings = |value: Option<&Value>| -> Vec<String> {
        let items = value.and_then(Value::as_array).into_iter().flatten();
        items
            .filter_map(|item| item.as_str().map(str::to_owned))
            .collect()
    };
    user.groups = strings(spec.get("groups")).into_iter().collect();
    user.extra = spec
        .get("extra")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, values)| (key.clone(), strings(Some(values))))
        .collect::<BTreeMap<_, _>>();
    user
}

fn resource_attributes(attributes: &Map<String, Value>) -> Attributes {
    Attributes {
        verb: text(attributes, "verb"),
        group: text(attributes, "group"),
        resource: text(attributes, "resource"),
        subresource: text(attributes, "subresource"),
        namespace: text(attributes, "namespace"),
        name: text(attributes, "name"),
    }
}

fn text(map: &Map<String, Value>, key: &str) -> String {
    map.get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn invalid(kind: &str, field: &str, problem: &str) -> Status {
    Status::new(
        422,
        format!("{kind}.authorization.k8s.io \"\" is invalid: {field}: Invalid value: \"\": {problem}"),
    )
    .reason("Invalid")
    .about("authorization.k8s.io", kind, "")
    .cause(
        "FieldValueInvalid",
        format!("Invalid value: \"\": {problem}"),
        field,
    )
}
