//! The way from this machine to Services: a socket on the loopback address for each that is asked for.

use super::LiveServices;
use crate::gateway::connect_pod;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// Ports of Services that have a socket at once; more are not reached.
const FORWARDS_MAX: usize = 256;
/// How often a pod is looked for that is about to be ready, and the pause between.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// A namespace, a Service of it and one of its ports.
type Place = (String, String, u16);

/// A socket that leads to a Service. Dropped, it is closed; what is connected stays so.
#[derive(Debug)]
struct OpenForward {
    address: SocketAddr,
    accepting: AbortHandle,
}

impl Drop for OpenForward {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Sockets that lead to Services, made when they are asked for, and closed when their Service is gone and any is asked
/// for.
#[derive(Clone, Debug)]
pub struct ServiceForwards {
    services: LiveServices,
    state: PathBuf,
    open: Arc<Mutex<BTreeMap<Place, OpenForward>>>,
}

impl ServiceForwards {
    /// Sockets that lead to what Services lead to, through the node with this state.
    pub fn new(services: LiveServices, state: PathBuf) -> Self {
        Self { services, state, open: Arc::default() }
    }

    /// Where a port of a Service is reached on this machine; nothing, if no ready pod is behind it. Within a
    /// runtime only: the socket is served there.
    pub fn find_service(&self, namespace: &str, name: &str, port: u16) -> Option<SocketAddr> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(namespace, name, port), _| self.services.has_port(namespace, name, *port));
        self.services.find_target(namespace, name, port, 0)?;
        let place = (namespace.to_owned(), name.to_owned(), port);
        if let Some(forward) = open.get(&place) {
            return Some(forward.address);
        }
        if open.len() >= FORWARDS_MAX {
            return None;
        }
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
        listener.set_nonblocking(true).ok()?;
        let listener = TcpListener::from_std(listener).ok()?;
        let address = listener.local_addr().ok()?;
        let (services, state) = (self.services.clone(), self.state.clone());
        let serving = ForwardServer { services, state, turn: Arc::default() };
        let accepting = tokio::spawn(serving.serve(listener, place.clone())).abort_handle();
        open.insert(place, OpenForward { address, accepting });
        Some(address)
    }
}

/// What a socket's tasks need. They do not keep the table of sockets, which ends them.
#[derive(Clone, Debug)]
struct ForwardServer {
    services: LiveServices,
    state: PathBuf,
    /// Whose turn it is among the pods of the Service.
    turn: Arc<AtomicUsize>,
}

impl ForwardServer {
    async fn serve(self, listener: TcpListener, place: Place) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => drop(tokio::spawn(self.clone().forward(stream, place.clone()))),
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn forward(self, mut stream: TcpStream, (namespace, name, port): Place) {
        for _ in 0..TRIES {
            // One that does not answer, although it is ready, is not the only one that is asked.
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            if let Some(target) = self.services.find_target(&namespace, &name, port, turn)
                && let Some(mut pod) = self.connect(target).await
            {
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut pod).await;
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn connect(&self, target: SocketAddrV4) -> Option<tokio::net::UnixStream> {
        connect_pod(&self.state, target).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{ServiceEntry, ServicePortEntry};

    fn service(name: &str) -> ServiceEntry {
        let targets = vec!["10.244.0.2:80".parse().unwrap()];
        ServiceEntry {
            namespace: "n".to_owned(),
            name: name.to_owned(),
            address: None,
            ports: vec![ServicePortEntry { name: None, port: 80, targets }],
            pods: Vec::new(),
            hosts: Vec::new(),
            is_sticky: false,
        }
    }

    #[test]
    fn each_turn_is_that_of_another_pod() {
        let services = LiveServices::default();
        let mut two = service("s");
        two.ports[0].targets.push("10.244.0.3:80".parse().unwrap());
        services.replace_entries(vec![two]);
        let asked = [0, 1, 2]
            .map(|turn| services.find_target("n", "s", 80, turn).unwrap().ip().octets()[3]);
        assert_eq!(asked, [2, 3, 2]);
        let mut none = service("s");
        none.ports[0].targets.clear();
        services.replace_entries(vec![none]);
        assert_eq!(services.find_target("n", "s", 80, 1), None);
    }

    #[tokio::test]
    async fn sockets_of_services_that_are_gone_are_closed_and_make_room() {
        let services = LiveServices::default();
        let forwards = ServiceForwards::new(services.clone(), PathBuf::from("/nowhere"));
        services.replace_entries(vec![service("stays"), service("goes")]);
        let stays = forwards.find_service("n", "stays", 80).unwrap();
        let goes = forwards.find_service("n", "goes", 80).unwrap();
        assert!(TcpStream::connect(goes).await.is_ok());
        services.replace_entries(vec![service("stays")]);
        assert_eq!(forwards.find_service("n", "stays", 80), Some(stays));
        assert_eq!(forwards.find_service("n", "goes", 80), None);
        let is_closed = async {
            while TcpStream::connect(goes).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(300), is_closed).await.unwrap();
        assert!(TcpStream::connect(stays).await.is_ok());
        for number in 0..3 * FORWARDS_MAX {
            let name = format!("s{number}");
            services.replace_entries(vec![service(&name)]);
            assert!(forwards.find_service("n", &name, 80).is_some(), "{name}");
            // What was closed is dropped by the runtime.
            tokio::task::yield_now().await;
        }
    }
}
