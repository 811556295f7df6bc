//! Parsing a scope request: what is accepted is canonical and legal, and what must be refused is.

use std::collections::BTreeSet;

use krm_stream_protocol::{LabelSelector, Scope, ScopeError, ScopeRequest};

/// Parameters of which a scope is made.
const KNOWN: [&str; 8] = [
    "target",
    "group",
    "version",
    "resource",
    "namespace",
    "name",
    "labelSelector",
    "projection",
];

/// Parameters that are refused in any case.
const REFUSED: [&str; 8] = [
    "server",
    "apiserver",
    "api-server",
    "url",
    "endpoint",
    "kubeconfig",
    "token",
    "fieldselector",
];

/// The longest sentence about a refusal, in bytes: no part of the request is repeated in it.
const LONGEST_REFUSAL: usize = 300;

/// Checks [`ScopeRequest::parse`] and [`LabelSelector::parse`].
///
/// # Panics
/// When a rule does not hold.
pub fn scope_parse(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    selector(text);
    let parsed = ScopeRequest::parse(text);
    if must_be_refused(text) {
        assert!(parsed.is_err(), "must be refused");
    }
    // Which of several faults is named may depend on the order; whether it is refused may not.
    let reversed: Vec<&str> = text.split('&').rev().collect();
    let reversed = ScopeRequest::parse(&reversed.join("&"));
    match parsed {
        Ok(request) => {
            assert_eq!(Ok(&request), reversed.as_ref(), "any order is the same request");
            accepted(&request);
        }
        Err(error) => {
            assert!(reversed.is_err(), "refused in one order only");
            refused(error);
        }
    }
}

fn refused(error: ScopeError) {
    let sentence = error.to_string();
    assert!(
        sentence.len() <= LONGEST_REFUSAL && sentence.is_ascii(),
        "{sentence}"
    );
}

fn accepted(request: &ScopeRequest) {
    let canonical = request.canonical_query();
    let again = ScopeRequest::parse(&canonical);
    assert_eq!(
        again.as_ref(),
        Ok(request),
        "the canonical query is the same request"
    );
    assert_eq!(again.map(|again| again.canonical_query()), Ok(canonical.clone()));
    assert!(
        canonical
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~%=&".contains(&byte)),
        "{canonical}"
    );
    let scope = request.scope();
    assert!(canonical.starts_with(&scope.canonical_query()));
    path(scope);
    field_selector(scope);
    json(scope);
}

/// Nothing of a scope can reach another path than that of its own resource.
fn path(scope: &Scope) {
    let path = scope.api_path();
    let segments: Vec<&str> = path.split('/').collect();
    for segment in &segments[1..] {
        assert!(!segment.is_empty() && segment.len() <= 253, "{path}");
        let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
        assert!(segment.bytes().all(legal), "{path}");
        assert!(
            !segment.starts_with(['-', '.']) && !segment.ends_with(['-', '.']),
            "{path}"
        );
    }
    for label in scope
        .namespace()
        .into_iter()
        .chain([scope.version(), scope.resource()])
    {
        assert!(label.len() <= 63 && !label.contains('.'), "{path}");
    }
    let mut expected = match scope.group() {
        Some(group) => vec!["", "apis", group],
        None => vec!["", "api"],
    };
    expected.push(scope.version());
    expected.extend(
        scope
            .namespace()
            .iter()
            .flat_map(|namespace| ["namespaces", *namespace]),
    );
    expected.push(scope.resource());
    assert_eq!(segments, expected);
}

/// Read by [the rules of field selectors][rules], it is one requirement, for exactly the name.
///
/// [rules]: https://pkg.go.dev/k8s.io/apimachinery/pkg/fields#ParseSelector
fn field_selector(scope: &Scope) {
    let Some(selector) = scope.field_selector() else {
        assert!(scope.name().is_none());
        return;
    };
    let value = selector.strip_prefix("metadata.name=").map(str::chars);
    let mut name = String::new();
    let mut value = value.into_iter().flatten();
    while let Some(character) = value.next() {
        assert!(!matches!(character, ',' | '='), "a second term: {selector}");
        name.push(if character == '\\' {
            let escaped = value.next();
            assert!(matches!(escaped, Some('\\' | ',' | '=')), "{selector}");
            escaped.unwrap_or_default()
        } else {
            character
        });
    }
    assert_eq!(Some(&*name), scope.name());
    assert!(
        !matches!(&*name, "" | "." | "..") && !name.contains(['/', '%']),
        "{name:?}"
    );
    assert!(!name.chars().any(char::is_control), "{name:?}");
}

/// As it stands on a `reset`.
fn json(scope: &Scope) {
    let written = serde_json::to_value(scope).unwrap_or_default();
    let text = |field: &str| written[field].as_str();
    assert_eq!(text("target"), Some(scope.target().as_str()));
    assert_eq!(text("group"), scope.group());
    assert_eq!(text("version"), Some(scope.version()));
    assert_eq!(text("resource"), Some(scope.resource()));
    assert_eq!(text("namespace"), scope.namespace());
    assert_eq!(text("name"), scope.name());
    assert_eq!(
        text("labelSelector"),
        scope.label_selector().map(LabelSelector::as_str)
    );
}

/// Whether the query breaks one of the rules that a plain reading of it shows: a parameter twice, empty, in another
/// case or missing, or one that names a server.
fn must_be_refused(query: &str) -> bool {
    let mut seen = BTreeSet::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let Some(name) = plain(name) else { return true };
        let lower = name.to_ascii_lowercase();
        if REFUSED.contains(&&*lower) {
            return true;
        }
        let Some(known) = KNOWN.iter().find(|known| known.eq_ignore_ascii_case(&lower)) else {
            continue;
        };
        if **known != name || plain(value).is_none_or(|value| value.is_empty()) || !seen.insert(name) {
            return true;
        }
    }
    !(seen.contains("version") && seen.contains("resource"))
}

/// Decodes form encoding; `None` where it is not valid.
fn plain(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = rest
                    .get(..2)
                    .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
                bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
                rest = &rest[2..];
            }
            byte => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).ok()
}

/// The canonical spelling of a selector is one, and the same for every order of its requirements.
fn selector(text: &str) {
    let Ok(selector) = LabelSelector::parse(text) else {
        return;
    };
    assert_eq!(LabelSelector::parse(selector.as_str()).as_ref(), Ok(&selector));
    let spaced = format!(" {} ", selector.as_str().replace(',', " , "));
    assert_eq!(LabelSelector::parse(&spaced).as_ref(), Ok(&selector));
    if !selector.as_str().contains('(') {
        let reversed: Vec<&str> = selector.as_str().split(',').rev().collect();
        assert_eq!(LabelSelector::parse(&reversed.join(",")).as_ref(), Ok(&selector));
    }
}
