//! What a Pod asks for and what became of it, as values: no files, no processes, no clock.
//!
//! ```text
//!   Pod + Secrets, ConfigMaps, tokens ──► volume, environment, identity ──► start: ContainerStart
//!   Pod + PodRecord + time ──► actions: what to start, to stop, when to look again
//!   Pod + PodRecord + time ──► status: PodStatus
//!   two samples of what is used ──► usage: rates
//! ```
//!
//! Words and order are the kubelet's, because people and programs read them.

pub mod actions;
pub mod change;
pub mod delay;
pub mod environment;
pub mod expansion;
pub mod fields;
pub mod identity;
pub mod probing;
pub mod quantity;
pub mod record;
pub mod start;
pub mod status;
pub mod usage;
pub mod volume;

#[cfg(test)]
mod life_tests;
#[cfg(test)]
mod start_tests;

use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod, PodSpec, Secret};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

/// The machine a pod runs on, as the pod is told of it.
#[derive(Clone, Debug)]
pub struct PodSurroundings {
    /// The node's name.
    pub node_name: String,
    /// The node's address.
    pub host_address: Ipv4Addr,
    /// The pod's own address.
    pub address: Ipv4Addr,
    /// Where pods find the API server.
    pub api: SocketAddrV4,
    /// Thousandths of cores that the machine has.
    pub cpu_milli: u64,
    /// Bytes of memory that it has.
    pub memory: u64,
}

/// A token that a volume asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenWish {
    /// Its audience; the API server, if the volume does not say.
    pub audience: Option<String>,
    /// How long it is to be good for.
    pub seconds: i64,
}

/// What a pod refers to, as far as it is there.
#[derive(Clone, Debug, Default)]
pub struct PodSources {
    /// Secrets of the pod's namespace.
    pub secrets: BTreeMap<String, Secret>,
    /// Config maps of the pod's namespace.
    pub config_maps: BTreeMap<String, ConfigMap>,
    /// Tokens of the pod's service account.
    pub tokens: BTreeMap<TokenWish, String>,
    /// What the environment tells of Services.
    pub services: Vec<environment::NamedService>,
}

/// Whether a container is one that is started before the others and then stays.
pub fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// The containers that are started first, in their order.
pub fn init_containers(spec: &PodSpec) -> &[Container] {
    spec.init_containers.as_deref().unwrap_or_default()
}

/// All containers, those that are started first in front.
pub fn all_containers(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    init_containers(spec).iter().chain(&spec.containers)
}

/// A container by its name.
pub fn find_container<'a>(spec: &'a PodSpec, name: &str) -> Option<&'a Container> {
    all_containers(spec).find(|one| one.name == name)
}

/// The longest label.
const LABEL_BYTES_MAX: usize = 63;

/// Whether a name is a label of DNS, as Kubernetes has it for containers and volumes: one part of a path, too.
pub fn is_label(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends_well = |end: Option<u8>| end.is_some_and(is_plain);
    name.len() <= LABEL_BYTES_MAX
        && ends_well(name.bytes().next())
        && ends_well(name.bytes().next_back())
        && name.bytes().all(|byte| is_plain(byte) || byte == b'-')
}

/// A pod as messages of the kubelet name it: `name_namespace(uid)`.
pub fn pod_title(pod: &Pod) -> String {
    let meta = &pod.metadata;
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{}_{}({})", text(&meta.name), text(&meta.namespace), text(&meta.uid))
}
