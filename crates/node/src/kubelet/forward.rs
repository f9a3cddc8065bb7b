//! The way from this machine to Services: a socket on the loopback address for each that is asked for.

use super::LiveServices;
use crate::gateway::connect_pod;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Services that have a socket; more are not reached.
const FORWARDS_MAX: usize = 256;
/// How often a pod is looked for that is about to be ready, and the pause between.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// A namespace, a Service of it and one of its ports.
type Place = (String, String, u16);

/// Sockets that lead to Services, made when they are asked for.
#[derive(Clone, Debug)]
pub struct ServiceForwards {
    services: LiveServices,
    state: PathBuf,
    open: Arc<Mutex<BTreeMap<Place, SocketAddr>>>,
}

impl ServiceForwards {
    /// Sockets that lead to what Services lead to, through the node with this state.
    pub fn new(services: LiveServices, state: PathBuf) -> Self {
        Self { services, state, open: Arc::default() }
    }

    /// Where a port of a Service is reached on this machine; nothing, if no ready pod is behind it. Within a
    /// runtime only: the socket is served there.
    pub fn find_service(&self, namespace: &str, name: &str, port: u16) -> Option<SocketAddr> {
        self.services.find_target(namespace, name, port)?;
        let place = (namespace.to_owned(), name.to_owned(), port);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = open.get(&place) {
            return Some(*address);
        }
        if open.len() >= FORWARDS_MAX {
            return None;
        }
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
        listener.set_nonblocking(true).ok()?;
        let listener = TcpListener::from_std(listener).ok()?;
        let address = listener.local_addr().ok()?;
        tokio::spawn(self.clone().serve(listener, place.clone()));
        open.insert(place, address);
        Some(address)
    }

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
            if let Some(target) = self.services.find_target(&namespace, &name, port)
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
