//! From text to tokens.

use super::ast::Literal;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Ident(String),
    Literal(Literal),
    /// An operator or a bracket.
    Sign(&'static str),
    End,
}

/// A token, where it starts and how it is spelled.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) token: Token,
    pub(crate) at: usize,
    pub(crate) text: String,
}

/// Something wrong at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Issue {
    pub(crate) at: usize,
    pub(crate) message: String,
}

const SIGNS: [&str; 26] = [
    "==", "!=", "<=", ">=", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":",
    "+", "*", "/", "%", "<", ">", "in", "=",
];

/// Cuts a text into tokens.
pub(crate) fn tokens(text: &str) -> Result<Vec<Spot>, Issue> {
    let chars: Vec<char> = text.chars().collect();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        if matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}') {
            at += 1;
            continue;
        }
        if c == '/' && chars.get(at + 1) == Some(&'/') {
            at += chars[at..].iter().take_while(|c| **c != '\n').count();
            continue;
        }
        let (token, end) = next(&chars, at)?;
        let spelled: String = chars[at..end].iter().collect();
        out.push(Spot { token, at, text: spelled });
        at = end;
    }
    out.push(Spot { token: Token::End, at: chars.len(), text: "<EOF>".to_owned() });
    Ok(out)
}

fn next(chars: &[char], at: usize) -> Result<(Token, usize), Issue> {
    let c = chars[at];
    if let Some(found) = string(chars, at)? {
        return Ok(found);
    }
    if c.is_ascii_alphabetic() || c == '_' {
        let word = |c: &&char| c.is_ascii_alphanumeric() || **c == '_';
        let end = at + chars[at..].iter().take_while(word).count();
        let text: String = chars[at..end].iter().collect();
        let token = match text.as_str() {
            "true" => Token::Literal(Literal::Bool(true)),
            "false" => Token::Literal(Literal::Bool(false)),
            "null" => Token::Literal(Literal::Null),
            "in" => Token::Sign("in"),
            _ => Token::Ident(text),
        };
        return Ok((token, end));
    }
    let digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
    if digit(at) || (c == '.' && digit(at + 1)) {
        return number(chars, at);
    }
    for sign in SIGNS {
        if sign != "="
            && sign != "in"
            && sign.chars().enumerate().all(|(i, s)| chars.get(at + i) == Some(&s))
        {
            return Ok((Token::Sign(sign), at + sign.len()));
        }
    }
    Err(Issue { at, message: format!("Syntax error: token recognition error at: '{c}'") })
}

fn number(chars: &[char], at: usize) -> Result<(Token, usize), Issue> {
    let digits = |from: usize| chars[from..].iter().take_while(|c| c.is_ascii_digit()).count();
    let text = |end: usize| chars[at..end].iter().collect::<String>();
    if chars[at] == '0' && matches!(chars.get(at + 1), Some('x' | 'X')) {
        let end = at + 2 + chars[at + 2..].iter().take_while(|c| c.is_ascii_hexdigit()).count();
        return integer(&text(end)[2..], 16, chars, at, end);
    }
    let mut end = at + digits(at);
    let mut float = false;
    if chars.get(end) == Some(&'.') && chars.get(end + 1).is_some_and(char::is_ascii_digit) {
        end += 1 + digits(end + 1);
        float = true;
    }
    if matches!(chars.get(end), Some('e' | 'E')) {
        let sign = usize::from(matches!(chars.get(end + 1), Some('+' | '-')));
        let exponent = digits((end + 1 + sign).min(chars.len()));
        if exponent > 0 {
            end += 1 + sign + exponent;
            float = true;
        }
    }
    if float {
        let value = text(end).parse().unwrap_or(f64::INFINITY);
        return Ok((Token::Literal(Literal::Double(value)), end));
    }
    integer(&text(end), 10, chars, at, end)
}

fn integer(
    digits: &str,
    radix: u32,
    chars: &[char],
    at: usize,
    end: usize,
) -> Result<(Token, usize), Issue> {
    if matches!(chars.get(end), Some('u' | 'U')) {
        let value = u64::from_str_radix(digits, radix)
            .map_err(|_| Issue { at, message: "invalid uint literal".to_owned() })?;
        return Ok((Token::Literal(Literal::Uint(value)), end + 1));
    }
    // The smallest integer is written with a sign in front: its digits alone are one too many.
    match u64::from_str_radix(digits, radix) {
        Ok(value) if value <= i64::MIN.unsigned_abs() => {
            let literal = i64::try_from(value).map_or(Literal::Int(i64::MIN), Literal::Int);
            Ok((Token::Literal(literal), end))
        }
        _ => Err(Issue { at, message: "invalid int literal".to_owned() }),
    }
}

/// A string or bytes, if one starts here.
fn string(chars: &[char], at: usize) -> Result<Option<(Token, usize)>, Issue> {
    let (mut raw, mut bytes, mut open) = (false, false, at);
    loop {
        match chars.get(open) {
            Some('r' | 'R') if !raw => raw = true,
            Some('b' | 'B') if !bytes => bytes = true,
            Some('"' | '\'') => break,
            _ => return Ok(None),
        }
        open += 1;
    }
    let quote = chars[open];
    let triple = chars.get(open + 1) == Some(&quote) && chars.get(open + 2) == Some(&quote);
    let width = if triple { 3 } else { 1 };
    let mut text = Text::default();
    let mut here = open + width;
    loop {
        let broken = || Issue {
            at,
            message: format!(
                "Syntax error: token recognition error at: '{}'",
                chars[at..].iter().collect::<String>()
            ),
        };
        let Some(&c) = chars.get(here) else { return Err(broken()) };
        if c == quote && (!triple || chars[here..].starts_with(&[quote, quote, quote])) {
            here += width;
            break;
        }
        if !triple && matches!(c, '\n' | '\r') {
            return Err(broken());
        }
        if c == '\\' && !raw {
            here = escape(chars, here + 1, bytes, &mut text).ok_or_else(broken)?;
            continue;
        }
        text.char(c);
        here += 1;
    }
    let literal = if bytes {
        Literal::Bytes(text.0)
    } else {
        Literal::String(String::from_utf8_lossy(&text.0).into_owned())
    };
    Ok(Some((Token::Literal(literal), here)))
}

#[derive(Default)]
struct Text(Vec<u8>);

impl Text {
    fn char(&mut self, c: char) {
        self.0.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// One escape after its backslash; returns where it ends.
fn escape(chars: &[char], at: usize, bytes: bool, text: &mut Text) -> Option<usize> {
    let digits = |from: usize, count: usize, radix: u32| -> Option<u32> {
        let part: String = chars.get(from..from + count)?.iter().collect();
        u32::from_str_radix(&part, radix).ok()
    };
    let (code, end) = match *chars.get(at)? {
        'a' => (7, at + 1),
        'b' => (8, at + 1),
        'f' => (12, at + 1),
        'n' => (10, at + 1),
        'r' => (13, at + 1),
        't' => (9, at + 1),
        'v' => (11, at + 1),
        c @ ('\\' | '\'' | '"' | '`' | '?') => (u32::from(c), at + 1),
        'x' | 'X' => (digits(at + 1, 2, 16)?, at + 3),
        'u' if !bytes => (digits(at + 1, 4, 16)?, at + 5),
        'U' if !bytes => (digits(at + 1, 8, 16)?, at + 9),
        '0'..='3' => (digits(at, 3, 8)?, at + 3),
        _ => return None,
    };
    if bytes {
        text.0.push(u8::try_from(code).ok()?);
    } else {
        text.char(char::from_u32(code)?);
    }
    Some(end)
}
