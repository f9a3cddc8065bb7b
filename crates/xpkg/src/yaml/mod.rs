//! YAML as Kubernetes tools read it.

pub mod tree;

pub use tree::{Entry, Node, Position, Value};
