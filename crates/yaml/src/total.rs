//! What the documents of a stream may come to together.
//!
//! A limit per document is none for a stream: two thousand small documents that expand to what one
//! may expand to are two thousand times as much. So what aliases repeat is counted over the whole
//! stream, and must stay in proportion to what was written. The proportion is that of Go's library
//! (`yaml.v3`), which counts one document: of few nodes nearly all may come from aliases, of
//! millions one in ten. What is kept for anchors, which Go does not copy, has a proportion of its own.

use super::ParseError;
use super::tree::Position;

/// What the limits are called.
pub(crate) const NODES_MAX: &str = "package_nodes_max";
pub(crate) const SHARE_MAX: &str = "alias_share_max";

/// Up to so many nodes, nearly all may be copies.
const FEW: u64 = 400_000;
/// From so many nodes on, one in ten may be.
const MANY: u64 = 4_000_000;
/// Shares of copies, in millionths.
const SHARE_OF_FEW: u64 = 990_000;
const SHARE_OF_MANY: u64 = 100_000;
const WHOLE: u64 = 1_000_000;
/// So few copies, and so few nodes, are not worth counting.
const COPIES_FREE: u64 = 100;
const NODES_FREE: u64 = 1000;
/// For each node so many may be kept for anchors; anchors within anchors keep the innermost often.
const KEPT_PER_NODE: u64 = 4;
/// Text that may be copied whatever was written; beyond, as much as was written.
const BYTES_FREE: u64 = 16 << 20;

/// What the documents of a stream have used so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Total {
    nodes_max: u64,
    nodes: u64,
    copies: u64,
    kept: u64,
    copied_bytes: u64,
    text_bytes: u64,
}

impl Total {
    /// Nothing used yet, of so many nodes.
    pub fn new(nodes_max: u64) -> Self {
        Self { nodes_max, nodes: 0, copies: 0, kept: 0, copied_bytes: 0, text_bytes: 0 }
    }

    /// Nodes made so far, copies included.
    pub fn nodes(&self) -> u64 {
        self.nodes.saturating_add(self.kept)
    }

    /// Counts a document that was read by itself and copies nothing.
    pub fn add_plain(&mut self, nodes: usize, text_bytes: usize) {
        self.write(text_bytes);
        self.add(nodes, 0, 0);
    }

    /// Whether the stream has more nodes than it may have.
    pub fn is_exceeded(&self) -> bool {
        self.nodes() > self.nodes_max
    }

    /// Counts text that was written.
    pub(crate) fn write(&mut self, bytes: usize) {
        self.text_bytes = self.text_bytes.saturating_add(bytes as u64);
    }

    /// Counts nodes, and how many of them, with how much text, are copies.
    pub(crate) fn add(&mut self, nodes: usize, copies: usize, copied_bytes: usize) {
        self.nodes = self.nodes.saturating_add(nodes as u64);
        self.copies = self.copies.saturating_add(copies as u64);
        self.copied_bytes = self.copied_bytes.saturating_add(copied_bytes as u64);
    }

    /// Counts nodes that are kept for aliases to come.
    pub(crate) fn keep(&mut self, nodes: usize, copied_bytes: usize) {
        self.kept = self.kept.saturating_add(nodes as u64);
        self.copied_bytes = self.copied_bytes.saturating_add(copied_bytes as u64);
    }

    /// Refuses copies out of proportion.
    pub(crate) fn check(&self, position: Position) -> Result<(), ParseError> {
        let refuse = |name, message: &str| {
            let hint = "write the values out, or split the package";
            Err(ParseError::limit(name, position, message).hint(hint))
        };
        if self.is_exceeded() {
            let message = format!("all documents have more nodes than {}", self.nodes_max);
            return refuse(NODES_MAX, &message);
        }
        let share = u128::from(self.nodes) * u128::from(share_max(self.nodes));
        let copies = u128::from(self.copies) * u128::from(WHOLE);
        let is_repeated = self.copies > COPIES_FREE && self.nodes > NODES_FREE && copies > share;
        let is_kept = self.kept > FEW && self.kept / KEPT_PER_NODE > self.nodes;
        if is_repeated || is_kept {
            let message = format!(
                "anchors and aliases of all documents so far copy {} nodes, which is too many for \
                 what was written",
                self.copies.saturating_add(self.kept)
            );
            return refuse(SHARE_MAX, &message);
        }
        if self.copied_bytes > self.text_bytes.saturating_add(BYTES_FREE) {
            let message = format!(
                "anchors and aliases of all documents so far copy {} bytes of text, which is too \
                 much for what was written",
                self.copied_bytes
            );
            return refuse(SHARE_MAX, &message);
        }
        Ok(())
    }
}

/// How many millionths of so many nodes may be copies.
fn share_max(nodes: u64) -> u64 {
    let above = nodes.clamp(FEW, MANY) - FEW;
    SHARE_OF_FEW - (SHARE_OF_FEW - SHARE_OF_MANY) * above / (MANY - FEW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_gos_library() {
        assert_eq!(share_max(0), 990_000);
        assert_eq!(share_max(400_000), 990_000);
        assert_eq!(share_max(2_200_000), 545_000);
        assert_eq!(share_max(4_000_000), 100_000);
        assert_eq!(share_max(u64::MAX), 100_000);
    }

    #[test]
    fn few_copies_are_always_allowed() {
        let mut total = Total::new(u64::MAX);
        total.add(1000, 1000, 0);
        assert!(total.check(Position::default()).is_ok());
        total.add(9, 0, 0);
        assert!(total.check(Position::default()).is_err());
        total.add(2, 0, 0);
        assert!(total.check(Position::default()).is_ok());
    }

    #[test]
    fn text_is_copied_in_proportion_to_what_was_written() {
        let mut total = Total::new(u64::MAX);
        total.add(1000, 10, 17 << 20);
        assert!(total.check(Position::default()).is_err());
        total.write(1 << 20);
        assert!(total.check(Position::default()).is_ok());
    }
}
