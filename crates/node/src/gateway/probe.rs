//! Probes over the network, with what the kubelet says of their failures. Redirects count as success and are not
//! followed.

use super::health::check_health;
use crate::protocol::{ProbeResult, ProbeTarget};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Bytes of an answer that are read at most, as the kubelet does.
const ANSWER_MAX: usize = 10 << 10;
const LATE: &str = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";

/// Tries a probe once.
pub(super) async fn try_probe(target: &ProbeTarget, patience: Duration) -> ProbeResult {
    let tried = match target {
        ProbeTarget::Tcp { address } => match timeout(patience, TcpStream::connect(*address)).await
        {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(describe_dial(*address, &error)),
            Err(_) => Err(format!("dial tcp {address}: i/o timeout")),
        },
        ProbeTarget::Http { address, tls, path, headers } => {
            let probe =
                HttpProbe { address: *address, is_tls: *tls, path: escape_path(path), headers };
            timeout(patience, probe.get_status()).await.unwrap_or_else(|_| Err(probe.fail(LATE)))
        }
        ProbeTarget::Grpc { address, service } => {
            let after = format!("{}s", patience.as_secs_f64());
            match timeout(patience, check_health(*address, service)).await {
                Ok(checked) => checked,
                Err(_) => Err(format!("timeout: health rpc did not complete within {after}")),
            }
        }
    };
    ProbeResult { failure: tried.err() }
}

/// What Go says of a connection that could not be made.
pub(super) fn describe_dial(address: SocketAddrV4, error: &io::Error) -> String {
    let why = match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        io::ErrorKind::ConnectionReset => "connect: connection reset by peer".to_owned(),
        io::ErrorKind::TimedOut => "connect: connection timed out".to_owned(),
        _ => format!("connect: {error}"),
    };
    format!("dial tcp {address}: {why}")
}

struct HttpProbe<'a> {
    address: SocketAddrV4,
    is_tls: bool,
    path: String,
    headers: &'a [(String, String)],
}

impl HttpProbe<'_> {
    fn fail(&self, why: &str) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("Get \"{scheme}://{}{}\": {why}", self.address, self.path)
    }

    async fn get_status(&self) -> Result<(), String> {
        let request = self.write_request()?;
        let connected = TcpStream::connect(self.address).await;
        let stream = connected.map_err(|error| self.fail(&describe_dial(self.address, &error)))?;
        let answered = if self.is_tls {
            let connector = TlsConnector::from(
                trust_anything().map_err(|error| self.fail(&error.to_string()))?,
            );
            let name = ServerName::from(IpAddr::V4(*self.address.ip()));
            let stream = connector.connect(name, stream).await;
            let stream = stream.map_err(|error| self.fail(&describe_handshake(&error)))?;
            ask_status(stream, &request).await
        } else {
            ask_status(stream, &request).await
        };
        match answered.map_err(|why| self.fail(&why))? {
            200..=399 => Ok(()),
            status => Err(format!("HTTP probe failed with statuscode: {status}")),
        }
    }

    fn write_request(&self) -> Result<String, String> {
        let mut request = format!("GET {} HTTP/1.1\r\n", self.path);
        let defaults = [
            ("Host", self.address.to_string()),
            ("User-Agent", "kube-probe/1.36".to_owned()),
            ("Accept", "*/*".to_owned()),
            ("Connection", "close".to_owned()),
        ];
        for (name, value) in &defaults {
            let is_said = self.headers.iter().any(|(said, _)| said.eq_ignore_ascii_case(name));
            if !is_said || *name == "Connection" {
                let _ = write!(request, "{name}: {value}\r\n");
            }
        }
        for (name, value) in self.headers {
            if name.eq_ignore_ascii_case("connection") {
                continue;
            }
            let is_token =
                |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            if name.is_empty() || !name.bytes().all(is_token) {
                return Err(self.fail(&format!("net/http: invalid header field name {name:?}")));
            }
            if value.bytes().any(|byte| byte < b' ' && byte != b'\t' || byte == 0x7f) {
                return Err(
                    self.fail(&format!("net/http: invalid header field value for {name:?}"))
                );
            }
            let _ = write!(request, "{name}: {value}\r\n");
        }
        request.push_str("\r\n");
        Ok(request)
    }
}

/// A path as it may stand in a request.
fn escape_path(path: &str) -> String {
    let mut escaped = if path.starts_with('/') { String::new() } else { "/".to_owned() };
    for byte in path.bytes() {
        if byte.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// Sends a request and reads the status of its answer, or why there is none.
async fn ask_status<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    request: &str,
) -> Result<u16, String> {
    stream.write_all(request.as_bytes()).await.map_err(|error| describe_reading(&error))?;
    let mut answer = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        if let Some(status) = find_status(&answer)? {
            return Ok(status);
        }
        if answer.len() >= ANSWER_MAX {
            return Err(
                "net/http: server response headers exceeded 10240 bytes; aborted".to_owned()
            );
        }
        let length = stream.read(&mut buffer).await.map_err(|error| describe_reading(&error))?;
        match buffer.get(..length) {
            Some(read) if !read.is_empty() => answer.extend_from_slice(read),
            _ if answer.is_empty() => return Err("EOF".to_owned()),
            _ => return Err("unexpected EOF".to_owned()),
        }
    }
}

/// The status of an answer whose first lines are there; informational ones before it are passed over.
fn find_status(answer: &[u8]) -> Result<Option<u16>, String> {
    let mut rest = answer;
    loop {
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let line = String::from_utf8_lossy(rest.get(..end).unwrap_or_default());
        let line = line.trim_end_matches('\r');
        let malformed = || format!("malformed HTTP response {line:?}");
        let (version, words) = line.split_once(' ').ok_or_else(malformed)?;
        let status = words.split(' ').next().unwrap_or_default();
        let is_number = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
        if !version.starts_with("HTTP/1.") || !is_number {
            return Err(malformed());
        }
        match status.parse().map_err(|_| malformed())? {
            100..=199 => {
                let Some(block) = rest.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
                    return Ok(None);
                };
                rest = rest.get(block.saturating_add(4)..).unwrap_or_default();
            }
            status => return Ok(Some(status)),
        }
    }
}

fn describe_reading(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionReset => "read: connection reset by peer".to_owned(),
        io::ErrorKind::BrokenPipe => "write: broken pipe".to_owned(),
        io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        _ => error.to_string(),
    }
}

fn describe_handshake(error: &io::Error) -> String {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidMessage(_)) => {
            "http: server gave HTTP response to HTTPS client".to_owned()
        }
        Some(cause) => format!("tls: {cause}"),
        None => describe_reading(error),
    }
}

/// TLS to whom it may concern: a probe asks whether a program answers, not whether it is to be trusted.
fn trust_anything() -> Result<Arc<ClientConfig>, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?.dangerous();
    let verifier = Arc::new(AnyCertificate);
    Ok(Arc::new(builder.with_custom_certificate_verifier(verifier).with_no_client_auth()))
}

#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        default_provider().signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::{HttpProbe, escape_path, find_status};

    #[test]
    fn the_status_is_that_of_the_final_answer() {
        assert_eq!(find_status(b"HTTP/1.1 200 OK\r\n"), Ok(Some(200)));
        assert_eq!(find_status(b"HTTP/1.0 503\n"), Ok(Some(503)));
        assert_eq!(find_status(b"HTTP/1.1 20"), Ok(None));
        assert_eq!(find_status(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 x\r\n"), Ok(Some(404)));
        assert_eq!(find_status(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n"), Ok(None));
        for malformed in
            ["SSH-2.0-x\r\n", "HTTP/1.1 abc\r\n", "HTTP/2 200\r\n", "HTTP/1.1 99999\r\n", "\r\n"]
        {
            assert!(find_status(malformed.as_bytes()).is_err(), "{malformed:?}");
        }
    }

    #[test]
    fn a_probe_cannot_say_more_than_one_request() {
        assert_eq!(escape_path("healthz?a=b%20c"), "/healthz?a=b%20c");
        assert_eq!(escape_path("/a b\r\nX: y"), "/a%20b%0D%0AX:%20y");
        let address = "10.244.0.5:8080".parse().unwrap();
        let headers = vec![("X".to_owned(), "a\r\nY: b".to_owned())];
        let probe = HttpProbe { address, is_tls: false, path: "/".to_owned(), headers: &headers };
        assert!(
            probe
                .write_request()
                .unwrap_err()
                .starts_with("Get \"http://10.244.0.5:8080/\": net/http: invalid")
        );
        let headers = vec![("host".to_owned(), "example.org".to_owned())];
        let request = HttpProbe { headers: &headers, ..probe }.write_request().unwrap();
        assert_eq!(
            request,
            "GET / HTTP/1.1\r\nUser-Agent: kube-probe/1.36\r\nAccept: */*\r\nConnection: close\r\nhost: example.org\r\n\r\n"
        );
    }
}
