//! The best of all answers.
//!
//! Wishes are *soft*: each can be given up, at a price. In falling order of price: that an
//! installed package lacks nothing; each thing it needs or owns; what somebody asks for; that a
//! package stays where it is; that it is not lowered. The search gives up the cheapest wishes that let the rest be, and
//! among equally cheap ones the first in a fixed order, so there is one answer.
//!
//! It does so in two stages: first for wishes without which somebody lacks something, then, given
//! those, for the ones about moving.
//!
//! It finds them by *cores*: wishes that cannot all hold. A cheapest set that meets every core is
//! tried; if it does not suffice, that is another core. When it does, nothing cheaper could.
//!
//! What remains open is settled package by package, in the order of a walk along dependencies
//! from the roots: each takes the best version with which there is still an answer.

use crate::model::{Model, What};
use crate::narrow::narrow;
use crate::oracle::{Choice, Grant, Leash, Mode, Oracle, View, allowed, counts};
use std::collections::{BTreeSet, VecDeque};

/// A wish that can be given up, of a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Soft {
    /// What is installed lacks nothing; only if this is given up, the next can be.
    Whole(usize),
    /// What is installed has something it needs, or owns a CRD it brings: a fact.
    Has(usize, usize),
    /// The root gets what it asks for.
    Want(usize),
    /// The package is not moved.
    Keep(usize),
    /// The package is not lowered.
    NotLower(usize),
}

impl Soft {
    /// Whether giving it up means that somebody lacks something.
    fn is_firm(self) -> bool {
        !matches!(self, Self::Keep(_) | Self::NotLower(_))
    }

    /// Five kinds of price, the dearest first; prices are added and compared as texts are.
    fn price(self) -> Price {
        let kind = match self {
            Self::Whole(_) => 0,
            Self::Has(..) => 1,
            Self::Want(_) => 2,
            Self::Keep(_) => 3,
            Self::NotLower(_) => 4,
        };
        std::array::from_fn(|at| usize::from(at == kind))
    }
}

type Price = [usize; 5];

/// The best answer: what is given up, the view without it, and what was chosen, in the order of
/// the walk.
pub(crate) struct Best {
    pub(crate) given_up: Vec<Soft>,
    pub(crate) view: View,
    pub(crate) walk: Vec<(usize, usize)>,
}

pub(crate) fn best(oracle: &mut Oracle) -> Best {
    let (firm, light): (Vec<Soft>, Vec<Soft>) =
        softs(&oracle.model).into_iter().partition(|soft| soft.is_firm());
    let (refused, ..) = Stage { softs: &firm, held: &[] }.cheapest(oracle, Vec::new());
    let held: Vec<Soft> = firm.into_iter().filter(|soft| !refused.contains(soft)).collect();
    let impossible = impossible(&oracle.model, &held, &light);
    let (moved, view, choice) = Stage { softs: &light, held: &held }.cheapest(oracle, impossible);
    let walk = walk(oracle, &view, choice);
    Best { given_up: [refused, moved].concat(), view, walk }
}

/// Wishes of which some are to be given up, while others hold in any case.
struct Stage<'a> {
    softs: &'a [Soft],
    held: &'a [Soft],
}

impl Stage<'_> {
    /// The cheapest wishes without which the others hold, and how; some cores may be known.
    fn cheapest(
        &self,
        oracle: &mut Oracle,
        mut cores: Vec<Vec<usize>>,
    ) -> (Vec<Soft>, View, Choice) {
        loop {
            let given_up = cheapest(self.softs, &cores);
            let kept = (0..self.softs.len()).filter(|at| given_up.binary_search(at).is_err());
            let kept: Vec<usize> = kept.collect();
            let view = self.view(oracle, &kept);
            if let Some(choice) = oracle.satisfy(&view) {
                let given_up = given_up.into_iter().map(|at| self.softs[at]).collect();
                return (given_up, view, choice);
            }
            cores.extend(self.disjoint_cores(oracle, kept));
        }
    }

    /// Cores that share no wish, found one after the other.
    fn disjoint_cores(&self, oracle: &mut Oracle, mut kept: Vec<usize>) -> Vec<Vec<usize>> {
        let mut cores = Vec::new();
        loop {
            let core = minimal(&kept, &mut |some| self.fails(oracle, some));
            kept.retain(|at| !core.contains(at));
            cores.push(core);
            if !self.fails(oracle, &kept) {
                return cores;
            }
        }
    }

    fn view(&self, oracle: &Oracle, kept: &[usize]) -> View {
        let kept = kept.iter().map(|&at| self.softs[at]);
        view(&oracle.model, self.held.iter().copied().chain(kept))
    }

    fn fails(&self, oracle: &mut Oracle, kept: &[usize]) -> bool {
        let view = self.view(oracle, kept);
        oracle.satisfy(&view).is_none()
    }
}

/// Light wishes that cannot hold whatever else is given up, each a core of its own.
///
/// They are found by narrowing down, for every name that must be there, what it can be: cheaper
/// by far than asking the oracle, which matters when one update moves everything below it.
fn impossible(model: &Model, held: &[Soft], light: &[Soft]) -> Vec<Vec<usize>> {
    let Some(possible) = narrow(model, &view(model, held.iter().copied())) else {
        return Vec::new();
    };
    let holds = |soft: &Soft| match *soft {
        Soft::Keep(at) => {
            let (root, installed) = (&model.roots[at], model.roots[at].installed);
            let left = &possible[root.name];
            left.iter().any(|one| Some(*one) == root.base)
                || left.iter().any(|one| Some(*one) == installed && !root.allowed.contains(one))
        }
        Soft::NotLower(at) => {
            let root = &model.roots[at];
            possible[root.name].iter().any(|one| !root.lower.contains(one))
        }
        Soft::Whole(_) | Soft::Has(..) | Soft::Want(_) => true,
    };
    let lost = light.iter().enumerate().filter(|(_, soft)| !holds(soft));
    lost.map(|(at, _)| vec![at]).collect()
}

/// All wishes; of equal ones, those to give up first come first.
pub(crate) fn softs(model: &Model) -> Vec<Soft> {
    let (unmet, depths) = (unmet(model), depths(model));
    let mut softs: Vec<(bool, usize, usize, Soft)> = Vec::new();
    for (at, root) in model.roots.iter().enumerate() {
        // What is needed moves rather than what needs it.
        let order = depths.len() - depths[at];
        let facts = &root.facts;
        if !facts.is_empty() {
            let lacks = facts.iter().any(|&fact| unmet.contains(&(at, fact)));
            softs.push((!lacks, 0, at, Soft::Whole(at)));
        }
        for &fact in facts {
            softs.push((!unmet.contains(&(at, fact)), 0, at, Soft::Has(at, fact)));
        }
        if !root.is_in_place() {
            // Of two that cannot both be, the first by name gets its wish.
            softs.push((true, order, model.roots.len() - at, Soft::Want(at)));
        }
        if root.base.is_some() && root.allowed.len() > 1 {
            softs.push((true, order, at, Soft::Keep(at)));
        }
        if !root.lower.is_empty() {
            softs.push((true, order, at, Soft::NotLower(at)));
        }
    }
    softs.sort_by_key(|(met, order, at, _)| (*met, *order, *at));
    softs.into_iter().map(|(.., soft)| soft).collect()
}

/// What installed packages lack as things are: it gives way to what they have.
fn unmet(model: &Model) -> BTreeSet<(usize, usize)> {
    let installed = |name: usize| model.root_of(name).and_then(|root| model.roots[root].installed);
    let mut unmet = BTreeSet::new();
    for (at, root) in model.roots.iter().enumerate() {
        let Some(solvable) = root.installed else { continue };
        for edge in &model.solvables[solvable].edges {
            let set = &model.sets[edge.set];
            let there = installed(set.name).is_some_and(|there| set.members.contains(&there));
            if let (Some(fact), true, false) = (edge.fact, model.source(set.name).is_some(), there)
            {
                unmet.insert((at, fact));
            }
        }
    }
    unmet
}

/// For each root, how many steps of installed packages needing installed packages lead to it.
fn depths(model: &Model) -> Vec<usize> {
    let mut depths = vec![0; model.roots.len()];
    let needs = |root: usize| {
        let solvables = model.roots[root].installed.into_iter();
        let edges = solvables.flat_map(|solvable| &model.solvables[solvable].edges);
        edges.filter_map(|edge| model.root_of(model.target(*edge)))
    };
    // Paths are no longer than there are roots, except in circles, which end there, too.
    let mut queue: VecDeque<usize> = (0..model.roots.len()).collect();
    while let Some(at) = queue.pop_front() {
        let depth = (depths[at] + 1).min(model.roots.len());
        for target in needs(at) {
            if depths[target] < depth {
                depths[target] = depth;
                queue.push_back(target);
            }
        }
    }
    depths
}

/// The view in which these wishes hold and all others are given up.
pub(crate) fn view(model: &Model, held: impl Iterator<Item = Soft>) -> View {
    let grants = model.roots.iter().map(|root| Grant {
        mode: if root.is_in_place() { Mode::Honoured } else { Mode::Relaxed },
        leash: Leash::Free,
        excused: root.facts.clone(),
    });
    let mut grants: Vec<Grant> = grants.collect();
    for soft in held {
        match soft {
            Soft::Whole(at) => grants[at].excused.clear(),
            Soft::Has(at, fact) => grants[at].excused.retain(|one| *one != fact),
            Soft::Want(at) => grants[at].mode = Mode::Honoured,
            Soft::Keep(at) => grants[at].leash = Leash::Kept,
            Soft::NotLower(at) if grants[at].leash == Leash::Free => {
                grants[at].leash = Leash::NotLower;
            }
            Soft::NotLower(_) => {}
        }
    }
    View { grants, ignored: Vec::new(), fixed: Vec::new() }
}

/// A smallest part of some items that still fails; without any of its items it would not.
///
/// Halves are tried before single items, so a small part of many is found in few steps.
pub(crate) fn minimal(items: &[usize], fails: &mut impl FnMut(&[usize]) -> bool) -> Vec<usize> {
    fn part(
        background: &[usize],
        items: &[usize],
        changed: bool,
        fails: &mut impl FnMut(&[usize]) -> bool,
    ) -> Vec<usize> {
        if changed && fails(background) {
            return Vec::new();
        }
        if items.len() == 1 {
            return items.to_vec();
        }
        let (left, right) = items.split_at(items.len() / 2);
        let with_left = [background, left].concat();
        let of_right = part(&with_left, right, !left.is_empty(), fails);
        let with_right = [background, &of_right].concat();
        let mut found = part(&with_right, left, !of_right.is_empty(), fails);
        found.extend(of_right);
        found
    }
    if items.is_empty() || fails(&[]) {
        return Vec::new();
    }
    let mut found = part(&[], items, false, fails);
    found.sort_unstable();
    found
}

/// The cheapest wishes of which every core has one; of equally cheap sets the first.
fn cheapest(softs: &[Soft], cores: &[Vec<usize>]) -> Vec<usize> {
    type Priced = (Price, Vec<usize>);
    fn add(one: Price, two: Price) -> Price {
        std::array::from_fn(|at| one[at] + two[at])
    }
    fn descend(softs: &[Soft], cores: &[Vec<usize>], so_far: &Priced, best: &mut Option<Priced>) {
        if best.as_ref().is_some_and(|best| best.0 < so_far.0) {
            return;
        }
        let open = cores.iter().filter(|core| !core.iter().any(|at| so_far.1.contains(at)));
        let Some(core) = open.min_by_key(|core| core.len()) else {
            if best.as_ref().is_none_or(|best| so_far < best) {
                *best = Some(so_far.clone());
            }
            return;
        };
        for &at in core {
            let mut chosen = so_far.1.clone();
            chosen.push(at);
            chosen.sort_unstable();
            let next = (add(so_far.0, softs[at].price()), chosen);
            descend(softs, cores, &next, best);
        }
    }
    // A core of one leaves no choice, and there may be hundreds.
    let single = cores.iter().filter(|core| core.len() == 1).map(|core| core[0]);
    let forced: BTreeSet<usize> = single.collect();
    let open: Vec<Vec<usize>> =
        cores.iter().filter(|core| !core.iter().any(|at| forced.contains(at))).cloned().collect();
    let price = forced.iter().fold([0; 5], |price, &at| add(price, softs[at].price()));
    let mut best = None;
    descend(softs, &open, &(price, forced.into_iter().collect()), &mut best);
    best.map(|(_, chosen)| chosen).unwrap_or_default()
}

/// Settles name after name, starting from some answer, and says what was reached.
fn walk(oracle: &mut Oracle, view: &View, mut choice: Choice) -> Vec<(usize, usize)> {
    let mut view = view.clone();
    view.fixed = vec![None; oracle.model.names.len()];
    let roots = oracle.model.roots.iter().zip(&view.grants);
    let required =
        roots.filter(|(root, grant)| grant.mode == Mode::Honoured || root.installed.is_some());
    let mut queue: VecDeque<usize> = required.map(|(root, _)| root.name).collect();
    let mut reached = Vec::new();
    while let Some(name) = queue.pop_front() {
        if view.fixed[name].is_some() {
            continue;
        }
        let Some(solvable) = settle(oracle, &mut view, &mut choice, name) else { continue };
        view.fixed[name] = Some(solvable);
        reached.push((name, solvable));
        let edges = oracle.model.solvables[solvable].edges.iter();
        let edges = edges.filter(|edge| counts(&oracle.model, &view, solvable, **edge));
        let mut targets: Vec<usize> = edges.map(|edge| oracle.model.target(*edge)).collect();
        targets.sort_unstable();
        let circle = |at: &usize| matches!(oracle.model.names[*at].what, What::Circle);
        queue.extend(targets.into_iter().filter(|target| !circle(target)));
    }
    reached
}

/// The best solvable of a name with which there is still an answer.
fn settle(oracle: &mut Oracle, view: &mut View, choice: &mut Choice, name: usize) -> Option<usize> {
    for solvable in allowed(&oracle.model, view, name) {
        if choice[name] == Some(solvable) {
            return Some(solvable);
        }
        if !fits(&oracle.model, view, name, solvable) {
            continue;
        }
        view.fixed[name] = Some(solvable);
        if let Some(better) = oracle.satisfy(view) {
            *choice = better;
            return Some(solvable);
        }
        view.fixed[name] = None;
    }
    None
}

/// Whether a solvable agrees with everything settled so far; cheaper than asking the oracle.
fn fits(model: &Model, view: &View, name: usize, solvable: usize) -> bool {
    let accepts = |from: usize, name: usize, solvable: usize| {
        let edges = model.solvables[from].edges.iter();
        let mut edges = edges.filter(|edge| counts(model, view, from, **edge));
        edges.all(|edge| {
            let set = &model.sets[edge.set];
            set.name != name || set.members.contains(&solvable)
        })
    };
    let settled = view.fixed.iter().enumerate().filter_map(|(at, one)| Some((at, (*one)?)));
    let mut settled = settled.filter(|(at, _)| *at != name);
    settled.all(|(at, one)| accepts(one, name, solvable) && accepts(solvable, at, one))
}
