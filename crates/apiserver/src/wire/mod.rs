//! # Typed objects: how built-in kinds travel
//!
//! Custom objects are JSON and nothing else. Built-in ones are structures: they also travel
//! as protobuf, where fields are numbers, and their JSON shows some fields even when empty
//! and never shows others. One [`table`] of facts says which number is which field and how
//! an empty one is written; [`protobuf`] reads with it, and [`typed`] brings any JSON into
//! the form in which a structure would be written.

pub mod protobuf;
mod special;
mod table;
pub mod typed;

#[cfg(test)]
mod tests;
