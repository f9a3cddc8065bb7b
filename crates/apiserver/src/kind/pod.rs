//! What the server fills in for pods and their templates.

use serde_json::{Map, Value, json};

use super::defaults::{map_of, set_default};
use schema::object::map_at;

type Object = Map<String, Value>;

/// The mode of files made from secrets and config maps: 0644.
const FILE_MODE: u32 = 0o644;

/// Fills in a pod's specification, as far as a template has it too.
pub(super) fn spec(spec: &mut Object) {
    set_default(spec, "restartPolicy", json!("Always"));
    set_default(spec, "terminationGracePeriodSeconds", json!(30));
    set_default(spec, "dnsPolicy", json!("ClusterFirst"));
    set_default(spec, "securityContext", json!({}));
    set_default(spec, "schedulerName", json!("default-scheduler"));
    for name in ["containers", "initContainers"] {
        each(spec, name, container);
    }
    each(spec, "volumes", volume);
    name_account(spec);
}

/// A pod's account is told in two places, of which the newer decides; the older alone is as good.
fn name_account(spec: &mut Object) {
    let text = |field: &str| {
        let said = spec.get(field).and_then(Value::as_str).filter(|said| !said.is_empty());
        said.map(str::to_owned)
    };
    if let Some(account) = text("serviceAccountName").or_else(|| text("serviceAccount")) {
        for field in ["serviceAccountName", "serviceAccount"] {
            spec.insert(field.to_owned(), json!(account));
        }
    }
}

/// Fills in what only a pod itself has.
pub(super) fn pod(object: &mut Value) {
    let spec = map_at(object, "spec");
    set_default(spec, "enableServiceLinks", json!(true));
    self::spec(spec);
    for name in ["containers", "initContainers"] {
        each(spec, name, |container| {
            let limits = container.get("resources").and_then(|of| of.get("limits")).cloned();
            let Some(Value::Object(limits)) = limits else { return };
            let Some(resources) = container.get_mut("resources") else { return };
            let requests = map_at(resources, "requests");
            for (name, amount) in limits {
                requests.entry(name).or_insert(amount);
            }
        });
    }
}

/// A pod's first address is told in two places, of which the older decides.
pub(super) fn keep_addresses(status: &mut Object) {
    let Some(address) =
        status.get("podIP").filter(|it| it.as_str().is_some_and(|it| !it.is_empty()))
    else {
        return;
    };
    let first = status.get("podIPs").and_then(|all| all.get(0)).and_then(|one| one.get("ip"));
    if first != Some(address) {
        status.insert("podIPs".to_owned(), json!([{"ip": address}]));
    }
}

/// What a new pod starts with: nobody's wish, so nobody's field.
pub(super) fn start(object: &mut Value) {
    let class = class(object);
    let spec = map_at(object, "spec");
    set_default(spec, "priority", json!(0));
    set_default(spec, "preemptionPolicy", json!("PreemptLowerPriority"));
    tolerate_failures(spec);
    map_of(object).insert("status".to_owned(), json!({"phase": "Pending", "qosClass": class}));
}

/// Keeps what a new pod starts with when its new form does not say it.
pub(crate) fn keep_assigned(old: &Value, new: &mut Value) {
    let spec = map_at(new, "spec");
    for field in ["priority", "preemptionPolicy"] {
        if let Some(value) = old.pointer(&format!("/spec/{field}")) {
            set_default(spec, field, value.clone());
        }
    }
    tolerate_failures(spec);
}

/// A pod stays for five minutes on a node that does not answer, unless it says otherwise.
fn tolerate_failures(spec: &mut Object) {
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let Value::Array(list) = &mut *tolerations else { continue };
        let suffers = |one: &Value| {
            let all = one.get("key").is_none() || one["key"] == key;
            all && (one.get("effect").is_none() || one["effect"] == "NoExecute")
        };
        if !list.iter().any(suffers) {
            list.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
}

/// How well a pod's claims on memory and processors are kept.
fn class(object: &Value) -> &'static str {
    let parts =
        ["containers", "initContainers"].map(|name| object.pointer(&format!("/spec/{name}")));
    let containers = || parts.iter().flatten().filter_map(|list| list.as_array()).flatten();
    let amount = |one: &Value, of: &str, what: &str| {
        one.pointer(&format!("/resources/{of}/{what}")).cloned()
    };
    let whats = ["cpu", "memory"];
    let any = containers().any(|one| {
        whats.iter().any(|what| {
            amount(one, "limits", what).is_some() || amount(one, "requests", what).is_some()
        })
    });
    let all = containers().all(|one| {
        whats.iter().all(|what| {
            let limit = amount(one, "limits", what);
            limit.is_some() && limit == amount(one, "requests", what)
        })
    });
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Does something with each map of a list.
fn each(of: &mut Object, name: &str, mut change: impl FnMut(&mut Object)) {
    for item in of.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten() {
        change(map_of(item));
    }
}

/// Does something with a map inside a map, if it is there.
fn within(of: &mut Object, name: &str, change: impl FnOnce(&mut Object)) {
    if let Some(inside @ Value::Object(_)) = of.get_mut(name) {
        change(map_of(inside));
    }
}

fn container(container: &mut Object) {
    set_default(container, "terminationMessagePath", json!("/dev/termination-log"));
    set_default(container, "terminationMessagePolicy", json!("File"));
    set_default(container, "resources", json!({}));
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let tag = image.rsplit('/').next().unwrap_or_default();
    let latest = !tag.contains('@') && tag.split_once(':').is_none_or(|(_, tag)| tag == "latest");
    let policy = if latest { "Always" } else { "IfNotPresent" };
    set_default(container, "imagePullPolicy", json!(policy));
    each(container, "ports", |port| set_default(port, "protocol", json!("TCP")));
    each(container, "env", |variable| within(variable, "valueFrom", field_source));
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        within(container, name, probe);
    }
    within(container, "lifecycle", |lifecycle| {
        for name in ["postStart", "preStop"] {
            within(lifecycle, name, |handler| within(handler, "httpGet", http));
        }
    });
}

fn probe(probe: &mut Object) {
    for (field, value) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        if probe.get(field).is_none_or(|said| *said == json!(0)) {
            probe.insert(field.to_owned(), json!(value));
        }
    }
    within(probe, "httpGet", http);
    within(probe, "grpc", |grpc| set_default(grpc, "service", json!("")));
}

fn http(get: &mut Object) {
    set_default(get, "path", json!("/"));
    set_default(get, "scheme", json!("HTTP"));
}

fn field_source(source: &mut Object) {
    within(source, "fieldRef", |field| set_default(field, "apiVersion", json!("v1")));
}

fn volume(volume: &mut Object) {
    if volume.len() <= 1 {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for name in ["secret", "configMap", "downwardAPI", "projected"] {
        within(volume, name, |source| {
            set_default(source, "defaultMode", json!(FILE_MODE));
            each(source, "items", field_source);
            each(source, "sources", |one| {
                within(one, "downwardAPI", |source| each(source, "items", field_source));
                within(one, "serviceAccountToken", |token| {
                    set_default(token, "expirationSeconds", json!(3600));
                });
            });
        });
    }
    within(volume, "hostPath", |path| set_default(path, "type", json!("")));
}
