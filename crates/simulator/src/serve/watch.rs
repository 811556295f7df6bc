//! WATCH: from where it starts, and what it is refused for.

use crate::{
    status::Status,
    watch::{WatchLines, WatchStart},
};

use super::{
    Exchange, Reply, json,
    options::{InitialEvents, ListOptions},
};

pub(super) fn answer(exchange: &Exchange) -> Result<Reply, Status> {
    let shared = &exchange.shared;
    let store = shared.store();
    let key = exchange.request.key();
    let collection = store.collection(&key).ok_or_else(Status::unknown_resource)?;
    let options = ListOptions::read(&exchange.request, &exchange.plan, shared.settings.streaming_lists)?;
    let current = store.versions.current();
    let from_now = options.resource_version.is_empty() || options.resource_version == "0";
    let version = if from_now {
        0
    } else {
        store
            .versions
            .parse(&options.resource_version)
            .map_err(|error| Status::new(500, error.to_string()))?
    };
    let initial = match options.initial_events {
        InitialEvents::Wanted => true,
        InitialEvents::Unwanted => false,
        // Without a version a watch starts with synthetic events
        // (<https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-watch>).
        InitialEvents::Unset => from_now,
    };
    if initial && version > current {
        let status =
            Status::too_large_resource_version(&options.resource_version, &store.versions.text(current));
        return Ok(error_event(&status));
    }
    let oldest = store.versions.compacted().max(collection.trimmed());
    if !initial && !from_now && version < oldest {
        let status = Status::expired(&options.resource_version, &store.versions.text(oldest));
        return Ok(error_event(&status));
    }
    let events = if initial {
        let matching = collection
            .objects()
            .filter(|object| options.filter.matches(object));
        matching.map(|object| object.added_line()).collect()
    } else {
        Vec::new()
    };
    let start = WatchStart {
        key,
        resource: collection.resource.clone(),
        filter: options.filter,
        position: if initial || from_now { current } else { version },
        initial: events,
        boundary: options.initial_events == InitialEvents::Wanted && options.bookmarks,
        bookmarks: options.bookmarks,
        timeout: options.timeout.unwrap_or(shared.settings.watch_timeout),
        changes: collection.changes(),
    };
    drop(store);
    let registration = shared.watches.open(&exchange.request);
    let lines = WatchLines::open(
        std::sync::Arc::clone(shared),
        std::sync::Arc::clone(&exchange.control),
        registration,
        start,
        &exchange.plan,
    );
    Ok(Reply::Watch(Box::new(lines)))
}

/// A watch that consists of its failure: 200, one `ERROR` event, the end.
fn error_event(status: &Status) -> Reply {
    Reply::Lines(json(200, status.to_error_event()))
}
