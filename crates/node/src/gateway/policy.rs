//! Where pods may connect to. Addresses are judged, never names: what a name leads to is known when it was looked up,
//! so a name that leads to a private address (DNS rebinding) gains nothing.

use super::connection::is_in_network;
use crate::protocol::Egress;
use std::net::Ipv4Addr;

/// Networks that are not public (IANA's registry of special-purpose addresses, RFC 6890).
const NOT_PUBLIC: [(Ipv4Addr, u8, &str); 15] = [
    (Ipv4Addr::UNSPECIFIED, 8, "this machine"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "a private network"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "a carrier's network"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "this machine"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "a link-local network, where metadata servers are"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "a private network"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "a reserved network"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "a network for documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a reserved network"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "a private network"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "a network for benchmarks"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "a network for documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "a network for documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "a multicast network"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "a reserved network"),
];

/// Why pods may not connect to an address; nothing if they may. `own` are the networks of pods and Services.
pub(super) fn find_objection(
    egress: Egress,
    address: Ipv4Addr,
    own: &[(Ipv4Addr, u8)],
) -> Option<String> {
    let is_own = own.iter().any(|(network, bits)| is_in_network(address, *network, *bits));
    if egress == Egress::None {
        return Some("pods may not connect to the outside".to_owned());
    }
    if is_own {
        return Some(format!("{address} is in the networks of this node"));
    }
    if egress == Egress::Host {
        return None;
    }
    let is_inside =
        |(network, bits, _): &&(Ipv4Addr, u8, &str)| is_in_network(address, *network, *bits);
    let (_, _, what) = NOT_PUBLIC.iter().find(is_inside)?;
    Some(format!("{address} is in {what}, and pods may connect to public addresses only"))
}

#[cfg(test)]
mod tests {
    use super::find_objection;
    use crate::protocol::Egress;
    use std::net::Ipv4Addr;

    const OWN: [(Ipv4Addr, u8); 2] =
        [(Ipv4Addr::new(10, 244, 0, 0), 24), (Ipv4Addr::new(93, 184, 0, 0), 16)];

    fn is_allowed(egress: Egress, address: &str) -> bool {
        find_objection(egress, address.parse().unwrap(), &OWN).is_none()
    }

    #[test]
    fn public_addresses_are_those_that_no_registry_reserves() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "223.255.255.255",
            "11.0.0.0",
            "169.253.255.255",
            "192.0.1.0",
        ] {
            assert!(is_allowed(Egress::Public, address), "{address}");
        }
        for address in [
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.1",
            "10.244.0.7",
            "100.64.0.0",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.170",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
        ] {
            assert!(!is_allowed(Egress::Public, address), "{address}");
        }
    }

    #[test]
    fn nothing_is_allowed_or_everything_but_the_networks_of_the_node() {
        assert!(!is_allowed(Egress::None, "1.1.1.1"));
        assert!(is_allowed(Egress::Host, "192.168.0.1"));
        assert!(is_allowed(Egress::Host, "169.254.169.254"));
        assert!(!is_allowed(Egress::Host, "10.244.0.9"));
        assert!(!is_allowed(Egress::Public, "93.184.216.34"), "one of the node's networks");
    }
}
