//! Rollouts played to their end on objects in memory, with a law for each step.

use schema::object::{meta_text, time};
use serde_json::{Value, json};

use super::*;

/// A Deployment, its sets, and how many of their pods work.
struct Play {
    deployment: Value,
    sets: Vec<Value>,
    now: u64,
    /// Images whose pods never become ready.
    broken: Vec<&'static str>,
}

impl Play {
    fn new(replicas: i64, strategy: &Value) -> Self {
        let deployment = json!({
            "metadata": {"name": "d", "namespace": "n", "uid": "u", "generation": 1,
                "annotations": {"note": "kept", "kubectl.kubernetes.io/last-applied-configuration": "x"}},
            "spec": {
                "replicas": replicas, "strategy": strategy, "revisionHistoryLimit": 2,
                "progressDeadlineSeconds": 60, "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "c", "image": "i:1"}]}},
            },
        });
        Self { deployment, sets: Vec::new(), now: 1000, broken: Vec::new() }
    }

    fn rolling(replicas: i64, surge: i64, lack: i64) -> Self {
        let rolling = json!({"maxSurge": surge, "maxUnavailable": lack});
        Self::new(replicas, &json!({"type": "RollingUpdate", "rollingUpdate": rolling}))
    }

    fn change_image(&mut self, image: &str) {
        self.deployment["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    }

    fn plan(&self) -> RolloutPlan {
        let view = RolloutView {
            deployment: &self.deployment,
            sets: &self.sets,
            pods: &[],
            now: self.now,
        };
        plan_rollout(&view)
    }

    /// Takes one look, and does what it says; says whether that was anything.
    fn step(&mut self) -> bool {
        let plan = self.plan();
        let mut is_news = plan.status != self.deployment["status"];
        self.deployment["status"] = plan.status;
        if let Some(revision) = plan.revision {
            self.deployment["metadata"]["annotations"][REVISION] = json!(revision);
        }
        for action in plan.actions {
            is_news = true;
            match action {
                SetAction::Make(mut set) => {
                    set["metadata"]["uid"] = set["metadata"]["name"].clone();
                    set["metadata"]["creationTimestamp"] = json!(time::format(self.now));
                    self.sets.push(set);
                }
                SetAction::Amend { name, replicas, annotations, .. } => {
                    let set = self.sets.iter_mut().find(|set| meta_text(set, "name") == name);
                    let set = set.unwrap();
                    set["spec"]["replicas"] = json!(replicas);
                    set["metadata"]["annotations"] = json!(annotations);
                }
                SetAction::Delete { name, .. } => {
                    self.sets.retain(|set| meta_text(set, "name") != name);
                }
            }
        }
        self.now += 1;
        is_news
    }

    /// Each set gets what it wishes; pods work unless their image does not.
    fn run_pods(&mut self) -> bool {
        let before = self.sets.clone();
        for set in &mut self.sets {
            let size = set["spec"]["replicas"].clone();
            let image = set.pointer("/spec/template/spec/containers/0/image").unwrap();
            let is_broken = self.broken.iter().any(|one| image == one);
            let working = if is_broken { json!(0) } else { size.clone() };
            set["status"] =
                json!({"replicas": size, "readyReplicas": working, "availableReplicas": working});
        }
        before != self.sets
    }

    /// Plays to the end; holds each moment to a law.
    fn settle(&mut self, law: impl Fn(&Self)) {
        for _ in 0..500 {
            let stepped = self.step();
            law(self);
            let ran = self.run_pods();
            law(self);
            if !stepped && !ran {
                return;
            }
        }
        panic!("no end of it: {:#}", self.deployment);
    }

    fn total(&self, pointer: &str) -> i64 {
        self.sets.iter().map(|set| count_at(set, pointer)).sum()
    }

    fn reason(&self, kind: &str) -> String {
        let list = self.deployment["status"]["conditions"].as_array().unwrap();
        crate::condition::reason_of(list, kind).to_owned()
    }

    fn sizes(&self) -> Vec<i64> {
        self.sets.iter().map(|set| count_at(set, "/spec/replicas")).collect()
    }
}

#[test]
fn a_new_deployment_gets_a_set_that_is_named_after_its_template() {
    let mut play = Play::rolling(3, 1, 1);
    play.settle(|_| {});
    let set = &play.sets[0];
    let hash = text_at(set, "/metadata/labels/pod-template-hash");
    assert_eq!(meta_text(set, "name"), format!("d-{hash}"));
    assert_eq!(text_at(set, "/spec/selector/matchLabels/pod-template-hash"), hash);
    assert_eq!(text_at(set, "/spec/template/metadata/labels/pod-template-hash"), hash);
    assert_eq!(set["metadata"]["ownerReferences"][0]["uid"], "u");
    assert_eq!(
        set["metadata"]["annotations"],
        json!({"note": "kept", REVISION: "1", "deployment.kubernetes.io/desired-replicas": "3",
            "deployment.kubernetes.io/max-replicas": "4"})
    );
    assert_eq!(play.deployment["status"]["availableReplicas"], 3);
    assert_eq!(play.reason("Progressing"), "NewReplicaSetAvailable");
    assert_eq!(play.reason("Available"), "MinimumReplicasAvailable");
}

#[test]
fn a_rolling_update_never_has_too_many_or_too_few_pods() {
    for (replicas, surge, lack) in [(1, 1, 0), (3, 1, 0), (4, 0, 1), (10, 3, 2), (5, 0, 0)] {
        let mut play = Play::rolling(replicas, surge, lack);
        play.settle(|_| {});
        play.change_image("i:2");
        let lack = if surge + lack == 0 { 1 } else { lack };
        play.settle(|play| {
            assert!(play.total("/spec/replicas") <= replicas + surge, "{:?}", play.sizes());
            let available = play.total("/status/availableReplicas");
            assert!(available >= replicas - lack, "{available} of {replicas}");
        });
        assert_eq!(play.sizes(), [0, replicas]);
        assert_eq!(play.deployment["metadata"]["annotations"][REVISION], "2");
    }
}

#[test]
fn what_does_not_start_leaves_what_works_and_misses_its_deadline() {
    let mut play = Play::rolling(4, 1, 1);
    play.settle(|_| {});
    play.broken = vec!["i:2"];
    play.change_image("i:2");
    play.settle(|play| assert!(play.total("/status/availableReplicas") >= 3));
    assert_eq!(play.reason("Progressing"), "ReplicaSetUpdated");
    play.now = play.plan().again_at.expect("a deadline to look at");
    play.settle(|_| {});
    assert_eq!(play.reason("Progressing"), "ProgressDeadlineExceeded");
    assert_eq!(play.reason("Available"), "MinimumReplicasAvailable");
    play.change_image("i:1");
    play.settle(|play| assert!(play.total("/status/availableReplicas") >= 3));
    assert_eq!((play.sizes(), play.sets.len()), (vec![4, 0], 2), "the way back uses the old set");
    let annotations = &play.sets[0]["metadata"]["annotations"];
    assert_eq!(
        (&annotations[REVISION], annotations["deployment.kubernetes.io/revision-history"].as_str()),
        (&json!("3"), Some("1"))
    );
    assert_eq!(play.reason("Progressing"), "NewReplicaSetAvailable");
}

#[test]
fn recreate_never_has_two_templates_at_once() {
    let mut play = Play::new(2, &json!({"type": "Recreate"}));
    play.settle(|_| {});
    play.change_image("i:2");
    play.settle(|play| {
        let active = play.sets.iter().filter(|set| count_at(set, "/status/replicas") > 0);
        assert!(active.count() <= 1, "{:?}", play.sizes());
    });
    assert_eq!(play.sizes(), [0, 2]);
}

#[test]
fn recreate_waits_for_pods_that_still_end() {
    let mut play = Play::new(1, &json!({"type": "Recreate"}));
    play.settle(|_| {});
    play.change_image("i:2");
    play.step();
    play.run_pods();
    let ending = json!({"metadata": {"ownerReferences": [{"uid": play.sets[0]["metadata"]["uid"], "controller": true}]}});
    let pods = [ending];
    let view = RolloutView { deployment: &play.deployment, sets: &play.sets, pods: &pods, now: 0 };
    assert_eq!(plan_rollout(&view).actions, []);
    assert!(matches!(play.plan().actions[..], [SetAction::Make(_)]));
}

#[test]
fn a_paused_deployment_is_scaled_and_not_rolled_out() {
    let mut play = Play::rolling(2, 1, 0);
    play.settle(|_| {});
    play.deployment["spec"]["paused"] = json!(true);
    play.change_image("i:2");
    play.deployment["spec"]["replicas"] = json!(5);
    play.settle(|_| {});
    assert_eq!(play.sizes(), [5]);
    assert_eq!(play.reason("Progressing"), "DeploymentPaused");
    play.deployment["spec"]["paused"] = json!(false);
    play.settle(|_| {});
    assert_eq!(play.sizes(), [0, 5]);
    assert_eq!(play.reason("Progressing"), "NewReplicaSetAvailable");
}

#[test]
fn a_scaled_deployment_keeps_its_set_and_zero_is_a_number() {
    let mut play = Play::rolling(2, 1, 0);
    play.settle(|_| {});
    for size in [7, 0, 1] {
        play.deployment["spec"]["replicas"] = json!(size);
        play.settle(|_| {});
        assert_eq!(play.sizes(), [size]);
        let told =
            play.sets[0]["metadata"]["annotations"]["deployment.kubernetes.io/desired-replicas"]
                .clone();
        assert_eq!(told, if size == 0 { json!("0") } else { json!(size.to_string()) });
    }
}

#[test]
fn scaling_in_the_middle_of_a_rollout_keeps_the_shares() {
    let mut play = Play::rolling(10, 2, 2);
    play.settle(|_| {});
    play.broken = vec!["i:2"];
    play.change_image("i:2");
    play.settle(|_| {});
    let before = play.sizes();
    play.deployment["spec"]["replicas"] = json!(20);
    play.step();
    let after = play.sizes();
    assert_eq!(after.iter().sum::<i64>(), 22, "{before:?} {after:?}");
    assert!(after[0] > before[0] && after[1] > before[1], "{before:?} {after:?}");
}

#[test]
fn scaling_to_nothing_in_the_middle_of_a_rollout_leaves_none_of_either_template() {
    for rolling in [json!({"maxSurge": "25%", "maxUnavailable": "25%"}), json!({"maxSurge": 1})] {
        let mut play =
            Play::new(1, &json!({"type": "RollingUpdate", "rollingUpdate": rolling.clone()}));
        play.settle(|_| {});
        play.broken = vec!["i:2"];
        play.change_image("i:2");
        play.settle(|_| {});
        assert_eq!(play.sizes(), [1, 1]);
        play.deployment["spec"]["replicas"] = json!(0);
        play.settle(|_| {});
        assert_eq!(play.sizes(), [0, 0], "{rolling}");
    }
}

#[test]
fn what_is_left_over_goes_to_the_newer_of_two_equal_sets_and_is_taken_from_the_older() {
    for (size, expected) in [(7, [3, 4]), (3, [1, 2])] {
        let mut play = Play::rolling(4, 0, 2);
        play.settle(|_| {});
        play.broken = vec!["i:2"];
        play.change_image("i:2");
        play.settle(|_| {});
        assert_eq!(play.sizes(), [2, 2]);
        play.deployment["spec"]["replicas"] = json!(size);
        play.step();
        assert_eq!(play.sizes(), expected, "{size}");
    }
}

/// A Deployment of 250 letters said nothing, since its set had no name that can be.
#[test]
fn a_set_has_a_name_however_long_that_of_its_deployment_is() {
    let mut play = Play::rolling(1, 1, 0);
    for length in [10, 250, 253] {
        let name = "d".repeat(length);
        play.deployment["metadata"]["name"] = json!(name);
        let [SetAction::Make(set)] = &play.plan().actions[..] else { panic!("no set") };
        let hash = text_at(set, "/metadata/labels/pod-template-hash");
        let kept = length.min(253 - 1 - hash.len());
        assert_eq!(meta_text(set, "name"), format!("{}-{hash}", &name[..kept]));
        assert_eq!(set["metadata"]["ownerReferences"][0]["name"], json!(name));
    }
}

#[test]
fn a_set_that_is_refused_is_told_once() {
    let mut play = Play::rolling(1, 1, 0);
    let look = |play: &Play| {
        let RolloutPlan { mut status, .. } = play.plan();
        let Play { deployment, sets, now, .. } = play;
        let view = RolloutView { deployment, sets, pods: &[], now: *now };
        note_refused_set(&mut status, &view, "d-x", "it is odd");
        status
    };
    play.deployment["status"] = look(&play);
    assert_eq!(play.reason("Progressing"), "ReplicaSetCreateError");
    let conditions = play.deployment["status"]["conditions"].as_array().unwrap();
    let told = conditions.iter().find(|one| one["type"] == "Progressing").unwrap();
    assert_eq!(
        (&told["status"], &told["message"]),
        (&json!("False"), &json!("Failed to create new replica set \"d-x\": it is odd"))
    );
    assert_eq!(play.deployment["status"]["observedGeneration"], 1);
    play.now += 100;
    assert_eq!(look(&play), play.deployment["status"], "another try is no news");
    play.settle(|_| {});
    assert_eq!(play.reason("Progressing"), "NewReplicaSetAvailable");
}

#[test]
fn the_set_of_a_new_template_is_made_before_others_are_changed() {
    let mut play = Play::rolling(2, 1, 1);
    play.broken = vec!["i:1"];
    play.settle(|_| {});
    play.change_image("i:2");
    assert!(matches!(play.plan().actions[..], [SetAction::Make(_), ..]));
}

#[test]
fn only_as_many_old_templates_are_kept_as_are_wished() {
    let mut play = Play::rolling(1, 1, 0);
    for image in ["i:1", "i:2", "i:3", "i:4", "i:5"] {
        play.change_image(image);
        play.settle(|_| {});
    }
    assert_eq!(play.sizes(), [0, 0, 1]);
    assert_eq!(play.deployment["metadata"]["annotations"][REVISION], "5");
}

#[test]
fn a_deployment_that_goes_makes_nothing() {
    let mut play = Play::rolling(3, 1, 0);
    play.deployment["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(play.plan().actions, []);
}

#[test]
fn a_set_of_another_owner_or_template_under_the_name_is_a_collision() {
    let mut play = Play::rolling(1, 1, 0);
    play.settle(|_| {});
    assert!(!is_collision(&play.sets[0], &play.deployment));
    let name = play.sets[0]["metadata"]["name"].clone();
    play.deployment["status"]["collisionCount"] = json!(1);
    play.sets.clear();
    let [SetAction::Make(other)] = &play.plan().actions[..] else { panic!("no set") };
    assert_ne!(other["metadata"]["name"], name);
    play.deployment["metadata"]["uid"] = json!("another");
    assert!(is_collision(other, &play.deployment));
}

#[test]
fn a_set_that_cannot_make_pods_tells_its_deployment_why() {
    let mut play = Play::rolling(1, 1, 0);
    play.settle(|_| {});
    let why = json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
        "message": "there is no account"}]);
    play.sets[0]["status"]["conditions"] = why;
    play.step();
    assert_eq!(play.reason("ReplicaFailure"), "FailedCreate");
    play.sets[0]["status"]["conditions"] = json!([]);
    play.step();
    assert_eq!(play.reason("ReplicaFailure"), "");
}

#[test]
fn pods_that_end_are_summed_over_all_sets_unless_one_does_not_tell() {
    let mut play = Play::rolling(1, 1, 0);
    let told = |play: &Play| play.plan().status.get("terminatingReplicas").cloned();
    assert_eq!(told(&play), Some(json!(0)), "without sets");
    play.settle(|_| {});
    play.change_image("i:2");
    play.settle(|_| {});
    assert_eq!(play.sets.len(), 2);
    assert_eq!(told(&play), Some(json!(0)), "no controller has seen the sets");
    let status = |ending: Value| json!({"observedGeneration": 1, "terminatingReplicas": ending});
    play.sets[0]["status"] = status(json!(2));
    assert_eq!(told(&play), Some(json!(2)));
    play.sets[1]["status"] = status(json!(1));
    assert_eq!(told(&play), Some(json!(3)));
    play.deployment["status"]["terminatingReplicas"] = json!(3);
    play.sets[1]["status"] = json!({"observedGeneration": 1});
    assert_eq!(told(&play), None, "a controller that does not count them");
}

/// Pods whose images have no program are told of as long as they are there, and no longer.
#[test]
fn a_deployment_says_that_nothing_of_it_runs_while_its_pods_say_so() {
    let mut play = Play::rolling(1, 1, 0);
    while play.step() {}
    let pod = |phase: &str, status: &str| {
        let said =
            json!({"type": "Simulated", "status": status, "reason": "NoProgram", "message": "m"});
        json!({"status": {"phase": phase, "conditions": [said]}})
    };
    let told = |play: &mut Play, pods: &[Value]| {
        let Play { deployment, sets, now, .. } = &*play;
        let status = plan_rollout(&RolloutView { deployment, sets, pods, now: *now }).status;
        play.deployment["status"] = status;
        let found = find_condition(&play.deployment, SIMULATED);
        found.map(|one| (one["status"].clone(), one["reason"].clone(), one["message"].clone()))
    };
    let says = Some((json!("True"), json!("NoProgram"), json!("m")));
    assert_eq!(told(&mut play, &[]), None);
    assert_eq!(told(&mut play, &[pod("Running", "True")]), says);
    assert_eq!(told(&mut play, &[pod("Running", "True")]), says, "and again");
    // What else was said stays: these pods are there.
    assert!(find_condition(&play.deployment, "Progressing").is_some());
    for pods in [vec![pod("Failed", "True")], vec![pod("Running", "False")], Vec::new()] {
        assert_eq!(told(&mut play, &[pod("Running", "True")]), says);
        assert_eq!(told(&mut play, &pods), None);
    }
}
