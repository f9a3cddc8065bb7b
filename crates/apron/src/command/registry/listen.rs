//! The registry's door: how many may be in at once, and with which certificate.

use super::tls::Tls;
use crate::args::limit::Limits;
use ::registry::access::Peer;
use ::registry::budget::{Budgets, Kind, network};
use axum::http::Extensions;
use edge::accept::{self, Porter};
use edge::network::Network;
use edge::seats::{Seat, Seats};
use rustls::pki_types::CertificateDer;
use std::net::IpAddr;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsAcceptor;

/// Requests at once on one connection.
const STREAMS_MAX: u32 = 128;
/// Threads that talk to clients, on a machine with many cores.
const HANDS_MAX: usize = 16;
/// How long requests under way may take to end once the registry is asked to stop.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(30);

/// Limits of the accept loop.
pub(super) fn limits(limits: &Limits) -> accept::Limits {
    let connections = limits.connections;
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let hands = cores.min(HANDS_MAX);
    accept::Limits { connections, streams: STREAMS_MAX, hands, drain: DRAIN_TIME_MAX }
}

/// How many may be in at once from one address, and with which certificate they are met.
pub(crate) struct Doors {
    tls: Option<Arc<Tls>>,
    budgets: Budgets,
    seats: Seats,
    /// Proxies that bring many clients each.
    proxies: Vec<Network>,
}

impl Doors {
    pub(super) fn new(limits: &Limits, tls: Option<Arc<Tls>>, proxies: Vec<Network>) -> Self {
        Self {
            tls,
            proxies,
            budgets: limits.budgets.clone(),
            seats: Seats::new(limits.connections_per_client),
        }
    }

    /// Lets somebody in, unless too many from there are; nobody on this machine is counted out.
    fn enter(&self, peer: IpAddr) -> Option<Seat> {
        let seat = self.seats.take(network(peer), self.is_exempt(peer));
        if seat.is_none() {
            self.budgets.refused(Kind::Connections);
        }
        seat
    }
}

impl Doors {
    /// This machine, and proxies: whoever is behind them is counted by requests.
    fn is_exempt(&self, peer: IpAddr) -> bool {
        peer.to_canonical().is_loopback() || self.proxies.iter().any(|it| it.holds(peer))
    }
}

impl Porter for Doors {
    type Seat = Seat;

    fn seat(&self, peer: IpAddr) -> Option<Seat> {
        self.enter(peer)
    }

    fn acceptor(&self) -> Option<TlsAcceptor> {
        self.tls.as_ref().map(|tls| tls.acceptor())
    }

    fn know(&self, peer: IpAddr, _: &[CertificateDer<'_>]) -> Extensions {
        let mut known = Extensions::new();
        known.insert(Peer(peer));
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_does_not_take_all_connections() {
        let (seats, budgets) = (Seats::new(2), Budgets::default());
        let proxies = vec![Network::parse("10.0.0.0/8").unwrap()];
        let doors = Doors { tls: None, budgets, seats, proxies };
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
        let proxy = IpAddr::from([10, 1, 2, 3]);
        let more: Vec<_> = (0..10).map(|_| doors.enter(proxy)).collect();
        assert!(more.iter().all(Option::is_some));
        drop((second, many, more));
        assert!(doors.seats.are_free());
    }
}
