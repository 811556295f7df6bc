//! Label selectors (<https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors>).

use std::collections::{BTreeMap, BTreeSet};

use super::lexer::{Context, Token, tokens};

/// A parsed label selector: all of its requirements must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operator {
    Exists,
    DoesNotExist,
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    GreaterThan(i64),
    LessThan(i64),
}

impl LabelSelector {
    /// Parses `text`. The empty text selects everything.
    ///
    /// # Errors
    ///
    /// Kubernetes' message, without a prefix.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Parser {
            tokens: tokens(text),
            position: 0,
        }
        .parse()
    }

    /// Whether it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether labels satisfy every requirement.
    pub(crate) fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.matches(labels))
    }
}

impl Requirement {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.operator {
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::In(values) => value.is_some_and(|value| values.contains(value)),
            Operator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Operator::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Operator::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// The recursive-descent parser of `k8s.io/apimachinery/pkg/labels`, step by step, so that its messages come out.
struct Parser {
    tokens: Vec<(Token, String)>,
    position: usize,
}

impl Parser {
    fn parse(mut self) -> Result<LabelSelector, String> {
        let mut requirements = Vec::new();
        loop {
            let (token, text) = self.lookahead(Context::Values);
            match token {
                Token::Identifier | Token::DoesNotExist => {
                    let requirement = self
                        .requirement()
                        .map_err(|error| format!("unable to parse requirement: {error}"))?;
                    requirements.push(requirement);
                    let (token, text) = self.consume(Context::Values);
                    match token {
                        Token::End => break,
                        Token::Comma => {
                            let (next, text) = self.lookahead(Context::Values);
                            if next != Token::Identifier && next != Token::DoesNotExist {
                                return Err(format!("found '{text}', expected: identifier after ','"));
                            }
                        }
                        _ => return Err(format!("found '{text}', expected: ',' or 'end of string'")),
                    }
                }
                Token::End => break,
                _ => {
                    return Err(format!(
                        "found '{text}', expected: !, identifier, or 'end of string'"
                    ));
                }
            }
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(LabelSelector { requirements })
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let (mut token, mut key) = self.consume(Context::Values);
        let negated = token == Token::DoesNotExist;
        if negated {
            (token, key) = self.consume(Context::Values);
        }
        if token != Token::Identifier {
            return Err(format!("found '{key}', expected: identifier"));
        }
        validate_key(&key)?;
        if negated {
            return Ok(Requirement {
                key,
                operator: Operator::DoesNotExist,
            });
        }
        if matches!(self.lookahead(Context::Values).0, Token::End | Token::Comma) {
            return Ok(Requirement {
                key,
                operator: Operator::Exists,
            });
        }
        let (token, text) = self.consume(Context::KeyAndOperator);
        let operator = match token {
            Token::In => Operator::In(self.set_of_values()?),
            Token::NotIn => Operator::NotIn(self.set_of_values()?),
            Token::Equals | Token::DoubleEquals => Operator::In(BTreeSet::from([self.exact_value()?])),
            Token::NotEquals => Operator::NotIn(BTreeSet::from([self.exact_value()?])),
            Token::GreaterThan => Operator::GreaterThan(number(&self.exact_value()?)?),
            Token::LessThan => Operator::LessThan(number(&self.exact_value()?)?),
            _ => return Err(format!("found '{text}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        if let Operator::In(values) | Operator::NotIn(values) = &operator {
            for value in values {
                validate_value(&key, value)?;
            }
        }
        Ok(Requirement { key, operator })
    }

    fn set_of_values(&mut self) -> Result<BTreeSet<String>, String> {
        let (token, text) = self.consume(Context::Values);
        if token != Token::OpenParenthesis {
            return Err(format!("found '{text}' expected: '('"));
        }
        let (token, text) = self.lookahead(Context::Values);
        let values = match token {
            Token::Identifier | Token::Comma => {
                let values = self.identifiers()?;
                let (token, text) = self.consume(Context::Values);
                if token != Token::CloseParenthesis {
                    return Err(format!("found '{text}', expected: ')'"));
                }
                values
            }
            Token::CloseParenthesis => {
                self.consume(Context::Values);
                BTreeSet::new()
            }
            _ => return Err(format!("found '{text}', expected: ',', ')' or identifier")),
        };
        if values.is_empty() {
            return Err(
                "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
                    .to_owned(),
            );
        }
        Ok(values)
    }

    fn identifiers(&mut self) -> Result<BTreeSet<String>, String> {
        let mut values = BTreeSet::new();
        loop {
            let (token, text) = self.consume(Context::Values);
            match token {
                Token::Identifier => {
                    values.insert(text);
                    let (next, text) = self.lookahead(Context::Values);
                    match next {
                        Token::Comma => {}
                        Token::CloseParenthesis => return Ok(values),
                        _ => return Err(format!("found '{text}', expected: ',' or ')'")),
                    }
                }
                Token::Comma => {
                    if values.is_empty() {
                        values.insert(String::new());
                    }
                    let (next, _) = self.lookahead(Context::Values);
                    if next == Token::CloseParenthesis {
                        values.insert(String::new());
                        return Ok(values);
                    }
                    if next == Token::Comma {
                        self.consume(Context::Values);
                        values.insert(String::new());
                    }
                }
                _ => return Err(format!("found '{text}', expected: ',', or identifier")),
            }
        }
    }

    fn exact_value(&mut self) -> Result<String, String> {
        if matches!(self.lookahead(Context::Values).0, Token::End | Token::Comma) {
            return Ok(String::new());
        }
        let (token, text) = self.consume(Context::Values);
        if token == Token::Identifier {
            return Ok(text);
        }
        Err(format!("found '{text}', expected: identifier"))
    }

    fn lookahead(&self, context: Context) -> (Token, String) {
        let (token, text) = self
            .tokens
            .get(self.position)
            .cloned()
            .unwrap_or((Token::End, String::new()));
        let word = context == Context::Values && matches!(token, Token::In | Token::NotIn);
        (if word { Token::Identifier } else { token }, text)
    }

    fn consume(&mut self, context: Context) -> (Token, String) {
        let item = self.lookahead(context);
        self.position += 1;
        item
    }
}

fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| {
        format!(
            "values[0]: Invalid value: {}: for 'Gt', 'Lt' operators, the value must be an integer",
            quoted(text)
        )
    })
}

const NAME_RULE: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
     with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
     '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
     used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// The longest name part of a key, and the longest value, in bytes.
const LONGEST: usize = 63;

fn validate_key(key: &str) -> Result<(), String> {
    let invalid = |rule: &str| Err(format!("key: Invalid value: {}: {rule}", quoted(key)));
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if name.contains('/') {
        return invalid("a qualified name must consist of alphanumeric characters, '-', '_' or '.'");
    }
    if prefix.is_some_and(|prefix| !is_subdomain(prefix)) {
        return invalid("prefix part must be a lowercase RFC 1123 subdomain");
    }
    if name.is_empty() {
        return invalid("name part must be non-empty");
    }
    if name.len() > LONGEST {
        return invalid("name part must be no more than 63 bytes");
    }
    if !is_name(name) {
        return invalid(NAME_RULE);
    }
    Ok(())
}

fn validate_value(key: &str, value: &str) -> Result<(), String> {
    let path = format!("values[0][{key}]");
    if value.len() > LONGEST {
        return Err(format!(
            "{path}: Invalid value: {}: must be no more than 63 bytes",
            quoted(value)
        ));
    }
    if !value.is_empty() && !is_name(value) {
        return Err(format!("{path}: Invalid value: {}: {VALUE_RULE}", quoted(value)));
    }
    Ok(())
}

fn is_name(text: &str) -> bool {
    let ends = |character: Option<char>| character.is_some_and(|character| character.is_ascii_alphanumeric());
    ends(text.chars().next())
        && ends(text.chars().next_back())
        && text
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.'))
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253
        && text.split('.').all(|part| {
            !part.is_empty()
                && !part.starts_with('-')
                && !part.ends_with('-')
                && part.chars().all(|character| {
                    character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-'
                })
        })
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn every_operator_selects_as_documented() {
        let shop = labels(&[
            ("app", "shop"),
            ("tier", "web"),
            ("size", "5"),
            ("example.com/in", ""),
        ]);
        for selected in [
            "",
            " ",
            "app",
            "app=shop",
            "app==shop",
            " app = shop , tier=web",
            "app!=web",
            "missing!=x",
            "!missing",
            "app in (shop, web)",
            "app in (shop),tier notin (db)",
            "missing notin (x)",
            "size>4",
            "size<6",
            "example.com/in=",
            "example.com/in in (,a)",
            "app notin (in, notin)",
        ] {
            assert!(
                LabelSelector::parse(selected).unwrap().matches(&shop),
                "{selected}"
            );
        }
        for not_selected in [
            "missing",
            "!app",
            "app=web",
            "app!=shop",
            "app in (web)",
            "tier notin (web)",
            "size>5",
            "app>1",
            "app=",
        ] {
            assert!(
                !LabelSelector::parse(not_selected).unwrap().matches(&shop),
                "{not_selected}"
            );
        }
    }

    #[test]
    fn a_bad_selector_is_refused_in_the_words_of_kubernetes() {
        for (text, message) in [
            ("a in", "unable to parse requirement: found '' expected: '('"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            (
                "a in (b",
                "unable to parse requirement: found '', expected: ',' or ')'",
            ),
            ("a,", "found '', expected: identifier after ','"),
            ("=a", "found '=', expected: !, identifier, or 'end of string'"),
            (
                "a b",
                "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
            ),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            ("!a=b", "found '=', expected: ',' or 'end of string'"),
            (
                "a in ()",
                "unable to parse requirement: values: Invalid value: []: for 'in', 'notin' operators, values set \
                 can't be empty",
            ),
        ] {
            assert_eq!(LabelSelector::parse(text).unwrap_err(), message, "{text}");
        }
        for text in ["-a", "a/b/c", "/a", "A_/x=y", "a=-b", "a>x", "a=é"] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }
}
