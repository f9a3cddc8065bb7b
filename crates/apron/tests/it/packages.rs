//! Packages in a cluster, as somebody at a terminal meets them: the same words on our API server
//! and on a real one. No package manager runs here; the test writes what one would have found.

use crate::kubectl::plane::{Ours, Real};
use crate::support::{Ran, Registry, Scratch, apron, command, command_at, linked, peer_path};
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A cluster, and what was said to it.
struct Story<'a> {
    scratch: &'a Scratch,
    kubeconfig: PathBuf,
    told: String,
}

impl Story<'_> {
    /// Says something to apron; the answer becomes part of the story.
    fn say(&mut self, words: &str) -> Ran {
        self.say_as("apron", words)
    }

    /// The same under another name.
    fn say_as(&mut self, name: &str, words: &str) -> Ran {
        let mut command = command_at(self.scratch, &linked(self.scratch, name));
        command.env("KUBECONFIG", &self.kubeconfig).args(words.split(' '));
        let ran: Ran = command.output().unwrap().into();
        let name = name.replace('-', " ");
        self.told.push_str(&format!("$ {name} {words}\n"));
        self.told.push_str(&format!("{}exit code {}\n\n", ran.all(), ran.code.unwrap()));
        ran
    }

    /// What the package manager or somebody else does meanwhile.
    fn kubectl(&self, words: &[&str]) -> String {
        let mut command = command_at(self.scratch, &peer_path("kubectl"));
        command.env("KUBECONFIG", &self.kubeconfig).args(words);
        Ran::from(command.output().unwrap()).ok().stdout
    }

    /// Waits until all kinds are served, which may be a moment after they are established.
    fn wait_for_kinds(&self) {
        let kinds = "providers,configurations,functions,providerrevisions,configurationrevisions,\
                     functionrevisions,locks";
        let deadline = Instant::now() + Duration::from_secs(300);
        loop {
            let mut command = command_at(self.scratch, &peer_path("kubectl"));
            command.env("KUBECONFIG", &self.kubeconfig).args(["get", kinds]);
            let asked = Ran::from(command.output().unwrap());
            if asked.code == Some(0) {
                return;
            }
            assert!(Instant::now() < deadline, "{}", asked.all());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn apply(&self, object: &Json) {
        let path = self.scratch.write("object.json", object.to_string());
        self.kubectl(&["apply", "--server-side", "-f", path.to_str().unwrap()]);
    }

    fn status(&self, resource: &str, name: &str, status: &Json) {
        let patch = json!({ "status": status }).to_string();
        let words = ["patch", resource, name, "--subresource=status", "--type=merge", "-p", &patch];
        self.kubectl(&words);
    }

    fn revision(&self, kind: &str, package: &str, of: &Made<'_>) {
        let plural = format!("{}revisions", kind.to_lowercase());
        self.apply(&json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": format!("{kind}Revision"),
            "metadata": {"name": of.name, "labels": {"pkg.crossplane.io/package": package}},
            "spec": {"desiredState": of.state, "image": of.image, "revision": of.number},
        }));
        let objects: Vec<Json> = of
            .objects
            .iter()
            .map(|kind| json!({"apiVersion": "v1", "kind": kind, "name": "x"}))
            .collect();
        let conditions: Vec<Json> = of.conditions.iter().map(condition).collect();
        self.status(&plural, of.name, &json!({"conditions": conditions, "objectRefs": objects}));
    }

    fn package(&self, kind: &str, name: &str, current: &str, conditions: &[Condition<'_>]) {
        let conditions: Vec<Json> = conditions.iter().map(condition).collect();
        let status = json!({"conditions": conditions, "currentRevision": current});
        self.status(&format!("{}s", kind.to_lowercase()), name, &status);
    }
}

/// A revision as a package manager makes it.
struct Made<'a> {
    name: &'a str,
    image: &'a str,
    number: i64,
    state: &'a str,
    objects: &'a [&'a str],
    conditions: &'a [Condition<'a>],
}

/// Type, status, reason and message.
type Condition<'a> = (&'a str, &'a str, &'a str, &'a str);

fn condition((of, status, reason, message): &Condition<'_>) -> Json {
    json!({
        "type": of, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

const INSTALLED: Condition<'_> = ("Installed", "True", "ActivePackageRevision", "");
const HEALTHY: Condition<'_> = ("Healthy", "True", "HealthyPackageRevision", "");
const REVISION_HEALTHY: Condition<'_> = ("RevisionHealthy", "True", "HealthyPackageRevision", "");

/// The packages of the example, in a registry.
fn pushed(scratch: &Scratch, registry: &Registry) {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/platform");
    for (part, versions) in [
        ("configuration", &["v0.1.0", "v0.2.0"][..]),
        ("provider", &["v0.1.0"]),
        ("function", &["v0.1.0"]),
    ] {
        let (file, source) = (format!("{part}.xpkg"), examples.join(part));
        apron(scratch, ["build", source.to_str().unwrap(), "-o", &file]).ok();
        for version in versions {
            let reference = registry.reference(&format!("platform/{part}:{version}"));
            apron(scratch, ["push", &reference, "-f", &file]).ok();
        }
    }
}

/// What differs between clusters and runs is replaced.
fn steady(story: &Story<'_>, registry: &Registry) -> String {
    let text = story.told.replace(&registry.address, "REGISTRY");
    let text = text.replace(&story.scratch.path().display().to_string(), "SCRATCH");
    let replace = |pattern: &str, text: &str, by: &str| {
        regex::Regex::new(pattern).unwrap().replace_all(text, by).into_owned()
    };
    // Ports are not equally long, so columns are not equally wide.
    replace(r"(\S) {2,}(\S)", &replace(r"127\.0\.0\.1:\d+", &text, "CLUSTER"), "$1  $2")
}

fn tell(scratch: &Scratch, kubeconfig: &Path, registry: &Registry) -> String {
    let mut story = Story { scratch, kubeconfig: kubeconfig.to_owned(), told: String::new() };
    let at = |path: &str| registry.reference(path);
    story.say("list");
    let crds = scratch.write("crds.yaml", apron(scratch, ["crds"]).ok().stdout);
    let crds = crds.to_str().unwrap();
    story.kubectl(&["apply", "--server-side", "-f", crds]);
    story.kubectl(&["wait", "--for=condition=Established", "--timeout=120s", "-f", crds]);
    story.wait_for_kinds();
    story.say("list");
    story.say("list functions");
    story.say("status nothing");

    // The kind comes from the package, or from whoever knows it.
    story.say(&format!("install {}", at("platform/configuration:v0.1.0")));
    story.say(&format!("install {}", at("platform/configuration:v0.1.0")));
    story.say(&format!("install {}", at("platform/configuration:v0.2.0")));
    story.say(&format!("install {}", at("platform/missing:v1")));
    story.say("install configuration.xpkg");
    story.say(&format!("install function {} moor -o name", at("platform/function:v0.1.0")));
    story.say(&format!("install {}", at("platform/function:v0.1.0")));
    story.say(&format!(
        "install provider {} -m -r 3 --package-pull-secrets lost",
        at("platform/provider:v0.1.0")
    ));
    let limits = "jsonpath={.spec.revisionActivationPolicy} {.spec.revisionHistoryLimit} \
                  {.spec.packagePullSecrets[0].name}";
    let spec = story.kubectl(&["get", "providers", "platform-provider", "-o", limits]);
    assert_eq!(spec, "Manual 3 lost");
    story.say(&format!("install configuration {} --config c", at("a/b:v1")));
    story.say("list");
    story.say("wait platform-configuration --timeout 1s");

    as_found(&mut story, registry);
    changes(&mut story, registry);
    steady(&story, registry)
}

/// What a package manager finds, and how it is shown.
fn as_found(story: &mut Story<'_>, registry: &Registry) {
    let at = |path: &str| registry.reference(path);
    let (one, two) = (at("platform/configuration:v0.1.0"), at("platform/provider:v0.1.0"));
    let unresolved = "cannot resolve package dependencies: missing dependencies: [example.org/far]";
    let complaint = ("RevisionHealthy", "False", "UnhealthyPackageRevision", unresolved);
    story.revision(
        "Configuration",
        "platform-configuration",
        &Made {
            name: "platform-configuration-111111111111",
            image: &one,
            number: 1,
            state: "Active",
            objects: &["Composition", "CompositeResourceDefinition"],
            conditions: &[complaint],
        },
    );
    let unhealthy =
        ("Healthy", "False", "UnhealthyPackageRevision", "Package revision health is \"False\"");
    let name = "platform-configuration-111111111111";
    story.package("Configuration", "platform-configuration", name, &[INSTALLED, unhealthy]);
    story.revision(
        "Provider",
        "platform-provider",
        &Made {
            name: "platform-provider-222222222222",
            image: &two,
            number: 1,
            state: "Inactive",
            objects: &[],
            conditions: &[],
        },
    );
    let inactive = ("Installed", "False", "InactivePackageRevision", "Package is inactive");
    let name = "platform-provider-222222222222";
    story.package("Provider", "platform-provider", name, &[inactive, HEALTHY]);
    let needs = |package: &str, kind: &str, constraints: &str| {
        json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": kind,
            "package": package, "constraints": constraints,
        })
    };
    let (provider, function) = (at("platform/provider"), at("platform/function"));
    story.apply(&json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "Lock", "metadata": {"name": "lock"},
        "packages": [{
            "name": "platform-configuration-111111111111", "kind": "Configuration",
            "apiVersion": "pkg.crossplane.io/v1", "source": at("platform/configuration"),
            "version": "v0.1.0", "dependencies": [
                needs(&provider, "Provider", ">=v0.1.0"),
                needs(&function, "Function", ">=v9.0.0"),
                needs("example.org/far", "Provider", "*"),
            ],
        }],
    }));
    story.say("list");
    story.say("list providers -o wide");
    story.say("status");
    story.say("status platform-configuration -o name");
    story.say("wait platform-provider --timeout 1s");
}

/// Versions and revisions, there and back.
fn changes(story: &mut Story<'_>, registry: &Registry) {
    let at = |path: &str| registry.reference(path);
    story.say("uninstall platform-provider");
    story.say("activate platform-configuration 7");
    story.say("activate platform-provider");
    story.say("activate platform-provider -o name");
    let state = "jsonpath={.spec.desiredState}";
    let active = ["get", "providerrevisions", "platform-provider-222222222222", "-o", state];
    assert_eq!(story.kubectl(&active), "Active");
    story.say("rollback platform-configuration");
    story.say("update platform-configuration v0.9.0");
    story.say("update platform-configuration v0.2.0");
    story.say("update platform-configuration v0.2.0");
    story.say("update platform-configuration no:sense");
    story.say(&format!("update {}", at("platform/other:v1")));
    story.say_as("kubectl-crossplane", "update configuration platform-configuration v0.1.0");
    let digest = "sha256:2222222222222222222222222222222222222222222222222222222222222222";
    story.say(&format!("update platform-configuration {digest}"));
    let package = "jsonpath={.spec.package}";
    let asked = story.kubectl(&["get", "configurations", "platform-configuration", "-o", package]);
    assert_eq!(asked, format!("{}@{digest}", at("platform/configuration")));
    let conditions = &[REVISION_HEALTHY];
    let image = asked.as_str();
    let (name, state, number) = ("platform-configuration-333333333333", "Active", 2);
    let objects = &["Composition", "CompositeResourceDefinition"];
    let made = Made { name, image, number, state, objects, conditions };
    story.revision("Configuration", "platform-configuration", &made);
    let old = "{\"spec\":{\"desiredState\":\"Inactive\"}}";
    let patch = ["patch", "configurationrevisions", "platform-configuration-111111111111"];
    story.kubectl(&[&patch[..], &["--type=merge", "-p", old]].concat());
    story.package("Configuration", "platform-configuration", name, &[INSTALLED, HEALTHY]);
    story.say("status platform-configuration");
    story.say("wait platform-configuration");
    story.say("rollback platform-configuration");
    let asked = story.kubectl(&["get", "configurations", "platform-configuration", "-o", package]);
    assert_eq!(asked, at("platform/configuration:v0.1.0"));

    // The guide's words, and upstream's.
    story.say_as("kubectl-crossplane", "install provider crossplane/provider-gcp:v0.12.0");
    story.say_as("crossplane", "xpkg install function example.org/a/function-b:v1");
    story.say_as("crossplane", "xpkg update function example.org/a/function-b:v2");
    let asked = story.kubectl(&["get", "provider", "provider-gcp", "-o", "json"]);
    let asked: Json = serde_json::from_str(&asked).unwrap();
    assert_eq!(asked["spec"]["package"], "crossplane/provider-gcp:v0.12.0");
    assert_eq!(asked["spec"]["packagePullPolicy"], "IfNotPresent");
    assert_eq!(asked["spec"]["revisionActivationPolicy"], "Automatic");
    assert_eq!(asked["spec"]["revisionHistoryLimit"], 1);

    story.say("uninstall platform-configuration --dry-run");
    story.say("uninstall moor --force --wait 1m");
    story.say("uninstall moor");
    story.say("list function -o name");
    let listed = story.say("list -o json");
    let listed: Json = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed[0]["name"], "platform-configuration");
    assert_eq!(listed[0]["state"], "healthy");
}

#[test]
fn packages_are_managed_alike_on_both_servers() {
    let (scratch, registry) = (Scratch::new(), Registry::start());
    pushed(&scratch, &registry);
    let ours = Ours::start(&scratch.join("ours"));
    let here = tell(&scratch, &ours.kubeconfig, &registry);
    insta::assert_snapshot!(here);
    let real = Real::start(&scratch.join("real"), &ours);
    let there = tell(&scratch, &real.kubeconfig, &registry);
    assert_eq!(there, here);
}

#[test]
fn mistake_no_cluster_to_talk_to() {
    let scratch = Scratch::new();
    let mut told = String::new();
    let mut say = |kubeconfig: &str, words: &[&str]| {
        let mut command = command(&scratch);
        if !kubeconfig.is_empty() {
            command.env("KUBECONFIG", scratch.join(kubeconfig));
        }
        let ran: Ran = command.args(words).output().unwrap().into();
        let text = ran.failed().replace(&scratch.path().display().to_string(), "SCRATCH");
        told.push_str(&format!("$ apron {}\n{text}\n", words.join(" ")));
    };
    say("", &["list"]);
    say("missing", &["status"]);
    say("", &["list", "--kubeconfig", "missing"]);
    scratch.write("broken", "{");
    say("broken", &["list"]);
    // Nobody listens on this port, and nobody may.
    let cluster = "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]";
    let context = "contexts: [{name: here, context: {cluster: c, user: u}}]";
    let user = "users: [{name: u, user: {}}]";
    scratch.write("config", format!("{cluster}\n{context}\n{user}\n"));
    say("config", &["list"]);
    say("config", &["list", "--context", "there"]);
    say("config", &["list", "--context", "here"]);
    // The package manager is as particular, and may be in a pod besides.
    say("", &["manager"]);
    say("missing", &["manager"]);
    say("", &["manager", "--kubeconfig", "missing"]);
    say("broken", &["manager"]);
    say("config", &["manager"]);
    say("config", &["manager", "--context", "there"]);
    say("", &["manager", "--context", "there"]);
    insta::assert_snapshot!(told);
}
