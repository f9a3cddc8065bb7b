//! # Room `catalog`: which package brings this kind
//!
//! A registry knows bytes by their digests. People know kinds: they have a `Bucket` that nothing
//! serves, and want to know what to install. This room reads packages and keeps what they say, so
//! that both directions are one question each: which kinds does this package bring, and which
//! packages bring this kind.
//!
//! ```text
//!   store ─► read ─► Outcome (a Package, or why there is none)
//!                        │
//!                        ▼
//!   what a registry has ─► Index: settle (this repository has exactly these manifests and tags)
//!                                 learn  (this manifest is this package)
//!                        │
//!                        ▼
//!   Rights (what the asker may read) ─► questions ─► answers
//! ```
//!
//! ## What it promises
//!
//! - **It follows levels, not events.** [`Index::settle`] is told all that a repository has, and
//!   tells which of it was not read yet. Telling it again changes nothing, and missing something
//!   is mended by the next time. Each change is one transaction.
//! - **The same contents give the same answers**, byte for byte, in whatever order they came: an
//!   index can be thrown away at any time. One that is damaged or of another format is.
//! - **A package that is too big, broken or hostile is a [`Outcome::Broken`]** with the reason. It is
//!   read within the limits that hold everywhere, and stops nothing.
//! - **Answers are made of what the asker may read.** [`Rights`] are asked inside of each query,
//!   before anything is counted, ordered, compared or suggested.
//!
//! ## What it refuses to know
//!
//! Registries, sockets and users: [`http`] is a service that a shell binds. Bytes come from a [`store::Store`], rights are a predicate.
//!
//! Start with [`read()`] and [`Index`]; [`grammar`] is how kinds are written.

pub mod answer;
pub mod choice;
pub mod explain;
pub mod gather;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod http;
mod index;
pub mod install;
mod json;
mod read;
mod record;
pub mod resolve;
pub mod sample;
mod stored;
mod words;

pub use api::kind_reference as grammar;
pub use api::kind_reference::KindReference;
pub use index::{
    Head, ImportError, Index, IndexError, PAGE_LENGTH_MAX, Question, Rights, Shelf, ShelfQuestion,
    VersionComparison,
};
pub use read::{Incomplete, read};
pub use record::{
    Definition, Dependency, ImageLayer, KindDocument, Origin, Outcome, Package, Permission,
    PlainObject, Schema, ServedVersion,
};
