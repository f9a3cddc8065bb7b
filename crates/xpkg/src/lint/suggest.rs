//! The nearest known word to one that was misspelt.

/// Most edits between a word and what its author may have meant.
const EDITS_MAX: usize = 2;
/// Longest word compared; longer ones are not typing errors.
const WORD_SIZE_MAX: usize = 128;

/// The known word closest to `word`, case aside, if one is close enough.
pub fn closest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let word = word.to_ascii_lowercase();
    let scored = known.into_iter().filter_map(|known| {
        edits_between(&word, &known.to_ascii_lowercase()).map(|count| (count, known))
    });
    scored.min_by_key(|(count, _)| *count).map(|(_, known)| known)
}

/// How many edits a known word is away from one that was typed, if few enough: a short word is
/// near to anything, so that it may differ by less than half.
pub fn edits_between(typed: &str, known: &str) -> Option<usize> {
    let far = typed.len().abs_diff(known.len()) > EDITS_MAX;
    if far || typed.len() > WORD_SIZE_MAX || known.len() > WORD_SIZE_MAX {
        return None;
    }
    let count = count_edits(typed, known);
    (count <= EDITS_MAX && count * 2 < typed.len().max(1)).then_some(count)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn count_edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            let is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if is_swap {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_near() {
        for (typed, known, count) in [
            ("buckets", "buckets", Some(0)),
            ("bukcets", "buckets", Some(1)),
            ("bucket", "buckets", Some(1)),
            ("vuckerts", "buckets", Some(2)),
            ("cat", "dog", None),
            ("ab", "ba", None),
            ("queues", "buckets", None),
        ] {
            assert_eq!(edits_between(typed, known), count, "{typed} {known}");
        }
    }
}
