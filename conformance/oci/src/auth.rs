//! Challenges: `WWW-Authenticate` read strictly, for a sloppy one confuses real clients.

/// One challenge of a `WWW-Authenticate` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// `basic` or `bearer`, in lower case.
    pub(crate) scheme: String,
    /// Names in lower case.
    pub(crate) parameters: Vec<(String, String)>,
}

impl Challenge {
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Reads `Scheme name="value",name="value"`; the error says what is malformed.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (scheme, mut rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        if scheme.is_empty() || !scheme.chars().all(is_token) {
            return Err(format!("'{scheme}' is no scheme"));
        }
        let mut parameters = Vec::new();
        while !rest.trim_start().is_empty() {
            let (name, after) =
                rest.split_once('=').ok_or_else(|| format!("'{rest}' is no parameter"))?;
            let name = name.trim();
            if name.is_empty() || !name.chars().all(is_token) {
                return Err(format!("'{name}' is no parameter name"));
            }
            let (value, after) = value(after.trim_start())?;
            parameters.push((name.to_ascii_lowercase(), value));
            rest = match after.trim_start() {
                "" => "",
                more => {
                    more.strip_prefix(',').ok_or_else(|| format!("no comma before '{more}'"))?
                }
            };
        }
        if parameters.iter().all(|(name, _)| name != "realm") {
            return Err("it names no realm".to_owned());
        }
        Ok(Self { scheme: scheme.to_ascii_lowercase(), parameters })
    }
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

/// A quoted string or a token, and what follows it.
fn value(text: &str) -> Result<(String, &str), String> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|c| !is_token(c)).unwrap_or(text.len());
        if end == 0 {
            return Err(format!("a value is missing at '{text}'"));
        }
        return Ok((text[..end].to_owned(), &text[end..]));
    };
    let mut out = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Ok((out, &quoted[at + 1..])),
            '\\' => out.extend(characters.next().map(|(_, escaped)| escaped)),
            c => out.push(c),
        }
    }
    Err(format!("the quotes of '{text}' are not closed"))
}

#[cfg(test)]
mod tests {
    use super::Challenge;

    #[test]
    fn challenges_are_read_strictly() {
        let text = r#"Bearer realm="http://r/token",service=r,scope="repository:a:pull,push""#;
        let challenge = Challenge::parse(text).unwrap();
        assert_eq!(challenge.scheme, "bearer");
        assert_eq!(challenge.parameter("scope"), Some("repository:a:pull,push"));
        assert_eq!(challenge.parameter("service"), Some("r"));
        assert!(Challenge::parse("Basic").unwrap_err().contains("realm"));
        assert!(Challenge::parse(r#"Basic realm="x"#).unwrap_err().contains("not closed"));
        assert!(Challenge::parse(r#"Basic realm="x" y=z"#).unwrap_err().contains("comma"));
    }
}
