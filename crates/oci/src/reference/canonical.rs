//! One spelling for each registry and path.
//!
//! Names are compared as text wherever it matters: by policies on signatures, by credentials, by
//! rights that packages of one organisation share. The address that a request goes to is not the
//! text, but what a URL parser makes of it. So two texts that lead to one place are read as one
//! text, and a text that a URL parser would read as something else is refused:
//!
//! | written | read as |
//! |---|---|
//! | `R.Example.org/a` | `r.example.org/a` |
//! | `r.example.org./a` | `r.example.org/a` |
//! | `r.example.org:443/a`, `r.example.org:/a` | `r.example.org/a` |
//! | `r.example.org:05000/a` | `r.example.org:5000/a` |
//! | `10.0.0.1:80/a`, `10.0.0.1:443/a` | `10.0.0.1/a`, where TLS is tried before plain HTTP |
//! | `[0:0::1]:5000/a` | `[::1]:5000/a` |
//! | `[::ffff:10.0.0.1]/a` | `10.0.0.1/a` |
//! | `registry:443/a` | the same; without its port it would be a path on the default registry |
//! | `127.1/a`, `0x7f.0.0.1/a`, `r..org/a` | refused |
//! | `r.example.org/x/../a`, `r.example.org//a` | refused |

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const HOST_LENGTH_MAX: usize = 253;
const TLS_PORT: u16 = 443;
const PLAIN_PORT: u16 = 80;

/// The one spelling of a registry; `None` if it has none.
pub(super) fn registry(written: &str) -> Option<String> {
    let (host, port) = split_port(written)?;
    let host = canonical_host(host)?;
    let port = match port {
        None | Some("") => None,
        Some(digits) => Some(parse_port(digits)?),
    };
    let port = port.filter(|port| !goes_without_saying(&host, *port));
    Some(match port {
        Some(port) => format!("{host}:{port}"),
        None if is_registry(&host) => host,
        None => format!("{host}:{TLS_PORT}"),
    })
}

/// Whether the first component of a name is a registry rather than a part of the path.
pub(super) fn is_registry(component: &str) -> bool {
    component == "localhost" || component.contains(['.', ':'])
}

/// Host and port; an address in brackets keeps them.
fn split_port(registry: &str) -> Option<(&str, Option<&str>)> {
    if registry.starts_with('[') {
        let end = registry.find(']')? + 1;
        return match &registry[end..] {
            "" => Some((registry, None)),
            port => Some((&registry[..end], Some(port.strip_prefix(':')?))),
        };
    }
    Some(match registry.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (registry, None),
    })
}

fn canonical_host(written: &str) -> Option<String> {
    if let Some(rest) = written.strip_prefix('[') {
        let address: Ipv6Addr = rest.strip_suffix(']')?.parse().ok()?;
        let mapped = address.to_ipv4_mapped().map(|address| address.to_string());
        return Some(mapped.unwrap_or_else(|| format!("[{address}]")));
    }
    let lower = written.to_ascii_lowercase();
    let bare = lower.strip_suffix('.').unwrap_or(&lower);
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_label = |label: &str| !label.is_empty() && label.bytes().all(allowed);
    if bare.len() > HOST_LENGTH_MAX || !bare.split('.').all(is_label) {
        return None;
    }
    // A URL parser takes 127.1, 0177.0.0.1 and 0x7f000001 for addresses, too; one form is enough.
    if ends_in_number(bare) {
        return bare.parse::<Ipv4Addr>().ok().map(|address| address.to_string());
    }
    Some(bare.to_owned())
}

/// Whether a URL parser would take a host for an IPv4 address.
fn ends_in_number(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host);
    let is_hex = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    last.bytes().all(|byte| byte.is_ascii_digit()) || last.strip_prefix("0x").is_some_and(is_hex)
}

fn parse_port(digits: &str) -> Option<u16> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|port| is_number && *port != 0)
}

/// Whether a host is reached at this port when none is said. Hosts that are spoken to in plain are
/// asked for TLS first, so both ports go without saying there; `localhost` alone always means TLS.
fn goes_without_saying(host: &str, port: u16) -> bool {
    port == TLS_PORT || (port == PLAIN_PORT && host != "localhost" && is_plain_host(host))
}

/// Whether plain HTTP is spoken to a host, whatever its port.
pub(super) fn is_plain_host(host: &str) -> bool {
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_private() || address == Ipv4Addr::LOCALHOST,
        Ok(IpAddr::V6(address)) => address.is_loopback(),
        Err(_) => host.ends_with(".localhost"),
    }
}

/// The host of a registry, without its port and brackets.
pub(super) fn bare_host(registry: &str) -> &str {
    let host = split_port(registry).map_or(registry, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Whether a path is one by OCI's grammar: components of `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`, which
/// no URL parser changes.
pub(super) fn is_path(text: &str) -> bool {
    text.split('/').all(is_component)
}

fn is_component(text: &str) -> bool {
    let is_word = |byte: &&u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut rest = text.as_bytes();
    loop {
        let word = rest.iter().take_while(is_word).count();
        if word == 0 {
            return false;
        }
        rest = match &rest[word..] {
            [] => return true,
            [b'_', b'_', after @ ..] | [b'.' | b'_', after @ ..] => after,
            dashes @ [b'-', ..] => {
                &dashes[dashes.iter().take_while(|byte| **byte == b'-').count()..]
            }
            _ => return false,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{Reference, ReferenceError, Repository, Rules};
    use proptest::prelude::*;

    fn repository(text: &str) -> Result<Repository, ReferenceError> {
        Repository::parse(text, &Rules::weak())
    }

    #[test]
    fn h6_names_of_one_place_are_read_as_one_name() {
        let check = |written: &str, canonical: &str| {
            assert_eq!(repository(written).unwrap().to_string(), canonical, "{written}");
            assert_eq!(repository(canonical).unwrap().to_string(), canonical, "{written} again");
        };
        for host in [
            "R.Example.org",
            "r.example.org.",
            "r.example.org:443",
            "r.example.org:",
            "R.EXAMPLE.ORG.:0443",
        ] {
            check(&format!("{host}/team/p"), "r.example.org/team/p");
        }
        check("r.example.org:80/a", "r.example.org:80/a");
        check("127.0.0.1:022043/team/p", "127.0.0.1:22043/team/p");
        check("127.0.0.1.:22043/team/p", "127.0.0.1:22043/team/p");
        check("10.0.0.1:80/a", "10.0.0.1/a");
        check("10.0.0.1:443/a", "10.0.0.1/a");
        check("LOCALHOST:5000/a", "localhost:5000/a");
        check("localhost./a", "localhost/a");
        check("localhost:443/a", "localhost/a");
        check("localhost:80/a", "localhost:80/a");
        check("Registry:443/a", "registry:443/a");
        check("registry./a", "registry:443/a");
        check("registry:/a", "registry:443/a");
        check("Docker.IO:443/a", "index.docker.io/library/a");
    }

    #[test]
    fn h6_addresses_of_version_6_keep_working() {
        let check = |written: &str, canonical: &str| {
            assert_eq!(repository(written).unwrap().to_string(), canonical, "{written}");
        };
        check("[::1]:5000/a", "[::1]:5000/a");
        check("[0:0:0::1]:05000/a", "[::1]:5000/a");
        check("[FD00::AB]/a", "[fd00::ab]/a");
        check("[fd00::ab]:443/a", "[fd00::ab]/a");
        check("[fd00::ab]:80/a", "[fd00::ab]:80/a");
        check("[::1]:80/a", "[::1]/a");
        check("[::ffff:10.0.0.1]:5000/a", "10.0.0.1:5000/a");
        check("[::ffff:7f00:1]:5000/a", "127.0.0.1:5000/a");
    }

    #[test]
    fn h6_names_without_one_spelling_are_refused() {
        for host in [
            "127.1",
            "127.0.0.01",
            "0x7f.0.0.1",
            "0177.0.0.1",
            "1.2.3.4.5",
            "a.0x",
            "r.1",
            "r..org",
            ".org",
            "..",
            ".",
            "r.org..",
            "r.org:0",
            "r.org:65536",
            "r.org:+80",
            "r.org:80:80",
            "[::1",
            "[::1]5000",
            "[1.2.3.4]:5000",
            "[::1%25lo]",
            "::1",
            ":5000",
            "r\u{e9}.org",
        ] {
            let error = repository(&format!("{host}/a")).unwrap_err();
            assert_eq!(error, ReferenceError::Registry(host.to_owned()), "{host}");
        }
        for path in [
            "x/../a", "./a", "../a", "a/.", "a/..", "a//b", "/a", "a/", "a/.b", "a/b.", "a..b",
            "-a", "a-", "_a", "a___b", "%2e%2e/a",
        ] {
            let error = repository(&format!("r.org/{path}")).unwrap_err();
            assert_eq!(error, ReferenceError::Repository(path.to_owned()), "{path}");
        }
        for tag in [".", "..", "-a", ".a"] {
            let error = Reference::parse(&format!("r.org/a:{tag}"), &Rules::weak()).unwrap_err();
            assert_eq!(error, ReferenceError::Tag(tag.to_owned()), "{tag}");
        }
    }

    #[test]
    fn h6_the_registry_that_goes_without_saying_is_spelled_the_same_way() {
        for registry in ["XPKG.example.org", "xpkg.example.org.", "xpkg.example.org:0443"] {
            let rules = Rules::weak().default_registry(registry);
            let found = Repository::parse("team/p", &rules).unwrap();
            assert_eq!(found.to_string(), "xpkg.example.org/team/p", "{registry}");
        }
        let rules = Rules::weak().default_registry("x/../y");
        assert!(Repository::parse("team/p", &rules).is_err());
    }

    #[test]
    fn paths_follow_the_grammar() {
        for good in ["a", "a/b", "a0/b__c/d--e.f_g", "library/x-y", "xpkg.example.org/a", "0"] {
            assert!(is_path(good), "{good}");
        }
    }

    proptest! {
        #[test]
        fn h6_a_canonical_name_is_its_own(
            host in "[A-Za-z0-9.:_\\[\\]-]{1,24}",
            path in "[a-z0-9._/-]{1,16}",
        ) {
            if let Ok(first) = repository(&format!("{host}/{path}")) {
                let again = repository(&first.to_string());
                prop_assert_eq!(again.as_ref(), Ok(&first));
                prop_assert_eq!(again.unwrap().scheme(), first.scheme());
            }
        }
    }
}
