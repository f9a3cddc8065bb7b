//! The answer.

use crate::problem::Need;
use crate::value::{Pin, Source};
use std::collections::BTreeSet;
use std::fmt;

/// What solving comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not enough is known yet: find these out and ask again.
    Missing(BTreeSet<Need>),
    /// The answer.
    Settled(Settlement),
}

/// What every package should become, and who cannot have what they want.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    /// One entry per package that is to be there; what is needed comes before what needs it.
    pub changes: Vec<Change>,
    /// Why some wishes are not met; they and nothing else are left as they are.
    pub conflicts: Vec<Conflict>,
}

/// What a package should become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which package.
    pub source: Source,
    /// The name of its root, if it has one already.
    pub name: Option<String>,
    /// The kind of package it must be, as those that need it say, or as it says itself.
    pub kind: Option<String>,
    /// What to do.
    pub action: Action,
    /// What is installed now.
    pub from: Option<Pin>,
    /// What should be installed.
    pub to: Pin,
    /// Who needs it, and what they said.
    pub because: Vec<Because>,
}

/// What is to be done to a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing: it is there.
    Keep,
    /// It was not there.
    Install,
    /// To a higher version.
    Upgrade,
    /// To a lower version.
    Downgrade,
    /// To other bytes of which no order is known: a digest or channel on either side.
    Switch,
}

/// Who needs a package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Because {
    /// The package that needs it.
    pub source: Source,
    /// In which version.
    pub pin: Pin,
    /// Which versions it accepts, or the CRD it needs.
    pub wants: String,
}

/// Why a root cannot have what it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The root that is left as it is.
    pub name: String,
    /// Which package it is.
    pub source: Source,
    /// What together cannot be; without any one of these there would be no conflict.
    pub sentences: Vec<String>,
    /// What somebody can do about it.
    pub hint: String,
    /// Every package that plays a part.
    pub involved: BTreeSet<Source>,
}

impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Keep => "keep",
            Self::Install => "install",
            Self::Upgrade => "upgrade",
            Self::Downgrade => "downgrade",
            Self::Switch => "switch",
        })
    }
}

/// `keep`, `install` and so on, the package, and what it moves from and to.
impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { action, source, to, .. } = self;
        match &self.from {
            Some(from) if *action != Action::Keep => {
                write!(formatter, "{action} {source} {from} -> {to}")
            }
            _ => write!(formatter, "{action} {source} {to}"),
        }
    }
}

/// The sentences in one line, fit for the message of a condition.
impl fmt::Display for Conflict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.sentences.join("; "))
    }
}
