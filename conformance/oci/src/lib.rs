//! A black-box suite for registries.
//!
//! Under construction.
