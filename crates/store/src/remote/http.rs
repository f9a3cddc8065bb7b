//! The way to real registries: a reqwest client behind the tower seam.
//!
//! Everything is told, nothing is looked up: proxies, certificates and names come in as values.
//! Redirects and retries are ours, not reqwest's.

use super::{BoxError, HttpError, Proxies, Transport, transport};
use crate::{Cause, Error};
use futures::future::BoxFuture;
use http_body_util::BodyExt;
use reqwest::{Certificate, Identity, Proxy, redirect};
use std::task::{Context, Poll};
use std::time::Duration;

/// How to reach registries.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Certificates (PEM) trusted beside the system's.
    pub ca_bundle: Option<Vec<u8>>,
    /// Our own certificate and key (PEM), for registries that ask for one.
    pub identity: Option<Vec<u8>>,
    /// Accept any certificate.
    pub insecure: bool,
    /// Proxies on the way.
    pub proxies: Proxies,
    /// How long a connection may take.
    pub connect_timeout: Duration,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            ca_bundle: None,
            identity: None,
            insecure: false,
            proxies: Proxies::default(),
            connect_timeout: Duration::from_secs(10),
        }
    }
}

/// Builds a transport over real sockets.
pub fn http_client(settings: &HttpSettings) -> Result<Transport, Error> {
    let client = build(settings).map_err(|error| Error::Client { cause: Cause::from(error) })?;
    Ok(transport(Http(client)))
}

/// Whose certificates a client trusts.
#[derive(Clone, Copy)]
enum Authorities {
    /// Those of the machine, and the ones that settings name.
    OfTheMachine,
    /// The ones that settings name, which may be none: then no server with TLS is trusted.
    Named,
}

fn fault(what: &'static str) -> impl Fn(reqwest::Error) -> HttpError {
    move |error| HttpError::Setting(what, error.into())
}

fn build(settings: &HttpSettings) -> Result<reqwest::Client, HttpError> {
    let built = configure(settings, Authorities::OfTheMachine)?.build();
    // A bare machine without any certificates makes every client fail, before a server is asked that may not need one.
    if built.is_err() && reqwest::Client::builder().build().is_err() {
        let alone = configure(settings, Authorities::Named)?.build();
        return alone.map_err(fault("the TLS configuration"));
    }
    built.map_err(fault("the TLS configuration"))
}

fn configure(
    settings: &HttpSettings,
    authorities: Authorities,
) -> Result<reqwest::ClientBuilder, HttpError> {
    let mut builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(settings.connect_timeout)
        .pool_idle_timeout(Duration::from_secs(60))
        .tcp_nodelay(true)
        .tls_danger_accept_invalid_certs(settings.insecure);
    let bundle = settings.ca_bundle.as_deref();
    let named = bundle.map(Certificate::from_pem_bundle).transpose();
    let named = named.map_err(fault("the certificate bundle"))?;
    if named.as_ref().is_some_and(Vec::is_empty) {
        return Err(HttpError::Setting("the certificate bundle", "it has no certificate".into()));
    }
    let named = named.unwrap_or_default();
    builder = match authorities {
        Authorities::OfTheMachine => builder.tls_certs_merge(named),
        Authorities::Named => builder.tls_certs_only(named),
    };
    if let Some(identity) = &settings.identity {
        let identity = Identity::from_pem(identity).map_err(fault("the client certificate"))?;
        builder = builder.identity(identity);
    }
    for (address, what) in [
        (&settings.proxies.https, "the HTTPS proxy"),
        (&settings.proxies.http, "the HTTP proxy"),
        (&settings.proxies.all, "the proxy"),
    ] {
        // An address that is none is told now, not when it would be used.
        address.as_deref().map(Proxy::all).transpose().map_err(fault(what))?;
    }
    if settings.proxies != Proxies::default() {
        let proxies = settings.proxies.clone();
        builder = builder.proxy(Proxy::custom(move |url| {
            let host = url.host_str()?;
            proxies.proxy_for(url.scheme(), host, url.port()).map(str::to_owned)
        }));
    }
    Ok(builder)
}

/// What errors of the TLS stack have in them; a plain server's greeting is a corrupt message.
const TLS_WORDS: [&str; 4] = ["certificate", "tls", "handshake", "corrupt message"];

/// Whether an error speaks of certificates or TLS rather than of the network.
pub(crate) fn is_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut current = Some(error);
    while let Some(each) = current {
        let text = each.to_string().to_lowercase();
        if TLS_WORDS.iter().any(|word| text.contains(word)) {
            return true;
        }
        current = each.source();
    }
    false
}

#[derive(Clone)]
struct Http(reqwest::Client);

impl tower::Service<http::Request<super::Body>> for Http {
    type Response = http::Response<reqwest::Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<super::Body>) -> Self::Future {
        let client = self.0.clone();
        Box::pin(async move {
            // As a stream, because reqwest wants bodies that several threads may look at. The
            // length is in our own header.
            let request = request.map(|body| {
                if http_body::Body::is_end_stream(&body) {
                    reqwest::Body::default()
                } else {
                    reqwest::Body::wrap_stream(body.into_data_stream())
                }
            });
            let request = reqwest::Request::try_from(request)?;
            // Without the address: it may carry a signature, and names of hosts confuse `is_tls`.
            let response = client.execute(request).await;
            let response = response.map_err(reqwest::Error::without_url)?;
            Ok(http::Response::from(response))
        })
    }
}
