//! Query strings: `a=b&c=d`, decoded.

/// The decoded pairs of a query string.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

/// The most pairs that are looked at.
const PAIRS_MAX: usize = 128;

impl Query {
    pub(crate) fn parse(text: Option<&str>) -> Self {
        let pairs = text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.take(PAIRS_MAX).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key), decode(value))
        });
        Self(pairs.collect())
    }

    /// The first value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.all(key).next()
    }

    /// All values of a key.
    pub(crate) fn all<'query>(&'query self, key: &str) -> impl Iterator<Item = &'query str> {
        self.0.iter().filter(move |pair| pair.0 == key).map(|pair| pair.1.as_str())
    }
}

/// Undoes `%41` and `+`; what is not UTF-8 becomes a character that no grammar allows.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = (*first == b'%').then(|| hex_pair(after)).flatten();
        rest = if let Some(byte) = escaped {
            bytes.push(byte);
            &after[2..]
        } else {
            bytes.push(if *first == b'+' { b' ' } else { *first });
            after
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex_pair(text: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let [high, low, ..] = text else { return None };
    u8::try_from(digit(*high)?.checked_mul(16)?.checked_add(digit(*low)?)?).ok()
}

/// Escapes a value for a query string.
pub(crate) fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        let query = Query::parse(Some("digest=sha256%3Aab&tag=a&tag=b%2Bc+d&n&x=%zz%4"));
        assert_eq!(query.get("digest"), Some("sha256:ab"));
        assert_eq!(query.all("tag").collect::<Vec<_>>(), ["a", "b+c d"]);
        assert_eq!(query.get("n"), Some(""));
        assert_eq!(query.get("x"), Some("%zz%4"));
        assert_eq!(query.get("missing"), None);
        assert_eq!(encode("application/x+json; a"), "application/x%2Bjson%3B%20a");
    }
}
