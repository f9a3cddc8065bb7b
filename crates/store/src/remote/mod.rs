//! A store in a registry: the OCI distribution protocol, spoken with patience.
//!
//! ```text
//!   Remote (one repository) ──► Client (tokens, settings; shared by all repositories)
//!     manifest, head              │ send: retries with back-off, Retry-After
//!     download: Range resume      │  └ authorise: challenge → token, once again on 401
//!     upload: POST PATCH PUT      │     └ follow: redirects, credentials stay at home
//!     pages: tags, referrers      │        └ exchange: one request, stalls end in time
//!                                 ▼
//!                              Transport: any tower Service
//! ```
//!
//! The transport is a value, so that a registry in the same process plugs in without a socket;
//! [`http_client`] makes the one that reaches the network. Waiting is done on tokio's clock.

mod beside;
mod challenge;
mod download;
mod error;
mod http;
mod lead;
mod pace;
mod pages;
mod proxy;
mod recent;
mod request;
mod retry;
mod send;
mod token;
mod upload;

pub use self::error::HttpError;
pub use self::http::{HttpSettings, http_client};
pub use self::proxy::Proxies;
pub use self::retry::{Retry, RetryWatch};

use crate::auth::Keychain;
use crate::error::Cause;
use crate::verify::check_digest;
use crate::{Blob, Error, Source, Store};
use ::http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use ::http::{Method, Request, Response, StatusCode};
use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use oci::manifest::MANIFEST_SIZE_MAX;
use oci::{Descriptor, Digest, Identifier, MediaType, Raw, Repository};
use request::{Call, Payload};
use reqwest::Url;
use send::Fetched;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;

/// Any error of a transport.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// A request's or answer's body.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;
/// What carries requests to registries.
pub type Transport = BoxCloneSyncService<Request<Body>, Response<Body>, BoxError>;

/// Makes a transport of any service: a router in this process, or a real client.
pub fn transport<S, B>(service: S) -> Transport
where
    S: tower::Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let boxed = service
        .map_response(|response: Response<B>| {
            response.map(|body| body.map_err(Into::into).boxed_unsync())
        })
        .map_err(Into::into);
    BoxCloneSyncService::new(boxed)
}

/// How to talk to registries.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What we call ourselves.
    pub user_agent: String,
    /// Speak plain HTTP, to every registry.
    pub plain_http: bool,
    /// Speak TLS, also to registries on private networks.
    pub tls_only: bool,
    /// How often a request is tried.
    pub tries: u32,
    /// The pause before the second try; it doubles with every further one.
    pub backoff: Duration,
    /// The longest pause, also where a registry asks for a longer one.
    pub backoff_max: Duration,
    /// Spreads the pauses of many clients; any number.
    pub jitter: u64,
    /// How long the other side may be silent.
    pub idle_timeout: Duration,
    /// Told before each further try.
    pub retries: RetryWatch,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            user_agent: "apron".to_owned(),
            plain_http: false,
            tls_only: false,
            tries: 4,
            backoff: Duration::from_millis(500),
            backoff_max: Duration::from_secs(30),
            jitter: 0,
            idle_timeout: Duration::from_secs(60),
            retries: RetryWatch::default(),
        }
    }
}

/// Registries of which it is remembered what they speak, and for how long.
const SCHEMES_MAX: usize = 512;
const SCHEME_AGE_MAX: Duration = Duration::from_secs(24 * 3600);

/// A client of registries: connections, tokens and settings, shared by many repositories.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    transport: Transport,
    keychain: Keychain,
    settings: Settings,
    tokens: token::Tokens,
    /// What private registries were found to speak.
    schemes: Mutex<recent::Recent<&'static str>>,
}

impl Client {
    /// A client that sends over this transport and shows credentials of this keychain.
    pub fn new(transport: Transport, keychain: Keychain, settings: Settings) -> Self {
        let tokens = token::Tokens::default();
        let schemes = Mutex::new(recent::Recent::new(SCHEMES_MAX, usize::MAX));
        Self { inner: Arc::new(Inner { transport, keychain, settings, tokens, schemes }) }
    }

    /// A repository as a store.
    pub fn repository(&self, repository: Repository) -> Remote {
        Remote { client: self.clone(), repository, sessions: Arc::default() }
    }

    /// Sends the registry's credentials once, to see whether they are accepted; `repository` may
    /// be any in the registry.
    pub async fn check_login(&self, repository: &Repository) -> Result<(), Error> {
        let failed =
            |cause| Error::Credentials { registry: repository.registry().to_owned(), cause };
        let base = self.base(repository).await.map_err(failed)?;
        let mut call = Call::new(Method::GET, base);
        call.scopes = Vec::new();
        let response = self.send(repository, &call).await.map_err(failed)?;
        if response.status().is_success() {
            return Ok(());
        }
        Err(failed(self.refusal(&call, response).await.into()))
    }
}

/// A repository in a registry.
#[derive(Clone)]
pub struct Remote {
    client: Client,
    repository: Repository,
    /// Uploads a refused mount has opened for us.
    sessions: Arc<Mutex<HashMap<Digest, Url>>>,
}

impl Remote {
    async fn url(&self, path: &str) -> Result<Url, Cause> {
        let base = self.client.base(&self.repository).await?;
        let text = format!("{base}{}/{path}", self.repository.path());
        let url = Url::parse(&text).map_err(|_| HttpError::Url(text.clone()))?;
        // What was judged is the name, and the address must be no other.
        let is_same = url.path() == format!("{}{}/{path}", base.path(), self.repository.path());
        if is_same { Ok(url) } else { Err(HttpError::Url(text).into()) }
    }

    /// A call that only reads.
    async fn pull(&self, method: Method, path: &str) -> Result<Call<'static>, Cause> {
        let mut call = Call::new(method, self.url(path).await?);
        call.scopes = vec![token::scope(&self.repository, "pull")];
        Ok(call)
    }

    /// A call that writes.
    async fn push(&self, method: Method, path: &str) -> Result<Call<'static>, Cause> {
        Ok(self.push_to(method, self.url(path).await?))
    }

    fn push_to(&self, method: Method, url: Url) -> Call<'static> {
        let mut call = Call::new(method, url);
        call.scopes = vec![token::scope(&self.repository, "pull,push")];
        call
    }

    async fn send(&self, call: &Call<'_>) -> Result<Response<Body>, Cause> {
        self.client.send(&self.repository, call).await
    }

    async fn whole(&self, call: &Call<'_>, what: &str, limit: u64) -> Result<Fetched, Cause> {
        self.client.fetch_whole(&self.repository, call, what, limit).await
    }

    async fn refuse<T>(&self, call: &Call<'_>, response: Response<Body>) -> Result<T, Cause> {
        Err(self.client.refusal(call, response).await.into())
    }

    async fn manifest_call(&self, method: Method, id: &Identifier) -> Result<Call<'static>, Cause> {
        let mut call = self.pull(method, &format!("manifests/{id}")).await?;
        let types = MediaType::manifest_types().map(|each| each.to_string());
        call.header(ACCEPT, &types.join(", "))?;
        Ok(call)
    }

    async fn read_manifest(&self, id: &Identifier) -> Result<Option<Raw>, Cause> {
        let call = self.manifest_call(Method::GET, id).await?;
        let (headers, bytes) = match self.whole(&call, "the manifest", MANIFEST_SIZE_MAX).await? {
            Fetched::Found(headers, bytes) => (headers, bytes),
            Fetched::Refused(response) if response.status() == StatusCode::NOT_FOUND => {
                return Ok(None);
            }
            Fetched::Refused(response) => return self.refuse(&call, response).await,
        };
        let media_type = MediaType::new(text(&headers, CONTENT_TYPE.as_str()));
        let promised = digest_header(&headers);
        // What was asked for by digest must have it; what was asked for by tag must have the one
        // the registry says it has.
        match id {
            Identifier::Digest(digest) => check_digest(&bytes, digest)?,
            Identifier::Tag(_) => promised.iter().try_for_each(|it| check_digest(&bytes, it))?,
        }
        Ok(Some(Raw::parse(bytes, &media_type)?))
    }

    /// `None` where the registry does not say enough without the bytes.
    async fn read_head(&self, id: &Identifier) -> Result<Option<Option<Descriptor>>, Cause> {
        let call = self.manifest_call(Method::HEAD, id).await?;
        let response = self.send(&call).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(Some(None));
        }
        let headers = response.headers();
        let size = text(headers, CONTENT_LENGTH.as_str()).parse().ok();
        let media_type = MediaType::new(text(headers, CONTENT_TYPE.as_str()));
        let known = media_type.is_manifest() || media_type.is_index();
        let described = digest_header(headers).zip(size).filter(|_| known);
        let agrees = |digest: &Digest| id.as_digest().is_none_or(|wanted| wanted == digest);
        Ok(match described {
            Some((digest, size)) if response.status().is_success() && agrees(&digest) => {
                Some(Some(Descriptor::new(media_type, digest, size)))
            }
            _ => None,
        })
    }

    async fn read_has_blob(&self, digest: &Digest) -> Result<bool, Cause> {
        let call = self.pull(Method::HEAD, &format!("blobs/{digest}")).await?;
        let response = self.send(&call).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(false),
            status if status.is_success() => Ok(true),
            _ => self.refuse(&call, response).await,
        }
    }

    async fn write_manifest(&self, id: &Identifier, raw: &Raw) -> Result<(), Cause> {
        if let Identifier::Digest(digest) = id {
            check_digest(&raw.bytes, digest)?;
        }
        let mut call = self.push(Method::PUT, &format!("manifests/{id}")).await?;
        call.header(CONTENT_TYPE, raw.media_type.as_str())?;
        call.payload = Payload::Bytes(raw.bytes.clone().into());
        let response = self.send(&call).await?;
        if !response.status().is_success() {
            return self.refuse(&call, response).await;
        }
        match digest_header(response.headers()) {
            Some(stored) if stored.algorithm() == raw.digest.algorithm() => {
                check_digest(&raw.bytes, &stored)?;
            }
            _ => {}
        }
        if response.headers().contains_key("oci-subject") {
            return Ok(());
        }
        self.note_referrer(raw).await
    }

    fn session(&self, digest: &Digest) -> Option<Url> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(digest)
    }

    fn keep_session(&self, digest: &Digest, url: Url) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(digest.clone(), url);
    }
}

/// A header's text; empty if it is missing or not text.
fn text<'headers>(headers: &'headers HeaderMap, name: &str) -> &'headers str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn digest_header(headers: &HeaderMap) -> Option<Digest> {
    text(headers, "docker-content-digest").parse().ok()
}

#[async_trait]
impl Store for Remote {
    fn place(&self) -> String {
        self.repository.to_string()
    }

    fn repository(&self) -> Option<&Repository> {
        Some(&self.repository)
    }

    async fn manifest(&self, id: &Identifier) -> Result<Option<Raw>, Error> {
        self.read_manifest(id).await.map_err(|cause| Error::Manifest {
            place: self.place(),
            id: id.to_string(),
            cause,
        })
    }

    async fn head(&self, id: &Identifier) -> Result<Option<Descriptor>, Error> {
        let answer = self.read_head(id).await.map_err(|cause| Error::Manifest {
            place: self.place(),
            id: id.to_string(),
            cause,
        })?;
        match answer {
            Some(found) => Ok(found),
            None => Ok(self.manifest(id).await?.map(|raw| raw.descriptor())),
        }
    }

    async fn blob(&self, descriptor: &Descriptor) -> Result<Option<Blob>, Error> {
        self.download(descriptor).await.map_err(|cause| Error::Blob {
            place: self.place(),
            digest: descriptor.digest.clone(),
            cause,
        })
    }

    async fn has_blob(&self, digest: &Digest) -> Result<bool, Error> {
        self.read_has_blob(digest).await.map_err(|cause| Error::HasBlob {
            place: self.place(),
            digest: digest.clone(),
            cause,
        })
    }

    async fn put_blob(&self, descriptor: &Descriptor, source: &dyn Source) -> Result<(), Error> {
        self.upload(descriptor, source).await.map_err(|cause| Error::PutBlob {
            place: self.place(),
            digest: descriptor.digest.clone(),
            cause,
        })
    }

    async fn mount_blob(&self, digest: &Digest, from: &Repository) -> Result<bool, Error> {
        self.mount(digest, from).await.map_err(|cause| Error::PutBlob {
            place: self.place(),
            digest: digest.clone(),
            cause,
        })
    }

    async fn put_manifest(&self, id: &Identifier, raw: &Raw) -> Result<(), Error> {
        self.write_manifest(id, raw).await.map_err(|cause| Error::PutManifest {
            place: self.place(),
            id: id.to_string(),
            cause,
        })
    }

    async fn tags(&self) -> Result<Vec<String>, Error> {
        self.read_tags().await.map_err(|cause| Error::Tags { place: self.place(), cause })
    }

    async fn referrers(
        &self,
        digest: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Vec<Descriptor>, Error> {
        self.read_referrers(digest, artifact_type).await.map_err(|cause| Error::Referrers {
            place: self.place(),
            digest: digest.clone(),
            cause,
        })
    }
}
