//! From the problem to the model.

use crate::bringers::{self, CrdCandidates, PotentialOwner};
use crate::discover::{Found, Offer, discover};
use crate::model::{Edge, Face, Fact, Knowledge, Model, Name, Rooted, Set, Solvable, What};
use crate::narrow::Shape;
use crate::problem::{Contents, Known, Listing, Problem, Requirement, Root};
use crate::quick::Map;
use crate::value::{Pin, Range, RangeKey, Source};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use xpkg::version::Version;

/// The model, and the roots whose package another root is already.
pub(crate) fn build<'a>(
    problem: &'a Problem,
    known: &'a Known,
) -> (Model, Vec<(&'a Root, &'a Root)>) {
    let (roots, rivals) = one_per_source(problem);
    (Assembler::default().assemble(discover(&roots, known), known), rivals)
}

/// Of several roots for one package the first by name counts, an installed one before others.
fn one_per_source(problem: &Problem) -> (BTreeMap<&Source, &Root>, Vec<(&Root, &Root)>) {
    let mut sorted: Vec<&Root> = problem.roots.iter().collect();
    sorted.sort_by_key(|root| (&root.source, root.installed.is_none(), &root.name, root.base()));
    let mut roots = BTreeMap::new();
    let mut rivals = Vec::new();
    for root in sorted {
        match roots.get(&root.source) {
            Some(first) => rivals.push((*first, root)),
            None => drop(roots.insert(&root.source, root)),
        }
    }
    (roots, rivals)
}

#[derive(Default)]
struct Assembler<'a> {
    model: Model,
    /// What is inside each solvable.
    contents: Vec<Option<&'a Contents>>,
    names: Map<&'a Source, usize>,
    facts: Map<Fact, usize>,
    /// The set and the fact's words for what a package says about another.
    ranged: Map<(usize, RangeKey<'a>, Option<&'a str>), usize>,
    /// The fact that says of a name that it needs a set.
    needs: Map<(usize, usize), usize>,
    /// How the range of a set reads.
    words: Map<usize, String>,
    crds: BTreeMap<&'a str, usize>,
    nothing: usize,
}

impl<'a> Assembler<'a> {
    fn assemble(mut self, found: Vec<Found<'a>>, known: &'a Known) -> Model {
        self.nothing = self.name(What::Nothing);
        let mut packages = Vec::new();
        for mut found in found {
            let offers = std::mem::take(&mut found.offers);
            let name = self.package(&mut found, offers);
            packages.push((name, found));
        }
        for candidates in
            bringers::find_candidates(&self.model, &self.contents, &self.names, &packages, known)
        {
            self.add_crd(candidates);
        }
        for (name, found) in &packages {
            self.edges(*name, found.is_skipped());
        }
        for (name, found) in &packages {
            self.root(*name, found);
        }
        self.model.shape = Shape::of(&self.model);
        self.model
    }

    fn name(&mut self, what: What) -> usize {
        let name = self.model.names.len();
        let all = self.set(name, Vec::new());
        let (solvables, other_tags) = (Vec::new(), Vec::new());
        let (root, unavailable, advice) = (None, None, None);
        self.model.names.push(Name { what, solvables, all, root, unavailable, advice, other_tags });
        name
    }

    fn set(&mut self, name: usize, members: Vec<usize>) -> usize {
        self.model.sets.push(Set { name, members });
        self.model.sets.len() - 1
    }

    fn solvable(&mut self, name: usize, face: Face, contents: Option<&'a Contents>) -> usize {
        let solvable = self.model.solvables.len();
        let unknown = contents.is_none() && matches!(face, Face::Pin(..) | Face::Joker);
        let knowledge = if unknown { Knowledge::Unknown } else { Knowledge::Whole };
        let kind = match contents {
            Some(Contents::Package(package)) => package.kind.clone(),
            Some(Contents::Unusable(_)) | None => String::new(),
        };
        self.contents.push(contents);
        let edges = Vec::new();
        self.model.solvables.push(Solvable { name, face, knowledge, edges, kind });
        self.model.names[name].solvables.push(solvable);
        let all = self.model.names[name].all;
        self.model.sets[all].members.push(solvable);
        solvable
    }

    fn package(&mut self, found: &mut Found<'a>, mut offers: Vec<Offer<'a>>) -> usize {
        let name = self.name(What::Package(found.source.clone()));
        self.names.insert(found.source, name);
        self.model.names[name].other_tags = std::mem::take(&mut found.other_tags);
        let base = found.root.and_then(Root::base);
        let from = base.and_then(|base| offers.iter().find(|offer| offer.pin == *base));
        let from = from.and_then(Offer::version).cloned();
        offers.sort_by(|one, two| preference(one, two, base, from.as_ref()));
        for Offer { pin, aliases, contents } in offers {
            self.solvable(name, Face::Pin(pin, aliases), contents);
        }
        match found.listing {
            None => drop(self.solvable(name, Face::Joker, None)),
            Some(Listing::Unavailable(reason)) => {
                self.model.names[name].unavailable = Some(reason.clone());
            }
            Some(Listing::Tags(_)) => {}
        }
        name
    }

    /// Makes a name of a CRD, with a solvable for each way to have it, the best first.
    fn add_crd(&mut self, candidates: CrdCandidates<'a>) {
        let CrdCandidates { crd, owners, is_external, is_unasked, refusal } = candidates;
        let name = self.name(What::Crd(crd.to_owned()));
        self.crds.insert(crd, name);
        if let Some((reason, hint)) = refusal {
            self.model.names[name].unavailable = Some(reason);
            self.model.names[name].advice = Some(hint);
        }
        let installed = owners.iter().filter(|owner| owner.is_installed).count();
        for (at, owner) in owners.into_iter().enumerate() {
            if at == installed && is_external {
                self.solvable(name, Face::External, None);
            }
            self.add_owner(name, owner);
        }
        if is_external && self.model.names[name].solvables.len() == installed {
            self.solvable(name, Face::External, None);
        }
        if is_unasked {
            self.solvable(name, Face::Unasked, None);
        }
    }

    fn add_owner(&mut self, name: usize, owner: PotentialOwner) {
        let PotentialOwner { package, bringing, supposed, is_exclusive, .. } = owner;
        let solvable = self.solvable(name, Face::Owner(package), None);
        if is_exclusive {
            let itself = self.set(name, vec![solvable]);
            let fact = self.fact(Fact::Brings { name: package, crd: name });
            for bringer in &bringing {
                self.model.solvables[*bringer].edges.push(Edge { set: itself, fact: Some(fact) });
            }
        }
        let mut members = [bringing, supposed].concat();
        members.sort_unstable();
        let set = self.set(package, members);
        self.model.solvables[solvable].edges.push(Edge { set, fact: None });
    }

    fn fact(&mut self, fact: Fact) -> usize {
        let facts = &mut self.model.facts;
        *self.facts.entry(fact.clone()).or_insert_with(|| {
            facts.push(fact);
            facts.len() - 1
        })
    }

    fn edges(&mut self, name: usize, skipped: bool) {
        // Most versions need what the one before them needs.
        let mut last: (&[Requirement], Vec<Edge>) = (&[], Vec::new());
        for at in 0..self.model.names[name].solvables.len() {
            let solvable = self.model.names[name].solvables[at];
            match self.contents[solvable] {
                Some(Contents::Package(package)) if !skipped => {
                    if package.requires != last.0 {
                        last = (&package.requires, self.requires(name, &package.requires));
                    }
                    self.model.solvables[solvable].edges.extend(&last.1);
                }
                Some(Contents::Unusable(reason)) => {
                    let edge = self.impossible(name, reason);
                    self.model.solvables[solvable].edges.push(edge);
                }
                Some(Contents::Package(_)) | None => {}
            }
        }
    }

    /// What a package needs, whatever order that was written in.
    fn requires(&mut self, name: usize, requires: &'a [Requirement]) -> Vec<Edge> {
        let mut requires: Vec<&Requirement> = requires.iter().collect();
        requires.sort_by_key(|one| key(one));
        requires.into_iter().map(|one| self.edge(name, one)).collect()
    }

    fn edge(&mut self, name: usize, requirement: &'a Requirement) -> Edge {
        match requirement {
            Requirement::Package { source, kind, range } => {
                let Some(&target) = self.names.get(source) else {
                    return self.impossible(name, "one of its dependencies is unknown");
                };
                let set = self.ranged(target, range, kind.as_deref());
                if let Some(&fact) = self.needs.get(&(name, set)) {
                    return Edge { set, fact: Some(fact) };
                }
                let words = self.words.entry(set).or_insert_with(|| range.to_string());
                let (range, kind) = (words.clone(), kind.clone());
                let fact = self.fact(Fact::Needs { name, target, range, kind });
                self.needs.insert((name, set), fact);
                Edge { set, fact: Some(fact) }
            }
            Requirement::Crd(crd) => {
                let Some(&crd) = self.crds.get(crd.as_str()) else {
                    return self.impossible(name, "one of its dependencies is unknown");
                };
                let fact = self.fact(Fact::NeedsCrd { name, crd });
                Edge { set: self.model.names[crd].all, fact: Some(fact) }
            }
            Requirement::Invalid(reason) => self.impossible(name, reason),
        }
    }

    fn impossible(&mut self, name: usize, reason: &str) -> Edge {
        let fact = self.fact(Fact::Impossible { name, reason: reason.to_owned() });
        Edge { set: self.model.names[self.nothing].all, fact: Some(fact) }
    }

    fn ranged(&mut self, target: usize, range: &'a Range, kind: Option<&'a str>) -> usize {
        let key = (target, range.key(), kind);
        if let Some(&set) = self.ranged.get(&key) {
            return set;
        }
        let fits = |solvable: &Solvable| {
            let other = kind.is_some_and(|kind| !solvable.kind.is_empty() && solvable.kind != kind);
            solvable.is_accepted_by(range) && !other
        };
        let solvables = self.model.names[target].solvables.iter().copied();
        let members = solvables.filter(|&at| fits(&self.model.solvables[at])).collect();
        let set = self.set(target, members);
        self.ranged.insert(key, set);
        set
    }

    fn root(&mut self, name: usize, found: &Found<'a>) {
        let Some(root) = found.root else { return };
        let solvables = &self.model.names[name].solvables;
        let at = |pin: &Pin| {
            solvables.iter().copied().find(|&one| self.model.solvables[one].pin() == Some(pin))
        };
        let base = root.base().and_then(at);
        let installed = root.installed.as_ref().and_then(at);
        let base_solvable = base.map(|base| &self.model.solvables[base]);
        let ranges: Vec<&Range> = found.ranges.values().copied().collect();
        let lets = |at: usize| {
            base == Some(at) || root.lets(&self.model.solvables[at], base_solvable, &ranges)
        };
        let allowed: Vec<usize> = solvables.iter().copied().filter(|&at| lets(at)).collect();
        let is_lower = |at: &usize| {
            let base = base_solvable.and_then(Solvable::version);
            let version = self.model.solvables[*at].version();
            base.zip(version).is_some_and(|(base, version)| version < base)
        };
        let lower = allowed.iter().copied().filter(is_lower).collect();
        self.model.names[name].root = Some(self.model.roots.len());
        let root = root.clone();
        let edges = installed.into_iter().flat_map(|at| &self.model.solvables[at].edges);
        let facts: BTreeSet<usize> = edges.filter_map(|edge| edge.fact).collect();
        let facts = facts.into_iter().collect();
        self.model.roots.push(Rooted { root, name, allowed, base, lower, installed, facts });
    }
}

/// What tells requirements apart.
fn key(requirement: &Requirement) -> (u8, &str, RangeKey<'_>, Option<&str>) {
    match requirement {
        Requirement::Package { source, kind, range } => {
            (0, source.as_str(), range.key(), kind.as_deref())
        }
        Requirement::Crd(crd) => (1, crd, (0, ""), None),
        Requirement::Invalid(reason) => (2, reason, (0, ""), None),
    }
}

/// Which of two offers to try first: the base; from there up, nearest first; then down, nearest
/// first. Without a base the highest first.
fn preference(
    one: &Offer<'_>,
    two: &Offer<'_>,
    base: Option<&Pin>,
    from: Option<&Version>,
) -> Ordering {
    // Without a version comes last, then by name, so that the order is total.
    let rank = |offer: &Offer<'_>| match offer.version() {
        _ if base == Some(&offer.pin) => 0,
        Some(version) if from.is_some_and(|from| version < from) => 2,
        Some(_) => 1,
        None => 3,
    };
    let nearest = match (rank(one), from) {
        (1, Some(_)) => one.version().cmp(&two.version()),
        _ => two.version().cmp(&one.version()),
    };
    rank(one).cmp(&rank(two)).then(nearest).then_with(|| two.pin.cmp(&one.pin))
}
