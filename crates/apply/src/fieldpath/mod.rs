//! Paths to fields, and sets of them.
//!
//! Ownership is a set of paths. A path is a list of [`PathElement`]s, each choosing one child: a
//! field by name, a list item by its key fields, a set item by its value. A [`Set`] is a tree:
//! every node has *members* (children that belong to the set) and *children* (subtrees with
//! members further down); a child may be both, one or the other.
//!
//! ```text
//!  {"f:spec":{"f:ports":{"k:{\"port\":80}":{".":{},"f:name":{}}}}}
//!        |          |            |          |        `- member: .spec.ports[port=80].name
//!        |          |            |          `- member: .spec.ports[port=80] itself
//!        child      child        child and member
//! ```
//!
//! Subtrees are shared: every operation answers with a new set that borrows what did not change.

mod element;
mod serial;
mod set;

pub use element::{Path, PathElement};
pub use serial::FieldsError;
pub use set::Set;
