//! What works is not torn down before what follows is available.

use super::Scenario;
use super::dependencies::push;
use super::revisions::unhealthy;
use super::runtimes::{core, deployments, role};
use super::stage::{Stage, condition, packages};
use crate::support::until;
use serde_json::{Value as Json, json};

pub(super) const ALL: &[Scenario] = &[
    ("h2 a provider comes back", h2_a_provider_runs_again_if_the_next_one_does_not_start),
    ("h2 a function serves on", h2_a_function_serves_until_the_next_one_does),
    ("f15 what is needed runs first", f15_what_is_needed_runs_before_what_needs_it),
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
