//! The two sockets through the wall: `host.sock`, where apron serves the node, and `node.sock`, where the node serves
//! apron ([`crate::protocol`]).

use super::connection::{
    prepare_stream, read_line, read_message, splice_streams, write_line, write_message,
};
use super::pods::PodTable;
use super::policy::find_objection;
use super::rendezvous::{connect_in_directory, is_same_user, listen_in_directory};
use super::{GatewayError, forward};
use crate::protocol::Egress;
use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const HOST_SOCKET: &str = "host.sock";
const NODE_SOCKET: &str = "node.sock";
/// Connections through one of the sockets at once.
const CONNECTIONS_MAX: usize = 4096;
/// A connection says what it wants within this time.
const REQUEST_PATIENCE: Duration = Duration::from_secs(10);
/// A connection is made within this time, or cannot be made.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// An answer to what was asked for at a door comes within this time.
const ANSWER_PATIENCE: Duration = Duration::from_secs(15);
/// How long nothing is accepted after an error.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What the door on apron's side leads to.
#[derive(Clone, Debug)]
pub struct HostDoorOptions {
    /// Where the API server listens on this machine.
    pub api: SocketAddr,
    /// Where else pods may connect to.
    pub egress: Egress,
    /// Servers that are asked for names outside of the cluster ([`parse_nameservers`]).
    pub nameservers: Vec<SocketAddr>,
    /// Networks that pods never reach this way, with their bits: those of pods and Services.
    pub own: Vec<(Ipv4Addr, u8)>,
}

/// apron's side of the wall: `host.sock`, served until this is dropped. Needs a tokio runtime.
#[derive(Debug)]
pub struct HostDoor {
    _tasks: JoinSet<()>,
}

impl HostDoor {
    /// Listens in the node's state directory, which from then on only its owner can enter.
    pub fn open(state: &Path, options: HostDoorOptions) -> Result<Self, GatewayError> {
        let listener = listen_in_directory(state, HOST_SOCKET).map_err(|source| {
            GatewayError::new(format!("listen on {HOST_SOCKET} in {}", state.display()), source)
        })?;
        let options = Arc::new(options);
        let mut tasks = JoinSet::new();
        tasks.spawn(serve_door(listener, move |stream| {
            let options = Arc::clone(&options);
            async move { serve_node_request(stream, &options).await }
        }));
        Ok(Self { _tasks: tasks })
    }
}

/// Serves connections of the same user until the future is dropped, and then ends them.
async fn serve_door<F, R>(listener: UnixListener, serve: F)
where
    F: Fn(UnixStream) -> R,
    R: Future<Output = io::Result<()>> + Send + 'static,
{
    let seats = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut served = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        while served.try_join_next().is_some() {}
        let Ok(seat) = Arc::clone(&seats).try_acquire_owned() else { continue };
        if !is_same_user(&stream) {
            continue;
        }
        let service = serve(stream);
        served.spawn(async move {
            // What went wrong on one connection was told there.
            let _ = service.await;
            drop(seat);
        });
    }
}

async fn serve_node_request(mut stream: UnixStream, options: &HostDoorOptions) -> io::Result<()> {
    let line = timeout(REQUEST_PATIENCE, read_line(&mut stream)).await??;
    match line.split_once(' ') {
        None if line == "api" => pass_on(stream, options.api, pending()).await,
        None if line == "dns" => answer_names(stream, options).await,
        Some(("tcp", place)) => match find_place(place, options) {
            Ok(place) => pass_on(stream, place.into(), pending()).await,
            Err(objection) => write_line(&mut stream, &format!("error {objection}")).await,
        },
        _ => write_line(&mut stream, "error there is no such request").await,
    }
}

/// Where a pod may connect to, or why not.
fn find_place(text: &str, options: &HostDoorOptions) -> Result<SocketAddrV4, String> {
    let place: SocketAddrV4 =
        text.parse().map_err(|_| "pods connect to an IPv4 address and port".to_owned())?;
    if let Some(objection) = find_objection(options.egress, *place.ip(), &options.own) {
        return Err(objection);
    }
    if options.egress == Egress::Public && is_own_address(*place.ip()) {
        return Err(format!("{} is this machine", place.ip()));
    }
    Ok(place)
}

/// Whether an address is one of this machine's. Nothing is sent.
fn is_own_address(address: Ipv4Addr) -> bool {
    // The kernel gives a socket the machine's address on the way to its peer: to itself, that is the peer's.
    let local = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    local.is_ok_and(|local| local.ip() == address)
}

/// Splices a connection with one to an address.
async fn pass_on(
    mut stream: UnixStream,
    place: SocketAddr,
    interruption: impl Future<Output = ()>,
) -> io::Result<()> {
    match timeout(CONNECT_PATIENCE, TcpStream::connect(place))
        .await
        .unwrap_or_else(|late| Err(late.into()))
    {
        Ok(outside) => {
            prepare_stream(&outside);
            write_line(&mut stream, "ok").await?;
            splice_streams(stream, outside, interruption).await;
            Ok(())
        }
        Err(error) => write_line(&mut stream, &format!("error {error}")).await,
    }
}

async fn answer_names(mut stream: UnixStream, options: &HostDoorOptions) -> io::Result<()> {
    if options.egress == Egress::None {
        return write_line(&mut stream, "error names outside of the cluster are not looked up")
            .await;
    }
    write_line(&mut stream, "ok").await?;
    while let Some(query) = timeout(REQUEST_PATIENCE, read_message(&mut stream)).await?? {
        let answer = forward::ask_nameservers(&options.nameservers, &query).await?;
        write_message(&mut stream, &answer).await?;
    }
    Ok(())
}

/// What a door said to a request.
pub(super) enum DoorAnswer {
    /// Bytes are passed on from here.
    Granted(UnixStream),
    /// A sentence why not.
    Denied(String),
}

async fn ask_door(state: &Path, socket: &str, request: &str) -> io::Result<DoorAnswer> {
    let asked = async {
        let mut stream = connect_in_directory(state, socket).await?;
        if !is_same_user(&stream) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        write_line(&mut stream, request).await?;
        let line = read_line(&mut stream).await?;
        Ok(match line.strip_prefix("error ") {
            None if line == "ok" => DoorAnswer::Granted(stream),
            None => DoorAnswer::Denied("the answer cannot be read".to_owned()),
            Some(sentence) => DoorAnswer::Denied(sentence.to_owned()),
        })
    };
    timeout(ANSWER_PATIENCE, asked).await.unwrap_or_else(|late| Err(late.into()))
}

/// From the node's side: `api` or `tcp ADDRESS:PORT`.
pub(super) async fn ask_host(state: &Path, request: &str) -> io::Result<DoorAnswer> {
    ask_door(state, HOST_SOCKET, request).await
}

/// From the node's side: the answer to a query about a name outside; nothing if such names are not looked up.
pub(super) async fn ask_for_name(state: &Path, query: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let DoorAnswer::Granted(mut stream) = ask_host(state, "dns").await? else { return Ok(None) };
    write_message(&mut stream, query).await?;
    read_message(&mut stream).await?.map(Some).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Serves `node.sock`: connections of apron to attached pods.
pub(super) fn open_node_door(
    state: &Path,
    pods: &Arc<PodTable>,
    tasks: &mut JoinSet<()>,
) -> io::Result<()> {
    let listener = listen_in_directory(state, NODE_SOCKET)?;
    let pods = Arc::clone(pods);
    tasks.spawn(serve_door(listener, move |stream| {
        let pods = Arc::clone(&pods);
        async move { serve_host_request(stream, &pods).await }
    }));
    Ok(())
}

async fn serve_host_request(mut stream: UnixStream, pods: &PodTable) -> io::Result<()> {
    let line = timeout(REQUEST_PATIENCE, read_line(&mut stream)).await??;
    let place = line.strip_prefix("tcp ").and_then(|place| place.parse::<SocketAddrV4>().ok());
    let Some(place) = place else {
        return write_line(&mut stream, "error there is no such request").await;
    };
    let Some(mut seat) = pods.take_seat_to(*place.ip()) else {
        let sentence =
            format!("error there is no pod at {}, or too much is connected to it", place.ip());
        return write_line(&mut stream, &sentence).await;
    };
    pass_on(stream, place.into(), seat.wait_detached()).await
}

/// From apron's side: a connection to a port of a pod.
pub async fn connect_pod(state: &Path, target: SocketAddrV4) -> Result<UnixStream, GatewayError> {
    let fail =
        |source| GatewayError::new(format!("connect to {target} in the network of pods"), source);
    match ask_door(state, NODE_SOCKET, &format!("tcp {target}")).await.map_err(fail)? {
        DoorAnswer::Granted(stream) => Ok(stream),
        DoorAnswer::Denied(sentence) => Err(fail(io::Error::other(sentence))),
    }
}
