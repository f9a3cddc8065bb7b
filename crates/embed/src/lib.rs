//! What an API server that is embedded in a process needs of its machine.
//!
//! Room `apiserver` keeps objects and answers requests; it knows no files, sockets or webhooks. This
//! room has the rest that is the same wherever the server is embedded: [`Credentials`] keeps its
//! authority, certificates and tokens in a directory ([`Identity`]) and makes them anew before they
//! end, [`tokens`] reads those of further users, and [`Caller`] calls webhooks over HTTPS.
//!
//! ```text
//!   directory ◄──► Identity ──► Credentials ──► acceptor (TLS), kubeconfig
//!   apiserver ──► Caller ──HTTPS──► webhooks
//! ```
//!
//! The room refuses to know commands, packages and the environment. It opens no socket to listen on and
//! prints nothing: renewing certificates answers to the caller, which also sets the interval.
//! Start with [`Credentials::open`].

mod caller;
#[cfg(test)]
mod caller_tests;
mod certificate;
mod credentials;
mod identity;
pub mod tokens;

pub use caller::{Caller, FindService};
pub use credentials::{Credentials, now};
pub use identity::Identity;
