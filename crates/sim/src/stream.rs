//! What a watch tells: piece by piece, each in its turn; and bent by a fault: late, never, or cut
//! off.

use crate::fault::Fault;
use crate::gate::Gate;
use axum::body::Body;
use bytes::Bytes;
use futures::StreamExt as _;
use std::time::Duration;

/// How late news is.
const LATE: Duration = Duration::from_secs(30);

/// What a watch tells through a gate. A fault happens to the first news after the gate was armed.
pub(crate) fn relay(body: Body, gate: Gate, number: usize, fault: Option<Fault>) -> Body {
    let state = (body.into_data_stream(), gate, fault);
    let told = futures::stream::unfold(state, move |(mut stream, gate, mut fault)| async move {
        let mut chunk: Result<Bytes, String> =
            stream.next().await?.map_err(|error| error.to_string());
        if gate.turn(format!("watch {number:05}"), Vec::new()).await.is_none() {
            return futures::future::pending().await;
        }
        if let Some(why) = gate.unreachable() {
            chunk = Err(why.to_owned());
        }
        if gate.is_armed() {
            match fault.take() {
                Some(Fault::Late) => tokio::time::sleep(LATE).await,
                Some(Fault::Cut) => chunk = Err("the connection was lost".to_owned()),
                Some(Fault::Deaf) => return futures::future::pending().await,
                _ => {}
            }
        }
        Some((chunk, (stream, gate, fault)))
    });
    Body::from_stream(told)
}
