//! What a session yields, as lines of text.

use krm_stream_protocol::{
    Object, OpenError, Scope, Session, SessionEnd, SessionItem, Start, Upstream as _, UpstreamErrorKind,
    WatchEvent,
};
use krm_stream_upstream_kube::KubeUpstream;

/// The next item.
pub(crate) async fn next(session: &mut dyn Session) -> SessionItem {
    std::future::poll_fn(|cx| session.poll_next(cx)).await
}

/// Opens a session and reads it to its end: one line an item.
pub(crate) async fn read(upstream: &KubeUpstream, scope: &Scope, start: Start) -> Vec<String> {
    match upstream.open(scope, start).await {
        Ok(session) => drain(session).await,
        Err(error) => vec![open_error(&error)],
    }
}

/// Reads a session to its end.
pub(crate) async fn drain(mut session: Box<dyn Session>) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let item = next(&mut *session).await;
        lines.push(line(&item));
        if let SessionItem::End(_) = item {
            return lines;
        }
    }
}

pub(crate) fn line(item: &SessionItem) -> String {
    match item {
        SessionItem::Event(WatchEvent::Added(object)) => format!("added {}", describe(object)),
        SessionItem::Event(WatchEvent::Modified(object)) => format!("modified {}", describe(object)),
        SessionItem::Event(WatchEvent::Deleted(object)) => format!("deleted {}", describe(object)),
        SessionItem::Event(WatchEvent::Bookmark {
            resource_version,
            initial_events_end,
        }) => {
            let version = resource_version
                .as_ref()
                .map_or("without version", |version| version.as_str());
            let word = if *initial_events_end {
                "boundary"
            } else {
                "bookmark"
            };
            format!("{word} {version}")
        }
        SessionItem::Event(WatchEvent::SnapshotRestarted) => "restarted".to_owned(),
        SessionItem::Event(WatchEvent::Unknown) => "unknown".to_owned(),
        SessionItem::End(SessionEnd::Closed) => "closed".to_owned(),
        SessionItem::End(SessionEnd::Expired) => "expired".to_owned(),
        SessionItem::End(SessionEnd::Teardown) => "teardown".to_owned(),
        SessionItem::End(SessionEnd::Failed(error)) => format!("failed {}", kind(error.kind())),
    }
}

pub(crate) fn open_error(error: &OpenError) -> String {
    match error {
        OpenError::Expired => "not opened: expired".to_owned(),
        OpenError::Failed(error) => format!("not opened: {}", kind(error.kind())),
    }
}

fn kind(kind: &UpstreamErrorKind) -> String {
    match kind {
        UpstreamErrorKind::Forbidden { message } => {
            format!("forbidden {}", message.as_deref().unwrap_or("without text"))
        }
        UpstreamErrorKind::Unauthenticated => "unauthenticated".to_owned(),
        UpstreamErrorKind::NotFound => "not found".to_owned(),
        UpstreamErrorKind::Unavailable => "unavailable".to_owned(),
        UpstreamErrorKind::VersionTooLarge => "version too large".to_owned(),
        UpstreamErrorKind::Rejected => "rejected".to_owned(),
        UpstreamErrorKind::LineTooLong { limit } => format!("line too long {limit}"),
        UpstreamErrorKind::Unreadable => "unreadable".to_owned(),
        UpstreamErrorKind::OutOfScope => "out of scope".to_owned(),
    }
}

fn describe(object: &Object) -> String {
    let name = object.identity().map_or("partial", |identity| &identity.name);
    match object.resource_version() {
        Some(version) => format!("{name}@{version}"),
        None => name.to_owned(),
    }
}
