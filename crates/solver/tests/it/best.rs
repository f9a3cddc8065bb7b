//! The solver against brute force, on small random worlds.

use crate::brute::{Choice, World, base};
use crate::world::{settle, show};
use proptest::prelude::*;
use solver::{
    Action, Contents, Dependencies, Known, Listing, Movement, Package, Pin, Problem, Range,
    Requirement, Root, Settlement, Source, Want,
};
use std::collections::{BTreeMap, BTreeSet};

const SOURCES: [&str; 5] = ["a", "b", "c", "d", "e"];
const VERSIONS: [&str; 4] = ["v1.0.0", "v1.1.0", "v2.0.0", "v2.1.0-rc.1"];
const RANGES: [&str; 9] = [
    ">=v1.0.0",
    "v1.0.0",
    "v1.1.0",
    ">=v1.1.0",
    "<v2.0.0",
    "v2",
    "^1.0.0",
    ">=v2.0.0-0",
    "!=v1.1.0",
];

fn package() -> impl Strategy<Value = Package> {
    let requirement = (0..SOURCES.len(), 0..RANGES.len()).prop_map(|(source, range)| {
        let range = Range::parse(RANGES[range]).unwrap();
        Requirement::Package { source: Source::new(SOURCES[source]), kind: None, range }
    });
    let requires = prop_oneof![
        3 => Just(Vec::new()),
        3 => prop::collection::vec(requirement.clone(), 1),
        1 => prop::collection::vec(requirement, 2),
    ];
    let crds = prop_oneof![
        5 => Just(BTreeSet::new()),
        1 => Just(BTreeSet::from(["x".to_owned()])),
        1 => Just(BTreeSet::from(["y".to_owned()])),
    ];
    (requires, crds).prop_map(|(requires, crds)| Package { requires, crds, ..Package::default() })
}

/// Two or three versions of each package, and what they say.
fn known() -> impl Strategy<Value = Known> {
    let versions = prop::sample::subsequence(VERSIONS.to_vec(), 2..=3);
    let of_one = versions.prop_flat_map(|versions| {
        let packages = prop::collection::vec(package(), versions.len());
        packages.prop_map(move |packages| (versions.clone(), packages))
    });
    prop::collection::vec(of_one, SOURCES.len()).prop_map(|all| {
        let mut known = Known::default();
        for (name, (versions, packages)) in SOURCES.iter().zip(all) {
            let source = Source::new(*name);
            for (version, package) in versions.iter().zip(packages) {
                let key = (source.clone(), Pin::parse(version));
                known.contents.insert(key, Contents::Package(package));
            }
            known.listings.insert(source, Listing::of_tags(versions));
        }
        known
    })
}

fn root(known: &Known, name: &str, dice: (u8, usize, usize, u8, usize)) -> Option<Root> {
    let (state, at, other, movement, range) = dice;
    let source = Source::new(name);
    let Listing::Tags(tags) = &known.listings[&source] else { return None };
    let pin = |at: usize| Pin::parse(&tags[at % tags.len()].name);
    let (installed, want) = match state {
        0 | 1 => return None,
        2 | 3 => (Some(pin(at)), None),
        4 => (Some(pin(at)), Some(Want::Pin(pin(other)))),
        5 => (None, Some(Want::Pin(pin(other)))),
        _ => (None, Some(Want::Range(Range::parse(RANGES[range]).unwrap()))),
    };
    let movement = [Movement::Held, Movement::Upgrades, Movement::Any][usize::from(movement)];
    let (name, dependencies) = (name.to_owned(), Dependencies::Resolved);
    let tags = BTreeMap::new();
    Some(Root { name, source, want, installed, tags, movement, dependencies })
}

fn worlds() -> impl Strategy<Value = (Problem, Known)> {
    let dice = (0..7_u8, 0..3_usize, 0..3_usize, 0..3_u8, 0..RANGES.len());
    (known(), prop::collection::vec(dice, SOURCES.len())).prop_map(|(known, dice)| {
        let roots = SOURCES.iter().zip(dice);
        let roots = roots.filter_map(|(name, dice)| root(&known, name, dice)).collect();
        (Problem { roots }, known)
    })
}

fn choice(settlement: &Settlement) -> Choice {
    settlement.changes.iter().map(|one| (one.source.clone(), one.to.clone())).collect()
}

/// Roots that have a conflict, moved or lowered roots: what an answer gives up.
fn given_up(problem: &Problem, choice: &Choice) -> Vec<(Source, bool)> {
    let moved =
        |root: &&Root| base(root).is_some_and(|base| choice.get(&root.source) != Some(base));
    let roots = problem.roots.iter().filter(moved);
    roots
        .map(|root| {
            let lower =
                choice.get(&root.source).and_then(Pin::version) < base(root).and_then(Pin::version);
            (root.source.clone(), lower)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn there_is_no_better_answer((problem, known) in worlds()) {
        let settlement = settle(&problem, &known);
        let world = World { problem: &problem, known: &known };
        let ours = choice(&settlement);
        let priced: Vec<_> = world
            .choices()
            .into_iter()
            .filter_map(|choice| Some((world.price(&choice)?, choice)))
            .collect();
        let best = priced.iter().map(|(price, _)| *price).min().unwrap();
        let price = world.price(&ours).unwrap();
        // Which of several equal refusals is taken is settled before anything is moved.
        let firm = if best[0] + best[2] == 0 { 5 } else { 3 };
        prop_assert_eq!(&price[..firm], &best[..firm], "{}", show(&settlement));

        // Everybody who is given nothing is told why, and nobody else.
        let losers: BTreeSet<Source> =
            settlement.conflicts.iter().map(|one| one.source.clone()).collect();
        prop_assert_eq!(losers.is_empty(), best[0] + best[2] == 0, "{}", show(&settlement));

        // What is left open by the price is what the walk says.
        let same = |choice: &Choice| given_up(&problem, choice) == given_up(&problem, &ours);
        let equal: Vec<Choice> = priced
            .into_iter()
            .filter(|(price, choice)| *price == best && same(choice))
            .map(|(_, choice)| choice)
            .collect();
        if best[0] + best[2] == 0 {
            prop_assert_eq!(&world.walk(equal), &ours, "{}", show(&settlement));
        }
    }

    #[test]
    fn the_order_of_the_input_does_not_matter((problem, known) in worlds()) {
        let mut turned = problem.clone();
        turned.roots.reverse();
        let mut other = known.clone();
        for listing in other.listings.values_mut() {
            if let Listing::Tags(tags) = listing {
                tags.reverse();
            }
        }
        for contents in other.contents.values_mut() {
            if let Contents::Package(package) = contents {
                package.requires.reverse();
            }
        }
        let (one, two) = (settle(&problem, &known), settle(&turned, &other));
        prop_assert_eq!(show(&one), show(&two));
    }

    #[test]
    fn what_was_settled_stays((problem, known) in worlds()) {
        let settlement = settle(&problem, &known);
        prop_assume!(settlement.conflicts.is_empty());
        let chosen: BTreeMap<&Source, &Pin> =
            settlement.changes.iter().map(|one| (&one.source, &one.to)).collect();
        let mut roots = problem.roots.clone();
        for change in &settlement.changes {
            if !roots.iter().any(|root| root.source == change.source) {
                roots.push(Root {
                    name: change.source.to_string(),
                    source: change.source.clone(),
                    want: None,
                    installed: None,
                    tags: BTreeMap::new(),
                    movement: Movement::Any,
                    dependencies: Dependencies::Resolved,
                });
            }
        }
        for root in &mut roots {
            root.installed = chosen.get(&root.source).map(|pin| (*pin).clone());
            // Whoever moves a package writes down where to.
            root.want = root.want.take().filter(|want| matches!(want, Want::Range(_)));
        }
        let again = settle(&Problem { roots }, &known);
        for change in &again.changes {
            prop_assert_eq!(change.action, Action::Keep, "{}\nthen\n{}", show(&settlement), show(&again));
        }
    }
}
