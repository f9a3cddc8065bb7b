//! What can go wrong, worded as the server words it.
//!
//! Each error says its own part; [`ApplyError::message`] and [`UpdateError::message`] join the
//! parts into the sentence a client gets.

use std::error::Error;
use std::fmt;

use super::convert::ConvertError;
use super::fieldpath::{FieldsError, Path, Set};
use super::managed::ManagedError;
use super::typed::Faults;

/// Why a configuration was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The stored managed fields are damaged.
    #[error("failed to decode managed fields")]
    Managed(#[source] ManagedError),
    /// The configuration is of another kind or version than the request; a bad request.
    #[error("invalid object type: {found}")]
    WrongType {
        /// What the configuration says it is.
        found: String,
    },
    /// The configuration has managed fields of its own; a bad request.
    #[error("metadata.managedFields must be nil")]
    ManagedFieldsGiven,
    /// The configuration does not fit the schema.
    #[error("failed to create typed patch object ({object})")]
    Config {
        /// Namespace, name and kind of the object.
        object: String,
        /// What does not fit.
        source: Faults,
    },
    /// The stored object does not fit the schema.
    #[error("failed to create typed live object ({object})")]
    Live {
        /// Namespace, name and kind of the object.
        object: String,
        /// What does not fit.
        source: Faults,
    },
    /// The fields of an object nobody owned could not be attributed.
    #[error("failed to create manager for existing fields")]
    FirstApply(#[source] UpdateError),
    /// Others own fields the configuration would change.
    #[error(transparent)]
    Conflicts(Conflicts),
    /// Ownership could not be computed.
    #[error(transparent)]
    Ownership(OwnershipError),
    /// Ownership could not be written.
    #[error("failed to encode managed fields")]
    Encode(#[source] FieldsError),
}

/// Why the owners of a written object could not be computed.
///
/// The server never refuses a write for that: it stores the object without managed fields.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// The new object does not fit the schema.
    #[error("failed to convert new object ({object}) to smd typed")]
    New {
        /// Namespace, name and kind of the object.
        object: String,
        /// What does not fit.
        source: Faults,
    },
    /// The stored object does not fit the schema.
    #[error("failed to convert live object ({object}) to smd typed")]
    Live {
        /// Namespace, name and kind of the object.
        object: String,
        /// What does not fit.
        source: Faults,
    },
    /// Ownership could not be computed.
    #[error("failed to update ManagedFields ({object})")]
    Ownership {
        /// Namespace, name and kind of the object.
        object: String,
        /// What went wrong.
        source: OwnershipError,
    },
    /// Ownership could not be written.
    #[error("failed to encode managed fields")]
    Encode(#[source] FieldsError),
}

/// Why ownership could not be computed.
#[derive(Debug, thiserror::Error)]
pub enum OwnershipError {
    /// Two states of the object cannot be compared.
    #[error("failed to compare objects")]
    Compare(#[source] Faults),
    /// An object could not be brought to a manager's version.
    #[error("{what}")]
    Convert {
        /// Which object, and what for.
        what: String,
        /// What went wrong.
        source: ConvertError,
    },
    /// The stored object could not be brought to a manager's version.
    #[error(transparent)]
    Reconcile(ConvertError),
}

impl ApplyError {
    /// The sentence the server answers with.
    pub fn message(&self) -> String {
        chain(self)
    }
}

impl UpdateError {
    /// The sentence the server logs.
    pub fn message(&self) -> String {
        chain(self)
    }
}

fn chain(error: &dyn Error) -> String {
    let mut out = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        out.push_str(": ");
        out.push_str(&error.to_string());
        cause = error.source();
    }
    out
}

/// A field somebody else owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The owner, as messages name it: `"kubectl" using v1`.
    pub manager: String,
    /// The field.
    pub path: Path,
}

impl Conflict {
    /// The message of this conflict's cause; its field is the path, its reason
    /// `FieldManagerConflict`.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }
}

/// All fields others own that a configuration would change, by owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

/// The most conflicts that are told one by one.
const CONFLICTS_MAX: usize = 100;

impl Conflicts {
    /// Those that are told one by one; each names its whole way through the object.
    pub fn shown(&self) -> &[Conflict] {
        self.0.get(..CONFLICTS_MAX).unwrap_or(&self.0)
    }

    pub(super) fn paths(&self) -> Set {
        Set::of(self.0.iter().map(|conflict| conflict.path.clone()))
    }
}

impl Error for Conflicts {}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            return write!(f, "Apply failed with 1 conflict: {}: {}", only.message(), only.path);
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        let mut owner = None;
        for conflict in self.shown() {
            if owner != Some(&conflict.manager) {
                let line = if owner.is_some() { "\n" } else { "" };
                write!(f, "{line}conflicts with {}:", conflict.manager)?;
                owner = Some(&conflict.manager);
            }
            write!(f, "\n- {}", conflict.path)?;
        }
        Ok(())
    }
}
