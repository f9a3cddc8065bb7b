//! What works is not torn down before what follows is available.

use super::Scenario;
use super::dependencies::push;
use super::revisions::{path, unhealthy};
use super::runtimes::{core, deployments, role};
use super::stage::{Stage, condition, packages};
use crate::support::until;
use serde_json::{Value as Json, json};

pub(super) const ALL: &[Scenario] = &[
    ("h2 a provider comes back", h2_a_provider_runs_again_if_the_next_one_does_not_start),
    ("h2 a function serves on", h2_a_function_serves_until_the_next_one_does),
    ("f15 what is needed runs first", f15_what_is_needed_runs_before_what_needs_it),
    ("h8 what was brought gives way", h8_what_was_brought_gives_way_to_what_is_installed_by_name),
];

const CONFIGS: &str = "/apis/pkg.crossplane.io/v1beta1/deploymentruntimeconfigs";

/// Makes a runtime configuration under which no pod ever comes: the rollout is paused.
fn stuck(stage: &Stage, name: &str) {
    let spec = json!({
        "selector": {}, "template": {}, "paused": true, "progressDeadlineSeconds": 2,
    });
    let config = json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig",
        "metadata": {"name": name}, "spec": {"deploymentTemplate": {"spec": spec}},
    });
    stage.make(CONFIGS, &config);
}

fn active(stage: &Stage, kind: &str, name: &str, number: i64) -> String {
    until(&format!("{name} has the active revision {number}"), || {
        let all = stage.revisions(kind, name);
        all.into_iter().find(|one| one.1 == "Active" && one.0 == number).map(|one| one.2)
    })
}

fn pods(stage: &Stage, deployment: &str) -> Option<i64> {
    stage.ask(&deployments(deployment))?["spec"]["replicas"].as_i64()
}

fn healthy(stage: &Stage, kind: &str, name: &str, revision: &str) {
    until("its Deployment is there", || stage.ask(&deployments(revision)));
    stage.make_available(&deployments(revision));
    stage.condition(kind, name, "Healthy", "True", "HealthyPackageRevision");
}

fn leads_to(stage: &Stage, service: &str) -> Json {
    let service = stage.ask(&core("services", service)).unwrap();
    service["spec"]["selector"]["pkg.crossplane.io/revision"].clone()
}

fn h2_a_provider_runs_again_if_the_next_one_does_not_start(stage: &Stage) {
    let (kind, name) = ("Provider", "swaps");
    let reference = stage.push_provider(name, "v1.0.0", &json!({}));
    stage.install(kind, name, &json!({"package": reference}));
    let first = active(stage, kind, name, 1);
    healthy(stage, kind, name, &first);
    until("its role is there", || stage.ask(&role(&first)));
    stuck(stage, "swaps-stuck");
    let reference = stage.push_provider(name, "v2.0.0", &json!({}));
    let next = json!({"package": reference, "runtimeConfigRef": {"name": "swaps-stuck"}});
    stage.merge(kind, name, &json!({"spec": next}));
    let second = active(stage, kind, name, 2);
    let path = format!("{}/{second}", packages("ProviderRevision"));
    let said = until("the next one is given up", || {
        let told = condition(&stage.ask(&path)?, "RuntimeHealthy")?;
        let message = told["message"].as_str().unwrap_or_default().to_owned();
        message.contains("runs again").then_some(message)
    });
    assert!(said.contains(&format!("{second} was not available within 2 s, so {first}")), "{said}");
    assert!(said.contains("apron rollback swaps"), "{said}");
    until("the one before has its pods again", || {
        (pods(stage, &first) == Some(1) && pods(stage, &second) == Some(0)).then_some(())
    });
    for path in [core("serviceaccounts", &first), role(&first)] {
        assert!(stage.ask(&path).is_some(), "{path}");
    }
    assert_eq!(leads_to(stage, name), *first);
    // A change of the spec tries again.
    stage.merge(kind, name, &json!({"spec": {"runtimeConfigRef": {"name": "default"}}}));
    until("the next one has its pods", || (pods(stage, &second) == Some(1)).then_some(()));
    assert_ne!(pods(stage, &first), Some(1));
    healthy(stage, kind, name, &second);
    for path in [deployments(&first), core("serviceaccounts", &first), role(&first)] {
        until(&format!("{path} is gone"), || stage.is_absent(&path).then_some(()));
    }
    assert_eq!(leads_to(stage, name), *second);
}

fn h2_a_function_serves_until_the_next_one_does(stage: &Stage) {
    let (kind, name) = ("Function", "relays");
    let reference = stage.push(kind, name, "v1.0.0");
    stage.install(kind, name, &json!({"package": reference}));
    let first = active(stage, kind, name, 1);
    healthy(stage, kind, name, &first);
    stuck(stage, "relays-stuck");
    let reference = stage.push(kind, name, "v2.0.0");
    let next = json!({"package": reference, "runtimeConfigRef": {"name": "relays-stuck"}});
    stage.merge(kind, name, &json!({"spec": next}));
    let second = active(stage, kind, name, 2);
    let path = format!("{}/{second}", packages("FunctionRevision"));
    until("the next one says that it does not run", || {
        let told = condition(&stage.ask(&path)?, "RuntimeHealthy")?;
        let message = told["message"].as_str().unwrap_or_default();
        stage.ask(&deployments(&second))?;
        message.contains("deployment").then_some(())
    });
    assert_eq!(pods(stage, &first), Some(1));
    assert_eq!(leads_to(stage, name), *first);
    stage.merge(kind, name, &json!({"spec": {"runtimeConfigRef": {"name": "default"}}}));
    until("the next one is not held up", || {
        stage.ask(&deployments(&second))?["spec"]["paused"].is_null().then_some(())
    });
    healthy(stage, kind, name, &second);
    until("the one before is gone", || stage.is_absent(&deployments(&first)).then_some(()));
    assert_eq!(leads_to(stage, name), *second);
}

/// On a real server nothing runs, so its manager was told not to wait for that.
fn f15_what_is_needed_runs_before_what_needs_it(stage: &Stage) {
    if stage.is_real() {
        return;
    }
    stuck(stage, "awaited-stuck");
    let needed = stage.push_provider("awaited", "v1.0.0", &json!({}));
    let spec = json!({"package": needed, "runtimeConfigRef": {"name": "awaited-stuck"}});
    stage.install("Provider", "awaited", &spec);
    active(stage, "Provider", "awaited", 1);
    let needs = [("provider", "awaited", ">=v1.0.0")];
    let needing = push(stage, "Configuration", "awaits", "v1.0.0", &needs);
    stage.install("Configuration", "awaits", &json!({"package": needing}));
    let said = unhealthy(stage, "Configuration", "awaits", "it does not run yet");
    assert!(said.contains("waiting for dependencies: "), "{said}");
    let awaits = stage.package("Configuration", "awaits");
    assert_ne!(condition(&awaits, "Installed").unwrap()["status"], "True", "{awaits}");
    let change = json!({"spec": {"runtimeConfigRef": {"name": "default"}}});
    stage.merge("Provider", "awaited", &change);
    stage.installed("Configuration", "awaits");
    stage.installed("Provider", "awaited");
}

/// The controller among the owners of an object.
fn controller(object: &Json) -> Option<String> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let controls = owners.iter().find(|one| one["controller"] == true)?;
    controls["name"].as_str().map(str::to_owned)
}

fn h8_what_was_brought_gives_way_to_what_is_installed_by_name(stage: &Stage) {
    let (kind, brought, named) = ("Provider", "yields", "yields-by-name");
    let reference = stage.push_provider(brought, "v1.0.0", &json!({}));
    let needs = [("provider", brought, ">=v1.0.0")];
    let needing = push(stage, "Configuration", "yields-user", "v1.0.0", &needs);
    stage.install("Configuration", "yields-user", &json!({"package": needing}));
    stage.installed(kind, brought);
    stage.installed("Configuration", "yields-user");
    let first = active(stage, kind, brought, 1);
    let group = "yields.example.org";
    let definition = path(&format!("things.{group}"));
    let defined = stage.ask(&definition).unwrap();
    let things = format!("/apis/{group}/v1/things");
    until("its kind is served", || stage.ask(&things));
    let object = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Things", "metadata": {"name": "precious"},
    });
    let object = stage.change("POST", &things, "application/json", &object);
    // What somebody asks for and cannot be had takes nothing away.
    let missing = stage.registry.reference(&format!("{brought}:v9.9.9"));
    stage.install(kind, named, &json!({"package": missing}));
    until("it says what it cannot have", || {
        let said = condition(&stage.package(kind, named), "Installed")?;
        said["message"].as_str()?.contains("v9.9.9").then_some(())
    });
    stage.installed(kind, brought);
    // A rehearsal tells, and the manager does it.
    let plan = stage.apron(&["plan", named, "v1.0.0"]);
    assert!(plan.stdout.contains("takes the place of yields"), "{}", plan.all());
    stage.merge(kind, named, &json!({"spec": {"package": reference}}));
    let package = format!("{}/{brought}", packages(kind));
    until("the package that was brought is gone", || {
        let own = stage.revisions(kind, named).into_iter().find(|one| one.1 == "Active")?.2;
        if stage.ask(&deployments(&own)).is_some_and(|it| it["spec"]["replicas"] == 1) {
            stage.make_available(&deployments(&own));
        }
        stage.is_absent(&package).then_some(())
    });
    stage.installed(kind, named);
    stage.installed("Configuration", "yields-user");
    let own = active(stage, kind, named, 3);
    let numbers: Vec<(i64, String)> =
        stage.revisions(kind, named).into_iter().map(|one| (one.0, one.2)).collect();
    assert_eq!(numbers, [(2, first.clone()), (3, own.clone())]);
    let now = stage.ask(&definition).unwrap();
    assert_eq!(now["metadata"]["uid"], defined["metadata"]["uid"], "nothing was torn down");
    assert_eq!(controller(&now), Some(own.clone()));
    let still = stage.ask(&format!("{things}/precious")).unwrap();
    assert_eq!(still["metadata"]["uid"], object["metadata"]["uid"]);
    for path in [deployments(&first), core("serviceaccounts", &first), core("services", brought)] {
        until(&format!("{path} is gone"), || stage.is_absent(&path).then_some(()));
    }
    assert_eq!(leads_to(stage, named), *own);
    // The collector has seen by then that an owner is gone, and that others are there.
    until("the definition has forgotten the package that went", || {
        let owners = stage.ask(&definition)?["metadata"]["ownerReferences"].clone();
        let owners = owners.as_array()?.clone();
        (!owners.iter().any(|one| one["name"] == brought)).then_some(())
    });
    assert!(stage.ask(&format!("{things}/precious")).is_some());
    let lock = stage.ask("/apis/pkg.crossplane.io/v1beta1/locks/lock").unwrap();
    let owner = &lock["customResourceDefinitions"][format!("things.{group}")];
    assert_eq!(*owner, format!("{kind}/{named}"));
    let why = stage.apron(&["why", named]).ok().stdout;
    assert!(why.contains("somebody installed it by name, too"), "{why}");
}
