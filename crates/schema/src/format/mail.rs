//! Mail addresses: `a@b`, `Name <a@b>`, with comments

use super::address;

/// Whether Go's `mail.ParseAddress` takes a text.
pub(super) fn is_address(text: &str) -> bool {
    let mut parser = Parser { rest: text };
    parser.address(true) == Some(1) && parser.skip_comments() && parser.rest.is_empty()
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    /// An address, or a group of them; how many there were.
    fn address(&mut self, group: bool) -> Option<usize> {
        self.skip_space();
        if self.rest.is_empty() {
            return None;
        }
        if self.spec().is_some() {
            self.skip_space();
            if self.rest.starts_with('(') {
                self.rest = &self.rest[1..];
                self.comment().then_some(())?;
            }
            return Some(1);
        }
        if !self.rest.starts_with('<') {
            self.phrase()?;
        }
        self.skip_space();
        if group && self.take(':') {
            return self.group();
        }
        self.take('<').then_some(())?;
        self.spec()?;
        self.take('>').then_some(1)
    }

    fn group(&mut self) -> Option<usize> {
        self.skip_space();
        if self.take(';') {
            return self.skip_comments().then_some(0);
        }
        let mut count = 0;
        loop {
            self.skip_space();
            count += self.address(false)?;
            self.skip_comments().then_some(())?;
            if self.take(';') {
                return self.skip_comments().then_some(count);
            }
            self.take(',').then_some(())?;
        }
    }

    /// `local@domain`; consumes nothing unless it is one.
    fn spec(&mut self) -> Option<()> {
        let start = self.rest;
        let parsed = self.try_spec();
        if parsed.is_none() {
            self.rest = start;
        }
        parsed
    }

    fn try_spec(&mut self) -> Option<()> {
        self.skip_space();
        if self.rest.starts_with('"') {
            self.quoted()?.then_some(())?;
        } else {
            self.atom(false)?;
        }
        self.take('@').then_some(())?;
        self.skip_space();
        if !self.rest.starts_with('[') {
            return self.atom(false);
        }
        let end = self.rest.find(']')?;
        let literal = address::is_ip(&self.rest[1..end]);
        self.rest = &self.rest[end + 1..];
        literal.then_some(())
    }

    /// Words before an address; at least one.
    fn phrase(&mut self) -> Option<()> {
        let mut words = 0;
        loop {
            if words > 0 && !self.skip_comments() {
                return None;
            }
            self.skip_space();
            if self.rest.is_empty() {
                return Some(());
            }
            let word = if self.rest.starts_with('"') {
                self.quoted().map(|_| ())
            } else {
                self.atom(true)
            };
            match word {
                Some(()) => words += 1,
                None => return (words > 0).then_some(()),
            }
        }
    }

    /// A quoted string; whether there was anything in it.
    fn quoted(&mut self) -> Option<bool> {
        let mut escaped = false;
        for (i, c) in self.rest.char_indices().skip(1) {
            match c {
                c if escaped && is_visible(c) => escaped = false,
                _ if escaped => return None,
                '"' => {
                    self.rest = &self.rest[i + 1..];
                    return Some(i > 1);
                }
                '\\' => escaped = true,
                c if is_visible(c) => {}
                _ => return None,
            }
        }
        None
    }

    fn atom(&mut self, permissive: bool) -> Option<()> {
        let atext =
            |c: char| c != ' ' && c != '\t' && is_visible(c) && !"()<>[]:;@\\,\"".contains(c);
        let end = self.rest.find(|c| !atext(c)).unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at(end);
        if atom.is_empty() {
            return None;
        }
        self.rest = rest;
        let dots = atom.starts_with('.') || atom.ends_with('.') || atom.contains("..");
        (permissive || !dots).then_some(())
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn skip_comments(&mut self) -> bool {
        self.skip_space();
        while self.take('(') {
            if !self.comment() {
                return false;
            }
            self.skip_space();
        }
        true
    }

    /// The rest of a comment, nested ones included.
    fn comment(&mut self) -> bool {
        let mut depth = 1;
        let mut chars = self.rest.char_indices();
        while let Some((i, c)) = chars.next() {
            match c {
                '\\' => _ = chars.next(),
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = &self.rest[i + 1..];
                return true;
            }
        }
        false
    }

    fn take(&mut self, c: char) -> bool {
        let Some(rest) = self.rest.strip_prefix(c) else { return false };
        self.rest = rest;
        true
    }
}

/// A character that prints, a space or a tab.
fn is_visible(c: char) -> bool {
    matches!(c, '!'..='~' | ' ' | '\t') || !c.is_ascii()
}
