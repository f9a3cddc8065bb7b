//! Which pods are attached, and how much they may have connected at once.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Connections that a pod has opened at once: to Services, the API server and the outside.
pub const CONNECTIONS_FROM_POD_MAX: usize = 1024;
/// Connections at once of a pod to the API server, which has so many seats for all clients of this machine.
const API_CONNECTIONS_FROM_POD_MAX: usize = 64;
/// Names outside that a pod asks for at once.
const NAMES_FROM_POD_MAX: usize = 32;
/// Connections at once that lead to a pod through Services and apron's door.
pub const CONNECTIONS_TO_POD_MAX: usize = 1024;

/// Attached pods by address.
#[derive(Debug, Default)]
pub(super) struct PodTable {
    links: Mutex<HashMap<Ipv4Addr, PodLink>>,
}

#[derive(Debug)]
struct PodLink {
    pod: String,
    outgoing: Arc<Semaphore>,
    api: Arc<Semaphore>,
    names: Arc<Semaphore>,
    incoming: Arc<Semaphore>,
    /// Dropped with the link, which ends what is connected.
    attached: watch::Sender<()>,
}

/// The right to one connection of a pod.
#[derive(Debug)]
pub(super) struct PodSeat {
    _permit: OwnedSemaphorePermit,
    attached: watch::Receiver<()>,
}

impl PodSeat {
    /// Ends when the pod is detached.
    pub(super) async fn wait_detached(&mut self) {
        while self.attached.changed().await.is_ok() {}
    }
}

impl PodTable {
    fn links(&self) -> MutexGuard<'_, HashMap<Ipv4Addr, PodLink>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a pod; false if the pod or its address is there already.
    pub(super) fn insert_pod(&self, address: Ipv4Addr, pod: &str) -> bool {
        let mut links = self.links();
        if links.contains_key(&address) || links.values().any(|link| link.pod == pod) {
            return false;
        }
        let link = PodLink {
            pod: pod.to_owned(),
            outgoing: Arc::new(Semaphore::new(CONNECTIONS_FROM_POD_MAX)),
            api: Arc::new(Semaphore::new(API_CONNECTIONS_FROM_POD_MAX)),
            names: Arc::new(Semaphore::new(NAMES_FROM_POD_MAX)),
            incoming: Arc::new(Semaphore::new(CONNECTIONS_TO_POD_MAX)),
            attached: watch::Sender::new(()),
        };
        links.insert(address, link);
        true
    }

    /// Forgets a pod, which ends its connections, and answers with its address.
    pub(super) fn remove_pod(&self, pod: &str) -> Option<Ipv4Addr> {
        let mut links = self.links();
        let address =
            links.iter().find(|(_, link)| link.pod == pod).map(|(address, _)| *address)?;
        links.remove(&address);
        Some(address)
    }

    pub(super) fn is_attached(&self, address: Ipv4Addr) -> bool {
        self.links().contains_key(&address)
    }

    /// A seat for a connection that a pod opened; none if it has too many, or is not attached.
    pub(super) fn take_seat_from(&self, address: Ipv4Addr) -> Option<PodSeat> {
        let links = self.links();
        let link = links.get(&address)?;
        take_seat(&link.outgoing, &link.attached)
    }

    /// The same to the API server.
    pub(super) fn take_seat_to_api(&self, address: Ipv4Addr) -> Option<PodSeat> {
        let links = self.links();
        let link = links.get(&address)?;
        take_seat(&link.api, &link.attached)
    }

    /// A seat for a name that a pod asks for; none if it asks for too many at once, or is not attached.
    pub(super) fn take_seat_for_name(&self, address: IpAddr) -> Option<PodSeat> {
        let IpAddr::V4(address) = address else { return None };
        let links = self.links();
        let link = links.get(&address)?;
        take_seat(&link.names, &link.attached)
    }

    /// A seat for a connection to a pod; none if it has too many, or is not attached.
    pub(super) fn take_seat_to(&self, address: Ipv4Addr) -> Option<PodSeat> {
        let links = self.links();
        let link = links.get(&address)?;
        take_seat(&link.incoming, &link.attached)
    }
}

fn take_seat(seats: &Arc<Semaphore>, attached: &watch::Sender<()>) -> Option<PodSeat> {
    let permit = Arc::clone(seats).try_acquire_owned().ok()?;
    Some(PodSeat { _permit: permit, attached: attached.subscribe() })
}
