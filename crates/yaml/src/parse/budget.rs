//! What a document has used of what it may use, by itself and together with others.

use super::{Limits, ParseError};
use crate::total::Total;
use crate::tree::Position;

/// What a node weighs, aliases expanded.
#[derive(Clone, Copy, Default)]
pub(super) struct Weight {
    pub(super) nodes: usize,
    pub(super) bytes: usize,
}

impl Weight {
    /// One node with so much text.
    pub(super) fn one(bytes: usize) -> Self {
        Self { nodes: 1, bytes }
    }
}

/// The limits of a document and how much of each is gone.
pub(super) struct Budget {
    limits: Limits,
    /// Everything in the tree so far.
    pub(super) spent: Weight,
    /// Nodes kept for anchors.
    kept: usize,
    aliases: usize,
    alias_bytes: usize,
    /// Nodes that aliases repeated.
    repeated: usize,
    /// What the documents before this one used, where they are counted together.
    total: Option<Total>,
}

impl Budget {
    pub(super) fn new(limits: Limits) -> Self {
        let spent = Weight::default();
        Self { limits, spent, kept: 0, aliases: 0, alias_bytes: 0, repeated: 0, total: None }
    }

    /// Counts with what other documents have used.
    pub(super) fn count_with(&mut self, total: Total) {
        self.total = Some(total);
    }

    /// All nodes that were made.
    pub(super) fn nodes(&self) -> usize {
        self.spent.nodes.saturating_add(self.kept)
    }

    /// What documents have used with this one.
    pub(super) fn total(&self) -> Option<Total> {
        let mut total = self.total.clone()?;
        // An alias was written, too.
        let nodes = self.spent.nodes.saturating_add(self.aliases);
        total.add(nodes, self.repeated, self.alias_bytes);
        total.keep(self.kept, 0);
        Some(total)
    }

    /// Adds to the weight of the tree.
    pub(super) fn spend(&mut self, weight: Weight, position: Position) -> Result<(), ParseError> {
        self.spent.nodes = self.spent.nodes.saturating_add(weight.nodes);
        self.spent.bytes = self.spent.bytes.saturating_add(weight.bytes);
        self.check_nodes(position)
    }

    /// Adds what is kept for aliases to come, before it is copied.
    pub(super) fn keep(&mut self, weight: Weight, position: Position) -> Result<(), ParseError> {
        if let Some(mut total) = self.total() {
            total.keep(weight.nodes, weight.bytes);
            total.check(position)?;
        }
        self.kept = self.kept.saturating_add(weight.nodes);
        self.copy(weight.bytes, position)?;
        self.check_nodes(position)
    }

    /// Counts an alias.
    pub(super) fn alias(&mut self, position: Position) -> Result<(), ParseError> {
        self.aliases += 1;
        let max = self.limits.aliases_max;
        if self.aliases > max {
            let message = format!("the document has more aliases than the limit of {max}");
            return Err(ParseError::limit("aliases_max", position, &message));
        }
        Ok(())
    }

    /// Adds what an alias repeats, before it is copied.
    pub(super) fn repeat(&mut self, weight: Weight, position: Position) -> Result<(), ParseError> {
        if let Some(mut total) = self.total() {
            total.add(weight.nodes, weight.nodes, weight.bytes);
            total.check(position)?;
        }
        self.repeated = self.repeated.saturating_add(weight.nodes);
        self.copy(weight.bytes, position)?;
        self.spend(weight, position)
    }

    /// What was spent since an earlier state.
    pub(super) fn since(&self, before: Weight) -> Weight {
        Weight { nodes: self.spent.nodes - before.nodes, bytes: self.spent.bytes - before.bytes }
    }

    /// Refuses to go so deep.
    pub(super) fn check_depth(&self, depth: usize, position: Position) -> Result<(), ParseError> {
        if depth > self.limits.depth_max {
            return Err(ParseError::depth(position, self.limits.depth_max));
        }
        Ok(())
    }

    /// Adds text that is copied, for anchors or by aliases.
    fn copy(&mut self, bytes: usize, position: Position) -> Result<(), ParseError> {
        self.alias_bytes = self.alias_bytes.saturating_add(bytes);
        let max = self.limits.alias_bytes_max;
        if self.alias_bytes > max {
            let message =
                format!("anchors and aliases copy more text than the limit of {max} bytes");
            return Err(ParseError::limit("alias_bytes_max", position, &message));
        }
        Ok(())
    }

    fn check_nodes(&self, position: Position) -> Result<(), ParseError> {
        let max = self.limits.nodes_max;
        if self.nodes() > max {
            let message = format!("the document has more nodes than the limit of {max}");
            return Err(ParseError::limit("nodes_max", position, &message));
        }
        Ok(())
    }
}
