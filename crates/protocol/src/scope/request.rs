//! What a browser asks for: the query of a request, parsed strictly.

use std::borrow::Cow;

use super::query::{self, Decoded};
use super::{Scope, ScopeBuilder, ScopeError, ScopeField};
use crate::ProjectionName;

/// Parameters that would name an API server or a credential; refused in any case, never ignored.
const REFUSED: [&str; 7] = [
    "server",
    "apiserver",
    "api-server",
    "url",
    "endpoint",
    "kubeconfig",
    "token",
];

/// The longest name of a projection that is taken, in bytes.
const PROJECTION_NAME_BYTES: usize = 253;

/// A scope and the projection that were asked for.
///
/// ```
/// use krm_stream_protocol::ScopeRequest;
///
/// let request = ScopeRequest::parse("resource=pods&version=v1&namespace=shop&labelSelector=tier%3Dweb&tab=7")?;
/// assert_eq!(request.scope().namespace(), Some("shop"));
/// assert_eq!(
///     request.scope().canonical_query(),
///     "version=v1&resource=pods&namespace=shop&labelSelector=tier%3Dweb",
/// );
/// assert!(ScopeRequest::parse("version=v1&resource=pods/log").is_err());
/// # Ok::<(), krm_stream_protocol::ScopeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeRequest {
    scope: Scope,
    projection: Option<ProjectionName>,
}

impl ScopeRequest {
    /// Parses a query: what stands after the `?` of a request, in [form encoding][form], where `+` is a space.
    ///
    /// Unknown parameters are the host's and are tolerated, repeated or not. A name that differs from a known one by
    /// case alone is refused: to ignore `Namespace=shop` would widen the scope to all namespaces.
    ///
    /// # Errors
    /// [`ScopeError`] for anything that is not exactly a legal scope; nothing is repaired or defaulted.
    ///
    /// [form]: https://url.spec.whatwg.org/#urlencoded-parsing
    pub fn parse(query: &str) -> Result<Self, ScopeError> {
        let mut given = Given::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = query::decode(name).ok_or(ScopeError::UndecodableName)?;
            if let Some(field) = known_field(&name)? {
                given.take(field, value, &name)?;
            }
        }
        given.into_request()
    }

    /// The scope.
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The projection that was asked for; granting it is the host's decision.
    pub const fn projection(&self) -> Option<&ProjectionName> {
        self.projection.as_ref()
    }

    /// The canonical query of the request: that of the scope, then `projection` if one was asked for.
    pub fn canonical_query(&self) -> String {
        let mut canonical = self.scope.canonical_query();
        if let Some(projection) = &self.projection {
            query::push(&mut canonical, ScopeField::Projection, projection.as_str());
        }
        canonical
    }

    /// Takes the request apart.
    pub fn into_parts(self) -> (Scope, Option<ProjectionName>) {
        (self.scope, self.projection)
    }
}

/// Which known parameter a name is; `None` for one of the host's.
fn known_field(name: &Decoded<'_>) -> Result<Option<ScopeField>, ScopeError> {
    if let Some(refused) = REFUSED
        .into_iter()
        .find(|refused| name.text.eq_ignore_ascii_case(refused))
    {
        return Err(ScopeError::Address(refused));
    }
    if name.text.eq_ignore_ascii_case("fieldSelector") {
        return Err(ScopeError::FieldSelector);
    }
    match ScopeField::ALL
        .into_iter()
        .find(|field| name.text.eq_ignore_ascii_case(field.as_str()))
    {
        Some(field) if name.text == field.as_str() => Ok(Some(field)),
        Some(field) => Err(ScopeError::Misspelled(field)),
        None => Ok(None),
    }
}

/// Sets one optional part of a scope.
type Setter = fn(ScopeBuilder, Box<str>) -> ScopeBuilder;

/// The values found so far, one place for each known parameter.
#[derive(Default)]
struct Given<'a> {
    values: [Option<Cow<'a, str>>; ScopeField::ALL.len()],
}

impl<'a> Given<'a> {
    fn take(&mut self, field: ScopeField, value: &'a str, name: &Decoded<'_>) -> Result<(), ScopeError> {
        let value = query::decode(value).ok_or(ScopeError::Undecodable(field))?;
        if name.is_disguised || value.is_disguised {
            return Err(ScopeError::Disguised(field));
        }
        if value.text.is_empty() {
            return Err(ScopeError::Empty(field));
        }
        let place = &mut self.values[field as usize];
        if place.is_some() {
            return Err(ScopeError::Repeated(field));
        }
        *place = Some(value.text);
        Ok(())
    }

    fn value(&mut self, field: ScopeField) -> Option<Box<str>> {
        self.values[field as usize]
            .take()
            .map(|value| value.into_owned().into_boxed_str())
    }

    fn into_request(mut self) -> Result<ScopeRequest, ScopeError> {
        let version = self
            .value(ScopeField::Version)
            .ok_or(ScopeError::Missing(ScopeField::Version))?;
        let resource = self
            .value(ScopeField::Resource)
            .ok_or(ScopeError::Missing(ScopeField::Resource))?;
        let mut builder = Scope::builder(version, resource);
        let setters: [(ScopeField, Setter); 5] = [
            (ScopeField::Target, |builder, text| builder.target(&*text)),
            (ScopeField::Group, ScopeBuilder::group),
            (ScopeField::Namespace, ScopeBuilder::namespace),
            (ScopeField::Name, ScopeBuilder::name),
            (ScopeField::LabelSelector, ScopeBuilder::label_selector),
        ];
        for (field, set) in setters {
            if let Some(value) = self.value(field) {
                builder = set(builder, value);
            }
        }
        let projection = self.value(ScopeField::Projection);
        if projection
            .as_deref()
            .is_some_and(|name| !is_projection_name(name))
        {
            return Err(ScopeError::InvalidProjection);
        }
        Ok(ScopeRequest {
            scope: builder.build()?,
            projection: projection.as_deref().map(ProjectionName::from),
        })
    }
}

/// Hosts choose the names of their projections freely; only what no name can be is refused here.
fn is_projection_name(text: &str) -> bool {
    text.len() <= PROJECTION_NAME_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests;
