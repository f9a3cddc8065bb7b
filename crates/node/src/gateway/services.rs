//! Services: a listener for each port that leads somewhere, and splices to the pods behind it.
//!
//! A port that leads nowhere has no listener, so the kernel refuses connections to it at once; if it is one of those that
//! the way out listens on for all addresses (80, 443), they are accepted there, and reset. One that leads to pods
//! whose programs do not listen yet is tried for a moment: packages say that they are ready before they are.

use super::connection::{
    accept_pod, is_in_network, listen_tcp, prepare_stream, reset_stream, splice_streams,
};
use super::links::POD_NETWORK_BITS;
use super::pods::{PodSeat, PodTable};
use crate::protocol::{NodeConfig, ServiceEntry};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// Ports of all Services together that are served.
pub const SERVICE_PORTS_MAX: usize = 4096;
/// Pods behind one port.
const TARGETS_MAX: usize = 256;
/// Sentences about one table; the last one counts the rest.
const NOTICES_MAX: usize = 20;
/// How long pods that refuse connections are tried.
const TARGET_PATIENCE: Duration = Duration::from_secs(2);
/// Between two rounds of tries.
const TARGET_PAUSE: Duration = Duration::from_millis(50);

/// The pods behind a port, and whether each client has one of them.
#[derive(Debug, PartialEq, Eq)]
struct PortTargets {
    pods: Vec<SocketAddrV4>,
    is_sticky: bool,
}

type Targets = Arc<PortTargets>;

/// What a table of Services comes to: ports that lead somewhere, and what cannot be served.
#[derive(Debug, Default)]
pub(super) struct ServiceTable {
    ports: BTreeMap<SocketAddrV4, Targets>,
    notices: Vec<String>,
    notices_left_out: usize,
}

impl ServiceTable {
    /// Reads entries. The first of two that have the same address and port counts.
    pub(super) fn read_entries(config: &NodeConfig, entries: &[ServiceEntry]) -> Self {
        let mut table = Self::default();
        for entry in entries {
            let Some(address) = entry.address else { continue };
            let name = format!("{}/{}", entry.namespace, entry.name);
            let (network, bits) = config.services;
            if !is_in_network(address, network, bits) {
                table.tell(format!(
                    "Service {name} is not served: {address} is not in {network}/{bits}"
                ));
                continue;
            }
            // The API server and the name server have listeners of their own there.
            if address == *config.api.ip() || address == config.dns {
                let is_api = entry.namespace == "default" && entry.name == "kubernetes";
                if !is_api {
                    table.tell(format!("Service {name} is not served: {address} is the node's"));
                }
                continue;
            }
            for port in &entry.ports {
                let place = SocketAddrV4::new(address, port.port);
                table.insert_port(config, &name, place, (port.targets.as_slice(), entry.is_sticky));
            }
        }
        table
    }

    fn insert_port(
        &mut self,
        config: &NodeConfig,
        name: &str,
        place: SocketAddrV4,
        (targets, is_sticky): (&[SocketAddrV4], bool),
    ) {
        let is_pod = |target: &&SocketAddrV4| {
            *target.ip() != config.gateway
                && target.port() != 0
                && is_in_network(*target.ip(), config.gateway, POD_NETWORK_BITS)
        };
        let pods: Vec<SocketAddrV4> =
            targets.iter().filter(is_pod).copied().take(TARGETS_MAX).collect();
        if pods.len() < targets.len() {
            let left_out = targets.len().saturating_sub(pods.len());
            self.tell(format!(
                "{left_out} of the addresses behind {place} of Service {name} are not served: they are not pods', or more than {TARGETS_MAX}"
            ));
        }
        if pods.is_empty() {
            return;
        }
        if place.port() == 0 || self.ports.contains_key(&place) {
            self.tell(format!("Service {name} is not served at {place}: another one is there"));
        } else if self.ports.len() >= SERVICE_PORTS_MAX {
            self.tell(format!(
                "Service {name} is not served at {place}: {SERVICE_PORTS_MAX} ports are served"
            ));
        } else {
            self.ports.insert(place, Arc::new(PortTargets { pods, is_sticky }));
        }
    }

    fn tell(&mut self, sentence: String) {
        if self.notices.len() < NOTICES_MAX {
            self.notices.push(sentence);
        } else {
            self.notices_left_out = self.notices_left_out.saturating_add(1);
        }
    }

    fn into_notices(mut self) -> Vec<String> {
        if self.notices_left_out > 0 {
            self.notices.push(format!(
                "{} more Services or addresses are not served",
                self.notices_left_out
            ));
        }
        self.notices
    }
}

/// Serves Services. What is connected outlives the port it came in at.
#[derive(Debug)]
pub(super) struct ServiceListeners {
    pods: Arc<PodTable>,
    open: BTreeMap<SocketAddrV4, ServiceListener>,
}

#[derive(Debug)]
struct ServiceListener {
    targets: watch::Sender<Targets>,
    /// Ends with the port, which stops listening.
    accepting: JoinSet<()>,
}

impl ServiceListeners {
    pub(super) fn new(pods: Arc<PodTable>) -> Self {
        Self { pods, open: BTreeMap::new() }
    }

    /// Opens, changes and closes listeners until they are as in the table; answers with what is not served, once
    /// nothing is accepted any more at ports that are gone.
    pub(super) async fn follow_table(&mut self, mut table: ServiceTable) -> Vec<String> {
        let ports = std::mem::take(&mut table.ports);
        let open = std::mem::take(&mut self.open).into_iter();
        let (kept, gone): (BTreeMap<_, _>, BTreeMap<_, _>) =
            open.partition(|(place, _)| ports.contains_key(place));
        self.open = kept;
        for mut listener in gone.into_values() {
            listener.accepting.shutdown().await;
        }
        for (place, targets) in ports {
            if let Some(listener) = self.open.get(&place) {
                listener.targets.send_if_modified(|known| {
                    let is_new = *known != targets;
                    *known = targets;
                    is_new
                });
                continue;
            }
            match listen_tcp(place, false) {
                Ok(listener) => {
                    let (sender, receiver) = watch::channel(targets);
                    let mut accepting = JoinSet::new();
                    accepting.spawn(accept_clients(listener, receiver, Arc::clone(&self.pods)));
                    self.open.insert(place, ServiceListener { targets: sender, accepting });
                }
                Err(error) => table.tell(format!("cannot listen at {place} of a Service: {error}")),
            }
        }
        table.into_notices()
    }
}

async fn accept_clients(
    listener: TcpListener,
    targets: watch::Receiver<Targets>,
    pods: Arc<PodTable>,
) {
    let turn = Arc::new(AtomicUsize::new(0));
    loop {
        let Some((client, from)) = accept_pod(&listener).await else { continue };
        let Some(seat) = pods.take_seat_from(*from.ip()) else {
            reset_stream(client);
            continue;
        };
        let is_sticky = targets.borrow().is_sticky;
        let first = if is_sticky {
            usize::from(from.ip().octets()[3])
        } else {
            turn.fetch_add(1, Ordering::Relaxed)
        };
        tokio::spawn(serve_client(client, seat, targets.clone(), first, Arc::clone(&pods)));
    }
}

async fn serve_client(
    client: TcpStream,
    mut seat: PodSeat,
    targets: watch::Receiver<Targets>,
    first: usize,
    pods: Arc<PodTable>,
) {
    let connected = tokio::select! {
        connected = connect_target(&targets, first, &pods) => connected,
        () = seat.wait_detached() => None,
    };
    let Some((target, mut target_seat)) = connected else {
        reset_stream(client);
        return;
    };
    let detached = async {
        tokio::select! {
            () = seat.wait_detached() => {}
            () = target_seat.wait_detached() => {}
        }
    };
    splice_streams(client, target, detached).await;
}

/// A connection to a pod; the first one that is tried changes from client to client.
async fn connect_target(
    targets: &watch::Receiver<Targets>,
    first: usize,
    pods: &PodTable,
) -> Option<(TcpStream, PodSeat)> {
    let deadline = Instant::now() + TARGET_PATIENCE;
    loop {
        // Read again each time: the pods may have changed.
        let known = Arc::clone(&targets.borrow());
        let known = &known.pods;
        let start = first.checked_rem(known.len())?;
        for target in known.iter().cycle().skip(start).take(known.len()) {
            let Some(seat) = pods.take_seat_to(*target.ip()) else { continue };
            let left = deadline.saturating_duration_since(Instant::now());
            // One pod that does not answer leaves time for the others.
            let patience = if known.len() > 1 { left / 2 } else { left };
            if let Ok(Ok(stream)) = timeout(patience, TcpStream::connect(*target)).await {
                prepare_stream(&stream);
                return Some((stream, seat));
            }
        }
        if Instant::now() >= deadline {
            return None;
        }
        sleep(TARGET_PAUSE).await;
    }
}

/// Networks that are the node's own: pods' and Services'.
pub(super) fn is_own_network(config: &NodeConfig, address: Ipv4Addr) -> bool {
    let (services, bits) = config.services;
    is_in_network(address, services, bits)
        || is_in_network(address, config.gateway, POD_NETWORK_BITS)
}
