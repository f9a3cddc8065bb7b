//! Worlds in, steps out, as text a person can check.
//!
//! [`act`] carries a step out on the world itself, with a cluster that does as it is told.

mod adoption;
mod certificates;
mod flow;
mod handover;
mod upstream;

use super::{Certificate, Lifetimes, Managed, Package, RETRY, Settings, World, step};
use crate::authority::Allowed;
use crate::step::{Action, Expect, MANAGER, Need, Refusal, Step, Target, Wake};
use api::meta::PackageKind;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use oci::Digest;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const NAMESPACE: &str = "crossplane-system";
/// 2026-01-01.
const NOW: i64 = 1_767_225_600;
const DAY: i64 = 24 * 60 * 60;

/// An active provider revision whose objects are not there yet.
fn world() -> World {
    let revision = json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision",
        "metadata": {
            "name": "p-1", "uid": "uid-p-1", "generation": 2, "resourceVersion": "7",
            "labels": {"pkg.crossplane.io/package": "p"},
            "ownerReferences": [{
                "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "name": "p", "uid": "uid-p",
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "desiredState": "Active", "image": "xpkg.example.org/acme/p:v1", "revision": 1,
            "packagePullPolicy": "IfNotPresent", "runtimeConfigRef": {"name": "default"},
            "tlsServerSecretName": "p-tls-server", "tlsClientSecretName": "p-tls-client",
        },
    });
    World {
        revision: serde_json::from_value(revision).unwrap(),
        kind: PackageKind::Provider,
        siblings: Vec::new(),
        package: Some(Package { digest: Digest::of(b"one"), image: None, requests: Vec::new() }),
        allowed: Allowed::default(),
        image_configs: Vec::new(),
        runtime_configs: Vec::new(),
        controller_configs: Vec::new(),
        managed: Managed::default(),
        account_secrets: Vec::new(),
        owned: Vec::new(),
        unbound: None,
        deployments: Vec::new(),
        live: BTreeMap::new(),
        certificates: BTreeMap::new(),
        pairs: BTreeSet::new(),
        refusal: None,
        settings: Settings {
            namespace: NAMESPACE.to_owned(),
            default_registry: "index.docker.io".to_owned(),
            authority: super::AUTHORITY.to_owned(),
            lifetimes: Lifetimes::default(),
            adopts_existing: false,
        },
        now: NOW,
    }
}

/// An active function revision.
fn function() -> World {
    let mut world = world();
    world.kind = PackageKind::Function;
    world.revision.kind = "FunctionRevision".to_owned();
    world.revision.metadata.owner_references[0].kind = "Function".to_owned();
    world.revision.spec.tls_client_secret_name = None;
    world
}

fn target(kind: &str, name: &str) -> Target {
    let api_version = if kind == "Deployment" { "apps/v1" } else { "v1" };
    Target {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: Some(NAMESPACE.to_owned()),
        name: name.to_owned(),
    }
}

fn live<'a>(world: &'a World, kind: &str, name: &str) -> Option<&'a Json> {
    world.live.get(&target(kind, name)).and_then(Option::as_ref)
}

/// Puts an object there as a cluster would have it.
fn put(world: &mut World, mut object: Json, manager: &str) {
    let target = Target::of(&object);
    let before = world.live.get(&target).and_then(Option::as_ref);
    let version = before.map_or(0, |seen| {
        seen["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap()
    });
    object["metadata"]["resourceVersion"] = json!((version + 1).to_string());
    object["metadata"]["uid"] = json!(format!("uid-{}", target.name));
    let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let owners: serde_json::Map<String, Json> =
        owners.map(|one| (format!("k:{}", json!({"uid": one["uid"]})), json!({}))).collect();
    let annotations = object["metadata"]["annotations"].as_object().into_iter().flatten();
    let annotations: serde_json::Map<String, Json> =
        annotations.map(|(key, _)| (format!("f:{key}"), json!({}))).collect();
    let fields = json!({"f:metadata": {"f:ownerReferences": owners, "f:annotations": annotations}});
    object["metadata"]["managedFields"] =
        json!([{"manager": manager, "operation": "Apply", "fieldsV1": fields}]);
    if let Some(status) = before.and_then(|seen| seen.get("status")) {
        object["status"] = status.clone();
    }
    world.owned.retain(|one| Target::of(one) != target);
    if crate::control::is_controlled_by(&object, &world.revision) {
        world.owned.push(object.clone());
    }
    world.live.insert(target, Some(object));
}

fn remove(world: &mut World, target: &Target) {
    world.owned.retain(|one| Target::of(one) != *target);
    world.live.insert(target.clone(), None);
}

/// Says that the objects of the package are there, or not.
fn established(world: &mut World, is_so: bool) {
    let status = if is_so { "True" } else { "False" };
    set_condition(world, "RevisionHealthy", status, "HealthyPackageRevision");
}

fn set_condition(world: &mut World, of: &str, status: &str, reason: &str) {
    let condition = json!({
        "type": of, "status": status, "reason": reason,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": world.revision.metadata.generation,
    });
    let conditions =
        world.revision.status.get_or_insert_default().conditions.get_or_insert_default();
    conditions.retain(|one| one.condition_type != of);
    conditions.push(serde_json::from_value(condition).unwrap());
}

/// Says that the Deployment is available, or why not.
fn available(world: &mut World, name: &str, is_so: bool, message: &str) {
    let object = world.live.get_mut(&target("Deployment", name)).unwrap().as_mut().unwrap();
    let status = if is_so { "True" } else { "False" };
    object["status"]["conditions"] =
        json!([{"type": "Available", "status": status, "message": message}]);
}

/// Answers what a step needs, carries it out, and says what that was.
fn act(world: &mut World) -> String {
    for _ in 0..8 {
        match step(world) {
            Step::Need(needs) => {
                for need in needs {
                    let Need::Object(target) = need else { panic!("{need:?}") };
                    assert!(!world.live.contains_key(&target), "asked twice for {target:?}");
                    world.live.insert(target, None);
                }
            }
            Step::Do(plan) => {
                let mut lines: Vec<String> = plan.actions.iter().map(show).collect();
                lines.extend(plan.report.iter().map(|line| format!("# {line}")));
                if let Wake::After(time) = plan.wake {
                    let seconds = time.as_secs();
                    lines.push(match seconds / 86_400 {
                        0 => format!("# again in {seconds} s"),
                        days => format!("# again in {days} days"),
                    });
                }
                for action in plan.actions {
                    carry_out(world, action);
                }
                return if lines.is_empty() { "nothing".to_owned() } else { lines.join("\n") };
            }
        }
    }
    panic!("it needs and needs")
}

/// Acts until there is nothing left to do, and says everything that was done.
fn settle(world: &mut World) -> String {
    let mut told = Vec::new();
    for _ in 0..8 {
        let what = act(world);
        if what.lines().all(|line| line.starts_with('#') || line == "nothing") {
            return told.join("\n");
        }
        told.push(what);
    }
    panic!("it never settles: {told:?}")
}

fn carry_out(world: &mut World, action: Action) {
    match action {
        Action::Apply { object, expect } => {
            expected(world, &Target::of(&object), &expect);
            put(world, object, MANAGER);
        }
        Action::Delete { target, expect } => {
            expected(world, &target, &expect);
            remove(world, &target);
        }
        Action::Status { status, .. } => {
            world.revision.status = serde_json::from_value(status).unwrap();
        }
        Action::Event { .. } => {}
        Action::Merge { target, change, expect } => {
            expected(world, &target, &expect);
            let mut object = world.live[&target].clone().unwrap();
            merge(&mut object, &change);
            put(world, object, MANAGER);
        }
        Action::Issue { mut secret, keep, make, expect } => {
            let target = Target::of(&secret);
            expected(world, &target, &expect);
            let seen = world.live.get(&target).cloned().flatten().unwrap_or_default();
            let mut data = seen["data"].as_object().cloned().unwrap_or_default();
            data.extend(secret["data"].as_object().cloned().unwrap_or_default());
            data.retain(|_, value| !value.is_null());
            secret["data"] = json!(data);
            for (from, to) in keep {
                secret["data"][to] = seen["data"][from].clone();
            }
            if let Some(make) = make {
                let signer = make.signer.as_ref().map(|signer| {
                    let signer = world.live[signer].as_ref().unwrap();
                    let text = signer["data"]["tls.crt"].as_str().unwrap();
                    world.certificates[text].key.clone().unwrap()
                });
                let number = world.certificates.len();
                let text = STANDARD.encode(format!("certificate {number}"));
                let certificate = Certificate {
                    names: make.names,
                    not_before: make.not_before,
                    not_after: make.not_after,
                    key: Some(format!("key {number}")),
                    signed_by: signer,
                };
                world.certificates.insert(text.clone(), certificate);
                let key = STANDARD.encode(format!("secret {number}"));
                world.pairs.insert((text.clone(), key.clone()));
                secret["data"][make.certificate] = json!(text);
                secret["data"][make.key] = json!(key);
            }
            put(world, secret, MANAGER);
        }
        other => panic!("no business of a runtime: {other:?}"),
    }
}

/// A merge patch.
fn merge(under: &mut Json, patch: &Json) {
    let Json::Object(patch) = patch else {
        *under = patch.clone();
        return;
    };
    for (field, value) in patch {
        if value.is_null() {
            under.as_object_mut().unwrap().shift_remove(field);
        } else {
            merge(&mut under[field], value);
        }
    }
}

/// What an action was decided on is what is there.
fn expected(world: &World, target: &Target, expect: &Expect) {
    let seen = world.live.get(target).and_then(Option::as_ref);
    let owned = world.owned.iter().find(|one| Target::of(one) == *target);
    let mut found = Expect::as_found(seen.or(owned));
    // What was changed just before is known by its uid.
    if let (
        Expect::Unchanged { resource_version: None, .. },
        Expect::Unchanged { resource_version, .. },
    ) = (expect, &mut found)
    {
        *resource_version = None;
    }
    assert_eq!(*expect, found, "{target:?}");
}

fn show(action: &Action) -> String {
    match action {
        Action::Apply { object, expect } => {
            let how = if *expect == Expect::Absent { "create" } else { "apply" };
            let Target { kind, name, .. } = Target::of(object);
            format!("{how} {kind} {name}")
        }
        Action::Delete { target, .. } => format!("delete {} {}", target.kind, target.name),
        Action::Merge { target, change, .. } => {
            format!("merge {} {} {change}", target.kind, target.name)
        }
        Action::Issue { secret, keep, make, .. } => {
            let mut line = format!("issue {}", secret["metadata"]["name"].as_str().unwrap());
            for (from, to) in keep {
                write!(line, " {to}={from}").unwrap();
            }
            if let Some(make) = make {
                let days = (make.not_after - make.not_before) / DAY;
                let (usage, names) = (make.usage, make.names.join(" "));
                let what = make.certificate;
                write!(line, " {what} {usage:?} for {names}, {days} days").unwrap();
            }
            line
        }
        Action::Status { status, .. } => {
            let conditions = status["conditions"].as_array().unwrap().iter().map(|one| {
                let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
                let message = text("message");
                let message = if message.is_empty() { message } else { format!(" ({message})") };
                format!("{}={} {}{message}", text("type"), text("status"), text("reason"))
            });
            let mut parts: Vec<String> = conditions.collect();
            for key in ["tlsServerSecretName", "tlsClientSecretName", "endpoint"] {
                parts.extend(status[key].as_str().map(|value| format!("{key} {value}")));
            }
            let refs = status["appliedImageConfigRefs"].as_array().into_iter().flatten();
            parts.extend(refs.map(|one| format!("{} {}", one["reason"], one["name"])));
            format!("status {}", parts.join(", "))
        }
        Action::Event { is_warning, reason, message, .. } => {
            format!("event {} {reason}: {message}", if *is_warning { "Warning" } else { "Normal" })
        }
        other => panic!("no business of a runtime: {other:?}"),
    }
}
