//! Numbers and sizes in the words people use.

/// A number with its noun: `1 kind`, `2,065 kinds`.
pub(crate) fn count_noun(count: usize, noun: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{} {noun}{end}", group_digits(count))
}

/// A number with its thousands apart.
pub(crate) fn group_digits(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Bytes as `9.7 MB`.
pub(crate) fn byte_size(bytes: u64) -> String {
    let units = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut tenths = bytes / 100;
    let mut unit = 0;
    while tenths >= 10_000 && unit + 1 < units.len() {
        tenths /= 1000;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, units[unit])
}

/// A text that is cut where it gets too long.
pub(crate) fn shorten(text: &str, characters: usize) -> String {
    let mut cut: String = text.chars().take(characters).collect();
    if cut.len() < text.len() {
        cut.truncate(cut.trim_end().len());
        cut.push('…');
    }
    cut
}

/// A digest as `sha256:db934230c71e…`.
pub(crate) fn short_digest(digest: &str) -> String {
    shorten(digest, 19)
}

/// The last part of a repository's name.
pub(crate) fn last_part(repository: &str) -> &str {
    repository.rsplit('/').next().unwrap_or(repository)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_people_use() {
        assert_eq!(count_noun(1, "kind"), "1 kind");
        assert_eq!(count_noun(2065, "kind"), "2,065 kinds");
        assert_eq!(count_noun(0, "kind"), "0 kinds");
        assert_eq!(group_digits(1_234_567), "1,234,567");
        assert_eq!(byte_size(999), "999 B");
        assert_eq!(byte_size(9_712_345), "9.7 MB");
        assert_eq!(byte_size(1_500), "1.5 kB");
        assert_eq!(shorten("äöü", 2), "äö…");
        assert_eq!(shorten("äöü", 3), "äöü");
    }
}
