//! The best answer by trying everything: slow, simple, and written without a look at the solver.

use solver::{
    Contents, Known, Listing, Movement, Package, Pin, Problem, Range, Requirement, Root, Source,
    Want,
};
use std::collections::{BTreeMap, BTreeSet};

/// What is chosen of each package.
pub(crate) type Choice = BTreeMap<Source, Pin>;

/// Prices, the dearest first: packages that lack something, what they lack, wishes refused, moves,
/// descents.
pub(crate) type Price = [usize; 5];

pub(crate) struct World<'a> {
    pub(crate) problem: &'a Problem,
    pub(crate) known: &'a Known,
}

impl World<'_> {
    fn package(&self, source: &Source, pin: &Pin) -> &Package {
        match &self.known.contents[&(source.clone(), pin.clone())] {
            Contents::Package(package) => package,
            Contents::Unusable(reason) => panic!("{reason}"),
        }
    }

    fn root(&self, source: &Source) -> Option<&Root> {
        self.problem.roots.iter().find(|root| root.source == *source)
    }

    pub(crate) fn pins(&self, source: &Source) -> Vec<Pin> {
        match &self.known.listings[source] {
            Listing::Tags(tags) => tags.iter().map(|tag| Pin::parse(&tag.name)).collect(),
            Listing::Unavailable(reason) => panic!("{reason}"),
        }
    }

    /// Every way to choose at most one version of each package.
    pub(crate) fn choices(&self) -> Vec<Choice> {
        let mut choices = vec![Choice::new()];
        for source in self.known.listings.keys() {
            let mut more = choices.clone();
            for pin in self.pins(source) {
                more.extend(choices.iter().cloned().map(|mut choice| {
                    choice.insert(source.clone(), pin.clone());
                    choice
                }));
            }
            choices = more;
        }
        choices
    }

    /// The least that a choice costs, if it can be at all, over all ways to excuse installed
    /// packages from something they need or own.
    pub(crate) fn price(&self, choice: &Choice) -> Option<Price> {
        let [_, _, refused, moved, lowered] = self.wishes(choice)?;
        let stays = |root: &&Root| {
            root.installed.is_some() && choice.get(&root.source) == root.installed.as_ref()
        };
        let staying: BTreeSet<&Source> =
            self.problem.roots.iter().filter(stays).map(|root| &root.source).collect();
        let needs = self.excuses_for_needs(choice, &staying);
        let crds = self.excuses_for_crds(choice, &staying);
        let both = needs.iter().flat_map(|needs| crds.iter().map(move |crds| (needs, crds)));
        let prices = both.map(|(needs, crds)| {
            let lacking: BTreeSet<&Source> =
                needs.iter().map(|(source, _)| *source).chain(crds.iter().copied()).collect();
            [lacking.len(), needs.len() + crds.len(), refused, moved, lowered]
        });
        prices.min()
    }

    /// Every set of needs that, set aside, leaves everybody with what they need, in no circle.
    fn excuses_for_needs<'a>(
        &'a self,
        choice: &'a Choice,
        staying: &BTreeSet<&'a Source>,
    ) -> Vec<BTreeSet<(&'a Source, String)>> {
        // The same thing said twice is one need.
        let mut edges: BTreeMap<(&Source, String), &Source> = BTreeMap::new();
        let mut unmet = BTreeSet::new();
        for (source, pin) in choice {
            for requirement in &self.package(source, pin).requires {
                let Requirement::Package { source: target, range, .. } = requirement else {
                    panic!("{requirement:?}")
                };
                let need = (source, format!("{requirement:?}"));
                if choice.get(target).is_some_and(|there| range.accepts(there)) {
                    edges.insert(need, target);
                } else if staying.contains(source) {
                    unmet.insert(need);
                } else {
                    return Vec::new();
                }
            }
        }
        if !is_circular(&edges) {
            return vec![unmet];
        }
        let optional: Vec<(&Source, String)> =
            edges.keys().filter(|(source, _)| staying.contains(source)).cloned().collect();
        let subsets = (0..1_usize << optional.len()).map(|bits| {
            let chosen = optional.iter().enumerate().filter(|(at, _)| (bits >> at) & 1 == 1);
            chosen.map(|(_, need)| need.clone()).collect::<BTreeSet<_>>()
        });
        let enough = subsets.filter(|excused| {
            let mut left = edges.clone();
            left.retain(|need, _| !excused.contains(need));
            !is_circular(&left)
        });
        enough.map(|excused| excused.union(&unmet).cloned().collect()).collect()
    }

    /// Every way to let but one owner of each CRD lose it.
    fn excuses_for_crds<'a>(
        &'a self,
        choice: &'a Choice,
        staying: &BTreeSet<&'a Source>,
    ) -> Vec<Vec<&'a Source>> {
        let mut owners: BTreeMap<&String, Vec<&Source>> = BTreeMap::new();
        for (source, pin) in choice {
            for crd in &self.package(source, pin).crds {
                owners.entry(crd).or_default().push(source);
            }
        }
        let mut ways = vec![Vec::new()];
        for owners in owners.into_values() {
            let losers = owners.iter().map(|winner| {
                owners.iter().copied().filter(|one| one != winner).collect::<Vec<_>>()
            });
            let losers: Vec<Vec<&Source>> =
                losers.filter(|losers| losers.iter().all(|one| staying.contains(one))).collect();
            ways = ways
                .iter()
                .flat_map(|way| losers.iter().map(move |more| [way.as_slice(), more].concat()))
                .collect();
        }
        ways
    }

    /// What roots have to put up with; none if one is where it must not be.
    fn wishes(&self, choice: &Choice) -> Option<Price> {
        let mut price = [0; 5];
        for root in &self.problem.roots {
            let Some(at) = choice.get(&root.source) else {
                if root.installed.is_some() {
                    return None;
                }
                price[2] += 1;
                continue;
            };
            let base = base(root);
            if base == Some(at) {
                continue;
            }
            if self.lets(root, at) {
                if let Some(base) = base {
                    price[3] += 1;
                    price[4] += usize::from(at.version() < base.version());
                }
            } else if root.installed.as_ref() == Some(at) {
                price[2] += 1;
            } else {
                return None;
            }
        }
        Some(price)
    }

    fn lets(&self, root: &Root, at: &Pin) -> bool {
        if let Some(Want::Range(range)) = &root.want {
            return range.accepts(at);
        }
        let Some(base) = base(root) else { return true };
        if root.installed.as_ref() != Some(base) {
            return false;
        }
        let (to, from) = (at.version().unwrap(), base.version().unwrap());
        let far_enough = match root.movement {
            // Nobody names bytes here.
            Movement::Held | Movement::Named => false,
            Movement::Upgrades => to > from,
            Movement::Any => true,
        };
        let named = self.ranges_on(&root.source).iter().any(|range| range.accepts(at));
        far_enough && (!to.is_prerelease() || from.is_prerelease() || named)
    }

    /// Everything that any reachable version says about a package.
    fn ranges_on(&self, source: &Source) -> Vec<&Range> {
        let mut reached: BTreeSet<&Source> = BTreeSet::new();
        let mut queue: Vec<&Source> = self.problem.roots.iter().map(|root| &root.source).collect();
        let mut ranges = Vec::new();
        while let Some(one) = queue.pop() {
            if !reached.insert(one) {
                continue;
            }
            for pin in self.pins(one) {
                for requirement in &self.package(one, &pin).requires {
                    let Requirement::Package { source: target, range, .. } = requirement else {
                        panic!("{requirement:?}")
                    };
                    queue.push(target);
                    ranges.extend((target == source).then_some(range));
                }
            }
        }
        ranges
    }

    /// The versions of a package, best first, for whoever asks in the walk.
    pub(crate) fn preferences(&self, source: &Source) -> Vec<Pin> {
        let mut pins = self.pins(source);
        pins.sort();
        pins.reverse();
        let Some(base) = self.root(source).and_then(base) else { return pins };
        let below = |pin: &&Pin| pin.version() < base.version();
        let above = |pin: &&Pin| pin.version() > base.version();
        let mut sorted = vec![base.clone()];
        sorted.extend(pins.iter().rev().filter(above).cloned());
        sorted.extend(pins.iter().filter(below).cloned());
        sorted
    }

    /// Of equally priced choices in which nobody lacks anything, the one the walk finds.
    pub(crate) fn walk(&self, mut choices: Vec<Choice>) -> Choice {
        let mut roots: Vec<&Root> = self.problem.roots.iter().collect();
        roots.sort_by_key(|root| &root.source);
        let first = &choices[0];
        let there = |root: &&&Root| first.contains_key(&root.source);
        let mut queue: Vec<Source> =
            roots.iter().filter(there).map(|root| root.source.clone()).collect();
        let mut found = Choice::new();
        while !queue.is_empty() {
            let source = queue.remove(0);
            if found.contains_key(&source) {
                continue;
            }
            let wanted = self.preferences(&source).into_iter();
            let mut possible =
                wanted.filter(|pin| choices.iter().any(|choice| choice.get(&source) == Some(pin)));
            let pin = possible.next().unwrap();
            choices.retain(|choice| choice.get(&source) == Some(&pin));
            let requires = self.package(&source, &pin).requires.iter();
            let targets: BTreeSet<Source> = requires
                .map(|one| match one {
                    Requirement::Package { source, .. } => source.clone(),
                    Requirement::Crd(_) | Requirement::Invalid(_) => panic!("{one:?}"),
                })
                .collect();
            queue.extend(targets);
            found.insert(source, pin);
        }
        found
    }
}

/// Whether some packages need each other: take away whoever needs nobody that is left; who
/// remains is in a circle or above one.
fn is_circular(edges: &BTreeMap<(&Source, String), &Source>) -> bool {
    let mut left: BTreeSet<&Source> = edges.keys().map(|(source, _)| *source).collect();
    loop {
        let before = left.len();
        let still = left.clone();
        left.retain(|one| edges.iter().any(|((from, _), to)| from == one && still.contains(to)));
        if left.len() == before {
            return !left.is_empty();
        }
    }
}

pub(crate) fn base(root: &Root) -> Option<&Pin> {
    match &root.want {
        Some(Want::Pin(pin)) => Some(pin),
        Some(Want::Range(_)) => None,
        None => root.installed.as_ref(),
    }
}
