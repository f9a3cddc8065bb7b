//! The API server: requests by kind and name, and what its answers mean.
//!
//! Where objects of a kind are is asked of the server itself, remembered, and asked again when a
//! kind is not known, because definitions come and go with packages.

use crate::metrics::Metrics;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::Client;
use kube::api::{
    DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions,
};
use kube::core::Request;
use kube::discovery::ApiResource;
use plan::retention::{Collection, Instances};
use plan::step::Target;
use serde_json::Value as Json;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Who wrote a field, as API servers remember it.
pub const MANAGER: &str = "apron";

/// Objects in one page of a list.
const PAGE: u32 = 250;

/// How long an answer may take. Without an end, whoever waits for a server that is gone would wait
/// for ever, and the object would never be looked at again.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// How an answer of metadata alone is asked for. Whoever does not know that form answers whole.
const METADATA: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The state it was decided on is gone; the world must be looked at again.
    #[error("it has changed meanwhile: {0}")]
    Stale(String),
    /// The server is busy, broken or away; the same may work later.
    #[error("the API server cannot be reached or is busy: {0}")]
    Busy(String),
    /// There is nothing of that name.
    #[error("it is not there: {0}")]
    Missing(String),
    /// The server does not want it, and will not later.
    #[error("{0}")]
    Refused(String),
    /// This manager does not hold the lease any more, so it must not work.
    #[error("the lease was lost: {0}")]
    Deposed(String),
}

/// Where objects of a kind are.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    plural: String,
    is_namespaced: bool,
}

/// A request, if it could be made.
type Made = Result<http::Request<Vec<u8>>, kube::core::request::Error>;
/// Kinds by version of their API.
type Places = HashMap<String, HashMap<String, Place>>;

/// An API server.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    places: Arc<Mutex<Places>>,
    metrics: Arc<Metrics>,
}

/// Which objects of a kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Which<'a> {
    /// Those in this namespace, else all.
    pub namespace: Option<&'a str>,
    /// Those with these labels, as selectors are written.
    pub labels: Option<&'a str>,
}

/// Whether a change is made or only tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is made.
    Real,
    /// The server says whether it would be.
    DryRun,
}

impl Mode {
    fn is_dry(self) -> bool {
        self == Self::DryRun
    }
}

impl Cluster {
    /// The API server that a client reaches.
    pub fn new(client: Client, metrics: Arc<Metrics>) -> Self {
        Self { client, places: Arc::default(), metrics }
    }

    /// The client itself, for watches.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What watches need to know of a kind.
    pub async fn resource(&self, api_version: &str, kind: &str) -> Result<ApiResource, Error> {
        let place = self.place(api_version, kind).await?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Ok(ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            plural: place.plural,
        })
    }

    /// Whether the server has the kind.
    pub async fn serves(&self, api_version: &str, kind: &str) -> Result<bool, Error> {
        match self.place(api_version, kind).await {
            Ok(_) => Ok(true),
            Err(Error::Refused(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// An object, if it is there and its kind is.
    pub async fn get(&self, target: &Target) -> Result<Option<Json>, Error> {
        let request = match self.at(target).await {
            Err(Error::Refused(_)) => return Ok(None),
            request => request?,
        };
        self.found(request.get(&target.name, &GetParams::default())).await
    }

    /// What every object has of an object, if it is there.
    pub async fn get_metadata(&self, target: &Target) -> Result<Option<Json>, Error> {
        let request = match self.at(target).await {
            Err(Error::Refused(_)) => return Ok(None),
            request => request?,
        };
        self.found(request.get_metadata(&target.name, &GetParams::default())).await
    }

    /// All objects of a kind that are meant; none if the server does not have the kind.
    pub async fn list(
        &self,
        api_version: &str,
        kind: &str,
        which: Which<'_>,
    ) -> Result<Vec<Json>, Error> {
        let mut all = self.pages(api_version, kind, which, Request::list, |one| one).await?;
        for object in &mut all {
            object["apiVersion"] = Json::from(api_version);
            object["kind"] = Json::from(kind);
        }
        Ok(all)
    }

    /// What every object has of them, less who wrote which field, and nothing else.
    pub async fn list_metadata(
        &self,
        api_version: &str,
        kind: &str,
        which: Which<'_>,
    ) -> Result<Vec<Json>, Error> {
        self.pages(api_version, kind, which, Request::list_metadata, unsigned).await
    }

    async fn pages(
        &self,
        api_version: &str,
        kind: &str,
        which: Which<'_>,
        list: fn(&Request, &ListParams) -> Made,
        keep: fn(Json) -> Json,
    ) -> Result<Vec<Json>, Error> {
        let path = match self.path(api_version, kind, which.namespace).await {
            Err(Error::Refused(_)) => return Ok(Vec::new()),
            path => path?,
        };
        let request = Request::new(path);
        let mut options = ListParams::default().limit(PAGE);
        options.label_selector = which.labels.map(str::to_owned);
        let mut all = Vec::new();
        loop {
            // That a kind is not there, though it was, is not believed: a server that is only
            // starting may say so, and all packages would seem to be gone.
            let mut page = self.send(list(&request, &options)).await?;
            if let Json::Array(items) = page["items"].take() {
                all.extend(items.into_iter().map(keep));
            }
            match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
                Some(token) => options.continue_token = Some(token.to_owned()),
                None => return Ok(all),
            }
        }
    }

    /// How many objects a collection has, and what every object has of the first few of them, which
    /// are all that is read. Whoever may not list it cannot tell.
    pub async fn peek(
        &self,
        collection: &Collection,
        few: u32,
    ) -> Result<(Instances, Vec<Json>), Error> {
        let Collection { api_version, plural, .. } = collection;
        let request = Request::new(format!("/apis/{api_version}/{plural}"));
        let options = ListParams::default().limit(few);
        let mut page = match self.send(request.list_metadata(&options)).await {
            Ok(page) => page,
            Err(Error::Refused(_)) => return Ok((Instances::default(), Vec::new())),
            Err(error) => return Err(error),
        };
        let items = page["items"].take();
        let items = if let Json::Array(items) = items { items } else { Vec::new() };
        let metadata = &page["metadata"];
        let is_whole = metadata["continue"].as_str().is_none_or(str::is_empty);
        let more = metadata["remainingItemCount"].as_u64();
        let is_exact = is_whole || more.is_some();
        let least = items.len() as u64 + more.unwrap_or_default();
        Ok((Instances { least, is_exact }, items.into_iter().map(unsigned).collect()))
    }

    /// Makes an object that is not there.
    pub async fn create(&self, target: &Target, object: &Json, mode: Mode) -> Result<Json, Error> {
        self.create_text(target, bytes(object), mode, Answer::Whole).await
    }

    /// Makes an object that is not there, from its text.
    pub async fn create_text(
        &self,
        target: &Target,
        text: Vec<u8>,
        mode: Mode,
        answer: Answer,
    ) -> Result<Json, Error> {
        let request = answer.to(tersely(self.at(target).await?.create(&post(mode), text), mode));
        let answer = self.write(target, "create", mode, request).await;
        answer.map_err(|error| self.homeless(target, error))
    }

    /// Replaces an object by one that names the state it replaces.
    pub async fn replace(&self, target: &Target, object: &Json, mode: Mode) -> Result<Json, Error> {
        self.replace_text(target, bytes(object), mode, Answer::Whole).await
    }

    /// Replaces an object by a text that names the state it replaces.
    pub async fn replace_text(
        &self,
        target: &Target,
        text: Vec<u8>,
        mode: Mode,
        answer: Answer,
    ) -> Result<Json, Error> {
        let request = self.at(target).await?.replace(&target.name, &post(mode), text);
        let request = answer.to(tersely(request, mode));
        self.write(target, "update", mode, request).await.map_err(gone)
    }

    /// Replaces an object's status.
    pub async fn replace_status(&self, target: &Target, object: &Json) -> Result<Json, Error> {
        let request = self.at(target).await?;
        let request =
            request.replace_subresource("status", &target.name, &post(Mode::Real), bytes(object));
        self.write(target, "update_status", Mode::Real, request).await.map_err(gone)
    }

    /// Makes an object say this; what others say differently is overruled only if `force` is.
    pub async fn apply(
        &self,
        target: &Target,
        object: &Json,
        force: Force,
        mode: Mode,
    ) -> Result<Json, Error> {
        let request = self.at(target).await?;
        let options = PatchParams {
            force: force == Force::Overrule,
            dry_run: mode.is_dry(),
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let request = request.patch(&target.name, &options, &Patch::Apply(object));
        self.write(target, "apply", mode, request)
            .await
            .map_err(|error| self.homeless(target, error))
    }

    /// Changes the fields that a patch names, and no others.
    pub async fn merge(&self, target: &Target, patch: &Json) -> Result<Json, Error> {
        let request = self.at(target).await?;
        let options =
            PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let request = request.patch(&target.name, &options, &Patch::Merge(patch));
        self.write(target, "patch", Mode::Real, request).await.map_err(gone)
    }

    /// Deletes an object; that it is not there is as good.
    pub async fn delete(&self, target: &Target, state: Preconditions) -> Result<(), Error> {
        let request = match self.at(target).await {
            Err(Error::Refused(_)) => return Ok(()),
            request => request?,
        };
        let options = DeleteParams { preconditions: Some(state), ..DeleteParams::background() };
        match self.write(target, "delete", Mode::Real, request.delete(&target.name, &options)).await
        {
            Err(Error::Missing(_)) => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// What is made needs a namespace and a definition: that a namespace is missing is for people
    /// to know. That a kind is not there, though it was, is looked into once more: a server that
    /// is only starting says so, too.
    fn homeless(&self, target: &Target, error: Error) -> Error {
        let Error::Missing(message) = error else { return error };
        self.forget(&target.api_version);
        if target.namespace.is_some() { Error::Refused(message) } else { Error::Stale(message) }
    }

    async fn found(&self, request: Made) -> Result<Option<Json>, Error> {
        match self.send(request).await {
            Ok(object) => Ok(Some(object)),
            Err(Error::Missing(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn write(
        &self,
        target: &Target,
        verb: &'static str,
        mode: Mode,
        request: Made,
    ) -> Result<Json, Error> {
        let answer = self.send(request).await;
        if mode == Mode::Real {
            self.metrics.wrote(verb, &target.kind, answer.is_ok());
        }
        answer
    }

    async fn send(&self, request: Made) -> Result<Json, Error> {
        let request = request.map_err(|error| Error::Refused(error.to_string()))?;
        let what = format!("{} {}", request.method(), request.uri().path());
        let answer = answered(&what, self.client.request::<Json>(request)).await?;
        answer.map_err(|error| meaning(&error))
    }

    async fn at(&self, target: &Target) -> Result<Request, Error> {
        let namespace = target.namespace.as_deref();
        Ok(Request::new(self.path(&target.api_version, &target.kind, namespace).await?))
    }

    async fn path(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
    ) -> Result<String, Error> {
        let place = self.place(api_version, kind).await?;
        let root = if api_version.contains('/') { "apis" } else { "api" };
        let within = namespace.filter(|_| place.is_namespaced);
        let within = within.map(|name| format!("namespaces/{name}/")).unwrap_or_default();
        Ok(format!("/{root}/{api_version}/{within}{}", place.plural))
    }

    async fn place(&self, api_version: &str, kind: &str) -> Result<Place, Error> {
        if let Some(known) = self.known(api_version, kind) {
            return Ok(known);
        }
        let found = self.discover(api_version).await?;
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.insert(api_version.to_owned(), found);
        drop(places);
        self.known(api_version, kind).ok_or_else(|| {
            Error::Refused(format!("the API server has no kind {kind} in {api_version}"))
        })
    }

    fn known(&self, api_version: &str, kind: &str) -> Option<Place> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.get(api_version)?.get(kind).cloned()
    }

    async fn discover(&self, api_version: &str) -> Result<HashMap<String, Place>, Error> {
        let asked = async {
            if api_version.contains('/') {
                self.client.list_api_group_resources(api_version).await
            } else {
                self.client.list_core_api_resources(api_version).await
            }
        };
        let asked = answered(&format!("GET the kinds of {api_version}"), asked).await?;
        let list = match asked {
            Ok(list) => list,
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(HashMap::new()),
            Err(error) => return Err(meaning(&error)),
        };
        let kinds = list.resources.into_iter().filter(|one| !one.name.contains('/'));
        Ok(kinds
            .map(|one| (one.kind, Place { plural: one.name, is_namespaced: one.namespaced }))
            .collect())
    }

    /// Every resource of a group that the server serves, with the version it is served in.
    pub async fn resources_of_group(
        &self,
        group: &str,
    ) -> Result<Vec<(String, APIResource)>, Error> {
        let request = http::Request::get(format!("/apis/{group}")).body(Vec::new());
        let request = request.map_err(kube::core::request::Error::BuildRequest);
        let found = match self.send(request).await {
            Ok(found) => found,
            Err(Error::Missing(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let versions = found["versions"].as_array().cloned().unwrap_or_default();
        let mut resources = Vec::new();
        for version in versions.iter().filter_map(|one| one["version"].as_str()) {
            let api_version = format!("{group}/{version}");
            let asked = self.client.list_api_group_resources(&api_version);
            let list = match answered(&format!("GET the kinds of {group}"), asked).await? {
                Ok(list) => list.resources,
                Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
                Err(error) => return Err(meaning(&error)),
            };
            let whole = list.into_iter().filter(|one| !one.name.contains('/'));
            resources.extend(whole.map(|one| (version.to_owned(), one)));
        }
        Ok(resources)
    }

    /// Forgets where objects of an API are, because something there was not.
    pub fn forget(&self, api_version: &str) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.remove(api_version);
    }
}

/// Whether what others said is overruled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// What others said counts: whoever says otherwise is refused.
    Yield,
    /// What we say counts.
    Overrule,
}

/// How much of an object that was written is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All of it.
    Whole,
    /// What every object has: neither side then writes and reads all of a large one again.
    Metadata,
}

impl Answer {
    /// The request that asks for this.
    fn to(self, request: Made) -> Made {
        let mut request = request?;
        if self == Self::Metadata {
            let form = http::HeaderValue::from_static(METADATA);
            request.headers_mut().insert(http::header::ACCEPT, form);
        }
        Ok(request)
    }
}

/// What comes of a request, if something does.
async fn answered<T>(what: &str, asked: impl Future<Output = T>) -> Result<T, Error> {
    let answer = tokio::time::timeout(ANSWER_TIME_MAX, asked).await;
    let seconds = ANSWER_TIME_MAX.as_secs();
    answer.map_err(|_| Error::Busy(format!("{what}: no answer in {seconds} s")))
}

/// Dry runs leave out the search for fields that nobody knows: it is a tenth of what they cost the
/// server, and what it finds is no reason to refuse anything.
fn tersely(request: Made, mode: Mode) -> Made {
    let mut request = request?;
    if mode.is_dry() {
        let uri = format!("{}&fieldValidation=Ignore", request.uri());
        let uri = uri.parse().map_err(|error: http::uri::InvalidUri| error.into());
        *request.uri_mut() = uri.map_err(kube::core::request::Error::BuildRequest)?;
    }
    Ok(request)
}

fn post(mode: Mode) -> PostParams {
    PostParams { dry_run: mode.is_dry(), field_manager: Some(MANAGER.to_owned()) }
}

/// An object less who wrote which field of it, which is most of its metadata.
fn unsigned(mut object: Json) -> Json {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}

fn bytes(object: &Json) -> Vec<u8> {
    object.to_string().into_bytes()
}

/// What is changed must be there: that it is not is news.
fn gone(error: Error) -> Error {
    match error {
        Error::Missing(message) => Error::Stale(message),
        other => other,
    }
}

/// What an answer means for whoever decided on the request.
fn meaning(error: &kube::Error) -> Error {
    let kube::Error::Api(status) = error else {
        return lost(error);
    };
    let message = if status.message.is_empty() { &status.reason } else { &status.message };
    let message = message.trim().to_owned();
    match status.code {
        404 => Error::Missing(message),
        409 => Error::Stale(message),
        // Tokens are renewed; a list whose pages are gone is begun again.
        401 | 408 | 410 | 429 | 500.. => Error::Busy(message),
        _ => Error::Refused(message),
    }
}

/// That nobody answers, why, and what to do about it.
pub(crate) fn lost(error: &kube::Error) -> Error {
    let advice = "make sure that it runs and that the manager can reach it, which tries again by \
                  itself";
    Error::Busy(format!("{}; {advice}", chain(error)))
}

/// An error and what is behind it, each said once.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !said.contains(&text) {
            said = format!("{said}: {text}");
        }
        next = cause.source();
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answers_is_not_waited_for() {
        let silent = tower::service_fn(|_: http::Request<kube::client::Body>| {
            std::future::pending::<Result<http::Response<kube::client::Body>, std::io::Error>>()
        });
        let cluster = Cluster::new(Client::new(silent, "default"), Arc::default());
        let asked = cluster.list("v1", "Secret", Which::default()).await;
        let why = "GET the kinds of v1: no answer in 60 s".to_owned();
        assert_eq!(asked.unwrap_err(), Error::Busy(why));
    }
}
