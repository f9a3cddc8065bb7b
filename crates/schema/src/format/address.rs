//! Network addresses

use std::net::Ipv6Addr;

/// An IP address as current Go parses it.
pub(super) fn is_ip(text: &str) -> bool {
    is_v4(text, false) || is_v6(text)
}

/// An IP address as old Go parsed it: IPv4 octets may have leading zeros.
pub(super) fn is_ip_sloppy(text: &str) -> bool {
    is_v4(text, true) || is_v6(text)
}

fn is_v6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

fn is_v4(text: &str, sloppy: bool) -> bool {
    let octet = |part: &str| {
        let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let zeros = part.len() > 1 && part.starts_with('0');
        digits && (sloppy || !zeros) && part.parse::<u32>().is_ok_and(|octet| octet <= 255)
    };
    text.split('.').count() == 4 && text.split('.').all(octet)
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, mask)) = text.split_once('/') else { return false };
    let bits = if is_v4(address, true) {
        32
    } else if is_v6(address) {
        128
    } else {
        return false;
    };
    let digits = !mask.is_empty() && mask.bytes().all(|b| b.is_ascii_digit());
    digits && mask.parse::<u32>().is_ok_and(|mask| mask <= bits)
}

/// A hardware address of 6, 8 or 20 bytes in one of three spellings.
pub(super) fn is_mac(text: &str) -> bool {
    let hex = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let groups = |separator: char, length: usize, bytes: usize| {
        let count = text.split(separator).count() * bytes;
        matches!(count, 6 | 8 | 20) && text.split(separator).all(|part| hex(part, length))
    };
    groups(':', 2, 1) || groups('-', 2, 1) || groups('.', 4, 2)
}
