//! The problem with numbers for names: what the search and the explanation look things up in.
//!
//! Everything is a *name* of which at most one *solvable* can be chosen. Most names are packages
//! and their solvables what can be installed of them. Three kinds of name are only a manner of
//! speaking: a CRD (its solvables: who brings it), a circle of dependencies that must not close
//! (its solvables: who of the circle is not there), and nothing (no solvables at all, needed by
//! whatever can never be installed).
//!
//! An *edge* says that a solvable needs one of a *set* of solvables of one name. Edges that say
//! the same about all versions of a package share a *fact*, the unit of explanations.

use crate::narrow::Shape;
use crate::problem::{Movement, Root, Want};
use crate::value::{Pin, Range, Source};

#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) names: Vec<Name>,
    pub(crate) solvables: Vec<Solvable>,
    pub(crate) sets: Vec<Set>,
    pub(crate) facts: Vec<Fact>,
    /// Sorted by source; one per source.
    pub(crate) roots: Vec<Rooted>,
    /// The same for quick looks.
    pub(crate) shape: Shape,
}

#[derive(Debug)]
pub(crate) struct Name {
    pub(crate) what: What,
    /// Best first.
    pub(crate) solvables: Vec<usize>,
    /// The set of all of them.
    pub(crate) all: usize,
    /// The root that is about this package.
    pub(crate) root: Option<usize>,
    /// Why its tags cannot be known, if so; of a CRD, why no package can be found for it.
    pub(crate) unavailable: Option<String>,
    /// What can be done about that.
    pub(crate) advice: Option<String>,
    /// Tags that could never be chosen, for hints.
    pub(crate) other_tags: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum What {
    Package(Source),
    Crd(String),
    Circle,
    Nothing,
}

#[derive(Debug)]
pub(crate) struct Solvable {
    pub(crate) name: usize,
    pub(crate) face: Face,
    pub(crate) knowledge: Knowledge,
    pub(crate) edges: Vec<Edge>,
    pub(crate) kind: String,
}

#[derive(Debug)]
pub(crate) enum Face {
    /// Something that can be installed, and what else it is called.
    Pin(Pin, Vec<Pin>),
    /// Whatever a listing nobody has seen yet may hold.
    Joker,
    /// A package that brings the CRD this is a solvable of, by name.
    Owner(usize),
    /// The CRD this is a solvable of is there without a package.
    External,
    /// Whatever package may be found for the CRD this is a solvable of.
    Unasked,
    /// A member of a circle that stays away.
    Absent,
}

/// Whether the edges of a solvable are all there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knowledge {
    Whole,
    Unknown,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) set: usize,
    /// None for what holds by the meaning of words.
    pub(crate) fact: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) name: usize,
    /// In order.
    pub(crate) members: Vec<usize>,
}

impl Set {
    pub(crate) fn accepts(&self, solvable: usize) -> bool {
        self.members.binary_search(&solvable).is_ok()
    }
}

/// What all versions that say it say alike.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Fact {
    /// A package needs another.
    Needs { name: usize, target: usize, range: String, kind: Option<String> },
    /// A package needs a CRD.
    NeedsCrd { name: usize, crd: usize },
    /// A package brings a CRD that others bring too.
    Brings { name: usize, crd: usize },
    /// A package can never be installed.
    Impossible { name: usize, reason: String },
}

impl Fact {
    pub(crate) fn name(&self) -> usize {
        match self {
            Self::Needs { name, .. }
            | Self::NeedsCrd { name, .. }
            | Self::Brings { name, .. }
            | Self::Impossible { name, .. } => *name,
        }
    }
}

/// A root, and which of its package's solvables it lets in.
#[derive(Debug)]
pub(crate) struct Rooted {
    pub(crate) root: Root,
    pub(crate) name: usize,
    /// When it gets what it wants.
    pub(crate) allowed: Vec<usize>,
    /// Where it should be if nobody objects.
    pub(crate) base: Option<usize>,
    /// Of those allowed, the ones that are below the base.
    pub(crate) lower: Vec<usize>,
    /// What is there now.
    pub(crate) installed: Option<usize>,
    /// What that says, in order.
    pub(crate) facts: Vec<usize>,
}

impl Rooted {
    /// Whether the root asks for no more than what is there.
    pub(crate) fn is_in_place(&self) -> bool {
        self.installed.is_some() && self.base == self.installed
    }
}

impl Root {
    /// Where the package should be if nobody objects.
    pub(crate) fn base(&self) -> Option<&Pin> {
        match &self.want {
            Some(Want::Pin(pin)) => Some(pin),
            Some(Want::Range(_)) => None,
            None => self.installed.as_ref(),
        }
    }

    /// Whether the root, getting what it wants, may be at a solvable other than its base.
    pub(crate) fn lets(&self, to: &Solvable, base: Option<&Solvable>, ranges: &[&Range]) -> bool {
        match (&self.want, base) {
            (Some(Want::Range(range)), _) => to.is_accepted_by(range),
            // What somebody asks for is refused, or not, but never bent.
            (Some(Want::Pin(pin)), _) if self.installed.as_ref() != Some(pin) => false,
            (_, None) => true,
            (_, Some(base)) => {
                let asked_for = || ranges.iter().any(|range| to.is_accepted_by(range));
                let named = || {
                    let mut digests = ranges.iter().filter(|one| matches!(one, Range::Digest(_)));
                    digests.any(|range| to.is_accepted_by(range))
                };
                let upwards = match (base.version(), to.version()) {
                    (Some(base), Some(to)) => to > base,
                    // Bytes that somebody names are neither up nor down.
                    (_, None) => asked_for(),
                    (None, Some(_)) => false,
                };
                let far_enough = match self.movement {
                    Movement::Held => false,
                    Movement::Named => named(),
                    Movement::Upgrades => upwards || to.is_joker(),
                    Movement::Any => true,
                };
                let shy = to.is_prerelease() && !base.is_prerelease();
                far_enough && (!shy || asked_for())
            }
        }
    }
}

impl Solvable {
    pub(crate) fn pin(&self) -> Option<&Pin> {
        match &self.face {
            Face::Pin(pin, _) => Some(pin),
            Face::Joker | Face::Owner(_) | Face::External | Face::Unasked | Face::Absent => None,
        }
    }

    pub(crate) fn is_joker(&self) -> bool {
        matches!(self.face, Face::Joker)
    }

    /// Every pin these bytes go by.
    fn pins(&self) -> impl Iterator<Item = &Pin> {
        let (one, more) = match &self.face {
            Face::Pin(pin, aliases) => (Some(pin), aliases.as_slice()),
            _ => (None, [].as_slice()),
        };
        one.into_iter().chain(more)
    }

    pub(crate) fn version(&self) -> Option<&xpkg::version::Version> {
        self.pins().find_map(Pin::version)
    }

    pub(crate) fn is_prerelease(&self) -> bool {
        self.version().is_some_and(xpkg::version::Version::is_prerelease)
    }

    pub(crate) fn is_accepted_by(&self, range: &Range) -> bool {
        self.is_joker() || self.pins().any(|pin| range.accepts(pin))
    }
}

impl Model {
    /// The name an edge leads to.
    pub(crate) fn target(&self, edge: Edge) -> usize {
        self.sets[edge.set].name
    }

    pub(crate) fn source(&self, name: usize) -> Option<&Source> {
        match &self.names[name].what {
            What::Package(source) => Some(source),
            What::Crd(_) | What::Circle | What::Nothing => None,
        }
    }

    pub(crate) fn root_of(&self, name: usize) -> Option<usize> {
        self.names[name].root
    }
}
