//! # Room `solver`: which versions go together
//!
//! Packages need other packages, in versions. Given the packages somebody has and wants, and what
//! is known about repositories, this room says what should be installed, or what to find out
//! first, or why it cannot be:
//!
//! ```text
//!   Problem (roots) ─┐
//!                    ├─► solve ─► Missing(needs) ── caller finds out ──► Known, once more
//!   Known (world) ───┘        └─► Settled(changes, conflicts)
//! ```
//!
//! It is complete: all constraints are considered at once, and if there is an answer it is found.
//! It is exact: among all answers it gives the one in which, in this order,
//!
//! 1. the fewest installed packages lack something they need, or a CRD they own;
//! 2. they lack the fewest things;
//! 3. the fewest wishes are refused;
//! 4. of equal refusals the first in a fixed order is taken, and then the fewest packages are
//!    moved from where they are, or were asked to be;
//! 5. the fewest of those are lowered;
//! 6. and then, package by package from the roots outwards, each has the best version that is
//!    still possible: the highest when it is new, else the nearest above, else the nearest below.
//!
//! There is one such answer, so neither the order of the input nor anything else matters.
//!
//! **A fault stays where it is.** A package that cannot have what it needs is left as it is, with
//! a [`Conflict`] that says why in sentences; everybody else is solved as if it did not need it.
//! Packages must not need each other in a circle, and a CRD has one owner.
//!
//! **It asks, and does not call.** What is not known is taken to be harmless: an unread package
//! needs nothing, an unlisted repository has whatever is wanted. If the best answer to that
//! rests on something unknown, it is asked for ([`Outcome::Missing`]); nothing else ever is. So
//! a caller fetches what matters, and an answer that comes is final.
//!
//! **A CRD is an alternative.** A package that needs a CRD needs any package that brings it: one
//! that is installed, one that comes for another reason, else the one that is proposed for it
//! ([`Bringer`]), which is asked for only then. Which package that is, of several, is not decided
//! here.
//!
//! What it refuses to know: registries, references, clusters. A package is its [`Source`], which
//! the caller has made canonical; two names for the same bytes are one package when a digest
//! says so. Versions and constraints are those of `xpkg`.
//!
//! Start with [`solve`]. `model` puts the problem in numbers, `oracle` asks the satisfiability
//! solver, `search` finds the best answer, `explain` puts the
//! reasons for a conflict into words.

mod answer;
mod bringers;
mod build;
mod discover;
mod explain;
mod model;
mod narrow;
mod oracle;
mod problem;
mod quick;
mod search;
mod settle;
mod value;
mod words;

pub use answer::{Action, Because, Change, Conflict, Outcome, Settlement};
pub use problem::{
    Bringer, Contents, Dependencies, Known, Listing, Movement, Need, Package, Problem, Requirement,
    Root, Tag, Want,
};
pub use settle::solve;
pub use value::{Pin, Range, Source};
