//! Numbers and digests as people read them.

/// `3 errors`, `1 warning`.
pub fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// A digest short enough to be read.
pub fn short(digest: &str) -> &str {
    digest.get(..19).unwrap_or(digest)
}
