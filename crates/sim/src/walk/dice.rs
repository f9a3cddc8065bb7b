//! What happens on a walk, as dice say.

use super::{MEDDLING, Step};
use crate::fault::{ANSWERS, At, CRASHES, Fault, Schedule};
use crate::scenarios::{HOST, IMAGE_CONFIGS, RUNTIME_CONFIGS, mirrored, path};
use crate::walk::ground::VERSIONS;
use http::Method;
use serde_json::{Value as Json, json};

/// The fewest and the most steps of a walk.
const STEPS: (usize, usize) = (3, 14);
/// The most packages that a walk is about.
const CAST_MAX: usize = 4;
/// The longest that anybody waits between two steps, in seconds.
const WAIT_MAX: usize = 90;
/// And if it is between any two.
const PAUSE_MAX: usize = 6;
/// Faults happen to one of so many calls.
const CALLS: usize = 60;

/// Numbers that look like chance, and are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.throw() % most.max(1) as u64).unwrap_or_default()
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// A package of users: kind, name, and images it may come from.
type Role = (&'static str, &'static str, &'static [&'static str]);

const PACKAGES: [Role; 7] = [
    (
        "Provider",
        "nop",
        &[
            "team/nop:v1.0.0",
            "team/nop:v1.1.0",
            "team/nop:v1.2.0",
            "team/nop:stable",
            "team/nop:v9.9.9",
            "elsewhere/nop:v1.1.0",
            "team/broken:v1.0.0",
        ],
    ),
    ("Provider", "other", &["other/nop:v1.0.0", "team/nop:v1.0.0"]),
    ("Function", "ready", &["team/ready:v1.0.0", "team/ready:v1.1.0"]),
    ("Configuration", "composes", &["team/composes:v1.0.0", "team/composes:v1.1.0"]),
    ("Configuration", "top", &["team/top:v1.0.0", "team/top:v2.0.0"]),
    ("Configuration", "side", &["team/side:v1.0.0"]),
    ("Configuration", "cycle", &["team/cycle:v1.0.0", "team/circle:v1.0.0"]),
];

/// What dice say for a seed.
pub fn steps(seed: u64) -> Vec<Step> {
    let mut dice = Dice(seed);
    let count = STEPS.0 + dice.below(STEPS.1 - STEPS.0 + 1);
    let cast: Vec<Role> = (0..=dice.below(CAST_MAX)).map(|_| *dice.one(&PACKAGES)).collect();
    let mut steps = vec![create(&mut dice, &cast)];
    while steps.len() < count {
        let step = match dice.below(20) {
            0..3 => create(&mut dice, &cast),
            3..9 => change(&mut dice, &cast),
            9 => {
                let (kind, name, _) = dice.one(&cast);
                let way = *dice.one(&["Background", "Foreground", "Orphan"]);
                Step::Ask(Method::DELETE, path(kind, name), json!({"propagationPolicy": way}))
            }
            10..13 => Step::Meddle(*dice.one(&MEDDLING), dice.below(100)),
            13 => Step::Move(dice.one::<&str>(&VERSIONS)),
            14 => match dice.below(3) {
                0 => mirror(&mut dice),
                _ => configure(&mut dice),
            },
            15 => Step::Restart,
            16 => Step::Rest,
            17 => Step::Wait(dice.below(WAIT_MAX) as u64),
            _ => {
                let faults: Vec<Fault> = CRASHES.into_iter().chain(ANSWERS).collect();
                let (at, fault) = (At::Call(dice.below(CALLS)), *dice.one(&faults));
                Step::Weather(Schedule { at, fault })
            }
        };
        steps.push(step);
        if dice.below(2) == 0 {
            steps.push(Step::Wait(dice.below(PAUSE_MAX) as u64));
        }
    }
    steps
}

/// What a user does after the walk of a seed: a package is installed, or comes from another image.
pub(super) fn next(seed: u64) -> Step {
    let mut dice = Dice(!seed);
    let (kind, name, images) = *dice.one(&PACKAGES);
    let image = format!("{HOST}/{}", dice.one(images));
    if dice.below(2) == 0 {
        return create(&mut dice, &[(kind, name, images)]);
    }
    Step::Ask(Method::PATCH, path(kind, name), json!({"spec": {"package": image}}))
}

fn create(dice: &mut Dice, cast: &[Role]) -> Step {
    let (kind, name, images) = dice.one(cast);
    let mut spec = json!({"package": format!("{HOST}/{}", dice.one(images))});
    if dice.below(3) == 0 {
        spec["revisionActivationPolicy"] = json!("Manual");
    }
    if dice.below(3) == 0 {
        spec["packagePullPolicy"] = json!("Always");
    }
    if dice.below(3) == 0 {
        spec["revisionHistoryLimit"] = json!(dice.below(3));
    }
    if dice.below(3) == 0 && *kind != "Configuration" {
        spec["runtimeConfigRef"] = json!({"name": "custom"});
    }
    let object = json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": kind,
        "metadata": {"name": name}, "spec": spec,
    });
    Step::Ask(Method::POST, path(kind, ""), object)
}

fn change(dice: &mut Dice, cast: &[Role]) -> Step {
    let (kind, name, images) = dice.one(cast);
    let patch = match dice.below(8) {
        0..4 => json!({"spec": {"package": format!("{HOST}/{}", dice.one(images))}}),
        4 => {
            let policy = dice.one(&["Manual", "Automatic"]);
            json!({"spec": {"revisionActivationPolicy": policy}})
        }
        5 => json!({"spec": {"revisionHistoryLimit": dice.below(3)}}),
        6 => {
            let paused = *dice.one(&[Some("true"), None]);
            json!({"metadata": {"annotations": {"crossplane.io/paused": paused}}})
        }
        _ => {
            let policy = dice.one(&["Always", "IfNotPresent"]);
            json!({"spec": {"packagePullPolicy": policy}})
        }
    };
    Step::Ask(Method::PATCH, path(kind, name), patch)
}

/// Images of `elsewhere/` are those of `team/`, or not any more.
fn mirror(dice: &mut Dice) -> Step {
    if dice.below(3) == 0 {
        return Step::Ask(Method::DELETE, format!("{IMAGE_CONFIGS}/mirror"), Json::Null);
    }
    Step::Ask(Method::POST, IMAGE_CONFIGS.to_owned(), mirrored())
}

/// How packages that name it are run, or not any more.
fn configure(dice: &mut Dice) -> Step {
    let path = RUNTIME_CONFIGS.to_owned();
    let container = json!({"name": "package-runtime", "args": ["--debug"]});
    let template = json!({"spec": {"containers": [container]}});
    let template = json!({"spec": {"selector": {}, "template": template}});
    let spec = json!({"deploymentTemplate": template});
    match dice.below(4) {
        0 => Step::Ask(Method::DELETE, format!("{path}/custom"), Json::Null),
        1 => Step::Ask(Method::PATCH, format!("{path}/custom"), json!({"spec": spec})),
        said => {
            let spec = if said == 2 { json!({}) } else { spec };
            let config = json!({
                "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig",
                "metadata": {"name": "custom"}, "spec": spec,
            });
            Step::Ask(Method::POST, path, config)
        }
    }
}
