//! The tokens of a label selector (<https://pkg.go.dev/k8s.io/apimachinery/pkg/labels#Lexer>).

/// A token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Error,
    End,
    CloseParenthesis,
    Comma,
    DoesNotExist,
    DoubleEquals,
    Equals,
    GreaterThan,
    Identifier,
    In,
    LessThan,
    NotEquals,
    NotIn,
    OpenParenthesis,
}

/// Whether `in` and `notin` are operators or ordinary words at this place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    KeyAndOperator,
    Values,
}

/// Reads a whole selector into tokens with their text.
pub(super) fn tokens(text: &str) -> Vec<(Token, String)> {
    let mut out = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let Some(first) = rest.chars().next() else {
            out.push((Token::End, String::new()));
            return out;
        };
        if first == '\0' {
            // The original ends at a zero byte.
            out.push((Token::End, String::new()));
            return out;
        }
        if is_special(first) {
            let (token, length) = special(rest);
            if token == Token::Error {
                let found: String = rest
                    .chars()
                    .take_while(|character| is_special(*character))
                    .collect();
                out.push((Token::Error, format!("error expected: keyword found '{found}'")));
                return out;
            }
            out.push((token, rest[..length].to_owned()));
            rest = &rest[length..];
        } else {
            let length = rest
                .find(|character: char| {
                    is_special(character) || matches!(character, ' ' | '\t' | '\r' | '\n' | '\0')
                })
                .unwrap_or(rest.len());
            let word = &rest[..length];
            let token = match word {
                "in" => Token::In,
                "notin" => Token::NotIn,
                _ => Token::Identifier,
            };
            out.push((token, word.to_owned()));
            rest = &rest[length..];
        }
    }
}

fn is_special(character: char) -> bool {
    matches!(character, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

/// The longest special token at the start, and its length in bytes.
fn special(text: &str) -> (Token, usize) {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.get(1)) {
        (Some(b'='), Some(b'=')) => (Token::DoubleEquals, 2),
        (Some(b'!'), Some(b'=')) => (Token::NotEquals, 2),
        (Some(b'='), _) => (Token::Equals, 1),
        (Some(b'!'), _) => (Token::DoesNotExist, 1),
        (Some(b'('), _) => (Token::OpenParenthesis, 1),
        (Some(b')'), _) => (Token::CloseParenthesis, 1),
        (Some(b','), _) => (Token::Comma, 1),
        (Some(b'>'), _) => (Token::GreaterThan, 1),
        (Some(b'<'), _) => (Token::LessThan, 1),
        _ => (Token::Error, 0),
    }
}
