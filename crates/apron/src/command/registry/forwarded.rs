//! Who is at the other end of a proxy: what a proxy says counts only if it is one of ours.

use crate::failure::{Failure, Outcome};
use ::registry::access::Peer;
use axum::Router;
use axum::extract::Request;
use axum::http::header::{HeaderValue, STRICT_TRANSPORT_SECURITY};
use axum::http::{HeaderMap, HeaderName};
use axum::middleware::{Next, from_fn};
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

/// Addresses of proxies: `10.0.0.0/8`, or one alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Reads an address, with or without the number of its bits that count.
    pub(crate) fn parse(text: &str) -> Outcome<Self> {
        let invalid = || {
            Failure::new(
                format!("`{text}` is not an address or a network"),
                "--trusted-proxy takes 10.0.0.1, 10.0.0.0/8 or 2001:db8::/32",
            )
        };
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(it, bits)| (it, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| invalid())?;
        if bits > most { Err(invalid()) } else { Ok(Self { address, bits }) }
    }

    pub(super) fn holds(&self, address: IpAddr) -> bool {
        match (self.address.to_canonical(), address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(it)) => {
                let shift = 32 - u32::from(self.bits).min(32);
                let cut = |bits: u32| bits.checked_shr(shift).unwrap_or(0);
                cut(ours.to_bits()) == cut(it.to_bits())
            }
            (IpAddr::V6(ours), IpAddr::V6(it)) => {
                let shift = 128 - u32::from(self.bits).min(128);
                let cut = |bits: u128| bits.checked_shr(shift).unwrap_or(0);
                cut(ours.to_bits()) == cut(it.to_bits())
            }
            _ => false,
        }
    }
}

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
        let proxies = ["10.0.0.0/8", "::1"].map(|text| Network::parse(text).ok().unwrap());
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

    #[test]
    fn networks_are_read() {
        for good in ["10.0.0.1", "0.0.0.0/0", "2001:db8::/32", "::/0"] {
            assert!(Network::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "10.0.0.0/33", "host", "10.0.0.1/x", "::/129", "10.0.0.1/-1"] {
            assert!(Network::parse(bad).is_err(), "{bad}");
        }
        let all = Network::parse("0.0.0.0/0").ok().unwrap();
        assert!(all.holds("192.0.2.1".parse().unwrap()));
    }
}
