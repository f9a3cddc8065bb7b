//! What upstream's own builder makes of the same input, field by field.
//!
//! `testdata/upstream-runtime.json` was written by the builder of v2.3.4 and, where there is a
//! controller configuration, by what v1.20.0 laid over it. Ours differs in three things: the image
//! is pinned to a digest, pods know when their certificates change, and objects say whose they are.

use super::super::config::choose;
use super::super::deployment::{ANNOTATION_CERTIFICATES, deployment};
use super::super::objects::{account, service};
use super::*;
use api::pkg::ANNOTATION_BROUGHT_BY;

const VECTORS: &str = include_str!("../../../testdata/upstream-runtime.json");

/// A world in which a vector's input is to be decided about.
fn world_of(vector: &Json) -> World {
    let mut world =
        if vector["revision"]["kind"] == "FunctionRevision" { function() } else { world() };
    world.revision = serde_json::from_value(vector["revision"].clone()).unwrap();
    let read = |key: &str| vector.get(key).cloned();
    world.runtime_configs =
        read("runtimeConfig").map(|one| serde_json::from_value(one).unwrap()).into_iter().collect();
    if let Some(config) = read("controllerConfig") {
        world.controller_configs = vec![serde_json::from_value(config).unwrap()];
        let reference = json!({"name": "cc"});
        world.revision.spec.controller_config_ref = serde_json::from_value(reference).unwrap();
    }
    let secrets = vector["accountSecrets"].as_array().into_iter().flatten();
    world.account_secrets = secrets.map(|one| one["name"].as_str().unwrap().to_owned()).collect();
    if let Some(secret) = vector["imageSecret"].as_str() {
        let config = json!({"metadata": {"name": "ic"}, "spec": {
            "matchImages": [{"prefix": "xpkg.example.org"}],
            "registry": {"authentication": {"pullSecretRef": {"name": secret}}},
        }});
        world.image_configs = vec![serde_json::from_value(config).unwrap()];
        let refs = json!([{"name": "ic", "reason": "SetImagePullSecret"}]);
        let status = world.revision.status.get_or_insert_default();
        status.applied_image_config_refs = serde_json::from_value(refs).unwrap();
    }
    world
}

/// Without what only one side says: kinds, and things that are empty.
fn essence(value: &Json) -> Json {
    match value {
        Json::Object(fields) => {
            // Only apron says whose an object is besides its owners.
            let fields = fields.iter().filter(|(key, _)| *key != ANNOTATION_BROUGHT_BY);
            let fields = fields.map(|(key, value)| (key.clone(), essence(value)));
            fields.filter(|(_, value)| !value.is_null() && *value != json!({})).collect()
        }
        Json::Array(items) => items.iter().map(essence).collect(),
        other => other.clone(),
    }
}

fn compare(about: &str, what: &str, ours: &Json, theirs: &Json) {
    let mut ours = essence(ours);
    for key in ["apiVersion", "kind"] {
        ours.as_object_mut().unwrap().shift_remove(key);
    }
    let theirs = essence(theirs);
    let differences = differences("", &ours, &theirs);
    assert!(differences.is_empty(), "{about}: {what}:\n{}", differences.join("\n"));
}

fn differences(path: &str, ours: &Json, theirs: &Json) -> Vec<String> {
    match (ours, theirs) {
        (Json::Object(ours), Json::Object(theirs)) => {
            let keys: std::collections::BTreeSet<&String> =
                ours.keys().chain(theirs.keys()).collect();
            let of = |map: &serde_json::Map<String, Json>, key: &str| {
                map.get(key).cloned().unwrap_or_default()
            };
            keys.into_iter()
                .flat_map(|key| {
                    differences(&format!("{path}/{key}"), &of(ours, key), &of(theirs, key))
                })
                .collect()
        }
        (Json::Array(one), Json::Array(two)) if one.len() == two.len() => {
            let pairs = one.iter().zip(two).enumerate();
            pairs
                .flat_map(|(at, (one, two))| differences(&format!("{path}/{at}"), one, two))
                .collect()
        }
        _ if ours == theirs => Vec::new(),
        _ => vec![format!("  {path}: {ours} and not {theirs}")],
    }
}

#[test]
fn objects_are_those_of_upstream() {
    let vectors: Vec<Json> = serde_json::from_str(VECTORS).unwrap();
    assert_eq!(vectors.len(), 15);
    for vector in &vectors {
        let about = vector["about"].as_str().unwrap();
        let world = world_of(vector);
        let chosen = choose(&world, &world.revision).unwrap();
        let names = chosen.names(&world.revision);
        compare(about, "service", &service(&world, &chosen, &names), &vector["service"]);
        compare(
            about,
            "account",
            &account(&world, &chosen, &names, None),
            &vector["serviceAccount"],
        );
        let ours = deployment(&world, &chosen, &names, None).unwrap();
        let mut theirs = vector["deployment"].clone();
        let digest = &world.package.as_ref().unwrap().digest;
        let image = theirs.pointer_mut("/spec/template/spec/containers/0/image").unwrap();
        let is_package = image.as_str().is_some_and(|image| image.contains("/acme/p:v1"));
        if is_package {
            *image = json!(format!("{}@{digest}", image.as_str().unwrap()));
        }
        compare(about, "deployment", &ours, &theirs);
    }
}

#[test]
fn pods_know_when_their_certificates_change() {
    let world = world();
    let chosen = choose(&world, &world.revision).unwrap();
    let names = chosen.names(&world.revision);
    let built = deployment(&world, &chosen, &names, Some("f00")).unwrap();
    let annotations = &built["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations[ANNOTATION_CERTIFICATES], "f00");
}

#[test]
fn the_image_is_pinned_to_what_was_installed() {
    let digest = Digest::of(b"one");
    let fixed = format!("xpkg.example.org/acme/p@{}", Digest::of(b"two"));
    for (image, controller, runs) in [
        ("xpkg.example.org/acme/p:v1", None, format!("xpkg.example.org/acme/p:v1@{digest}")),
        ("acme/p", None, format!("index.docker.io/acme/p:latest@{digest}")),
        (&fixed, None, fixed.clone()),
        // An old package's controller is another image, which is nobody's to pin.
        (
            &fixed,
            Some("acme/controller:v0.14.0"),
            "index.docker.io/acme/controller:v0.14.0".to_owned(),
        ),
        (&fixed, Some("ghcr.io/acme/c:v1"), "ghcr.io/acme/c:v1".to_owned()),
    ] {
        let mut world = world();
        world.revision.spec.image = image.to_owned();
        world.package.as_mut().unwrap().image = controller.map(str::to_owned);
        let chosen = choose(&world, &world.revision).unwrap();
        let built = deployment(&world, &chosen, &chosen.names(&world.revision), None).unwrap();
        assert_eq!(built["spec"]["template"]["spec"]["containers"][0]["image"], runs, "{image}");
    }
}

#[test]
fn what_two_layers_name_is_there_once() {
    let config = json!({"metadata": {"name": "default"}, "spec": {"deploymentTemplate": {"spec": {
        "selector": {}, "template": {"spec": {
            "volumes": [{"name": "tls-server-certs", "emptyDir": {}}],
            "containers": [{
                "name": "package-runtime",
                "env": [{"name": "POD_NAMESPACE", "value": "x"}, {"name": "A", "value": "1"}],
                "ports": [{"name": "http", "containerPort": 8080}],
                "volumeMounts": [{"name": "v", "mountPath": "/tls/server"}],
            }],
        }},
    }}}});
    let mut world = world();
    world.runtime_configs = vec![serde_json::from_value(config).unwrap()];
    let chosen = choose(&world, &world.revision).unwrap();
    let built = deployment(&world, &chosen, &chosen.names(&world.revision), None).unwrap();
    let pod = &built["spec"]["template"]["spec"];
    let names = |list: &Json, key: &str| -> Vec<String> {
        let mut names: Vec<String> =
            list.as_array().unwrap().iter().map(|one| one[key].to_string()).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all, "{list}");
        names
    };
    let container = &pod["containers"][0];
    assert!(names(&container["env"], "name").contains(&"\"A\"".to_owned()));
    names(&container["volumeMounts"], "mountPath");
    names(&pod["volumes"], "name");
    assert_eq!(names(&container["ports"], "containerPort"), ["8080", "9443"]);
}
