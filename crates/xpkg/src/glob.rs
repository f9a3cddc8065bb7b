//! Shell patterns for `--ignore`, as Go's `filepath.Match` reads them: `*` and `?` stay within a
//! path component, `[a-z]` and `[^a-z]` are classes, `\` takes the next letter literally.

/// A pattern that was seen to be well-formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    pattern: String,
    tokens: Vec<Token>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Literal(char),
    Any,
    Star,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

/// The pattern has an unfinished class or escape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("pattern `{0}` is malformed: a `[` is not closed, or it ends in a backslash")]
pub struct GlobError(String);

impl Glob {
    /// Parses a pattern relative to the package root; `./` before it and `/` behind it mean
    /// nothing.
    pub fn parse(pattern: &str) -> Result<Self, GlobError> {
        let bare = pattern.trim_start_matches("./").trim_end_matches('/');
        let mut tokens = Vec::new();
        let mut letters = bare.chars().peekable();
        let malformed = || GlobError(pattern.to_owned());
        while let Some(letter) = letters.next() {
            tokens.push(match letter {
                '*' => Token::Star,
                '?' => Token::Any,
                '\\' => Token::Literal(letters.next().ok_or_else(malformed)?),
                '[' => class(&mut letters).ok_or_else(malformed)?,
                other => Token::Literal(other),
            });
        }
        Ok(Self { pattern: pattern.to_owned(), tokens })
    }

    /// Whether the whole path matches. Paths are separated by `/`.
    pub fn matches(&self, path: &str) -> bool {
        let letters: Vec<char> = path.chars().collect();
        matches(&self.tokens, &letters)
    }

    /// Whether the path, or a directory it lies in, matches: upstream cannot ignore directories,
    /// but people mean it.
    pub fn covers(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(index, _)| index).chain([path.len()]);
        ends.into_iter().any(|end| self.matches(&path[..end]))
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }
}

fn class(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<Token> {
    let negated = letters.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    loop {
        if letters.peek() == Some(&']') && !ranges.is_empty() {
            letters.next();
            return Some(Token::Class { negated, ranges });
        }
        let low = class_letter(letters)?;
        let high = match letters.next_if_eq(&'-') {
            Some(_) => class_letter(letters)?,
            None => low,
        };
        ranges.push((low, high));
    }
}

fn class_letter(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<char> {
    match letters.next()? {
        '\\' => letters.next(),
        '-' | ']' => None,
        other => Some(other),
    }
}

/// Greedy matching that remembers the last star only: linear for one star, and never worse than
/// quadratic, so that a hostile pattern costs nothing.
fn matches(tokens: &[Token], letters: &[char]) -> bool {
    let (mut token, mut letter) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while letter < letters.len() || token < tokens.len() {
        let advanced = match tokens.get(token) {
            Some(Token::Star) => {
                star = Some((token, letter));
                token += 1;
                continue;
            }
            Some(other) => letters.get(letter).is_some_and(|found| accepts(other, *found)),
            None => false,
        };
        if advanced {
            token += 1;
            letter += 1;
            continue;
        }
        match star {
            Some((at, from)) if letters.get(from).is_some_and(|found| *found != '/') => {
                star = Some((at, from + 1));
                (token, letter) = (at + 1, from + 1);
            }
            _ => return false,
        }
    }
    true
}

fn accepts(token: &Token, letter: char) -> bool {
    match token {
        Token::Literal(wanted) => *wanted == letter,
        Token::Any | Token::Star => letter != '/',
        Token::Class { negated, ranges } => {
            let inside = ranges.iter().any(|(low, high)| (*low..=*high).contains(&letter));
            inside != *negated && letter != '/'
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        let check = |pattern: &str, path: &str, expected: bool| {
            let glob = Glob::parse(pattern).unwrap();
            assert_eq!(glob.matches(path), expected, "{pattern} {path}");
        };
        check("*.yaml", "a.yaml", true);
        check("*.yaml", "d/a.yaml", false);
        check("./test/*", "test/a.yaml", true);
        check("test/*", "test/d/a.yaml", false);
        check("a?c", "abc", true);
        check("a?c", "a/c", false);
        check("[a-c]x", "bx", true);
        check("[^a-c]x", "bx", false);
        check("*a*b*c", "xxaxxbxxc", true);
        check("*a*b*c", "xxaxxbxx", false);
        check(r"\*", "*", true);
        check(r"\*", "a", false);
        check("", "", true);
        check("kind-config.yaml", "kind-config.yaml", true);
    }

    #[test]
    fn a_directory_covers_what_lies_in_it() {
        let glob = Glob::parse(".github/").unwrap();
        assert!(glob.covers(".github/workflows/ci.yaml"));
        assert!(!glob.covers(".githubx/ci.yaml"));
        assert!(Glob::parse("*/testdata").unwrap().covers("a/testdata/x.yaml"));
    }

    #[test]
    fn malformed_patterns_are_refused() {
        for pattern in ["[", "[a", "[]", "[a-", r"a\"] {
            assert!(Glob::parse(pattern).is_err(), "{pattern}");
        }
    }
}
