//! The lock: all packages together.
//!
//! A [`Verdict`] is what the lock says about one revision: whether everything it needs is there,
//! or is on its way, or cannot be.

/// What the lock says about a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has all it needs: its objects may be established.
    Resolved {
        /// How many packages it needs, directly or not.
        found: usize,
        /// How many of them are there.
        installed: usize,
        /// How many of those are there in a version it does not accept.
        invalid: usize,
    },
    /// Something is not there yet and is on its way; the lock will look again by itself.
    Waiting(String),
    /// It cannot have what it needs, for this reason, until somebody changes something.
    Conflict(String),
    /// Somebody said that its dependencies do not matter.
    Skipped,
}
