//! The catalog by its doors: packages are read from a store, histories are played against a model,
//! and questions are asked by people who may not read everything.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::format_push_string,
    reason = "helpers of tests may die like tests do, and need not be fast"
)]

mod documents;
mod history;
mod http;
mod questions;
mod reading;
mod resolving;
mod support;
