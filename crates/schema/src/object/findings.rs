//! What is odd about a body, of which there may be as much as the body is long.

use std::collections::HashSet;
use std::fmt;

/// The most things that are told of one body; upstream's limit.
pub const FINDINGS_MAX: usize = 100;
/// The most bytes their paths have together: a path repeats the names of all that is around it.
const BYTES_MAX: usize = 64 << 10;

/// Paths, each once and in the order in which they were found, as far as they are told.
#[derive(Debug, Default)]
pub struct Findings {
    paths: Vec<String>,
    seen: HashSet<String>,
    bytes: usize,
}

impl Findings {
    /// Whether no more is told.
    pub fn is_full(&self) -> bool {
        self.paths.len() >= FINDINGS_MAX || self.bytes >= BYTES_MAX
    }

    /// Notes a path. It is written out only if it is told.
    pub fn add(&mut self, path: &impl fmt::Display) {
        if self.is_full() {
            return;
        }
        let path = path.to_string();
        if self.seen.insert(path.clone()) {
            self.bytes = self.bytes.saturating_add(path.len());
            self.paths.push(path);
        }
    }

    /// The paths.
    pub fn into_paths(self) -> Vec<String> {
        self.paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_once_and_only_so_many() {
        let mut findings = Findings::default();
        for path in ["b", "a", "b"] {
            findings.add(&path);
        }
        assert_eq!(findings.paths, ["b", "a"]);
        (0..1000).for_each(|number| findings.add(&number));
        assert_eq!(findings.into_paths().len(), FINDINGS_MAX);
        let long = "x".repeat(BYTES_MAX);
        let mut findings = Findings::default();
        (0..1000).for_each(|number| findings.add(&format!("{long}{number}")));
        assert_eq!(findings.into_paths().len(), 1);
    }
}
