//! A request as the simulator received it: what was asked of which resource.

use http::{HeaderMap, HeaderValue, Method, header, request::Parts};
use percent_encoding::percent_decode_str;

use crate::{access::Attributes, resource::ResourceKey, selector::FieldSelector};

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Watches a collection or an object.
    Watch,
    /// Creates an object; a review is one too.
    Create,
    /// Replaces an object.
    Update,
    /// Patches an object.
    Patch,
    /// Deletes an object.
    Delete,
    /// Deletes the objects of a collection.
    DeleteCollection,
    /// Anything that is not about a resource: `/readyz`, `/version`, discovery.
    NonResource,
}

impl Verb {
    /// The verb of Kubernetes' authorization; for a non-resource request the method.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get | Self::NonResource => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// A request, without its body. The value of `Authorization` is replaced by its length.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    method: Method,
    path: String,
    raw_query: String,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    verb: Verb,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

impl ReceivedRequest {
    pub(crate) fn new(parts: &Parts) -> Self {
        let raw_query = parts.uri.query().unwrap_or_default().to_owned();
        let mut request = Self {
            method: parts.method.clone(),
            path: parts.uri.path().to_owned(),
            query: parse_query(&raw_query),
            raw_query,
            headers: without_credentials(&parts.headers),
            verb: Verb::NonResource,
            group: String::new(),
            version: String::new(),
            resource: String::new(),
            subresource: String::new(),
            namespace: String::new(),
            name: String::new(),
        };
        request.read_path();
        request
    }

    /// The method.
    pub fn method(&self) -> &str {
        self.method.as_str()
    }

    /// The path as it was sent.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The query as it was sent, without `?`.
    pub fn query(&self) -> &str {
        &self.raw_query
    }

    /// The first value of a query parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// The headers; `authorization` is `(N bytes)`.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The verb.
    pub fn verb(&self) -> Verb {
        self.verb
    }

    /// The API group; empty for the core group, and for a non-resource request.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The plural name of the resource; empty for a non-resource request.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The subresource; empty without one.
    pub fn subresource(&self) -> &str {
        &self.subresource
    }

    /// The namespace; empty for a cluster-scoped resource, and across all namespaces.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name in the path; empty for a collection.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is a watch that asks for a snapshot first, by a streaming list.
    pub fn is_streaming_list(&self) -> bool {
        self.verb == Verb::Watch && self.parameter("sendInitialEvents").is_some_and(is_true)
    }

    pub(crate) fn key(&self) -> ResourceKey {
        ResourceKey {
            group: self.group.clone(),
            version: self.version.clone(),
            plural: self.resource.clone(),
        }
    }

    /// What it must be allowed to do. A field selector for one name counts as that name, as it does in Kubernetes.
    pub(crate) fn attributes(&self) -> Attributes {
        let selected = || {
            let selector = FieldSelector::parse(self.parameter("fieldSelector")?).ok()?;
            selector.name().map(str::to_owned)
        };
        let name = match self.verb {
            Verb::List | Verb::Watch | Verb::DeleteCollection if self.name.is_empty() => {
                selected().unwrap_or_default()
            }
            Verb::Create => String::new(),
            Verb::Get
            | Verb::List
            | Verb::Watch
            | Verb::Update
            | Verb::Patch
            | Verb::Delete
            | Verb::DeleteCollection
            | Verb::NonResource => self.name.clone(),
        };
        Attributes {
            verb: self.verb.as_str().to_owned(),
            group: self.group.clone(),
            resource: self.resource.clone(),
            subresource: self.subresource.clone(),
            namespace: self.namespace.clone(),
            name,
        }
    }

    /// Reads `/api/V/…` and `/apis/G/V/…` as `RequestInfoFactory` of `k8s.io/apiserver` does.
    fn read_path(&mut self) {
        let path = self.path.clone();
        let segments: Vec<String> = path
            .split('/')
            .skip(1)
            .map(|segment| percent_decode_str(segment).decode_utf8_lossy().into_owned())
            .collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (group, version, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return,
        };
        let rest = rest.strip_suffix(&[""]).unwrap_or(rest);
        let (namespace, rest) = match rest {
            ["namespaces", namespace, resource, rest @ ..] if !matches!(*resource, "status" | "finalize") => {
                (*namespace, [&[*resource], rest].concat())
            }
            // A namespace is in itself: RBAC of its own objects may be asked for it.
            ["namespaces", namespace, ..] => (*namespace, rest.to_vec()),
            _ => ("", rest.to_vec()),
        };
        let (resource, name, subresource) = match rest.as_slice() {
            [resource] => (*resource, "", ""),
            [resource, name] => (*resource, *name, ""),
            [resource, name, subresource] => (*resource, *name, *subresource),
            _ => return,
        };
        group.clone_into(&mut self.group);
        version.clone_into(&mut self.version);
        resource.clone_into(&mut self.resource);
        subresource.clone_into(&mut self.subresource);
        namespace.clone_into(&mut self.namespace);
        name.clone_into(&mut self.name);
        self.verb = self.verb_of();
    }

    fn verb_of(&self) -> Verb {
        let collection = self.name.is_empty();
        match self.method.as_str() {
            "GET" | "HEAD" if self.parameter("watch").is_some_and(is_true) => Verb::Watch,
            "GET" | "HEAD" if collection => Verb::List,
            "GET" | "HEAD" => Verb::Get,
            "POST" => Verb::Create,
            "PUT" => Verb::Update,
            "PATCH" => Verb::Patch,
            "DELETE" if collection => Verb::DeleteCollection,
            "DELETE" => Verb::Delete,
            _ => Verb::NonResource,
        }
    }
}

/// A boolean parameter as Kubernetes converts it: anything but `false` and `0` is true, the empty value included
/// (`Convert_Slice_string_To_bool` of `k8s.io/apimachinery`).
pub(crate) fn is_true(value: &str) -> bool {
    !matches!(value.to_ascii_lowercase().as_str(), "false" | "0")
}

fn parse_query(query: &str) -> Vec<(String, String)> {
    let decode = |text: &str| {
        percent_decode_str(&text.replace('+', " "))
            .decode_utf8_lossy()
            .into_owned()
    };
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key), decode(value))
        })
        .collect()
}

fn without_credentials(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    if let Some(value) = headers.get_mut(header::AUTHORIZATION) {
        let length = format!("({} bytes)", value.len());
        *value = HeaderValue::from_str(&length).unwrap_or(HeaderValue::from_static("(withheld)"));
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(method: &str, uri: &str) -> ReceivedRequest {
        let request = http::Request::builder()
            .method(method)
            .uri(uri)
            .header("authorization", "Bearer secret");
        ReceivedRequest::new(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn paths_name_resources_scopes_and_subresources() {
        for (asked, understood) in [
            ("GET /api/v1/configmaps", "List  configmaps [] []"),
            ("GET /api/v1/namespaces", "List  namespaces [] []"),
            ("GET /api/v1/namespaces/a", "Get  namespaces [a] [a]"),
            (
                "PATCH /api/v1/namespaces/a/status",
                "Patch  namespaces/status [a] [a]",
            ),
            ("GET /api/v1/namespaces/a/pods?watch=1", "Watch  pods [a] []"),
            ("GET /api/v1/namespaces/a/pods?watch=false", "List  pods [a] []"),
            ("GET /api/v1/namespaces/a/pods/b?watch", "Watch  pods [a] [b]"),
            (
                "DELETE /apis/apps/v1/namespaces/a/deployments",
                "DeleteCollection apps deployments [a] []",
            ),
            (
                "DELETE /apis/apps/v1/namespaces/a/deployments/b",
                "Delete apps deployments [a] [b]",
            ),
            (
                "PUT /apis/x.y/v1/things/a%3Ab/status",
                "Update x.y things/status [] [a:b]",
            ),
            ("POST /apis/x.y/v1/things", "Create x.y things [] []"),
            ("GET /readyz", "NonResource   [] []"),
            ("GET /apis/apps", "NonResource   [] []"),
            ("GET /apis/apps/v1", "NonResource   [] []"),
        ] {
            let (method, uri) = asked.split_once(' ').unwrap();
            let request = received(method, uri);
            let subresource = match request.subresource() {
                "" => String::new(),
                subresource => format!("/{subresource}"),
            };
            let resource = format!("{}{subresource}", request.resource());
            let (namespace, name) = (request.namespace(), request.name());
            let got = format!(
                "{:?} {} {resource} [{namespace}] [{name}]",
                request.verb(),
                request.group()
            );
            assert_eq!(got, understood, "{asked}");
        }
    }

    #[test]
    fn parameters_are_decoded_and_credentials_are_withheld() {
        let request = received("GET", "/api/v1/pods?labelSelector=a%3Db,c+in+(d)&watch");
        assert_eq!(request.parameter("labelSelector"), Some("a=b,c in (d)"));
        assert_eq!(request.verb(), Verb::Watch);
        assert_eq!(request.headers()["authorization"], "(13 bytes)");
        assert!(!format!("{request:?}").contains("secret"));
    }
}
