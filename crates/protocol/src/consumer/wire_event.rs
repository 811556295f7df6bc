//! An event as it stands in the data of a stream, read without rewriting what it carries.

use std::borrow::Cow;
use std::time::Duration;

use super::{ConsumerError, Redaction, ReportedError};
use crate::{EventType, Target, json};

/// One event.
pub(super) struct WireEvent<'a> {
    pub(super) seq: u64,
    pub(super) body: Body<'a>,
}

/// What an event holds, by its type.
pub(super) enum Body<'a> {
    Reset {
        target: Target,
    },
    Upsert(Upsert<'a>),
    Deleted {
        uid: Cow<'a, str>,
    },
    Synced,
    Error(ReportedError),
    /// A type from the future.
    Unknown,
}

/// An `added` or `modified`.
pub(super) struct Upsert<'a> {
    pub(super) event_type: EventType,
    pub(super) uid: Cow<'a, str>,
    pub(super) object: &'a str,
    pub(super) redacted: Box<[Redaction]>,
}

/// The fields of an event that mean anything to a consumer, as they are spelled.
#[derive(Default)]
struct Fields<'a> {
    seq: Option<&'a str>,
    event_type: Option<&'a str>,
    target: Option<&'a str>,
    object: Option<&'a str>,
    redacted: Option<&'a str>,
    identity: Option<&'a str>,
    code: Option<&'a str>,
    message: Option<&'a str>,
    terminal: Option<&'a str>,
    retry_after: Option<&'a str>,
}

impl<'a> WireEvent<'a> {
    pub(super) fn read(data: &'a str) -> Result<Self, ConsumerError> {
        json::validate(data.as_bytes())?;
        let fields = Fields::read(data);
        let seq = fields
            .seq
            .and_then(|seq| seq.parse().ok())
            .ok_or(malformed("seq"))?;
        let event_type = text(fields.event_type).ok_or(malformed("type"))?;
        let body = match &*event_type {
            "reset" => Body::Reset {
                target: Target::new(text(fields.target).unwrap_or_default()),
            },
            "added" => Body::Upsert(fields.upsert(EventType::Added)?),
            "modified" => Body::Upsert(fields.upsert(EventType::Modified)?),
            "deleted" => Body::Deleted {
                uid: fields
                    .identity
                    .and_then(|identity| json::last_member(identity.as_bytes(), "uid"))
                    .and_then(json::string)
                    .filter(|uid| !uid.is_empty())
                    .ok_or(malformed("identity.uid"))?,
            },
            "synced" => Body::Synced,
            "error" => Body::Error(fields.error()?),
            _ => Body::Unknown,
        };
        Ok(Self { seq, body })
    }
}

impl<'a> Fields<'a> {
    /// Of duplicate keys the last counts, as it does for a browser.
    fn read(data: &'a str) -> Self {
        let mut fields = Self::default();
        for member in json::members(data.as_bytes()) {
            let value = data.get(member.value_range.clone());
            for (name, field) in [
                ("seq", &mut fields.seq),
                ("type", &mut fields.event_type),
                ("target", &mut fields.target),
                ("object", &mut fields.object),
                ("redacted", &mut fields.redacted),
                ("identity", &mut fields.identity),
                ("code", &mut fields.code),
                ("message", &mut fields.message),
                ("terminal", &mut fields.terminal),
                ("retryAfterMs", &mut fields.retry_after),
            ] {
                if member.key_is(name) {
                    *field = value;
                }
            }
        }
        fields
    }

    fn upsert(&self, event_type: EventType) -> Result<Upsert<'a>, ConsumerError> {
        let object = self.object.ok_or(malformed("object"))?;
        Ok(Upsert {
            event_type,
            uid: object_uid(object)?,
            object,
            redacted: redactions(self.redacted.unwrap_or_default())?,
        })
    }

    fn error(&self) -> Result<ReportedError, ConsumerError> {
        Ok(ReportedError {
            code: text(self.code).ok_or(malformed("code"))?.into(),
            message: text(self.message).unwrap_or_default().into(),
            is_terminal: match self.terminal {
                Some("true") => true,
                Some("false") => false,
                _ => return Err(malformed("terminal")),
            },
            retry_after: self
                .retry_after
                .and_then(|milliseconds| milliseconds.parse().ok())
                .map(Duration::from_millis),
        })
    }
}

/// The uid of an object, from its JSON text.
pub(super) fn object_uid(object: &str) -> Result<Cow<'_, str>, ConsumerError> {
    json::last_member(object.as_bytes(), "metadata")
        .and_then(|metadata| json::last_member(metadata, "uid"))
        .and_then(json::string)
        .filter(|uid| !uid.is_empty())
        .ok_or(malformed("object.metadata.uid"))
}

fn redactions(list: &str) -> Result<Box<[Redaction]>, ConsumerError> {
    json::elements(list.as_bytes())
        .map(|(element, _)| {
            let path = json::last_member(element, "path").and_then(as_text);
            let rev = json::last_member(element, "rev").and_then(as_text);
            Ok(Redaction {
                path: text(path).ok_or(malformed("redacted.path"))?.into(),
                rev: rev
                    .and_then(|rev| rev.parse().ok())
                    .ok_or(malformed("redacted.rev"))?,
            })
        })
        .collect()
}

/// The content of a JSON string; a lone surrogate, which no Rust string can hold, becomes a replacement character.
fn text(value: Option<&str>) -> Option<Cow<'_, str>> {
    let inner = value?.strip_prefix('"')?.strip_suffix('"')?;
    Some(match json::unescape(inner.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(inner),
        Cow::Owned(plain) => Cow::Owned(String::from_utf8_lossy(&plain).into_owned()),
    })
}

fn as_text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok()
}

const fn malformed(field: &'static str) -> ConsumerError {
    ConsumerError::Malformed { field }
}
