//! The nearest known word to one that was misspelt.

/// Most edits between a word and what its author may have meant.
const EDITS_MAX: usize = 2;
/// Longest word compared; longer ones are not typing errors.
const WORD_SIZE_MAX: usize = 64;

/// The known word closest to `word`, case aside, if one is close enough.
pub fn closest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if word.len() > WORD_SIZE_MAX {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let scored = known.into_iter().map(|one| (edits(&word, &one.to_ascii_lowercase()), one));
    // A short word is within two edits of anything; let it differ by less than half.
    let near = |score: usize| score <= EDITS_MAX && score * 2 < word.len().max(1);
    scored.filter(|(score, _)| near(*score)).min_by_key(|(score, _)| *score).map(|(_, one)| one)
}

/// Insertions, deletions and replacements that turn `a` into `b`.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
