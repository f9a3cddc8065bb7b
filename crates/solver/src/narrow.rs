//! What is left of each name once the obvious is ruled out.
//!
//! A name that must be there can only be something whose needs can be met, and what everything it
//! can be needs must be there too. Following that until nothing changes decides most of a long
//! chain of updates at the cost of looking at each edge a few times.

use crate::model::Model;
use crate::oracle::{Mode, View, allowed, counts};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// For each name the solvables that no simple reason rules out.
pub(crate) fn narrow(model: &Model, view: &View) -> Vec<Vec<usize>> {
    let possible = (0..model.names.len()).map(|name| allowed(model, view, name)).collect();
    let mut narrowing = Narrowing { model, view, possible, required: BTreeSet::new() };
    for (root, grant) in model.roots.iter().zip(&view.grants) {
        let there = grant.mode == Mode::Relaxed && root.installed.is_some();
        if grant.mode == Mode::Honoured || there {
            narrowing.required.insert(root.name);
        }
    }
    narrowing.run();
    narrowing.possible
}

struct Narrowing<'a> {
    model: &'a Model,
    view: &'a View,
    possible: Vec<Vec<usize>>,
    required: BTreeSet<usize>,
}

impl Narrowing<'_> {
    fn run(&mut self) {
        let mut needed_by: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for solvable in &self.model.solvables {
            for edge in &solvable.edges {
                needed_by.entry(self.model.target(*edge)).or_default().insert(solvable.name);
            }
        }
        let mut queue: VecDeque<usize> = self.required.iter().copied().collect();
        let mut queued: BTreeSet<usize> = self.required.clone();
        while let Some(name) = queue.pop_front() {
            queued.remove(&name);
            let lost = self.drop_unmet(name).then_some(name);
            let (mut touched, narrowed) = self.pass_on(name);
            for lost in narrowed.into_iter().chain(lost) {
                touched.extend(needed_by.get(&lost).into_iter().flatten());
            }
            for next in touched {
                if self.required.contains(&next) && queued.insert(next) {
                    queue.push_back(next);
                }
            }
        }
    }

    /// Rules out what needs something that nothing is left of.
    fn drop_unmet(&mut self, name: usize) -> bool {
        let before = self.possible[name].len();
        let mut left = std::mem::take(&mut self.possible[name]);
        left.retain(|&solvable| {
            let mut edges = self.model.solvables[solvable].edges.iter();
            edges.all(|edge| {
                let set = &self.model.sets[edge.set];
                !counts(self.model, self.view, solvable, *edge)
                    || set.name == name
                    || set.members.iter().any(|one| self.possible[set.name].contains(one))
            })
        });
        self.possible[name] = left;
        self.possible[name].len() < before
    }

    /// What everything a name can be needs must be there, and be what one of them accepts. Says
    /// which names that touched, and of which it took something away.
    fn pass_on(&mut self, name: usize) -> (Vec<usize>, Vec<usize>) {
        let mut accepted: Option<BTreeMap<usize, BTreeSet<usize>>> = None;
        for &solvable in &self.possible[name] {
            let mut here: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
            for edge in &self.model.solvables[solvable].edges {
                if !counts(self.model, self.view, solvable, *edge) {
                    continue;
                }
                let set = &self.model.sets[edge.set];
                let members = set.members.iter().copied().collect();
                here.entry(set.name)
                    .and_modify(|old| old.retain(|one| set.members.contains(one)))
                    .or_insert(members);
            }
            accepted = Some(match accepted {
                None => here,
                Some(mut all) => {
                    all.retain(|target, _| here.contains_key(target));
                    for (target, members) in &mut all {
                        members.extend(here.get(target).into_iter().flatten());
                    }
                    all
                }
            });
        }
        let (mut touched, mut narrowed) = (Vec::new(), Vec::new());
        for (target, members) in accepted.into_iter().flatten() {
            let before = self.possible[target].len();
            self.possible[target].retain(|one| members.contains(one));
            let is_narrower = self.possible[target].len() < before;
            if self.required.insert(target) || is_narrower {
                touched.push(target);
            }
            if is_narrower {
                narrowed.push(target);
            }
        }
        (touched, narrowed)
    }
}
