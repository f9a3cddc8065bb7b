//! What is wrong with a text that is not JSON, in the words of Go's scanner, because
//! clients show these words to people.

/// The complaint about the first wrong character, if there is one.
pub fn complaint(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner { text, at: 0, depth: 0 };
    scanner.space();
    if let Err(complaint) = scanner.value("looking for beginning of value") {
        return Some(complaint);
    }
    scanner.space();
    let left = scanner.peek()?;
    Some(invalid(left, "after top-level value"))
}

/// The longest excerpt, in bytes.
const EXCERPT_MAX: usize = 30;

/// How the complaint shows the text: as it is when it looks like an object, else in hex.
pub fn excerpt(text: &[u8]) -> String {
    use std::fmt::Write;
    let shown = &text[..text.len().min(EXCERPT_MAX)];
    let mut out = match shown.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(shown).into_owned(),
        Some(_) => shown.iter().fold(String::new(), |mut out, byte| {
            let _ = write!(out, "{byte:02x}");
            out
        }),
    };
    if shown.len() < text.len() {
        out.push_str(" ...");
    }
    out
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

/// The deepest nesting looked into. The parser gives up earlier; what a stranger sends must
/// not exhaust the stack here either.
const DEPTH_MAX: usize = 256;

type Step = Result<(), String>;

fn invalid(byte: u8, context: &str) -> String {
    let shown = match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        _ => format!("{:?}", char::from(byte)),
    };
    format!("invalid character {shown} {context}")
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| b" \t\r\n".contains(&byte)) {
            self.at = self.at.saturating_add(1);
        }
    }

    fn next(&mut self) -> Result<u8, String> {
        let byte = self.peek().ok_or("unexpected end of JSON input")?;
        self.at = self.at.saturating_add(1);
        Ok(byte)
    }

    fn value(&mut self, context: &str) -> Step {
        match self.next()? {
            b'{' | b'[' if self.depth == DEPTH_MAX => Err("exceeded max depth".to_owned()),
            b'{' => self.deeper(Self::object),
            b'[' => self.deeper(Self::array),
            b'"' => self.string(),
            b't' => self.word("rue", "true"),
            b'f' => self.word("alse", "false"),
            b'n' => self.word("ull", "null"),
            b'-' | b'0'..=b'9' => {
                while self.peek().is_some_and(|byte| b"0123456789+-.eE".contains(&byte)) {
                    self.at = self.at.saturating_add(1);
                }
                Ok(())
            }
            byte => Err(invalid(byte, context)),
        }
    }

    fn deeper(&mut self, inside: impl FnOnce(&mut Self) -> Step) -> Step {
        self.depth = self.depth.saturating_add(1);
        let step = inside(self);
        self.depth = self.depth.saturating_sub(1);
        step
    }

    fn word(&mut self, rest: &str, word: &str) -> Step {
        for wanted in rest.bytes() {
            // Go's scanner reads a space at the end.
            let byte = self.next().unwrap_or(b' ');
            if byte != wanted {
                let wanted = char::from(wanted);
                return Err(invalid(byte, &format!("in literal {word} (expecting '{wanted}')")));
            }
        }
        Ok(())
    }

    fn string(&mut self) -> Step {
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => {
                    self.next()?;
                }
                byte if byte < 0x20 => return Err(invalid(byte, "in string literal")),
                _ => {}
            }
        }
    }

    fn object(&mut self) -> Step {
        self.space();
        if self.peek() == Some(b'}') {
            self.at = self.at.saturating_add(1);
            return Ok(());
        }
        loop {
            self.space();
            match self.next()? {
                b'"' => self.string()?,
                byte => return Err(invalid(byte, "looking for beginning of object key string")),
            }
            self.space();
            match self.next()? {
                b':' => {}
                byte => return Err(invalid(byte, "after object key")),
            }
            self.space();
            self.value("looking for beginning of value")?;
            self.space();
            match self.next()? {
                b',' => {}
                b'}' => return Ok(()),
                byte => return Err(invalid(byte, "after object key:value pair")),
            }
        }
    }

    fn array(&mut self) -> Step {
        self.space();
        if self.peek() == Some(b']') {
            self.at = self.at.saturating_add(1);
            return Ok(());
        }
        loop {
            self.space();
            self.value("looking for beginning of value")?;
            self.space();
            match self.next()? {
                b',' => {}
                b']' => return Ok(()),
                byte => return Err(invalid(byte, "after array element")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_gos() {
        let check = |text: &str, expect: &str| {
            assert_eq!(complaint(text.as_bytes()).as_deref(), Some(expect), "{text}");
        };
        check("{nope", "invalid character 'n' looking for beginning of object key string");
        check("{\"a\":", "unexpected end of JSON input");
        check("[1 2]", "invalid character '2' after array element");
        check("{} x", "invalid character 'x' after top-level value");
        assert_eq!(complaint(b"{\"a\": [1, true]}"), None);
        check(&"[".repeat(1_000_000), "exceeded max depth");
    }
}
