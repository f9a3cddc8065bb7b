//! # Room `plan`: what should become of packages, and why
//!
//! The package manager looks at the world, decides, and acts. This room is the middle word. It is
//! handed what was seen as values and answers with a list of actions so exact that carrying it
//! out leaves nothing to choose:
//!
//! ```text
//!   World (objects, digests) ─► step ─► Need(…)    find these out and ask again
//!                                  └──► Do(Plan)   actions in order, a report, when to look again
//! ```
//!
//! The same function answers a controller, `apron plan` and `apron why`, so a dry run cannot say
//! one thing and the manager do another.
//!
//! What this room promises:
//!
//! - **It never fails.** A strange world leads to conditions that say what is strange, and what to
//!   do about it.
//! - **Nothing changes, nothing is done.** A world that is as it should be gives no actions.
//! - **An action names the state it was decided on**, so that one decided on an old state is
//!   refused by the API server instead of undoing what somebody else did.
//!
//! What it refuses to know: clusters, registries, files, the time of day. It takes the time as a
//! text and digests as values. It has no opinion of its own on versions; that is `solver`.
//!
//! Start with [`step`] for the vocabulary, [`package`] for how packages become revisions
//! (`package::revisions`: which one is Active),
//! [`revision`] for how those become objects, [`lock`] for what packages need of each other,
//! [`image_config`] for what they are called, [`runtime`] for how they are run, [`authority`]
//! for what they may bring and ask for, [`adoption`] for what is there already, [`retention`]
//! for what outlives the version that brought it, [`rbac`] for what they may do, [`signature`] for who must have signed them, [`stacks`] for install objects of the first
//! package system, [`same`] for when nothing needs to be done, and [`preview`] for how people are told what would be.

pub mod adoption;
pub mod authority;
pub mod control;
pub mod image_config;
pub mod lock;
pub mod package;
pub mod preview;
pub mod rbac;
pub mod retention;
pub mod revision;
pub mod runtime;
pub mod same;
pub mod signature;
pub mod stacks;
pub mod step;
