//! # Room `yaml`: YAML as Kubernetes tools read and write it
//!
//! A package is one long YAML stream, and the tools that will read it later (`kubectl`, the API
//! server, Crossplane) all go through the same Go library. That library follows YAML 1.1 for
//! plain words and numbers: `on` is a boolean even as a key, `0755` is 493, `1_000` is 1000. A
//! parser that follows YAML 1.2 reads another package than the one the cluster will see, so the
//! meaning of scalars is decided here and only the grammar is borrowed (granit).
//!
//! ```text
//! bytes ── split ──▶ one document's text ── parse ──▶ Node (tree with positions)
//!          lines only                       events from granit,
//!          nothing parsed                   meanings from scalar, keys joined by merge
//! ```
//!
//! * [`split`] cuts a stream at its `---` lines without parsing it, so that a package of any size
//!   is held one document at a time.
//! * [`scalar`] says what a word means: the rules of `sigs.k8s.io/yaml`, with vectors made by the
//!   original in `testdata`.
//! * [`mod@parse`] builds the tree, expands aliases and merge keys, and refuses what would be lost or
//!   read differently elsewhere: duplicate keys, a second document, numbers JSON cannot carry.
//! * [`tree`] is what everyone else works with.
//! * [`mod@write`] is the way back: JSON as the same library writes it.
//!
//! Input is never trusted. Every quantity an author can inflate (bytes, documents, depth, nodes,
//! aliases) has a place in [`Limits`], and an error that names the limit it met. What the documents
//! of a stream come to together is counted by a [`Total`]. Nothing here
//! recurses over text, touches files or knows what a package is.

pub mod error;
mod merge;
pub mod parse;
pub mod scalar;
pub mod split;
mod strict;
mod tabs;
mod tag;
mod total;
pub mod tree;
pub mod write;

pub use error::{ParseError, ParseErrorKind};
pub use merge::Repeated;
pub use parse::{
    DuplicateKeys, Options, parse, parse_body, parse_counted, parse_plain, parse_with,
};
pub use split::{RawDocument, RawDocumentRef, SplitError};
pub use total::Total;
pub use tree::{Entry, Node, Position, Value};

/// How much of everything one input may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one document of a stream.
    pub document_bytes_max: u64,
    /// Documents of one stream that are not empty.
    pub documents_max: usize,
    /// Collections within collections; values above 1,000 count as 1,000, because trees are
    /// dropped and converted recursively.
    pub depth_max: usize,
    /// Nodes of one document once aliases are expanded, keys and copies kept for anchors included.
    pub nodes_max: usize,
    /// Aliases written in one document.
    pub aliases_max: usize,
    /// Bytes of text that anchors and aliases of one document may copy.
    pub alias_bytes_max: usize,
}

impl Default for Limits {
    /// Room for every package known to us, ten times over.
    fn default() -> Self {
        Self {
            document_bytes_max: 64 << 20,
            documents_max: 100_000,
            depth_max: 100,
            nodes_max: 5_000_000,
            aliases_max: 10_000,
            alias_bytes_max: 64 << 20,
        }
    }
}
