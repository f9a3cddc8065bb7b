//! Connections: how they are listened for and spliced, and what is said on them before bytes are passed on.

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// Connections that the kernel holds until they are accepted.
const BACKLOG: i32 = 4096;
/// The longest line on the sockets through the wall.
const LINE_MAX: usize = 512;
/// When a connection on which nothing happens is tried, how often, and how many tries are in vain at most.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(60), Duration::from_secs(15), 4);
/// How long nothing is accepted after an error, which is that of a machine short of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Listens on an address. A transparent listener on the unspecified address takes what is sent to any address.
///
/// All of them share ports, because one for all addresses and one for a single address could not stand beside each
/// other otherwise; the kernel chooses the more special one.
pub(super) fn listen_tcp(place: SocketAddrV4, is_transparent: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    if is_transparent {
        socket.set_ip_transparent_v4(true)?;
    }
    socket.bind(&SocketAddr::V4(place).into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket.into())
}

/// The next connection of a pod and where it comes from; nothing if there was an error, after a pause.
pub(super) async fn accept_pod(listener: &TcpListener) -> Option<(TcpStream, SocketAddrV4)> {
    match listener.accept().await {
        Ok((stream, SocketAddr::V4(from))) => {
            prepare_stream(&stream);
            Some((stream, from))
        }
        Ok((_, SocketAddr::V6(_))) => None,
        Err(_) => {
            sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// Small writes go out at once, and a peer that vanished is noticed.
pub(super) fn prepare_stream(stream: &TcpStream) {
    let (time, interval, retries) = KEEPALIVE;
    let keepalive =
        TcpKeepalive::new().with_time(time).with_interval(interval).with_retries(retries);
    // Neither is needed for bytes to be right.
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
}

/// Ends a connection with a reset instead of an orderly end.
pub(super) fn reset_stream(stream: TcpStream) {
    let _ = stream.set_zero_linger();
    drop(stream);
}

/// Ends of a splice: a TCP connection can be reset, one over a Unix socket only closed.
pub(super) trait SpliceEnd: AsyncRead + AsyncWrite + Unpin {
    /// Makes dropping it a reset.
    fn prepare_reset(&self) {}
}

impl SpliceEnd for TcpStream {
    fn prepare_reset(&self) {
        let _ = self.set_zero_linger();
    }
}

impl SpliceEnd for tokio::net::UnixStream {}

/// Passes bytes on in both directions. The end of one direction is passed on, too, while the other goes on. An error
/// on one side resets both, and so does an interruption.
pub(super) async fn splice_streams<A: SpliceEnd, B: SpliceEnd>(
    mut one: A,
    mut other: B,
    interruption: impl Future<Output = ()>,
) {
    let is_complete = tokio::select! {
        copied = copy_bidirectional(&mut one, &mut other) => copied.is_ok(),
        () = interruption => false,
    };
    if !is_complete {
        one.prepare_reset();
        other.prepare_reset();
    }
}

/// Whether an address is in a network of so many bits.
pub(super) fn is_in_network(address: Ipv4Addr, network: Ipv4Addr, bits: u8) -> bool {
    let mask = u32::MAX.checked_shl(32_u32.saturating_sub(u32::from(bits))).unwrap_or(0);
    address.to_bits() & mask == network.to_bits() & mask
}

/// Reads a line, and not a byte more.
pub(super) async fn read_line<R: AsyncRead + Unpin>(stream: &mut R) -> io::Result<String> {
    let mut line = Vec::new();
    loop {
        let byte = stream.read_u8().await?;
        if byte == b'\n' {
            return String::from_utf8(line).map_err(|_| io::ErrorKind::InvalidData.into());
        }
        if line.len() >= LINE_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        line.push(byte);
    }
}

/// Writes a line; one that is too long is cut, and one that has several is one.
pub(super) async fn write_line<W: AsyncWrite + Unpin>(
    stream: &mut W,
    text: &str,
) -> io::Result<()> {
    let mut line = text.replace(['\n', '\r'], " ");
    let end = (0..=LINE_MAX.min(line.len())).rev().find(|end| line.is_char_boundary(*end));
    line.truncate(end.unwrap_or(0));
    line.push('\n');
    stream.write_all(line.as_bytes()).await
}

/// Reads a DNS message after its length; nothing at the end of the stream.
pub(super) async fn read_message<R: AsyncRead + Unpin>(
    stream: &mut R,
) -> io::Result<Option<Vec<u8>>> {
    let length = match stream.read_u16().await {
        Ok(length) => length,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut message = vec![0; usize::from(length)];
    stream.read_exact(&mut message).await?;
    Ok(Some(message))
}

/// Writes a DNS message after its length.
pub(super) async fn write_message<W: AsyncWrite + Unpin>(
    stream: &mut W,
    message: &[u8],
) -> io::Result<()> {
    let length = u16::try_from(message.len()).map_err(|_| io::ErrorKind::InvalidData)?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend_from_slice(message);
    stream.write_all(&bytes).await
}
