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
    /// Whether it is a question for a token server: its body may be a credential, and what comes
    /// back is not the registry's.
    pub(crate) for_token: bool,
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
            for_token: false,
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

/// `scheme://registry/v2/`. A URL parser may change a host, names with `xn--` for one; then it is
/// not the registry that was judged.
pub(crate) fn base(scheme: &str, registry: &str) -> Result<Url, HttpError> {
    let text = format!("{scheme}://{registry}/v2/");
    let url = Url::parse(&text).map_err(|_| HttpError::Url(text.clone()))?;
    let end = registry.rfind(']').unwrap_or_default();
    let host = registry[end..].rfind(':').map_or(registry, |colon| &registry[..end + colon]);
    if url.host_str() == Some(host) && url.path() == "/v2/" {
        Ok(url)
    } else {
        Err(HttpError::Url(text))
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

#[cfg(test)]
mod tests {
    use super::*;
    use oci::{Repository, Rules};
    use std::collections::HashMap;

    #[test]
    fn h6_hosts_that_a_url_parser_changes_are_refused() {
        for registry in ["127.1", "0x7f000001", "r.org/../x", "R.org", "r.org\\x", "a@r.org"] {
            assert!(base("https", registry).is_err(), "{registry}");
        }
        for registry in ["[::1]:5000", "[fd00::1]", "r.org:5000", "r.org", "127.0.0.1:80"] {
            assert!(base("https", registry).is_ok(), "{registry}");
        }
    }

    /// Every way to put these pieces together.
    fn written() -> Vec<String> {
        let hosts = [
            "r.org",
            "R.oRg",
            "xn--r.org",
            "xn--R-",
            "localhost",
            "x.localhost",
            "10.0.0.1",
            "10.1",
            "0xa.0.0.1",
            "012.0.0.1",
            "167772161",
            "[::1]",
            "[0:0::1]",
            "[::ffff:10.0.0.1]",
            "[::FFFF:a00:1]",
            "r.org%2e",
            "a@r.org",
            "registry",
        ];
        let ports = ["", ":", ":80", ":443", ":0080", ":00443", ":5000", ":05000", ":0"];
        let paths = ["a/b", "a//b", "./a/b", "x/../a/b", "a/./b", "a/b/", "a/b/.", "%61/b", "A/b"];
        let mut all = Vec::new();
        for (host, dot) in hosts.iter().flat_map(|host| ["", ".", ".."].map(|dot| (host, dot))) {
            for (port, path) in ports.iter().flat_map(|port| paths.map(|path| (port, path))) {
                all.push(format!("{host}{dot}{port}/{path}"));
            }
        }
        all
    }

    #[test]
    fn h6_what_a_url_parser_sends_to_one_place_has_one_name_or_is_refused() {
        let mut places: HashMap<String, (String, Repository)> = HashMap::new();
        let mut read = 0;
        for text in written() {
            let Ok(repository) = Repository::parse(&text, &Rules::weak()) else { continue };
            let scheme = repository.scheme();
            if base(scheme, repository.registry()).is_err() || text.starts_with("registry/") {
                continue;
            }
            read += 1;
            let place = Url::parse(&format!("{scheme}://{text}")).unwrap().to_string();
            let (other, known) =
                places.entry(place).or_insert_with(|| (text.clone(), repository.clone()));
            assert_eq!(*known, repository, "{text} and {other}");
        }
        assert!(read > 100, "{read} names were read");
    }
}
