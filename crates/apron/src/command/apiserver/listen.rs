//! The API server's door: TLS, and who the certificate of a client is for.

use crate::failure::{Failure, Outcome};
use apiserver::http::share::Peer;
use axum::http::Extensions;
use edge::accept::{Limits, Porter};
use edge::open_files;
use edge::seats::{Seat, Seats};
use embed::Credentials;
use registry::budget::network;
use rustls::pki_types::CertificateDer;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Go clients put all their watches on one connection, others have one for each. Watches
/// never end by themselves, and everything acknowledged is durable already.
pub(super) const LIMITS: Limits =
    Limits { connections: 16_384, streams: 2000, hands: 0, drain: Duration::from_secs(2) };
/// Of all connections, the part that one address may have. This machine is an address like any
/// other: who is on it may not keep out everybody else.
const PART_OF_CLIENT: usize = 4;
/// One address may have this many even so, up to half of all: all clients may be on one machine.
const CLIENT_MIN: usize = 128;

/// Opens the socket.
pub(super) async fn bind(address: SocketAddr) -> Outcome<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let hint = "choose another address with --listen, or port 0 for a free one";
        Failure::new(format!("cannot listen on {address}"), hint).because(&error)
    })
}

/// Meets everybody, and asks who has a certificate of our authority to show it.
pub(crate) struct Door {
    credentials: Arc<Credentials>,
    seats: Seats,
}

impl Door {
    pub(super) fn new(credentials: Arc<Credentials>) -> Self {
        let connections = open_files::connections(LIMITS.connections);
        let least = CLIENT_MIN.min(connections / 2);
        let seats = Seats::new((connections / PART_OF_CLIENT).max(least));
        Self { credentials, seats }
    }
}

impl Porter for Door {
    type Seat = Seat;

    fn seat(&self, peer: IpAddr) -> Option<Seat> {
        self.seats.take(network(peer), false)
    }

    fn acceptor(&self) -> Option<TlsAcceptor> {
        Some(self.credentials.acceptor())
    }

    fn know(&self, peer: IpAddr, chain: &[CertificateDer<'_>]) -> Extensions {
        // The handshake has verified that our authority signed it.
        let shown = chain.first().and_then(|der| apiserver::Identity::of_certificate(der));
        let mut known = Extensions::new();
        known.insert(Peer(network(peer)));
        if let Some(identity) = shown {
            known.insert(identity);
        }
        known
    }
}
