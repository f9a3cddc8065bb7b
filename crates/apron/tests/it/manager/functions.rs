//! Functions, and everything that changes how a package is run: runtime and controller
//! configurations, old packages, kinds that wait to be wanted, certificates that end; and the
//! roles that come with kinds.

use super::Scenario;
use super::revisions::{crd, name};
use super::runtimes::{core, deployments as deployment};
use super::stage::{Stage, condition, packages};
use crate::support::until;
use serde_json::{Value as Json, json};

pub(super) const ALL: &[Scenario] = &[
    ("a function is served", a_function_is_served),
    ("a runtime configuration", a_runtime_configuration_changes_what_runs),
    ("a controller configuration", a_controller_configuration_changes_what_runs),
    ("an old package", an_old_package_names_the_image_of_its_controller),
    ("a family", providers_of_a_family_may_use_each_others_kinds),
    ("roles of a definition", a_definition_brings_roles_for_people),
];

const NAMESPACE: &str = "crossplane-system";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

/// Waits until a package has an active revision, and gives it.
#[track_caller]
fn active(stage: &Stage, kind: &str, package: &str) -> Json {
    until(&format!("{kind} {package} has an active revision"), || {
        let active = stage.revisions(kind, package).into_iter().find(|one| one.1 == "Active")?;
        stage.ask(&format!("{}/{}", packages(&format!("{kind}Revision")), active.2))
    })
}

/// The container that runs a package, once it is there.
#[track_caller]
fn container(stage: &Stage, deployment: &str) -> Json {
    let found = until(&format!("{deployment} is there"), || stage.ask(deployment));
    found["spec"]["template"]["spec"]["containers"][0].clone()
}

fn env<'j>(container: &'j Json, variable: &str) -> &'j Json {
    let all = container["env"].as_array().unwrap();
    all.iter().find(|one| one["name"] == variable).unwrap_or(&Json::Null)
}

fn a_function_is_served(stage: &Stage) {
    let package = stage.push("Function", "serves", "v1.0.0");
    stage.install("Function", "serves", &json!({"package": package}));
    let revision = name(&active(stage, "Function", "serves"));
    let at = deployment(&revision);
    let container = container(stage, &at);
    let image = container["image"].as_str().unwrap();
    assert!(image.starts_with(&format!("{package}@sha256:")), "{image}");
    let ports = container["ports"].as_array().unwrap();
    let grpc = ports.iter().find(|one| one["name"] == "grpc").unwrap();
    assert_eq!(grpc["containerPort"], 9443);
    assert_eq!(env(&container, "TLS_SERVER_CERTS_DIR")["value"], "/tls/server");
    let field = &env(&container, "FUNCTION_NAME")["valueFrom"]["fieldRef"]["fieldPath"];
    assert_eq!(field, "metadata.labels['pkg.crossplane.io/function']");
    let service = stage.ask(&core("services", "serves")).unwrap();
    assert_eq!(service["spec"]["clusterIP"], "None");
    let port = &service["spec"]["ports"][0];
    assert_eq!((&port["name"], &port["port"]), (&json!("grpc"), &json!(9443)));
    assert_eq!(port["appProtocol"], "tls");
    assert_eq!(service["spec"]["selector"]["pkg.crossplane.io/revision"], *revision);
    let secret = stage.ask(&core("secrets", "serves-tls-server")).unwrap();
    for field in ["tls.crt", "tls.key", "ca.crt"] {
        assert!(!secret["data"][field].as_str().unwrap_or_default().is_empty(), "{field}");
    }
    assert!(stage.is_absent(&core("secrets", "serves-tls-client")), "a function calls nobody");
    stage.make_available(&at);
    stage.condition("Function", "serves", "Healthy", "True", "HealthyPackageRevision");
    let status = active(stage, "Function", "serves")["status"].clone();
    assert_eq!(status["endpoint"], format!("dns:///serves.{NAMESPACE}:9443"));
    assert_eq!(status["tlsServerSecretName"], "serves-tls-server");
    assert_eq!(status["capabilities"], json!(["composition"]));
    let role = format!("{ROLES}/crossplane%3Aprovider%3A{revision}%3Asystem");
    assert!(stage.is_absent(&role), "functions get no roles");
}

fn a_runtime_configuration_changes_what_runs(stage: &Stage) {
    let config = json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig",
        "metadata": {"name": "tuned"},
        "spec": {
            "deploymentTemplate": {
                "metadata": {"name": "tuned-runs", "labels": {"team": "a"}},
                "spec": {"replicas": 2, "selector": {}, "template": {"spec": {"containers": [
                    {"name": "package-runtime", "args": ["--debug"], "env": [{"name": "A", "value": "b"}]},
                    {"name": "beside", "image": "registry.example.org/beside:v1"},
                ]}}},
            },
            "serviceTemplate": {"metadata": {"name": "tuned-listens"}},
            "serviceAccountTemplate": {"metadata": {"name": "tuned-is", "annotations": {"role": "x"}}},
        },
    });
    let configs = "/apis/pkg.crossplane.io/v1beta1/deploymentruntimeconfigs";
    stage.change("POST", configs, "application/json", &config);
    let package = stage.push("Function", "tuned", "v1.0.0");
    let spec = json!({"package": package, "runtimeConfigRef": {"name": "tuned"}});
    stage.install("Function", "tuned", &spec);
    let at = deployment("tuned-runs");
    let container = container(stage, &at);
    assert_eq!(container["name"], "package-runtime");
    assert_eq!(container["args"], json!(["--debug"]));
    assert_eq!(env(&container, "A")["value"], "b");
    assert_eq!(env(&container, "TLS_SERVER_CERTS_DIR")["value"], "/tls/server", "ours stay");
    let found = stage.ask(&at).unwrap();
    assert_eq!(found["spec"]["replicas"], 2);
    assert_eq!(found["metadata"]["labels"]["team"], "a");
    let pod = &found["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], "tuned-is");
    assert_eq!(pod["containers"][1]["name"], "beside");
    let account = stage.ask(&core("serviceaccounts", "tuned-is")).unwrap();
    assert_eq!(account["metadata"]["annotations"]["role"], "x");
    assert!(stage.ask(&core("services", "tuned-listens")).is_some());
    stage.make_available(&at);
    stage.condition("Function", "tuned", "Healthy", "True", "HealthyPackageRevision");
    let endpoint = active(stage, "Function", "tuned")["status"]["endpoint"].clone();
    assert_eq!(endpoint, format!("dns:///tuned-listens.{NAMESPACE}:9443"));
    // What is not there is named.
    let missing = json!({"spec": {"runtimeConfigRef": {"name": "nowhere"}}});
    stage.merge("Function", "tuned", &missing);
    until("the missing configuration is named", || {
        let told = condition(&active(stage, "Function", "tuned"), "RuntimeHealthy")?;
        let said = told["message"].as_str().unwrap_or_default();
        said.contains("there is no DeploymentRuntimeConfig nowhere").then_some(())
    });
    stage.merge("Function", "tuned", &json!({"spec": {"runtimeConfigRef": {"name": "tuned"}}}));
    stage.condition("Function", "tuned", "Healthy", "True", "HealthyPackageRevision");
}

fn a_controller_configuration_changes_what_runs(stage: &Stage) {
    let config = json!({
        "apiVersion": "pkg.crossplane.io/v1alpha1", "kind": "ControllerConfig",
        "metadata": {"name": "older", "annotations": {"role": "y"}},
        "spec": {
            "replicas": 3, "image": "registry.example.org/older:v1", "args": ["--poll=1m"],
            "metadata": {"annotations": {"pod": "z"}}, "nodeSelector": {"disk": "fast"},
            "env": [{"name": "B", "value": "c"}],
        },
    });
    let configs = "/apis/pkg.crossplane.io/v1alpha1/controllerconfigs";
    stage.change("POST", configs, "application/json", &config);
    let package = stage.push("Provider", "older", "v1.0.0");
    let spec = json!({"package": package, "controllerConfigRef": {"name": "older"}});
    stage.install("Provider", "older", &spec);
    let revision = name(&active(stage, "Provider", "older"));
    let at = deployment(&revision);
    let container = container(stage, &at);
    assert_eq!(container["image"], "registry.example.org/older:v1");
    assert_eq!(container["args"], json!(["--poll=1m"]));
    assert_eq!(env(&container, "B")["value"], "c");
    let found = stage.ask(&at).unwrap();
    assert_eq!(found["spec"]["replicas"], 3);
    let template = &found["spec"]["template"];
    assert_eq!(template["metadata"]["annotations"]["pod"], "z");
    assert_eq!(template["spec"]["nodeSelector"], json!({"disk": "fast"}));
    let account = stage.ask(&core("serviceaccounts", &revision)).unwrap();
    assert_eq!(account["metadata"]["annotations"]["role"], "y");
    stage.change(
        "PATCH",
        &format!("{configs}/older"),
        "application/merge-patch+json",
        &json!({"spec": {"replicas": 1}}),
    );
    until("it follows its configuration", || {
        (stage.ask(&at)?["spec"]["replicas"] == 1).then_some(())
    });
}

fn an_old_package_names_the_image_of_its_controller(stage: &Stage) {
    let image = "registry.example.org/provider-old-controller:v0.14.0";
    let spec = json!({"controller": {"image": image}});
    let package = stage.push_spec("Provider", "old-fashioned", "v0.14.0", &spec);
    stage.install("Provider", "old-fashioned", &json!({"package": package}));
    let revision = name(&active(stage, "Provider", "old-fashioned"));
    assert_eq!(container(stage, &deployment(&revision))["image"], image);
}

/// Pushes a provider of a family, in a repository of an organisation, and gives its reference.
fn push_kin(stage: &Stage, repository: &str, plural: &str) -> String {
    let called = repository.replace('/', "-");
    let root = format!("packages/{called}");
    let metadata = json!({
        "apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Provider", "spec": {},
        "metadata": {"name": called, "labels": {"pkg.crossplane.io/provider-family": "kin"}},
    });
    stage.scratch.write(&format!("{root}/crossplane.yaml"), metadata.to_string());
    let definition = crd(&format!("{called}.example.org"), plural, &["a"]);
    stage.scratch.write(&format!("{root}/crd.yaml"), definition.to_string());
    let file = format!("packages/{called}.xpkg");
    stage.apron(&["build", &root, "--package-file", &file]).ok();
    let reference = stage.registry.reference(&format!("{repository}:v1.0.0"));
    stage.apron(&["push", &reference, "-f", &file]).ok();
    reference
}

fn providers_of_a_family_may_use_each_others_kinds(stage: &Stage) {
    let mut roles = Vec::new();
    for (package, repository) in
        [("kin-one", "kin/one"), ("kin-two", "kin/two"), ("alien", "other/three")]
    {
        let reference = push_kin(stage, repository, "things");
        stage.install("Provider", package, &json!({"package": reference}));
        let revision = name(&active(stage, "Provider", package));
        roles.push(format!("{ROLES}/crossplane%3Aprovider%3A{revision}%3Asystem"));
    }
    let groups = |role: &str| -> Option<Vec<String>> {
        let role = stage.ask(role)?;
        let named = role["rules"].as_array()?.iter().filter(|rule| {
            rule["resources"].as_array().is_some_and(|all| all.iter().any(|one| one == "things"))
        });
        let mut groups: Vec<String> = named
            .flat_map(|rule| rule["apiGroups"].as_array().unwrap().clone())
            .map(|group| group.as_str().unwrap().to_owned())
            .collect();
        groups.sort();
        Some(groups)
    };
    let family = ["kin-one.example.org", "kin-two.example.org"];
    for role in &roles[..2] {
        until("each may use the kinds of both", || (groups(role)? == family).then_some(()));
    }
    until("who is of another organisation may not", || {
        (groups(&roles[2])? == ["other-three.example.org"]).then_some(())
    });
}

fn a_definition_brings_roles_for_people(stage: &Stage) {
    let definition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xpeoples.people.example.org"},
        "spec": {
            "group": "people.example.org", "names": {"kind": "XPeople", "plural": "xpeoples"},
            "claimNames": {"kind": "People", "plural": "peoples"},
            "versions": [{"name": "v1", "served": true, "referenceable": true, "schema":
                {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}}],
        },
    });
    let package = stage.push_objects("Configuration", "people", "v1.0.0", &[definition]);
    stage.install("Configuration", "people", &json!({"package": package}));
    let role = |end: &str| {
        let name = format!("crossplane%3Acomposite%3Axpeoples.people.example.org%3A{end}");
        until(&format!("{end} is there"), || stage.ask(&format!("{ROLES}/{name}")))
    };
    let resources = |role: &Json| role["rules"].to_string();
    let edit = role("aggregate-to-edit");
    assert_eq!(edit["metadata"]["labels"]["rbac.crossplane.io/aggregate-to-ns-edit"], "true");
    assert!(resources(&edit).contains("\"peoples\""), "{edit}");
    let browse = role("aggregate-to-browse");
    assert!(!resources(&browse).contains("\"peoples\""), "claims are not browsed: {browse}");
    let view = role("aggregate-to-view");
    assert_eq!(view["rules"][0]["verbs"], json!(["get", "list", "watch"]));
    let own = role("aggregate-to-crossplane");
    assert!(resources(&own).contains("xpeoples/finalizers"), "{own}");
    assert_eq!(own["metadata"]["ownerReferences"][0]["kind"], "CompositeResourceDefinition");
}

/// With other words: certificates that end soon, and kinds that wait until somebody wants them.
pub(super) fn certificates_end_and_kinds_wait(stage: &mut Stage) {
    stage.restart(&[
        "--certificate-lifetime",
        "30s",
        "--enable-custom-to-managed-resource-conversion",
    ]);
    certificates_are_renewed_in_time(stage);
    a_provider_starts_when_its_kinds_are_wanted(stage);
}

fn certificates_are_renewed_in_time(stage: &Stage) {
    let package = stage.push("Function", "renews", "v1.0.0");
    stage.install("Function", "renews", &json!({"package": package}));
    let revision = name(&active(stage, "Function", "renews"));
    let at = deployment(&revision);
    let secret = core("secrets", "renews-tls-server");
    let certificate = || {
        let data = stage.ask(&secret)?["data"].clone();
        let text =
            |field: &str| data[field].as_str().filter(|it| !it.is_empty()).map(str::to_owned);
        Some((text("tls.crt")?, text("ca.crt")?))
    };
    let printed = || {
        let template = stage.ask(&at)?["spec"]["template"].clone();
        Some(template["metadata"]["annotations"]["pkg.crossplane.io/certificates"].clone())
    };
    let first = until("its certificate is there", certificate);
    let print = until("its Deployment is there", printed);
    // Nobody does anything, and it is renewed by the same authority.
    let next = until("it is renewed", || certificate().filter(|it| it.0 != first.0));
    assert_eq!(next.1, first.1, "who is trusted stays");
    until("the Deployment follows", || printed().filter(|it| *it != print));
}

fn a_provider_starts_when_its_kinds_are_wanted(stage: &Stage) {
    let group = "asleep.example.org";
    let spec = json!({"capabilities": ["safe-start"]});
    let objects = [crd(group, "beds", &["a"])];
    let package = stage.push_package("Provider", "asleep", "v1.0.0", &spec, &objects);
    stage.install("Provider", "asleep", &json!({"package": package}));
    let revision = name(&active(stage, "Provider", "asleep"));
    let at = deployment(&revision);
    until("nothing runs yet", || (stage.ask(&at)?["spec"]["replicas"] == 0).then_some(()));
    stage.make_available(&at);
    let runtime = |reason: &str| {
        until(&format!("the runtime is {reason}"), || {
            let told = condition(&active(stage, "Provider", "asleep"), "RuntimeActive")?;
            (told["reason"] == reason).then_some(())
        });
    };
    runtime("AwaitingActivation");
    let managed = format!(
        "/apis/apiextensions.crossplane.io/v1alpha1/managedresourcedefinitions/beds.{group}"
    );
    let managed = until("its kind is handed on", || stage.ask(&managed));
    let definition =
        format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/beds.{group}");
    assert!(stage.is_absent(&definition), "that is for Crossplane to make");
    // Crossplane makes the kind once somebody activates it.
    let mut wanted = crd(group, "beds", &["a"]);
    let owner = |object: &Json, kind: &str, is_controller: bool| {
        json!({"apiVersion": object["apiVersion"], "kind": kind, "name": name(object),
            "uid": object["metadata"]["uid"], "controller": is_controller})
    };
    let whose = stage.package("ProviderRevision", &revision);
    wanted["metadata"]["ownerReferences"] = json!([
        owner(&managed, "ManagedResourceDefinition", true),
        owner(&whose, "ProviderRevision", false),
    ]);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    stage.change("POST", definitions, "application/json", &wanted);
    until("it runs", || (stage.ask(&at)?["spec"]["replicas"] == 1).then_some(()));
    stage.make_available(&at);
    runtime("ActiveRuntime");
    stage.condition("Provider", "asleep", "Healthy", "True", "HealthyPackageRevision");
}
