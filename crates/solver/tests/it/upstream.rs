//! Held against upstream: its own resolver's decisions, on the same locks and tags.
//!
//! `testdata/resolver.json` holds random locks and what upstream's resolver did in one round:
//! nothing, create a package, update one, or fail. It is greedy and takes one step at a time; it
//! is held against the whole answer here by how many installed packages lack something
//! afterwards.
//!
//! That is all that holds. By rule, the answers part where
//! - packages need each other in a circle: upstream does nothing for anybody as long as there is one;
//!   here those in the circle are refused and all others are settled, and another version is chosen
//!   that avoids it (`words::packages_in_a_circle_are_refused` and those after it);
//! - a repository has `v1` beside `v1.0.0`: upstream passes over incomplete tags when it installs, and
//!   counts them when it updates; here both are one version, and the tag that says more is taken
//!   (`words::of_two_tags_of_one_version_the_longer_is_taken`);
//! - a version that one package wants is refused by another: upstream looks at one of them at a time.

use crate::world::{settle, show};
use serde_json::Value;
use solver::{
    Action, Contents, Dependencies, Known, Listing, Movement, Package, Pin, Problem, Range,
    Requirement, Root, Settlement, Source,
};
use std::collections::BTreeMap;

fn vectors() -> Vec<Value> {
    serde_json::from_str(include_str!("../../testdata/resolver.json")).unwrap()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

fn requirement(dependency: &Value) -> Requirement {
    let version = text(dependency, "constraints");
    let source = Source::new(text(dependency, "package"));
    match Range::parse(version) {
        Ok(range) => Requirement::Package { source, kind: None, range },
        Err(error) => Requirement::Invalid(format!("its dependency on {source}: {error}")),
    }
}

/// The lock as a problem. Upstream knows only what installed versions need; others are taken to
/// need the same, so that moving a package never rids it of what it needs.
fn problem(vector: &Value) -> (Problem, Known) {
    let input = &vector["in"];
    let movement = match (&input["upgrades"], &input["downgrades"]) {
        (_, Value::Bool(true)) => Movement::Any,
        (Value::Bool(true), _) => Movement::Upgrades,
        _ => Movement::Held,
    };
    let (mut problem, mut known) = (Problem::default(), Known::default());
    let mut needs: BTreeMap<Source, Package> = BTreeMap::new();
    for package in input["lock"].as_array().unwrap() {
        let source = Source::new(text(package, "source"));
        let pin = Pin::parse(text(package, "version"));
        let requires = package["dependencies"].as_array().unwrap().iter().map(requirement);
        let contents = Package { requires: requires.collect(), ..Package::default() };
        needs.entry(source.clone()).or_insert_with(|| contents.clone());
        known.contents.insert((source.clone(), pin.clone()), Contents::Package(contents));
        problem.roots.push(Root {
            name: text(package, "name").to_owned(),
            source,
            want: None,
            installed: Some(pin),
            tags: BTreeMap::new(),
            movement,
            dependencies: Dependencies::Resolved,
        });
    }
    for (source, tags) in input["tags"].as_object().unwrap() {
        let source = Source::new(source.as_str());
        let tags: Vec<&str> =
            tags.as_array().unwrap().iter().map(|tag| tag.as_str().unwrap()).collect();
        for tag in &tags {
            let key = (source.clone(), Pin::parse(tag));
            let same = needs.get(&source).cloned().unwrap_or_default();
            known.contents.entry(key).or_insert_with(|| Contents::Package(same));
        }
        known.listings.insert(source, Listing::of_tags(tags));
    }
    let digests = known.contents.values().flat_map(|contents| match contents {
        Contents::Package(package) => package.requires.clone(),
        Contents::Unusable(_) => Vec::new(),
    });
    for requirement in digests.collect::<Vec<_>>() {
        if let Requirement::Package { source, range: Range::Digest(digest), .. } = requirement {
            let key = (source, Pin::Digest(digest));
            known.contents.entry(key).or_insert_with(|| Contents::Package(Package::default()));
        }
    }
    (problem, known)
}

/// How many packages of the lock lack something in a state.
fn lacking(problem: &Problem, known: &Known, state: &BTreeMap<Source, Pin>) -> usize {
    let lacks = |root: &&Root| {
        let Some(pin) = state.get(&root.source) else { return true };
        let Contents::Package(package) = &known.contents[&(root.source.clone(), pin.clone())]
        else {
            return true;
        };
        package.requires.iter().any(|requirement| match requirement {
            Requirement::Package { source, range, .. } => {
                !state.get(source).is_some_and(|there| range.accepts(there))
            }
            Requirement::Crd(_) | Requirement::Invalid(_) => true,
        })
    };
    problem.roots.iter().filter(lacks).count()
}

fn installed(problem: &Problem) -> BTreeMap<Source, Pin> {
    let pin = |root: &Root| Some((root.source.clone(), root.installed.clone()?));
    // The first of several entries for one source counts, as in the solver.
    problem.roots.iter().rev().filter_map(pin).collect()
}

fn after_upstream(vector: &Value, problem: &Problem) -> BTreeMap<Source, Pin> {
    let mut state = installed(problem);
    if let Some(reference) = vector["out"]["package"].as_str() {
        let (source, pin) = match reference.split_once('@') {
            Some(split) => split,
            None => reference.rsplit_once(':').unwrap(),
        };
        state.insert(Source::new(source), Pin::parse(pin));
    }
    state
}

fn after(settlement: &Settlement) -> BTreeMap<Source, Pin> {
    settlement.changes.iter().map(|one| (one.source.clone(), one.to.clone())).collect()
}

#[test]
fn no_more_packages_lack_something_than_after_upstream_and_sometimes_fewer() {
    let (mut better, mut equal) = (0, 0);
    for vector in vectors() {
        let (problem, known) = problem(&vector);
        let settlement = settle(&problem, &known);
        let ours = lacking(&problem, &known, &after(&settlement));
        let upstreams = lacking(&problem, &known, &after_upstream(&vector, &problem));
        assert!(ours <= upstreams, "{}: {ours} > {upstreams}\n{}", vector["id"], show(&settlement));
        if ours < upstreams { better += 1 } else { equal += 1 }
    }
    println!("better {better}, equal {equal}");
    assert!(better > 0, "upstream takes one step, so this must be better somewhere");
}

#[test]
fn what_upstream_creates_is_created_alike_or_the_reason_is_told() {
    let mut alike = 0;
    for vector in vectors().iter().filter(|vector| vector["out"]["action"] == "create") {
        let (problem, known) = problem(vector);
        let settlement = settle(&problem, &known);
        let theirs = after_upstream(vector, &problem);
        let before = installed(&problem);
        let (source, pin) =
            theirs.iter().find(|(source, _)| !before.contains_key(*source)).unwrap();
        let ours = settlement.changes.iter().find(|change| change.source == *source);
        let all_accept =
            lacking(&problem, &known, &theirs) == lacking(&problem, &known, &after(&settlement));
        match ours {
            Some(change) if change.to == *pin => alike += 1,
            // Upstream looks at one constraint; a version that another refuses is no model.
            Some(change) => assert!(
                change.action == Action::Install
                    && (!all_accept || !settlement.conflicts.is_empty()),
                "{}: {change} instead of {pin}\n{}",
                vector["id"],
                show(&settlement)
            ),
            None => assert!(
                !settlement.conflicts.is_empty(),
                "{}: {source} is not installed\n{}",
                vector["id"],
                show(&settlement)
            ),
        }
    }
    println!("alike {alike}");
    assert!(alike > 30);
}

#[test]
fn what_upstream_updates_is_moved_alike_when_that_suits_everybody() {
    let mut alike = 0;
    for vector in vectors().iter().filter(|vector| vector["out"]["action"] == "update") {
        let (problem, known) = problem(vector);
        let settlement = settle(&problem, &known);
        let theirs = after_upstream(vector, &problem);
        let ours = after(&settlement);
        let suits = lacking(&problem, &known, &theirs) == lacking(&problem, &known, &ours);
        let same = theirs.iter().all(|(source, pin)| ours.get(source) == Some(pin));
        assert!(
            same || !suits || !settlement.conflicts.is_empty(),
            "{}\n{}",
            vector["id"],
            show(&settlement)
        );
        alike += usize::from(same);
    }
    println!("alike {alike}");
    assert!(alike > 5);
}

#[test]
fn what_stops_upstream_stops_only_those_concerned() {
    for vector in vectors().iter().filter(|vector| vector["out"]["action"] == "error") {
        let (problem, known) = problem(vector);
        let settlement = settle(&problem, &known);
        let concerned = settlement.conflicts.len();
        let ours = lacking(&problem, &known, &after(&settlement));
        assert!(
            ours <= concerned,
            "{}: {ours} lack something, {concerned} are told why\n{}",
            vector["id"],
            show(&settlement)
        );
        for conflict in &settlement.conflicts {
            assert!(!conflict.sentences.is_empty() && !conflict.hint.is_empty());
        }
    }
}
