//! Networks: which addresses are meant by `10.0.0.0/8`.

use std::net::IpAddr;

/// Addresses of proxies: `10.0.0.0/8`, or one alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Reads an address, with or without the number of its bits that count; none if it is neither.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(it, bits)| (it, Some(bits)));
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).ok()?;
        (bits <= most).then_some(Self { address, bits })
    }

    /// Whether an address is in it.
    pub fn holds(&self, address: IpAddr) -> bool {
        match (self.address.to_canonical(), address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(it)) => {
                let shift = 32_u32.saturating_sub(u32::from(self.bits));
                let cut = |bits: u32| bits.checked_shr(shift).unwrap_or(0);
                cut(ours.to_bits()) == cut(it.to_bits())
            }
            (IpAddr::V6(ours), IpAddr::V6(it)) => {
                let shift = 128_u32.saturating_sub(u32::from(self.bits));
                let cut = |bits: u128| bits.checked_shr(shift).unwrap_or(0);
                cut(ours.to_bits()) == cut(it.to_bits())
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read() {
        for good in ["10.0.0.1", "0.0.0.0/0", "2001:db8::/32", "::/0"] {
            assert!(Network::parse(good).is_some(), "{good}");
        }
        for bad in ["", "10.0.0.0/33", "host", "10.0.0.1/x", "::/129", "10.0.0.1/-1"] {
            assert!(Network::parse(bad).is_none(), "{bad}");
        }
        let all = Network::parse("0.0.0.0/0").unwrap();
        assert!(all.holds("192.0.2.1".parse().unwrap()));
    }
}
