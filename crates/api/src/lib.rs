//! Room `api`.

pub mod meta;
