//! Calls to webhooks, over HTTPS.

use apiserver::outbound::{Call, CallError, Outbound, REPLY_MAX, Reply};
use bytes::{Bytes, BytesMut};
use edge::trust::trust_bundle;
use futures::future::BoxFuture;
use reqwest::redirect::Policy;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// Clients that are kept; more webhooks than that are called without a kept connection.
const CLIENTS_MAX: usize = 256;

/// What makes one client unlike another: whom it trusts, and where its services are.
type Key = (Vec<u8>, Option<(String, SocketAddr)>);

/// Finds the address at which a Service can be reached from here: its namespace, its name and one of
/// its ports in, nothing out if there is none.
pub type FindService = Arc<dyn Fn(&str, &str, u16) -> Option<SocketAddr> + Send + Sync>;

/// Calls webhooks; keeps its connections.
#[derive(Default)]
pub struct Caller {
    clients: Mutex<HashMap<Key, reqwest::Client>>,
    find: Option<FindService>,
}

impl Caller {
    /// A caller that reaches webhooks behind Services, too.
    pub fn finding(find: FindService) -> Self {
        Self { find: Some(find), ..Self::default() }
    }

    fn client(&self, call: &Call) -> Result<reqwest::Client, CallError> {
        let place = call.address.map(|address| (host(&call.url).to_owned(), address));
        let key = (call.authorities.clone(), place);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let client = build(&key).map_err(|error| CallError::Other(told(error.as_ref())))?;
        if clients.len() < CLIENTS_MAX {
            clients.insert(key, client.clone());
        }
        Ok(client)
    }
}

impl Outbound for Caller {
    fn post(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        Box::pin(async move {
            let client = self.client(&call)?;
            let request = client
                .post(place(&call))
                .header("Content-Type", "application/json")
                .header("Accept", "application/json, */*")
                .timeout(call.timeout)
                .body(call.body.clone());
            let response = request.send().await.map_err(|error| reason(&call, &error))?;
            let code = response.status().as_u16();
            let media = response.headers().get("Content-Type");
            let media = media.and_then(|media| media.to_str().ok()).unwrap_or_default().to_owned();
            let body = read(&call, response).await?;
            Ok(Reply { code, media, body })
        })
    }

    fn service(&self, namespace: &str, name: &str, port: u16) -> Option<SocketAddr> {
        self.find.as_ref().and_then(|find| find(namespace, name, port))
    }
}

/// Where a call really goes: a Service's own port is not the one at which it is reached from here. Names
/// and certificates stay those of the Service.
fn place(call: &Call) -> String {
    let Some(address) = call.address else { return call.url.clone() };
    let authority = authority(&call.url);
    call.url.replacen(authority, &format!("{}:{}", host(&call.url), address.port()), 1)
}

/// A body, as long as it is not too long: what does not fit is not read.
async fn read(call: &Call, mut response: reqwest::Response) -> Result<Bytes, CallError> {
    let is_too_long = |length: usize| length > REPLY_MAX;
    let promised = response.content_length().map(|it| usize::try_from(it).unwrap_or(usize::MAX));
    if promised.is_some_and(is_too_long) {
        return Err(CallError::TooLong);
    }
    let mut body = BytesMut::new();
    while let Some(piece) = response.chunk().await.map_err(|error| reason(call, &error))? {
        if is_too_long(body.len() + piece.len()) {
            return Err(CallError::TooLong);
        }
        body.extend_from_slice(&piece);
    }
    Ok(body.freeze())
}

fn build((authorities, place): &Key) -> Result<reqwest::Client, Box<dyn std::error::Error>> {
    let mut builder = reqwest::Client::builder()
        .no_proxy()
        .https_only(true)
        .redirect(Policy::none())
        .connect_timeout(CONNECT);
    if !authorities.is_empty() {
        builder = builder.tls_backend_preconfigured(trust_bundle(authorities)?);
    }
    if let Some((host, address)) = place {
        builder = builder.resolve(host, *address);
    }
    Ok(builder.build()?)
}

fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?']).next().unwrap_or_default()
}

fn host(url: &str) -> &str {
    let authority = authority(url);
    authority.rsplit_once(':').map_or(authority, |(host, _)| host)
}

/// Why a call failed.
fn reason(call: &Call, error: &reqwest::Error) -> CallError {
    if error.is_timeout() {
        return CallError::TimedOut;
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(one) = cause {
        // What an error of the system carries is not among its causes.
        let mut inner: Option<&(dyn std::error::Error + 'static)> = Some(one);
        while let Some(one) = inner {
            let io = one.downcast_ref::<std::io::Error>();
            if io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused) {
                return CallError::Refused(authority(&call.url).to_owned());
            }
            if let Some(rustls::Error::InvalidCertificate(why)) = one.downcast_ref() {
                return untrusted(why);
            }
            inner = io.and_then(std::io::Error::get_ref).map(|inner| inner as _);
        }
        cause = one.source();
    }
    CallError::Other(told(error))
}

fn untrusted(why: &rustls::CertificateError) -> CallError {
    CallError::Untrusted(match why {
        rustls::CertificateError::UnknownIssuer => {
            "x509: certificate signed by unknown authority".to_owned()
        }
        other => format!("x509: {other}"),
    })
}

/// An error with all its causes.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(one) = cause {
        text = format!("{text}: {one}");
        cause = one.source();
    }
    text
}
