//! What the server fills in for services, and the addresses it gives them.
//!
//! Nothing in this room routes these addresses. Clients print them, other objects refer to them, and nodes
//! may see to it that they lead somewhere, so no two services have the same.

use serde_json::{Value, json};

use super::defaults::{map_of, set_default};
use schema::object::map_at;

/// The lowest port that nodes give to services, and how many there are.
const NODE_PORTS: (u64, u64) = (30_000, 2_768);

/// How often an address is drawn anew that another service has; there are a million.
const ADDRESS_TRIES: usize = 64;

/// The service that stands for the API itself.
pub fn own() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": "10.96.0.1",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        },
    })
}

/// Fills in what a client may leave out.
pub(super) fn complete(object: &mut Value) {
    let spec = map_at(object, "spec");
    set_default(spec, "type", json!("ClusterIP"));
    set_default(spec, "sessionAffinity", json!("None"));
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if kind != "ExternalName" {
        set_default(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    if ["NodePort", "LoadBalancer"].contains(&kind.as_str()) {
        set_default(spec, "externalTrafficPolicy", json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        set_default(spec, "allocateLoadBalancerNodePorts", json!(true));
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let port = map_of(port);
        set_default(port, "protocol", json!("TCP"));
        let number = port.get("port").cloned().unwrap_or(json!(0));
        set_default(port, "targetPort", number);
    }
    map_at(object, "status").entry("loadBalancer").or_insert_with(|| json!({}));
}

/// Gives a service an address that no other has, and its ports on nodes: nobody's wish, so nobody's
/// field.
pub fn assign(
    object: &mut Value,
    mut random: impl FnMut() -> u64,
    is_taken: impl Fn(&str) -> bool,
) {
    let spec = map_at(object, "spec");
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if kind == "ExternalName" {
        return;
    }
    // Endpoints that somebody else lists may be of either family.
    let open = spec.get("clusterIP") == Some(&json!("None"))
        && spec.get("selector").is_none_or(|selector| *selector == json!({}));
    if open {
        set_default(spec, "ipFamilies", json!(["IPv4", "IPv6"]));
        set_default(spec, "ipFamilyPolicy", json!("RequireDualStack"));
    }
    set_default(spec, "ipFamilies", json!(["IPv4"]));
    set_default(spec, "ipFamilyPolicy", json!("SingleStack"));
    if spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default().is_empty() {
        let mut free = address(random());
        for _ in 0..ADDRESS_TRIES {
            if !is_taken(&free) {
                break;
            }
            free = address(random());
        }
        spec.insert("clusterIP".to_owned(), json!(free));
    }
    let own = spec.get("clusterIP").cloned().unwrap_or_default();
    set_default(spec, "clusterIPs", json!([own]));
    if ["NodePort", "LoadBalancer"].contains(&kind.as_str()) {
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            let number =
                random().checked_rem(NODE_PORTS.1).unwrap_or(0).saturating_add(NODE_PORTS.0);
            set_default(map_of(port), "nodePort", json!(number));
        }
    }
}

/// An address of 10.96.0.0/12 that is not one of its first.
fn address(random: u64) -> String {
    let host = (random % ((1 << 20) - 32)).saturating_add(16);
    format!("10.{}.{}.{}", (host >> 16).saturating_add(96), (host >> 8) & 0xff, host & 0xff)
}

/// Keeps the addresses of a service whose new form does not say any.
pub fn keep(old: &Value, new: &mut Value) {
    let kind = |of: &Value| of.pointer("/spec/type").cloned();
    if kind(old) != kind(new) {
        return;
    }
    let spec = map_at(new, "spec");
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if let Some(value) = old.pointer(&format!("/spec/{field}")) {
            set_default(spec, field, value.clone());
        }
    }
    let before = old.pointer("/spec/ports").and_then(Value::as_array);
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let same =
            |one: &&Value| one["port"] == port["port"] && one["protocol"] == port["protocol"];
        let found = before.into_iter().flatten().find(same).and_then(|one| one.get("nodePort"));
        if let Some(number) = found.cloned() {
            set_default(map_of(port), "nodePort", number);
        }
    }
}
