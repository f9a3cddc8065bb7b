//! The order of keys: as people count, so that `a2` comes before `a10`.

use std::cmp::Ordering;

use serde_json::{Map, Value};

/// The entries of a mapping in the order in which they are written.
///
/// The order knows circles (`b3a`, `b18`, `b39`), which the standard sort may answer with a panic;
/// merging does not mind. It starts from the order of bytes, so that equal mappings look equal.
pub(super) fn entries(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut sorted: Vec<_> = map.iter().collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    let mut width = 1;
    while width < sorted.len() {
        sorted = sorted.chunks(width * 2).flat_map(|run| merge(run, width)).collect();
        width *= 2;
    }
    sorted
}

/// The two sorted halves of a run, of which the first has `width` entries, as one.
fn merge<'a>(
    run: &[(&'a String, &'a Value)],
    width: usize,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let (left, right) = run.split_at(run.len().min(width));
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    std::iter::from_fn(move || match (left.peek(), right.peek()) {
        (Some((a, _)), Some((b, _))) if natural(b, a) == Ordering::Less => right.next(),
        (Some(_), _) => left.next(),
        (None, _) => right.next(),
    })
    .copied()
}

/// Compares two keys: letters by their codes and behind everything else, runs of digits by the
/// number they stand for.
fn natural(a: &str, b: &str) -> Ordering {
    let mut chars = a.char_indices().zip(b.char_indices());
    let Some(((at, x), (_, y))) = chars.find(|((_, x), (_, y))| x != y) else {
        return a.len().cmp(&b.len());
    };
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => x.cmp(&y),
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => {
            // Both have the same text before this place.
            let inside = (x == '0' || y == '0') && ends_in_number(&a[..at]);
            let (left, right) = (digits(&a[at..], inside), digits(&b[at..], inside));
            left.cmp(&right).then(x.cmp(&y))
        }
    }
}

/// Whether a text ends in digits that are not all zero: then a zero behind them counts.
fn ends_in_number(text: &str) -> bool {
    let digits = text.bytes().rev().take_while(u8::is_ascii_digit);
    digits.into_iter().any(|digit| digit != b'0')
}

/// The number that a text starts with, and how many digits it has.
fn digits(text: &str, inside: bool) -> (i64, usize) {
    let digits = text.bytes().take_while(u8::is_ascii_digit);
    digits.fold((i64::from(inside), 0), |(number, count), digit| {
        (number.wrapping_mul(10).wrapping_add(i64::from(digit - b'0')), count + 1)
    })
}
