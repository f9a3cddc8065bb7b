//! What a URL points at.

/// A path below `/api/v1` or `/apis/GROUP/VERSION`, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The group; empty for the core.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural.
    pub resource: String,
    /// The namespace, if the path goes through one.
    pub namespace: Option<String>,
    /// The object's name, if it goes to one.
    pub name: Option<String>,
    /// What of the object, if not all.
    pub subresource: Option<String>,
}

impl Target {
    /// Takes a path apart; `None` when it points at nothing of ours.
    pub fn parse(path: &str) -> Option<Self> {
        // Decoded first, as upstream does, so that everybody sees the same segments.
        let path = percent_decode(path);
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let in_namespace = |rest: &[&str]| {
            rest.len() >= 3 && rest[0] == "namespaces" && !["status", "finalize"].contains(&rest[2])
        };
        let (namespace, rest) =
            if in_namespace(rest) { (Some(rest[1].to_owned()), &rest[2..]) } else { (None, rest) };
        if rest.is_empty() || rest.len() > 3 || rest.iter().any(|part| part.is_empty()) {
            return None;
        }
        let at = |index: usize| rest.get(index).map(|part| (*part).to_owned());
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            resource: rest[0].to_owned(),
            namespace,
            name: at(1),
            subresource: at(2),
        })
    }
}

/// `%2F` and its like as text.
pub fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = (first == b'%')
            .then(|| after.get(..2))
            .flatten()
            .and_then(|code| std::str::from_utf8(code).ok())
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        if let Some(byte) = code {
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_apart() {
        let check = |path: &str, expect: &str| {
            let text = Target::parse(path).map_or("none".to_owned(), |t| {
                let show = |part: Option<String>| part.unwrap_or("-".to_owned());
                format!(
                    "{}/{} {} {} {} {}",
                    t.group,
                    t.version,
                    t.resource,
                    show(t.namespace),
                    show(t.name),
                    show(t.subresource)
                )
            });
            assert_eq!(text, expect, "{path}");
        };
        check("/api/v1/namespaces", "/v1 namespaces - - -");
        check("/api/v1/namespaces/a", "/v1 namespaces - a -");
        check("/api/v1/namespaces/a/finalize", "/v1 namespaces - a finalize");
        check("/api/v1/namespaces/a/pods", "/v1 pods a - -");
        check("/apis/g/v1/namespaces/a/things/b/status", "g/v1 things a b status");
        check("/apis/g/v1/things/a%3Ab", "g/v1 things - a:b -");
        check("/apis/g/v1", "none");
        check("/healthz", "none");
    }
}
