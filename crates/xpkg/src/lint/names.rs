//! Kubernetes' rules for names.

/// Longest DNS subdomain.
const SUBDOMAIN_SIZE_MAX: usize = 253;
/// Longest DNS label.
const LABEL_SIZE_MAX: usize = 63;

/// Whether a text is a lower-case DNS subdomain (RFC 1123), the rule for most object names.
pub(super) fn is_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_SIZE_MAX && text.split('.').all(has_label_shape)
}

/// Whether a text is a DNS label that starts with a letter (RFC 1035), the rule for versions and
/// plurals.
pub(super) fn is_label(text: &str) -> bool {
    let letter = text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    letter && text.len() <= LABEL_SIZE_MAX && has_label_shape(text)
}

fn has_label_shape(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
        && bytes.first().is_some_and(|byte| plain(*byte))
        && bytes.last().is_some_and(|byte| plain(*byte))
}
