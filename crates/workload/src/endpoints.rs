//! Services: the addresses of the pods they lead to.

use schema::object::{is_deleting, meta_text, metadata};
use serde_json::{Value, json};

use crate::reading::{is_pod_over, is_pod_ready, text_at};

/// The label of what is listed for a Service without an address of its own.
pub(crate) const HEADLESS_LABEL: &str = "service.kubernetes.io/headless";
/// The label that says who writes Endpoints.
const MANAGER_LABEL: &str = "endpoints.kubernetes.io/managed-by";
/// What it says of those that are written here.
const MANAGER: &str = "endpoint-controller";

/// Whether Endpoints follow a Service, and go with it.
pub fn follows_service(endpoints: &Value) -> bool {
    let label = metadata(endpoints).get("labels").and_then(|all| all.get(MANAGER_LABEL));
    label.is_some_and(|label| *label == json!(MANAGER))
}

/// The pods that a Service selects; none, if it selects by nothing.
pub fn selected_pods<'a>(service: &Value, pods: &'a [Value]) -> Vec<&'a Value> {
    let selector = service.pointer("/spec/selector").and_then(Value::as_object);
    let Some(selector) = selector.filter(|labels| !labels.is_empty()) else { return Vec::new() };
    let fits = |pod: &&Value| {
        let labels = metadata(pod).get("labels");
        let mut said = selector.iter();
        said.all(|(name, value)| labels.and_then(|all| all.get(name)) == Some(value))
    };
    pods.iter().filter(fits).filter(|pod| !is_pod_over(pod)).collect()
}

/// The port of a pod that a port of a Service leads to: a number, or a container's name for one.
pub fn target_port(port: &Value, pod: &Value) -> Option<u16> {
    let number = |value: &Value| value.as_u64().and_then(|number| u16::try_from(number).ok());
    match port.get("targetPort") {
        Some(Value::String(name)) => {
            if let Ok(number) = name.parse() {
                return Some(number);
            }
            let list = |pointer: &str| pod.pointer(pointer).and_then(Value::as_array);
            let sidecars = list("/spec/initContainers").into_iter().flatten();
            let sidecars = sidecars.filter(|one| one["restartPolicy"] == "Always");
            let containers = list("/spec/containers").into_iter().flatten().chain(sidecars);
            let mut ports = containers.filter_map(|one| one["ports"].as_array()).flatten();
            number(&ports.find(|one| one["name"] == *name.as_str())?["containerPort"])
        }
        Some(target) => number(target),
        None => number(port.get("port")?),
    }
}

/// The ports of a Service as one of its pods has them.
pub(crate) fn resolve_ports(service: &Value, pod: &Value) -> Vec<Value> {
    let ports = service.pointer("/spec/ports").and_then(Value::as_array);
    let resolved = ports.into_iter().flatten().filter_map(|port| {
        let mut told = json!({"port": target_port(port, pod)?});
        for field in ["name", "protocol", "appProtocol"] {
            if let Some(said) = port.get(field) {
                told[field] = said.clone();
            }
        }
        Some(told)
    });
    resolved.collect()
}

/// The Endpoints of a Service with a selector: ready addresses and others, by ports.
pub fn list_endpoints(service: &Value, pods: &[Value]) -> Value {
    let mut subsets: Vec<(Vec<Value>, Vec<Value>, Vec<Value>)> = Vec::new();
    let publishes_all = service.pointer("/spec/publishNotReadyAddresses") == Some(&json!(true));
    for pod in selected_pods(service, pods) {
        let address = text_at(pod, "/status/podIP");
        if address.is_empty() || (is_deleting(pod) && !publishes_all) {
            continue;
        }
        let resolved = resolve_ports(service, pod);
        let told = json!({
            "ip": address, "nodeName": text_at(pod, "/spec/nodeName"),
            "targetRef": {
                "kind": "Pod", "namespace": meta_text(pod, "namespace"),
                "name": meta_text(pod, "name"), "uid": meta_text(pod, "uid"),
            },
        });
        let at = subsets.iter().position(|(of, _, _)| *of == resolved).unwrap_or_else(|| {
            subsets.push((resolved, Vec::new(), Vec::new()));
            subsets.len() - 1
        });
        let is_listed = publishes_all || is_pod_ready(pod);
        let list = if is_listed { &mut subsets[at].1 } else { &mut subsets[at].2 };
        list.push(told);
    }
    let subsets = subsets.into_iter().map(|(ports, ready, unready)| {
        let mut subset = json!({"ports": ports});
        for (field, list) in [("addresses", ready), ("notReadyAddresses", unready)] {
            if !list.is_empty() {
                subset[field] = json!(list);
            }
        }
        subset
    });
    let mut endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {
            "name": meta_text(service, "name"), "namespace": meta_text(service, "namespace"),
        },
        "subsets": subsets.collect::<Vec<_>>(),
    });
    let said = metadata(service).get("labels").and_then(Value::as_object);
    let mut labels = said.cloned().unwrap_or_default();
    labels.shift_remove(HEADLESS_LABEL);
    if service.pointer("/spec/clusterIP") == Some(&json!("None")) {
        labels.insert(HEADLESS_LABEL.to_owned(), json!(""));
    }
    labels.insert(MANAGER_LABEL.to_owned(), json!(MANAGER));
    endpoints["metadata"]["labels"] = Value::Object(labels);
    endpoints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_leads_to_the_ready_pods_it_selects_by_number_or_name() {
        let service = json!({
            "metadata": {"name": "s", "namespace": "n"},
            "spec": {"selector": {"a": "b"}, "ports": [
                {"name": "grpc", "port": 9443, "targetPort": "grpc", "protocol": "TCP"},
                {"name": "web", "port": 80, "protocol": "TCP"},
                {"name": "side", "port": 81, "targetPort": "side", "protocol": "TCP"},
            ]},
        });
        let pod = |name: &str, ready: &str, label: &str| {
            json!({
                "metadata": {"name": name, "labels": {"a": label}},
                "spec": {
                    "initContainers": [
                        {"ports": [{"name": "side", "containerPort": 1}]},
                        {"restartPolicy": "Always", "ports": [
                            {"name": "side", "containerPort": 9001}, {"name": "grpc", "containerPort": 2},
                        ]},
                    ],
                    "containers": [{"ports": [{"name": "grpc", "containerPort": 9000}]}],
                },
                "status": {"podIP": format!("10.0.0.{}", name.len()),
                    "conditions": [{"type": "Ready", "status": ready}]},
            })
        };
        let pods = [pod("a", "True", "b"), pod("bb", "False", "b"), pod("ccc", "True", "c")];
        let found = list_endpoints(&service, &pods);
        let subset = &found["subsets"][0];
        assert_eq!(subset["addresses"][0]["ip"], "10.0.0.1");
        assert_eq!(subset["notReadyAddresses"][0]["ip"], "10.0.0.2");
        assert_eq!(subset["addresses"].as_array().map(Vec::len), Some(1));
        let ports = [0, 1, 2].map(|at| subset["ports"][at]["port"].as_u64());
        assert_eq!(ports, [Some(9000), Some(80), Some(9001)]);
        let anything = json!({"spec": {"ports": [{"port": 1}]}});
        assert_eq!(list_endpoints(&anything, &pods)["subsets"], json!([]));
    }
}
