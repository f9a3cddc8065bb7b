//! Names that a registry answers to.
//!
//! A web page anywhere can make its own name mean this machine, and then a browser here lets it
//! speak to whatever listens (DNS rebinding). Its requests still carry its name: a registry that
//! asks nobody who they are answers to its own names only. Other clients have no trouble with it,
//! for an address is not a name, and nobody can make one mean something else.

use http::header::{HOST, ORIGIN};
use http::request::Parts;
use http::uri::Authority;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// What a registry may be called.
#[derive(Clone, Debug)]
pub struct Hosts {
    names: Option<Arc<[String]>>,
    /// The address it listens on; none if that is all of them.
    address: Option<IpAddr>,
    always: bool,
}

impl Hosts {
    /// Whatever somebody calls it: for a service that no socket leads to.
    pub fn any() -> Self {
        Self { names: None, address: None, always: false }
    }

    /// This machine, the address that is listened on, and some names more; `*` is any name.
    pub fn of(listen: SocketAddr, more: &[String]) -> Self {
        if more.iter().any(|name| name == "*") {
            return Self::any();
        }
        let names = more.iter().map(|name| bare(name)).chain(["localhost".to_owned()]);
        let address = Some(listen.ip()).filter(|address| !address.is_unspecified());
        Self { names: Some(names.collect()), address, always: false }
    }

    /// The same, also for those who say who they are.
    #[must_use]
    pub fn always(self) -> Self {
        Self { always: true, ..self }
    }

    /// Whether a request may be answered by a registry that may be open.
    pub(crate) fn admit(&self, request: &Parts, is_open: impl FnOnce() -> bool) -> bool {
        let Some(names) = &self.names else { return true };
        self.is_ours(names, request) || (!self.always && !is_open())
    }

    /// Whether it may be called this.
    pub(crate) fn include(&self, host: &Authority) -> bool {
        self.names.as_ref().is_none_or(|names| self.knows(names, host))
    }

    /// Whether a request says no foreign name.
    fn is_ours(&self, names: &[String], request: &Parts) -> bool {
        let said = |name| request.headers.get_all(name).iter();
        let hosts = said(HOST).all(|value| {
            value.to_str().is_ok_and(|host| host.parse().is_ok_and(|it| self.knows(names, &it)))
        });
        let target = request.uri.authority().is_none_or(|it| self.knows(names, it));
        // A page says where it comes from; no client of registries does.
        let origins = said(ORIGIN).all(|value| {
            let text = value.to_str().ok().and_then(|origin| origin.split_once("://"));
            text.and_then(|(_, host)| host.parse().ok()).is_some_and(|it| self.knows(names, &it))
        });
        hosts && target && origins
    }

    fn knows(&self, names: &[String], host: &Authority) -> bool {
        if host.as_str().contains('@') {
            return false;
        }
        let host = bare(host.host());
        match host.parse::<IpAddr>() {
            Ok(address) if address.to_canonical().is_loopback() => true,
            Ok(address) => {
                self.address.is_none_or(|own| own.to_canonical() == address.to_canonical())
            }
            Err(_) => names.contains(&host),
        }
    }
}

/// A host without brackets, a final dot or capital letters.
fn bare(host: &str) -> String {
    let host = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn admits(hosts: &Hosts, host: &str, origin: &str) -> bool {
        let mut request = Request::delete("/v2/p/manifests/v1");
        if !host.is_empty() {
            request = request.header(HOST, host);
        }
        if !origin.is_empty() {
            request = request.header(ORIGIN, origin);
        }
        hosts.admit(&request.body(()).unwrap().into_parts().0, || true)
    }

    #[test]
    fn m5_only_own_names_are_answered_to() {
        let near = Hosts::of("127.0.0.1:5000".parse().unwrap(), &["Registry.test".to_owned()]);
        for host in
            ["", "localhost", "localhost:5000", "LOCALHOST.", "127.0.0.1:5000", "[::1]:5000"]
        {
            assert!(admits(&near, host, ""), "{host}");
        }
        assert!(admits(&near, "registry.test:443", ""));
        for host in ["evil.example.org", "evil.example.org:5000", "localhost.evil.org", "192.0.2.1"]
        {
            assert!(!admits(&near, host, ""), "{host}");
        }
        assert!(!admits(&near, "user@localhost:x", ""));
        let wide = Hosts::of("0.0.0.0:5000".parse().unwrap(), &[]);
        assert!(admits(&wide, "192.0.2.1:5000", "") && !admits(&wide, "evil.example.org", ""));
        let all = Hosts::of("0.0.0.0:5000".parse().unwrap(), &["*".to_owned()]);
        assert!(admits(&all, "evil.example.org", "") && admits(&Hosts::any(), "x", ""));
    }

    #[test]
    fn m5_pages_of_others_are_not_answered() {
        let near = Hosts::of("127.0.0.1:5000".parse().unwrap(), &[]);
        assert!(admits(&near, "127.0.0.1:5000", "http://localhost:8080"));
        for origin in ["https://evil.example.org", "null", "file://"] {
            assert!(!admits(&near, "127.0.0.1:5000", origin), "{origin}");
        }
    }
}
