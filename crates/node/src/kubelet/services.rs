//! What Services lead to: their objects, and the pods that run here, told to the node whenever they change.

use super::Station;
use crate::pod::environment::NamedService;
use crate::pod::{init_containers, is_sidecar};
use crate::protocol::{ServiceEntry, ServicePortEntry};
use k8s_openapi::api::core::v1::{Pod, Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Changes that come within this time are told together.
const TOGETHER: Duration = Duration::from_millis(20);
/// The pause after the node refused what it was told.
const PAUSE: Duration = Duration::from_secs(1);

/// What Services lead to now.
#[derive(Clone, Debug, Default)]
pub struct LiveServices {
    inner: Arc<TableState>,
}

#[derive(Debug, Default)]
struct TableState {
    entries: Mutex<Vec<ServiceEntry>>,
    pods: Mutex<BTreeMap<String, LivePod>>,
    changed: Notify,
}

/// A pod as Services see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LivePod {
    pub(crate) namespace: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) address: Ipv4Addr,
    pub(crate) is_ready: bool,
    /// Its own name, and the Service that the name is below.
    pub(crate) host: Option<(String, String)>,
    /// Ports with names.
    pub(crate) ports: BTreeMap<String, u16>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LiveServices {
    /// A ready pod behind a port of a Service, another one with each turn.
    pub(crate) fn find_target(
        &self,
        namespace: &str,
        name: &str,
        port: u16,
        turn: usize,
    ) -> Option<SocketAddrV4> {
        let entries = lock(&self.inner.entries);
        let mut found = entries.iter().filter(|one| one.namespace == namespace && one.name == name);
        let mut ports = found.next()?.ports.iter().filter(|one| one.port == port);
        let targets = &ports.next()?.targets;
        targets.get(turn.checked_rem(targets.len())?).copied()
    }

    /// Whether there is such a Service with this port, be a pod behind it or not.
    pub(crate) fn has_port(&self, namespace: &str, name: &str, port: u16) -> bool {
        let entries = lock(&self.inner.entries);
        let mut named = entries.iter().filter(|one| one.namespace == namespace && one.name == name);
        named.any(|one| one.ports.iter().any(|one| one.port == port))
    }

    /// Makes Services be these.
    pub(crate) fn replace_entries(&self, entries: Vec<ServiceEntry>) {
        *lock(&self.inner.entries) = entries;
    }

    /// Notes that something may be different.
    pub(crate) fn note_change(&self) {
        self.inner.changed.notify_one();
    }

    /// Says how a pod is; nothing, if it runs no longer.
    pub(crate) fn set_pod(&self, uid: &str, pod: Option<LivePod>) {
        let mut pods = lock(&self.inner.pods);
        let is_news = match pod {
            Some(pod) => pods.insert(uid.to_owned(), pod.clone()).as_ref() != Some(&pod),
            None => pods.remove(uid).is_some(),
        };
        if is_news {
            self.note_change();
        }
    }
}

/// How a pod with an address is seen by Services.
pub(crate) fn describe_live(pod: &Pod, address: Ipv4Addr, is_ready: bool) -> LivePod {
    let sidecars = pod.spec.iter().flat_map(init_containers).filter(|one| is_sidecar(one));
    // Of two ports of one name, that of a container which is no sidecar counts, and of those the first.
    let containers = sidecars.chain(pod.spec.iter().flat_map(|spec| spec.containers.iter().rev()));
    let ports = containers.flat_map(|one| one.ports.iter().flatten().rev());
    let named =
        ports.filter_map(|one| Some((one.name.clone()?, u16::try_from(one.container_port).ok()?)));
    let spec = pod.spec.as_ref();
    let own = spec.and_then(|spec| Some((spec.hostname.clone()?, spec.subdomain.clone()?)));
    LivePod {
        host: own.filter(|(host, below)| !host.is_empty() && !below.is_empty()),
        namespace: pod.metadata.namespace.clone().unwrap_or_default(),
        labels: pod.metadata.labels.clone().unwrap_or_default(),
        address,
        is_ready,
        ports: named.collect(),
    }
}

/// Tells the node of Services whenever they lead elsewhere, and each new node all of it.
pub(crate) async fn keep_services(station: &Station) {
    let table = &station.services.inner;
    let mut told: Option<(u64, Vec<ServiceEntry>)> = None;
    if station.service_objects.wait_until_ready().await.is_err() {
        return;
    }
    loop {
        let services = station.service_objects.state();
        let pods: Vec<LivePod> = lock(&table.pods).values().cloned().collect();
        let mut entries: Vec<ServiceEntry> =
            services.iter().filter_map(|service| describe_entry(service, &pods)).collect();
        entries.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        station.services.replace_entries(entries.clone());
        if let Some((number, node)) = station.machine.present() {
            let now = (number, entries);
            if told.as_ref() != Some(&now) {
                if node.set_services(now.1.clone()).await.is_err() {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                told = Some(now);
            }
        }
        table.changed.notified().await;
        tokio::time::sleep(TOGETHER).await;
    }
}

fn describe_entry(service: &Service, pods: &[LivePod]) -> Option<ServiceEntry> {
    let spec = service.spec.as_ref()?;
    let namespace = service.metadata.namespace.clone()?;
    let selector = spec.selector.clone().unwrap_or_default();
    let shows_all = spec.publish_not_ready_addresses == Some(true);
    let fits = |pod: &&LivePod| {
        !selector.is_empty()
            && pod.namespace == namespace
            && (pod.is_ready || shows_all)
            && selector.iter().all(|(key, value)| pod.labels.get(key) == Some(value))
    };
    let chosen: Vec<&LivePod> = pods.iter().filter(fits).collect();
    let port_entry = |port: &ServicePort| {
        let targets = chosen
            .iter()
            .filter_map(|pod| Some(SocketAddrV4::new(pod.address, target_port(port, pod)?)));
        Some(ServicePortEntry {
            name: port.name.clone(),
            port: u16::try_from(port.port).ok()?,
            targets: targets.collect(),
        })
    };
    let name = service.metadata.name.clone()?;
    let host = |pod: &&LivePod| {
        let (host, below) = pod.host.clone()?;
        (below == name).then_some((host, pod.address))
    };
    let is_tcp = |port: &&ServicePort| port.protocol.as_deref().is_none_or(|it| it == "TCP");
    let ports = spec.ports.iter().flatten().filter(is_tcp);
    Some(ServiceEntry {
        hosts: chosen.iter().filter_map(host).collect(),
        is_sticky: spec.session_affinity.as_deref() == Some("ClientIP"),
        name,
        address: cluster_address(spec),
        ports: ports.filter_map(port_entry).collect(),
        pods: chosen.iter().map(|pod| pod.address).collect(),
        namespace,
    })
}

fn cluster_address(spec: &ServiceSpec) -> Option<Ipv4Addr> {
    spec.cluster_ip.as_deref().and_then(|text| text.parse().ok())
}

fn target_port(port: &ServicePort, pod: &LivePod) -> Option<u16> {
    match &port.target_port {
        Some(IntOrString::String(name)) => {
            name.parse().ok().or_else(|| pod.ports.get(name).copied())
        }
        Some(IntOrString::Int(number)) => u16::try_from(*number).ok(),
        None => u16::try_from(port.port).ok(),
    }
}

/// The Services of a namespace, as the environment of its pods tells of them.
pub(crate) fn named_services(station: &Station, namespace: &str) -> Vec<NamedService> {
    let named = |service: Arc<Service>| {
        let spec = service.spec.as_ref()?;
        if service.metadata.namespace.as_deref() != Some(namespace) {
            return None;
        }
        let ports = spec.ports.iter().flatten().filter_map(|port| {
            let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
            Some((port.name.clone(), u16::try_from(port.port).ok()?, protocol))
        });
        Some(NamedService {
            name: service.metadata.name.clone()?,
            address: cluster_address(spec)?.into(),
            ports: ports.collect(),
        })
    };
    let mut all: Vec<_> = station.service_objects.state().into_iter().filter_map(named).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ports_of_sidecars_have_names_too() {
        let pod = json!({"metadata": {"name": "p"}, "spec": {
            "initContainers": [
                {"name": "first", "ports": [{"name": "gone", "containerPort": 1}]},
                {"name": "side", "restartPolicy": "Always", "ports": [
                    {"name": "metrics", "containerPort": 9100}, {"name": "grpc", "containerPort": 2},
                ]},
            ],
            "containers": [
                {"name": "c", "ports": [{"name": "grpc", "containerPort": 9443}]},
                {"name": "d", "ports": [{"name": "grpc", "containerPort": 3}]},
            ],
        }});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let live = describe_live(&pod, Ipv4Addr::new(10, 244, 0, 2), true);
        let named = [("grpc".to_owned(), 9443), ("metrics".to_owned(), 9100)];
        assert_eq!(live.ports, BTreeMap::from(named));
    }

    #[test]
    fn a_service_leads_to_ready_pods_of_its_namespace_by_number_or_name() {
        let service = |spec| {
            let value = json!({"metadata": {"name": "s", "namespace": "n"}, "spec": spec});
            serde_json::from_value::<Service>(value).unwrap()
        };
        let pod = |host: u8, namespace: &str, is_ready| LivePod {
            namespace: namespace.to_owned(),
            labels: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
            address: Ipv4Addr::new(10, 244, 0, host),
            is_ready,
            host: Some((format!("host-{host}"), "s".to_owned())),
            ports: BTreeMap::from([("grpc".to_owned(), 9443)]),
        };
        let pods = [pod(2, "n", true), pod(3, "n", false), pod(4, "other", true)];
        let spec = json!({"clusterIP": "10.96.0.7", "selector": {"a": "b"}, "ports": [
            {"name": "x", "port": 80, "targetPort": "grpc"}, {"port": 53, "protocol": "UDP"},
            {"port": 81}, {"port": 82, "targetPort": 8082},
        ]});
        let entry = describe_entry(&service(spec.clone()), &pods).unwrap();
        let targets: Vec<String> =
            entry.ports.iter().map(|one| format!("{:?}", one.targets)).collect();
        assert_eq!(targets, ["[10.244.0.2:9443]", "[10.244.0.2:81]", "[10.244.0.2:8082]"]);
        assert_eq!(entry.address, Some(Ipv4Addr::new(10, 96, 0, 7)));
        assert_eq!(entry.hosts, [("host-2".to_owned(), Ipv4Addr::new(10, 244, 0, 2))]);
        assert!(!entry.is_sticky);
        let mut early = spec;
        early["publishNotReadyAddresses"] = json!(true);
        early["clusterIP"] = json!("None");
        early["sessionAffinity"] = json!("ClientIP");
        let entry = describe_entry(&service(early), &pods).unwrap();
        assert!(entry.is_sticky);
        assert_eq!((entry.address, entry.pods.len()), (None, 2));
        let aimless = service(json!({"ports": [{"port": 80}]}));
        assert!(describe_entry(&aimless, &pods).unwrap().pods.is_empty());
    }
}
