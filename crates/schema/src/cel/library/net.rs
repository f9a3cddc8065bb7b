//! Addresses and networks.

use std::net::IpAddr;

use super::super::value::{Result, Trouble, Val};
use crate::quote;

pub(super) fn read<'a>(name: &str, text: &str) -> Result<Val<'a>> {
    match name {
        "isIP" => Ok(Val::Bool(address(text).is_ok())),
        "isCIDR" => Ok(Val::Bool(network(text).is_ok())),
        "cidr" => match network(text) {
            Ok((address, bits)) => Ok(Val::Cidr(address, bits)),
            Err(why) => Err(Trouble::new(format!(
                "network address parse error during conversion from string: {why}"
            ))),
        },
        "ip.isCanonical" => {
            let address = address(text).map_err(Trouble::new)?;
            Ok(Val::Bool(address.to_string() == text))
        }
        _ => address(text).map(Val::Ip).map_err(Trouble::new),
    }
}

fn address(text: &str) -> std::result::Result<IpAddr, String> {
    if text.contains('%') {
        return Err(format!("IP address {} with zone value is not allowed", quote(text)));
    }
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(v6)) if v6.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)))
        }
        Ok(address) => Ok(address),
        Err(_) => Err(format!(
            "IP Address {0} parse error during conversion from string: ParseAddr({0}): unable to parse IP",
            quote(text)
        )),
    }
}

fn network(text: &str) -> std::result::Result<(IpAddr, u8), String> {
    let quoted = quote(text);
    let Some((before, after)) = text.rsplit_once('/') else {
        return Err(format!("netip.ParsePrefix({quoted}): no '/'"));
    };
    let address: IpAddr = before.parse().map_err(|_| {
        format!("netip.ParsePrefix({quoted}): ParseAddr({}): unable to parse IP", quote(before))
    })?;
    let plain = after == "0" || !after.starts_with(['0', '+', '-']);
    let bits: u8 = after.parse().ok().filter(|_| plain).ok_or_else(|| {
        format!("netip.ParsePrefix({quoted}): bad bits after slash: {}", quote(after))
    })?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    if bits > most {
        return Err(format!("netip.ParsePrefix({quoted}): prefix length out of range"));
    }
    if let IpAddr::V6(v6) = address
        && v6.to_ipv4_mapped().is_some()
    {
        return Err(format!("IPv4-mapped IPv6 address {quoted} is not allowed"));
    }
    Ok((address, bits))
}

pub(super) fn call<'a>(name: &str, args: &[Val<'a>]) -> Result<Val<'a>> {
    match args {
        [Val::Ip(address)] => of_address(name, *address),
        [Val::Cidr(address, bits)] => match name {
            "ip" => Ok(Val::Ip(*address)),
            "prefixLength" => Ok(Val::Int(i64::from(*bits))),
            "masked" => Ok(Val::Cidr(masked(*address, *bits), *bits)),
            _ => Err(Trouble::overload()),
        },
        [Val::Cidr(address, bits), other] => match (name, other) {
            ("containsIP", Val::Ip(ip)) => Ok(Val::Bool(within(*address, *bits, *ip))),
            ("containsIP", Val::String(text)) => {
                let ip = self::address(text).map_err(Trouble::new)?;
                Ok(Val::Bool(within(*address, *bits, ip)))
            }
            ("containsCIDR", Val::Cidr(ip, narrow)) => {
                Ok(Val::Bool(bits <= narrow && within(*address, *bits, *ip)))
            }
            ("containsCIDR", Val::String(text)) => {
                let (ip, narrow) = network(text).map_err(|why| {
                    Trouble::new(format!(
                        "network address parse error during conversion from string: {why}"
                    ))
                })?;
                Ok(Val::Bool(*bits <= narrow && within(*address, *bits, ip)))
            }
            _ => Err(Trouble::overload()),
        },
        _ => Err(Trouble::overload()),
    }
}

fn of_address<'a>(name: &str, address: IpAddr) -> Result<Val<'a>> {
    let local = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => (v6.segments()[0] & 0xffc0) == 0xfe80,
    };
    let local_group = match address {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => (v6.segments()[0] & 0xff0f) == 0xff02,
    };
    Ok(match name {
        "family" => Val::Int(if address.is_ipv4() { 4 } else { 6 }),
        "isUnspecified" => Val::Bool(address.is_unspecified()),
        "isLoopback" => Val::Bool(address.is_loopback()),
        "isLinkLocalMulticast" => Val::Bool(local_group),
        "isLinkLocalUnicast" => Val::Bool(local),
        "isGlobalUnicast" => {
            let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
            Val::Bool(
                !broadcast
                    && !address.is_unspecified()
                    && !address.is_loopback()
                    && !address.is_multicast()
                    && !local,
            )
        }
        _ => return Err(Trouble::overload()),
    })
}

fn number(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), 32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    }
}

fn mask(width: u8, bits: u8) -> u128 {
    let all = if width == 128 { u128::MAX } else { (1 << width) - 1 };
    let host = u32::from(width.saturating_sub(bits));
    if host >= 128 { 0 } else { all >> host << host }
}

fn masked(address: IpAddr, bits: u8) -> IpAddr {
    let (value, width) = number(address);
    let value = value & mask(width, bits);
    match address {
        IpAddr::V4(_) => IpAddr::V4(u32::try_from(value).unwrap_or_default().into()),
        IpAddr::V6(_) => IpAddr::V6(value.into()),
    }
}

fn within(network: IpAddr, bits: u8, address: IpAddr) -> bool {
    let ((a, width), (b, other)) = (number(network), number(address));
    width == other && (a ^ b) & mask(width, bits) == 0
}
