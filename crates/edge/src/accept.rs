//! The accept loop of every server: connections in, TLS, the service at work, a clean end.
//!
//! What differs between servers is behind a [`Porter`]: who is let in, with which
//! certificate, and what requests carry about whoever is at the other end.

use crate::connection::Talk;
use crate::hands::Hands;
use crate::open_files;
use axum::Router;
use axum::http::Extensions;
use rustls::pki_types::CertificateDer;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

/// How long a client may take for the TLS handshake.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// The pause after the system refused to accept (too many open files, mostly).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How much at once, and for how long at the end.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections; more wait to be accepted.
    pub connections: usize,
    /// Requests on one connection.
    pub streams: u32,
    /// Threads that have connections for themselves; none if all threads share them, as is right
    /// where an answer may take long to make.
    pub hands: usize,
    /// How long requests under way may take to end once the server is asked to stop.
    pub drain: Duration,
}

/// Who stands at the door.
pub trait Porter: Send + Sync + 'static {
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
pub async fn serve<P: Porter>(
    listener: TcpListener,
    router: Router,
    porter: P,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let (tell, told) = watch::channel(false);
    let connections = open_files::connections(limits.connections);
    let permits = Arc::new(Semaphore::new(connections));
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
        let (router, streams, stop) = (router.clone(), limits.streams, told.clone());
        let talk = Talk { router, streams, known: Extensions::new(), stop };
        let porter = Arc::clone(&porter);
        hands.give(stream, move |stream| async move {
            connect(stream, peer.ip(), porter.as_ref(), talk).await;
            drop((permit, seat));
        });
    }
    drop(listener);
    let _ = tell.send(true);
    // All permits are there again when all connections have ended.
    let all = permits.acquire_many(u32::try_from(connections).unwrap_or(u32::MAX));
    let _ = tokio::time::timeout(limits.drain, all).await;
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

async fn connect(stream: TcpStream, peer: IpAddr, porter: &impl Porter, mut talk: Talk) {
    let Some(tls) = porter.acceptor() else {
        talk.known = porter.know(peer, &[]);
        return talk.with(stream).await;
    };
    let handshake = tls.accept(stream);
    if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIME_MAX, handshake).await {
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        talk.known = porter.know(peer, chain);
        talk.with(stream).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::ServerConfig;
    use rustls::crypto::aws_lc_rs::default_provider;
    use rustls::server::ResolvesServerCertUsingSni;
    use tokio::time::Instant;

    /// A porter with TLS, whose certificate no handshake gets to.
    struct Locked(TlsAcceptor);

    impl Porter for Locked {
        type Seat = ();

        fn seat(&self, _: IpAddr) -> Option<()> {
            Some(())
        }

        fn acceptor(&self) -> Option<TlsAcceptor> {
            Some(self.0.clone())
        }

        fn know(&self, _: IpAddr, _: &[CertificateDer<'_>]) -> Extensions {
            Extensions::new()
        }
    }

    fn locked() -> Locked {
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new()));
        Locked(TlsAcceptor::from(Arc::new(config)))
    }

    /// M2: a client that begins no handshake, or never ends it, is not waited for.
    #[tokio::test(start_paused = true)]
    async fn m2_a_handshake_that_does_not_end_is_given_up() {
        for said in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00\x01\x00"] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (stream, peer) = listener.accept().await.unwrap();
            assert_eq!(client.try_write(said).unwrap(), said.len());
            let (_tell, stop) = watch::channel(false);
            let talk = Talk { router: Router::new(), streams: 1, known: Extensions::new(), stop };
            let start = Instant::now();
            let porter = locked();
            let talking = connect(stream, peer.ip(), &porter, talk);
            let talked = tokio::time::timeout(Duration::from_secs(3600), talking).await;
            talked.expect("the server gives the handshake up");
            assert_eq!(start.elapsed().as_secs(), HANDSHAKE_TIME_MAX.as_secs(), "{said:?}");
        }
    }
}
