//! One revision after another: what works is not torn down before what follows is available.

use super::flow::{config, next, runs};
use super::*;

/// Revisions of one package, each as its own controller sees the world.
struct Family(Vec<World>);

impl Family {
    /// A revision that runs, and the next one, which has its objects.
    fn upgraded(first: World) -> Self {
        let mut old = runs(first);
        set_pods(&mut old, "p-1", 1);
        let mut new = old.clone();
        new.revision = next(&old);
        new.revision.spec.revision = 2;
        new.owned.clear();
        established(&mut new, true);
        old.revision.spec.desired_state = "Inactive".to_owned();
        let mut family = Self(vec![old, new]);
        family.share();
        family
    }

    /// A third revision is asked for.
    fn upgraded_again(&mut self) {
        let mut third = self.0[1].clone();
        third.revision.metadata.name = "p-3".to_owned();
        third.revision.metadata.uid = Some("uid-p-3".to_owned());
        third.revision.spec.revision = 3;
        third.revision.status = None;
        third.owned.clear();
        established(&mut third, true);
        self.0[1].revision.spec.desired_state = "Inactive".to_owned();
        self.0.push(third);
        self.share();
    }

    /// Makes one revision the active one, in another generation.
    fn activate(&mut self, at: usize, generation: i64) {
        for (other, world) in self.0.iter_mut().enumerate() {
            let state = if other == at { "Active" } else { "Inactive" };
            world.revision.spec.desired_state = state.to_owned();
            world.revision.metadata.generation = Some(generation);
        }
        established(&mut self.0[at], true);
        self.share();
    }

    /// Lets one revision look and act, and gives what it did.
    fn look(&mut self, at: usize) -> String {
        let told = act(&mut self.0[at]);
        let acted = self.0[at].clone();
        for (other, world) in self.0.iter_mut().enumerate() {
            if other != at {
                world.live = acted.live.clone();
                world.certificates = acted.certificates.clone();
                world.pairs = acted.pairs.clone();
            }
        }
        self.share();
        told
    }

    /// Each sees the revisions and Deployments of the others.
    fn share(&mut self) {
        let all: Vec<_> = self.0.iter().map(|one| one.revision.clone()).collect();
        for world in &mut self.0 {
            let is_other = |one: &&api::pkg::revision::Revision| {
                one.metadata.name != world.revision.metadata.name
            };
            world.siblings = all.iter().filter(is_other).cloned().collect();
            let deployments =
                world.live.values().flatten().filter(|one| one["kind"] == "Deployment");
            let is_theirs = |one: &&Json| {
                world.siblings.iter().any(|it| crate::control::is_controlled_by(one, it))
            };
            world.deployments = deployments.filter(is_theirs).cloned().collect();
            let controls = |one: &&Json| crate::control::is_controlled_by(one, &world.revision);
            world.owned = world.live.values().flatten().filter(controls).cloned().collect();
        }
    }

    /// All look in turn until nothing happens; pods follow what is wished for, but for those of a
    /// revision that never starts.
    fn settles(&mut self, stuck: &str) {
        for _ in 0..30 {
            let mut told = String::new();
            for at in 0..self.0.len() {
                told.push_str(&self.look(at));
                told.push('\n');
                assert!(self.running().len() <= 1, "two run: {:?}", self.running());
                self.follow(stuck);
                assert!(self.running().len() <= 1, "two run: {:?}", self.running());
            }
            if told.lines().all(|line| line.starts_with('#') || line == "nothing") {
                return;
            }
        }
        panic!("it never settles: {:?}", self.running())
    }

    /// Gives Deployments the pods they wish for.
    fn follow(&mut self, stuck: &str) {
        for name in ["p-1", "p-2", "p-3"] {
            let Some(deployment) = live(&self.0[0], "Deployment", name) else { continue };
            let wished = deployment["spec"]["replicas"].clone();
            let is_up = name != stuck || wished == 0;
            for world in &mut self.0 {
                set_pods(world, name, wished.as_i64().unwrap());
                available(world, name, is_up, "no pod");
            }
        }
        self.share();
    }

    /// Tells of pods of a Deployment that are deleted and have not ended.
    fn tell_ending(&mut self, name: &str, count: &Json) {
        let target = target("Deployment", name);
        for world in &mut self.0 {
            set_pods(world, name, 0);
            let Some(Some(object)) = world.live.get_mut(&target) else { continue };
            object["status"]["terminatingReplicas"] = count.clone();
        }
        self.share();
    }

    /// Deployments that have or want pods, or whose pods end.
    fn running(&self) -> Vec<String> {
        let deployments = self.0[0].live.values().flatten();
        let has = |one: &Json, field: &str| one["status"][field].as_i64() > Some(0);
        let runs = |one: &&Json| {
            one["kind"] == "Deployment"
                && (one["spec"]["replicas"] != 0
                    || has(one, "replicas")
                    || has(one, "terminatingReplicas"))
        };
        let running = deployments.filter(runs);
        running.map(|one| one["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    fn pass(&mut self, seconds: i64) {
        self.0.iter_mut().for_each(|one| one.now += seconds);
    }

    fn health(&self, at: usize) -> String {
        let conditions = self.0[at].revision.status.as_ref().unwrap().conditions.as_ref().unwrap();
        let told = conditions.iter().find(|one| one.condition_type == "RuntimeHealthy").unwrap();
        format!("{} {}", told.status, told.message.as_deref().unwrap_or_default())
    }
}

fn set_pods(world: &mut World, name: &str, count: i64) {
    let target = target("Deployment", name);
    let Some(Some(object)) = world.live.get_mut(&target) else { return };
    object["status"]["replicas"] = json!(count);
    let object = object.clone();
    let is_it = |one: &&mut Json| Target::of(one) == target;
    world.owned.iter_mut().filter(is_it).for_each(|one| *one = object.clone());
}

#[test]
fn a_provider_stops_before_the_next_one_starts_and_goes_once_that_is_available() {
    let mut family = Family::upgraded(world());
    assert!(family.look(1).contains("issue p-tls-client"));
    let told = family.look(1);
    assert!(told.contains("create Deployment p-2"), "{told}");
    assert_eq!(live(&family.0[1], "Deployment", "p-2").unwrap()["spec"]["replicas"], 0);
    assert_eq!(family.running(), ["p-1"]);
    assert!(family.health(1).contains("p-2 starts once p-1 has stopped"), "{}", family.health(1));
    // The one before stands back, but its pods are there still.
    assert!(family.look(0).starts_with("merge Deployment p-1"));
    assert!(!family.look(1).contains("apply Deployment"));
    family.settles("");
    assert_eq!(family.running(), ["p-2"]);
    assert!(live(&family.0[1], "Deployment", "p-1").is_none());
    assert!(live(&family.0[1], "ServiceAccount", "p-1").is_none());
    let next = live(&family.0[1], "Deployment", "p-2").unwrap();
    assert!(next["metadata"]["annotations"]["pkg.crossplane.io/handover"].is_null(), "{next}");
    assert!(family.health(1).starts_with("True"));
}

/// A program that ends at once is ready for a moment, and what works would go for it.
#[test]
fn what_takes_over_has_to_stay_ready_for_a_while_until_it_has() {
    for (first, is_function) in [(world(), false), (function(), true)] {
        let mut family = Family::upgraded(first);
        family.look(1);
        family.look(1);
        let wait = |family: &Family, name| {
            live(&family.0[1], "Deployment", name).unwrap()["spec"]["minReadySeconds"].clone()
        };
        assert_eq!((wait(&family, "p-1"), wait(&family, "p-2")), (Json::Null, json!(10)));
        if !is_function {
            family.settles("");
            assert_eq!(wait(&family, "p-2"), Json::Null, "nothing waits for it any more");
        }
    }
    // As long as was said, and not as long as the deadline, which API servers refuse.
    for (said, wait) in [
        (json!({"progressDeadlineSeconds": 5}), json!(4)),
        (json!({"progressDeadlineSeconds": 1}), Json::Null),
        (json!({"minReadySeconds": 0}), json!(0)),
        (json!({"minReadySeconds": 30}), json!(30)),
    ] {
        let mut spec = json!({"selector": {}, "template": {}});
        spec.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
        let mut family = Family::upgraded(world());
        let spec = json!({"deploymentTemplate": {"spec": spec}});
        family.0[1].runtime_configs = vec![config("default", &spec)];
        family.look(1);
        family.look(1);
        let next = live(&family.0[1], "Deployment", "p-2").unwrap();
        assert_eq!(next["spec"]["minReadySeconds"], wait, "{said}");
    }
}

#[test]
fn a_provider_whose_pods_still_end_has_not_stopped() {
    // Servers that do not count pods that end say nothing.
    for end in [json!(0), Json::Null] {
        let mut family = Family::upgraded(world());
        family.look(1);
        family.look(1);
        assert!(family.look(0).starts_with("merge Deployment p-1"));
        // Marked as deleted: no pod is counted any more, and its program has 30 seconds left.
        family.tell_ending("p-1", &json!(1));
        for _ in 0..3 {
            family.look(1);
            family.look(0);
            assert_eq!(family.running(), ["p-1"], "its program still runs");
        }
        assert!(family.health(1).contains("starts once p-1 has stopped"), "{}", family.health(1));
        family.tell_ending("p-1", &end);
        family.settles("");
        assert_eq!(family.running(), ["p-2"]);
    }
}

#[test]
fn a_provider_comes_back_if_the_next_one_is_not_available_in_time() {
    let mut family = Family::upgraded(world());
    family.settles("p-2");
    assert_eq!(family.running(), ["p-2"], "it has its time");
    assert!(live(&family.0[0], "ServiceAccount", "p-1").is_some());
    assert!(family.health(1).contains("unavailable with message: no pod"), "{}", family.health(1));
    family.pass(599);
    family.settles("p-2");
    assert_eq!(family.running(), ["p-2"]);
    family.pass(1);
    family.settles("p-2");
    assert_eq!(family.running(), ["p-1"]);
    let said = family.health(1);
    assert!(said.contains("p-2 was not available within 600 s, so p-1 runs again"), "{said}");
    let service = live(&family.0[0], "Service", "p").unwrap();
    assert_eq!(service["spec"]["selector"]["pkg.crossplane.io/revision"], "p-1");
    family.pass(100_000);
    family.settles("p-2");
    assert_eq!(family.running(), ["p-1"], "it is not tried again by itself");
}

#[test]
fn a_late_one_is_looked_at_again_although_nothing_tells_of_it() {
    let mut family = Family::upgraded(world());
    family.settles("p-2");
    family.pass(600);
    // An answer from the past: the one before has not stood back yet.
    let mut late = family.0[1].clone();
    for before in &mut late.deployments {
        before["metadata"]["annotations"]["pkg.crossplane.io/standby"] = Json::Null;
        before["spec"]["replicas"] = json!(1);
    }
    let Step::Do(plan) = step(&late) else { panic!("everything is known") };
    assert_eq!(plan.wake, Wake::After(RETRY), "{:?}", plan.report);
    family.settles("p-2");
    assert_eq!(family.running(), ["p-1"]);
}

#[test]
fn a_change_of_the_revision_or_its_configuration_is_another_try() {
    for change in [change_generation, change_configuration] {
        let mut family = Family::upgraded(world());
        family.settles("p-2");
        family.pass(600);
        family.settles("p-2");
        assert_eq!(family.running(), ["p-1"]);
        change(&mut family.0[1]);
        family.share();
        family.settles("");
        assert_eq!(family.running(), ["p-2"]);
        assert!(live(&family.0[1], "Deployment", "p-1").is_none());
    }
}

fn change_generation(world: &mut World) {
    world.revision.metadata.generation = Some(9);
    established(world, true);
}

fn change_configuration(world: &mut World) {
    let container = json!({"name": "package-runtime", "args": ["--mended"]});
    let spec = json!({"selector": {}, "template": {"spec": {"containers": [container]}}});
    world.runtime_configs = vec![config("default", &json!({"deploymentTemplate": {"spec": spec}}))];
}

#[test]
fn what_worked_comes_back_after_two_upgrades_that_do_not() {
    let mut family = Family::upgraded(world());
    family.settles("p-2");
    assert_eq!(family.running(), ["p-2"]);
    // Another version is asked for before the deadline is over.
    family.upgraded_again();
    family.settles("p-3");
    assert_eq!(family.running(), ["p-3"]);
    family.pass(600);
    family.settles("p-3");
    assert_eq!(family.running(), ["p-1"]);
}

#[test]
fn going_back_while_the_next_one_starts_starts_what_was_there() {
    let mut family = Family::upgraded(world());
    family.settles("p-2");
    assert_eq!(family.running(), ["p-2"]);
    family.activate(0, 5);
    family.settles("p-2");
    assert_eq!(family.running(), ["p-1"]);
    let back = live(&family.0[0], "Deployment", "p-1").unwrap();
    assert!(back["metadata"]["annotations"]["pkg.crossplane.io/standby"].is_null(), "{back}");
    assert!(live(&family.0[0], "Deployment", "p-2").is_none());
}

#[test]
fn what_worked_is_not_forgotten_if_it_is_wanted_again_for_a_moment() {
    // How far it comes in that moment: not to be seen, waiting, or so far that it has pods.
    for looks in 0..4 {
        let mut family = Family::upgraded(world());
        family.settles("p-2");
        family.activate(0, 5);
        for _ in 0..looks {
            family.look(0);
            family.look(1);
            family.follow("p-1");
        }
        family.activate(1, 6);
        family.settles("p-2");
        assert_eq!(family.running(), ["p-2"], "{looks}");
        family.pass(600);
        family.settles("p-2");
        assert_eq!(family.running(), ["p-1"], "{looks}: {}", family.health(1));
    }
}

#[test]
fn what_ran_last_comes_back_if_going_back_fails() {
    let mut family = Family::upgraded(world());
    family.settles("p-2");
    // The next one is available in the end; before the one before goes, it is wanted again, and fails.
    family.follow("");
    family.look(1);
    assert!(family.health(1).starts_with("True"), "{}", family.health(1));
    family.activate(0, 5);
    family.settles("p-1");
    assert_eq!(family.running(), ["p-1"]);
    family.pass(600);
    family.settles("p-1");
    assert_eq!(family.running(), ["p-2"], "{}", family.health(0));
}

#[test]
fn a_functions_pods_serve_until_the_next_ones_are_available() {
    let mut family = Family::upgraded(function());
    family.look(1);
    family.look(1);
    assert_eq!(family.running(), ["p-1", "p-2"], "they may run side by side");
    for world in &mut family.0 {
        available(world, "p-2", false, "no pod");
    }
    family.share();
    for _ in 0..3 {
        family.look(0);
        family.look(1);
    }
    family.pass(10_000);
    family.look(0);
    assert_eq!(family.running(), ["p-1", "p-2"]);
    let leads_to = |family: &Family| {
        let service = live(&family.0[0], "Service", "p").unwrap();
        service["spec"]["selector"]["pkg.crossplane.io/revision"].clone()
    };
    assert_eq!(leads_to(&family), "p-1");
    for world in &mut family.0 {
        available(world, "p-2", true, "");
    }
    family.share();
    family.look(0);
    assert_eq!(family.running(), ["p-1", "p-2"], "the Service still leads there");
    family.look(1);
    assert_eq!(leads_to(&family), "p-2");
    family.look(0);
    assert_eq!(family.running(), ["p-2"]);
}

#[test]
fn a_service_that_is_lost_leads_to_what_runs_when_it_is_made_again() {
    let mut family = Family::upgraded(world());
    let lose = |family: &mut Family| {
        family.0.iter_mut().for_each(|world| remove(world, &target("Service", "p")));
        family.settles("p-2");
        let service = live(&family.0[1], "Service", "p").unwrap();
        let owner = &service["metadata"]["ownerReferences"][0]["name"];
        assert_eq!(*owner, service["spec"]["selector"]["pkg.crossplane.io/revision"]);
        owner.as_str().unwrap().to_owned()
    };
    family.look(1);
    family.0.iter_mut().for_each(|world| remove(world, &target("Service", "p")));
    family.look(1);
    let service = live(&family.0[1], "Service", "p").unwrap();
    assert_eq!(service["spec"]["selector"]["pkg.crossplane.io/revision"], "p-1", "it runs still");
    family.settles("p-2");
    assert_eq!(lose(&mut family), "p-2", "it starts, and nothing else runs");
    family.pass(600);
    family.settles("p-2");
    assert_eq!(family.running(), ["p-1"]);
    let service = live(&family.0[1], "Service", "p").unwrap();
    assert_eq!(service["spec"]["selector"]["pkg.crossplane.io/revision"], "p-1", "given back");
    assert_eq!(lose(&mut family), "p-1");
}

/// The package that has the revisions now has another name than the one they were made for: an
/// automatic package gave way to it.
#[test]
fn h8_what_another_package_ran_is_handed_over_too() {
    let mut family = Family::upgraded(world());
    for world in &mut family.0 {
        let labels = &mut world.revision.metadata.labels;
        labels.insert("pkg.crossplane.io/package".to_owned(), "named".to_owned());
        world.revision.metadata.owner_references[0].name = "named".to_owned();
    }
    family.share();
    let told = family.look(0);
    assert!(told.starts_with("merge Deployment p-1"), "{told}");
    let before = live(&family.0[0], "Deployment", "p-1").unwrap();
    let mark = &before["metadata"]["annotations"]["pkg.crossplane.io/brought-by"];
    assert_eq!(mark, "provider.pkg.crossplane.io/named");
    assert_eq!(before["spec"]["replicas"], 1, "its pods stay for now");
    family.look(1);
    family.look(1);
    let service = live(&family.0[1], "Service", "named").unwrap();
    let pods = &before_selector(&family);
    assert_eq!(&service["spec"]["selector"], pods, "it leads to the pods that run");
    family.settles("");
    assert_eq!(family.running(), ["p-2"]);
    for (kind, name) in [("Deployment", "p-1"), ("ServiceAccount", "p-1"), ("Service", "p")] {
        assert!(live(&family.0[1], kind, name).is_none(), "{kind} {name}");
    }
    assert!(live(&family.0[1], "Service", "named").is_some());
    assert!(family.health(1).starts_with("True"));
}

fn before_selector(family: &Family) -> Json {
    live(&family.0[0], "Deployment", "p-1").unwrap()["spec"]["selector"]["matchLabels"].clone()
}
