//! The package manager as a process, on two backends: apron's own API server, and a real one with
//! its controllers. The scenarios are the same, and so is what must come of them.
//!
//! A backend is dear to start, so all scenarios of a chapter share one, with one registry and one
//! manager, and run at the same time; each has packages of its own. A scenario that fails is named
//! by the panic of its thread.

mod adoption;
mod authority;
mod dependencies;
mod e2e;
mod functions;
mod git_sources;
mod guide;
mod handover;
mod kinds;
mod made_up;
mod mistakes;
mod packages;
mod plans;
mod policies;
pub(crate) mod process;
mod retention;
mod revisions;
mod runtimes;
mod signer;
mod stack_commands;
mod stack_seed;
mod stacks;
mod stage;
mod standing;
mod trust;
mod upstream;

use stage::{Backend, Manner, Stage};

/// A scenario: what it shows, and how.
type Scenario = (&'static str, fn(&Stage));

/// Everything there is to play on a stage that others share.
const CHAPTERS: [&[Scenario]; 19] = [
    adoption::ALL,
    authority::ALL,
    dependencies::ALL,
    e2e::ALL,
    functions::ALL,
    guide::ALL,
    handover::ALL,
    mistakes::ALL,
    packages::ALL,
    plans::ALL,
    policies::ALL,
    retention::ALL,
    revisions::ALL,
    runtimes::ALL,
    stack_commands::ALL,
    stack_seed::ALL,
    stacks::ALL,
    trust::ALL,
    upstream::ALL,
];

/// Plays all scenarios at once.
fn play(backend: Backend, scenarios: &[Scenario]) {
    play_until(backend, scenarios, |_| {});
}

/// The same, and then an end that has the stage for itself.
fn play_until(backend: Backend, scenarios: &[Scenario], end: fn(&mut Stage)) {
    play_on(Stage::open(backend), scenarios, end);
}

/// Plays upstream's packages, which nobody complains of, and then what others do to packages that run.
fn play_runs(backend: Backend) {
    let stage = Stage::open(backend);
    play_together(&stage, upstream::ALL);
    upstream::nothing_is_complained_of(&stage);
    play_on(stage, &[runtimes::ALL, handover::ALL].concat(), |_| {});
}

fn play_together(stage: &Stage, scenarios: &[Scenario]) {
    std::thread::scope(|scope| {
        for (name, scenario) in scenarios {
            let named = std::thread::Builder::new().name((*name).to_owned());
            named.spawn_scoped(scope, || scenario(stage)).unwrap();
        }
    });
}

fn play_on(mut stage: Stage, scenarios: &[Scenario], end: fn(&mut Stage)) {
    play_together(&stage, scenarios);
    end(&mut stage);
    let metrics = stage.metrics();
    assert!(metrics.lines().any(|line| line == "apron_is_leader 1"), "{metrics}");
    stage.stops();
}

#[test]
fn packages_become_revisions_on_the_embedded_server() {
    let end = packages::m3_what_is_installed_goes_on_while_its_registry_is_away;
    play_until(Backend::Embedded, packages::ALL, end);
}

#[test]
fn packages_become_revisions_on_a_real_server() {
    let end = packages::m3_what_is_installed_goes_on_while_its_registry_is_away;
    play_until(Backend::Real, packages::ALL, end);
}

#[test]
fn what_the_guide_says_is_so_on_the_embedded_server() {
    let scenarios = [guide::ALL, policies::ALL].concat();
    play_until(Backend::Embedded, &scenarios, policies::a_cache_is_lost);
}

#[test]
fn what_the_guide_says_is_so_on_a_real_server() {
    let scenarios = [guide::ALL, policies::ALL].concat();
    play_until(Backend::Real, &scenarios, policies::a_cache_is_lost);
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
    play_runs(Backend::Embedded);
}

#[test]
fn packages_are_run_on_a_real_server() {
    play_runs(Backend::Real);
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
fn packages_of_the_first_system_are_installed_on_the_embedded_server() {
    play(Backend::Embedded, &[stacks::ALL, stack_commands::ALL].concat());
}

#[test]
fn packages_of_the_first_system_are_installed_on_a_real_server() {
    play(Backend::Real, &[stacks::ALL, stack_commands::ALL].concat());
}

#[test]
fn what_the_first_description_says_is_so_on_the_embedded_server() {
    play(Backend::Embedded, stack_seed::ALL);
}

#[test]
fn what_the_first_description_says_is_so_on_a_real_server() {
    play(Backend::Real, stack_seed::ALL);
}

#[test]
fn what_lives_is_kept_on_the_embedded_server() {
    play(Backend::Embedded, retention::ALL);
}

#[test]
fn what_lives_is_kept_on_a_real_server() {
    play(Backend::Real, retention::ALL);
}

#[test]
fn c2_what_is_there_already_stays_its_makers_on_the_embedded_server() {
    play_until(Backend::Embedded, adoption::ALL, adoption::c2_a_manager_adopts_if_it_is_told_to);
}

#[test]
fn c2_what_is_there_already_stays_its_makers_on_a_real_server() {
    play_until(Backend::Real, adoption::ALL, adoption::c2_a_manager_adopts_if_it_is_told_to);
}

#[test]
fn packages_come_only_from_whom_one_trusts_on_the_embedded_server() {
    play_until(Backend::Embedded, trust::ALL, trust::h6_everything_can_be_asked_to_be_signed);
}

#[test]
fn packages_come_only_from_whom_one_trusts_on_a_real_server() {
    play_until(Backend::Real, trust::ALL, trust::h6_everything_can_be_asked_to_be_signed);
}

#[test]
fn nobody_gets_what_nobody_allowed_on_the_embedded_server() {
    let stage = Stage::open_with(Backend::Embedded, Manner::Guarded(&authority::WORDS));
    play_on(stage, authority::ALL, |_| {});
}

#[test]
fn nobody_gets_what_nobody_allowed_on_a_real_server() {
    let stage = Stage::open_with(Backend::Real, Manner::Guarded(&authority::WORDS));
    play_on(stage, authority::ALL, |_| {});
}

#[test]
fn mistakes_are_named_and_can_be_mended_on_the_embedded_server() {
    play(Backend::Embedded, mistakes::ALL);
}

#[test]
fn mistakes_are_named_and_can_be_mended_on_a_real_server() {
    play(Backend::Real, mistakes::ALL);
}

#[test]
fn packages_get_what_they_need_on_the_embedded_server() {
    let end = dependencies::a_package_is_moved_down_only_where_that_is_allowed;
    play_until(Backend::Embedded, dependencies::ALL, end);
}

#[test]
fn packages_get_what_they_need_on_a_real_server() {
    let end = dependencies::a_package_is_moved_down_only_where_that_is_allowed;
    play_until(Backend::Real, dependencies::ALL, end);
}

#[test]
fn upstreams_scenarios_end_as_upstream_expects_on_the_embedded_server() {
    let stage = Stage::open_with(Backend::Embedded, Manner::Told(&e2e::WORDS));
    play_on(stage, e2e::ALL, |_| {});
}

#[test]
fn upstreams_scenarios_end_as_upstream_expects_on_a_real_server() {
    let stage = Stage::open_with(Backend::Real, Manner::Told(&e2e::WORDS));
    play_on(stage, e2e::ALL, |_| {});
}

#[test]
fn packages_are_found_by_their_kinds_on_the_embedded_server() {
    let scenarios = [kinds::ALL, stacks::CATALOGED].concat();
    play_on(Stage::open_with(Backend::Embedded, Manner::Cataloged), &scenarios, |_| {});
}

#[test]
fn packages_are_found_by_their_kinds_on_a_real_server() {
    let scenarios = [kinds::ALL, stacks::CATALOGED].concat();
    play_on(Stage::open_with(Backend::Real, Manner::Cataloged), &scenarios, |_| {});
}

#[test]
fn functions_and_runtimes_are_served_on_the_embedded_server() {
    play_until(Backend::Embedded, functions::ALL, functions::certificates_end_and_kinds_wait);
}

#[test]
fn functions_and_runtimes_are_served_on_a_real_server() {
    play_until(Backend::Real, functions::ALL, functions::certificates_end_and_kinds_wait);
}

/// A manager that is left alone, and then is no more.
fn stand(backend: Backend) {
    let mut stage = Stage::open_with(backend, Manner::Told(standing::WORDS));
    standing::what_is_settled_is_left_alone(&mut stage);
    standing::m5_what_git_keeps_is_changed_in_git(&mut stage);
    standing::another_takes_over(&mut stage);
    standing::a_lock_that_keeps_less_is_left_alone(&mut stage);
    stage.stops();
}

#[test]
fn a_manager_is_silent_and_replaced_on_the_embedded_server() {
    stand(Backend::Embedded);
}

#[test]
fn a_manager_is_silent_and_replaced_on_a_real_server() {
    stand(Backend::Real);
}
