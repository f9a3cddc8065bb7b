//! Who is at the other end of a proxy: what a proxy says counts only if it is one of ours.

use ::registry::access::Peer;
use axum::Router;
use axum::extract::Request;
use axum::http::header::{HeaderValue, STRICT_TRANSPORT_SECURITY};
use axum::http::{HeaderMap, HeaderName};
use axum::middleware::{Next, from_fn};
use edge::network::Network;
use std::net::IpAddr;
use std::sync::Arc;

/// Who came over TLS once should not be talked into coming without, for a year.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000");

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Everything that only a proxy should say; nobody further in sees it.
const ALL: [HeaderName; 4] = [
    FOR,
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("forwarded"),
];

/// The service as it is behind proxies of ours, and over TLS; as it is if there is neither.
pub(super) fn within(router: Router, proxies: Vec<Network>, secure: bool) -> Router {
    if proxies.is_empty() && !secure {
        return router;
    }
    let proxies: Arc<[Network]> = proxies.into();
    router.layer(from_fn(move |mut request: Request, next: Next| {
        let peer = request.extensions().get::<Peer>().copied();
        let found = peer.map(|peer| client(request.headers_mut(), peer.0, &proxies));
        if let Some(address) = found {
            request.extensions_mut().insert(Peer(address));
        }
        async move {
            let mut response = next.run(request).await;
            if secure {
                response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, HSTS);
            }
            response
        }
    }))
}

/// The client's address: the last one in the chain of proxies that is not a proxy of ours.
/// Headers that only proxies should set are gone afterwards.
fn client(headers: &mut HeaderMap, peer: IpAddr, proxies: &[Network]) -> IpAddr {
    let trusted = |address: IpAddr| proxies.iter().any(|it| it.holds(address));
    let mut found = peer;
    if trusted(peer) {
        let values = headers.get_all(FOR).iter().filter_map(|value| value.to_str().ok());
        let chain: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
        for text in chain.iter().rev() {
            let Ok(address) = text.parse::<IpAddr>() else { break };
            found = address;
            if !trusted(address) {
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
        let proxies = ["10.0.0.0/8", "::1"].map(|text| Network::parse(text).unwrap());
        let check = |peer: &str, forwarded: &[&str], expected: &str| {
            let mut headers = HeaderMap::new();
            for value in forwarded {
                headers.append(FOR, value.parse().unwrap());
            }
            let found = client(&mut headers, peer.parse().unwrap(), &proxies);
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
