//! The Node object, and the lease that says that it is looked after.

use super::Station;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeCondition, NodeStatus, NodeSystemInfo};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// The namespace of nodes' leases.
const LEASES: &str = "kube-node-lease";
/// Between two signs of life.
const HEARTBEAT: Duration = Duration::from_secs(60);
/// After something was refused.
const SOON: Duration = Duration::from_secs(2);
/// Signs of life between two statuses: nothing else looks at the time in there.
const STATUS_EVERY: u32 = 10;
/// Pods that a node takes: its network has a few addresses more.
const PODS_MAX: u32 = 200;

/// Keeps the Node object and its lease as long as it is waited for.
pub(crate) async fn keep_registered(station: &Station) {
    let mut beats: u32 = 0;
    loop {
        // A node that is not there yet is not ready.
        let is_there = station.machine.present().is_some();
        let done = if !is_there {
            false
        } else if beats.checked_rem(STATUS_EVERY) == Some(0) {
            report_node(station).await.is_ok()
        } else {
            true
        };
        if done {
            renew_lease(station).await;
            beats = beats.wrapping_add(1);
            tokio::time::sleep(HEARTBEAT).await;
        } else {
            tokio::time::sleep(if is_there { SOON } else { Duration::from_millis(50) }).await;
        }
    }
}

async fn report_node(station: &Station) -> Result<(), kube::Error> {
    let name = &station.settings.node_name;
    let nodes: Api<Node> = Api::all(station.client.clone());
    let before = match nodes.get_opt(name).await? {
        Some(node) => node,
        None => nodes.create(&PostParams::default(), &describe_node(name)).await?,
    };
    let status = describe_status(station, before.status.unwrap_or_default());
    let patch = json!({"status": status});
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)
}

fn describe_node(name: &str) -> Node {
    let labels = [
        ("kubernetes.io/hostname", name),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", architecture()),
    ];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Node {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from(labels)),
            ..ObjectMeta::default()
        },
        ..Node::default()
    }
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn describe_status(station: &Station, before: NodeStatus) -> NodeStatus {
    let settings = &station.settings;
    let now = Time(Timestamp::now());
    let amount = |text: String| Quantity(text);
    let capacity = BTreeMap::from([
        ("cpu".to_owned(), amount(format!("{}m", settings.cpu_milli))),
        ("memory".to_owned(), amount(settings.memory.to_string())),
        ("pods".to_owned(), amount(PODS_MAX.to_string())),
    ]);
    let mut conditions = before.conditions.unwrap_or_default();
    let since = conditions
        .iter()
        .find(|one| one.type_ == "Ready" && one.status == "True")
        .and_then(|one| one.last_transition_time.clone());
    conditions.retain(|one| one.type_ != "Ready");
    conditions.push(NodeCondition {
        last_heartbeat_time: Some(now.clone()),
        last_transition_time: since.or(Some(now)),
        message: Some("apron runs pods on this machine".to_owned()),
        reason: Some("KubeletReady".to_owned()),
        status: "True".to_owned(),
        type_: "Ready".to_owned(),
    });
    let address = |kind: &str, address: String| NodeAddress { type_: kind.to_owned(), address };
    NodeStatus {
        addresses: Some(vec![
            address("InternalIP", settings.host_address.to_string()),
            address("Hostname", settings.node_name.clone()),
        ]),
        allocatable: Some(capacity.clone()),
        capacity: Some(capacity),
        conditions: Some(conditions),
        node_info: Some(NodeSystemInfo {
            architecture: architecture().to_owned(),
            container_runtime_version: format!("apron://{}", settings.version),
            kubelet_version: settings.version.clone(),
            operating_system: "linux".to_owned(),
            ..before.node_info.unwrap_or_default()
        }),
        ..before
    }
}

/// Says that the node is looked after. Without the namespace for it there is no lease.
async fn renew_lease(station: &Station) {
    let name = &station.settings.node_name;
    let leases: Api<Lease> = Api::namespaced(station.client.clone(), LEASES);
    let now = MicroTime(Timestamp::now());
    let spec = LeaseSpec {
        holder_identity: Some(name.clone()),
        lease_duration_seconds: Some(120),
        renew_time: Some(now),
        ..LeaseSpec::default()
    };
    let patch = json!({"spec": spec});
    let renewed = leases.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
    if matches!(&renewed, Err(kube::Error::Api(status)) if status.code == 404) {
        let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
        let lease = Lease { metadata, spec: Some(spec) };
        let _ = leases.create(&PostParams::default(), &lease).await;
    }
}
