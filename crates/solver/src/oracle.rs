//! Whether something can be: the one question asked of `resolvo`.
//!
//! A [`View`] is the model with some of it taken away: roots that are left as they are, wishes
//! that are given up, facts that are thought away. The oracle says whether a view can be
//! satisfied, and by what. Circles are not clauses, so they are forbidden as they are met: an
//! answer with a circle adds a name to the model that keeps it from closing, and is asked again.

use crate::model::{Edge, Face, Fact, Knowledge, Model, Name, Set, Solvable, What};
use crate::narrow::{Shape, narrow};
use resolvo::{
    Candidates, Condition, ConditionId, ConditionalRequirement, DenseIndex, Dependencies,
    DependencyProvider, HintDependenciesAvailable, Interner, KnownDependencies, NameId, Problem,
    Requirement, SolvableId, Solver, SolverCache, StringId, VersionSetId, VersionSetUnionId,
};
use std::collections::VecDeque;
use std::fmt::Display;

/// What a root is granted. Each grants more than the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It gets what it wants.
    Honoured,
    /// It may also stay as it is, or stay away.
    Relaxed,
    /// It might as well not be there.
    Ignored,
}

/// How far a root may be moved that gets what it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leash {
    Kept,
    NotLower,
    Free,
}

/// The model with some of it taken away. Taking more away never makes a view harder to satisfy.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// One per root.
    pub(crate) grants: Vec<Grant>,
    /// One per fact: whether it is thought away. Empty: none is.
    pub(crate) ignored: Vec<bool>,
    /// Solvables decided already, by name.
    pub(crate) fixed: Vec<Option<usize>>,
}

/// How a view treats a root.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) mode: Mode,
    pub(crate) leash: Leash,
    /// What is true of the package and need not be while it is as installed.
    pub(crate) excused: Vec<usize>,
}

/// A chosen solvable for each name that has one.
pub(crate) type Choice = Vec<Option<usize>>;

/// How many answers are kept.
const KEPT: usize = 4;

pub(crate) struct Oracle {
    pub(crate) model: Model,
    /// The last answers, the newest first: one question is often much like the next.
    kept: VecDeque<Choice>,
}

impl Oracle {
    pub(crate) fn new(model: Model) -> Self {
        Self { model, kept: VecDeque::new() }
    }

    /// A choice that satisfies a view, without circles; none if there is none.
    ///
    /// Any will do: whoever wants the best of them asks again with more decided. So an answer
    /// to an earlier question is as good as a new one, if it fits.
    pub(crate) fn satisfy(&mut self, view: &View) -> Option<Choice> {
        if let Some(choice) = self.kept.iter().find_map(|kept| self.again(view, kept)) {
            return Some(choice);
        }
        loop {
            let choice = self.satisfy_with_circles(view)?;
            if let Some(circle) = self.circle(view, &choice) {
                self.forbid(&circle);
                continue;
            }
            self.kept.truncate(KEPT - 1);
            self.kept.push_front(choice.clone());
            return Some(choice);
        }
    }

    /// What an earlier answer has to say to this view, if it satisfies it, too.
    fn again(&self, view: &View, kept: &Choice) -> Option<Choice> {
        let choice = self.follow(view, |name, set| {
            let one = kept.get(name).copied().flatten()?;
            (set.accepts(one) && allowed(&self.model, view, name).contains(&one)).then_some(one)
        })?;
        self.circle(view, &choice).is_none().then_some(choice)
    }

    /// Follows what is needed from the roots on, taking for each name what `pick` says when it
    /// is first met; none if that does not suit everything that needs it.
    fn follow(&self, view: &View, pick: impl Fn(usize, &Set) -> Option<usize>) -> Option<Choice> {
        let mut choice = vec![None; self.model.names.len()];
        let mut queue = Vec::new();
        for name in self.required(view) {
            let one = pick(name, &self.model.sets[self.model.names[name].all])?;
            choice[name] = Some(one);
            queue.push(one);
        }
        while let Some(solvable) = queue.pop() {
            let edges = self.model.solvables[solvable].edges.iter();
            for edge in edges.filter(|edge| counts(&self.model, view, solvable, **edge)) {
                let set = &self.model.sets[edge.set];
                match choice[set.name] {
                    Some(one) if set.accepts(one) => {}
                    Some(_) => return None,
                    None => {
                        let one = pick(set.name, set)?;
                        choice[set.name] = Some(one);
                        queue.push(one);
                    }
                }
            }
        }
        Some(choice)
    }

    /// The names that must be there because of roots.
    fn required(&self, view: &View) -> impl Iterator<Item = usize> {
        let roots = self.model.roots.iter().zip(&view.grants);
        let required = roots.filter(|(root, grant)| {
            let there = grant.mode == Mode::Relaxed && root.installed.is_some();
            grant.mode == Mode::Honoured || there
        });
        required.map(|(root, _)| root.name)
    }

    fn satisfy_with_circles(&self, view: &View) -> Option<Choice> {
        // Most of what cannot be is ruled out at little cost, and often that settles it.
        let possible = narrow(&self.model, view)?;
        // Of what is left the best is mostly right.
        let best =
            |name: usize, set: &Set| possible[name].iter().copied().find(|&one| set.accepts(one));
        if let Some(choice) = self.follow(view, best) {
            return Some(choice);
        }
        let rooms = Rooms { model: &self.model, view, possible };
        let sets = self.required(view).map(|name| requirement(self.model.names[name].all));
        let problem = Problem::new().requirements(sets.collect());
        let chosen = Solver::new(rooms).solve(problem).ok()?;
        let mut choice = vec![None; self.model.names.len()];
        for solvable in chosen {
            let solvable = solvable.to_index();
            choice[self.model.solvables[solvable].name] = Some(solvable);
        }
        Some(choice)
    }

    /// A circle among what is chosen, as solvables with the edge each closes it by.
    fn circle(&self, view: &View, choice: &Choice) -> Option<Vec<(usize, Edge)>> {
        // White, grey, black: a grey solvable met again closes a circle.
        let mut colours = vec![0_u8; self.model.names.len()];
        for start in 0..choice.len() {
            let mut path: Vec<(usize, usize)> = Vec::new();
            let Some(solvable) = choice[start] else { continue };
            if colours[start] == 0 {
                colours[start] = 1;
                path.push((solvable, 0));
            }
            while let Some((solvable, next)) = path.last_mut() {
                let (here, at) = (*solvable, *next);
                *next += 1;
                let Some(&edge) = self.model.solvables[here].edges.get(at) else {
                    colours[self.model.solvables[here].name] = 2;
                    path.pop();
                    continue;
                };
                let target = self.model.target(edge);
                if !self.is_dependency(view, here, edge) {
                    continue;
                }
                let Some(reached) = choice[target] else { continue };
                if colours[target] == 1 {
                    let from = path.iter().position(|(one, _)| *one == reached).unwrap_or(0);
                    let edge = |&(one, next): &(usize, usize)| {
                        (one, self.model.solvables[one].edges[next - 1])
                    };
                    return Some(path[from..].iter().map(edge).collect());
                }
                if colours[target] == 0 {
                    colours[target] = 1;
                    path.push((reached, 0));
                }
            }
        }
        None
    }

    /// Whether an edge counts in this view and means that something must be there *before*:
    /// bringing a CRD is no dependency on it.
    fn is_dependency(&self, view: &View, solvable: usize, edge: Edge) -> bool {
        let brings = is_ownership(&self.model, edge);
        let circle = matches!(self.model.names[self.model.target(edge)].what, What::Circle);
        !brings && !circle && counts(&self.model, view, solvable, edge)
    }

    /// Adds the name of a circle: each member needs one of the *others* to stay away, and only one
    /// of those can be chosen, so they cannot all be there.
    fn forbid(&mut self, circle: &[(usize, Edge)]) {
        let name = self.model.names.len();
        let first = self.model.solvables.len();
        let slots: Vec<usize> = (first..first + circle.len()).collect();
        for _ in circle {
            let (edges, kind) = (Vec::new(), String::new());
            let (face, knowledge) = (Face::Absent, Knowledge::Whole);
            self.model.solvables.push(Solvable { name, face, knowledge, edges, kind });
        }
        for ((member, edge), own) in circle.iter().zip(&slots) {
            let others = slots.iter().copied().filter(|slot| slot != own).collect();
            self.model.sets.push(Set { name, members: others });
            let set = self.model.sets.len() - 1;
            self.model.solvables[*member].edges.push(Edge { set, fact: edge.fact });
        }
        self.model.sets.push(Set { name, members: slots.clone() });
        let all = self.model.sets.len() - 1;
        let (root, unavailable, advice, other_tags) = (None, None, None, Vec::new());
        let (what, solvables) = (What::Circle, slots);
        self.model.names.push(Name { what, solvables, all, root, unavailable, advice, other_tags });
        self.model.shape = Shape::of(&self.model);
    }
}

/// Whether an edge of a solvable counts in a view.
pub(crate) fn counts(model: &Model, view: &View, solvable: usize, edge: Edge) -> bool {
    if edge.fact.is_some_and(|fact| view.ignored.get(fact) == Some(&true)) {
        return false;
    }
    let Some(root) = model.root_of(model.solvables[solvable].name) else { return true };
    let excused = |fact| view.grants[root].excused.contains(&fact);
    model.roots[root].installed != Some(solvable) || !edge.fact.is_some_and(excused)
}

/// Whether an edge says that a package brings a CRD, which is no dependency on it.
pub(crate) fn is_ownership(model: &Model, edge: Edge) -> bool {
    edge.fact.is_some_and(|fact| matches!(model.facts[fact], Fact::Brings { .. }))
}

/// The solvables of a name that a view lets in, best first.
pub(crate) fn allowed(model: &Model, view: &View, name: usize) -> Vec<usize> {
    let all = &model.names[name].solvables;
    if let Some(fixed) = view.fixed.get(name).copied().flatten() {
        return vec![fixed];
    }
    let Some(at) = model.root_of(name) else { return all.clone() };
    let (root, grant) = (&model.roots[at], &view.grants[at]);
    if grant.mode == Mode::Ignored {
        return all.clone();
    }
    let mut allowed: Vec<usize> = match (grant.leash, root.base) {
        (Leash::Kept, Some(base)) => vec![base],
        (Leash::NotLower, _) => {
            root.allowed.iter().copied().filter(|one| !root.lower.contains(one)).collect()
        }
        (Leash::Kept | Leash::Free, _) => root.allowed.clone(),
    };
    if grant.mode == Mode::Relaxed {
        allowed.extend(root.installed.filter(|installed| !allowed.contains(installed)));
        allowed.sort_unstable();
    }
    allowed
}

/// What resolvo sees of a view.
struct Rooms<'a> {
    model: &'a Model,
    view: &'a View,
    possible: Vec<Vec<usize>>,
}

fn requirement(set: usize) -> ConditionalRequirement {
    let requirement = Requirement::Single(VersionSetId::from_index(set));
    ConditionalRequirement { condition: None, requirement }
}

impl Interner for Rooms<'_> {
    type NameId = NameId;
    type SolvableId = SolvableId;

    // Explanations are made elsewhere, so nothing here is ever shown.
    fn display_solvable(&self, solvable: SolvableId) -> impl Display + '_ {
        solvable.to_index()
    }

    fn display_name(&self, name: NameId) -> impl Display + '_ {
        name.to_index()
    }

    fn display_version_set(&self, set: VersionSetId) -> impl Display + '_ {
        set.to_index()
    }

    fn display_string(&self, string: StringId) -> impl Display + '_ {
        string.to_index()
    }

    fn version_set_name(&self, set: VersionSetId) -> NameId {
        NameId::from_index(self.model.sets[set.to_index()].name)
    }

    fn solvable_name(&self, solvable: SolvableId) -> NameId {
        NameId::from_index(self.model.solvables[solvable.to_index()].name)
    }

    fn version_sets_in_union(&self, _: VersionSetUnionId) -> impl Iterator<Item = VersionSetId> {
        std::iter::empty()
    }

    fn resolve_condition(&self, _: ConditionId) -> Condition {
        Condition::Requirement(VersionSetId::from_index(0))
    }
}

impl DependencyProvider for Rooms<'_> {
    async fn filter_candidates(
        &self,
        candidates: &[SolvableId],
        set: VersionSetId,
        inverse: bool,
    ) -> Vec<SolvableId> {
        let set = &self.model.sets[set.to_index()];
        let is_in = |solvable: &SolvableId| set.accepts(solvable.to_index());
        candidates.iter().copied().filter(|one| is_in(one) != inverse).collect()
    }

    async fn get_candidates(&self, name: NameId) -> Option<Candidates> {
        let possible = self.possible[name.to_index()].iter();
        Some(Candidates {
            candidates: possible.map(|&at| SolvableId::from_index(at)).collect(),
            hint_dependencies_available: HintDependenciesAvailable::None,
            ..Candidates::default()
        })
    }

    async fn sort_candidates(&self, _: &SolverCache<Self>, solvables: &mut [SolvableId]) {
        // Solvables of a name are numbered best first.
        solvables.sort();
    }

    async fn get_dependencies(&self, solvable: SolvableId) -> Dependencies {
        let at = solvable.to_index();
        let edges = self.model.solvables[at].edges.iter();
        let edges = edges.filter(|edge| counts(self.model, self.view, at, **edge));
        let requirements = edges.map(|edge| requirement(edge.set)).collect();
        Dependencies::Known(KnownDependencies { requirements, constrains: Vec::new() })
    }
}
