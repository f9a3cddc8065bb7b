//! What is left of each name once the obvious is ruled out.
//!
//! A name that must be there can only be something whose needs can be met, and what everything it
//! can be needs must be there too. Following that until nothing changes decides most of a long
//! chain of updates at the cost of looking at each edge a few times.
//!
//! This is asked far more often than anything else, so it works on rows of bits: one for each
//! solvable of a name, in the order of their numbers, which follow each other.

use crate::model::Model;
use crate::oracle::{Mode, View, allowed, counts};
use std::collections::{BTreeSet, VecDeque};

const WORD: usize = u64::BITS as usize;

/// What does not change from one question to the next.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    /// Where the row of each name begins, and at the end, where the last one ends.
    rows: Vec<usize>,
    /// The row of each set.
    sets: Vec<Vec<u64>>,
    /// For each name, those of which something needs it.
    needed_by: Vec<Vec<usize>>,
}

impl Shape {
    pub(crate) fn of(model: &Model) -> Self {
        let mut rows = vec![0];
        for name in &model.names {
            rows.push(rows.last().copied().unwrap_or(0) + name.solvables.len().div_ceil(WORD));
        }
        let mut shape = Self { rows, sets: Vec::new(), needed_by: Vec::new() };
        for set in &model.sets {
            let mut row = vec![0; shape.size(set.name)];
            let first = first(model, set.name);
            for member in &set.members {
                put(&mut row, member - first);
            }
            shape.sets.push(row);
        }
        shape.needed_by = vec![Vec::new(); model.names.len()];
        for solvable in &model.solvables {
            for edge in &solvable.edges {
                let names = &mut shape.needed_by[model.target(*edge)];
                if names.last() != Some(&solvable.name) {
                    names.push(solvable.name);
                }
            }
        }
        shape
    }

    fn size(&self, name: usize) -> usize {
        self.rows[name + 1] - self.rows[name]
    }
}

/// The first solvable of a name.
fn first(model: &Model, name: usize) -> usize {
    model.names[name].solvables.first().copied().unwrap_or(0)
}

fn put(row: &mut [u64], at: usize) {
    row[at / WORD] |= 1 << (at % WORD);
}

fn take(row: &mut [u64], at: usize) {
    row[at / WORD] &= !(1 << (at % WORD));
}

fn meet(one: &[u64], two: &[u64]) -> bool {
    one.iter().zip(two).any(|(one, two)| one & two != 0)
}

/// For each name the solvables that no simple reason rules out; none if that leaves nothing of a
/// name that must be there.
pub(crate) fn narrow(model: &Model, view: &View) -> Option<Vec<Vec<usize>>> {
    let shape = &model.shape;
    let firsts: Vec<usize> = (0..model.names.len()).map(|name| first(model, name)).collect();
    let mut possible = vec![0; shape.rows.last().copied().unwrap_or(0)];
    for name in 0..model.names.len() {
        let row = &mut possible[shape.rows[name]..shape.rows[name + 1]];
        for one in allowed(model, view, name) {
            put(row, one - firsts[name]);
        }
    }
    let required = BTreeSet::new();
    let mut narrowing = Narrowing { model, view, firsts, possible, required };
    for (root, grant) in model.roots.iter().zip(&view.grants) {
        let there = grant.mode == Mode::Relaxed && root.installed.is_some();
        if grant.mode == Mode::Honoured || there {
            narrowing.required.insert(root.name);
        }
    }
    narrowing.run();
    if narrowing.required.iter().any(|&name| narrowing.is_empty(name)) {
        return None;
    }
    Some((0..model.names.len()).map(|name| narrowing.left(name).collect()).collect())
}

struct Narrowing<'a> {
    model: &'a Model,
    view: &'a View,
    firsts: Vec<usize>,
    possible: Vec<u64>,
    required: BTreeSet<usize>,
}

impl Narrowing<'_> {
    fn row(&self, name: usize) -> &[u64] {
        &self.possible[self.model.shape.rows[name]..self.model.shape.rows[name + 1]]
    }

    fn row_mut(&mut self, name: usize) -> &mut [u64] {
        &mut self.possible[self.model.shape.rows[name]..self.model.shape.rows[name + 1]]
    }

    fn is_empty(&self, name: usize) -> bool {
        self.row(name).iter().all(|word| *word == 0)
    }

    /// What is left of a name, best first.
    fn left(&self, name: usize) -> impl Iterator<Item = usize> {
        let first = self.firsts[name];
        self.row(name).iter().enumerate().flat_map(move |(at, &word)| {
            let bits = std::iter::successors(Some(word), |word| Some(word & word.wrapping_sub(1)));
            let bits = bits.take_while(|word| *word != 0);
            bits.map(move |word| first + at * WORD + word.trailing_zeros() as usize)
        })
    }

    fn run(&mut self) {
        let mut queue: VecDeque<usize> = self.required.iter().copied().collect();
        let mut queued = vec![false; self.model.names.len()];
        for name in &queue {
            queued[*name] = true;
        }
        while let Some(name) = queue.pop_front() {
            queued[name] = false;
            let lost = self.drop_unmet(name).then_some(name);
            let (mut touched, narrowed) = self.pass_on(name);
            if self.is_empty(name) || narrowed.iter().any(|name| self.is_empty(*name)) {
                // Nothing can be satisfied any more, so what else is ruled out does not matter.
                return;
            }
            for lost in narrowed.into_iter().chain(lost) {
                touched.extend(&self.model.shape.needed_by[lost]);
            }
            for next in touched {
                if !queued[next] && self.required.contains(&next) {
                    queued[next] = true;
                    queue.push_back(next);
                }
            }
        }
    }

    /// Rules out what needs something that nothing is left of.
    fn drop_unmet(&mut self, name: usize) -> bool {
        let is_unmet = |solvable: &usize| {
            self.model.solvables[*solvable].edges.iter().any(|edge| {
                let target = self.model.target(*edge);
                target != name
                    && !meet(&self.model.shape.sets[edge.set], self.row(target))
                    && counts(self.model, self.view, *solvable, *edge)
            })
        };
        let unmet: Vec<usize> = self.left(name).filter(is_unmet).collect();
        let first = self.firsts[name];
        for solvable in &unmet {
            take(self.row_mut(name), solvable - first);
        }
        !unmet.is_empty()
    }

    /// What everything a name can be needs must be there, and be what one of them accepts. Says
    /// which names that touched, and of which it took something away.
    fn pass_on(&mut self, name: usize) -> (Vec<usize>, Vec<usize>) {
        let left: Vec<usize> = self.left(name).collect();
        let (mut touched, mut narrowed) = (Vec::new(), Vec::new());
        let Some(first) = left.first() else { return (touched, narrowed) };
        let edges = self.model.solvables[*first].edges.iter();
        let mut targets: Vec<usize> = edges.map(|edge| self.model.target(*edge)).collect();
        targets.sort_unstable();
        targets.dedup();
        for target in targets {
            let Some(accepted) = self.accepted(&left, target) else { continue };
            let row = self.row_mut(target);
            let is_narrower = row.iter().zip(&accepted).any(|(one, two)| one & !two != 0);
            row.iter_mut().zip(&accepted).for_each(|(one, two)| *one &= two);
            if self.required.insert(target) || is_narrower {
                touched.push(target);
            }
            if is_narrower {
                narrowed.push(target);
            }
        }
        (touched, narrowed)
    }

    /// What solvables accept of a name, if all of them need it.
    fn accepted(&self, solvables: &[usize], target: usize) -> Option<Vec<u64>> {
        let mut accepted = vec![0; self.model.shape.size(target)];
        let mut both = accepted.clone();
        for &solvable in solvables {
            let (mut needs, all) = (false, u64::MAX);
            both.fill(all);
            for edge in &self.model.solvables[solvable].edges {
                if self.model.target(*edge) == target
                    && counts(self.model, self.view, solvable, *edge)
                {
                    needs = true;
                    let set = &self.model.shape.sets[edge.set];
                    both.iter_mut().zip(set).for_each(|(one, two)| *one &= two);
                }
            }
            if !needs {
                return None;
            }
            accepted.iter_mut().zip(&both).for_each(|(one, two)| *one |= two);
        }
        Some(accepted)
    }
}
