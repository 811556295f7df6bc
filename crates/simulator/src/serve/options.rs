//! The options of LIST and WATCH, validated as the API server validates them
//! (`k8s.io/apimachinery/pkg/apis/meta/internalversion/validation`).

use std::time::Duration;

use crate::{
    faults::{Plan, StreamingList},
    request::{ReceivedRequest, Verb, is_true},
    selector::{FieldSelector, FieldSelectorError, LabelSelector},
    status::Status,
    store::Filter,
};

/// The options of a LIST or a WATCH.
pub(super) struct ListOptions {
    pub(super) filter: Filter,
    pub(super) resource_version: String,
    pub(super) version_match: VersionMatch,
    pub(super) limit: usize,
    pub(super) token: String,
    pub(super) bookmarks: bool,
    pub(super) initial_events: InitialEvents,
    pub(super) timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VersionMatch {
    Unset,
    Exact,
    NotOlderThan,
}

/// `sendInitialEvents`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InitialEvents {
    Unset,
    Wanted,
    Unwanted,
}

impl ListOptions {
    pub(super) fn read(
        request: &ReceivedRequest,
        plan: &Plan,
        streaming_lists: bool,
    ) -> Result<Self, Status> {
        let text = |name: &str| request.parameter(name).unwrap_or_default();
        let labels = LabelSelector::parse(text("labelSelector")).map_err(Status::bad_request)?;
        let mut fields =
            FieldSelector::parse(text("fieldSelector")).map_err(|error| field_status(request, &error))?;
        if !request.name().is_empty() {
            fields = fields.and_name(request.name());
        }
        let namespace = Some(request.namespace())
            .filter(|namespace| !namespace.is_empty())
            .map(str::to_owned);
        let mut options = Self {
            filter: Filter {
                namespace,
                labels,
                fields,
            },
            resource_version: text("resourceVersion").to_owned(),
            version_match: VersionMatch::Unset,
            limit: number(request, "limit")?.map_or(0, |limit| usize::try_from(limit).unwrap_or(0)),
            token: text("continue").to_owned(),
            bookmarks: request.parameter("allowWatchBookmarks").is_some_and(is_true),
            initial_events: match request.parameter("sendInitialEvents") {
                None => InitialEvents::Unset,
                Some(value) if is_true(value) => InitialEvents::Wanted,
                Some(_) => InitialEvents::Unwanted,
            },
            timeout: number(request, "timeoutSeconds")?
                .and_then(|seconds| u64::try_from(seconds).ok())
                .filter(|seconds| *seconds > 0)
                .map(Duration::from_secs),
        };
        let version_match = text("resourceVersionMatch");
        if plan.streaming_list == StreamingList::Ignored {
            options.initial_events = InitialEvents::Unset;
        } else {
            options.version_match = match request.verb() {
                Verb::Watch => options.validate_watch(
                    version_match,
                    streaming_lists && plan.streaming_list != StreamingList::Refused,
                )?,
                Verb::Get
                | Verb::List
                | Verb::Create
                | Verb::Update
                | Verb::Patch
                | Verb::Delete
                | Verb::DeleteCollection
                | Verb::NonResource => options.validate_list(version_match)?,
            };
        }
        Ok(options)
    }

    fn validate_watch(&self, version_match: &str, streaming_lists: bool) -> Result<VersionMatch, Status> {
        let asked = self.initial_events != InitialEvents::Unset;
        if asked && version_match != "NotOlderThan" {
            let message = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            return Err(forbidden_option("resourceVersionMatch", message));
        }
        if asked && !streaming_lists {
            return Err(Status::streaming_list_refused());
        }
        if version_match.is_empty() {
            return Ok(VersionMatch::Unset);
        }
        if !asked {
            let message = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            return Err(forbidden_option("resourceVersionMatch", message));
        }
        if !self.token.is_empty() {
            let message = "resourceVersionMatch is forbidden when continue is provided";
            return Err(forbidden_option("resourceVersionMatch", message));
        }
        Ok(VersionMatch::NotOlderThan)
    }

    fn validate_list(&self, version_match: &str) -> Result<VersionMatch, Status> {
        if self.initial_events != InitialEvents::Unset {
            return Err(forbidden_option(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        if version_match.is_empty() {
            return Ok(VersionMatch::Unset);
        }
        let refusal = |message: &str| Err(forbidden_option("resourceVersionMatch", message));
        if self.resource_version.is_empty() {
            return refusal("resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if !self.token.is_empty() {
            return refusal("resourceVersionMatch is forbidden when continue is provided");
        }
        match version_match {
            "NotOlderThan" => Ok(VersionMatch::NotOlderThan),
            "Exact" if self.resource_version == "0" => {
                refusal("resourceVersionMatch \"exactMatch\" is forbidden for resourceVersion \"0\"")
            }
            "Exact" => Ok(VersionMatch::Exact),
            other => Err(Status::invalid_list_options(
                "resourceVersionMatch",
                &format!("Unsupported value: {other:?}: supported values: \"Exact\", \"NotOlderThan\", \"\""),
                "FieldValueNotSupported",
            )),
        }
    }
}

fn forbidden_option(field: &str, message: &str) -> Status {
    Status::invalid_list_options(field, &format!("Forbidden: {message}"), "FieldValueForbidden")
}

fn field_status(request: &ReceivedRequest, error: &FieldSelectorError) -> Status {
    match error {
        FieldSelectorError::Syntax(message) => Status::bad_request(message.clone()),
        FieldSelectorError::Unsupported(_) => {
            let text = |name: &str| request.parameter(name).unwrap_or_default();
            Status::bad_request(format!(
                "Unable to find {:?} that match label selector {:?}, field selector {:?}: {error}",
                format!("{}, Resource={}", request.key().version, request.resource()),
                text("labelSelector"),
                text("fieldSelector"),
            ))
        }
    }
}

fn number(request: &ReceivedRequest, name: &str) -> Result<Option<i64>, Status> {
    match request.parameter(name) {
        None | Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| {
            Status::bad_request(format!(
                "unable to convert query parameter {name:?}: strconv.ParseInt: parsing {text:?}: invalid syntax"
            ))
        }),
    }
}
