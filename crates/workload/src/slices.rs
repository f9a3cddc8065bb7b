//! Endpoint slices: where a Service leads to, in the form that routers and DNS servers read.

use schema::object::{is_deleting, meta_text, metadata};
use serde_json::{Map, Value, json};

use crate::endpoints::{HEADLESS_LABEL, resolve_ports, selected_pods};
use crate::reading::{is_pod_ready, text_at};

/// The most addresses that one slice lists, as upstream's controller has it.
const ADDRESSES_MAX: usize = 100;
/// The label that names the Service of a slice.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// The label that says who writes a slice.
const MANAGER_LABEL: &str = "endpointslice.kubernetes.io/managed-by";
/// What it says of those that are written here.
const MANAGER: &str = "endpointslice-controller.k8s.io";

/// Something to do with a slice.
#[derive(Debug, Clone, PartialEq)]
pub enum SliceAction {
    /// Make it.
    Make(Value),
    /// Give it these labels, endpoints and ports.
    Amend {
        /// Its name.
        name: String,
        /// The slice that was looked at.
        uid: String,
        /// A slice that has them.
        wished: Value,
    },
    /// Delete it.
    Delete {
        /// Its name.
        name: String,
        /// The slice that was looked at.
        uid: String,
    },
}

/// Whether a slice follows a Service of its namespace, and which.
pub fn followed_service(slice: &Value) -> Option<&str> {
    let label = |name: &str| metadata(slice).get("labels")?.get(name)?.as_str();
    label(SERVICE_LABEL).filter(|_| label(MANAGER_LABEL) == Some(MANAGER))
}

/// Decides what is to be done for the slices of a Service, given those that follow it now and all pods
/// of its namespace.
pub fn plan_slices(service: &Value, pods: &[Value], slices: &[Value]) -> Vec<SliceAction> {
    let mut groups: Vec<(Vec<Value>, Vec<Value>)> = Vec::new();
    for pod in selected_pods(service, pods) {
        let Some(endpoint) = endpoint_of(service, pod) else { continue };
        let mut ports = resolve_ports(service, pod);
        ports.iter_mut().for_each(name_port);
        match groups.iter_mut().find(|(of, list)| *of == ports && list.len() < ADDRESSES_MAX) {
            Some((_, list)) => list.push(endpoint),
            None => groups.push((ports, vec![endpoint])),
        }
    }
    if groups.is_empty() {
        // A Service that leads nowhere says so.
        groups.push((Vec::new(), Vec::new()));
    }
    let mut left: Vec<&Value> = slices.iter().filter(|slice| !is_deleting(slice)).collect();
    let mut actions = Vec::new();
    for (ports, endpoints) in groups {
        let wished = slice_of(service, &ports, &endpoints);
        let same = left.iter().position(|slice| list_at(slice, "ports") == ports.as_slice());
        let Some(at) = same.or_else(|| (!left.is_empty()).then_some(0)) else {
            actions.push(SliceAction::Make(wished));
            continue;
        };
        let there = left.remove(at);
        let (name, uid) = (meta_text(there, "name").to_owned(), meta_text(there, "uid").to_owned());
        if !says_the_same(there, &wished) {
            actions.push(SliceAction::Amend { name, uid, wished });
        }
    }
    actions.extend(left.into_iter().map(|slice| SliceAction::Delete {
        name: meta_text(slice, "name").to_owned(),
        uid: meta_text(slice, "uid").to_owned(),
    }));
    actions
}

/// In slices a port without a name has the empty one.
fn name_port(port: &mut Value) {
    if port.get("name").is_none() {
        port["name"] = json!("");
    }
}

fn list_at<'a>(slice: &'a Value, field: &str) -> &'a [Value] {
    slice.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn says_the_same(there: &Value, wished: &Value) -> bool {
    let labels = |slice: &Value| metadata(slice).get("labels").cloned();
    labels(there) == labels(wished)
        && ["endpoints", "ports"].iter().all(|list| list_at(there, list) == list_at(wished, list))
}

/// A pod with an address, as a slice lists it.
fn endpoint_of(service: &Value, pod: &Value) -> Option<Value> {
    let address = Some(text_at(pod, "/status/podIP")).filter(|address| !address.is_empty())?;
    let is_published = service.pointer("/spec/publishNotReadyAddresses") == Some(&json!(true));
    let (serving, ending) = (is_pod_ready(pod), is_deleting(pod));
    let mut endpoint = json!({
        "addresses": [address],
        "conditions": {
            "ready": is_published || (serving && !ending), "serving": serving,
            "terminating": ending,
        },
    });
    let (name, domain) = (text_at(pod, "/spec/hostname"), text_at(pod, "/spec/subdomain"));
    if !name.is_empty() && domain == meta_text(service, "name") {
        endpoint["hostname"] = json!(name);
    }
    endpoint["targetRef"] = json!({
        "kind": "Pod", "namespace": meta_text(pod, "namespace"), "name": meta_text(pod, "name"),
        "uid": meta_text(pod, "uid"),
    });
    endpoint["nodeName"] = json!(text_at(pod, "/spec/nodeName"));
    Some(endpoint)
}

fn slice_of(service: &Value, ports: &[Value], endpoints: &[Value]) -> Value {
    let name = meta_text(service, "name");
    let own = [SERVICE_LABEL, MANAGER_LABEL, HEADLESS_LABEL];
    let said = metadata(service).get("labels").and_then(Value::as_object);
    let said = said.into_iter().flatten().filter(|(label, _)| !own.contains(&label.as_str()));
    let mut labels: Map<String, Value> =
        said.map(|(label, value)| (label.clone(), value.clone())).collect();
    if service.pointer("/spec/clusterIP") == Some(&json!("None")) {
        labels.insert(HEADLESS_LABEL.to_owned(), json!(""));
    }
    labels.insert(MANAGER_LABEL.to_owned(), json!(MANAGER));
    labels.insert(SERVICE_LABEL.to_owned(), json!(name));
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "generateName": format!("{name}-"), "namespace": meta_text(service, "namespace"),
            "labels": labels,
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Service", "name": name,
                "uid": meta_text(service, "uid"), "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "addressType": "IPv4", "endpoints": endpoints, "ports": ports,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Value {
        json!({
            "metadata": {"name": "s", "namespace": "n", "uid": "su", "labels": {"x": "y"}},
            "spec": {"clusterIP": "None", "selector": {"a": "b"},
                "ports": [{"port": 80, "protocol": "TCP", "targetPort": 8080}]},
        })
    }

    fn pod(number: usize, ready: bool) -> Value {
        json!({
            "metadata": {"name": format!("p{number}"), "namespace": "n", "labels": {"a": "b"}},
            "spec": {"nodeName": "apron"},
            "status": {"podIP": format!("10.0.{}.{}", number / 256, number % 256),
                "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]},
        })
    }

    fn made(actions: &[SliceAction]) -> Vec<Value> {
        let slice = |(at, action): (usize, &SliceAction)| match action {
            SliceAction::Make(slice) => {
                let mut slice = slice.clone();
                slice["metadata"]["name"] = json!(format!("s-{at}"));
                slice
            }
            other => panic!("{other:?}"),
        };
        actions.iter().enumerate().map(slice).collect()
    }

    #[test]
    fn a_slice_tells_which_pods_serve_and_which_are_ending() {
        let mut ending = pod(2, true);
        ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let slices = made(&plan_slices(&service(), &[pod(1, true), ending, pod(3, false)], &[]));
        assert_eq!(slices.len(), 1);
        let conditions: Vec<&Value> =
            list_at(&slices[0], "endpoints").iter().map(|one| &one["conditions"]).collect();
        let of = |ready: bool, serving: bool, terminating: bool| json!({"ready": ready, "serving": serving, "terminating": terminating});
        let expected = [of(true, true, false), of(false, true, true), of(false, false, false)];
        assert_eq!(conditions, expected.iter().collect::<Vec<_>>());
        assert_eq!(slices[0]["ports"], json!([{"port": 8080, "protocol": "TCP", "name": ""}]));
        assert_eq!(
            slices[0]["metadata"]["labels"],
            json!({"x": "y", HEADLESS_LABEL: "", MANAGER_LABEL: MANAGER, SERVICE_LABEL: "s"})
        );
        assert_eq!(followed_service(&slices[0]), Some("s"));
    }

    #[test]
    fn slices_are_bounded_and_what_is_true_is_not_written_again() {
        let pods: Vec<Value> = (0..150).map(|number| pod(number, true)).collect();
        let slices = made(&plan_slices(&service(), &pods, &[]));
        let sizes: Vec<usize> = slices.iter().map(|one| list_at(one, "endpoints").len()).collect();
        assert_eq!(sizes, [100, 50]);
        assert_eq!(plan_slices(&service(), &pods, &slices), []);
        let fewer = plan_slices(&service(), &pods[..100], &slices);
        assert!(matches!(&fewer[..], [SliceAction::Delete { name, .. }] if name == "s-1"));
        let none = plan_slices(&service(), &[], &slices);
        assert!(
            matches!(&none[..], [SliceAction::Amend { wished, .. }, SliceAction::Delete { .. }]
                if wished["endpoints"] == json!([])),
            "{none:?}"
        );
    }
}
