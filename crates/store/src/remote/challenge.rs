//! `WWW-Authenticate`: what a registry wants to see.

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;

/// What a registry wants to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// User and password with every request.
    Basic,
    /// A token from somewhere.
    Bearer {
        /// Where tokens are to be had.
        realm: String,
        /// For whom.
        service: Option<String>,
        /// What for.
        scopes: Vec<String>,
    },
}

impl Challenge {
    /// Bytes of what it says.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Basic => 0,
            Self::Bearer { realm, service, scopes } => {
                let scopes: usize = scopes.iter().map(String::len).sum();
                realm.len() + service.as_deref().map_or(0, str::len) + scopes
            }
        }
    }

    /// The challenge we can meet best: tokens before passwords.
    pub(crate) fn choose(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|it| it.to_str().ok());
        let all: Vec<Self> = values.flat_map(parse).collect();
        let bearer = all.iter().find(|each| matches!(each, Self::Bearer { .. }));
        bearer.or_else(|| all.first()).cloned()
    }
}

/// All challenges of one header. Parts that make no sense are passed over.
fn parse(text: &str) -> Vec<Challenge> {
    let mut found: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for part in split(text) {
        let (head, value) = match part.split_once('=') {
            Some((head, value)) => (head.trim(), Some(unquote(value.trim()))),
            None => (part.trim(), None),
        };
        // `Bearer realm` begins a challenge; `service` alone continues one.
        let (scheme, key) = match head.rsplit_once(char::is_whitespace) {
            Some((scheme, key)) => (Some(scheme.trim()), key),
            None if value.is_none() => (Some(head), ""),
            None => (None, head),
        };
        if let Some(scheme) = scheme {
            found.push((scheme.to_ascii_lowercase(), Vec::new()));
        }
        if let (Some((_, parameters)), Some(value)) = (found.last_mut(), value) {
            parameters.push((key.to_ascii_lowercase(), value));
        }
    }
    found.into_iter().filter_map(|(scheme, parameters)| build(&scheme, &parameters)).collect()
}

fn build(scheme: &str, parameters: &[(String, String)]) -> Option<Challenge> {
    let get = |name: &str| parameters.iter().find(|(key, _)| key == name).map(|(_, it)| it.clone());
    match scheme {
        "basic" => Some(Challenge::Basic),
        "bearer" => Some(Challenge::Bearer {
            realm: get("realm")?,
            service: get("service"),
            scopes: get("scope").iter().flat_map(|it| it.split(' ')).map(str::to_owned).collect(),
        }),
        _ => None,
    }
}

/// Splits at commas that are not within quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (position, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => {
                parts.push(&text[start..position]);
                start = position + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn unquote(text: &str) -> String {
    let Some(inner) = text.strip_prefix('"') else {
        return text.to_owned();
    };
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut plain = String::new();
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.extend(characters.next()),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(realm: &str, service: Option<&str>, scopes: &[&str]) -> Challenge {
        Challenge::Bearer {
            realm: realm.to_owned(),
            service: service.map(str::to_owned),
            scopes: scopes.iter().map(|&each| each.to_owned()).collect(),
        }
    }

    #[test]
    fn challenges_of_real_registries_are_read() {
        let hub = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull,push""#;
        let token = bearer(
            "https://auth.docker.io/token",
            Some("registry.docker.io"),
            &["repository:a/b:pull,push"],
        );
        assert_eq!(parse(hub), [token]);
        assert_eq!(parse(r#"Basic realm="Registry Realm""#), [Challenge::Basic]);
        assert_eq!(parse("basic"), [Challenge::Basic]);
        assert_eq!(
            parse(r#"Basic realm="a, b", Bearer realm="r" , service=s"#),
            [Challenge::Basic, bearer("r", Some("s"), &[])]
        );
        assert_eq!(parse(r#"bearer REALM="q\"uote""#), [bearer("q\"uote", None, &[])]);
    }

    #[test]
    fn nonsense_is_passed_over() {
        for text in ["", ",,,", "Bearer", "Negotiate abc==", "=", "\"", "Bearer realm", "é=\"ü"] {
            assert_eq!(parse(text), [], "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_header_is_read_or_passed_over(text in "\\PC{0,200}") {
            let _ = parse(&text);
        }
    }
}
