//! apron as a user meets it: the real binary, real registries, real peers.
//!
//! One test binary; each file is a chapter. `support` starts what the others need.

mod apiserver;
mod build;
mod interchange;
mod support;
mod words;
