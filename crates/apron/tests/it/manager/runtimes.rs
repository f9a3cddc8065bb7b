//! Packages that run: Deployments, certificates and roles come with them and go with them.

use super::Scenario;
use super::stage::{Stage, condition, packages};
use crate::support::until;
use serde_json::{Value as Json, json};

pub(super) const ALL: &[Scenario] = &[
    ("healthy when available", a_provider_is_healthy_once_its_deployment_is_available),
    ("configuration rolls", a_change_of_the_runtime_configuration_rolls),
    ("inactive leaves nothing", an_inactive_revision_leaves_nothing_that_runs),
    ("a refused upgrade stops nothing", a_refused_upgrade_stops_nothing),
    ("an account keeps what it was given", an_account_keeps_what_it_was_given),
    ("certificates", certificates_follow_their_authority_and_the_service),
    ("what is added goes", what_is_added_to_a_selector_or_a_rule_goes_again),
    ("no rights", a_provider_without_its_rights_is_not_healthy),
    ("permissions", a_package_that_asks_for_too_much_waits_until_it_is_allowed),
];

const NAMESPACE: &str = "crossplane-system";
const MERGE: &str = "application/merge-patch+json";

pub(super) fn deployments(name: &str) -> String {
    format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}")
}

pub(super) fn core(plural: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/{plural}/{name}")
}

pub(super) fn role(revision: &str) -> String {
    let name = format!("crossplane%3Aprovider%3A{revision}%3Asystem");
    format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}")
}

/// Installs a provider that brings a kind, and gives the name of its active revision.
fn install(stage: &Stage, name: &str, version: &str, spec: &Json) -> String {
    let reference = stage.push_provider(name, version, spec);
    stage.install("Provider", name, &json!({"package": reference}));
    active(stage, name)
}

fn active(stage: &Stage, name: &str) -> String {
    until(&format!("{name} has an active revision"), || {
        let all = stage.revisions("Provider", name);
        all.into_iter().find(|one| one.1 == "Active").map(|one| one.2)
    })
}

fn healthy(stage: &Stage, name: &str, revision: &str) {
    stage.make_available(&deployments(revision));
    stage.condition("Provider", name, "Healthy", "True", "HealthyPackageRevision");
}

fn a_provider_is_healthy_once_its_deployment_is_available(stage: &Stage) {
    let reference = stage.push_provider("runs", "v1.0.0", &json!({}));
    let account = json!({"annotations": {"example.org/role": "reader"}});
    stage.install("Provider", "runs", &json!({"package": reference, "serviceAccount": account}));
    let revision = active(stage, "runs");
    let deployment = until("its Deployment is there", || stage.ask(&deployments(&revision)));
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    assert!(image.as_str().unwrap().contains("runs:v1.0.0@sha256:"), "{image}");
    if stage.is_real() {
        let path = format!("{}/{revision}", packages("ProviderRevision"));
        let said = until("the runtime waits for its Deployment", || {
            let told = condition(&stage.ask(&path)?, "RuntimeHealthy")?;
            let message = told["message"].as_str().unwrap_or_default().to_owned();
            message.contains("Available").then_some((told["status"].clone(), message))
        });
        assert_eq!(said.0, "False", "{}", said.1);
    }
    healthy(stage, "runs", &revision);
    assert!(stage.ask(&core("services", "runs")).is_some());
    // D32: what the package says of its account is there.
    let account = stage.ask(&core("serviceaccounts", &revision)).unwrap();
    assert_eq!(account["metadata"]["annotations"]["example.org/role"], "reader", "{account}");
    // D45: the revision names its controller.
    until("the revision names its Deployment", || {
        let named = stage.package("ProviderRevision", &revision)["status"]["controllerRef"].clone();
        let expected = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "namespace": NAMESPACE, "name": revision,
        });
        (named == expected).then_some(())
    });
    until("the controller may use its kinds", || {
        let role = stage.ask(&role(&revision))?;
        role.to_string().contains("runs.example.org").then_some(())
    });
}

fn a_change_of_the_runtime_configuration_rolls(stage: &Stage) {
    let reference = stage.push_provider("rolls", "v1.0.0", &json!({}));
    let config = json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig",
        "metadata": {"name": "rolls"},
    });
    let path = "/apis/pkg.crossplane.io/v1beta1/deploymentruntimeconfigs";
    stage.change("POST", path, "application/json", &config);
    let spec = json!({"package": reference, "runtimeConfigRef": {"name": "rolls"}});
    stage.install("Provider", "rolls", &spec);
    let revision = active(stage, "rolls");
    until("its Deployment is there", || stage.ask(&deployments(&revision)));
    healthy(stage, "rolls", &revision);
    let template = |args: Json| {
        let container = json!({"name": "package-runtime", "args": args});
        let template = json!({"spec": {"containers": [container]}});
        json!({"spec": {"deploymentTemplate": {"spec": {"selector": {}, "template": template}}}})
    };
    for args in [json!(["--one"]), json!(["--two"]), Json::Null] {
        stage.change("PATCH", &format!("{path}/rolls"), MERGE, &template(args.clone()));
        until(&format!("its arguments are {args}"), || {
            let deployment = stage.ask(&deployments(&revision))?;
            let container = &deployment["spec"]["template"]["spec"]["containers"][0];
            (container["args"] == args).then_some(())
        });
    }
}

fn an_inactive_revision_leaves_nothing_that_runs(stage: &Stage) {
    let first = install(stage, "goes", "v1.0.0", &json!({}));
    until("its Deployment is there", || stage.ask(&deployments(&first)));
    healthy(stage, "goes", &first);
    until("its role is there", || stage.ask(&role(&first)));
    let reference = stage.push_provider("goes", "v2.0.0", &json!({}));
    stage.merge("Provider", "goes", &json!({"spec": {"package": reference}}));
    stage.states("Provider", "goes", &[(1, "Inactive"), (2, "Active")]);
    let second = active(stage, "goes");
    until("the next one's Deployment is there", || stage.ask(&deployments(&second)));
    healthy(stage, "goes", &second);
    for path in [deployments(&first), core("serviceaccounts", &first), role(&first)] {
        until(&format!("{path} is gone"), || stage.is_absent(&path).then_some(()));
    }
    let service = stage.ask(&core("services", "goes")).unwrap();
    assert_eq!(service["spec"]["selector"]["pkg.crossplane.io/revision"], *second);
}

/// What runs is what can: it goes on while the next revision cannot have its objects.
fn a_refused_upgrade_stops_nothing(stage: &Stage) {
    let first = install(stage, "steady", "v1.0.0", &json!({}));
    let before = until("its Deployment is there", || stage.ask(&deployments(&first)));
    healthy(stage, "steady", &first);
    until("its role is there", || stage.ask(&role(&first)));
    let was = stage.package("Provider", "steady")["spec"]["package"].clone();
    let ahead = json!({"crossplane": {"version": ">=v99.0.0"}});
    let reference = stage.push_provider("steady", "v2.0.0", &ahead);
    stage.merge("Provider", "steady", &json!({"spec": {"package": reference}}));
    stage.states("Provider", "steady", &[(1, "Inactive"), (2, "Active")]);
    let second = active(stage, "steady");
    let path = format!("{}/{second}", packages("ProviderRevision"));
    until("the next one says that it cannot run", || {
        let told = condition(&stage.ask(&path)?, "RuntimeHealthy")?;
        (told["status"] == "False").then_some(())
    });
    stage.merge("Provider", "steady", &json!({"spec": {"package": was}}));
    stage.states("Provider", "steady", &[(2, "Inactive"), (3, "Active")]);
    stage.condition("Provider", "steady", "Healthy", "True", "HealthyPackageRevision");
    // The same Deployment and the same role all the time, found by the same name.
    let after = stage.ask(&deployments(&first)).unwrap();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    for path in [core("serviceaccounts", &first), role(&first)] {
        let made = &stage.ask(&path).unwrap()["metadata"]["generation"];
        assert!(made.is_null() || *made == 1, "{path} was made again");
    }
    let service = stage.ask(&core("services", "steady")).unwrap();
    assert_eq!(service["spec"]["selector"]["pkg.crossplane.io/revision"], *first);
    assert!(stage.is_absent(&deployments(&second)));
}

fn an_account_keeps_what_it_was_given(stage: &Stage) {
    let revision = install(stage, "given", "v1.0.0", &json!({}));
    until("its Deployment is there", || stage.ask(&deployments(&revision)));
    let account = core("serviceaccounts", &revision);
    let theirs = json!({"imagePullSecrets": [{"name": "theirs"}]});
    stage.change("PATCH", &account, MERGE, &theirs);
    stage.secret("given-pull", ".dockerconfigjson", r#"{"auths": {}}"#);
    let ours = json!({"spec": {"packagePullSecrets": [{"name": "given-pull"}]}});
    stage.merge("Provider", "given", &ours);
    until("it has both", || {
        let seen = stage.ask(&account)?["imagePullSecrets"].clone();
        (seen == json!([{"name": "theirs"}, {"name": "given-pull"}])).then_some(())
    });
}

fn what_is_added_to_a_selector_or_a_rule_goes_again(stage: &Stage) {
    let revision = install(stage, "strict", "v1.0.0", &json!({}));
    until("its Deployment is there", || stage.ask(&deployments(&revision)));
    healthy(stage, "strict", &revision);
    let (service, role) = (core("services", "strict"), role(&revision));
    let rules = until("its role has rules", || {
        let rules = stage.ask(&role)?["rules"].clone();
        rules.is_array().then_some(rules)
    });
    let selector = stage.ask(&service).unwrap()["spec"]["selector"].clone();
    stage.change("PATCH", &service, MERGE, &json!({"spec": {"selector": {"tier": "none"}}}));
    let mut narrow = rules.clone();
    narrow[0]["resourceNames"] = json!(["one"]);
    stage.change("PATCH", &role, MERGE, &json!({"rules": narrow}));
    until("the service selects the provider's pods", || {
        (stage.ask(&service)?["spec"]["selector"] == selector).then_some(())
    });
    until("the rules are not about some names alone", || {
        (stage.ask(&role)?["rules"] == rules).then_some(())
    });
}

fn certificates_follow_their_authority_and_the_service(stage: &Stage) {
    let revision = install(stage, "keys", "v1.0.0", &json!({}));
    let secret = core("secrets", "keys-tls-server");
    let field = |name: &str| -> Option<String> {
        let text = stage.ask(&secret)?["data"][name].as_str()?.to_owned();
        (!text.is_empty()).then_some(text)
    };
    let before = until("its certificate is there", || field("tls.crt"));
    until("its Deployment is there", || stage.ask(&deployments(&revision)));
    let print = || -> Option<Json> {
        let deployment = stage.ask(&deployments(&revision))?;
        let annotations = &deployment["spec"]["template"]["metadata"]["annotations"];
        Some(annotations["pkg.crossplane.io/certificates"].clone())
    };
    let printed = print();
    stage.change("DELETE", &secret, "application/json", &json!({}));
    let after = until("there is a new one", || field("tls.crt").filter(|new| *new != before));
    until("the Deployment follows", || (print() != printed).then_some(()));
    stage.verify(&after, &field("ca.crt").unwrap());
}

/// It asks for something that no API server puts into a role.
fn a_provider_without_its_rights_is_not_healthy(stage: &Stage) {
    let asked = json!({"apiGroups": ["apps"], "resources": ["deployments"]});
    let asks = json!({"controller": {"permissionRequests": [asked]}});
    let revision = install(stage, "without-rights", "v1.0.0", &asks);
    until("its Deployment is there", || stage.ask(&deployments(&revision)));
    stage.make_available(&deployments(&revision));
    let path = format!("{}/{revision}", packages("ProviderRevision"));
    until("it is told what it lacks", || {
        let told = condition(&stage.ask(&path)?, "RuntimeHealthy")?;
        let why = told["message"].as_str()?;
        let is_told = why.contains("does not give the provider its rights yet");
        (told["status"] == "False" && is_told).then_some(())
    });
    until("an event says why", || {
        let events =
            stage.ask("/apis/events.k8s.io/v1/events?fieldSelector=reason=ApplyClusterRoles")?;
        let about = |one: &&Json| one["regarding"]["name"] == *revision && one["type"] == "Warning";
        let event = events["items"].as_array()?.iter().find(about)?.clone();
        event["note"].as_str()?.contains("verbs").then_some(())
    });
}

fn a_package_that_asks_for_too_much_waits_until_it_is_allowed(stage: &Stage) {
    let asked = json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]});
    let asks = json!({"controller": {"permissionRequests": [asked]}});
    let revision = install(stage, "asks", "v1.0.0", &asks);
    let path = format!("{}/{revision}", packages("ProviderRevision"));
    until("it is told what it may not have", || {
        let told = condition(&stage.ask(&path)?, "RevisionHealthy")?;
        told["message"].as_str()?.contains("get deployments.apps").then_some(())
    });
    assert!(stage.is_absent(&deployments(&revision)));
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "allowed-permissions"},
        "rules": [asked],
    });
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    stage.change("POST", roles, "application/json", &role);
    until("its Deployment is there", || stage.ask(&deployments(&revision)));
    healthy(stage, "asks", &revision);
}
