//! A black-box conformance suite for OCI registries.
//!
//! It knows a registry by its URL alone, and asks of it what the OCI distribution specification
//! 1.1.1 asks: every endpoint, header, error code and precondition, with sha256 and sha512, for
//! every kind of content that registries carry; and, marked [`Level::Dev`], what the
//! specification has gained since.
//!
//! # How it is made
//!
//! - A [`Check`] is one demand with a stable id, the sentence it stands on, and a [`Level`]. It
//!   makes its own repositories, with names and bytes drawn from the seed and its id: no check
//!   needs another one, and any can be run alone.
//! - There are no skips. A check that cannot reach its demand because an earlier step failed has
//!   failed, and says at which request. A feature that the specification leaves open (MAY) is
//!   a check of level [`Level::Should`]; the checks of level [`Level::Must`] accept either way.
//! - The HTTP client (`wire`) is our own, and small: request targets go out byte for byte
//!   (`..`, `%2f`), nothing is followed, decoded or repeated, and bytes after the end of an answer
//!   are seen.
//! - Nothing of apron is used, not even its digests: a misreading of the specification must not
//!   be made on both sides.
//! - A failure is written for the one who has to mend the registry: the request line, what was
//!   expected, and the status, headers and first bytes of what came.
//!
//! # What it is measured by
//!
//! `known/` holds what two registries in wide use are known to fall short of, with the reason for
//! each line; the integration test runs both and accepts exactly these lists. A list is
//! [`KnownFailures`]: an unexpected pass is as much of a surprise as an unexpected failure. A
//! proxy that lies about a registry, and a stub with one fault in its tokens at a time, show that
//! a check notices what it is about.
//!
//! # How to run it
//!
//! ```text
//! oci-conformance http://127.0.0.1:5000
//! oci-conformance https://registry.example.org --ca ca.pem --user ada --password secret
//! oci-conformance http://127.0.0.1:5000 --filter referrers. --output json
//! oci-conformance http://127.0.0.1:5000 --expect-failures known/distribution-3.1.1.txt
//! oci-conformance --list
//! ```
//!
//! The registry must have delete enabled. What is pushed stays: point it at a registry that may
//! be thrown away, or choose a `--prefix`.
//!
//! ```no_run
//! # async fn example() -> Result<(), String> {
//! use conformance_oci::{Selection, Target, run};
//! let mut target = Target::new("http://127.0.0.1:5000");
//! target.credentials = Some(("ada".into(), "secret".into()));
//! let report = run(&target, &Selection::default()).await?;
//! assert_eq!(report.summary().failed, 0, "{}", report.to_text());
//! # Ok(())
//! # }
//! ```

mod auth;
mod check;
mod checks;
mod client;
mod content;
mod context;
mod digest;
mod exchange;
mod kind;
mod known;
mod random;
mod report;
mod run;
mod target;
mod tls;
mod wire;

pub use check::{Check, Level, Outcome};
pub use known::KnownFailures;
pub use report::{Finding, Report, Summary};
pub use run::{Selection, run};
pub use target::Target;

/// Every check there is, in the order in which they are reported.
pub fn checks() -> Vec<Check> {
    checks::all().into_iter().map(|entry| entry.check).collect()
}
