//! Registries that are a function: requests in, answers out, no socket.

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use store::auth::Keychain;
use store::remote::{Body, BoxError, Client, Settings, transport};

/// What was asked, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.lines().len()
    }

    fn note(&self, request: &Request<Body>) {
        let host = request.uri().host().unwrap_or_default();
        let path = request.uri().path_and_query().unwrap();
        let line = format!("{} {host}{path}", request.method());
        self.0.lock().unwrap().push(line);
    }
}

/// A client whose registries are all this function; it is also told how many requests came
/// before.
pub(crate) fn stub<F>(keychain: Keychain, handler: F) -> (Client, Log)
where
    F: Fn(usize, &Request<Body>) -> Response<Body> + Send + Sync + 'static,
{
    let handler = Arc::new(handler);
    let log = Log::default();
    let notes = log.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let before = notes.len();
        notes.note(&request);
        let handler = Arc::clone(&handler);
        async move {
            let (parts, body) = request.into_parts();
            // Like a real server: the body is taken before the answer is given.
            let read = body.collect().await;
            let response = match read {
                Ok(read) => {
                    let bytes = read.to_bytes();
                    handler(before, &Request::from_parts(parts, full(bytes)))
                }
                Err(error) => return Err(error),
            };
            Ok::<_, BoxError>(response)
        }
    });
    (Client::new(transport(service), keychain, Settings::default()), log)
}

pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|it: Infallible| match it {}).boxed_unsync()
}

/// An answer with headers.
pub(crate) fn answer(
    status: u16,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Response<Body> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(full(body)).unwrap()
}

/// An answer whose body comes from a stream.
pub(crate) fn streamed<S>(status: u16, headers: &[(&str, &str)], chunks: S) -> Response<Body>
where
    S: Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
{
    let body = BodyExt::boxed_unsync(StreamBody::new(chunks.map(|chunk| chunk.map(Frame::data))));
    answer(status, headers, "").map(|_| body)
}

/// A connection that breaks.
pub(crate) fn broken() -> BoxError {
    std::io::Error::from(std::io::ErrorKind::ConnectionReset).into()
}

/// A header of a request.
pub(crate) fn header<'request>(request: &'request Request<Body>, name: &str) -> &'request str {
    request.headers().get(name).map_or("", |value| value.to_str().unwrap())
}
