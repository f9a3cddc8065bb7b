//! # Room `wire`: how built-in kinds of Kubernetes travel
//!
//! Custom objects are JSON and nothing else. Built-in ones are structures: they also travel
//! as protobuf, where fields are numbers, and their JSON shows some fields even when empty
//! and never shows others. One table of facts (`data/types.txt`) says which number is which field and how
//! an empty one is written; [`protobuf`] reads with it, and [`typed`] brings any JSON into
//! the form in which a structure would be written.
//!
//! What it refuses to know: servers, requests, and what any of the fields means.

#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod protobuf;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
mod special;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
mod table;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod typed;

#[cfg(test)]
mod tests;
