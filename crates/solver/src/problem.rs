//! The question: which packages there must be, and what is known about the world so far.

use crate::value::{Pin, Range, Source};
use oci::digest::Digest;
use std::collections::{BTreeMap, BTreeSet};

/// Which packages somebody wants or has.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    /// One per package object, in any order.
    pub roots: Vec<Root>,
}

/// A package that is installed, or that somebody asks for.
#[derive(Clone, Debug)]
pub struct Root {
    /// What people call it, for example the name of its object.
    pub name: String,
    /// Which package it is.
    pub source: Source,
    /// What is asked for; nothing means that the package may stay as it is.
    pub want: Option<Want>,
    /// What is installed now.
    pub installed: Option<Pin>,
    /// Tags by which bytes were asked for: who needs such a tag has it, wherever it points by now.
    pub tags: BTreeMap<Pin, String>,
    /// Where it may go from there when others need that. A pin asked for and not yet installed is
    /// never bent.
    pub movement: Movement,
    /// Whether its own dependencies count; a user may say that they do not.
    pub dependencies: Dependencies,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub enum Want {
    /// Exactly this.
    Pin(Pin),
    /// The best of these.
    Range(Range),
}

/// How far a package may be moved for the sake of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    /// Not at all.
    Held,
    /// Only to bytes that somebody names.
    Named,
    /// To higher versions.
    Upgrades,
    /// To higher and lower versions.
    Any,
}

/// Whether a package's dependencies count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependencies {
    /// They must be met.
    Resolved,
    /// They are nobody's business.
    Skipped,
}

/// What is known of the world; what is not, a solution may ask for.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The tags of repositories.
    pub listings: BTreeMap<Source, Listing>,
    /// What is inside packages.
    pub contents: BTreeMap<(Source, Pin), Contents>,
    /// Where CRDs may come from that a package needs and no package here brings.
    pub bringers: BTreeMap<String, Bringer>,
}

/// Where a CRD may come from that no package here brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bringer {
    /// It is there already, and no package has to bring it.
    There,
    /// This package is said to bring it. That is no more than a proposal: what counts is what is
    /// inside.
    Package {
        /// Which package.
        source: Source,
        /// The tags of it that are said to bring the CRD; none means any of them may.
        tags: BTreeSet<String>,
    },
    /// Nowhere, for this reason.
    Nowhere {
        /// Why, in a sentence.
        reason: String,
        /// What can be done about it.
        hint: String,
    },
}

/// What a repository offers.
#[derive(Clone, Debug)]
pub enum Listing {
    /// These tags.
    Tags(Vec<Tag>),
    /// Nobody can say, for this reason.
    Unavailable(String),
}

/// A tag, and the bytes behind it where they are known.
#[derive(Clone, Debug)]
pub struct Tag {
    /// The tag itself.
    pub name: String,
    /// What it points at now; two names with one digest are one package.
    pub digest: Option<Digest>,
}

impl Listing {
    /// A listing of tags of which nothing else is known.
    pub fn of_tags<T: Into<String>>(tags: impl IntoIterator<Item = T>) -> Self {
        let tag = |name: T| Tag { name: name.into(), digest: None };
        Self::Tags(tags.into_iter().map(tag).collect())
    }
}

/// What is inside a package.
#[derive(Clone, Debug)]
pub enum Contents {
    /// A package in order.
    Package(Package),
    /// It cannot be used, for this reason.
    Unusable(String),
}

/// What a package says of itself.
#[derive(Clone, Debug, Default)]
pub struct Package {
    /// Its kind, for example `Provider`; empty when unknown.
    pub kind: String,
    /// What it needs.
    pub requires: Vec<Requirement>,
    /// The CRDs it brings; at most one installed package may bring each.
    pub crds: BTreeSet<String>,
    /// What else a [`Requirement::Crd`] may call what it brings: a version of a CRD, say. Several
    /// installed packages may answer to the same.
    pub answers_to: BTreeSet<String>,
    /// The bytes it is, where that is known; whoever needs those needs it.
    pub digest: Option<Digest>,
}

/// One thing a package needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// Another package.
    Package {
        /// Which.
        source: Source,
        /// What kind of package it must be, if that is said.
        kind: Option<String>,
        /// Which versions will do.
        range: Range,
    },
    /// Whichever package brings this CRD.
    Crd(String),
    /// Something that no package can be, for this reason.
    Invalid(String),
}

/// Something the caller must find out before there can be an answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// The tags of a repository, for [`Known::listings`].
    Listing(Source),
    /// What is inside a package, for [`Known::contents`].
    Contents(Source, Pin),
    /// Where a CRD may come from, for [`Known::bringers`].
    Bringer(String),
}
