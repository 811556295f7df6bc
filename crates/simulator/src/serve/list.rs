//! LIST: the whole of a collection or a page of it.

use serde_json::{Value, json};

use crate::{
    base64,
    encode::string,
    resource::Resource,
    status::Status,
    store::{Collection, Page, PageRequest, Store},
};

use super::{
    Exchange, Reply, json as json_answer,
    options::{ListOptions, VersionMatch},
};

const EXPIRED_TOKEN: &str = "The provided continue parameter is too old to display a consistent list result. You can \
     start a new list without the continue parameter, or use the continue token in this response to retrieve the \
     remainder of the results. Continuing with the provided token results in an inconsistent list - objects that \
     were created, modified, or deleted between the time the first chunk was returned and now may show up in the \
     list.";
const EXPIRED_VERSION: &str = "The resourceVersion for the provided list is too old.";

/// Where a page starts and which state it is of.
struct Start {
    at: Option<u64>,
    version: u64,
    from: String,
}

pub(super) fn answer(exchange: &Exchange) -> Result<Reply, Status> {
    let store = exchange.shared.store();
    let collection = store
        .collection(&exchange.request.key())
        .ok_or_else(Status::unknown_resource)?;
    let options = ListOptions::read(
        &exchange.request,
        &exchange.plan,
        exchange.shared.settings.streaming_lists,
    )?;
    let prefix = options
        .filter
        .namespace
        .as_ref()
        .map(|namespace| format!("{namespace}/"))
        .unwrap_or_default();
    let start = start(&store, collection, &options)?;
    let from = prefix.clone() + &start.from;
    let page = collection.page(&PageRequest {
        filter: &options.filter,
        at: start.at,
        from: &from,
        limit: options.limit,
    });
    let selective = !options.filter.labels.is_empty()
        || options.filter.fields != crate::selector::FieldSelector::default();
    let version = store.versions.text(start.version);
    let metadata = ListMetadata {
        version: &version,
        token: page
            .more_after
            .as_ref()
            .map(|key| token(start.version, key.strip_prefix(&prefix).unwrap_or(key))),
        remaining: if selective { 0 } else { page.remaining },
    };
    Ok(json_answer(200, write_list(&collection.resource, &metadata, &page)).into())
}

struct ListMetadata<'a> {
    version: &'a str,
    token: Option<String>,
    remaining: usize,
}

/// Which state to list, and from where.
fn start(store: &Store, collection: &Collection, options: &ListOptions) -> Result<Start, Status> {
    let current = store.versions.current();
    let oldest = store.versions.compacted().max(collection.trimmed());
    if !options.token.is_empty() {
        let (version, from) = read_token(&options.token)?;
        return match version {
            // A token that gave up on consistency goes on with the newest state.
            None => Ok(Start {
                at: None,
                version: current,
                from,
            }),
            Some(version) if version < oldest => {
                let inconsistent = write_token(-1, &from);
                Err(Status::new(410, EXPIRED_TOKEN)
                    .reason("Expired")
                    .continue_token(inconsistent))
            }
            Some(version) => Ok(Start {
                at: Some(version),
                version,
                from,
            }),
        };
    }
    let newest = Start {
        at: None,
        version: current,
        from: String::new(),
    };
    if options.resource_version.is_empty() || options.resource_version == "0" {
        return Ok(newest);
    }
    let wanted = store
        .versions
        .parse(&options.resource_version)
        .map_err(|error| Status::new(500, error.to_string()))?;
    if wanted > current {
        return Err(Status::too_large_resource_version(
            &options.resource_version,
            &store.versions.text(current),
        ));
    }
    let exact = match options.version_match {
        VersionMatch::Exact => true,
        VersionMatch::NotOlderThan => false,
        // Without a match rule a page is exact, a whole list is not older
        // (<https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list>).
        VersionMatch::Unset => options.limit > 0,
    };
    if !exact {
        return Ok(newest);
    }
    if wanted < oldest {
        return Err(Status::new(410, EXPIRED_VERSION).reason("Expired"));
    }
    Ok(Start {
        at: Some(wanted),
        version: wanted,
        from: String::new(),
    })
}

/// `{"v":"meta.k8s.io/v1","rv":222,"start":"/db\u0000"}` in base64, as etcd's pager makes it.
fn token(version: u64, last_key: &str) -> String {
    write_token(
        i64::try_from(version).unwrap_or(i64::MAX),
        &format!("{last_key}\0"),
    )
}

fn write_token(version: i64, from: &str) -> String {
    let text = format!(
        r#"{{"v":"meta.k8s.io/v1","rv":{version},"start":{}}}"#,
        string(&format!("/{from}"))
    );
    let encoded = base64::encode(text.as_bytes());
    encoded.trim_end_matches('=').replace('+', "-").replace('/', "_")
}

/// Version (`None` for an inconsistent token) and first key.
fn read_token(token: &str) -> Result<(Option<u64>, String), Status> {
    let invalid = |problem: &str| Status::bad_request(format!("continue key is not valid: {problem}"));
    let text = base64::decode(token).ok_or_else(|| invalid("illegal base64 data"))?;
    let value: Value = serde_json::from_slice(&text).map_err(|error| invalid(&error.to_string()))?;
    if value.get("v") != Some(&json!("meta.k8s.io/v1")) {
        return Err(invalid("server does not recognize this encoded version"));
    }
    let from = value.get("start").and_then(Value::as_str).unwrap_or_default();
    let version = value.get("rv").and_then(Value::as_i64).unwrap_or(0);
    if version == 0 {
        return Err(invalid("incorrect encoded start resourceVersion"));
    }
    Ok((
        u64::try_from(version).ok(),
        from.trim_start_matches('/').to_owned(),
    ))
}

fn write_list(resource: &Resource, metadata: &ListMetadata<'_>, page: &Page) -> Vec<u8> {
    let size: usize = page.items.iter().map(|item| item.object.len() + 1).sum();
    let mut out = Vec::with_capacity(size + 256);
    let kind = string(&format!("{}List", resource.kind()));
    let api_version = string(&resource.api_version());
    let version = string(metadata.version);
    let token = metadata.token.as_deref().unwrap_or_default();
    let remaining = if metadata.remaining > 0 {
        format!(",\"remainingItemCount\":{}", metadata.remaining)
    } else {
        String::new()
    };
    let tail = if resource.is_custom() {
        out.extend_from_slice(format!("{{\"apiVersion\":{api_version},\"items\":[").as_bytes());
        let token = string(token);
        format!(
            "],\"kind\":{kind},\"metadata\":{{\"continue\":{token}{remaining},\"resourceVersion\":{version}}}}}\n"
        )
    } else {
        let token = if token.is_empty() {
            String::new()
        } else {
            format!(",\"continue\":{}", string(token))
        };
        let head = format!(
            "{{\"kind\":{kind},\"apiVersion\":{api_version},\"metadata\":{{\"resourceVersion\":{version}{token}{remaining}}},\"items\":["
        );
        out.extend_from_slice(head.as_bytes());
        "]}\n".to_owned()
    };
    for (index, item) in page.items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        item.write_item(&mut out);
    }
    out.extend_from_slice(tail.as_bytes());
    out
}
