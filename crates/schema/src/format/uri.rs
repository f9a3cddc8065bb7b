//! URIs as an HTTP server takes them in a request line

/// Whether Go's `url.ParseRequestURI` takes a text.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let rest = rest.split_once('?').map_or(rest, |(path, _)| path);
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            is_authority(&scheme.to_ascii_lowercase(), &rest[..end])
                && escapes_are_valid(&rest[end..])
        }
        None => escapes_are_valid(rest),
    }
}

/// The scheme (maybe empty) and the rest; nothing for a text that starts with a colon.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (i, b) in text.bytes().enumerate() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if i > 0 => {}
            b':' if i == 0 => return None,
            b':' => return Some((&text[..i], &text[i + 1..])),
            _ => break,
        }
    }
    Some(("", text))
}

fn is_authority(scheme: &str, authority: &str) -> bool {
    let (user, host) = match authority.rfind('@') {
        Some(at) => (&authority[..at], &authority[at + 1..]),
        None => ("", authority),
    };
    let userinfo = |b: u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
    is_host(scheme, host) && user.bytes().all(userinfo) && escapes_are_valid(user)
}

fn is_host(scheme: &str, host: &str) -> bool {
    match host.rfind('[') {
        Some(0) => is_literal(host),
        Some(_) => false,
        None => {
            let strict = matches!(scheme, "http" | "https");
            let colon = if strict { host.find(':') } else { host.rfind(':') };
            colon.is_none_or(|colon| is_port(&host[colon..])) && is_host_text(host)
        }
    }
}

/// `[::1]:80`, with a zone after `%25`.
fn is_literal(host: &str) -> bool {
    let Some(close) = host.rfind(']') else { return false };
    let inner = &host[1..close];
    let (address, zone) = match inner.find("%25") {
        Some(at) => (&inner[..at], Some(&inner[at + 3..])),
        None => (inner, None),
    };
    is_port(&host[close + 1..])
        && address.parse::<std::net::Ipv6Addr>().is_ok()
        && zone.is_none_or(|zone| !zone.is_empty() && escapes_are_valid(zone))
}

fn is_port(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
}

/// Characters of a host: escapes only for bytes beyond ASCII, and `%25`.
fn is_host_text(host: &str) -> bool {
    let bytes = host.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let b = bytes[i];
        if b == b'%' {
            let Some(code) = host.get(i + 1..i + 3) else { return false };
            let high = code.as_bytes()[0].to_ascii_lowercase();
            let hex = code.bytes().all(|b| b.is_ascii_hexdigit());
            if !hex || (!matches!(high, b'8' | b'9' | b'a'..=b'f') && code != "25") {
                return false;
            }
            i += 3;
            continue;
        }
        let allowed =
            b.is_ascii_alphanumeric() || b >= 0x80 || b"-_.~!$&'()*+,;=:[]<>\"".contains(&b);
        if !allowed {
            return false;
        }
        i += 1;
    }
    true
}

fn escapes_are_valid(text: &str) -> bool {
    let bytes = text.as_bytes();
    let hex = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_hexdigit);
    (0..bytes.len()).all(|i| bytes[i] != b'%' || (hex(i + 1) && hex(i + 2)))
}
