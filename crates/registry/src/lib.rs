//! # Room `registry`: packages served over the OCI distribution protocol
//!
//! A registry is a place that keeps bytes by their digest and lets people give names to some of
//! them. This room is one that needs nothing beside it: a directory, and a service that speaks
//! the protocol every container tool speaks.
//!
//! ```text
//!   request ─► route (read from the right) ─► Access (who, may they?) ─► v2: one chapter each
//!                                                                         │
//!                    ┌────────────────────────────────────────────────────┘
//!                    ▼
//!   Registry ─┬─ content: blobs by digest, uploads on their way   durable before it is known
//!             ├─ metadata: who has what, tags, leases             one method, one transaction
//!             ├─ cache: manifests in memory                       never older than the last ack
//!             ├─ views: each repository as an OCI layout          a picture, drawn behind
//!             └─ events: pushed, tagged, deleted                  told after the fact
//! ```
//!
//! ## What it promises
//!
//! - **Nothing is acknowledged before it is durable.** A blob's file is flushed, named, and its
//!   directory flushed (`storage::content::files`), before the database may know of it (`storage::uploads`); a child is known before its parent,
//!   a manifest before its tag. A crash at any moment leaves less than was asked for, never less
//!   than was answered.
//! - **Collection does not race with pushes.** Whoever was told of a blob has a lease on it.
//!   Nothing is locked but single digests, for moments ([`Registry::collect`]).
//! - **Wrong bytes are never served.** Digests are checked on the way in; scrubbing takes what
//!   the disk damaged out of service ([`Registry::scrub`]).
//! - **The database can be lost.** Views and blobs are enough to make it again ([`rebuild`]).
//!
//! ## What comes from elsewhere
//!
//! Repositories below a prefix may come from another registry ([`mirror`]): fetched through
//! room `store` when first pulled, verified, recorded like anything pushed, and kept.
//!
//! ## What it refuses to know
//!
//! It knows nothing about packages, Kubernetes or sockets. [`Access`] decides who may do what
//! ([`auth::Auth`] from users and rules, [`access::Open`] without any); the shell binds [`router`] to an address; whoever indexes packages listens to
//! [`Registry::observe`] and can neither slow nor fail a push.
//!
//! ## What it stands on
//!
//! Files and a database, each behind a seam with a twin in memory: [`Registry::in_memory`] is a
//! registry without a disk, whose clock is given.
//!
//! Start with [`router`] and [`Registry`]; every limit is in [`limits`].

pub mod access;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod auth;
pub mod budget;
mod calendar;
mod error;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod forwarded;
pub mod hosts;
pub mod limits;
mod metrics;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod mirror;
pub mod name;
mod observe;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
mod query;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
mod route;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
mod storage;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
mod v2;
mod wire;

pub use access::{Access, Action, Decision, Principal};
pub use error::{Error, OpenError};
pub use name::{Name, Tag};
pub use observe::Event;
pub use storage::{
    Changed, Collect, Collected, Head, Manifest, Missing, Page, Push, Pushed, Rebuilt, Referrer,
    Registry, Scrubbed, Selector, Settings, Versions, rebuild,
};
pub use v2::{Options, ServedExtension, router};
