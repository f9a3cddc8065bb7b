//! What packages need of each other: installed, moved, recognised, refused and explained.

use super::Scenario;
use super::revisions::{crd, healthy, name, path, unhealthy};
use super::stage::{Stage, condition, packages};
use crate::support::until;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

pub(super) const ALL: &[Scenario] = &[
    ("what is needed is installed", what_is_needed_is_installed_however_deep),
    ("a conflict is explained and mended", a_conflict_is_explained_and_mended),
    ("what is shared is moved up", what_is_shared_is_moved_up_when_another_needs_more),
    ("a copy is recognised", a_copy_in_another_repository_is_recognised),
    ("a mirror is recognised", a_name_that_a_mirror_stands_for_is_recognised),
    ("a digest is recognised", a_package_by_digest_is_the_version_it_is),
    ("what is pinned stays", what_is_pinned_stays),
    ("an activation takes nothing", an_activation_takes_nothing_from_others),
    ("who cannot be installed", who_cannot_be_installed_keeps_nothing_from_others),
    ("what is there is used", what_is_there_is_used_whatever_it_is_called),
    ("a circle is refused", a_circle_is_refused_and_mended),
    ("two kinds of one name", two_kinds_of_one_name_cannot_have_one_definition),
    ("claims have definitions, too", claims_have_definitions_too),
    ("a bad package blocks nobody", a_bad_package_blocks_nobody),
    ("dependencies can be skipped", dependencies_can_be_skipped),
    ("a definition can be needed", a_definition_can_be_needed),
    ("what others need comes back", what_others_need_comes_back),
    ("a change is not half told", what_a_revision_waits_for_is_told_once),
];

const CONFIGURATION: &str = "Configuration";

/// Pushes a package that needs these: kind, repository, versions.
pub(super) fn push(
    stage: &Stage,
    kind: &str,
    name: &str,
    version: &str,
    needs: &[(&str, &str, &str)],
) -> String {
    let needs: Vec<Json> = needs
        .iter()
        .map(|(kind, repository, versions)| {
            let repository = stage.registry.reference(repository);
            json!({ (*kind): repository, "version": versions })
        })
        .collect();
    stage.push_package(kind, name, version, &json!({"dependsOn": needs}), &[])
}

fn lock(stage: &Stage) -> Json {
    stage.ask("/apis/pkg.crossplane.io/v1beta1/locks/lock").unwrap_or_default()
}

/// What the lock lists for a package.
pub(super) fn entry(stage: &Stage, kind: &str, package: &str) -> Option<Json> {
    let active = stage.revisions(kind, package).into_iter().find(|one| one.1 == "Active")?.2;
    let lock = lock(stage);
    let mut entries = lock["packages"].as_array()?.iter();
    entries.find(|one| one["name"] == *active && one["kind"] == kind).cloned()
}

/// Waits until a package is this image, and its objects are there.
#[track_caller]
pub(super) fn becomes(stage: &Stage, kind: &str, package: &str, image: &str) -> Json {
    until(&format!("{kind} {package} is {image}"), || {
        let is = stage.package(kind, package)["spec"]["package"].clone();
        if is != image {
            return None;
        }
        let active = stage.revisions(kind, package).into_iter().find(|one| one.1 == "Active")?;
        let revision = stage.package(&format!("{kind}Revision"), &active.2);
        let is_healthy = condition(&revision, "RevisionHealthy")?["status"] == "True";
        (revision["spec"]["image"] == image && is_healthy).then_some(revision)
    })
}

/// How many packages of a kind are from repositories that end like this.
pub(super) fn count(stage: &Stage, kind: &str, end: &str) -> usize {
    let all = stage.ask(&packages(kind)).unwrap();
    let images = all["items"].as_array().unwrap().iter().map(|one| &one["spec"]["package"]);
    let ends = |image: &Json| {
        let image = image.as_str().unwrap().split('@').next().unwrap();
        let repository = image.rsplit_once('/').map_or(image, |(_, last)| last);
        repository.split(':').next() == Some(end)
    };
    images.filter(|image| ends(image)).count()
}

fn what_is_needed_is_installed_however_deep(stage: &Stage) {
    let group = "deep.example.org";
    stage.push_objects("Provider", "deep-net", "v1.0.0", &[crd(group, "olds", &["a"])]);
    stage.push_objects("Provider", "deep-net", "v1.2.0", &[crd(group, "nets", &["a"])]);
    stage.push_objects("Provider", "deep-net", "v2.0.0-rc.1", &[crd(group, "news", &["a"])]);
    stage.push("Function", "deep-fn", "v0.3.0");
    let needs = [("provider", "deep-net", ">=v1.0.0"), ("function", "deep-fn", "~v0.3")];
    push(stage, CONFIGURATION, "deep-base", "v1.0.0", &needs);
    let composition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "deep"},
        "spec": {"compositeTypeRef": {"apiVersion": "deep.example.org/v1", "kind": "XDeep"},
            "mode": "Pipeline", "pipeline": []},
    });
    let base = stage.registry.reference("deep-base");
    let spec = json!({"dependsOn": [{
        "apiVersion": "pkg.crossplane.io/v1", "kind": CONFIGURATION, "package": base,
        "version": ">=v1.0.0",
    }]});
    let top = stage.push_package(CONFIGURATION, "deep", "v1.0.0", &spec, &[composition]);
    stage.install(CONFIGURATION, "deep", &json!({"package": top}));
    let top = becomes(stage, CONFIGURATION, "deep", &top);
    // The highest that fits, and no release candidate.
    let net = stage.registry.reference("deep-net:v1.2.0");
    becomes(stage, "Provider", "deep-net", &net);
    let function = stage.registry.reference("deep-fn:v0.3.0");
    becomes(stage, "Function", "deep-fn", &function);
    becomes(stage, CONFIGURATION, "deep-base", &format!("{base}:v1.0.0"));
    assert_eq!(top["status"]["foundDependencies"], 3);
    assert_eq!(top["status"]["installedDependencies"], 3);
    assert!(top["status"]["invalidDependencies"].is_null());
    let made = stage.package("Provider", "deep-net");
    assert!(made["metadata"]["ownerReferences"].is_null(), "nobody owns what others need, too");
    // The lock says who is there, who needs whom, and whose everything is.
    let listed = entry(stage, CONFIGURATION, "deep-base").unwrap();
    assert_eq!(listed["source"], base);
    assert_eq!(listed["version"], "v1.0.0");
    assert_eq!(listed["apiVersion"], "pkg.crossplane.io/v1");
    let needs = json!([
        {"package": stage.registry.reference("deep-net"), "type": "Provider", "constraints": ">=v1.0.0"},
        {"package": stage.registry.reference("deep-fn"), "type": "Function", "constraints": "~v0.3"},
    ]);
    assert_eq!(listed["dependencies"], needs);
    let digest = entry(stage, "Function", "deep-fn").unwrap()["digest"].clone();
    assert!(digest.as_str().unwrap().starts_with("sha256:"), "{digest}");
    let lock = lock(stage);
    assert_eq!(lock["customResourceDefinitions"][format!("nets.{group}")], "Provider/deep-net");
    assert_eq!(lock["compositions"]["deep"], "Configuration/deep");
    assert!(lock["metadata"]["finalizers"].to_string().contains("lock.pkg.crossplane.io"));
    m4_what_was_brought_is_told_from_what_was_asked_for(stage);
}

fn m4_what_was_brought_is_told_from_what_was_asked_for(stage: &Stage) {
    let last = |name: &str| {
        let told = stage.apron(&["why", name]).ok().stdout;
        told.lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(last("deep-net"), "└─ the package manager brought it for them");
    assert_eq!(last("deep"), "└─ nothing needs it: somebody installed it");
    let left = |name: &str| format!("{name} stays, and nothing needs it any more");
    let told = |words: &[&str]| {
        let told = stage.apron(&[&["uninstall", "--dry-run"], words].concat()).ok().stdout;
        let lines = told.lines().filter(|line| line.ends_with("nothing needs it any more"));
        lines.map(str::to_owned).collect::<BTreeSet<String>>()
    };
    let [base, net, function] =
        ["configuration/deep-base", "provider/deep-net", "function/deep-fn"].map(left);
    assert_eq!(told(&["deep"]), BTreeSet::from([base, net.clone(), function.clone()]));
    // A user writes the same into git: it is no longer automatic.
    let net_image = stage.registry.reference("deep-net:v1.2.0");
    let object = json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider",
        "metadata": {"name": "deep-net"}, "spec": {"package": net_image},
    });
    let path = format!("{}/deep-net?fieldManager=git&force=true", packages("Provider"));
    stage.change("PATCH", &path, "application/apply-patch+yaml", &object);
    assert_eq!(last("deep-net"), "└─ somebody installed it by name, too");
    assert_eq!(told(&["deep", "deep-base"]), BTreeSet::from([function]));
    assert!(!told(&["deep"]).contains(&net));
}

fn a_conflict_is_explained_and_mended(stage: &Stage) {
    for version in ["v1.0.0", "v2.0.0"] {
        stage.push("Provider", "torn", version);
    }
    let exact = |name: &str, version: &str| {
        push(stage, CONFIGURATION, name, "v1.0.0", &[("provider", "torn", version)])
    };
    let (left, right) = (exact("tears-left", "v1.0.0"), exact("tears-right", "v2.0.0"));
    stage.install(CONFIGURATION, "tears-left", &json!({"package": left}));
    becomes(stage, CONFIGURATION, "tears-left", &left);
    stage.install(CONFIGURATION, "tears-right", &json!({"package": right}));
    let of = |path: &str| stage.registry.reference(path);
    let sentences = format!(
        "{} v1.0.0 needs {torn} v2.0.0; {} v1.0.0 needs {torn} v1.0.0; there is no version of \
         {torn} that satisfies them all (there are v1.0.0 and v2.0.0); hint: accept more versions \
         in one of these, or remove a package; removing one deletes all objects of the kinds it \
         brought",
        of("tears-right"),
        of("tears-left"),
        torn = of("torn"),
    );
    let said = unhealthy(stage, CONFIGURATION, "tears-right", "there is no version");
    assert_eq!(said, format!("cannot resolve package dependencies: {sentences}"));
    let revision = stage.revisions(CONFIGURATION, "tears-right").remove(0).2;
    let status = stage.package("ConfigurationRevision", &revision)["status"].clone();
    let counts = ["foundDependencies", "installedDependencies", "invalidDependencies"];
    assert_eq!(counts.map(|of| &status[of]), [1, 1, 1], "{status}");
    let why = stage.apron(&["why", "tears-right"]).ok().stdout;
    assert!(why.contains(&sentences), "{why}");
    let resolved = until("the lock says that it is not resolved", || {
        condition(&lock(stage), "Resolved").filter(|one| one["status"] == "False")
    });
    assert_eq!(resolved["reason"], "DependencyResolutionFailed", "{resolved}");
    // Who was there first has what it had.
    becomes(stage, "Provider", "torn", &of("torn:v1.0.0"));
    becomes(stage, CONFIGURATION, "tears-left", &left);
    let needs = [("provider", "torn", ">=v1.0.0")];
    let mended = push(stage, CONFIGURATION, "tears-left", "v1.1.0", &needs);
    stage.merge(CONFIGURATION, "tears-left", &json!({"spec": {"package": mended}}));
    becomes(stage, CONFIGURATION, "tears-right", &right);
    becomes(stage, CONFIGURATION, "tears-left", &mended);
    becomes(stage, "Provider", "torn", &of("torn:v2.0.0"));
    let why = stage.apron(&["why", "torn"]).ok().stdout;
    for who in ["configuration/tears-left v1.1.0 needs it (>=v1.0.0)", "tears-right v1.0.0"] {
        assert!(why.contains(who), "{why}");
    }
}

fn what_is_shared_is_moved_up_when_another_needs_more(stage: &Stage) {
    let of = |path: &str| stage.registry.reference(path);
    stage.push("Provider", "grown", "v1.0.0");
    let one =
        push(stage, CONFIGURATION, "grows-one", "v1.0.0", &[("provider", "grown", ">=v1.0.0")]);
    stage.install(CONFIGURATION, "grows-one", &json!({"package": one}));
    becomes(stage, "Provider", "grown", &of("grown:v1.0.0"));
    for version in ["v1.1.0", "v1.2.0"] {
        stage.push("Provider", "grown", version);
    }
    let two =
        push(stage, CONFIGURATION, "grows-two", "v1.0.0", &[("provider", "grown", ">=v1.1.0")]);
    stage.install(CONFIGURATION, "grows-two", &json!({"package": two}));
    // As far as it must, and no further.
    becomes(stage, "Provider", "grown", &of("grown:v1.1.0"));
    becomes(stage, CONFIGURATION, "grows-one", &one);
    becomes(stage, CONFIGURATION, "grows-two", &two);
    stage.states("Provider", "grown", &[(1, "Inactive"), (2, "Active")]);
}

fn a_copy_in_another_repository_is_recognised(stage: &Stage) {
    let copy = stage.registry.reference("copies/copied:v1.0.0");
    for repository in ["copies/copied", "originals/copied"] {
        let reference = stage.registry.reference(&format!("{repository}:v1.0.0"));
        stage.push_as("Provider", "copied", "v1.0.0", &reference);
    }
    stage.install("Provider", "a-copy", &json!({"package": copy}));
    becomes(stage, "Provider", "a-copy", &copy);
    let needs = [("provider", "originals/copied", ">=v1.0.0")];
    let top = push(stage, CONFIGURATION, "uses-copy", "v1.0.0", &needs);
    stage.install(CONFIGURATION, "uses-copy", &json!({"package": top}));
    becomes(stage, CONFIGURATION, "uses-copy", &top);
    assert_eq!(count(stage, "Provider", "copied"), 1);
}

fn a_name_that_a_mirror_stands_for_is_recognised(stage: &Stage) {
    stage.push("Provider", "reflected", "v1.0.0");
    let config = json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "ImageConfig",
        "metadata": {"name": "reflects"},
        "spec": {
            "matchImages": [{"prefix": "origin.example.org/reflects/"}],
            "rewriteImage": {"prefix": stage.registry.reference("")},
        },
    });
    let configs = "/apis/pkg.crossplane.io/v1beta1/imageconfigs";
    stage.change("POST", configs, "application/json", &config);
    let direct = stage.registry.reference("reflected:v1.0.0");
    stage.install("Provider", "reflected", &json!({"package": direct}));
    let spec = json!({"dependsOn": [
        {"provider": "origin.example.org/reflects/reflected", "version": ">=v1.0.0"}]});
    let top = stage.push_package(CONFIGURATION, "looks-in", "v1.0.0", &spec, &[]);
    stage.install(CONFIGURATION, "looks-in", &json!({"package": top}));
    becomes(stage, CONFIGURATION, "looks-in", &top);
    assert_eq!(count(stage, "Provider", "reflected"), 1);
}

fn a_package_by_digest_is_the_version_it_is(stage: &Stage) {
    for version in ["v1.0.0", "v1.5.0"] {
        stage.push("Provider", "printed", version);
    }
    let tagged = stage.registry.reference("printed:v1.5.0");
    let digest = stage.apron(&["inspect", &tagged, "-o", "json"]).ok().stdout;
    let digest: Json = serde_json::from_str(&digest).unwrap();
    let digest = digest["image"]["digest"].as_str().unwrap();
    let exact = stage.registry.reference(&format!("printed@{digest}"));
    stage.install("Provider", "printed", &json!({"package": exact}));
    let by_range =
        push(stage, CONFIGURATION, "by-range", "v1.0.0", &[("provider", "printed", ">=v1.1.0")]);
    let by_digest =
        push(stage, CONFIGURATION, "by-digest", "v1.0.0", &[("provider", "printed", digest)]);
    stage.install(CONFIGURATION, "by-range", &json!({"package": by_range}));
    stage.install(CONFIGURATION, "by-digest", &json!({"package": by_digest}));
    becomes(stage, CONFIGURATION, "by-range", &by_range);
    becomes(stage, CONFIGURATION, "by-digest", &by_digest);
    becomes(stage, "Provider", "printed", &exact);
    assert_eq!(count(stage, "Provider", "printed"), 1);
    // What is not there is installed by the digest that is asked for.
    stage.push("Function", "stamped", "v1.0.0");
    let stamped = stage.registry.reference("stamped:v1.0.0");
    let said = stage.apron(&["inspect", &stamped, "-o", "json"]).ok().stdout;
    let said: Json = serde_json::from_str(&said).unwrap();
    let digest = said["image"]["digest"].as_str().unwrap();
    let top = push(stage, CONFIGURATION, "stamps", "v1.0.0", &[("function", "stamped", digest)]);
    stage.install(CONFIGURATION, "stamps", &json!({"package": top}));
    becomes(stage, CONFIGURATION, "stamps", &top);
    let exact = stage.registry.reference(&format!("stamped@{digest}"));
    becomes(stage, "Function", "stamped", &exact);
}

/// A digest was checked by somebody, and what must not be fetched cannot be moved.
fn what_is_pinned_stays(stage: &Stage) {
    for version in ["v1.0.0", "v1.1.0"] {
        stage.push("Provider", "pinned", version);
        stage.push("Provider", "unfetched", version);
    }
    let tagged = stage.registry.reference("pinned:v1.0.0");
    let exact = format!("{tagged}@{}", super::signer::digest(stage, &tagged));
    stage.install("Provider", "pinned", &json!({"package": exact}));
    let cached = stage.registry.reference("unfetched:v1.0.0");
    stage.install("Provider", "unfetched", &json!({"package": cached}));
    becomes(stage, "Provider", "pinned", &exact);
    becomes(stage, "Provider", "unfetched", &cached);
    stage.merge("Provider", "unfetched", &json!({"spec": {"packagePullPolicy": "Never"}}));
    for (needs, of) in [("pushes", "pinned"), ("pulls", "unfetched")] {
        let top = push(stage, CONFIGURATION, needs, "v1.0.0", &[("provider", of, ">=v1.1.0")]);
        stage.install(CONFIGURATION, needs, &json!({"package": top}));
        let said = unhealthy(stage, CONFIGURATION, needs, "must not be moved");
        assert!(said.ends_with(&format!("hint: move {of} to a version that satisfies the others")));
    }
    becomes(stage, "Provider", "pinned", &exact);
    becomes(stage, "Provider", "unfetched", &cached);
    // Whoever pinned it moves it.
    let newer = stage.registry.reference("pinned:v1.1.0");
    stage.merge("Provider", "pinned", &json!({"spec": {"package": newer}}));
    healthy(stage, CONFIGURATION, "pushes", 1);
}

/// A revision that waits is well; that does not make it one that others must make room for.
fn an_activation_takes_nothing_from_others(stage: &Stage) {
    let first = push(stage, CONFIGURATION, "elected", "v1.0.0", &[]);
    let second = push(stage, CONFIGURATION, "elected", "v2.0.0", &[]);
    let needs = [("configuration", "elected", "<v2.0.0")];
    let voter = push(stage, CONFIGURATION, "voter", "v1.0.0", &needs);
    let spec = json!({"package": first, "revisionActivationPolicy": "Manual"});
    stage.install(CONFIGURATION, "elected", &spec);
    until("it waits", || (!stage.revisions(CONFIGURATION, "elected").is_empty()).then_some(()));
    stage.apron(&["activate", "configuration/elected", "--wait", "10m"]).ok();
    let is_fine = |image: &str| {
        let active = stage.revisions(CONFIGURATION, "elected");
        let active: Vec<_> = active.into_iter().filter(|one| one.1 == "Active").collect();
        assert_eq!(active.len(), 1, "{active:?}");
        let revision = stage.package("ConfigurationRevision", &active[0].2);
        let healthy = condition(&revision, "RevisionHealthy").unwrap();
        assert_eq!(revision["spec"]["image"], image);
        assert_eq!(healthy["status"], "True");
        assert_eq!(healthy["observedGeneration"], revision["metadata"]["generation"]);
    };
    is_fine(&first);
    stage.install(CONFIGURATION, "voter", &json!({"package": voter}));
    becomes(stage, CONFIGURATION, "voter", &voter);
    stage.merge(CONFIGURATION, "elected", &json!({"spec": {"package": second}}));
    until("both are there", || {
        let all = stage.revisions(CONFIGURATION, "elected");
        let new = all.iter().find(|one| one.1 == "Inactive")?;
        let revision = stage.package("ConfigurationRevision", &new.2);
        (condition(&revision, "RevisionHealthy")?["status"] == "True").then_some(())
    });
    stage.apron(&["activate", "configuration/elected"]).ok();
    let said = unhealthy(stage, CONFIGURATION, "elected", "cannot resolve");
    assert!(said.contains(&stage.registry.reference("voter v1.0.0 needs")), "{said}");
    becomes(stage, CONFIGURATION, "voter", &voter);
    stage.apron(&["rollback", "configuration/elected", "--wait", "10m"]).ok();
    is_fine(&first);
}

/// A package that this Crossplane is too old for has nothing, and neither has one of another kind
/// than it is installed as; whoever can be installed gets what they would have had.
fn who_cannot_be_installed_keeps_nothing_from_others(stage: &Stage) {
    let brought = [crd("able.example.org", "ables", &["a"])];
    let ahead = json!({"crossplane": {"version": ">=v99.0.0"}});
    let unable = stage.push_package("Provider", "a-unable", "v1.0.0", &ahead, &brought);
    stage.install("Provider", "a-unable", &json!({"package": unable}));
    unhealthy(stage, "Provider", "a-unable", "incompatible Crossplane version");
    let able = stage.push_objects("Provider", "b-able", "v1.0.0", &brought);
    stage.install("Provider", "b-able", &json!({"package": able}));
    becomes(stage, "Provider", "b-able", &able);
    let kind = push(stage, CONFIGURATION, "of-a-kind", "v1.0.0", &[]);
    stage.install("Provider", "of-a-kind", &json!({"package": kind}));
    unhealthy(stage, "Provider", "of-a-kind", "Configuration");
    stage.install(CONFIGURATION, "of-a-kind", &json!({"package": kind}));
    becomes(stage, CONFIGURATION, "of-a-kind", &kind);
    for unable in ["a-unable", "of-a-kind"] {
        stage.change(
            "DELETE",
            &format!("{}/{unable}", packages("Provider")),
            "application/json",
            &json!({}),
        );
    }
}

fn what_is_there_is_used_whatever_it_is_called(stage: &Stage) {
    let own = stage.push("Provider", "renamed", "v1.0.0");
    stage.push("Provider", "renamed", "v1.1.0");
    stage.install("Provider", "my-own-name", &json!({"package": own}));
    becomes(stage, "Provider", "my-own-name", &own);
    let top =
        push(stage, CONFIGURATION, "uses-it", "v1.0.0", &[("provider", "renamed", ">=v1.0.0")]);
    stage.install(CONFIGURATION, "uses-it", &json!({"package": top}));
    becomes(stage, CONFIGURATION, "uses-it", &top);
    assert_eq!(count(stage, "Provider", "renamed"), 1);
    becomes(stage, "Provider", "my-own-name", &own);
}

fn a_circle_is_refused_and_mended(stage: &Stage) {
    let one = push(
        stage,
        CONFIGURATION,
        "round-one",
        "v1.0.0",
        &[("configuration", "round-two", "v1.0.0")],
    );
    push(
        stage,
        CONFIGURATION,
        "round-two",
        "v1.0.0",
        &[("configuration", "round-one", ">=v1.0.0")],
    );
    stage.install(CONFIGURATION, "round-one", &json!({"package": one}));
    let said = unhealthy(stage, CONFIGURATION, "round-one", "in a circle");
    let of = |path: &str| stage.registry.reference(path);
    assert_eq!(
        said,
        format!(
            "cannot resolve package dependencies: {one} v1.0.0 needs {two} v1.0.0; {two} v1.0.0 \
             needs {one} >=v1.0.0; packages must not need each other in a circle; hint: remove one \
             of these dependencies",
            one = of("round-one"),
            two = of("round-two"),
        )
    );
    assert!(stage.is_absent(&format!("{}/round-two", packages(CONFIGURATION))));
    let mended = push(stage, CONFIGURATION, "round-one", "v1.0.1", &[]);
    stage.merge(CONFIGURATION, "round-one", &json!({"spec": {"package": mended}}));
    becomes(stage, CONFIGURATION, "round-one", &mended);
}

fn two_kinds_of_one_name_cannot_have_one_definition(stage: &Stage) {
    let group = "twins.example.org";
    let definition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": format!("shareds.{group}")},
        "spec": {
            "group": group, "names": {"kind": "Shareds", "plural": "shareds"},
            "versions": [{"name": "v1", "served": true, "referenceable": true, "schema":
                {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}}],
        },
    });
    let provider =
        stage.push_objects("Provider", "twins", "v1.0.0", &[crd(group, "shareds", &["a"])]);
    let configuration = stage.registry.reference("twins-too:v1.0.0");
    stage.push_objects(CONFIGURATION, "twins-too", "v1.0.0", &[definition]);
    stage.install("Provider", "twins", &json!({"package": provider}));
    becomes(stage, "Provider", "twins", &provider);
    stage.install(CONFIGURATION, "twins", &json!({"package": configuration}));
    let said = unhealthy(stage, CONFIGURATION, "twins", &format!("shareds.{group}"));
    let of = |path: &str| stage.registry.reference(path);
    for named in [of("twins v1.0.0"), of("twins-too v1.0.0")] {
        assert!(said.contains(&named), "both are named: {said}");
    }
    let recorded = || lock(stage)["customResourceDefinitions"][format!("shareds.{group}")].clone();
    assert_eq!(recorded(), "Provider/twins");
    let provider = format!("{}/twins", packages("Provider"));
    stage.change("DELETE", &provider, "application/json", &json!({}));
    healthy(stage, CONFIGURATION, "twins", 1);
    until("it is recorded for the other", || (recorded() == "Configuration/twins").then_some(()));
    until("the definition is gone", || {
        stage.is_absent(&path(&format!("shareds.{group}"))).then_some(())
    });
}

/// Crossplane makes a definition for claims: two packages cannot both offer the same.
fn claims_have_definitions_too(stage: &Stage) {
    let group = "claims.example.org";
    let offers = |plural: &str| {
        json!({
            "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group, "names": {"kind": plural.to_uppercase(), "plural": plural},
                "claimNames": {"kind": "Bucket", "plural": "buckets"},
                "versions": [{"name": "v1", "served": true, "referenceable": true, "schema":
                    {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}}],
            },
        })
    };
    let one = stage.push_objects(CONFIGURATION, "claims-one", "v1.0.0", &[offers("xones")]);
    let two = stage.push_objects(CONFIGURATION, "claims-two", "v1.0.0", &[offers("xtwos")]);
    stage.install(CONFIGURATION, "claims-one", &json!({"package": one}));
    becomes(stage, CONFIGURATION, "claims-one", &one);
    stage.install(CONFIGURATION, "claims-two", &json!({"package": two}));
    let said = unhealthy(stage, CONFIGURATION, "claims-two", &format!("buckets.{group}"));
    assert!(said.contains(&stage.registry.reference("claims-one v1.0.0")), "{said}");
    assert_eq!(
        lock(stage)["customResourceDefinitions"][format!("buckets.{group}")],
        "Configuration/claims-one"
    );
}

fn a_bad_package_blocks_nobody(stage: &Stage) {
    let of = |path: &str| stage.registry.reference(path);
    let bad = push(stage, CONFIGURATION, "lacks", "v1.0.0", &[("provider", "lacking", ">=v1.0.0")]);
    stage.install(CONFIGURATION, "lacks", &json!({"package": bad}));
    let expected = format!(
        "cannot resolve package dependencies: {} v1.0.0 needs {lacking} >=v1.0.0; there is no \
         version of {lacking}: the repository is empty, does not exist or is not to be seen; hint: \
         check the name {lacking}, or publish such a version of it",
        of("lacks"),
        lacking = of("lacking"),
    );
    assert_eq!(unhealthy(stage, CONFIGURATION, "lacks", "is empty"), expected);
    stage.push("Provider", "plain-need", "v1.0.0");
    let good =
        push(stage, CONFIGURATION, "unrelated", "v1.0.0", &[("provider", "plain-need", "*")]);
    stage.install(CONFIGURATION, "unrelated", &json!({"package": good}));
    becomes(stage, CONFIGURATION, "unrelated", &good);
    unhealthy(stage, CONFIGURATION, "lacks", "is empty");
    // Once it is there, the next look finds it; there would be one within a minute anyway.
    stage.push("Provider", "lacking", "v1.0.0");
    let news = json!({"metadata": {"annotations": {"example.org/asked": "again"}}});
    stage.merge(CONFIGURATION, "lacks", &news);
    becomes(stage, CONFIGURATION, "lacks", &bad);
}

fn dependencies_can_be_skipped(stage: &Stage) {
    let top = push(stage, CONFIGURATION, "skips", "v1.0.0", &[("provider", "skipped", ">=v1.0.0")]);
    stage.install(
        CONFIGURATION,
        "skips",
        &json!({"package": top, "skipDependencyResolution": true}),
    );
    becomes(stage, CONFIGURATION, "skips", &top);
    assert!(stage.is_absent(&format!("{}/skipped", packages("Provider"))));
    // They count again once nobody says otherwise.
    stage.push("Provider", "skipped", "v1.0.0");
    stage.merge(CONFIGURATION, "skips", &json!({"spec": {"skipDependencyResolution": false}}));
    becomes(stage, "Provider", "skipped", &stage.registry.reference("skipped:v1.0.0"));
}

fn a_definition_can_be_needed(stage: &Stage) {
    let definition = "wants.needed.example.org";
    let spec = json!({"dependsOn": [{
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "package": definition, "version": "*",
    }]});
    let top = stage.push_package(CONFIGURATION, "wants", "v1.0.0", &spec, &[]);
    stage.install(CONFIGURATION, "wants", &json!({"package": top}));
    let expected = format!(
        "cannot resolve package dependencies: {} v1.0.0 needs the CRD {definition}; no package \
         that is installed brings the CRD {definition}; hint: install a package that brings \
         {definition}, or give the manager a catalog with --catalog",
        stage.registry.reference("wants"),
    );
    assert_eq!(unhealthy(stage, CONFIGURATION, "wants", "no package"), expected);
    let brings = [crd("needed.example.org", "wants", &["a"])];
    let provider = stage.push_objects("Provider", "brings-it", "v1.0.0", &brings);
    stage.install("Provider", "brings-it", &json!({"package": provider}));
    let top = becomes(stage, CONFIGURATION, "wants", &top);
    assert_eq!(top["status"]["installedDependencies"], 1);
}

fn what_others_need_comes_back(stage: &Stage) {
    let of = |path: &str| stage.registry.reference(path);
    stage.push("Provider", "wanted", "v1.0.0");
    let top = push(stage, CONFIGURATION, "clings", "v1.0.0", &[("provider", "wanted", ">=v1.0.0")]);
    stage.install(CONFIGURATION, "clings", &json!({"package": top}));
    becomes(stage, CONFIGURATION, "clings", &top);
    let before = stage.package("Provider", "wanted")["metadata"]["uid"].clone();
    let refused = stage.apron(&["uninstall", "provider/wanted"]).failed();
    assert!(refused.contains("configuration/clings needs provider/wanted"), "{refused}");
    stage.apron(&["uninstall", "provider/wanted", "--force"]).ok();
    until("it is installed again", || {
        let uid = stage.package("Provider", "wanted")["metadata"]["uid"].clone();
        (!uid.is_null() && uid != before).then_some(())
    });
    becomes(stage, "Provider", "wanted", &of("wanted:v1.0.0"));
    becomes(stage, CONFIGURATION, "clings", &top);
    // Who needed it goes; what was needed stays, as upstream has it.
    stage.apron(&["uninstall", "configuration/clings", "--wait", "5m"]).ok();
    until("the lock has forgotten who needed it", || {
        entry(stage, CONFIGURATION, "clings").is_none().then_some(())
    });
    becomes(stage, "Provider", "wanted", &of("wanted:v1.0.0"));
}

fn what_a_revision_waits_for_is_told_once(stage: &Stage) {
    stage.push("Provider", "followed", "v1.0.0");
    let top =
        push(stage, CONFIGURATION, "follows", "v1.0.0", &[("provider", "followed", ">=v1.0.0")]);
    stage.install(CONFIGURATION, "follows", &json!({"package": top}));
    let revision = name(&becomes(stage, CONFIGURATION, "follows", &top));
    let said = until("something is told of it", || {
        let events = stage.ask("/apis/events.k8s.io/v1/namespaces/default/events")?;
        let of = |one: &&Json| one["regarding"]["name"] == *revision;
        let said = events["items"].as_array()?.iter().filter(of);
        let said: Vec<String> = said.map(|one| one["note"].as_str().unwrap().to_owned()).collect();
        (!said.is_empty()).then_some(said)
    });
    assert!(!said.iter().any(|note| note.contains("the lock")), "{said:#?}");
}

/// Whoever is told so moves packages down, too.
pub(super) fn a_package_is_moved_down_only_where_that_is_allowed(stage: &mut Stage) {
    let of = |stage: &Stage, path: &str| stage.registry.reference(path);
    for version in ["v1.0.0", "v1.1.0", "v2.0.0"] {
        stage.push("Provider", "lowered", version);
    }
    let one =
        push(stage, CONFIGURATION, "lowers", "v1.0.0", &[("provider", "lowered", ">=v1.0.0")]);
    let two = push(stage, CONFIGURATION, "lowers", "v2.0.0", &[("provider", "lowered", "<v2.0.0")]);
    stage.install(CONFIGURATION, "lowers", &json!({"package": one}));
    becomes(stage, "Provider", "lowered", &of(stage, "lowered:v2.0.0"));
    becomes(stage, CONFIGURATION, "lowers", &one);
    stage.merge(CONFIGURATION, "lowers", &json!({"spec": {"package": two}}));
    let said = unhealthy(stage, CONFIGURATION, "lowers", "may only go up");
    assert!(said.contains("hint: move lowered to a version that satisfies the others"), "{said}");
    becomes(stage, "Provider", "lowered", &of(stage, "lowered:v2.0.0"));
    stage.restart(&["--enable-dependency-version-downgrades"]);
    becomes(stage, "Provider", "lowered", &of(stage, "lowered:v1.1.0"));
    becomes(stage, CONFIGURATION, "lowers", &two);
}
