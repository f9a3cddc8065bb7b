//! Packages that upstream's own tools built and pushed.

use super::Scenario;
use super::stage::Stage;
use crate::support::until;
use serde_json::json;

pub(super) const ALL: &[Scenario] = &[
    ("upstream's provider", a_provider_that_upstream_built_becomes_healthy),
    ("upstream's function", a_function_that_upstream_built_becomes_healthy),
];

fn a_provider_that_upstream_built_becomes_healthy(stage: &Stage) {
    let reference = stage.push_by_upstream("provider-nop", "v0.5.0");
    stage.install("Provider", "upstream-nop", &json!({"package": reference}));
    stage.installed("Provider", "upstream-nop");
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/\
                      nopresources.nop.crossplane.io";
    let definition = until("its kind is defined", || stage.ask(definition));
    let served = "/apis/nop.crossplane.io/v1alpha1/nopresources";
    until("its kind is served", || stage.ask(served));
    let owners = definition["metadata"]["ownerReferences"].as_array().unwrap();
    assert!(owners.iter().any(|one| one["name"] == "upstream-nop"), "{owners:?}");
}

fn a_function_that_upstream_built_becomes_healthy(stage: &Stage) {
    let reference = stage.push_by_upstream("function-auto-ready", "v0.6.0");
    stage.install("Function", "upstream-ready", &json!({"package": reference}));
    stage.installed("Function", "upstream-ready");
    let service = "/api/v1/namespaces/crossplane-system/services/upstream-ready";
    let service = until("it has a service", || stage.ask(service));
    assert_eq!(service["spec"]["ports"][0]["port"], 9443, "{service}");
}
