//! gRPC's health check (`grpc.health.v1.Health/Check`), whose messages are small enough to be read here.

use super::probe::describe_dial;
use bytes::{BufMut as _, Bytes, BytesMut};
use h2::client::{Builder, SendRequest};
use http::{HeaderMap, Method, Request};
use std::net::SocketAddrV4;
use std::pin::pin;
use tokio::net::TcpStream;

/// Bytes of an answer that are read at most.
const ANSWER_MAX: usize = 4096;
/// Bytes of an answer's headers: its message is what events tell.
const HEADERS_MAX: u32 = 16 << 10;
const UNIMPLEMENTED: &str = "12";
const STATUS_NAMES: [&str; 4] = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
const SERVING: u64 = 1;

/// Asks once whether a service is served, and says in the kubelet's words why not.
pub(super) async fn check_health(address: SocketAddrV4, service: &str) -> Result<(), String> {
    let unreachable =
        |why: String| format!("error: failed to connect service at \"{address}\": {why}");
    let stream = TcpStream::connect(address).await;
    let stream = stream.map_err(|error| unreachable(describe_dial(address, &error)))?;
    let connected = Builder::new().max_header_list_size(HEADERS_MAX).handshake(stream).await;
    let (sender, connection) = connected.map_err(|error| unreachable(error.to_string()))?;
    let mut asked = pin!(ask_health(sender, address, service));
    let checked = tokio::select! {
        checked = &mut asked => checked,
        // Drives the connection. A server may close it when it has answered.
        ended = connection => match ended {
            Ok(()) => asked.await,
            Err(error) => Err(error),
        },
    };
    checked.unwrap_or_else(|error| Err(format!("error: health rpc probe failed: {error}")))
}

async fn ask_health(
    sender: SendRequest<Bytes>,
    address: SocketAddrV4,
    service: &str,
) -> Result<Result<(), String>, h2::Error> {
    let mut sender = sender.ready().await?;
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("http://{address}/grpc.health.v1.Health/Check"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("user-agent", "kube-probe/1.36")
        .body(());
    let Ok(request) = request else {
        return Ok(Err("error: the request cannot be written".to_owned()));
    };
    let (response, mut body) = sender.send_request(request, false)?;
    body.send_data(write_check(service), true)?;
    let (head, mut body) = response.await?.into_parts();
    let mut answer = BytesMut::new();
    while let Some(data) = body.data().await {
        let data = data?;
        let _ = body.flow_control().release_capacity(data.len());
        if answer.len().saturating_add(data.len()) > ANSWER_MAX {
            return Ok(Err(format!(
                "error: health rpc probe failed: more than {ANSWER_MAX} bytes are answered"
            )));
        }
        answer.extend_from_slice(&data);
    }
    let trailers = body.trailers().await?;
    if !head.status.is_success() {
        return Ok(Err(format!(
            "error: health rpc probe failed: unexpected HTTP status code {}",
            head.status.as_u16()
        )));
    }
    Ok(judge_answer(&answer, trailers.as_ref().unwrap_or(&head.headers)))
}

fn judge_answer(answer: &[u8], trailers: &HeaderMap) -> Result<(), String> {
    let said =
        |name: &str| trailers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match said("grpc-status") {
        "0" => {}
        UNIMPLEMENTED => {
            return Err(format!(
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {}",
                said("grpc-message")
            ));
        }
        code => {
            return Err(format!(
                "error: health rpc probe failed: rpc error: code = {code} desc = {}",
                said("grpc-message")
            ));
        }
    }
    let status =
        read_status(answer).ok_or("error: health rpc probe failed: the answer cannot be read")?;
    if status == SERVING {
        return Ok(());
    }
    let place = usize::try_from(status).unwrap_or(usize::MAX);
    let name =
        STATUS_NAMES.get(place).map_or_else(|| status.to_string(), |name| (*name).to_owned());
    Err(format!("service unhealthy (responded with {name:?})"))
}

/// `HealthCheckRequest { service = 1 }` in a frame of gRPC.
fn write_check(service: &str) -> Bytes {
    let mut message = BytesMut::new();
    if !service.is_empty() {
        message.put_u8(0x0a);
        let mut length = service.len();
        while length >= 0x80 {
            message.put_u8(u8::try_from(length & 0x7f).unwrap_or_default() | 0x80);
            length >>= 7;
        }
        message.put_u8(u8::try_from(length).unwrap_or_default());
        message.put_slice(service.as_bytes());
    }
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    frame.extend_from_slice(&message);
    frame.freeze()
}

/// `HealthCheckResponse { status = 1 }` in a frame of gRPC; a field that is not there is 0.
fn read_status(frame: &[u8]) -> Option<u64> {
    let (head, message) = frame.split_at_checked(5)?;
    let length = u32::from_be_bytes(head.get(1..5)?.try_into().ok()?);
    if head.first() != Some(&0) || usize::try_from(length).ok()? != message.len() {
        return None;
    }
    let (mut rest, mut status) = (message, 0);
    while !rest.is_empty() {
        let (key, after) = read_varint(rest)?;
        rest = match key & 7 {
            0 => {
                let (value, after) = read_varint(after)?;
                if key == 0x08 {
                    status = value;
                }
                after
            }
            1 => after.get(8..)?,
            2 => {
                let (length, after) = read_varint(after)?;
                after.get(usize::try_from(length).ok()?..)?
            }
            5 => after.get(4..)?,
            _ => return None,
        };
    }
    Some(status)
}

fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number: u64 = 0;
    for (place, byte) in bytes.iter().enumerate().take(10) {
        let shift = u32::try_from(place).ok()?.checked_mul(7)?;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some((number, bytes.get(place.checked_add(1)?..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{judge_answer, read_status, write_check};
    use http::HeaderMap;
    use proptest::prelude::*;

    #[test]
    fn what_is_sent_is_the_request_in_a_frame() {
        assert_eq!(write_check("")[..], [0, 0, 0, 0, 0]);
        assert_eq!(write_check("ab")[..], [0, 0, 0, 0, 4, 0x0a, 2, b'a', b'b']);
        assert_eq!(write_check(&"x".repeat(300))[..8], [0, 0, 0, 1, 47, 0x0a, 0xac, 2]);
    }

    #[test]
    fn only_a_service_that_serves_is_healthy() {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", "0".parse().unwrap());
        assert_eq!(judge_answer(&[0, 0, 0, 0, 2, 8, 1], &trailers), Ok(()));
        assert_eq!(
            judge_answer(&[0, 0, 0, 0, 4, 0x12, 0, 8, 1], &trailers),
            Ok(()),
            "after an unknown field"
        );
        let refused = judge_answer(&[0, 0, 0, 0, 2, 8, 2], &trailers).unwrap_err();
        assert_eq!(refused, "service unhealthy (responded with \"NOT_SERVING\")");
        let refused = judge_answer(&[0, 0, 0, 0, 0], &trailers).unwrap_err();
        assert_eq!(refused, "service unhealthy (responded with \"UNKNOWN\")");
        trailers.insert("grpc-status", "12".parse().unwrap());
        trailers.insert("grpc-message", "unknown service".parse().unwrap());
        assert!(
            judge_answer(&[], &trailers)
                .unwrap_err()
                .ends_with("(grpc.health.v1.Health): unknown service")
        );
    }

    proptest! {
        #[test]
        fn no_answer_makes_reading_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = read_status(&bytes);
        }
    }
}
