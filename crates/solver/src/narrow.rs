//! What is left of each name once the obvious is ruled out.
//!
//! A name that must be there can only be something whose needs can be met, and what everything it
//! can be needs must be there too. Following that until nothing changes decides most of a long
//! chain of updates at the cost of looking at each edge a few times.

use crate::model::Model;
use crate::oracle::{Mode, View, allowed, counts};
use std::collections::{BTreeSet, VecDeque};

/// For each name the solvables that no simple reason rules out; none if that leaves nothing of a
/// name that must be there.
pub(crate) fn narrow(model: &Model, view: &View) -> Option<Vec<Vec<usize>>> {
    let possible = (0..model.names.len()).map(|name| allowed(model, view, name)).collect();
    let mut narrowing = Narrowing { model, view, possible, required: BTreeSet::new() };
    for (root, grant) in model.roots.iter().zip(&view.grants) {
        let there = grant.mode == Mode::Relaxed && root.installed.is_some();
        if grant.mode == Mode::Honoured || there {
            narrowing.required.insert(root.name);
        }
    }
    narrowing.run();
    let Narrowing { possible, required, .. } = narrowing;
    required.iter().all(|&name| !possible[name].is_empty()).then_some(possible)
}

struct Narrowing<'a> {
    model: &'a Model,
    view: &'a View,
    possible: Vec<Vec<usize>>,
    required: BTreeSet<usize>,
}

impl Narrowing<'_> {
    fn run(&mut self) {
        let mut needed_by: Vec<Vec<usize>> = vec![Vec::new(); self.model.names.len()];
        for solvable in &self.model.solvables {
            for edge in &solvable.edges {
                let names = &mut needed_by[self.model.target(*edge)];
                if names.last() != Some(&solvable.name) {
                    names.push(solvable.name);
                }
            }
        }
        let mut queue: VecDeque<usize> = self.required.iter().copied().collect();
        let mut queued: BTreeSet<usize> = self.required.clone();
        while let Some(name) = queue.pop_front() {
            queued.remove(&name);
            let lost = self.drop_unmet(name).then_some(name);
            let (mut touched, narrowed) = self.pass_on(name);
            let emptied = |name: &usize| self.possible[*name].is_empty();
            if emptied(&name) || narrowed.iter().any(emptied) {
                // Nothing can be satisfied any more, so what else is ruled out does not matter.
                return;
            }
            for lost in narrowed.into_iter().chain(lost) {
                touched.extend(&needed_by[lost]);
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
        let mut accepted: Vec<Accepted> = Vec::new();
        for (at, &solvable) in self.possible[name].iter().enumerate() {
            for (target, members) in self.needs(solvable) {
                match accepted.iter_mut().find(|one| one.target == target) {
                    Some(one) if one.by == at => {
                        let new = members.into_iter().filter(|it| !one.members.contains(it));
                        let new: Vec<usize> = new.collect();
                        one.members.extend(new);
                        one.by += 1;
                    }
                    None if at == 0 => accepted.push(Accepted { target, members, by: 1 }),
                    // Somebody before does not need it.
                    Some(_) | None => {}
                }
            }
        }
        let all = self.possible[name].len();
        accepted.retain(|one| one.by == all && all > 0);
        let (mut touched, mut narrowed) = (Vec::new(), Vec::new());
        for Accepted { target, members, .. } in accepted {
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

    /// What a solvable accepts of each name it needs.
    fn needs(&self, solvable: usize) -> Vec<(usize, Vec<usize>)> {
        let mut needs: Vec<(usize, Vec<usize>)> = Vec::new();
        for edge in &self.model.solvables[solvable].edges {
            if !counts(self.model, self.view, solvable, *edge) {
                continue;
            }
            let set = &self.model.sets[edge.set];
            match needs.iter_mut().find(|(target, _)| *target == set.name) {
                Some((_, members)) => members.retain(|one| set.members.contains(one)),
                None => needs.push((set.name, set.members.clone())),
            }
        }
        needs
    }
}

/// What the first few solvables of a name accept of another, if all of them need it.
struct Accepted {
    target: usize,
    members: Vec<usize>,
    /// How many that is.
    by: usize,
}
