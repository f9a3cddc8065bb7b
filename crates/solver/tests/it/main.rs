//! What the solver promises, seen from outside.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

mod best;
mod brute;
mod protocol;
mod upstream;
mod words;
mod world;
