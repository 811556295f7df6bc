//! One page of a LIST, and its items as a watch would have sent them.

use std::fmt;
use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use krm_stream_protocol::json::{self, JsonError};
use krm_stream_protocol::{Object, ResourceVersion};

use crate::status::Status;

/// A page that was read whole. Its items stay slices of it until they are asked for.
pub(crate) struct Page {
    text: Bytes,
    items: std::vec::IntoIter<Range<usize>>,
    /// What an item of a typed list lacks: `"kind":"Secret"` and `"apiVersion":"v1"`.
    item_kind: Option<String>,
    item_api_version: Option<String>,
    /// `metadata.resourceVersion` of the list.
    pub(crate) resource_version: Option<ResourceVersion>,
    /// `metadata.continue`: where the next page starts.
    pub(crate) next: Option<Box<str>>,
}

/// Why a body is no page. It never holds content.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    #[error("a list is not json")]
    NotJson(#[source] JsonError),
    #[error("a list is json, but no object with a list's metadata")]
    NoList,
    #[error("an item of a list is no json object")]
    OddItem,
}

/// What a successful answer to a list request holds.
#[derive(Debug)]
pub(crate) enum ListBody {
    Page(Page),
    /// A `Status` that came with a success code.
    Status(Status),
}

impl Page {
    /// Reads the page that `text` is. Of duplicate keys the last counts.
    pub(crate) fn read(text: Bytes) -> Result<ListBody, PageError> {
        json::validate(&text).map_err(PageError::NotJson)?;
        let (mut kind, mut api_version, mut metadata, mut items) = (None, None, None, None);
        for member in json::members(&text) {
            if member.key_is("kind") {
                kind = json::string(member.value);
            } else if member.key_is("apiVersion") {
                api_version = json::string(member.value);
            } else if member.key_is("metadata") {
                metadata = Some(member.value);
            } else if member.key_is("items") {
                items = Some(member.value_range);
            }
        }
        if kind.as_deref() == Some("Status") {
            return Ok(ListBody::Status(Status::read(&text)));
        }
        let metadata = metadata
            .filter(|metadata| metadata.starts_with(b"{"))
            .ok_or(PageError::NoList)?;
        let filled = |name| {
            json::last_member(metadata, name)
                .and_then(json::string)
                .filter(|text| !text.is_empty())
        };
        // A bare `List` holds items of any kind, which name their own.
        let item_kind = kind
            .as_deref()
            .and_then(|kind| kind.strip_suffix("List"))
            .filter(|kind| !kind.is_empty());
        let item_api_version = item_kind.and(api_version.as_deref());
        let ranges: Vec<_> = items.map_or_else(Vec::new, |items| {
            let start = items.start;
            json::elements(&text[items])
                .map(|(_, range)| start + range.start..start + range.end)
                .collect()
        });
        Ok(ListBody::Page(Self {
            item_kind: item_kind.and_then(|kind| member("kind", kind)),
            item_api_version: item_api_version.and_then(|version| member("apiVersion", version)),
            resource_version: filled("resourceVersion").map(|version| ResourceVersion::new(&*version)),
            next: filled("continue").map(|token| (*token).into()),
            items: ranges.into_iter(),
            text,
        }))
    }

    /// The next item: verbatim, with `kind` and `apiVersion` put in front where it lacks them, as a watch would have
    /// sent it. `None` after the last.
    pub(crate) fn next_item(&mut self) -> Option<Result<Object, PageError>> {
        let item = self.text.slice(self.items.next()?);
        Some(Object::parse_validated(self.complete(item)).map_err(|_| PageError::OddItem))
    }

    fn complete(&self, item: Bytes) -> Bytes {
        if !item.starts_with(b"{") {
            return item;
        }
        let (mut has_kind, mut has_api_version, mut is_empty) = (false, false, true);
        for member in json::members(&item) {
            is_empty = false;
            has_kind |= member.key_is("kind");
            has_api_version |= member.key_is("apiVersion");
        }
        let missing: Vec<&str> = [
            self.item_kind.as_deref().filter(|_| !has_kind),
            self.item_api_version.as_deref().filter(|_| !has_api_version),
        ]
        .into_iter()
        .flatten()
        .collect();
        if missing.is_empty() {
            return item;
        }
        let front = missing.join(",");
        let mut completed = BytesMut::with_capacity(item.len() + front.len() + 1);
        completed.put_u8(b'{');
        completed.put_slice(front.as_bytes());
        if !is_empty {
            completed.put_u8(b',');
        }
        completed.put_slice(&item[1..]);
        completed.freeze()
    }
}

impl fmt::Debug for Page {
    /// Shows lengths only: an item may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("bytes", &self.text.len())
            .field("items", &self.items.len())
            .finish_non_exhaustive()
    }
}

fn member(key: &str, value: &str) -> Option<String> {
    let value = serde_json::to_string(value).ok()?;
    Some(format!("\"{key}\":{value}"))
}

#[cfg(test)]
mod tests;
