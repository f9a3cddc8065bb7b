//! From the best choice to an answer people can use.

use crate::answer::{Action, Because, Change, Outcome, Settlement};
use crate::build::build;
use crate::explain;
use crate::model::{Edge, Face, Fact, Knowledge, Model, What};
use crate::oracle::{Oracle, counts, is_ownership};
use crate::problem::{Known, Need, Problem};
use crate::search::{Best, best};
use std::collections::{BTreeMap, BTreeSet};

/// Says what should be installed, or what must be known first.
pub fn solve(problem: &Problem, known: &Known) -> Outcome {
    let (model, rivals) = build(problem, known);
    let mut oracle = Oracle::new(model);
    let best = best(&mut oracle);
    let missing = missing(&oracle.model, &best);
    if !missing.is_empty() {
        return Outcome::Missing(missing);
    }
    let mut conflicts: Vec<_> =
        rivals.into_iter().map(|(one, two)| explain::rivalry(one, two)).collect();
    conflicts.extend(explain::conflicts(&mut oracle, &best));
    conflicts.sort_by(|one, two| (&one.source, &one.name).cmp(&(&two.source, &two.name)));
    let changes = Changes::new(&oracle.model, &best).ordered();
    Outcome::Settled(Settlement { changes, conflicts })
}

/// What the answer rests on and nobody knows.
fn missing(model: &Model, best: &Best) -> BTreeSet<Need> {
    let mut needs = BTreeSet::new();
    for &(name, solvable) in &best.walk {
        let solvable = &model.solvables[solvable];
        if let (Face::Unasked, What::Crd(crd)) = (&solvable.face, &model.names[name].what) {
            needs.insert(Need::Bringer(crd.clone()));
        }
        let Some(source) = model.source(name) else { continue };
        match &solvable.face {
            Face::Joker => drop(needs.insert(Need::Listing(source.clone()))),
            Face::Pin(pin, _) if solvable.knowledge == Knowledge::Unknown => {
                needs.insert(Need::Contents(source.clone(), pin.clone()));
            }
            _ => {}
        }
    }
    needs
}

struct Changes<'a> {
    model: &'a Model,
    best: &'a Best,
    chosen: BTreeMap<usize, usize>,
}

impl<'a> Changes<'a> {
    fn new(model: &'a Model, best: &'a Best) -> Self {
        Self { model, best, chosen: best.walk.iter().copied().collect() }
    }

    /// What is needed before what needs it; else in the order of the walk.
    fn ordered(&self) -> Vec<Change> {
        let mut done = BTreeSet::new();
        let mut ordered = Vec::new();
        for &(name, _) in &self.best.walk {
            self.after_its_needs(name, &mut done, &mut ordered);
        }
        let mut reasons = self.reasons();
        let reason = |name: usize| (name, reasons.remove(&name).unwrap_or_default());
        let named: Vec<_> = ordered.into_iter().map(reason).collect();
        let changes = named
            .into_iter()
            .map(|(name, (because, kind))| self.change(name, because.into_iter().collect(), kind));
        changes.flatten().collect()
    }

    fn after_its_needs(&self, start: usize, done: &mut BTreeSet<usize>, ordered: &mut Vec<usize>) {
        let mut path = vec![(start, self.needs(start))];
        if !done.insert(start) {
            return;
        }
        while let Some((name, needs)) = path.last_mut() {
            let Some(next) = needs.pop() else {
                ordered.push(*name);
                path.pop();
                continue;
            };
            if done.insert(next) {
                let needs = self.needs(next);
                path.push((next, needs));
            }
        }
    }

    /// The chosen names that a name's choice needs, last first.
    fn needs(&self, name: usize) -> Vec<usize> {
        let Some(&solvable) = self.chosen.get(&name) else { return Vec::new() };
        let edges = self.model.solvables[solvable].edges.iter();
        let edges = edges.filter(|edge| {
            counts(self.model, &self.best.view, solvable, **edge)
                && !is_ownership(self.model, **edge)
        });
        let mut needs: Vec<usize> = edges.map(|edge| self.model.target(*edge)).collect();
        needs.retain(|target| self.chosen.contains_key(target));
        needs.sort_unstable();
        needs.reverse();
        needs
    }

    fn change(&self, name: usize, because: Vec<Because>, kind: Option<String>) -> Option<Change> {
        let source = self.model.source(name)?.clone();
        let solvable = &self.model.solvables[*self.chosen.get(&name)?];
        let to = solvable.pin()?.clone();
        let root = self.model.root_of(name).map(|at| &self.model.roots[at]);
        let from = root.and_then(|root| root.installed);
        let was = from.map(|at| &self.model.solvables[at]);
        let action = match was {
            None => Action::Install,
            Some(was) if was.pin() == Some(&to) => Action::Keep,
            Some(was) => match was.version().zip(solvable.version()) {
                Some((old, new)) if new > old => Action::Upgrade,
                Some((old, new)) if new < old => Action::Downgrade,
                Some(_) | None => Action::Switch,
            },
        };
        let own = Some(solvable.kind.clone()).filter(|kind| !kind.is_empty());
        Some(Change {
            source,
            name: root.map(|root| root.root.name.clone()),
            kind: own.or(kind),
            action,
            from: was.and_then(|was| was.pin().cloned()),
            to,
            because,
        })
    }

    /// For each name, who of the chosen needs it, and as which kind.
    fn reasons(&self) -> BTreeMap<usize, (BTreeSet<Because>, Option<String>)> {
        let mut reasons: BTreeMap<usize, (BTreeSet<Because>, Option<String>)> = BTreeMap::new();
        for &solvable in self.chosen.values() {
            let one = &self.model.solvables[solvable];
            let (Some(source), Some(pin)) = (self.model.source(one.name), one.pin()) else {
                continue;
            };
            for edge in &one.edges {
                if !counts(self.model, &self.best.view, solvable, *edge) {
                    continue;
                }
                let (wants, kind) = match edge.fact.map(|fact| &self.model.facts[fact]) {
                    Some(Fact::Needs { range, kind, .. }) => (range.clone(), kind.clone()),
                    Some(Fact::NeedsCrd { crd, .. }) => (self.crd(*crd), None),
                    Some(Fact::Brings { .. } | Fact::Impossible { .. }) | None => continue,
                };
                let (because, as_kind) = reasons.entry(self.provider(*edge)).or_default();
                *as_kind = as_kind.take().or(kind);
                because.insert(Because { source: source.clone(), pin: pin.clone(), wants });
            }
        }
        reasons
    }

    /// The package that an edge leads to, through a CRD or not.
    fn provider(&self, edge: Edge) -> usize {
        let target = self.model.target(edge);
        let face = self.chosen.get(&target).map(|&at| &self.model.solvables[at].face);
        if let Some(Face::Owner(owner)) = face { *owner } else { target }
    }

    fn crd(&self, name: usize) -> String {
        match &self.model.names[name].what {
            What::Crd(crd) => crd.clone(),
            _ => String::new(),
        }
    }
}
