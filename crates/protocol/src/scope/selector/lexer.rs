//! The tokens of a label selector, cut as Kubernetes' own lexer cuts them.

/// One token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A key, a value, or one of the words `in` and `notin`, which are keys and values too.
    Identifier(&'a str),
    /// `=` or `==`
    Equals,
    /// `!=`
    NotEquals,
    /// `!`
    Not,
    /// `>`
    Greater,
    /// `<`
    Less,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `,`
    Comma,
    /// The end of the text.
    End,
}

/// Cuts a text into tokens; one token of lookahead.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next token and the byte at which it begins, without taking it.
    pub(super) fn peek(&self) -> (Token<'a>, usize) {
        self.clone().next()
    }

    /// Takes the next token and the byte at which it begins.
    pub(super) fn next(&mut self) -> (Token<'a>, usize) {
        let rest = &self.text[self.at..];
        let begin = self.at + (rest.len() - rest.trim_start_matches(is_space).len());
        let rest = &self.text[begin..];
        let (token, length) = match rest.as_bytes() {
            [] => (Token::End, 0),
            [b'=', b'=', ..] => (Token::Equals, 2),
            [b'!', b'=', ..] => (Token::NotEquals, 2),
            [b'=', ..] => (Token::Equals, 1),
            [b'!', ..] => (Token::Not, 1),
            [b'>', ..] => (Token::Greater, 1),
            [b'<', ..] => (Token::Less, 1),
            [b'(', ..] => (Token::Open, 1),
            [b')', ..] => (Token::Close, 1),
            [b',', ..] => (Token::Comma, 1),
            [..] => {
                let length = rest
                    .find(|character| is_space(character) || is_special(character))
                    .unwrap_or(rest.len());
                (Token::Identifier(&rest[..length]), length)
            }
        };
        self.at = begin + length;
        (token, begin)
    }
}

const fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

const fn is_special(character: char) -> bool {
    matches!(character, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}
