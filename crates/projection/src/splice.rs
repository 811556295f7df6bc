//! Takes parts out of a JSON text and leaves every other byte as it is.

use std::borrow::Cow;
use std::ops::Range;

use krm_stream_protocol::frame;
use krm_stream_protocol::json::{self, Member};

use crate::digest::{DigestKey, StateDigest};
use crate::redaction::{Redactions, Withheld};
use crate::rules::{Action, Node};

/// What is done to the text of an object: where it is cut, and what was withheld.
///
/// The text is walked as far as the rules reach and no further, by loops; only the depth of the rules' own paths is
/// recursion. Nothing is copied until all is known.
pub(crate) struct Splice<'a> {
    text: &'a [u8],
    key: &'a DigestKey,
    /// In the order of the text, without overlap.
    edits: Vec<Edit>,
    withheld: Vec<Withheld>,
    path: Vec<Token<'a>>,
}

#[derive(Debug)]
enum Edit {
    /// Left out.
    Cut(Range<usize>),
    /// Carried, but no part of the state that is compared.
    Uncompared(Range<usize>),
}

/// One name of the path to the value at hand.
#[derive(Clone, Copy, Debug)]
enum Token<'a> {
    /// A key as it was spelled, without its quotes.
    Key(&'a [u8]),
    Index(usize),
}

/// What becomes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Kept,
    Gone,
}

/// A member or an element on its way through [`Splice::part`].
struct Part<'a> {
    token: Token<'a>,
    /// Where it begins: at its key, or at the value of an element.
    start: usize,
    value: Range<usize>,
}

/// The members or elements of one container so far.
#[derive(Default)]
struct Run {
    /// Where the latest part ended.
    previous_end: usize,
    /// Where the first part began, as long as none was kept.
    dropped_from: Option<usize>,
    kept_any: bool,
}

impl<'a> Splice<'a> {
    /// Projects the object that `text` is: a validated JSON text. `members` are its members.
    pub(crate) fn object(text: &'a [u8], members: &[Member<'a>], rules: &Node, key: &'a DigestKey) -> Self {
        let mut splice = Self {
            text,
            key,
            edits: Vec::new(),
            withheld: Vec::new(),
            path: Vec::new(),
        };
        let mut run = Run::default();
        for member in members {
            splice.member(&mut run, member, 0, rules);
        }
        if let (Some(from), false) = (run.dropped_from, run.kept_any) {
            splice.edits.push(Edit::Cut(from..run.previous_end));
        }
        splice
    }

    /// Appends what is left to `out`, without line breaks, and returns the digest of the state and what was withheld.
    ///
    /// A line break in a JSON text stands outside strings, so it is white space and may go: no `data:` line may hold
    /// one ([WHATWG, event stream interpretation]).
    ///
    /// [WHATWG, event stream interpretation]: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
    pub(crate) fn finish(self, out: &mut Vec<u8>) -> (StateDigest, Option<Redactions>) {
        let one_line = memchr::memchr2(b'\r', b'\n', self.text).is_none();
        let mut hasher = self.key.hasher();
        let mut hashed_to = out.len();
        let mut at = 0;
        for edit in &self.edits {
            match edit {
                Edit::Cut(range) => {
                    copy_line(out, &self.text[at..range.start], one_line);
                    at = range.end;
                }
                Edit::Uncompared(range) => {
                    copy_line(out, &self.text[at..range.start], one_line);
                    hasher.update(&out[hashed_to..]);
                    copy_line(out, &self.text[range.clone()], one_line);
                    hashed_to = out.len();
                    at = range.end;
                }
            }
        }
        copy_line(out, &self.text[at..], one_line);
        hasher.update(&out[hashed_to..]);
        let redactions = Redactions::collect(self.key, self.withheld);
        for redaction in redactions.iter().flat_map(Redactions::as_slice) {
            // No UTF-8 text holds this byte, so no object's bytes can pass for a redaction.
            hasher.update(&[0xFF]);
            hasher.update(redaction.path_json().as_bytes());
            hasher.update(redaction.digest().as_bytes());
        }
        (StateDigest::from_hasher(&hasher), redactions)
    }

    /// Whether any value is withheld.
    pub(crate) fn withholds(&self) -> bool {
        !self.withheld.is_empty()
    }

    /// How many bytes of the text are cut out.
    pub(crate) fn cut_bytes(&self) -> usize {
        self.edits
            .iter()
            .map(|edit| match edit {
                Edit::Cut(range) => range.len(),
                Edit::Uncompared(_) => 0,
            })
            .sum()
    }

    fn value(&mut self, value: Range<usize>, node: &Node) -> Fate {
        match node.action() {
            Some(Action::Remove) => Fate::Gone,
            Some(Action::Redact) => self.withhold(value),
            Some(Action::RedactValues) => match self.text.get(value.start) {
                Some(b'{') => self.container(value, node),
                Some(b'n') => Fate::Kept,
                Some(_) | None => self.withhold(value),
            },
            Some(Action::Version) => {
                self.edits.push(Edit::Uncompared(value));
                Fate::Kept
            }
            None => self.container(value, node),
        }
    }

    /// Goes through an object or an array. One that loses everything it had goes as a whole; one that had nothing
    /// stays.
    fn container(&mut self, range: Range<usize>, node: &Node) -> Fate {
        let text = &self.text[range.clone()];
        let mut run = Run::default();
        match text.first() {
            Some(b'{') => {
                for member in json::members(text) {
                    self.member(&mut run, &member, range.start, node);
                }
            }
            Some(b'[') => {
                for (index, (_, value)) in json::elements(text).enumerate() {
                    let value = value.start + range.start..value.end + range.start;
                    let part = Part {
                        token: Token::Index(index),
                        start: value.start,
                        value,
                    };
                    self.part(&mut run, part, node.element(index));
                }
            }
            _ => {}
        }
        if run.dropped_from.is_some() && !run.kept_any {
            Fate::Gone
        } else {
            Fate::Kept
        }
    }

    fn member(&mut self, run: &mut Run, member: &Member<'a>, offset: usize, node: &Node) {
        let part = Part {
            token: Token::Key(member.key),
            start: member.key_range.start + offset,
            value: member.value_range.start + offset..member.value_range.end + offset,
        };
        self.part(run, part, node.member(member.key));
    }

    /// Decides one part of a container. One that goes takes the comma before it along, or, where nothing before it
    /// was kept, everything up to the first part that is.
    fn part(&mut self, run: &mut Run, part: Part<'a>, node: Option<&Node>) {
        let mark = self.edits.len();
        if let (Some(from), false) = (run.dropped_from, run.kept_any) {
            self.edits.push(Edit::Cut(from..part.start));
        }
        let end = part.value.end;
        let fate = node.map_or(Fate::Kept, |node| {
            self.path.push(part.token);
            let fate = self.value(part.value, node);
            self.path.pop();
            fate
        });
        match fate {
            Fate::Kept => run.kept_any = true,
            Fate::Gone => {
                self.edits.truncate(mark);
                if run.kept_any {
                    self.edits.push(Edit::Cut(run.previous_end..end));
                } else {
                    run.dropped_from.get_or_insert(part.start);
                }
            }
        }
        run.previous_end = end;
    }

    fn withhold(&mut self, value: Range<usize>) -> Fate {
        let tokens = self.path.iter().map(|token| match token {
            Token::Key(key) => json::unescape(key),
            Token::Index(index) => Cow::Owned(index.to_string().into_bytes()),
        });
        self.withheld
            .push(Withheld::new(self.key, tokens, &self.text[value]));
        Fate::Gone
    }
}

/// Appends `text` without the white space that holds its line breaks.
fn copy_line(out: &mut Vec<u8>, text: &[u8], one_line: bool) {
    if one_line {
        out.extend_from_slice(text);
    } else {
        frame::put_json(out, text);
    }
}
