//! Answers that take their time: the whole catalog as a file, and news as they come.

use super::Server;
use crate::index::Rights;
use axum::body::{Body, Bytes};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, broadcast, mpsc};

/// Parts of a file that wait to be sent.
const PARTS_WAITING: usize = 4;
/// The size of a part.
const PART_SIZE: usize = 64 << 10;
/// A comment is sent when there was no news for so long, so that connections stay open and readers
/// that are gone are noticed.
const BREATH: Duration = Duration::from_secs(15);

type BodyPart = Result<Bytes, io::Error>;

/// Sends the catalog as a compressed file, while it is read.
pub(super) fn send_export(
    server: Arc<Server>,
    rights: Rights,
    permit: OwnedSemaphorePermit,
) -> Response {
    let (sender, receiver) = mpsc::channel::<BodyPart>(PARTS_WAITING);
    tokio::task::spawn_blocking(move || {
        let sink = Sink { sender: sender.clone(), buffer: Vec::with_capacity(PART_SIZE) };
        let mut encoder = GzEncoder::new(sink, Compression::default());
        let written = server.index.export(&rights, &mut encoder).map_err(io::Error::other);
        let ended = written.and_then(|()| encoder.finish()?.send());
        if let Err(error) = ended {
            // A file that ends too early is no file: the connection breaks off.
            let _ = sender.blocking_send(Err(error));
        }
        drop(permit);
    });
    let parts = stream::unfold(receiver, |mut receiver| async move {
        let part = receiver.recv().await?;
        Some((part, receiver))
    });
    respond_with("application/gzip", Body::from_stream(parts))
}

/// Hands parts over to the connection, and waits while it is slow.
struct Sink {
    sender: mpsc::Sender<BodyPart>,
    buffer: Vec<u8>,
}

impl Sink {
    fn send(&mut self) -> io::Result<()> {
        let part = Bytes::from(std::mem::take(&mut self.buffer));
        if part.is_empty() {
            return Ok(());
        }
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.sender.blocking_send(Ok(part)).map_err(gone)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PART_SIZE {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends the names of repositories whose packages changed, as long as the asker listens.
pub(super) fn send_events(
    server: &Server,
    rights: Rights,
    permit: OwnedSemaphorePermit,
) -> Response {
    let listening = Listening { news: server.index.observe(), rights, _permit: permit };
    let events = stream::unfold(listening, |mut listening| async move {
        let event = listening.next().await?;
        Some((Ok::<Bytes, io::Error>(Bytes::from(event)), listening))
    });
    let hello = stream::once(async { Ok(Bytes::from_static(b": listening\n\n")) });
    let body = Body::from_stream(futures::StreamExt::chain(hello, events));
    respond_with("text/event-stream", body)
}

struct Listening {
    news: broadcast::Receiver<String>,
    rights: Rights,
    _permit: OwnedSemaphorePermit,
}

impl Listening {
    /// The next event that the asker may know of.
    async fn next(&mut self) -> Option<String> {
        loop {
            match tokio::time::timeout(BREATH, self.news.recv()).await {
                Err(_) => return Some(": nothing new\n\n".to_owned()),
                Ok(Err(RecvError::Closed)) => return None,
                // A reader that was too slow looks at everything again.
                Ok(Err(RecvError::Lagged(_))) => {
                    return Some("event: missed\ndata: {}\n\n".to_owned());
                }
                Ok(Ok(repository)) if self.rights.allow(&repository) => {
                    let data = serde_json::json!({ "repository": repository });
                    return Some(format!("event: changed\ndata: {data}\n\n"));
                }
                Ok(Ok(_)) => {}
            }
        }
    }
}

fn respond_with(media: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response
}
