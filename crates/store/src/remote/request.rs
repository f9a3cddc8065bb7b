//! A request as a value that can be sent again.

use super::{Body, BoxError, HttpError};
use crate::Source;
use crate::error::Cause;
use crate::verify::verify;
use bytes::Bytes;
use futures::StreamExt;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use oci::Descriptor;
use reqwest::Url;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;

/// What to send, to whom, and what for.
pub(crate) struct Call<'call> {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Payload<'call>,
    /// What a token must be good for.
    pub(crate) scopes: Vec<String>,
    /// Whether sending it again by itself makes sense; a part of an upload session does not.
    pub(crate) retry: bool,
}

/// A body that can be made again.
pub(crate) enum Payload<'call> {
    Empty,
    Bytes(Bytes),
    Stream(&'call dyn Source, &'call Descriptor),
}

impl Call<'_> {
    pub(crate) fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            payload: Payload::Empty,
            scopes: Vec::new(),
            retry: true,
        }
    }

    /// Sets a header.
    pub(crate) fn header(&mut self, name: HeaderName, value: &str) -> Result<(), HttpError> {
        let value = HeaderValue::from_str(value).map_err(|_| HttpError::Url(value.to_owned()))?;
        self.headers.insert(name, value);
        Ok(())
    }

    /// The request itself, with a body from its first byte.
    pub(crate) async fn request(
        &self,
        url: &Url,
        activity: &Activity,
    ) -> Result<Request<Body>, Cause> {
        let (body, length) = match &self.payload {
            Payload::Empty => (Empty::new().map_err(|it| match it {}).boxed_unsync(), 0),
            Payload::Bytes(bytes) => {
                let body = Full::new(bytes.clone()).map_err(|it| match it {});
                (body.boxed_unsync(), bytes.len() as u64)
            }
            Payload::Stream(source, descriptor) => {
                (stream_body(*source, descriptor, activity).await?, descriptor.size)
            }
        };
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = url.as_str().parse().map_err(|_| HttpError::Url(url.to_string()))?;
        *request.headers_mut() = self.headers.clone();
        if !matches!(self.method, Method::GET | Method::HEAD) {
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        Ok(request)
    }
}

/// The source's bytes, verified on the way out so that we never upload what we did not promise.
async fn stream_body(
    source: &dyn Source,
    descriptor: &Descriptor,
    activity: &Activity,
) -> Result<Body, Cause> {
    let blob = source.open().await.map_err(crate::Error::into_cause)?;
    let activity = activity.clone();
    let frames = verify(blob.stream, descriptor).stream.map(move |chunk| {
        activity.touch();
        chunk.map(Frame::data).map_err(|error| activity.fail(error))
    });
    Ok(BodyExt::boxed_unsync(StreamBody::new(frames)))
}

/// When a request last moved, and what its own body died of.
#[derive(Clone)]
pub(crate) struct Activity {
    state: Arc<Mutex<(Instant, Option<io::Error>)>>,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self { state: Arc::new(Mutex::new((Instant::now(), None))) }
    }

    fn touch(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0 = Instant::now();
    }

    /// Keeps the real error; the transport gets a stand-in, because it would only say that the
    /// body failed.
    fn fail(&self, error: io::Error) -> BoxError {
        let kind = error.kind();
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = Some(error);
        io::Error::from(kind).into()
    }

    pub(crate) fn last(&self) -> Instant {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn take_error(&self) -> Option<io::Error> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1.take()
    }
}

/// An address as it may be shown: queries can carry secrets.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.to_string()
}

/// Whether two addresses have the same scheme, host and port.
pub(crate) fn same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

/// Whether an address is on this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost"
        || bare.ends_with(".localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
