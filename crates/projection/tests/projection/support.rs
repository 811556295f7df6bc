//! Objects in, frames out, and readers of both that share no code with the crate.

use bytes::Bytes;
use krm_stream_projection::{DigestKey, Projected, Projection, Revisions, Upsert};
use krm_stream_protocol::{Object, Scope};

pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

pub(crate) fn key() -> DigestKey {
    DigestKey::new([42; 32])
}

pub(crate) fn scope_of(group: &str, version: &str, resource: &str) -> Scope {
    let mut builder = Scope::builder(version, resource);
    if !group.is_empty() {
        builder = builder.group(group);
    }
    builder.build().unwrap()
}

pub(crate) fn secrets() -> Scope {
    scope_of("", "v1", "secrets")
}

pub(crate) fn config_maps() -> Scope {
    scope_of("", "v1", "configmaps")
}

pub(crate) fn widgets() -> Scope {
    scope_of("example.io", "v1", "widgets")
}

pub(crate) fn project(projection: &Projection, scope: &Scope, text: impl AsRef<[u8]>) -> Projected {
    let object = Object::parse(Bytes::copy_from_slice(text.as_ref())).unwrap();
    projection.project(scope, &object, &key()).unwrap()
}

/// The projected object's text.
pub(crate) fn projected_text(projection: &Projection, scope: &Scope, text: impl AsRef<[u8]>) -> String {
    String::from_utf8(project(projection, scope, text).object().to_vec()).unwrap()
}

/// A whole frame on a connection.
pub(crate) fn frame(revisions: &mut Revisions, seq: u64, upsert: Upsert, projected: &Projected) -> String {
    let mut out = Vec::new();
    projected.write_prefix(seq, upsert, &mut out);
    out.extend_from_slice(projected.tail());
    revisions.write_redacted(projected, &mut out);
    String::from_utf8(out).unwrap()
}

/// A whole frame on a new connection.
pub(crate) fn first_frame(projection: &Projection, scope: &Scope, text: impl AsRef<[u8]>) -> String {
    frame(
        &mut Revisions::new(),
        1,
        Upsert::Added,
        &project(projection, scope, text),
    )
}

/// The end of a frame: what it says of redactions.
pub(crate) fn redacted_of(frame: &str) -> &str {
    let at = frame.rfind(",\"redacted\":").unwrap();
    frame[at + ",\"redacted\":".len()..]
        .strip_suffix("}\n\n")
        .unwrap()
}

/// Decodes an event stream as browsers do, data only. See
/// <https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation>.
pub(crate) fn sse_data(stream: &str) -> Vec<String> {
    let lines = stream.replace("\r\n", "\n").replace('\r', "\n");
    let (mut events, mut data) = (Vec::new(), String::new());
    // What follows the last line end is an incomplete line.
    let complete = lines.rfind('\n').map_or("", |end| &lines[..end]);
    for line in complete.split('\n') {
        if line.is_empty() {
            if let Some(whole) = data.strip_suffix('\n') {
                events.push(whole.to_owned());
            }
            data.clear();
        } else if let Some(value) = line.strip_prefix("data:") {
            data.push_str(value.strip_prefix(' ').unwrap_or(value));
            data.push('\n');
        }
    }
    events
}

/// The tokens of a JSON text, each as it is spelled.
pub(crate) fn tokens(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        at += 1;
        match bytes[start] {
            b' ' | b'\t' | b'\r' | b'\n' => continue,
            b'{' | b'}' | b'[' | b']' | b',' | b':' => {}
            b'"' => {
                while bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            _ => {
                while at < bytes.len() && !b" \t\r\n{}[],:\"".contains(&bytes[at]) {
                    at += 1;
                }
            }
        }
        tokens.push(&text[start..at]);
    }
    tokens
}

/// Whether `few` are among `many`, in order.
pub(crate) fn is_subsequence(few: &[&str], many: &[&str]) -> bool {
    let mut many = many.iter();
    few.iter().all(|token| many.any(|candidate| candidate == token))
}

/// A JSON text as a tree that forgets nothing but white space: keys and scalars as they are spelled, duplicates kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    Scalar(String),
    Object(Vec<(String, Self)>),
    Array(Vec<Self>),
}

impl Tree {
    pub(crate) fn read(text: &str) -> Self {
        let tokens = tokens(text);
        let mut at = 0;
        let tree = Self::read_at(&tokens, &mut at);
        assert_eq!(at, tokens.len(), "something follows the value");
        tree
    }

    fn read_at(tokens: &[&str], at: &mut usize) -> Self {
        let token = tokens[*at];
        *at += 1;
        match token {
            "{" => {
                let mut members = Vec::new();
                while tokens[*at] != "}" {
                    if !members.is_empty() {
                        assert_eq!(tokens[*at], ",");
                        *at += 1;
                    }
                    let key = tokens[*at].to_owned();
                    assert!(key.starts_with('"'));
                    assert_eq!(tokens[*at + 1], ":");
                    *at += 2;
                    members.push((key, Self::read_at(tokens, at)));
                }
                *at += 1;
                Self::Object(members)
            }
            "[" => {
                let mut elements = Vec::new();
                while tokens[*at] != "]" {
                    if !elements.is_empty() {
                        assert_eq!(tokens[*at], ",");
                        *at += 1;
                    }
                    elements.push(Self::read_at(tokens, at));
                }
                *at += 1;
                Self::Array(elements)
            }
            scalar => {
                assert!(![",", ":", "}", "]"].contains(&scalar), "stray {scalar}");
                Self::Scalar(scalar.to_owned())
            }
        }
    }

    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Self::Scalar(text) => out.push_str(text),
            Self::Object(members) => {
                out.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    out.push_str(key);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
            Self::Array(elements) => {
                out.push('[');
                for (index, value) in elements.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    value.write(out);
                }
                out.push(']');
            }
        }
    }
}

/// A key's meaning, by its spelling with quotes. Exact for the keys that rules name; others need only differ from them.
pub(crate) fn key_means(spelling: &str) -> String {
    serde_json::from_str(spelling).unwrap_or_else(|_| spelling.to_owned())
}

/// What a projection should do, said once more over a tree: the built-in rules only.
pub(crate) struct Reference {
    pub(crate) withholds_secrets: bool,
    pub(crate) removes_status: bool,
    pub(crate) scope_is_secrets: bool,
}

impl Reference {
    /// The projected tree, and the plain paths of what is withheld.
    pub(crate) fn project(&self, object: &Tree) -> (Tree, Vec<String>) {
        let Tree::Object(members) = object else {
            panic!("no object")
        };
        let says_secret = |(key, value): &(String, Tree)| match value {
            Tree::Scalar(kind) => {
                key_means(key) == "kind" && kind.starts_with('"') && key_means(kind) == "Secret"
            }
            Tree::Object(_) | Tree::Array(_) => false,
        };
        let is_secret = self.withholds_secrets && (self.scope_is_secrets || members.iter().any(says_secret));
        let mut kept = Vec::new();
        let mut withheld = Vec::new();
        for (key, value) in members {
            match &*key_means(key) {
                "status" if self.removes_status => {}
                field @ ("data" | "stringData" | "binaryData") if is_secret => match value {
                    Tree::Scalar(null) if null == "null" => kept.push((key.clone(), value.clone())),
                    Tree::Object(values) if values.is_empty() => kept.push((key.clone(), value.clone())),
                    Tree::Object(values) => {
                        let path = |name: &String| {
                            let name = key_means(name).replace('~', "~0").replace('/', "~1");
                            format!("/{field}/{name}")
                        };
                        withheld.extend(values.iter().map(|(name, _)| path(name)));
                    }
                    Tree::Scalar(_) | Tree::Array(_) => withheld.push(format!("/{field}")),
                },
                "metadata" => {
                    if let Some(value) = without(value, &|name, value| match name {
                        "managedFields" => None,
                        "annotations" => without(value, &|name, value| {
                            (name != LAST_APPLIED).then(|| value.clone())
                        }),
                        _ => Some(value.clone()),
                    }) {
                        kept.push((key.clone(), value));
                    }
                }
                _ => kept.push((key.clone(), value.clone())),
            }
        }
        withheld.sort();
        withheld.dedup();
        (Tree::Object(kept), withheld)
    }
}

/// An object with its members mapped; `None` if that leaves nothing of something.
fn without(value: &Tree, keep: &dyn Fn(&str, &Tree) -> Option<Tree>) -> Option<Tree> {
    let Tree::Object(members) = value else {
        return Some(value.clone());
    };
    let kept: Vec<_> = members
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), keep(&key_means(key), value)?)))
        .collect();
    (members.is_empty() || !kept.is_empty()).then_some(Tree::Object(kept))
}
