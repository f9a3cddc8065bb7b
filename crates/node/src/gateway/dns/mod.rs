//! Names: the cluster's are answered here, others are asked for through apron's door.

pub mod message;
mod zone;

#[cfg(test)]
mod tests;

pub use zone::ClusterZone;

use super::connection::{listen_tcp, read_message, write_message};
use super::door::ask_for_name;
use super::pods::PodTable;
use message::{
    DnsAnswer, DnsQuery, MESSAGE_MAX, ResponseCode, UnreadableQuery, parse_query, write_answer,
    write_cut_answer, write_failure,
};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Names outside that are asked for at once, by all pods.
const QUERIES_MAX: usize = 256;
/// Connections of resolvers at once, of all pods.
const CONNECTIONS_MAX: usize = 128;
/// A resolver's connection on which nothing happens is closed.
const CONNECTION_IDLE: Duration = Duration::from_secs(10);
/// A name outside is answered within this time, or cannot be answered.
const QUERY_PATIENCE: Duration = Duration::from_secs(10);

/// Answers pods' queries.
#[derive(Debug)]
pub(super) struct NameServer {
    zone: RwLock<Arc<ClusterZone>>,
    state: PathBuf,
    pods: Arc<PodTable>,
    queries: Arc<Semaphore>,
}

impl NameServer {
    pub(super) fn new(zone: ClusterZone, state: PathBuf, pods: Arc<PodTable>) -> Arc<Self> {
        let queries = Arc::new(Semaphore::new(QUERIES_MAX));
        Arc::new(Self { zone: RwLock::new(Arc::new(zone)), state, pods, queries })
    }

    /// Replaces what the cluster's names lead to.
    pub(super) fn replace_zone(&self, zone: ClusterZone) {
        *self.zone.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(zone);
    }

    /// Listens on port 53 of an address, over UDP and TCP.
    pub(super) async fn listen(
        self: &Arc<Self>,
        address: Ipv4Addr,
        tasks: &mut JoinSet<()>,
    ) -> io::Result<()> {
        let place = SocketAddrV4::new(address, 53);
        let socket = Arc::new(UdpSocket::bind(place).await?);
        let listener = listen_tcp(place, false)?;
        let server = Arc::clone(self);
        tasks.spawn(async move { server.serve_datagrams(&socket).await });
        let server = Arc::clone(self);
        let seats = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        tasks.spawn(async move {
            loop {
                let Some((stream, from)) = super::connection::accept_pod(&listener).await else {
                    continue;
                };
                let Ok(seat) = Arc::clone(&seats).try_acquire_owned() else { continue };
                let server = Arc::clone(&server);
                if !server.pods.is_attached(*from.ip()) {
                    continue;
                }
                tokio::spawn(async move {
                    let _ = server.serve_connection(stream, IpAddr::V4(*from.ip())).await;
                    drop(seat);
                });
            }
        });
        Ok(())
    }

    async fn serve_datagrams(self: Arc<Self>, socket: &Arc<UdpSocket>) {
        let mut buffer = vec![0; 4096];
        loop {
            // An error is that of an earlier answer that could not be delivered.
            let Ok((length, from)) = socket.recv_from(&mut buffer).await else { continue };
            let message = buffer.get(..length).unwrap_or_default();
            if !self.is_pod(from) {
                continue;
            }
            match self.answer_at_once(message, true) {
                AtOnce::Ignored => {}
                AtOnce::Answered(answer) => {
                    let _ = socket.try_send_to(&answer, from);
                }
                AtOnce::Outside(query) => {
                    let (server, message) = (Arc::clone(&self), message.to_vec());
                    let socket = Arc::clone(socket);
                    tokio::spawn(async move {
                        let answer =
                            server.answer_from_outside(&query, &message, from.ip(), true).await;
                        let _ = socket.send_to(&answer, from).await;
                    });
                }
            }
        }
    }

    fn is_pod(&self, from: SocketAddr) -> bool {
        matches!(from.ip(), IpAddr::V4(address) if self.pods.is_attached(address))
    }

    async fn serve_connection(&self, mut stream: TcpStream, from: IpAddr) -> io::Result<()> {
        loop {
            let read = timeout(CONNECTION_IDLE, read_message(&mut stream)).await;
            let Ok(Some(message)) = read.unwrap_or(Ok(None)) else { return Ok(()) };
            let answer = match self.answer_at_once(&message, false) {
                AtOnce::Ignored => return Ok(()),
                AtOnce::Answered(answer) => answer,
                AtOnce::Outside(query) => {
                    self.answer_from_outside(&query, &message, from, false).await
                }
            };
            let written = timeout(CONNECTION_IDLE, write_message(&mut stream, &answer)).await;
            written.unwrap_or_else(|late| Err(late.into()))?;
        }
    }

    fn answer_at_once(&self, message: &[u8], is_udp: bool) -> AtOnce {
        let query = match parse_query(message) {
            Ok(query) => query,
            Err(UnreadableQuery::Ignored) => return AtOnce::Ignored,
            Err(UnreadableQuery::Answered(id, code)) => {
                return AtOnce::Answered(write_failure(id, code));
            }
        };
        let zone = Arc::clone(&self.zone.read().unwrap_or_else(PoisonError::into_inner));
        match zone.answer_query(&query) {
            Some(answer) => {
                AtOnce::Answered(write_answer(&query, &answer, answer_max(&query, is_udp)))
            }
            None => AtOnce::Outside(query),
        }
    }

    async fn answer_from_outside(
        &self,
        query: &DnsQuery,
        message: &[u8],
        from: IpAddr,
        is_udp: bool,
    ) -> Vec<u8> {
        let fail =
            |code| write_answer(query, &DnsAnswer::with_code(code), answer_max(query, is_udp));
        // One pod cannot have all of them.
        let (Some(_own), Ok(_seat)) =
            (self.pods.take_seat_for_name(from), self.queries.try_acquire())
        else {
            return fail(ResponseCode::ServerFailure);
        };
        match timeout(QUERY_PATIENCE, ask_for_name(&self.state, message)).await {
            Ok(Ok(Some(answer))) if !query.is_answered_by(&answer) => {
                fail(ResponseCode::ServerFailure)
            }
            Ok(Ok(Some(answer))) if answer.len() > answer_max(query, is_udp) => {
                write_cut_answer(query)
            }
            Ok(Ok(Some(answer))) => answer,
            Ok(Ok(None)) => fail(ResponseCode::Refused),
            Ok(Err(_)) | Err(_) => fail(ResponseCode::ServerFailure),
        }
    }
}

/// What can be said to a message without asking outside.
enum AtOnce {
    Ignored,
    Answered(Vec<u8>),
    Outside(DnsQuery),
}

fn answer_max(query: &DnsQuery, is_udp: bool) -> usize {
    if is_udp { query.udp_answer_max() } else { MESSAGE_MAX }
}
