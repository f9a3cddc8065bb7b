//! Queries and paths, decoded.

/// The decoded pairs of a query string.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

/// The most pairs that are looked at.
const PAIRS_MAX: usize = 32;

impl Query {
    /// Reads the part of an address behind the question mark.
    pub fn parse(text: Option<&str>) -> Self {
        let pairs = text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.take(PAIRS_MAX).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(&key.replace('+', " ")), decode(&value.replace('+', " ")))
        });
        Self(pairs.collect())
    }

    /// The first value of a key that says something.
    pub fn get(&self, key: &str) -> Option<&str> {
        let mut found = self.0.iter().filter(|pair| pair.0 == key).map(|pair| pair.1.as_str());
        found.find(|value| !value.is_empty())
    }

    /// The same question, from another place on.
    pub(super) fn at(&self, path: &str, cursor: &str) -> String {
        let kept = self.0.iter().filter(|pair| pair.0 != "cursor");
        let pairs = kept.map(|(key, value)| format!("{}={}", encode(key), encode(value)));
        let pairs: Vec<String> = pairs.chain([format!("cursor={}", encode(cursor))]).collect();
        format!("{path}?{}", pairs.join("&"))
    }
}

/// Undoes `%41`; what is not UTF-8 becomes a character that no grammar allows.
pub fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = (*first == b'%').then(|| hex_pair(after)).flatten();
        rest = if let Some(byte) = escaped {
            bytes.push(byte);
            &after[2..]
        } else {
            bytes.push(*first);
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

/// Escapes a value for an address.
pub fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/".contains(&byte);
    let escape = |byte: u8| match byte {
        byte if plain(byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded_and_written_again() {
        let query = Query::parse(Some("q=a+b%2Fc&limit=&cursor=x&limit=3&%zz"));
        assert_eq!(query.get("q"), Some("a b/c"));
        assert_eq!(query.get("limit"), Some("3"));
        assert_eq!(query.get("missing"), None);
        let next = query.at("/api/v1/crds", "2:a b");
        assert_eq!(next, "/api/v1/crds?q=a%20b/c&limit=&limit=3&%25zz=&cursor=2:a%20b");
    }
}
