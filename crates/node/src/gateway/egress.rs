//! The way out: whatever pods connect to outside of the cluster is taken here, and asked for at apron's door.
//!
//! A transparent listener takes connections to a port of any address; which address was meant is the accepted
//! socket's own. The ports that nearly everything uses are listened on from the start. Others are when the first
//! packet to one is seen: nothing answers it, so the pod's kernel sends it again after a second, and is heard.
//! That needs neither nftables nor a rule per port.

use super::connection::{accept_pod, listen_tcp, reset_stream, splice_streams};
use super::door::{DoorAnswer, ask_host};
use super::pods::{PodSeat, PodTable};
use super::services::is_own_network;
use crate::protocol::NodeConfig;
use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;

/// Ports that are listened on from the start.
const PORTS_ALWAYS: [u16; 2] = [80, 443];
/// Further ports at once; the one that was asked for first goes when there are more.
const PORTS_MAX: usize = 512;
/// Bytes of a packet that are looked at: the headers of IPv4 (60 at most) and the ports of TCP.
const PACKET_BYTES: usize = 64;

/// Serves the way out until the future is dropped.
pub(super) struct EgressListeners {
    config: Arc<NodeConfig>,
    pods: Arc<PodTable>,
    open: VecDeque<(u16, JoinSet<()>)>,
    always: JoinSet<()>,
}

impl EgressListeners {
    pub(super) fn open(config: Arc<NodeConfig>, pods: Arc<PodTable>) -> io::Result<Self> {
        let mut egress = Self { config, pods, open: VecDeque::new(), always: JoinSet::new() };
        for port in PORTS_ALWAYS {
            let task = egress.listen_on(port)?;
            egress.always.spawn(task);
        }
        Ok(egress)
    }

    fn listen_on(&self, port: u16) -> io::Result<impl Future<Output = ()> + Send + use<>> {
        let listener = listen_tcp(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port), true)?;
        Ok(accept_outgoing(listener, Arc::clone(&self.config), Arc::clone(&self.pods)))
    }

    /// Listens on ports as pods ask for them.
    pub(super) async fn follow_attempts(mut self, attempts: AttemptWatch) {
        loop {
            let Some(place) = attempts.next_attempt().await else { continue };
            let port = place.port();
            let is_open =
                PORTS_ALWAYS.contains(&port) || self.open.iter().any(|(open, _)| *open == port);
            if is_open || is_own_network(&self.config, *place.ip()) {
                continue;
            }
            let Ok(task) = self.listen_on(port) else { continue };
            if self.open.len() >= PORTS_MAX {
                self.open.pop_front();
            }
            let mut accepting = JoinSet::new();
            accepting.spawn(task);
            self.open.push_back((port, accepting));
        }
    }
}

async fn accept_outgoing(listener: TcpListener, config: Arc<NodeConfig>, pods: Arc<PodTable>) {
    loop {
        let Some((client, from)) = accept_pod(&listener).await else { continue };
        let meant = client.local_addr().map(|meant| (meant.ip(), meant.port()));
        let (Ok((IpAddr::V4(address), port)), Some(seat)) =
            (meant, pods.take_seat_from(*from.ip()))
        else {
            reset_stream(client);
            continue;
        };
        // A port of a Service or of a pod that is not there: nothing outside is meant.
        if is_own_network(&config, address) {
            reset_stream(client);
            continue;
        }
        let request = format!("tcp {address}:{port}");
        tokio::spawn(serve_through_door(client, seat, Arc::clone(&config), request));
    }
}

/// Splices a pod's connection with what apron's door gives for a request.
pub(super) async fn serve_through_door(
    client: TcpStream,
    mut seat: PodSeat,
    config: Arc<NodeConfig>,
    request: String,
) {
    let asked = tokio::select! {
        asked = ask_host(&config.state, &request) => asked,
        () = seat.wait_detached() => return reset_stream(client),
    };
    let Ok(DoorAnswer::Granted(outside)) = asked else { return reset_stream(client) };
    splice_streams(client, outside, seat.wait_detached()).await;
}

/// Sees where connections are attempted to.
pub(super) struct AttemptWatch {
    /// A raw socket: to the runtime, one that has messages is like another.
    socket: UdpSocket,
}

impl AttemptWatch {
    pub(super) fn open() -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::TCP))?;
        socket.attach_filter(&ATTEMPT_FILTER)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket: UdpSocket::from_std(socket.into())? })
    }

    /// The next packet that begins a connection; nothing if it cannot be read.
    async fn next_attempt(&self) -> Option<SocketAddrV4> {
        let mut packet = [0; PACKET_BYTES];
        let length = self.socket.recv(&mut packet).await.ok()?;
        read_destination(packet.get(..length)?)
    }
}

/// Packets of TCP with SYN and without ACK; the filter sees the header of IPv4 first.
const ATTEMPT_FILTER: [SockFilter; 6] = [
    SockFilter::new(0xb1, 0, 0, 0),    // x = length of the first header
    SockFilter::new(0x50, 0, 0, 13),   // a = flags of the second
    SockFilter::new(0x54, 0, 0, 0x12), // a = SYN and ACK of them
    SockFilter::new(0x15, 0, 1, 0x02), // SYN alone?
    SockFilter::new(0x06, 0, 0, 64),   // take its beginning
    SockFilter::new(0x06, 0, 0, 0),    // or nothing
];

/// Where a packet goes to.
fn read_destination(packet: &[u8]) -> Option<SocketAddrV4> {
    let header = usize::from(packet.first()? & 0x0f).checked_mul(4)?;
    let address: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
    let at = header.checked_add(2)?;
    let port: [u8; 2] = packet.get(at..at.checked_add(2)?)?.try_into().ok()?;
    Some(SocketAddrV4::new(address.into(), u16::from_be_bytes(port)))
}
