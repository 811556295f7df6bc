//! The projections once more, as plain lists of paths, and what follows from them for a tree.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use krm_stream_projection::{Applies, GroupResource, Projection};
use krm_stream_protocol::Scope;
use serde_json::Value;

use super::document::{Document, units};

/// What happens at the end of a path. The stronger comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Action {
    Remove,
    Redact,
    RedactValues,
}

/// For which objects a path counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    All,
    Secrets,
    Vaults,
}

/// A path, of which `*` is any member or element, and what happens there.
pub(super) type Rule = (&'static [&'static str], Action);

/// A projection, and the rules that it should have.
#[derive(Debug)]
pub(super) struct Reference {
    pub(super) projection: Arc<Projection>,
    rules: Vec<(For, Rule)>,
}

/// A scope of each kind that rules tell apart.
#[derive(Debug)]
pub(super) struct Scopes {
    pub(super) secrets: Scope,
    pub(super) config_maps: Scope,
    pub(super) vaults: Scope,
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const KAPP: &str = "kapp.k14s.io/original";

const RAW: [(For, Rule); 2] = [
    (For::All, (&["metadata", "managedFields"], Action::Remove)),
    (
        For::All,
        (&["metadata", "annotations", LAST_APPLIED], Action::Remove),
    ),
];
const FULL: [(For, Rule); 3] = [
    (For::Secrets, (&["data"], Action::RedactValues)),
    (For::Secrets, (&["stringData"], Action::RedactValues)),
    (For::Secrets, (&["binaryData"], Action::RedactValues)),
];
const SPEC: [(For, Rule); 1] = [(For::All, (&["status"], Action::Remove))];

/// A host's own, with a path of each form.
const HOST: [(For, Rule); 9] = [
    (For::All, (&["spec", "password"], Action::Redact)),
    (For::All, (&["spec", "list", "1"], Action::Remove)),
    (For::All, (&["spec", "values"], Action::RedactValues)),
    (For::All, (&["spec", "values", "drop"], Action::Remove)),
    (For::All, (&["spec", "*", "x"], Action::Redact)),
    (For::All, (&["spec", "a/b~c", "*"], Action::Redact)),
    (For::All, (&["status", "*", "noise"], Action::Remove)),
    (For::Secrets, (&["data", "drop"], Action::Remove)),
    (For::Vaults, (&["spec", "items", "*", "secret"], Action::Redact)),
];

/// Every projection that is checked.
pub(super) static REFERENCES: LazyLock<Vec<Reference>> = LazyLock::new(|| {
    let raw = RAW.to_vec();
    let full = [raw.clone(), FULL.to_vec()].concat();
    let spec = [full.clone(), SPEC.to_vec()].concat();
    let kapp: (For, Rule) = (For::All, (&["metadata", "annotations", KAPP], Action::Remove));
    let host = [full.clone(), HOST.to_vec(), vec![kapp]].concat();
    let reference = |projection, rules| Reference { projection, rules };
    let mut references = vec![
        reference(Projection::raw(), raw),
        reference(Projection::full(), full),
        reference(Projection::spec(), spec),
    ];
    let mut builder = Projection::define("host/v1").remove_annotation(Applies::ToAll, KAPP);
    for (applies, (path, action)) in HOST {
        let applies = match applies {
            For::All => Applies::ToAll,
            For::Secrets => Applies::ToSecrets,
            For::Vaults => GroupResource::new("example.io", "vaults").into(),
        };
        let path = pointer(path.iter().copied());
        builder = match action {
            Action::Remove => builder.remove_path(applies, &path),
            Action::Redact => builder.redact_path(applies, &path),
            Action::RedactValues => builder.redact_values(applies, &path),
        };
    }
    references.extend(
        builder
            .build()
            .map(|projection| reference(Arc::new(projection), host)),
    );
    assert_eq!(references.len(), 4, "the host's projection is legal");
    references
});

/// The scopes that are checked.
pub(super) static SCOPES: LazyLock<Option<Scopes>> = LazyLock::new(|| {
    Some(Scopes {
        secrets: Scope::builder("v1", "secrets").build().ok()?,
        config_maps: Scope::builder("v1", "configmaps").build().ok()?,
        vaults: Scope::builder("v1", "vaults").group("example.io").build().ok()?,
    })
});

impl Reference {
    /// The rules for an object of `scope`; `says_secret` is whether it calls itself a Secret.
    pub(super) fn rules_for(&self, scope: &Scope, says_secret: bool) -> Vec<Rule> {
        let is_secret = says_secret || (scope.group().is_none() && scope.resource() == "secrets");
        let is_vault = scope.group() == Some("example.io") && scope.resource() == "vaults";
        let counts = |applies| match applies {
            For::All => true,
            For::Secrets => is_secret,
            For::Vaults => is_vault,
        };
        let rules = self.rules.iter().filter(|(applies, _)| counts(*applies));
        rules.map(|(_, rule)| *rule).collect()
    }
}

/// Whether any `kind` of the document is `Secret`.
pub(super) fn says_secret(document: &Document) -> bool {
    document.all("kind").any(|kind| kind.is("Secret"))
}

/// The strongest of the rules that end here.
pub(super) fn action_here(rules: &[Rule]) -> Option<Action> {
    let here = rules.iter().filter(|(path, _)| path.is_empty());
    here.map(|(_, action)| *action).min()
}

/// The rules that go on below a member or element of this name, which is in UTF-16.
pub(super) fn rules_below(rules: &[Rule], name: &[u16]) -> Vec<Rule> {
    let is_name = |token: &str| token == "*" || token.encode_utf16().eq(name.iter().copied());
    rules
        .iter()
        .filter_map(|(path, action)| {
            let (first, rest) = path.split_first()?;
            is_name(first).then_some((rest, *action))
        })
        .collect()
}

/// A place in a document, as the code points of a JSON pointer; a lone surrogate stands for itself.
pub(super) type Place = Vec<u32>;

/// Appends a name to a place.
pub(super) fn push_name(place: &mut Place, name: &[u16]) {
    place.push(u32::from('/'));
    for unit in char::decode_utf16(name.iter().copied()) {
        match unit {
            Ok('~') => place.extend("~0".chars().map(u32::from)),
            Ok('/') => place.extend("~1".chars().map(u32::from)),
            Ok(character) => place.push(u32::from(character)),
            Err(lone) => place.push(u32::from(lone.unpaired_surrogate())),
        }
    }
}

/// What a walk does with what must not be seen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Gone<'a> {
    /// It takes it out, as a projection does.
    Taken,
    /// It puts this token in its place, and leaves all else.
    ReplacedBy(&'a str),
    /// The same for one of the values that are withheld, counted from 0, and for nothing else.
    OneReplacedBy(&'a str, usize),
}

/// Does to a tree what these rules say, and returns where something was withheld, sorted.
pub(super) fn apply(document: &mut Document, rules: &[Rule], gone: Gone<'_>) -> Vec<Place> {
    let mut withheld = BTreeSet::new();
    let mut walk = Walk {
        gone,
        withheld: &mut withheld,
        count: 0,
    };
    walk.container(document, rules, &mut Vec::new());
    withheld.into_iter().collect()
}

struct Walk<'a> {
    gone: Gone<'a>,
    withheld: &'a mut BTreeSet<Place>,
    /// How many values were withheld so far; two may be at one place.
    count: usize,
}

impl Walk<'_> {
    /// Whether the value stays.
    fn value(&mut self, value: &mut Document, rules: &[Rule], place: &mut Place) -> bool {
        match (action_here(rules), &*value) {
            (Some(Action::RedactValues), Document::Scalar(token)) if token == "null" => true,
            (Some(Action::RedactValues), Document::Object(_)) => {
                let with_values = [rules, &[(&["*"] as &[&str], Action::Redact)]].concat();
                self.container(value, &with_values, place)
            }
            (Some(action), _) => {
                let index = (action != Action::Remove).then_some(self.count);
                if index.is_some() {
                    self.count += 1;
                    self.withheld.insert(place.clone());
                }
                self.is_left(value, index)
            }
            (None, _) => self.container(value, rules, place),
        }
    }

    /// Whether something is left where a value must not be seen.
    fn is_left(&self, value: &mut Document, index: Option<usize>) -> bool {
        match self.gone {
            Gone::Taken => return false,
            Gone::OneReplacedBy(_, one) if index != Some(one) => {}
            Gone::ReplacedBy(token) | Gone::OneReplacedBy(token, _) => {
                *value = Document::Scalar(token.to_owned());
            }
        }
        true
    }

    fn container(&mut self, value: &mut Document, rules: &[Rule], place: &mut Place) -> bool {
        let length = place.len();
        match value {
            Document::Scalar(_) => true,
            Document::Object(members) => {
                let was_empty = members.is_empty();
                members.retain_mut(|(key, value)| {
                    let name = units(key);
                    push_name(place, &name);
                    let stays = self.value(value, &rules_below(rules, &name), place);
                    place.truncate(length);
                    stays
                });
                was_empty || !members.is_empty()
            }
            Document::Array(elements) => {
                let was_empty = elements.is_empty();
                let mut index = 0;
                elements.retain_mut(|value| {
                    let name: Vec<u16> = index.to_string().encode_utf16().collect();
                    index += 1;
                    push_name(place, &name);
                    let stays = self.value(value, &rules_below(rules, &name), place);
                    place.truncate(length);
                    stays
                });
                was_empty || !elements.is_empty()
            }
        }
    }
}

/// What becomes of a value at a JSON pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lost {
    Removed,
    Withheld,
}

/// The pointers of a plain value that these rules take out. What lies within another of them is not named.
pub(super) fn lost(value: &Value, rules: &[Rule]) -> BTreeMap<String, Lost> {
    let mut lost = BTreeMap::new();
    let mut add = |pointer: String, how: Lost| {
        let known = lost.entry(pointer).or_insert(how);
        *known = how.min(*known);
    };
    for (path, action) in rules {
        for (pointer, value) in matches(value, path) {
            match (action, value) {
                (Action::Remove, _) => add(pointer, Lost::Removed),
                (Action::RedactValues, Value::Object(members)) => {
                    for key in members.keys() {
                        add(below(&pointer, key), Lost::Withheld);
                    }
                }
                (Action::RedactValues, Value::Null) => {}
                (Action::Redact | Action::RedactValues, _) => add(pointer, Lost::Withheld),
            }
        }
    }
    let all: BTreeSet<String> = lost.keys().cloned().collect();
    let is_within = |pointer: &str| {
        let ends = pointer.match_indices('/').map(|(at, _)| at).skip(1);
        ends.into_iter().any(|end| all.contains(&pointer[..end]))
    };
    lost.retain(|pointer, _| !is_within(pointer));
    lost
}

/// The places of a value that a path names.
fn matches<'a>(value: &'a Value, path: &[&str]) -> Vec<(String, &'a Value)> {
    let mut found = vec![(String::new(), value)];
    for token in path {
        let mut next = Vec::new();
        for (pointer, value) in found {
            let names: Vec<String> = match value {
                Value::Object(members) => members.keys().cloned().collect(),
                Value::Array(elements) => (0..elements.len()).map(|index| index.to_string()).collect(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
            };
            for name in names.iter().filter(|name| *token == "*" || name == token) {
                let child = match value {
                    Value::Object(members) => members.get(name),
                    _ => name.parse::<usize>().ok().and_then(|index| value.get(index)),
                };
                next.extend(child.map(|child| (below(&pointer, name), child)));
            }
        }
        found = next;
    }
    found
}

/// A value without what is lost, and without the containers that are empty for that reason alone.
pub(super) fn without(value: &Value, lost: &BTreeMap<String, Lost>) -> Value {
    rest(value, "", lost).unwrap_or_else(|| Value::Object(serde_json::Map::new()))
}

fn rest(value: &Value, pointer: &str, lost: &BTreeMap<String, Lost>) -> Option<Value> {
    if lost.contains_key(pointer) {
        return None;
    }
    let kept = match value {
        Value::Object(members) => Value::Object(
            members
                .iter()
                .filter_map(|(key, value)| Some((key.clone(), rest(value, &below(pointer, key), lost)?)))
                .collect(),
        ),
        Value::Array(elements) => Value::Array(
            elements
                .iter()
                .enumerate()
                .filter_map(|(index, value)| rest(value, &below(pointer, &index.to_string()), lost))
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    };
    let is_empty = |value: &Value| match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    (!is_empty(&kept) || is_empty(value)).then_some(kept)
}

/// A JSON pointer of these names.
fn pointer<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.fold(String::new(), |pointer, name| below(&pointer, name))
}

fn below(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}
