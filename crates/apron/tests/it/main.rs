//! apron as a user meets it: the real binary, real registries, real peers.
//!
//! One test binary; each file is a chapter. `support` starts what the others need.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::format_push_string,
    clippy::case_sensitive_file_extension_comparisons,
    reason = "helpers of tests fail the test that called them, and know where they are"
)]

mod apiserver;
mod build;
mod catalog;
mod chart;
mod control_plane;
mod crash;
mod crds;
mod definitions;
mod deploy;
mod diff;
mod explorer;
mod export;
mod formats;
mod git_sources;
mod guarded;
mod hostile;
mod hostile_api;
mod image;
mod informers;
mod interchange;
mod interrupt;
mod kubectl;
mod manager;
mod manual;
mod packages;
#[path = "../../../apiserver/tests/it/peers.rs"]
mod peers;
mod proxies;
mod readme;
mod recorder;
mod registry;
mod robots;
mod running;
mod stacks;
mod support;
mod up;
mod upstream;
mod walls;
mod words;
