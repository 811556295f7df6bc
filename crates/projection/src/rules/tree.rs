//! The rules for one kind of object as a tree of names, so that a key is looked up once.

use krm_stream_protocol::json;

use super::{Action, WILDCARD};

/// What the rules say about one place of an object.
///
/// Wildcards are resolved when the tree is built: a named child also holds what the wildcards beside it say, so that
/// exactly one node is right for a key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    action: Option<Action>,
    named: Vec<(Box<str>, Self)>,
    others: Option<Box<Self>>,
}

/// A rule's path from the node that is being built, and what it does at its end.
type Branch<'a> = (&'a [Box<str>], Action);

impl Node {
    /// Builds the tree of these paths.
    pub(crate) fn build(branches: &[Branch<'_>]) -> Self {
        let action = branches
            .iter()
            .filter(|(path, _)| path.is_empty())
            .map(|(_, action)| *action)
            .min();
        if matches!(action, Some(Action::Remove | Action::Redact)) {
            return Self {
                action,
                ..Self::default()
            };
        }
        let mut below: Vec<(&str, Branch<'_>)> = branches
            .iter()
            .filter_map(|(path, action)| {
                let (first, rest) = path.split_first()?;
                Some((&**first, (rest, *action)))
            })
            .collect();
        if action == Some(Action::RedactValues) {
            below.push((WILDCARD, (&[], Action::Redact)));
        }
        let mut names: Vec<&str> = below.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        let child = |name: &str| {
            let branches: Vec<_> = below
                .iter()
                .filter(|(token, _)| *token == name || *token == WILDCARD)
                .map(|(_, branch)| *branch)
                .collect();
            Self::build(&branches)
        };
        Self {
            action,
            named: names
                .iter()
                .filter(|name| **name != WILDCARD)
                .map(|name| (Box::from(*name), child(name)))
                .collect(),
            others: names.contains(&WILDCARD).then(|| Box::new(child(WILDCARD))),
        }
    }

    pub(crate) fn action(&self) -> Option<Action> {
        self.action
    }

    /// The node for a member whose key is spelled `key`, without its quotes.
    pub(crate) fn member(&self, key: &[u8]) -> Option<&Self> {
        if !self.named.is_empty() {
            let plain = json::unescape(key);
            let named = self.named.iter().find(|(name, _)| name.as_bytes() == &*plain);
            if let Some((_, node)) = named {
                return Some(node);
            }
        }
        self.others.as_deref()
    }

    /// The node for the element at `index`.
    pub(crate) fn element(&self, index: usize) -> Option<&Self> {
        if !self.named.is_empty() {
            let index = index.to_string();
            let named = self.named.iter().find(|(name, _)| **name == *index);
            if let Some((_, node)) = named {
                return Some(node);
            }
        }
        self.others.as_deref()
    }

    /// The children, each with its name; the wildcard's name is `*`.
    pub(crate) fn children(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.named
            .iter()
            .map(|(name, node)| (&**name, node))
            .chain(self.others.as_deref().map(|node| (WILDCARD, node)))
    }

    /// Whether anything here or below is one of the actions that `asked` accepts.
    pub(crate) fn holds(&self, asked: &impl Fn(Action) -> bool) -> bool {
        self.action.is_some_and(asked) || self.children().any(|(_, node)| node.holds(asked))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Pointer;
    use super::*;

    fn tree(rules: &[(&str, Action)]) -> Node {
        let pointers: Vec<_> = rules
            .iter()
            .map(|(path, action)| (Pointer::parse(path).unwrap(), *action))
            .collect();
        let branches: Vec<_> = pointers
            .iter()
            .map(|(pointer, action)| (pointer.tokens(), *action))
            .collect();
        Node::build(&branches)
    }

    #[test]
    fn a_named_child_also_holds_what_the_wildcards_beside_it_say() {
        let tree = tree(&[
            ("/a/*/c", Action::Remove),
            ("/a/b/d", Action::Redact),
            ("/*/b/e", Action::Remove),
        ]);
        let b = tree.member(b"a").unwrap().member(br"\u0062").unwrap();
        assert_eq!(b.member(b"c").unwrap().action(), Some(Action::Remove));
        assert_eq!(b.member(b"d").unwrap().action(), Some(Action::Redact));
        assert_eq!(b.member(b"e").unwrap().action(), Some(Action::Remove));
        let other = tree.member(b"a").unwrap().member(b"x").unwrap();
        assert!(other.member(b"d").is_none());
        assert_eq!(other.member(b"c").unwrap().action(), Some(Action::Remove));
        assert!(tree.member(b"z").unwrap().member(b"c").is_none());
    }

    #[test]
    fn removal_outranks_redaction_and_what_lies_below_it() {
        let tree = tree(&[
            ("/data", Action::RedactValues),
            ("/data/keep/x", Action::Remove),
            ("/data/gone", Action::Remove),
        ]);
        let data = tree.member(b"data").unwrap();
        assert_eq!(data.action(), Some(Action::RedactValues));
        assert_eq!(data.member(b"any").unwrap().action(), Some(Action::Redact));
        assert_eq!(data.member(b"gone").unwrap().action(), Some(Action::Remove));
        let keep = data.member(b"keep").unwrap();
        assert_eq!(keep.action(), Some(Action::Redact));
        assert!(keep.member(b"x").is_none());
    }

    #[test]
    fn elements_are_named_by_their_index_or_by_the_wildcard() {
        let tree = tree(&[("/1", Action::Remove), ("/*/x", Action::Redact)]);
        assert_eq!(tree.element(1).unwrap().action(), Some(Action::Remove));
        assert_eq!(tree.element(0).unwrap().action(), None);
        assert!(tree.element(7).unwrap().member(b"x").is_some());
    }
}
