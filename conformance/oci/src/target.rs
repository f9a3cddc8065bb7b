//! The registry under test, and addresses in it.

use std::time::Duration;

/// The registry under test: where it is, who we are, and how patient to be.
#[derive(Debug, Clone)]
pub struct Target {
    /// `http://host:port` or `https://host:port`; a path is not part of it.
    pub base_url: String,
    /// User and password, where the registry asks for them. With credentials the checks of
    /// authentication run too.
    pub credentials: Option<(String, String)>,
    /// The first component of every repository that the suite makes, `conformance` if not set
    /// otherwise.
    pub repository_prefix: String,
    /// Accept any certificate. Only for registries one knows.
    pub insecure: bool,
    /// Certificates (PEM) to trust, for https without `insecure`.
    pub authorities: Option<Vec<u8>>,
    /// Decides every name and every byte that the suite makes up.
    pub seed: u64,
    /// How long one check may take.
    pub timeout: Duration,
    /// How many checks run at the same time.
    pub jobs: usize,
}

impl Target {
    /// A target with the usual settings: no credentials, 30 s for a check, 4 at a time, and
    /// seed 0.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            credentials: None,
            repository_prefix: "conformance".to_owned(),
            insecure: false,
            authorities: None,
            seed: 0,
            timeout: Duration::from_secs(30),
            jobs: 4,
        }
    }
}

/// Scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Origin {
    /// The value of the `Host` header.
    pub(crate) fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.tls, self.port) {
            (false, 80) | (true, 443) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

/// Where one request goes: the origin, and the request target (path and query) byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) origin: Origin,
    pub(crate) target: String,
}

impl Url {
    /// Reads an absolute http or https URL; the error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (tls, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            _ => return Err(format!("'{text}' does not begin with http:// or https://")),
        };
        let slash = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(slash);
        let (host, port) = match authority.strip_prefix('[').and_then(|a| a.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => authority.split_once(':').map_or((authority, None), |(h, p)| (h, Some(p))),
        };
        if host.is_empty() || host.contains('@') {
            return Err(format!("'{text}' names no host, or carries credentials"));
        }
        let port = match port {
            Some(port) => port.parse().map_err(|_| format!("'{port}' in '{text}' is no port"))?,
            None if tls => 443,
            None => 80,
        };
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        Ok(Self { origin: Origin { tls, host: host.to_owned(), port }, target })
    }

    /// Resolves a `Location` or `Link`: an absolute URL, or an absolute path, or a query, or a
    /// path relative to this one.
    pub(crate) fn join(&self, reference: &str) -> Result<Self, String> {
        let reference = reference.split('#').next().unwrap_or_default();
        if reference.is_empty() {
            return Err("an empty reference".to_owned());
        }
        if reference.contains("://") && !reference.starts_with(['/', '?']) {
            return Self::parse(reference);
        }
        let path = self.target.split('?').next().unwrap_or_default();
        let target = if reference.starts_with('/') {
            reference.to_owned()
        } else if reference.starts_with('?') {
            format!("{path}{reference}")
        } else {
            let folder = path.rfind('/').map_or("/", |at| &path[..=at]);
            format!("{folder}{reference}")
        };
        Ok(Self { origin: self.origin.clone(), target })
    }

    /// The same place with one more query parameter; what is there already stays as it is.
    pub(crate) fn with_query(&self, pair: &str) -> Self {
        let separator = if self.target.contains('?') { '&' } else { '?' };
        Self { origin: self.origin.clone(), target: format!("{}{separator}{pair}", self.target) }
    }
}

/// Percent-encodes a query value.
pub(crate) fn encode(value: &str) -> String {
    use std::fmt::Write as _;
    value.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::{Url, encode};

    #[test]
    fn references_resolve_as_rfc_3986_says() {
        let base = Url::parse("http://[::1]:5000/v2/a/tags/list?n=1").unwrap();
        assert_eq!(base.origin.authority(), "[::1]:5000");
        assert_eq!(base.join("/v2/?x").unwrap().target, "/v2/?x");
        assert_eq!(base.join("?n=2").unwrap().target, "/v2/a/tags/list?n=2");
        assert_eq!(base.join("more?n=2").unwrap().target, "/v2/a/tags/more?n=2");
        let other = base.join("https://example.org/x").unwrap();
        assert_eq!((other.origin.port, other.origin.tls), (443, true));
        assert_eq!(base.with_query("a=b").target, "/v2/a/tags/list?n=1&a=b");
        assert!(Url::parse("ftp://x").is_err());
        assert!(Url::parse("http://:1").is_err());
        assert_eq!(encode("a/b+c"), "a%2Fb%2Bc");
    }
}
