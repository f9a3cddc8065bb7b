//! What a server of the shell adds to the accept loop: a plain door, and the wish to stop.

use crate::failure::{Failure, Outcome};
use axum::http::Extensions;
use edge::accept::Porter;
use edge::seats::{Seat, Seats};
use registry::budget::network;
use rustls::pki_types::CertificateDer;
use std::net::IpAddr;
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::TlsAcceptor;

/// Stands at a door without TLS that everybody may go through, but not too often at once.
pub(crate) struct Plain {
    seats: Seats,
}

impl Plain {
    /// So many connections for each address.
    pub(crate) fn new(per_client: usize) -> Self {
        Self { seats: Seats::new(per_client) }
    }
}

impl Porter for Plain {
    type Seat = Seat;

    fn seat(&self, peer: IpAddr) -> Option<Seat> {
        self.seats.take(network(peer), false)
    }

    fn acceptor(&self) -> Option<TlsAcceptor> {
        None
    }

    fn know(&self, _: IpAddr, _: &[CertificateDer<'_>]) -> Extensions {
        Extensions::new()
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
