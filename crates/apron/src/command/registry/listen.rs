//! The accept loop: connections in, the service at work, a graceful end.

use super::tls::Tls;
use ::registry::access::Peer;
use axum::Router;
use axum::http::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::ServiceExt as _;

/// Connections at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 4096;
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
    stop: impl Future<Output = ()>,
) {
    let graceful = GracefulShutdown::new();
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
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
        let (router, tls, watcher) = (router.clone(), tls.clone(), graceful.watcher());
        tokio::spawn(async move {
            connect(stream, Talk { router, peer, watcher }, tls).await;
            drop(permit);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(DRAIN_TIME_MAX, graceful.shutdown()).await;
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
    builder.http2().timer(TokioTimer::new());
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
