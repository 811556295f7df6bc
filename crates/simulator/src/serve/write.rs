//! Requests about one object, and those that change some.

use http::{header, request::Parts};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde_json::Value;

use crate::{
    answer::Answer,
    request::Verb,
    resource::{Resource, ResourceKey},
    selector::FieldSelector,
    status::Status,
    store::{Collection, Deleted, Filter, Origin, Preconditions, Store, Target, WriteError, object_key},
};

use super::{Exchange, Reply, json, options::ListOptions};

/// The largest body of a request, as the API server limits it.
const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

pub(super) fn get(exchange: &Exchange) -> Result<Reply, Status> {
    let (key, resource) = served(exchange)?;
    let request = &exchange.request;
    let store = exchange.shared.store();
    let fields = FieldSelector::default().and_name(request.name());
    let namespace = namespace_of(&resource, request.namespace()).to_owned();
    let object = store
        .collection(&key)
        .and_then(|collection| collection.object(&object_key(&namespace, request.name())))
        .filter(|object| fields.matches(&object.namespace, &object.name))
        .ok_or_else(|| Status::not_found(&resource, request.name()))?;
    Ok(object_answer(200, &object.object).into())
}

pub(super) async fn answer(exchange: &Exchange, parts: &Parts, incoming: Incoming) -> Result<Reply, Status> {
    let (key, resource) = served(exchange)?;
    let body = read_body(incoming).await?;
    let request = &exchange.request;
    let target = Target {
        key: &key,
        namespace: namespace_of(&resource, request.namespace()),
        name: request.name(),
        status: request.subresource() == "status",
    };
    let writing = exchange.shared.writing(Origin::Request);
    let failed = |error: WriteError| error.to_status(&resource);
    let mut store = exchange.shared.store();
    let answer = match request.verb() {
        Verb::Create if request.name().is_empty() => {
            if exchange.shared.settings.require_namespaces && resource.is_namespaced() {
                let namespaces = store.named("namespaces").and_then(|key| {
                    store
                        .collection(&key)
                        .map(|all| all.object(target.namespace).is_some())
                });
                if namespaces == Some(false) {
                    return Err(
                        Status::new(404, format!("namespaces {:?} not found", target.namespace))
                            .reason("NotFound")
                            .about("", "namespaces", target.namespace),
                    );
                }
            }
            let object = store
                .create(&key, target.namespace, parse(&body)?, writing)
                .map_err(failed)?;
            object_answer(201, &object.object)
        }
        Verb::Update => {
            let object = store.update(target, parse(&body)?, writing).map_err(failed)?;
            object_answer(200, &object.object)
        }
        Verb::Patch => {
            require_merge_patch(parts)?;
            let object = store.patch(target, &parse(&body)?, writing).map_err(failed)?;
            object_answer(200, &object.object)
        }
        Verb::Delete => {
            let preconditions = preconditions(&body)?;
            match store.delete(target, &preconditions, writing).map_err(failed)? {
                Deleted::Gone(object) => json(
                    200,
                    Status::deleted(&resource, request.name(), &object.uid).to_json() + "\n",
                ),
                Deleted::Marked(object) => object_answer(200, &object.object),
            }
        }
        Verb::DeleteCollection => {
            let options =
                ListOptions::read(request, &exchange.plan, exchange.shared.settings.streaming_lists)?;
            let names = names(&store, &key, &options.filter);
            for (namespace, name) in &names {
                let target = Target {
                    key: &key,
                    namespace,
                    name,
                    status: false,
                };
                store
                    .delete(target, &Preconditions::default(), writing)
                    .map_err(failed)?;
            }
            json(200, Status::deleted(&resource, "", "").to_json() + "\n")
        }
        Verb::Create | Verb::Get | Verb::List | Verb::Watch | Verb::NonResource => {
            return Err(method_not_allowed());
        }
    };
    Ok(answer.into())
}

fn names(store: &Store, key: &ResourceKey, filter: &Filter) -> Vec<(String, String)> {
    store
        .collection(key)
        .into_iter()
        .flat_map(Collection::objects)
        .filter(|object| filter.matches(object))
        .map(|object| (object.namespace.clone(), object.name.clone()))
        .collect()
}

/// The resource of the request, if it and its subresource are served.
fn served(exchange: &Exchange) -> Result<(ResourceKey, Resource), Status> {
    let key = exchange.request.key();
    let store = exchange.shared.store();
    let resource = store
        .collection(&key)
        .map(|collection| collection.resource.clone())
        .ok_or_else(Status::unknown_resource)?;
    match exchange.request.subresource() {
        "" => Ok((key, resource)),
        "status" if resource.status => Ok((key, resource)),
        _ => Err(Status::unknown_resource()),
    }
}

/// The namespace of the stored object: a Namespace itself is in none.
fn namespace_of<'a>(resource: &Resource, namespace: &'a str) -> &'a str {
    if resource.is_namespaced() { namespace } else { "" }
}

fn object_answer(code: u16, object: &[u8]) -> Answer {
    let mut body = Vec::with_capacity(object.len() + 1);
    body.extend_from_slice(object);
    body.push(b'\n');
    json(code, body)
}

/// Reads a body up to the limit.
pub(super) async fn read_body(incoming: Incoming) -> Result<bytes::Bytes, Status> {
    let body = Limited::new(incoming, MAX_BODY_BYTES)
        .collect()
        .await
        .map_err(|_| {
            let message = format!("Request entity too large: limit is {MAX_BODY_BYTES}");
            Status::new(413, message).reason("RequestEntityTooLarge")
        })?;
    Ok(body.to_bytes())
}

/// Reads JSON.
pub(super) fn parse(body: &[u8]) -> Result<Value, Status> {
    serde_json::from_slice(body).map_err(|error| {
        Status::bad_request(format!(
            "the object provided is unrecognized (it must be JSON of the resource's kind): {error}"
        ))
    })
}

fn preconditions(body: &[u8]) -> Result<Preconditions, Status> {
    if body.is_empty() {
        return Ok(Preconditions::default());
    }
    let options = parse(body)?;
    let text = |key: &str| {
        let value = options
            .get("preconditions")
            .and_then(|preconditions| preconditions.get(key));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    Ok(Preconditions {
        uid: text("uid"),
        resource_version: text("resourceVersion"),
    })
}

fn require_merge_patch(parts: &Parts) -> Result<(), Status> {
    let content_type = parts
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    if media_type == "application/merge-patch+json" {
        return Ok(());
    }
    let message = "the body of the request was in an unknown format - accepted media types include: \
         application/merge-patch+json";
    Err(Status::new(415, message).reason("UnsupportedMediaType"))
}

fn method_not_allowed() -> Status {
    Status::new(
        405,
        "the server does not allow this method on the requested resource",
    )
    .reason("MethodNotAllowed")
    .about("", "", "")
}
