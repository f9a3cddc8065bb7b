//! What is there before a package comes: what no package brought stays its maker's, what packages
//! brought before is taken back.

use super::Scenario;
use super::revisions::{crd, healthy, name, owned, path, unhealthy};
use super::stage::{Stage, condition, packages};
use crate::support::until;
use serde_json::{Value as Json, json};

pub(super) const ALL: &[Scenario] = &[
    ("c2: a definition by hand is given by a command", c2_a_definition_by_hand_stays_until_given),
    ("c2: a package is given what is there", c2_a_package_is_given_what_is_there),
    ("c2: an orphaning delete is undone", c2_after_an_orphaning_delete_all_is_taken_back),
    ("c2: a restore without owners is mended", c2_after_a_restore_without_owners_all_is_taken_back),
    ("c2: what upstream's core wrote is known", c2_what_upstreams_core_wrote_is_taken_back),
    ("c2: a Service by hand stays", c2_a_service_by_hand_stays_until_given),
    ("c2: who waits keeps nothing from others", c2_who_waits_keeps_nothing_from_others),
];

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SERVICES: &str = "/api/v1/namespaces/crossplane-system/services";

/// Makes a definition as an administrator does, and gives it.
fn by_hand(stage: &Stage, group: &str, field: &str) -> Json {
    let path = format!("{DEFINITIONS}?fieldManager=kubectl-create");
    stage.change("POST", &path, "application/json", &crd(group, "ones", &[field]))
}

/// Whether an object still says what it said, and belongs to nobody.
#[track_caller]
fn is_untouched(stage: &Stage, path: &str, before: &Json) {
    let now = stage.ask(path).unwrap();
    assert_eq!(now["spec"], before["spec"]);
    for field in ["uid", "ownerReferences", "annotations", "labels"] {
        assert_eq!(now["metadata"][field], before["metadata"][field], "{field}");
    }
}

/// Waits until an object is a package's, and is the one it was.
#[track_caller]
fn is_taken(stage: &Stage, path: &str, before: &Json, kind: &str, package: &str) {
    let revision = name(&healthy(stage, kind, package, 1));
    let now = owned(stage, path, &[package, &format!("{revision}*")]);
    assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"], "it is the same object");
    let mark = format!("{}.pkg.crossplane.io/{package}", kind.to_lowercase());
    assert_eq!(now["metadata"]["annotations"]["pkg.crossplane.io/brought-by"], mark);
}

/// Installs a provider that brings a definition that is there, and waits until it says so.
#[track_caller]
fn is_refused(stage: &Stage, package: &str, group: &str) -> String {
    let objects = [crd(group, "ones", &["theirs"]), crd(group, "twos", &["theirs"])];
    let reference = stage.push_objects("Provider", package, "v1.0.0", &objects);
    stage.install("Provider", package, &json!({"package": reference}));
    let said = unhealthy(stage, "Provider", package, "not brought by a package");
    assert!(stage.is_absent(&path(&format!("twos.{group}"))), "it is all or nothing");
    said
}

fn c2_a_definition_by_hand_stays_until_given(stage: &Stage) {
    let (package, group) = ("hand", "hand.example.org");
    let (before, one) = (by_hand(stage, group, "mine"), path(&format!("ones.{group}")));
    let objects = [crd(group, "ones", &["theirs"]), crd(group, "twos", &["theirs"])];
    let reference = stage.push_objects("Provider", package, "v1.0.0", &objects);
    let told = stage.read_only(&["plan", &reference]).failed();
    assert!(told.contains("was there already, not brought by a package"), "{told}");
    let said = is_refused(stage, package, group);
    assert_eq!(
        said,
        "cannot establish control of object: CustomResourceDefinition ones.hand.example.org was \
         there already, not brought by a package; to give it to the package, after which it goes \
         when that is uninstalled: apron adopt hand, or annotate it with \
         pkg.crossplane.io/adopt=provider.pkg.crossplane.io/hand"
    );
    is_untouched(stage, &one, &before);
    // What would become of it is shown before, to somebody who may not change it.
    let shown = stage.read_only(&["adopt", package, "--dry-run"]).ok();
    assert!(
        shown.stdout.contains("~ CustomResourceDefinition ones.hand.example.org"),
        "{}",
        shown.all()
    );
    assert!(shown.stdout.contains("spec.mine"), "{}", shown.all());
    assert!(shown.stderr.contains("go when it is uninstalled"), "{}", shown.all());
    stage.apron(&["adopt", package, "ones.other.example.org", "--yes"]).failed();
    let asked = stage.apron(&["adopt", package]).failed();
    assert!(asked.contains("--yes"), "{asked}");
    is_untouched(stage, &one, &before);
    let words = ["adopt", package, "customresourcedefinition/ones.hand.example.org", "--yes"];
    let words = [&words[..], &["-o", "json"]].concat();
    let given: Json = serde_json::from_str(&stage.apron(&words).ok().stdout).unwrap();
    assert_eq!(given["isAdopted"], true, "{given}");
    assert_eq!(given["objects"][0]["uid"], before["metadata"]["uid"], "{given}");
    is_taken(stage, &one, &before, "Provider", package);
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/theirs";
    assert!(stage.ask(&one).unwrap().pointer(field).is_some(), "it says what the package says");
    let nothing = stage.apron(&["adopt", package]).ok().stdout;
    assert_eq!(nothing, "nothing is in the way of provider/hand\n");
}

fn c2_a_package_is_given_what_is_there(stage: &Stage) {
    let (kind, package) = ("Configuration", "heir");
    let composition = |mode: &str| {
        json!({
            "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
            "metadata": {"name": "heirloom"},
            "spec": {
                "compositeTypeRef": {"apiVersion": "heir.example.org/v1", "kind": mode},
                "mode": "Pipeline", "pipeline": [],
            },
        })
    };
    let all = "/apis/apiextensions.crossplane.io/v1/compositions";
    let before = stage.change("POST", all, "application/json", &composition("Mine"));
    let one = format!("{all}/heirloom");
    let reference = stage.push_objects(kind, package, "v1.0.0", &[composition("Theirs")]);
    stage.install(kind, package, &json!({"package": reference}));
    unhealthy(stage, kind, package, "Composition heirloom was there");
    is_untouched(stage, &one, &before);
    let consent = |value: &str| {
        let annotations = json!({"pkg.crossplane.io/adopt-existing": value});
        stage.merge(kind, package, &json!({"metadata": {"annotations": annotations}}));
    };
    consent("true");
    is_taken(stage, &one, &before, kind, package);
    assert_eq!(stage.ask(&one).unwrap()["spec"]["compositeTypeRef"]["kind"], "Theirs");
}

fn c2_after_an_orphaning_delete_all_is_taken_back(stage: &Stage) {
    let (package, group) = ("orphaned", "orphaned.example.org");
    let objects = [crd(group, "ones", &["a"])];
    let reference = stage.push_objects("Provider", package, "v1.0.0", &objects);
    stage.install("Provider", package, &json!({"package": reference}));
    stage.installed("Provider", package);
    let one = path(&format!("ones.{group}"));
    let before = stage.ask(&one).unwrap();
    let revision = stage.revisions("Provider", package).remove(0).2;
    let orphan =
        json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"});
    for path in [
        format!("{}/{package}", packages("Provider")),
        format!("{}/{revision}", packages("ProviderRevision")),
    ] {
        stage.change("DELETE", &path, "application/json", &orphan);
        until(&format!("{path} is gone"), || stage.is_absent(&path).then_some(()));
    }
    let left = until("nothing owns it", || {
        stage.ask(&one).filter(|it| it["metadata"]["ownerReferences"].is_null())
    });
    assert_eq!(left["metadata"]["uid"], before["metadata"]["uid"]);
    stage.install("Provider", package, &json!({"package": reference}));
    stage.installed("Provider", package);
    is_taken(stage, &one, &before, "Provider", package);
}

/// Labels and annotations are what every backup has.
fn c2_after_a_restore_without_owners_all_is_taken_back(stage: &Stage) {
    let (package, group) = ("backup", "backup.example.org");
    let objects = [crd(group, "ones", &["a"])];
    let reference = stage.push_objects("Provider", package, "v1.0.0", &objects);
    stage.install("Provider", package, &json!({"package": reference}));
    healthy(stage, "Provider", package, 1);
    let one = path(&format!("ones.{group}"));
    let kept = stage.ask(&one).unwrap();
    let itself = format!("{}/{package}", packages("Provider"));
    stage.change("DELETE", &itself, "application/json", &json!({}));
    until("it is gone", || (stage.is_absent(&itself) && stage.is_absent(&one)).then_some(()));
    let mut restored = crd(group, "ones", &["a"]);
    restored["metadata"]["annotations"] = kept["metadata"]["annotations"].clone();
    let path = format!("{DEFINITIONS}?fieldManager=restore");
    let before = stage.change("POST", &path, "application/json", &restored);
    // It has moved to another name meanwhile.
    stage.install("Provider", "moved-backup", &json!({"package": reference}));
    is_taken(stage, &one, &before, "Provider", "moved-backup");
}

fn c2_what_upstreams_core_wrote_is_taken_back(stage: &Stage) {
    let (package, group) = ("core", "core.example.org");
    let objects = [crd(group, "ones", &["a"])];
    let path_of = format!("{DEFINITIONS}?fieldManager=crossplane");
    let before = stage.change("POST", &path_of, "application/json", &objects[0]);
    let reference = stage.push_objects("Provider", package, "v1.0.0", &objects);
    stage.install("Provider", package, &json!({"package": reference}));
    is_taken(stage, &path(&format!("ones.{group}")), &before, "Provider", package);
}

fn c2_a_service_by_hand_stays_until_given(stage: &Stage) {
    let package = "served";
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": package},
        "spec": {"selector": {"app": "mine"}, "ports": [{"name": "mine", "port": 80}]},
    });
    let before = stage.change("POST", SERVICES, "application/json", &service);
    let reference = stage.push_provider(package, "v1.0.0", &json!({}));
    let told = stage.read_only(&["plan", &reference]).failed();
    assert!(told.contains("Service served was there"), "{told}");
    stage.install("Provider", package, &json!({"package": reference}));
    let one = format!("{SERVICES}/{package}");
    let said = until("the runtime says so", || {
        let revision = stage.revisions("Provider", package).pop()?.2;
        let revision = stage.package("ProviderRevision", &revision);
        let message = condition(&revision, "RuntimeHealthy")?["message"].as_str()?.to_owned();
        message.contains("not brought by a package").then_some(message)
    });
    assert!(
        said.contains("Service served was there") && said.contains("apron adopt served"),
        "{said}"
    );
    is_untouched(stage, &one, &before);
    stage.apron(&["adopt", package, "--yes"]).ok();
    stage.installed("Provider", package);
    let now = stage.ask(&one).unwrap();
    assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(now["spec"]["selector"]["pkg.crossplane.io/provider"], package, "{now}");
}

/// A package that waits for an administrator has nothing, and does not hold what others want.
fn c2_who_waits_keeps_nothing_from_others(stage: &Stage) {
    let group = "waiting.example.org";
    by_hand(stage, group, "mine");
    is_refused(stage, "waiting", group);
    let objects = [crd(group, "twos", &["theirs"])];
    let reference = stage.push_objects("Provider", "rival", "v1.0.0", &objects);
    stage.install("Provider", "rival", &json!({"package": reference}));
    let revision = name(&healthy(stage, "Provider", "rival", 1));
    owned(stage, &path(&format!("twos.{group}")), &["rival", &format!("{revision}*")]);
}

/// With `--adopt-existing` it is as with upstream's manager.
pub(super) fn c2_a_manager_adopts_if_it_is_told_to(stage: &mut Stage) {
    let (package, group) = ("adopts", "adopts.example.org");
    let (before, one) = (by_hand(stage, group, "mine"), path(&format!("ones.{group}")));
    is_refused(stage, package, group);
    is_untouched(stage, &one, &before);
    stage.restart(&["--adopt-existing"]);
    is_taken(stage, &one, &before, "Provider", package);
}
