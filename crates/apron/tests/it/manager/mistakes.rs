//! What goes wrong: each mistake is named, with what to do about it, costs nothing that was there,
//! and is over once it is mended.
//!
//! An API server that goes and a disk that is full are everybody's trouble, so they have stages of
//! their own. What an API server refuses of a package, and packages of another kind, are in
//! `revisions`; signatures and certificates in `trust`.

use super::Scenario;
use super::stage::{Backend, Gate, Manner, Stage, condition};
use crate::support::{apron, peer, program, until};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

pub(super) const ALL: &[Scenario] = &[
    ("an unreachable registry is waited for", an_unreachable_registry_is_waited_for),
    ("a silent registry keeps nobody waiting", a_silent_registry_keeps_nobody_waiting),
    ("a name that is too long is named", a_name_that_is_too_long_is_named),
    ("a tag that is not there is named", a_tag_that_is_not_there_is_named),
    ("a missing secret is named", a_missing_secret_is_named),
    ("a digest that is not there is waited for", a_digest_that_is_not_there_is_waited_for),
    ("what is no package says why", what_is_no_package_says_why),
    ("objects that belong elsewhere are refused", objects_that_belong_elsewhere_are_refused),
    ("another Crossplane is asked for", another_crossplane_is_asked_for),
    ("packages that need each other are told", packages_that_need_each_other_are_told),
];

const KIND: &str = "Configuration";

fn is_installed(stage: &Stage, kind: &str, name: &str) {
    stage.condition(kind, name, "Installed", "True", "ActivePackageRevision");
}

/// Waits until the last revision of a package says exactly this about its health.
fn revision_says(stage: &Stage, kind: &str, name: &str, expected: &str) {
    let revision = until(&format!("{name} has a revision"), || stage.revisions(kind, name).pop());
    stage.says(&format!("{kind}Revision"), &revision.2, "RevisionHealthy", expected);
}

fn is_healthy(stage: &Stage, kind: &str, name: &str) {
    until(&format!("the revision of {name} is healthy"), || {
        let revision = stage.revisions(kind, name).pop()?.2;
        let revision = stage.package(&format!("{kind}Revision"), &revision);
        (condition(&revision, "RevisionHealthy")?["status"] == "True").then_some(())
    });
}

/// Pushes an image that nobody has looked at, with this for a package.
fn push_raw(stage: &Stage, reference: &str, documents: &[&str]) {
    let directory = reference.replace(['/', ':'], "-");
    stage.scratch.write(&format!("{directory}/package.yaml"), documents.join("\n---\n"));
    let layer = format!("{directory}.tar");
    program(&stage.scratch, "tar", ["-cf", &layer, "-C", &directory, "package.yaml"]).ok();
    let words = ["append", "--oci-empty-base", "-f", &layer, "-t", reference];
    peer(&stage.scratch, "crane", words).ok();
}

/// It takes connections, and that is all.
fn a_silent_registry_keeps_nobody_waiting(stage: &Stage) {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let needs = json!({"dependsOn": [{"provider": format!("{address}/mute"), "version": ">=v1"}]});
    let needs = stage.push_package(KIND, "needs-mute", "v1.0.0", &needs, &[]);
    stage.install(KIND, "needs-mute", &json!({"package": needs}));
    stage.install("Provider", "mute", &json!({"package": format!("{address}/mute:v1.0.0")}));
    let other = stage.push(KIND, "beside-mute", "v1.0.0");
    stage.install(KIND, "beside-mute", &json!({"package": other}));
    stage.installed(KIND, "beside-mute");
    let said = stage.condition("Provider", "mute", "Installed", "False", "UnpackingPackage");
    assert!(said.contains("nothing for 30 seconds"), "{said}");
    let revision = stage.revisions(KIND, "needs-mute").pop().unwrap().2;
    let path = format!("{}/{revision}", super::stage::packages("ConfigurationRevision"));
    until("who needs it says of whom nothing is heard", || {
        let told = condition(&stage.ask(&path)?, "RevisionHealthy")?;
        told["message"].as_str()?.contains(&address.to_string()).then_some(())
    });
}

fn a_name_that_is_too_long_is_named(stage: &Stage) {
    let name = format!("{}-{}", "n".repeat(199), "n".repeat(53));
    let package = stage.push("Provider", "long", "v1.0.0");
    stage.install("Provider", &name, &json!({"package": package}));
    let said = "cannot unpack package: the name of a package may have at most 63 characters, \
                because its revisions carry it as a label, and this one has 253; install it \
                under another name, and delete this one";
    stage.says("Provider", &name, "Installed", said);
    stage.says("Provider", &name, "Healthy", said);
}

fn an_unreachable_registry_is_waited_for(stage: &Stage) {
    let gate = Gate::before(&stage.registry);
    stage.push("Provider", "away", "v1.0.0");
    let package = format!("{}/away:v1.0.0", gate.address);
    stage.install("Provider", "away", &json!({"package": package}));
    let said = stage.condition("Provider", "away", "Installed", "False", "UnpackingPackage");
    let begin = format!("cannot unpack package: cannot resolve {package}: ");
    assert!(said.starts_with(&begin), "{said}");
    let end = format!(
        " (check that {} is spelled right and can be reached from the manager); make sure that \
         {package} exists and may be pulled",
        gate.address
    );
    assert!(said.ends_with(&end), "{said}");
    gate.open();
    stage.condition("Provider", "away", "Installed", "True", "ActivePackageRevision");
}

fn a_tag_that_is_not_there_is_named(stage: &Stage) {
    stage.push("Provider", "tagged", "v1.0.0");
    let package = stage.registry.reference("tagged:v9.9.9");
    stage.install("Provider", "tagged", &json!({"package": package}));
    let said = stage.condition("Provider", "tagged", "Installed", "False", "UnpackingPackage");
    assert_eq!(
        said,
        format!(
            "cannot unpack package: cannot resolve {package}: {package} is not there; make sure \
             that {package} exists and may be pulled"
        )
    );
    stage.push("Provider", "tagged", "v9.9.9");
    stage.condition("Provider", "tagged", "Installed", "True", "ActivePackageRevision");
}

fn a_missing_secret_is_named(stage: &Stage) {
    let package = stage.registry.reference("secret:v1.0.0");
    let spec = json!({"package": package, "packagePullSecrets": [{"name": "nowhere"}]});
    stage.install("Provider", "secret", &spec);
    let said = stage.condition("Provider", "secret", "Installed", "False", "UnpackingPackage");
    assert!(said.contains("there is no Secret nowhere in namespace crossplane-system"), "{said}");
    // What needs no secret is fetched without.
    stage.push("Provider", "secret", "v1.0.0");
    stage.condition("Provider", "secret", "Installed", "True", "ActivePackageRevision");
}

fn a_digest_that_is_not_there_is_waited_for(stage: &Stage) {
    let file = stage.build(KIND, "early", "v1.0.0");
    let file = file.to_str().unwrap();
    // The same image elsewhere tells its digest.
    let elsewhere = stage.registry.reference("early-elsewhere:v1.0.0");
    apron(&stage.scratch, ["push", &elsewhere, "-f", file]).ok();
    let digest = peer(&stage.scratch, "crane", ["digest", &elsewhere]).ok().stdout;
    let package = format!("{}@{}", stage.registry.reference("early"), digest.trim());
    stage.install(KIND, "early", &json!({"package": package}));
    let text = |package: &str| {
        format!(
            "cannot unpack package: cannot resolve {package}: {package} is not there; make sure \
             that {package} exists and may be pulled"
        )
    };
    stage.says(KIND, "early", "Installed", &text(&package));
    stage.says(KIND, "early", "Healthy", &text(&package));
    assert_eq!(stage.revisions(KIND, "early"), []);
    let there = stage.registry.reference("early:v1.0.0");
    apron(&stage.scratch, ["push", &there, "-f", file]).ok();
    is_healthy(stage, KIND, "early");
    // Whoever mistypes one keeps what there is.
    let typo = format!("{}@sha256:{}", stage.registry.reference("early"), "0".repeat(64));
    stage.merge(KIND, "early", &json!({"spec": {"package": typo}}));
    stage.says(KIND, "early", "Installed", &text(&typo));
    stage.condition(KIND, "early", "Healthy", "True", "HealthyPackageRevision");
    stage.states(KIND, "early", &[(1, "Active")]);
}

/// Metadata of a package that brings nothing.
fn metadata(name: &str) -> String {
    format!("apiVersion: meta.pkg.crossplane.io/v1\nkind: {KIND}\nmetadata: {{name: {name}}}")
}

/// Installs an image with these documents, which must be refused like that; and then one that is
/// well.
fn refused_and_mended(stage: &Stage, name: &str, documents: &[&str], why: &str) {
    let package = stage.registry.reference(&format!("{name}:v1.0.0"));
    push_raw(stage, &package, documents);
    stage.install(KIND, name, &json!({"package": package}));
    let text = format!(
        "validating package contents failed: {why}; install a version of the package that is mended"
    );
    revision_says(stage, KIND, name, &text);
    let mended = stage.registry.reference(&format!("{name}:v1.0.1"));
    push_raw(stage, &mended, &[&metadata(name)]);
    stage.merge(KIND, name, &json!({"spec": {"package": mended}}));
    is_healthy(stage, KIND, name);
}

fn what_is_no_package_says_why(stage: &Stage) {
    let every = "(every document of a package needs apiVersion, kind and metadata.name)";
    let why = format!(
        "package.yaml line 1: object has no kind {every}; package.yaml line 1: object has no \
         metadata.name {every}; package.yaml line 3: unclosed bracket '['"
    );
    let documents = ["apiVersion: meta.pkg.crossplane.io/v1", "kind: [Provider"];
    refused_and_mended(stage, "odd", &documents, &why);
}

fn objects_that_belong_elsewhere_are_refused(stage: &Stage) {
    let stranger = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mixed, namespace: default}";
    let why = "package.yaml line 6: ConfigMap in v1 cannot be part of any package (keep it out of \
               the package directory, or leave it out with --ignore)";
    refused_and_mended(stage, "mixed", &[&metadata("mixed"), stranger], why);
    assert!(stage.is_absent("/api/v1/namespaces/default/configmaps/mixed"));
    let stray = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
                 metadata: {name: strays.example.org}";
    let why = "package.yaml line 5: CustomResourceDefinition \"strays.example.org\" does not belong \
               in a Configuration package (CustomResourceDefinition may be part of a Provider or \
               Function package)";
    refused_and_mended(stage, "strays", &[&metadata("strays"), stray], why);
}

fn another_crossplane_is_asked_for(stage: &Stage) {
    let spec = |version: &str| json!({"crossplane": {"version": version}});
    let package = stage.push_spec(KIND, "newer", "v1.0.0", &spec(">=v99.0.0"));
    stage.install(KIND, "newer", &json!({"package": package}));
    let text = "incompatible Crossplane version: package is not compatible with Crossplane version \
                (v2.3.4): it asks for >=v99.0.0; install a version of the package made for v2.3.4, \
                or set ignoreCrossplaneConstraints";
    revision_says(stage, KIND, "newer", text);
    let mended = stage.push_spec(KIND, "newer", "v1.0.1", &spec(">=v2.0.0"));
    stage.merge(KIND, "newer", &json!({"spec": {"package": mended}}));
    is_healthy(stage, KIND, "newer");
}

fn packages_that_need_each_other_are_told(stage: &Stage) {
    let (hen, egg) = (stage.registry.reference("hen"), stage.registry.reference("egg"));
    let needs =
        |other: &str| json!({"dependsOn": [{"configuration": other, "version": ">=v1.0.0"}]});
    stage.push_spec(KIND, "egg", "v1.0.0", &needs(&hen));
    let package = stage.push_spec(KIND, "hen", "v1.0.0", &needs(&egg));
    stage.install(KIND, "hen", &json!({"package": package}));
    let text = format!(
        "cannot resolve package dependencies: {hen} v1.0.0 needs {egg} >=v1.0.0; {egg} v1.0.0 \
         needs {hen} >=v1.0.0; packages must not need each other in a circle; hint: remove one of \
         these dependencies"
    );
    revision_says(stage, KIND, "hen", &text);
    // An egg that needs nobody ends it.
    stage.push(KIND, "egg", "v1.1.0");
    is_healthy(stage, KIND, "hen");
}

fn the_api_server_goes_and_comes_back(backend: Backend) {
    let stage = Stage::open_with(backend, Manner::Gated);
    let before = stage.push(KIND, "before", "v1.0.0");
    stage.install(KIND, "before", &json!({"package": before}));
    is_healthy(&stage, KIND, "before");
    let gate = stage.gate.as_ref().unwrap();
    // A busy server may have been told of before.
    let told = stage.said().len();
    gate.close();
    let after = stage.push(KIND, "after", "v1.0.0");
    stage.install(KIND, "after", &json!({"package": after}));
    let advice = "; make sure that it runs and that the manager can reach it, which tries again by \
                  itself";
    let line = until("the manager says that nobody answers", || {
        let said = stage.said();
        let lines = said.get(told..)?.lines();
        let mut lines = lines.filter_map(|line| serde_json::from_str::<Json>(line).ok());
        lines.find(|line| line["message"].as_str().is_some_and(|text| text.ends_with(advice)))
    });
    assert_eq!(line["level"], "warning");
    let message = line["message"].as_str().unwrap();
    assert!(message.starts_with("the API server cannot be reached or is busy: "), "{message}");
    gate.open();
    is_installed(&stage, KIND, "after");
    is_healthy(&stage, KIND, "after");
    is_installed(&stage, KIND, "before");
}

#[test]
fn the_embedded_server_goes_and_comes_back() {
    the_api_server_goes_and_comes_back(Backend::Embedded);
}

#[test]
fn a_real_server_goes_and_comes_back() {
    the_api_server_goes_and_comes_back(Backend::Real);
}

#[test]
fn a_full_disk_is_named_and_waited_for() {
    let mut stage = Stage::open_with(Backend::Embedded, Manner::Fragile);
    let before = stage.push(KIND, "before", "v1.0.0");
    stage.install(KIND, "before", &json!({"package": before}));
    is_healthy(&stage, KIND, "before");
    let package = stage.push(KIND, "later", "v1.0.0");
    stage.break_disk("fsync", "ENOSPC");
    stage.install(KIND, "later", &json!({"package": package}));
    let text = format!(
        "cannot unpack package: cannot resolve {package}: {package} cannot be kept: cannot use the \
         package cache {}: the disk is full: No space left on device (os error 28); free some space \
         or give the cache more",
        stage.cache.display()
    );
    stage.says(KIND, "later", "Installed", &text);
    // Nothing half written is left between two tries, and what was there is there.
    until("the cache holds one package in three files", || {
        let files = fs_err::read_dir(&stage.cache).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let names: Vec<String> = names.filter(|name| !name.starts_with("tag-")).collect();
        let first = |name: &String| name.split('.').next().map(str::to_owned);
        let packages: BTreeSet<String> = names.iter().filter_map(first).collect();
        ((packages.len(), names.len()) == (1, 3)).then_some(())
    });
    is_installed(&stage, KIND, "before");
    stage.heal_disk();
    is_installed(&stage, KIND, "later");
    is_healthy(&stage, KIND, "later");
}
