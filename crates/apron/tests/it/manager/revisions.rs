//! From revisions to objects: all or nothing, handed over without a gap, one owner of each.

use super::Scenario;
use super::stage::{Stage, condition};
use crate::support::{patiently, until};
use serde_json::{Value as Json, json};
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) const ALL: &[Scenario] = &[
    ("a provider brings its definitions", a_provider_brings_its_definitions),
    ("a configuration brings its compositions", a_configuration_brings_its_compositions),
    ("an upgrade hands everything over", an_upgrade_hands_everything_over),
    ("two packages cannot have one definition", two_packages_cannot_have_one_definition),
    ("what is refused leaves nothing behind", what_is_refused_leaves_nothing_behind),
    ("a restore with other uids is mended", a_restore_with_other_uids_is_mended),
    ("what is changed or deleted comes back", what_is_changed_or_deleted_comes_back),
    ("labels that are wanted no longer go", labels_that_are_wanted_no_longer_go),
    ("an inactive revision stays an owner", an_inactive_revision_stays_an_owner),
    ("the wrong package says so", the_wrong_package_says_so),
];

/// A definition with the fields its resources have.
pub(super) fn crd(group: &str, plural: &str, fields: &[&str]) -> Json {
    let kind = format!("{}{}", plural[..1].to_uppercase(), &plural[1..]);
    let fields: serde_json::Map<String, Json> =
        fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
    let spec = json!({"type": "object", "properties": fields});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Cluster",
            "names": {"kind": kind, "plural": plural},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}

pub(super) fn path(definition: &str) -> String {
    format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition}")
}

/// The owners of an object by name; the controller has a star.
fn owners(object: &Json) -> Vec<String> {
    let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let named = owners.map(|one| {
        let star = if one["controller"] == true { "*" } else { "" };
        format!("{}{star}", one["name"].as_str().unwrap())
    });
    named.collect()
}

/// Waits until an object has these owners, in any order, and gives it.
#[track_caller]
pub(super) fn owned(stage: &Stage, path: &str, expected: &[&str]) -> Json {
    let mut last = Vec::new();
    until(&format!("{path} is owned by {expected:?}"), || {
        let object = stage.ask(path)?;
        last = owners(&object);
        last.sort();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        if last == expected { Some(object) } else { None }
    })
}

/// Waits until the revision of a package with this number is healthy, and gives it.
#[track_caller]
pub(super) fn healthy(stage: &Stage, kind: &str, package: &str, number: i64) -> Json {
    until(&format!("revision {number} of {kind} {package} is healthy"), || {
        let revisions = stage.revisions(kind, package);
        let (_, _, name) = revisions.into_iter().find(|one| one.0 == number)?;
        let revision = stage.package(&format!("{kind}Revision"), &name);
        let healthy = condition(&revision, "RevisionHealthy")?;
        (healthy["status"] == "True").then_some(revision)
    })
}

pub(super) fn name(object: &Json) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

/// Waits until the revision of a package says that this is wrong with it, and gives all it says.
/// Other things may be wrong before: that something is still on its way, say.
#[track_caller]
pub(super) fn unhealthy(stage: &Stage, kind: &str, package: &str, expected: &str) -> String {
    let mut said = Vec::new();
    patiently(|| {
        if let Some((_, _, name)) = stage.revisions(kind, package).pop() {
            let revision = stage.package(&format!("{kind}Revision"), &name);
            let healthy = condition(&revision, "RevisionHealthy").unwrap_or_default();
            let message = healthy["message"].as_str().unwrap_or_default().to_owned();
            if healthy["status"] == "False" && message.contains(expected) {
                return Ok(message);
            }
            said.push(message);
            said.dedup();
        }
        Err(format!("{kind} {package} never said {expected:?}, but {said:#?}"))
    })
}

fn a_provider_brings_its_definitions(stage: &Stage) {
    let group = "brings.example.org";
    let documents = [crd(group, "ones", &["a"]), crd(group, "twos", &["a"])];
    let package = stage.push_objects("Provider", "brings", "v1.0.0", &documents);
    let spec = json!({"package": package, "commonLabels": {"team": "a"}});
    stage.install("Provider", "brings", &spec);
    let revision = healthy(stage, "Provider", "brings", 1);
    let provider = stage.package("Provider", "brings");
    let (two, one) = (format!("twos.{group}"), format!("ones.{group}"));
    let object = stage.ask(&path(&one)).unwrap();
    assert_eq!(owners(&object), [format!("{}*", name(&revision)), "brings".to_owned()]);
    let uids: Vec<&Json> = object["metadata"]["ownerReferences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|owner| &owner["uid"])
        .collect();
    assert_eq!(uids, [&revision["metadata"]["uid"], &provider["metadata"]["uid"]]);
    assert_eq!(object["metadata"]["labels"], json!({"team": "a"}));
    let references = revision["status"]["objectRefs"].as_array().unwrap();
    let names: Vec<&Json> = references.iter().map(|one| &one["name"]).collect();
    assert_eq!(names, [&json!(two), &json!(one)], "the last comes first");
    assert_eq!(references[1]["uid"], object["metadata"]["uid"]);
    let lock = stage.ask("/apis/pkg.crossplane.io/v1beta1/locks/lock").unwrap();
    assert_eq!(lock["customResourceDefinitions"][&one], "Provider/brings");
    let finalizers = &revision["metadata"]["finalizers"];
    assert_eq!(finalizers, &json!(["revision.pkg.crossplane.io"]));
    assert_eq!(
        revision["metadata"]["annotations"]["meta.crossplane.io/description"],
        "version v1.0.0 of a package"
    );
}

fn a_configuration_brings_its_compositions(stage: &Stage) {
    let xrd = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xthings.composes.example.org"},
        "spec": {
            "group": "composes.example.org", "names": {"kind": "XThing", "plural": "xthings"},
            "versions": [{"name": "v1", "served": true, "referenceable": true, "schema":
                {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}}],
        },
    });
    let composition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "composes"},
        "spec": {
            "compositeTypeRef": {"apiVersion": "composes.example.org/v1", "kind": "XThing"},
            "mode": "Pipeline", "pipeline": [],
        },
    });
    let package = stage.push_objects("Configuration", "composes", "v1.0.0", &[xrd, composition]);
    stage.install("Configuration", "composes", &json!({"package": package}));
    let revision = healthy(stage, "Configuration", "composes", 1);
    let controller = format!("{}*", name(&revision));
    for one in
        ["compositions/composes", "compositeresourcedefinitions/xthings.composes.example.org"]
    {
        let object = stage.ask(&format!("/apis/apiextensions.crossplane.io/v1/{one}")).unwrap();
        assert_eq!(owners(&object), [controller.as_str(), "composes"], "{one}");
    }
    stage.condition("Configuration", "composes", "Healthy", "True", "HealthyPackageRevision");
}

fn an_upgrade_hands_everything_over(stage: &Stage) {
    let (kind, group) = ("Provider", "hands.example.org");
    let first = [crd(group, "kepts", &["a"]), crd(group, "drops", &["a"])];
    let second = [crd(group, "kepts", &["b"]), crd(group, "news", &["a"])];
    let one = stage.push_objects(kind, "hands", "v1.0.0", &first);
    let two = stage.push_objects(kind, "hands", "v2.0.0", &second);
    stage.install(kind, "hands", &json!({"package": one}));
    let old = name(&healthy(stage, kind, "hands", 1));
    let kept = path(&format!("kepts.{group}"));
    let resource = format!("/apis/{group}/v1/kepts");
    let thing = json!({"apiVersion": format!("{group}/v1"), "kind": "Kepts",
        "metadata": {"name": "thing"}, "spec": {"a": "x"}});
    until("resources are served", || stage.ask(&resource));
    let thing = stage.change("POST", &resource, "application/json", &thing);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // At no moment is the definition without an owner, or without a controller.
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                // A server may be too busy to answer.
                let Some(object) = stage.ask(&kept) else { continue };
                let controllers = owners(&object).iter().filter(|one| one.ends_with('*')).count();
                assert_eq!(controllers, 1, "{object}");
            }
        });
        stage.merge(kind, "hands", &json!({"spec": {"package": two}}));
        let new = name(&healthy(stage, kind, "hands", 2));
        let object = owned(stage, &kept, &["hands", &old, &format!("{new}*")]);
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        let fields = object.pointer(schema).unwrap();
        assert!(fields["a"].is_null() && !fields["b"].is_null(), "{fields}");
        // What is no longer part of the package is the old revision's alone.
        owned(stage, &path(&format!("drops.{group}")), &[&old]);
        // And back.
        stage.merge(kind, "hands", &json!({"spec": {"package": one}}));
        healthy(stage, kind, "hands", 3);
        owned(stage, &kept, &["hands", &format!("{old}*"), &new]);
        owned(stage, &path(&format!("drops.{group}")), &["hands", &format!("{old}*")]);
        owned(stage, &path(&format!("news.{group}")), &[&new]);
        is_over.store(true, Ordering::SeqCst);
    });
    let after = stage.ask(&format!("{resource}/thing")).expect("resources survive");
    assert_eq!(after["metadata"]["uid"], thing["metadata"]["uid"]);
    assert_eq!(after["spec"], json!({"a": "x"}));
}

fn two_packages_cannot_have_one_definition(stage: &Stage) {
    let (kind, group) = ("Provider", "shared.example.org");
    let of = |own: &str| [crd(group, own, &["a"]), crd(group, "shareds", &["a"])];
    let left = stage.push_objects(kind, "left", "v1.0.0", &of("lefts"));
    let right = stage.push_objects(kind, "right", "v1.0.0", &of("rights"));
    stage.install(kind, "left", &json!({"package": left}));
    stage.install(kind, "right", &json!({"package": right}));
    let is_healthy = |package: &str| {
        let (_, _, name) = stage.revisions(kind, package).pop()?;
        let revision = stage.package("ProviderRevision", &name);
        Some(condition(&revision, "RevisionHealthy")?["status"] == "True")
    };
    let (winner, loser) =
        until("one of them is healthy", || match (is_healthy("left"), is_healthy("right")) {
            (Some(true), _) => Some(("left", "right")),
            (_, Some(true)) => Some(("right", "left")),
            _ => None,
        });
    let said = unhealthy(stage, kind, loser, &format!("shareds.{group}"));
    assert!(said.contains(winner) && said.contains(loser), "both are named: {said}");
    let only = path(&format!("{loser}s.{group}"));
    assert!(stage.ask(&only).is_none(), "the other has nothing at all");
    assert_eq!(is_healthy(winner), Some(true));
    // Once the winner goes, the other has everything.
    let path_of = format!("/apis/pkg.crossplane.io/v1/providers/{winner}");
    stage.change("DELETE", &path_of, "application/json", &json!({}));
    let revision = name(&healthy(stage, kind, loser, 1));
    owned(stage, &only, &[loser, &format!("{revision}*")]);
    owned(stage, &path(&format!("shareds.{group}")), &[loser, &format!("{revision}*")]);
}

fn what_is_refused_leaves_nothing_behind(stage: &Stage) {
    let (kind, group) = ("Provider", "refused.example.org");
    let mut bad = crd(group, "bads", &["a"]);
    bad["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] =
        json!([{"rule": "self.nowhere == 1"}]);
    let documents = [crd(group, "alphas", &["a"]), bad, crd(group, "omegas", &["a"])];
    let package = stage.push_unsound(kind, "refused", "v1.0.0", &documents);
    stage.install(kind, "refused", &json!({"package": package}));
    let begin = format!(
        "cannot establish control of object: the API server refuses CustomResourceDefinition \
         bads.{group} (document 3 of the package): "
    );
    let said = unhealthy(stage, kind, "refused", &begin);
    assert!(said.starts_with(&begin), "{said}");
    assert!(said.contains("nothing was written"), "{said}");
    // Definitions come before what runs.
    let revision = stage.revisions(kind, "refused").remove(0).2;
    assert!(stage.is_absent(&super::runtimes::deployments(&revision)));
    for plural in ["alphas", "bads", "omegas"] {
        assert!(stage.ask(&path(&format!("{plural}.{group}"))).is_none(), "{plural}");
    }
    let documents = [crd(group, "alphas", &["a"]), crd(group, "bads", &["a"])];
    let mended = stage.push_objects(kind, "refused", "v1.0.1", &documents);
    stage.merge(kind, "refused", &json!({"spec": {"package": mended}}));
    healthy(stage, kind, "refused", 2);
}

fn a_restore_with_other_uids_is_mended(stage: &Stage) {
    let (kind, group) = ("Provider", "restored.example.org");
    let package = stage.push_objects(kind, "restored", "v1.0.0", &[crd(group, "ones", &["a"])]);
    stage.install(kind, "restored", &json!({"package": package}));
    let revision = healthy(stage, kind, "restored", 1);
    let definition = path(&format!("ones.{group}"));
    // Somebody else keeps it, so that the garbage collector does not take it for an orphan.
    let anchor = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "anchor"}});
    let anchor = stage.change("POST", "/api/v1/namespaces", "application/json", &anchor);
    let before = stage.ask(&definition).unwrap();
    let mut refs = before["metadata"]["ownerReferences"].as_array().unwrap().clone();
    for (number, owner) in refs.iter_mut().enumerate() {
        owner["uid"] = json!(format!("00000000-0000-0000-0000-00000000000{number}"));
    }
    refs.push(json!({"apiVersion": "v1", "kind": "Namespace", "name": "anchor",
        "uid": anchor["metadata"]["uid"]}));
    let patch = json!({"metadata": {"ownerReferences": refs}});
    stage.change("PATCH", &definition, "application/merge-patch+json", &patch);
    let controller = format!("{}*", name(&revision));
    until("owners have their uids", || {
        let object = stage.ask(&definition)?;
        assert_eq!(object["metadata"]["uid"], before["metadata"]["uid"], "it is the same object");
        let uid = |of: &str| {
            let all = object["metadata"]["ownerReferences"].as_array()?;
            Some(all.iter().find(|one| one["name"] == of)?["uid"].clone())
        };
        let right = uid(&name(&revision))? == revision["metadata"]["uid"]
            && uid("restored")? == stage.package(kind, "restored")["metadata"]["uid"];
        (right && owners(&object).contains(&controller)).then_some(())
    });
}

fn what_is_changed_or_deleted_comes_back(stage: &Stage) {
    let (kind, group) = ("Provider", "mended.example.org");
    let package = stage.push_objects(kind, "mended", "v1.0.0", &[crd(group, "ones", &["a"])]);
    stage.install(kind, "mended", &json!({"package": package}));
    healthy(stage, kind, "mended", 1);
    let definition = path(&format!("ones.{group}"));
    let patch = json!({"metadata": {"labels": {"theirs": "x"}},
        "spec": {"names": {"shortNames": ["wrong"], "categories": ["theirs"]},
                 "versions": crd(group, "ones", &["other"])["spec"]["versions"]}});
    stage.change("PATCH", &definition, "application/merge-patch+json", &patch);
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a";
    let object = until("the schema is what the package says", || {
        stage.ask(&definition).filter(|object| object.pointer(field).is_some())
    });
    assert_eq!(object["metadata"]["labels"]["theirs"], "x", "what others added stays");
    assert!(object["spec"]["names"]["shortNames"].is_null(), "the rest is replaced");
    stage.change("DELETE", &definition, "application/json", &json!({}));
    until("the definition is made again", || {
        let again = stage.ask(&definition)?["metadata"]["uid"].clone();
        (again != object["metadata"]["uid"]).then_some(())
    });
    until("the revision names the new one", || {
        let uid = stage.ask(&definition)?["metadata"]["uid"].clone();
        let revision = healthy(stage, kind, "mended", 1);
        (revision["status"]["objectRefs"][0]["uid"] == uid).then_some(())
    });
}

/// Those of a package before, and those that all objects of a package got; never those of others.
fn labels_that_are_wanted_no_longer_go(stage: &Stage) {
    let (kind, group) = ("Provider", "labelled.example.org");
    let push = |version: &str, labels: &Json| {
        let mut definition = crd(group, "ones", &["a"]);
        definition["metadata"]["labels"] = labels.clone();
        definition["metadata"]["annotations"] = labels.clone();
        stage.push_objects(kind, "labelled", version, &[definition])
    };
    let one = push("v1.0.0", &json!({"both": "1", "first": "1"}));
    let two = push("v2.0.0", &json!({"both": "2", "second": "2"}));
    let (common, definition) = (json!({"team": "a"}), path(&format!("ones.{group}")));
    stage.install(kind, "labelled", &json!({"package": one, "commonLabels": common}));
    healthy(stage, kind, "labelled", 1);
    let patch = json!({"metadata": {"labels": {"theirs": "x"}, "annotations": {"theirs": "x"}}});
    stage.change("PATCH", &definition, "application/merge-patch+json", &patch);
    let says = |labels: Json, annotations: Json| {
        until(&format!("{definition} has the labels {labels}"), || {
            let metadata = stage.ask(&definition)?["metadata"].clone();
            let mut annotations = annotations.clone();
            annotations["pkg.crossplane.io/brought-by"] =
                json!("provider.pkg.crossplane.io/labelled");
            let fits = metadata["labels"] == labels && metadata["annotations"] == annotations;
            fits.then_some(())
        });
    };
    says(
        json!({"both": "1", "first": "1", "team": "a", "theirs": "x"}),
        json!({"both": "1", "first": "1", "theirs": "x"}),
    );
    stage.merge(kind, "labelled", &json!({"spec": {"package": two}}));
    says(
        json!({"both": "2", "second": "2", "team": "a", "theirs": "x"}),
        json!({"both": "2", "second": "2", "theirs": "x"}),
    );
    stage.merge(kind, "labelled", &json!({"spec": {"commonLabels": null}}));
    says(
        json!({"both": "2", "second": "2", "theirs": "x"}),
        json!({"both": "2", "second": "2", "theirs": "x"}),
    );
}

fn an_inactive_revision_stays_an_owner(stage: &Stage) {
    let (kind, group) = ("Provider", "rests.example.org");
    let package = stage.push_objects(kind, "rests", "v1.0.0", &[crd(group, "ones", &["a"])]);
    let spec = json!({"package": package, "revisionActivationPolicy": "Manual"});
    stage.install(kind, "rests", &spec);
    let revision = healthy(stage, kind, "rests", 1);
    let (revision, definition) = (name(&revision), path(&format!("ones.{group}")));
    assert!(stage.ask(&definition).is_none(), "who was never active makes nothing");
    let turn = |wanted: &str| {
        stage.merge("ProviderRevision", &revision, &json!({"spec": {"desiredState": wanted}}));
    };
    turn("Active");
    owned(stage, &definition, &["rests", &format!("{revision}*")]);
    turn("Inactive");
    owned(stage, &definition, &["rests", &revision]);
    // It was activated, and has a number of its own since.
    healthy(stage, kind, "rests", 2);
}

fn the_wrong_package_says_so(stage: &Stage) {
    let package = stage.push("Configuration", "wrong", "v1.0.0");
    stage.install("Provider", "wrong", &json!({"package": package}));
    let wrong = format!(
        "validating package contents failed: package meta type is not Provider: {package} is a \
         Configuration; install it as a Configuration"
    );
    assert_eq!(unhealthy(stage, "Provider", "wrong", &wrong), wrong);
    let versioned = stage.push_spec(
        "Configuration",
        "elsewhere",
        "v1.0.0",
        &json!({"crossplane": {"version": ">=v99.0.0"}}),
    );
    stage.install("Configuration", "elsewhere", &json!({"package": versioned}));
    unhealthy(stage, "Configuration", "elsewhere", "it asks for >=v99.0.0");
    let ignore = json!({"spec": {"ignoreCrossplaneConstraints": true}});
    stage.merge("Configuration", "elsewhere", &ignore);
    healthy(stage, "Configuration", "elsewhere", 1);
}
