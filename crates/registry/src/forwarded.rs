//! The address of a client behind proxies: what a proxy says counts only if it is a trusted one. Which those are is
//! for the shell to say.

use crate::access::Peer;
use axum::Router;
use axum::extract::Request;
use axum::http::header::{HeaderValue, STRICT_TRANSPORT_SECURITY};
use axum::http::{HeaderMap, HeaderName};
use axum::middleware::{Next, from_fn};
use std::net::IpAddr;
use std::sync::Arc;

/// A client that came over TLS once should not be talked into coming without, for a year.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000");

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Everything that only a proxy should say; nobody further in sees it.
const ALL: [HeaderName; 4] = [
    FOR,
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("forwarded"),
];

/// The service as it is behind trusted proxies; with `is_secure`, answers say that it has TLS.
pub fn serve_behind_proxies(
    router: Router,
    is_proxy: impl Fn(IpAddr) -> bool + Send + Sync + 'static,
    is_secure: bool,
) -> Router {
    let is_proxy = Arc::new(is_proxy);
    router.layer(from_fn(move |mut request: Request, next: Next| {
        let peer = request.extensions().get::<Peer>().copied();
        let found = peer.map(|peer| client_address(request.headers_mut(), peer.0, &*is_proxy));
        if let Some(address) = found {
            request.extensions_mut().insert(Peer(address));
        }
        async move {
            let mut response = next.run(request).await;
            if is_secure {
                response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, HSTS);
            }
            response
        }
    }))
}

/// The client's address: the last one in the chain of proxies that is not a trusted proxy.
/// Headers that only proxies should set are gone afterwards.
fn client_address(
    headers: &mut HeaderMap,
    peer: IpAddr,
    is_proxy: &dyn Fn(IpAddr) -> bool,
) -> IpAddr {
    let mut found = peer;
    if is_proxy(peer) {
        let values = headers.get_all(FOR).iter().filter_map(|value| value.to_str().ok());
        let chain: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
        for text in chain.iter().rev() {
            let Ok(address) = text.parse::<IpAddr>() else { break };
            found = address;
            if !is_proxy(address) {
                break;
            }
        }
    }
    for name in ALL {
        headers.remove(name);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_proxies_are_believed() {
        let is_proxy = |address: IpAddr| match address {
            IpAddr::V4(address) => address.octets()[0] == 10,
            IpAddr::V6(address) => address.is_loopback(),
        };
        let check = |peer: &str, forwarded: &[&str], expected: &str| {
            let mut headers = HeaderMap::new();
            for value in forwarded {
                headers.append(FOR, value.parse().unwrap());
            }
            let found = client_address(&mut headers, peer.parse().unwrap(), &is_proxy);
            assert_eq!(found.to_string(), expected, "{peer} {forwarded:?}");
            assert!(headers.is_empty());
        };
        check("192.0.2.1", &[], "192.0.2.1");
        check("192.0.2.1", &["198.51.100.1"], "192.0.2.1");
        check("10.1.2.3", &[], "10.1.2.3");
        check("10.1.2.3", &["198.51.100.1"], "198.51.100.1");
        // Whatever the client itself put in front does not count.
        check("10.1.2.3", &["127.0.0.1, 198.51.100.1"], "198.51.100.1");
        check("10.1.2.3", &["127.0.0.1", "198.51.100.1, 10.9.9.9"], "198.51.100.1");
        check("10.1.2.3", &["rubbish"], "10.1.2.3");
        check("10.1.2.3", &["198.51.100.1, rubbish"], "10.1.2.3");
        check("::1", &["2001:db8::1"], "2001:db8::1");
    }
}
