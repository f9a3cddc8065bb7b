//! The accept loop of every server: connections in, TLS, the service at work, a clean end.
//!
//! What differs between servers is behind a [`Porter`]: who is let in, with which
//! certificate, and what requests carry about whoever is at the other end.

use crate::failure::{Failure, Outcome};
use crate::hands::Hands;
use axum::Router;
use axum::http::{Extensions, Request};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use rustls::pki_types::CertificateDer;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

/// How often a connection is asked whether anybody is still there, and how long that may take.
const ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const ALIVE_TIME_MAX: Duration = Duration::from_secs(20);
/// How long a client may take to say what it wants.
const HEADERS_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a client may take for the TLS handshake.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// The pause after the system refused to accept (too many open files, mostly).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How much at once, and for how long at the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Connections; more wait to be accepted.
    pub(crate) connections: usize,
    /// Requests on one connection.
    pub(crate) streams: u32,
    /// Threads that have connections for themselves; none if all threads share them, as is right
    /// where an answer may take long to make.
    pub(crate) hands: usize,
    /// How long requests under way may take to end once the server is asked to stop.
    pub(crate) drain: Duration,
}

/// Who stands at the door.
pub(crate) trait Porter: Send + Sync + 'static {
    /// What a connection holds while it lasts.
    type Seat: Send + 'static;

    /// A place for a connection from there, if there is one.
    fn seat(&self, peer: IpAddr) -> Option<Self::Seat>;

    /// What the next connection is accepted with; none without TLS.
    fn acceptor(&self) -> Option<TlsAcceptor>;

    /// What each request carries about who is at the other end, and showed these certificates.
    fn know(&self, peer: IpAddr, chain: &[CertificateDer<'_>]) -> Extensions;
}

/// Serves until `stop` is done, then lets requests under way finish.
pub(crate) async fn serve<P: Porter>(
    listener: TcpListener,
    router: Router,
    porter: P,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let graceful = GracefulShutdown::new();
    let permits = Arc::new(Semaphore::new(limits.connections));
    let porter = Arc::new(porter);
    let mut stop = std::pin::pin!(stop);
    let mut hands = Hands::new(limits.hands);
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
        let Some(seat) = porter.seat(peer.ip()) else { continue };
        let talk = Talk { router: router.clone(), limits, watcher: graceful.watcher() };
        let porter = Arc::clone(&porter);
        hands.give(stream, move |stream| async move {
            connect(stream, peer.ip(), porter.as_ref(), talk).await;
            drop((permit, seat));
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(limits.drain, graceful.shutdown()).await;
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = permits.clone().acquire_owned().await.ok()?;
    let (stream, address) = listener.accept().await.ok()?;
    stream.set_nodelay(true).ok()?;
    Some((stream, address, permit))
}

/// A connection's service, and who waits for its end.
struct Talk {
    router: Router,
    limits: Limits,
    watcher: Watcher,
}

async fn connect(stream: TcpStream, peer: IpAddr, porter: &impl Porter, talk: Talk) {
    let Some(tls) = porter.acceptor() else {
        return talk.with(stream, porter.know(peer, &[])).await;
    };
    let handshake = tls.accept(stream);
    if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIME_MAX, handshake).await {
        let known = porter.know(peer, stream.get_ref().1.peer_certificates().unwrap_or_default());
        talk.with(stream, known).await;
    }
}

impl Talk {
    async fn with<S>(self, stream: S, known: Extensions)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS_TIME_MAX);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.limits.streams)
            .keep_alive_interval(ALIVE_INTERVAL)
            .keep_alive_timeout(ALIVE_TIME_MAX);
        let service = self.router.map_request(move |mut request: Request<_>| {
            request.extensions_mut().extend(known.clone());
            request
        });
        let service = TowerToHyperService::new(service);
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        // A client that hangs up is not our failure.
        let _ = self.watcher.watch(connection).await;
    }
}

/// Done when somebody wants the server to stop.
pub(crate) fn stop() -> Outcome<impl Future<Output = ()>> {
    let failed = |error| {
        Failure::new("cannot watch for signals", "check the limits on open files").because(&error)
    };
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
