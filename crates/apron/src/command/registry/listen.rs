//! The accept loop: connections in, the service at work, a graceful end.

use super::tls::Tls;
use crate::args::limit::Limits;
use ::registry::access::Peer;
use ::registry::budget::{Budgets, Kind, network};
use axum::Router;
use axum::http::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::ServiceExt as _;

/// Requests at once on one connection.
const STREAMS_MAX: u32 = 128;
/// How often a connection is asked whether anybody is still there, and how long that may take.
const ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const ALIVE_TIME_MAX: Duration = Duration::from_secs(20);
/// How long a client may take to say what it wants.
const HEADERS_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a client may take for the TLS handshake.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// How long requests under way may take to end once the registry is asked to stop.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(30);
/// The pause after the system refused to accept (too many open files, mostly).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop` is done, then lets requests under way finish.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    tls: Option<Arc<Tls>>,
    doors: Doors,
    stop: impl Future<Output = ()>,
) {
    let graceful = GracefulShutdown::new();
    let permits = Arc::new(Semaphore::new(doors.connections));
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &permits) => accepted,
            () = &mut stop => break,
        };
        let Some((stream, peer, permit)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Dropped, which closes it: whoever holds that many knows.
        let Some(seat) = doors.enter(peer.0) else { continue };
        let (router, tls, watcher) = (router.clone(), tls.clone(), graceful.watcher());
        tokio::spawn(async move {
            connect(stream, Talk { router, peer, watcher }, tls).await;
            drop((permit, seat));
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(DRAIN_TIME_MAX, graceful.shutdown()).await;
}

/// How many may be in at once, in all and from one address.
pub(super) struct Doors {
    connections: usize,
    per_client: usize,
    budgets: Budgets,
    seats: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// One connection of an address; it counts until it is dropped.
struct Seat {
    seats: Arc<Mutex<HashMap<IpAddr, usize>>>,
    network: IpAddr,
}

impl Doors {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            connections: limits.connections,
            per_client: limits.connections_per_client,
            budgets: limits.budgets.clone(),
            seats: Arc::default(),
        }
    }

    /// Lets somebody in, unless too many from there are; nobody on this machine is counted out.
    fn enter(&self, peer: IpAddr) -> Option<Seat> {
        let network = network(peer);
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let count = seats.entry(network).or_default();
        if *count >= self.per_client && !peer.to_canonical().is_loopback() {
            self.budgets.refused(Kind::Connections);
            return None;
        }
        *count += 1;
        Some(Seat { seats: self.seats.clone(), network })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = seats.get_mut(&self.network) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                seats.remove(&self.network);
            }
        }
    }
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> Option<(TcpStream, Peer, OwnedSemaphorePermit)> {
    let permit = permits.clone().acquire_owned().await.ok()?;
    let (stream, address) = listener.accept().await.ok()?;
    stream.set_nodelay(true).ok()?;
    Some((stream, Peer(address.ip()), permit))
}

/// A connection's service, who is at its other end, and who waits for its end.
struct Talk {
    router: Router,
    peer: Peer,
    watcher: Watcher,
}

async fn connect(stream: TcpStream, talking: Talk, tls: Option<Arc<Tls>>) {
    let Some(tls) = tls else { return talk(stream, talking).await };
    let handshake = tls.acceptor().accept(stream);
    if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIME_MAX, handshake).await {
        talk(stream, talking).await;
    }
}

async fn talk<S>(stream: S, talking: Talk)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS_TIME_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .keep_alive_interval(ALIVE_INTERVAL)
        .keep_alive_timeout(ALIVE_TIME_MAX);
    let Talk { router, peer, watcher } = talking;
    let service = router.map_request(move |mut request: Request<_>| {
        request.extensions_mut().insert(peer);
        request
    });
    let service = TowerToHyperService::new(service);
    let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    // A client that hangs up is not our failure.
    let _ = watcher.watch(connection).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_does_not_take_all_connections() {
        let (seats, budgets) = (Arc::default(), Budgets::default());
        let doors = Doors { connections: 10, per_client: 2, budgets, seats };
        let there = IpAddr::from([192, 0, 2, 1]);
        let first = doors.enter(there);
        let second = doors.enter(there);
        assert!(first.is_some() && second.is_some() && doors.enter(there).is_none());
        assert!(doors.enter(IpAddr::from([192, 0, 2, 2])).is_some());
        drop(first);
        assert!(doors.enter(there).is_some());
        let here = IpAddr::from([127, 0, 0, 1]);
        let many: Vec<_> = (0..10).map(|_| doors.enter(here)).collect();
        assert!(many.iter().all(Option::is_some));
        drop((second, many));
        assert!(doors.seats.lock().unwrap().is_empty());
    }
}
