//! What a document has used of what it may use.

use super::{Limits, ParseError};
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
}

impl Budget {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, spent: Weight::default(), kept: 0, aliases: 0, alias_bytes: 0 }
    }

    /// Adds to the weight of the tree.
    pub(super) fn spend(&mut self, weight: Weight, position: Position) -> Result<(), ParseError> {
        self.spent.nodes = self.spent.nodes.saturating_add(weight.nodes);
        self.spent.bytes = self.spent.bytes.saturating_add(weight.bytes);
        self.check_nodes(position)
    }

    /// Adds what is kept for aliases to come, before it is copied.
    pub(super) fn keep(&mut self, weight: Weight, position: Position) -> Result<(), ParseError> {
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
        if self.spent.nodes.saturating_add(self.kept) > max {
            let message = format!("the document has more nodes than the limit of {max}");
            return Err(ParseError::limit("nodes_max", position, &message));
        }
        Ok(())
    }
}
