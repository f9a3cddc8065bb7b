//! How kinds are written: the grammar is the one that package metadata and package objects use.

pub use api::kind_reference::{GrammarError, KindReference};
