//! The grammar of a label selector, production by production as in Kubernetes' `labels.Parse`.

use std::collections::BTreeSet;

use super::LabelSelectorError;
use super::lexer::{Lexer, Token};
use crate::scope::syntax::{is_label_value, is_qualified_name};

/// What one requirement asks of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Operator {
    Exists,
    DoesNotExist,
    Equals,
    NotEquals,
    In,
    NotIn,
    GreaterThan,
    LessThan,
}

/// One requirement. The order of the fields is the canonical order of requirements.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Requirement<'a> {
    key: &'a str,
    operator: Operator,
    values: BTreeSet<&'a str>,
}

impl Requirement<'_> {
    /// Appends the canonical spelling.
    pub(super) fn write_to(&self, text: &mut String) {
        if self.operator == Operator::DoesNotExist {
            text.push('!');
        }
        text.push_str(self.key);
        let (before, after) = match self.operator {
            Operator::Exists | Operator::DoesNotExist => ("", ""),
            Operator::Equals => ("=", ""),
            Operator::NotEquals => ("!=", ""),
            Operator::In => (" in (", ")"),
            Operator::NotIn => (" notin (", ")"),
            Operator::GreaterThan => (">", ""),
            Operator::LessThan => ("<", ""),
        };
        text.push_str(before);
        for (index, value) in self.values.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            text.push_str(value);
        }
        text.push_str(after);
    }
}

/// Parses a whole selector into its set of requirements.
pub(super) fn parse(text: &str) -> Result<BTreeSet<Requirement<'_>>, LabelSelectorError> {
    let mut lexer = Lexer::new(text);
    let mut requirements = BTreeSet::new();
    if lexer.peek().0 == Token::End {
        return Ok(requirements);
    }
    loop {
        requirements.insert(requirement(&mut lexer)?);
        match lexer.next() {
            (Token::End, _) => return Ok(requirements),
            (Token::Comma, _) => {}
            (_, position) => return unexpected(position, "`,` or the end"),
        }
    }
}

fn requirement<'a>(lexer: &mut Lexer<'a>) -> Result<Requirement<'a>, LabelSelectorError> {
    let is_negated = lexer.peek().0 == Token::Not;
    if is_negated {
        lexer.next();
    }
    let (token, position) = lexer.next();
    let Token::Identifier(key) = token else {
        return unexpected(position, "a label key or `!`");
    };
    if !is_qualified_name(key) {
        return Err(LabelSelectorError::InvalidKey { position });
    }
    if is_negated {
        return Ok(Requirement {
            key,
            operator: Operator::DoesNotExist,
            values: BTreeSet::new(),
        });
    }
    if matches!(lexer.peek().0, Token::End | Token::Comma) {
        return Ok(Requirement {
            key,
            operator: Operator::Exists,
            values: BTreeSet::new(),
        });
    }
    let operator = operator(lexer)?;
    let values = match operator {
        Operator::In | Operator::NotIn => values(lexer)?,
        Operator::Equals | Operator::NotEquals => BTreeSet::from([exact_value(lexer)?.0]),
        Operator::GreaterThan | Operator::LessThan => BTreeSet::from([integer(lexer)?]),
        Operator::Exists | Operator::DoesNotExist => BTreeSet::new(),
    };
    Ok(Requirement {
        key,
        operator,
        values,
    })
}

fn operator(lexer: &mut Lexer<'_>) -> Result<Operator, LabelSelectorError> {
    match lexer.next() {
        (Token::Equals, _) => Ok(Operator::Equals),
        (Token::NotEquals, _) => Ok(Operator::NotEquals),
        (Token::Greater, _) => Ok(Operator::GreaterThan),
        (Token::Less, _) => Ok(Operator::LessThan),
        (Token::Identifier("in"), _) => Ok(Operator::In),
        (Token::Identifier("notin"), _) => Ok(Operator::NotIn),
        (_, position) => unexpected(
            position,
            "`,`, the end, or one of `=`, `!=`, `in`, `notin`, `<`, `>`",
        ),
    }
}

/// `=` and its kin take one value, which may be missing: then it is the empty one.
fn exact_value<'a>(lexer: &mut Lexer<'a>) -> Result<(&'a str, usize), LabelSelectorError> {
    match lexer.peek() {
        (Token::End | Token::Comma, position) => Ok(("", position)),
        (Token::Identifier(text), position) => {
            lexer.next();
            Ok((value(text, position)?, position))
        }
        (_, position) => unexpected(position, "a label value"),
    }
}

fn integer<'a>(lexer: &mut Lexer<'a>) -> Result<&'a str, LabelSelectorError> {
    let (text, position) = exact_value(lexer)?;
    match text.parse::<i64>() {
        Ok(_) => Ok(text),
        Err(_) => Err(LabelSelectorError::NotAnInteger { position }),
    }
}

/// A list in parentheses. As upstream has it, `()` and a missing value before, after or between commas are the empty
/// value, and two commas in a row must be followed by a value.
fn values<'a>(lexer: &mut Lexer<'a>) -> Result<BTreeSet<&'a str>, LabelSelectorError> {
    let (Token::Open, _) = lexer.peek() else {
        return unexpected(lexer.peek().1, "`(`");
    };
    lexer.next();
    let mut values = BTreeSet::new();
    if lexer.peek().0 == Token::Close {
        lexer.next();
        values.insert("");
        return Ok(values);
    }
    loop {
        match lexer.next() {
            (Token::Identifier(text), position) => {
                values.insert(value(text, position)?);
                match lexer.peek() {
                    (Token::Comma, _) => {}
                    (Token::Close, _) => break,
                    (_, position) => return unexpected(position, "`,` or `)`"),
                }
            }
            (Token::Comma, _) => {
                if values.is_empty() {
                    values.insert("");
                }
                match lexer.peek().0 {
                    Token::Close => {
                        values.insert("");
                        break;
                    }
                    Token::Comma => {
                        lexer.next();
                        values.insert("");
                    }
                    _ => {}
                }
            }
            (_, position) => return unexpected(position, "a label value or `,`"),
        }
    }
    lexer.next();
    Ok(values)
}

fn value(text: &str, position: usize) -> Result<&str, LabelSelectorError> {
    if is_label_value(text) {
        Ok(text)
    } else {
        Err(LabelSelectorError::InvalidValue { position })
    }
}

const fn unexpected<T>(position: usize, expected: &'static str) -> Result<T, LabelSelectorError> {
    Err(LabelSelectorError::Unexpected { position, expected })
}
