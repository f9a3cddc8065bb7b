//! How long solving takes: 500 packages of 20 versions each, in four situations.
//!
//! `cargo run --release -p apron-solver --example scale`, or `scripts/bench-solver`. Prints the
//! median and the slowest of some runs, in milliseconds of processor time (Linux counts it for
//! us; other work on the machine does not matter).

#![expect(clippy::print_stdout, reason = "a program for people")]
#![expect(clippy::disallowed_methods, reason = "measuring needs clocks, the room does not")]

use solver::{
    Contents, Dependencies, Known, Listing, Movement, Outcome, Package, Pin, Problem, Range,
    Requirement, Root, Source, Want, solve,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const PACKAGES: usize = 500;
const VERSIONS: usize = 20;
const RUNS: usize = 11;

fn source(at: usize) -> Source {
    Source::new(format!("registry.example.org/acme/package-{at:03}"))
}

/// Versions v1.0.0 to v4.4.0, five minors of four majors.
fn pin(version: usize) -> Pin {
    Pin::parse(&format!("v{}.{}.0", 1 + version / 5, version % 5))
}

fn needs(target: usize, range: &str) -> Option<Requirement> {
    let range = Range::parse(range).ok()?;
    Some(Requirement::Package { source: source(target), kind: None, range })
}

/// Package i needs three with higher numbers: newer versions need newer versions, and the
/// newest of all in every seventh package need one that does not exist.
fn known() -> Known {
    let mut known = Known::default();
    for at in 0..PACKAGES {
        let tags = (0..VERSIONS).map(|version| pin(version).to_string());
        known.listings.insert(source(at), Listing::of_tags(tags));
        for version in 0..VERSIONS {
            let major = 1 + version / 5;
            let targets = [at + 1, at + 2 + at % 7, at + 11 + at % 13];
            let mut requires: Vec<Requirement> = targets
                .into_iter()
                .filter(|target| *target < PACKAGES)
                .filter_map(|target| needs(target, &format!(">=v{major}.0.0, <v{}.0.0", major + 2)))
                .collect();
            if at % 7 == 3 && version == VERSIONS - 1 && at + 1 < PACKAGES {
                requires.extend(needs(at + 1, ">=v9.0.0"));
            }
            let package = Package { requires, ..Package::default() };
            known.contents.insert((source(at), pin(version)), Contents::Package(package));
        }
    }
    known
}

fn root(at: usize, want: Option<Want>, installed: Option<Pin>, movement: Movement) -> Root {
    let source = source(at);
    let (name, dependencies) = (format!("package-{at:03}"), Dependencies::Resolved);
    let tags = BTreeMap::new();
    Root { name, source, want, installed, tags, movement, dependencies }
}

/// Processor time used so far; where nobody counts it, the time of day.
fn used(start: Instant) -> Duration {
    let counted = std::fs::read_to_string("/proc/self/schedstat").ok();
    let first = counted.as_deref().and_then(|text| text.split(' ').next()?.parse().ok());
    first.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

fn measure(what: &str, problem: &Problem, known: &Known) {
    let (start, mut times) = (Instant::now(), Vec::new());
    let mut counts = (0, 0, 0);
    for _ in 0..RUNS {
        let before = used(start);
        let outcome = solve(problem, known);
        times.push(used(start).saturating_sub(before));
        if let Outcome::Settled(settlement) = outcome {
            let moved =
                settlement.changes.iter().filter(|change| Some(&change.to) != change.from.as_ref());
            counts = (settlement.changes.len(), moved.count(), settlement.conflicts.len());
        }
    }
    times.sort();
    let milliseconds = |at: usize| times[at].as_secs_f64() * 1000.0;
    let (packages, changed, conflicts) = counts;
    println!(
        "{what:<42} median {:7.2} ms  slowest {:7.2} ms  {packages} packages, {changed} changed, {conflicts} conflicts",
        milliseconds(RUNS / 2),
        milliseconds(RUNS - 1),
    );
}

fn main() {
    let known = known();
    println!("{PACKAGES} packages x {VERSIONS} versions, {RUNS} runs each");
    let want = Some(Want::Pin(pin(VERSIONS - 3)));
    let fresh = Problem { roots: vec![root(0, want, None, Movement::Held)] };
    measure("install the top of everything", &fresh, &known);

    let installed = |version: usize| {
        (0..PACKAGES).map(move |at| root(at, None, Some(pin(version)), Movement::Any))
    };
    let settled = Problem { roots: installed(7).collect() };
    measure("everything is installed", &settled, &known);

    let mut update = settled.clone();
    update.roots[0].want = Some(Want::Pin(pin(12)));
    measure("update the top by one major", &update, &known);

    let mut conflict = settled.clone();
    conflict.roots[PACKAGES - 1].movement = Movement::Held;
    conflict.roots[PACKAGES - 2].want = Some(Want::Pin(pin(VERSIONS - 1)));
    measure("an update that one held package forbids", &conflict, &known);
}
