//! Headers that hold a page in, should a text of a stranger ever be more than a text.

use ::http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY, VARY};
use ::http::header::{X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use ::http::{HeaderMap, HeaderName, HeaderValue};

/// Our style sheet and script, pictures of ours and as data, and nothing else.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
                      img-src 'self' data:; connect-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// Sets the headers that every answer has.
pub(super) fn hold_page(headers: &mut HeaderMap) {
    let all = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (VARY, "authorization, cookie"),
    ];
    for (name, value) in all {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// How long an answer may be kept.
pub(super) fn caching(is_immutable: bool) -> &'static str {
    if is_immutable { "public, max-age=31536000, immutable" } else { "private, no-cache" }
}
