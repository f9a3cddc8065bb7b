//! The network that pods see.
//!
//! ```text
//!   pod ──eth0──┐                             ┌─ Service address:port ──► a ready pod
//!   pod ──eth0──┼── bridge ── this machine ───┼─ API server's address ──► host.sock `api`
//!   pod ──eth0──┘             to the pods     ├─ name server ───────────► the zone, or host.sock `dns`
//!                                             └─ any other address ─────► host.sock `tcp ADDRESS:PORT`
//! ```
//!
//! All of it is in the node's network namespace, which has no way to the machine's network: the only thing that
//! leads out is `host.sock`, and what goes through it is apron's decision. Connections are spliced in this process
//! between sockets of the kernel; there is no packet filter, no address translation and no second TCP.
//!
//! A Service's address cannot be served in the pod's own namespace: a listener there would take the port from the
//! program that listens on all addresses.

mod connection;
pub mod dns;
mod door;
mod egress;
mod forward;
mod health;
mod links;
mod pods;
mod policy;
mod probe;
mod rendezvous;
mod services;

pub use door::{HostDoor, HostDoorOptions, connect_pod};
pub use forward::parse_nameservers;
pub use links::configure_pod_network;
pub use pods::{CONNECTIONS_FROM_POD_MAX, CONNECTIONS_TO_POD_MAX};
pub use services::SERVICE_PORTS_MAX;

use crate::protocol::{NodeConfig, PodSandbox, ProbeResult, ProbeTarget, ServiceEntry};
use connection::{accept_pod, is_in_network, listen_tcp, reset_stream};
use dns::{ClusterZone, NameServer};
use egress::{AttemptWatch, EgressListeners, serve_through_door};
use links::{NetworkLinks, POD_NETWORK_BITS};
use pods::PodTable;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use services::{ServiceListeners, ServiceTable};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

/// What the network of pods could not do.
#[derive(Debug, Error)]
#[error("cannot {what}: {why}")]
pub struct GatewayError {
    what: String,
    why: io::Error,
}

impl GatewayError {
    fn new(what: String, why: io::Error) -> Self {
        Self { what, why }
    }
}

/// The pods' way to each other, to Services, names and the outside. Lives in the node's network namespace, in its
/// tokio runtime (of one thread or of many); ends when it is dropped.
#[derive(Debug)]
pub struct Gateway {
    config: Arc<NodeConfig>,
    links: NetworkLinks,
    pods: Arc<PodTable>,
    names: Arc<NameServer>,
    services: Mutex<ServiceListeners>,
    _tasks: JoinSet<()>,
}

impl Gateway {
    /// Makes the bridge with the gateway's address, and serves names, the API server's address and the way out.
    pub async fn start(config: &NodeConfig) -> Result<Self, GatewayError> {
        raise_descriptor_limit();
        let config = Arc::new(config.clone());
        let links = NetworkLinks::open().map_err(fail("open the network namespace of the node"))?;
        links.make_gateway(&config).await?;
        let pods = Arc::new(PodTable::default());
        let mut tasks = JoinSet::new();

        let zone = ClusterZone::new(&config.domain, config.api, &[]);
        let names = NameServer::new(zone, config.state.clone(), Arc::clone(&pods));
        let listening = names.listen(config.dns, &mut tasks).await;
        listening.map_err(fail("serve names"))?;
        let api = listen_tcp(config.api, false).map_err(fail("serve the API server's address"))?;
        tasks.spawn(accept_api_clients(api, Arc::clone(&config), Arc::clone(&pods)));
        let egress = EgressListeners::open(Arc::clone(&config), Arc::clone(&pods));
        let attempts = AttemptWatch::open().map_err(fail("see where pods connect to"))?;
        tasks.spawn(egress.map_err(fail("serve the way out"))?.follow_attempts(attempts));
        door::open_node_door(&config.state, &pods, &mut tasks)
            .map_err(fail("serve apron's connections to pods"))?;

        let services = Mutex::new(ServiceListeners::new(Arc::clone(&pods)));
        Ok(Self { config, links, pods, names, services, _tasks: tasks })
    }

    /// Gives the network namespace of a process an interface `eth0` that leads to the gateway.
    /// `process` is its number as the node sees it. [`configure_pod_network`] in that namespace does the rest.
    pub async fn attach_pod(&self, sandbox: &PodSandbox, process: i32) -> Result<(), GatewayError> {
        let address = sandbox.address;
        let refuse = |why: &str| {
            let why = io::Error::new(io::ErrorKind::InvalidInput, format!("{address} {why}"));
            GatewayError::new(format!("attach pod {}", sandbox.pod), why)
        };
        let last = address.octets()[3];
        let is_usable = is_in_network(address, self.config.gateway, POD_NETWORK_BITS)
            && !matches!(last, 0 | 255);
        if !is_usable || address == self.config.gateway {
            return Err(refuse("is not an address for pods"));
        }
        let process =
            u32::try_from(process).map_err(|_| refuse("is for a process that is not there"))?;
        if !self.pods.insert_pod(address, &sandbox.pod) {
            return Err(refuse("or the pod itself is attached already"));
        }
        let made = self.links.make_pod_link(&link_name(address), address, process).await;
        if made.is_err() {
            self.pods.remove_pod(&sandbox.pod);
        }
        made
    }

    /// Ends what is connected from and to a pod, and removes its interface. A pod that is not there is detached.
    pub async fn detach_pod(&self, pod: &str) -> Result<(), GatewayError> {
        match self.pods.remove_pod(pod) {
            Some(address) => self.links.remove_link(&link_name(address)).await,
            None => Ok(()),
        }
    }

    /// Replaces what Services and names lead to; what is connected stays so. Answers with sentences about entries
    /// that could not be served, for an administrator.
    pub async fn set_services(&self, services: Vec<ServiceEntry>) -> Vec<String> {
        let mut listeners = self.services.lock().await;
        self.names.replace_zone(ClusterZone::new(&self.config.domain, self.config.api, &services));
        listeners.follow_table(ServiceTable::read_entries(&self.config, &services)).await
    }

    /// Tries a probe from here.
    pub async fn probe(&self, target: &ProbeTarget, patience: Duration) -> ProbeResult {
        let (ProbeTarget::Tcp { address }
        | ProbeTarget::Http { address, .. }
        | ProbeTarget::Grpc { address, .. }) = target;
        // A probe takes no seat: what others have connected to a pod is not in its way.
        if !self.pods.is_attached(*address.ip()) {
            return ProbeResult { failure: Some(format!("there is no pod at {}", address.ip())) };
        }
        probe::try_probe(target, patience).await
    }
}

/// The bridge's end of a pod's cable; the addresses differ in their last part.
fn link_name(address: Ipv4Addr) -> String {
    format!("pod{}", address.octets()[3])
}

async fn accept_api_clients(listener: TcpListener, config: Arc<NodeConfig>, pods: Arc<PodTable>) {
    loop {
        let Some((client, from)) = accept_pod(&listener).await else { continue };
        match pods.take_seat_to_api(*from.ip()) {
            Some(seat) => {
                tokio::spawn(serve_through_door(
                    client,
                    seat,
                    Arc::clone(&config),
                    "api".to_owned(),
                ));
            }
            None => reset_stream(client),
        }
    }
}

/// Has the node keep as many connections as the machine lets it: two descriptors each.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // Without it, fewer connections are accepted at once.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

fn fail(what: &'static str) -> impl Fn(io::Error) -> GatewayError {
    move |source| GatewayError::new(what.to_owned(), source)
}
