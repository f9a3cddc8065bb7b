//! The keys of one mapping: each only once, merge keys taken in.
//!
//! `<<` pulls the entries of other mappings into this one. go-yaml does so in the order written:
//! what comes later replaces what came before, so a key written *before* `<<` loses to the merged
//! one, against the YAML specification. Readers disagree on such a text, so strict reading
//! refuses it; lenient reading follows go-yaml.

use std::collections::HashMap;

use super::error::{ParseError, ParseErrorKind};
use super::parse::DuplicateKeys;
use super::tree::{Entry, Node, Position, Value};

/// A key that was set before, in a reading that lets the last one win.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// Where the value stands that won.
    pub position: Position,
    /// The key.
    pub key: String,
}

impl std::fmt::Display for Repeated {
    /// In the words of Go's library, where only text is quoted.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (line, key) = (self.position.line, &self.key);
        if super::scalar::is_text(key) {
            write!(f, "line {line}: key {key:?} already set in map")
        } else {
            write!(f, "line {line}: key {key} already set in map")
        }
    }
}

/// Mappings up to this size are compared pair by pair, which beats hashing for short keys.
const PAIRWISE_MAX: usize = 24;

/// Whether some key occurs more than once.
pub(super) fn has_duplicates(entries: &[Entry<'_>]) -> bool {
    if entries.len() <= PAIRWISE_MAX {
        return entries
            .iter()
            .enumerate()
            .any(|(at, entry)| entries[..at].iter().any(|other| other.key == entry.key));
    }
    let mut keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_ref()).collect();
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair[0] == pair[1])
}

/// Joins entries as written with what their merge keys pull in; `merges` are the indices of `<<`,
/// ascending.
pub(super) fn join<'a>(
    entries: Vec<Entry<'a>>,
    merges: &[usize],
    duplicates: DuplicateKeys,
    repeated: &mut Vec<Repeated>,
) -> Result<Vec<Entry<'a>>, ParseError> {
    let mut joined = Joined { duplicates, entries: Vec::new(), slots: HashMap::new(), repeated };
    for (at, entry) in entries.into_iter().enumerate() {
        if merges.binary_search(&at).is_ok() {
            joined.merge(entry)?;
        } else {
            joined.insert(entry, Origin::Written)?;
        }
    }
    Ok(joined.entries)
}

/// Where an entry of a mapping comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Written,
    Merged,
}

/// A mapping under construction, with the place and origin of each key.
struct Joined<'a, 'r> {
    duplicates: DuplicateKeys,
    entries: Vec<Entry<'a>>,
    slots: HashMap<String, (usize, Origin)>,
    repeated: &'r mut Vec<Repeated>,
}

impl<'a> Joined<'a, '_> {
    /// Takes in the value of one `<<`.
    fn merge(&mut self, entry: Entry<'a>) -> Result<(), ParseError> {
        let position = entry.value.position;
        match entry.value.value {
            Value::Mapping(entries) => self.merge_mapping(entries),
            // Backwards, because earlier mappings of the list take precedence.
            Value::Sequence(items) => items.into_iter().rev().try_for_each(|item| match item {
                Node { value: Value::Mapping(entries), .. } => self.merge_mapping(entries),
                Node { position, .. } => Err(no_mapping(position)),
            }),
            _ => Err(no_mapping(position)),
        }
    }

    fn merge_mapping(&mut self, entries: Vec<Entry<'a>>) -> Result<(), ParseError> {
        entries.into_iter().try_for_each(|entry| self.insert(entry, Origin::Merged))
    }

    fn insert(&mut self, entry: Entry<'a>, origin: Origin) -> Result<(), ParseError> {
        let Some((slot, before)) = self.slots.get_mut(entry.key.as_ref()) else {
            let slot = (self.entries.len(), origin);
            self.slots.insert(entry.key.clone().into_owned(), slot);
            self.entries.push(entry);
            return Ok(());
        };
        let first = &mut self.entries[*slot];
        if *before == Origin::Written && self.duplicates == DuplicateKeys::Reject {
            return Err(match origin {
                Origin::Written => duplicate(first, &entry),
                Origin::Merged => overruled(first, &entry),
            });
        }
        let (position, key) = (entry.value.position, entry.key.clone().into_owned());
        self.repeated.push(Repeated { position, key });
        *before = origin;
        *first = entry;
        Ok(())
    }
}

/// The error for an alias or value under `<<` that cannot be merged.
pub(super) fn no_mapping(position: Position) -> ParseError {
    let message = "the merge key `<<` needs a mapping, or a list of mappings, as its value";
    ParseError::new(ParseErrorKind::Merge, position, message)
        .hint("quote the key as \"<<\" if it is meant as text")
}

fn duplicate(first: &Entry<'_>, second: &Entry<'_>) -> ParseError {
    let kind = ParseErrorKind::DuplicateKey { first: first.position };
    let message = format!(
        "the key `{}` is already set at line {}, column {}",
        second.key, first.position.line, first.position.column
    );
    ParseError::new(kind, second.position, message).hint("remove one of the two")
}

fn overruled(written: &Entry<'_>, merged: &Entry<'_>) -> ParseError {
    let kind = ParseErrorKind::DuplicateKey { first: merged.position };
    let message = format!(
        "the key `{}` stands before a merge key `<<` that sets it as well, at line {}, column {}; \
         readers disagree on which one counts",
        written.key, merged.position.line, merged.position.column
    );
    ParseError::new(kind, written.position, message).hint("move `<<` to the top of its mapping")
}
