//! Which requests a fault is for.

use std::{fmt, sync::Arc};

use crate::request::{ReceivedRequest, Verb};

type Predicate = Arc<dyn Fn(&ReceivedRequest) -> bool + Send + Sync>;

/// Says which requests are meant: those that satisfy all that was asked for.
///
/// ```
/// use krm_stream_simulator::{RequestMatch, Verb};
///
/// // Every list of Secrets in `shop` from the third on.
/// let lists = RequestMatch::any().verb(Verb::List).resource("secrets").namespace("shop").skip(2).always();
/// ```
#[derive(Clone)]
pub struct RequestMatch {
    verb: Option<Verb>,
    resource: Option<String>,
    namespace: Option<String>,
    parameters: Vec<(String, Option<String>)>,
    predicates: Vec<Predicate>,
    skip: u64,
    times: Option<u64>,
}

impl RequestMatch {
    /// Any request, once.
    pub fn any() -> Self {
        Self {
            verb: None,
            resource: None,
            namespace: None,
            parameters: Vec::new(),
            predicates: Vec::new(),
            skip: 0,
            times: Some(1),
        }
    }

    /// Any watch, once.
    pub fn watch() -> Self {
        Self::any().verb(Verb::Watch)
    }

    /// Any list, once.
    pub fn list() -> Self {
        Self::any().verb(Verb::List)
    }

    /// Any watch that begins with a snapshot by `sendInitialEvents`, once.
    pub fn streaming_list() -> Self {
        Self::any().filter(ReceivedRequest::is_streaming_list)
    }

    /// Any watch that goes on from a version, once.
    pub fn resumed_watch() -> Self {
        Self::watch().filter(|request| {
            !request.is_streaming_list()
                && request
                    .parameter("resourceVersion")
                    .is_some_and(|version| !version.is_empty() && version != "0")
        })
    }

    /// With this verb.
    #[must_use]
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    /// Of this resource: `configmaps`, `deployments.apps`.
    #[must_use]
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// In this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// With a query parameter of this name.
    #[must_use]
    pub fn with_parameter(mut self, name: impl Into<String>) -> Self {
        self.parameters.push((name.into(), None));
        self
    }

    /// With a query parameter of this name and value.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.push((name.into(), Some(value.into())));
        self
    }

    /// That satisfies this.
    #[must_use]
    pub fn filter(mut self, predicate: impl Fn(&ReceivedRequest) -> bool + Send + Sync + 'static) -> Self {
        self.predicates.push(Arc::new(predicate));
        self
    }

    /// Leaves out the first `requests` that match.
    #[must_use]
    pub fn skip(mut self, requests: u64) -> Self {
        self.skip = requests;
        self
    }

    /// The `nth` that matches, counted from 1.
    #[must_use]
    pub fn nth(self, nth: u64) -> Self {
        self.skip(nth.saturating_sub(1))
    }

    /// So many requests, instead of one.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// All that match, instead of one.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.times = None;
        self
    }

    pub(crate) fn matches(&self, request: &ReceivedRequest) -> bool {
        self.verb.is_none_or(|verb| verb == request.verb())
            && self.resource.as_ref().is_none_or(|resource| {
                *resource == crate::resource::qualified(request.resource(), request.group())
            })
            && self
                .namespace
                .as_ref()
                .is_none_or(|namespace| namespace == request.namespace())
            && self
                .parameters
                .iter()
                .all(|(name, wanted)| match (request.parameter(name), wanted) {
                    (None, _) => false,
                    (Some(_), None) => true,
                    (Some(value), Some(wanted)) => value == wanted,
                })
            && self.predicates.iter().all(|predicate| predicate(request))
    }

    /// Whether the `seen`th match is meant.
    pub(super) fn is_due(&self, seen: u64) -> bool {
        seen > self.skip
    }

    /// Whether all requests that were meant have come.
    pub(super) fn is_used_up(&self, hits: u64) -> bool {
        self.times.is_some_and(|times| hits >= times)
    }
}

impl fmt::Debug for RequestMatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RequestMatch")
            .field("verb", &self.verb)
            .field("resource", &self.resource)
            .field("namespace", &self.namespace)
            .field("parameters", &self.parameters)
            .field("predicates", &self.predicates.len())
            .field("skip", &self.skip)
            .field("times", &self.times)
            .finish()
    }
}
