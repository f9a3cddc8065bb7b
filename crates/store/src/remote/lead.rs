//! Where an answer may send us.
//!
//! A registry names other addresses: redirects to where blobs are, places to upload to, further
//! pages, token servers. Whoever runs it, or stands between it and us, could so have us ask what
//! only this machine can reach, and tell what came of it. So we go to other hosts over TLS, or in
//! plain where we came in plain; to this machine only from this machine; and never to addresses
//! that clouds keep their secrets at.

use super::HttpError;
use super::request::{is_loopback, shown};
use reqwest::Url;
use std::net::IpAddr;

/// Checks that an answer of `from` may send us to another address.
pub(super) fn check_lead(from: &Url, to: &Url) -> Result<(), HttpError> {
    let has_user = !to.username().is_empty() || to.password().is_some();
    if !matches!(to.scheme(), "http" | "https") || has_user {
        return Err(HttpError::Url(shown(to)));
    }
    if from.scheme() == "https" && to.scheme() == "http" && !(is_here(from) && is_here(to)) {
        return Err(HttpError::Downgrade { from: shown(from), to: shown(to) });
    }
    let is_same = from.host() == to.host();
    if is_same || (!is_link_local(to) && (is_here(from) || !is_here(to))) {
        return Ok(());
    }
    Err(HttpError::Astray { from: shown(from), to: shown(to) })
}

/// Where an upload goes on. Registries behind proxies often get their own scheme wrong; they are
/// reached the way they were reached before, never in plain.
pub(super) fn next_upload(from: &Url, mut to: Url) -> Result<Url, HttpError> {
    mend_scheme(from, &mut to);
    check_lead(from, &to).map(|()| to)
}

/// The next page of a list, which is where the list is.
pub(super) fn next_page(from: &Url, mut to: Url) -> Result<Url, HttpError> {
    mend_scheme(from, &mut to);
    check_lead(from, &to)?;
    if from.origin() == to.origin() {
        return Ok(to);
    }
    Err(HttpError::Astray { from: shown(from), to: shown(&to) })
}

/// Whether a registry may have tokens fetched from an address: over TLS, or in plain from its own
/// host, if it is spoken to in plain itself or is on this machine.
pub(super) fn may_be_realm(registry: &Url, realm: &Url) -> bool {
    let is_near = registry.host() == realm.host() || (is_here(registry) && is_here(realm));
    let is_private = realm.scheme() == "https" || is_near;
    is_private && check_lead(registry, realm).is_ok()
}

fn mend_scheme(from: &Url, to: &mut Url) {
    let is_downgrade = from.scheme() == "https" && to.scheme() == "http";
    if is_downgrade && from.host() == to.host() && !is_loopback(to) {
        // `http` to `https` is always possible.
        let _ = to.set_scheme("https");
    }
}

fn address(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']');
    let address: IpAddr = host.parse().ok()?;
    Some(address.to_canonical())
}

/// Whether an address is this machine, however it is written.
fn is_here(url: &Url) -> bool {
    let is_own = |address: IpAddr| address.is_loopback() || address.is_unspecified();
    is_loopback(url) || address(url).is_some_and(is_own)
}

/// Whether an address means something else on each machine, such as a cloud's metadata service.
fn is_link_local(url: &Url) -> bool {
    address(url).is_some_and(|address| match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn l4_answers_lead_over_tls_or_as_we_came() {
        let check = |from: &str, to: &str, expected: bool| {
            assert_eq!(check_lead(&url(from), &url(to)).is_ok(), expected, "{from} {to}");
        };
        check("https://r.io/a", "https://cdn.org/b", true);
        check("https://r.io/a", "https://10.0.0.1/b", true);
        check("https://r.io/a", "http://cdn.org/b", false);
        check("https://r.io/a", "http://r.io/b", false);
        check("https://r.io/a", "http://127.0.0.1/b", false);
        check("https://r.io/a", "https://127.0.0.1/b", false);
        check("https://r.io/a", "https://169.254.169.254/b", false);
        check("https://r.io/a", "https://u:p@cdn.org/b", false);
        check("https://r.io/a", "ftp://cdn.org/b", false);
        check("http://10.0.0.1/a", "http://10.0.0.2/b", true);
        check("http://10.0.0.1/a", "http://localhost/b", false);
        check("http://10.0.0.1/a", "http://0.0.0.0/b", false);
        check("http://10.0.0.1/a", "http://[::ffff:127.0.0.1]/b", false);
        check("http://10.0.0.1/a", "http://169.254.169.254/b", false);
        check("http://10.0.0.1/a", "http://[::ffff:a9fe:a9fe]/b", false);
        check("http://10.0.0.1/a", "http://[fe80::1]/b", false);
        check("http://127.0.0.1:5000/a", "http://localhost:9000/b", true);
        check("https://localhost:5000/a", "http://127.0.0.1:9000/b", true);
        check("http://127.0.0.1:5000/a", "http://169.254.169.254/b", false);
    }

    #[test]
    fn l4_tokens_come_over_tls_or_from_the_registrys_own_host() {
        let check = |registry: &str, realm: &str, expected: bool| {
            assert_eq!(may_be_realm(&url(registry), &url(realm)), expected, "{registry} {realm}");
        };
        check("https://r.io/v2/", "https://auth.org/token", true);
        check("https://r.io/v2/", "http://auth.org/token", false);
        check("https://r.io/v2/", "http://r.io/token", false);
        check("https://r.io/v2/", "http://127.0.0.1:8080/token", false);
        check("http://10.0.0.1:5000/v2/", "http://10.0.0.1:5001/token", true);
        check("http://10.0.0.1:5000/v2/", "http://10.0.0.2/token", false);
        check("http://127.0.0.1:5000/v2/", "http://localhost:5001/token", true);
        check("http://127.0.0.1:5000/v2/", "http://10.0.0.1/token", false);
    }

    #[test]
    fn l4_pages_are_where_the_list_is() {
        let page = |to: &str| next_page(&url("https://r.io/v2/a/tags/list"), url(to));
        assert_eq!(page("https://r.io/v2/a/tags/list?last=x").unwrap().query(), Some("last=x"));
        assert_eq!(page("http://r.io/v2/a/tags/list").unwrap().scheme(), "https");
        assert!(page("https://other.org/v2/a/tags/list").is_err());
        assert!(page("https://r.io:8443/v2/a/tags/list").is_err());
    }
}
