//! Projecting an object: what is kept is kept token by token, and nothing of what is not kept can be found anywhere.

use bytes::Bytes;
use krm_stream_projection::{DigestKey, ProjectError, Projected, Redactions, Revisions, Upsert};
use krm_stream_protocol::{Object, Scope, SseDecoder};

use super::document::{Document, is_valid, units};
use super::reference::{self, Gone, Lost, Place, REFERENCES, Reference, Rule, SCOPES};

/// What is planted where nothing may be seen. An input that holds it already is not looked at.
const CANARY: &str = "krm-canary-7f3a";
/// How many withheld values are changed by themselves.
const CHANGED_BY_ITSELF: usize = 4;
/// An identity for objects that have none.
const IDENTITY: &str = r#""metadata":{"uid":"u","name":"n"}"#;

/// Checks [`Projection::project`](krm_stream_projection::Projection::project), of each built-in projection and one of a
/// host, for scopes of Secrets and of others.
///
/// # Panics
/// When a rule does not hold.
pub fn projection(input: &[u8]) {
    let Ok(mut object) = Object::parse(Bytes::copy_from_slice(input)) else {
        assert!(!is_valid(input) || !input.trim_ascii_start().starts_with(b"{"));
        return;
    };
    assert!(is_valid(input));
    if object.identity().is_none() {
        let Some(completed) = with_identity(&object) else {
            return;
        };
        object = completed;
    }
    let Some(scopes) = &*SCOPES else { return };
    for reference in &*REFERENCES {
        for scope in [&scopes.secrets, &scopes.config_maps, &scopes.vaults] {
            let case = Case { reference, scope };
            case.check(&object);
        }
    }
}

/// A partial object cannot be projected; the same with an identity, unless it is metadata only.
fn with_identity(object: &Object) -> Option<Object> {
    if let Some(scopes) = &*SCOPES {
        for reference in &*REFERENCES {
            let projected = reference
                .projection
                .project(&scopes.secrets, object, &digest_key());
            assert!(matches!(projected, Err(ProjectError::Partial)));
        }
    }
    let text = object.json().trim_ascii_end();
    let open = text.strip_suffix(b"}")?;
    let comma: &[u8] = if open.trim_ascii().len() > 1 { b"," } else { b"" };
    let text = [open, comma, IDENTITY.as_bytes(), b"}"].concat();
    let object = Object::parse(Bytes::from(text)).ok()?;
    object.identity().is_some().then_some(object)
}

/// Digests only have to be comparable here.
fn digest_key() -> DigestKey {
    DigestKey::new([7; 32])
}

#[derive(Clone, Copy)]
struct Case<'a> {
    reference: &'a Reference,
    scope: &'a Scope,
}

impl Case<'_> {
    fn project(self, object: &Object) -> Projected {
        let projected = self
            .reference
            .projection
            .project(self.scope, object, &digest_key());
        assert!(projected.is_ok(), "an object with an identity can be projected");
        projected.unwrap_or_else(|error| unreachable!("{error}"))
    }

    /// The same for the text of an object that is known to have an identity.
    fn project_text(self, document: &Document) -> Projected {
        match Object::parse(Bytes::from(document.compact())) {
            Ok(object) => self.project(&object),
            Err(error) => unreachable!("a document is JSON: {error}"),
        }
    }

    fn check(self, object: &Object) {
        let projected = self.project(object);
        let text = projected.object();
        assert!(is_valid(text) && text.starts_with(b"{"));
        assert!(!text.contains(&b'\n') && !text.contains(&b'\r'));
        assert_eq!(projected.identity(), object_identity(object));
        let Some(document) = Document::parse(object.json()) else {
            frame(&projected, None);
            return;
        };
        let rules = self
            .reference
            .rules_for(self.scope, reference::says_secret(&document));
        let mut expected = document.clone();
        let withheld = reference::apply(&mut expected, &rules, Gone::Taken);
        assert_eq!(
            Document::parse(text).map(|kept| kept.compact()),
            Some(expected.compact()),
            "what is kept is kept token by token"
        );
        if expected == document && !object.json().contains(&b'\n') && !object.json().contains(&b'\r') {
            assert_eq!(text, object.json().trim_ascii(), "and byte by byte");
        }
        assert_eq!(places(projected.redactions()), withheld);
        frame(&projected, Some(&withheld));
        as_plain_value(&document, &projected, &rules);
        self.states(&document, &rules, !withheld.is_empty());
    }

    /// What a consumer cannot see leaves no trace but a revision, and what it can see is a change.
    fn states(self, document: &Document, rules: &[Rule], withholds: bool) {
        let before = self.project_text(document);
        if !document.compact().contains(CANARY) {
            let mut planted = document.clone();
            reference::apply(&mut planted, rules, Gone::ReplacedBy(&format!("\"{CANARY}\"")));
            let planted = self.project_text(&planted);
            assert_eq!(
                before.object(),
                planted.object(),
                "of what is gone nothing is seen"
            );
            assert_eq!(places(before.redactions()), places(planted.redactions()));
            assert_eq!(before.is_same_state(&planted), !withholds);
            for index in 0..CHANGED_BY_ITSELF {
                let mut changed = document.clone();
                reference::apply(&mut changed, rules, Gone::OneReplacedBy("0.5e0", index));
                if changed != *document {
                    assert!(
                        !before.is_same_state(&self.project_text(&changed)),
                        "each withheld value counts, also of a key that comes twice"
                    );
                }
            }
            let all = [
                frame(&planted, None),
                format!("{planted:?} {:?}", planted.redactions()).into(),
            ]
            .concat();
            assert!(
                memchr::memmem::find(&all, CANARY.as_bytes()).is_none(),
                "a withheld value is seen"
            );
        }

        let mut newer = document.clone();
        for (_, value) in newer
            .members_mut()
            .iter_mut()
            .filter(|(key, _)| is_named(key, "metadata"))
        {
            for (_, version) in value
                .members_mut()
                .iter_mut()
                .filter(|(key, _)| is_named(key, "resourceVersion"))
            {
                *version = Document::Scalar("\"4711\"".to_owned());
            }
        }
        assert!(
            before.is_same_state(&self.project_text(&newer)),
            "a version alone is no change"
        );

        let mut changed = document.clone();
        if let Document::Object(members) = &mut changed {
            members.push((format!("\"{CANARY}\""), Document::Scalar("1.0".to_owned())));
        }
        let changed = self.project_text(&changed);
        assert!(!before.is_same_state(&changed), "a new field is a change");
    }
}

/// The same as a projection of plain values, where those lose nothing that matters.
fn as_plain_value(document: &Document, projected: &Projected, rules: &[Rule]) {
    let Some(value) = document.to_value() else { return };
    let lost = reference::lost(&value, rules);
    let kept = serde_json::from_slice(projected.object()).ok();
    assert_eq!(kept, Some(reference::without(&value, &lost)));
    let withheld = lost.into_iter().filter(|(_, how)| *how == Lost::Withheld);
    let withheld: Vec<Place> = withheld
        .map(|(pointer, _)| pointer.chars().map(u32::from).collect())
        .collect();
    assert_eq!(places(projected.redactions()), withheld);
}

fn is_named(key: &str, name: &str) -> bool {
    units(key).into_iter().eq(name.encode_utf16())
}

fn object_identity(object: &Object) -> &std::sync::Arc<krm_stream_protocol::Identity> {
    match object.identity() {
        Some(identity) => identity,
        None => unreachable!("it was given one"),
    }
}

/// The paths of what is withheld, as they are written.
fn places(redactions: Option<&Redactions>) -> Vec<Place> {
    let all = redactions.map_or(&[][..], Redactions::as_slice);
    assert!(redactions.is_none() || !all.is_empty());
    all.iter().map(|redaction| place(redaction.path_json())).collect()
}

/// A path as it is written.
fn place(path_json: &str) -> Place {
    assert!(is_valid(path_json.as_bytes()), "{path_json}");
    char::decode_utf16(units(path_json))
        .map(|unit| unit.map_or_else(|lone| u32::from(lone.unpaired_surrogate()), u32::from))
        .collect()
}

/// The whole frame: one event, whose JSON has its fields in order and names what is withheld.
fn frame(projected: &Projected, withheld: Option<&[Place]>) -> Vec<u8> {
    let mut frame = Vec::new();
    projected.write_prefix(3, Upsert::Added, &mut frame);
    frame.extend_from_slice(projected.tail());
    Revisions::new().write_redacted(projected, &mut frame);

    let events = SseDecoder::new(usize::MAX).push(&frame).unwrap_or_default();
    let [event] = &events[..] else {
        unreachable!("a frame is one event, not {}", events.len())
    };
    assert!(is_valid(event.data().as_bytes()));
    let Some(data) = Document::parse(event.data().as_bytes()) else {
        return frame;
    };
    let keys: Vec<&str> = data.members().iter().map(|(key, _)| &**key).collect();
    assert_eq!(keys, [r#""seq""#, r#""type""#, r#""object""#, r#""redacted""#]);
    assert_eq!(
        data.last("object").map(Document::compact),
        Document::parse(projected.object()).map(|object| object.compact())
    );
    let Some(Document::Array(redacted)) = data.last("redacted") else {
        unreachable!("redacted is a list")
    };
    if let Some(withheld) = withheld {
        let named = redacted.iter().map(|entry| match entry.last("path") {
            Some(Document::Scalar(path)) => place(path),
            other => unreachable!("a path is a string, not {other:?}"),
        });
        assert!(named.eq(withheld.iter().cloned()));
    }
    frame
}
