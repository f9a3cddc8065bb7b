//! The package manager as a process, on two backends: apron's own API server, and a real one with
//! its controllers. The scenarios are the same, and so is what must come of them.
//!
//! A backend is dear to start, so all scenarios of a chapter share one, with one registry and one
//! manager, and run at the same time; each has packages of its own. A scenario that fails is named
//! by the panic of its thread.

mod mistakes;
mod packages;
mod plans;
mod revisions;
mod runtimes;
mod signer;
mod stage;
mod trust;
mod upstream;

use stage::{Backend, Stage};

/// A scenario: what it shows, and how.
type Scenario = (&'static str, fn(&Stage));

/// Plays all scenarios at once.
fn play(backend: Backend, scenarios: &[Scenario]) {
    let mut stage = Stage::open(backend);
    std::thread::scope(|scope| {
        for (name, scenario) in scenarios {
            let named = std::thread::Builder::new().name((*name).to_owned());
            let stage = &stage;
            named.spawn_scoped(scope, || scenario(stage)).unwrap();
        }
    });
    let metrics = stage.metrics();
    assert!(metrics.lines().any(|line| line == "apron_is_leader 1"), "{metrics}");
    stage.stops();
}

#[test]
fn packages_become_revisions_on_the_embedded_server() {
    play(Backend::Embedded, packages::ALL);
}

#[test]
fn packages_become_revisions_on_a_real_server() {
    play(Backend::Real, packages::ALL);
}

#[test]
fn plans_are_told_on_the_embedded_server() {
    play(Backend::Embedded, plans::ALL);
}

#[test]
fn plans_are_told_on_a_real_server() {
    play(Backend::Real, plans::ALL);
}

#[test]
fn packages_are_run_on_the_embedded_server() {
    play(Backend::Embedded, &[runtimes::ALL, upstream::ALL].concat());
}

#[test]
fn packages_are_run_on_a_real_server() {
    play(Backend::Real, &[runtimes::ALL, upstream::ALL].concat());
}

#[test]
fn revisions_become_objects_on_the_embedded_server() {
    play(Backend::Embedded, revisions::ALL);
}

#[test]
fn revisions_become_objects_on_a_real_server() {
    play(Backend::Real, revisions::ALL);
}

#[test]
fn packages_come_only_from_whom_one_trusts_on_the_embedded_server() {
    play(Backend::Embedded, trust::ALL);
}

#[test]
fn packages_come_only_from_whom_one_trusts_on_a_real_server() {
    play(Backend::Real, trust::ALL);
}

#[test]
fn mistakes_are_named_and_can_be_mended_on_the_embedded_server() {
    play(Backend::Embedded, mistakes::ALL);
}

#[test]
fn mistakes_are_named_and_can_be_mended_on_a_real_server() {
    play(Backend::Real, mistakes::ALL);
}
