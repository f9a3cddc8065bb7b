//! Which proxy an address is reached through, by the rules that kubectl and docker follow: this
//! machine is always reached directly, and exceptions are names, addresses and networks.

use std::net::IpAddr;

/// Proxies, and what is reached without them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    /// For `http:` addresses.
    pub http: Option<String>,
    /// For `https:` addresses.
    pub https: Option<String>,
    /// For both, where the others say nothing.
    pub all: Option<String>,
    /// What is reached directly, comma separated: names (with those below them), names that begin
    /// with a dot (only those below them), addresses, networks, each with a port perhaps; `*` is
    /// everything.
    pub none: Option<String>,
}

impl Proxies {
    /// The proxy for an address.
    #[must_use]
    pub fn proxy_for(&self, scheme: &str, host: &str, port: Option<u16>) -> Option<&str> {
        let own = match scheme {
            "https" => self.https.as_deref(),
            "http" => self.http.as_deref(),
            _ => return None,
        };
        let proxy = own.or(self.all.as_deref())?;
        let port = port.unwrap_or(if scheme == "https" { 443 } else { 80 });
        let host = host.trim_start_matches('[').trim_end_matches([']', '.']).to_ascii_lowercase();
        (!self.is_direct(&host, port)).then_some(proxy)
    }

    fn is_direct(&self, host: &str, port: u16) -> bool {
        let address: Option<IpAddr> = host.parse().ok();
        if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
            return true;
        }
        let exceptions = self.none.as_deref().unwrap_or_default();
        let mut exceptions = exceptions.split(',').map(str::trim).filter(|one| !one.is_empty());
        exceptions.any(|exception| match address {
            _ if exception == "*" => true,
            Some(address) => covers_address(exception, address, port),
            None => covers_name(&exception.to_ascii_lowercase(), host, port),
        })
    }
}

/// Whether an exception is this address, or a network that has it.
fn covers_address(exception: &str, address: IpAddr, port: u16) -> bool {
    if let Some((network, length)) = exception.split_once('/') {
        let network: Option<IpAddr> = network.parse().ok();
        let length: Option<u32> = length.parse().ok();
        return network
            .zip(length)
            .is_some_and(|(network, length)| holds(network, length, address));
    }
    if let Ok(same) = exception.trim_matches(['[', ']']).parse::<IpAddr>() {
        return same == address;
    }
    exception.parse::<std::net::SocketAddr>().is_ok_and(|same| same == (address, port).into())
}

/// Whether a network holds an address.
fn holds(network: IpAddr, length: u32, address: IpAddr) -> bool {
    let (network, address, bits) = match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            (u128::from(network.to_bits()), u128::from(address.to_bits()), 32)
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => (network.to_bits(), address.to_bits(), 128),
        _ => return false,
    };
    let Some(rest) = u32::checked_sub(bits, length) else { return false };
    network.checked_shr(rest).unwrap_or(0) == address.checked_shr(rest).unwrap_or(0)
}

/// Whether an exception is this name, or one above it.
fn covers_name(exception: &str, host: &str, port: u16) -> bool {
    let exception = match exception.rsplit_once(':') {
        Some((name, wanted)) if wanted.parse::<u16>().is_ok_and(|wanted| wanted == port) => name,
        Some(_) => return false,
        None => exception,
    };
    let exception =
        exception.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(exception);
    match exception.strip_prefix('.') {
        Some(parent) => is_below(host, parent),
        None => host == exception || is_below(host, exception),
    }
}

/// Whether a name ends with another and a dot before it.
fn is_below(host: &str, parent: &str) -> bool {
    !parent.is_empty() && host.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::Proxies;

    fn is_direct(none: &str, host: &str) -> bool {
        let proxies = Proxies {
            all: Some("http://proxy:3128".to_owned()),
            none: Some(none.to_owned()),
            ..Proxies::default()
        };
        proxies.proxy_for("https", host, Some(6443)).is_none()
    }

    #[test]
    fn exceptions_are_names_addresses_and_networks() {
        let table = [
            ("", "cluster.example.org", false),
            ("*", "cluster.example.org", true),
            ("*", "192.0.2.1", true),
            ("example.org", "example.org", true),
            ("example.org", "cluster.example.org", true),
            ("example.org", "counterexample.org", false),
            ("EXAMPLE.org", "Cluster.Example.ORG.", true),
            (".example.org", "cluster.example.org", true),
            (".example.org", "example.org", false),
            ("*.example.org", "cluster.example.org", true),
            ("*.example.org", "example.org", false),
            ("other.org, example.org", "cluster.example.org", true),
            ("example.org:6443", "cluster.example.org", true),
            ("example.org:443", "cluster.example.org", false),
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.10", false),
            ("192.0.2.1:6443", "192.0.2.1", true),
            ("192.0.2.1:443", "192.0.2.1", false),
            ("192.0.2.0/24", "192.0.2.200", true),
            ("192.0.2.0/24", "192.0.3.1", false),
            ("0.0.0.0/0", "192.0.3.1", true),
            ("192.0.2.0/33", "192.0.2.1", false),
            ("2001:db8::/32", "[2001:db8::1]", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("2001:db8::1", "[2001:db8::1]", true),
            ("[2001:db8::1]:6443", "[2001:db8::1]", true),
            ("::/0", "192.0.2.1", false),
            (",,.,:", "example.org", false),
        ];
        for (none, host, direct) in table {
            assert_eq!(is_direct(none, host), direct, "{host} with NO_PROXY={none}");
        }
    }

    #[test]
    fn this_machine_is_always_reached_directly() {
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "[::1]", "::1"] {
            assert!(is_direct("", host), "{host}");
        }
    }

    #[test]
    fn each_scheme_has_its_proxy_and_all_is_for_the_rest() {
        let text = |text: &str| Some(text.to_owned());
        let proxies =
            Proxies { https: text("http://s:1"), all: text("http://a:1"), ..Proxies::default() };
        assert_eq!(proxies.proxy_for("https", "example.org", None), Some("http://s:1"));
        assert_eq!(proxies.proxy_for("http", "example.org", None), Some("http://a:1"));
        assert_eq!(proxies.proxy_for("ftp", "example.org", None), None);
        let named = Proxies { none: text("example.org:443"), ..proxies };
        assert_eq!(named.proxy_for("https", "example.org", None), None);
        assert_eq!(named.proxy_for("http", "example.org", None), Some("http://a:1"));
    }
}
