//! apron's side of names outside of the cluster: the machine's nameservers are asked.

use super::connection::{read_message, write_message};
use super::dns::message::{DnsQuery, MESSAGE_MAX, parse_query};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

/// Servers that are asked, as in the C library.
const NAMESERVERS_MAX: usize = 3;
/// A server that does not answer within this time is given up.
const SERVER_PATIENCE: Duration = Duration::from_secs(3);

/// The nameservers of a `resolv.conf`; this machine, if it names none.
pub fn parse_nameservers(text: &str) -> Vec<SocketAddr> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then_some(words.next()?.parse::<IpAddr>().ok()?)
    });
    let servers: Vec<SocketAddr> =
        lines.take(NAMESERVERS_MAX).map(|server| (server, 53).into()).collect();
    if servers.is_empty() { vec![(Ipv4Addr::LOCALHOST, 53).into()] } else { servers }
}

/// The first answer of a server.
pub(super) async fn ask_nameservers(servers: &[SocketAddr], message: &[u8]) -> io::Result<Vec<u8>> {
    let query = parse_query(message).map_err(|_| io::ErrorKind::InvalidData)?;
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for server in servers.iter().take(NAMESERVERS_MAX) {
        match ask_nameserver(*server, message, &query).await {
            Ok(answer) => return Ok(answer),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn ask_nameserver(
    server: SocketAddr,
    message: &[u8],
    query: &DnsQuery,
) -> io::Result<Vec<u8>> {
    let answer = timeout(SERVER_PATIENCE, ask_over_udp(server, message, query)).await??;
    let is_cut = answer.get(2).is_some_and(|flags| flags & 0x02 != 0);
    if is_cut {
        timeout(SERVER_PATIENCE, ask_over_tcp(server, message, query)).await?
    } else {
        Ok(answer)
    }
}

async fn ask_over_udp(server: SocketAddr, message: &[u8], query: &DnsQuery) -> io::Result<Vec<u8>> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(message).await?;
    let mut answer = vec![0; MESSAGE_MAX];
    loop {
        let length = socket.recv(&mut answer).await?;
        // An answer to another question is one that was made up.
        if query.is_answered_by(answer.get(..length).unwrap_or_default()) {
            answer.truncate(length);
            return Ok(answer);
        }
    }
}

async fn ask_over_tcp(server: SocketAddr, message: &[u8], query: &DnsQuery) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    write_message(&mut stream, message).await?;
    let answer = read_message(&mut stream).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    if query.is_answered_by(&answer) { Ok(answer) } else { Err(io::ErrorKind::InvalidData.into()) }
}

#[cfg(test)]
mod tests {
    use super::parse_nameservers;

    #[test]
    fn nameservers_are_read_as_the_c_library_does() {
        let text = "# nameserver 9.9.9.9\nsearch example.org\nnameserver 10.0.0.2 \n  nameserver ::1\nnameserver x\nnameserver 1.1.1.1\nnameserver 8.8.8.8\n";
        let servers: Vec<String> =
            parse_nameservers(text).iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["10.0.0.2:53", "[::1]:53", "1.1.1.1:53"]);
        assert_eq!(parse_nameservers("").len(), 1, "this machine");
    }
}
