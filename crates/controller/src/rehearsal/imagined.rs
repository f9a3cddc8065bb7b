//! A cluster that is only imagined: a client whose reads are answered by a real API server, and
//! whose writes are kept here and laid over those answers.

use super::ownership::{FieldWrite, KindVersions, definition_name};
use super::request::{Place, failure, is_selected, merge};
use apply::{ApplyError, Timestamp};
use http::{Method, Request, Response, StatusCode, header};
use kube::Client;
use kube::client::Body;
use plan::preview::Change;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who says whether objects are sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checks {
    /// Nobody: only questions are sent to the real server.
    Nobody,
    /// The real server, in dry runs.
    Server,
}

/// A cluster that is only imagined.
#[derive(Clone)]
pub struct Imagined(Arc<Inner>);

struct Inner {
    real: Client,
    checks: Checks,
    /// The moment at which all of it happens.
    now: String,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    changes: BTreeMap<Key, Change>,
    writes: u64,
    /// Kinds of the real server, by version and kind.
    kinds: BTreeMap<(String, String), Arc<KindVersions>>,
}

/// An object, in whatever version of its API.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    group: String,
    plural: String,
    namespace: Option<String>,
    name: String,
}

/// An answer, or what went wrong on the way to the real server.
type Answer = Result<Response<Body>, kube::Error>;
/// What a change comes to; what the server says to it otherwise.
type Decided = Result<Json, Refused>;
/// A code, a reason and a message.
type Refused = (u16, &'static str, String);

impl Imagined {
    /// The cluster behind a client, imagined from this moment on.
    pub fn new(real: Client, checks: Checks, now: String) -> Self {
        Self(Arc::new(Inner { real, checks, now, memory: Mutex::default() }))
    }

    /// A client of the imagined cluster.
    pub fn client(&self) -> Client {
        let inner = Arc::clone(&self.0);
        let service = tower::service_fn(move |request| {
            let inner = Arc::clone(&inner);
            async move { inner.answer(request).await }
        });
        Client::new(service, "default")
    }

    /// How often something was written.
    pub(super) fn writes(&self) -> u64 {
        self.0.memory().writes
    }

    /// Everything that is not as it was.
    pub(super) fn changes(&self) -> Vec<Change> {
        let memory = self.0.memory();
        memory.changes.values().filter(|one| one.before != one.after).cloned().collect()
    }

    /// The names of objects of a kind that are not as they were, and are there.
    pub(super) fn changed(&self, kind: &str) -> Vec<String> {
        let memory = self.0.memory();
        let there = memory.changes.values().filter_map(|change| change.after.as_ref());
        let names = there.filter(|one| one["kind"] == kind).map(|one| &one["metadata"]["name"]);
        names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    }

    /// The same with namespaces, as `NAMESPACE/NAME`.
    pub(super) fn changed_keys(&self, kind: &str) -> Vec<String> {
        let memory = self.0.memory();
        let there = memory.changes.values().filter_map(|change| change.after.as_ref());
        let metadata = there.filter(|one| one["kind"] == kind).map(|one| &one["metadata"]);
        let key =
            |it: &Json| Some(format!("{}/{}", it["namespace"].as_str()?, it["name"].as_str()?));
        metadata.filter_map(key).collect()
    }
}

impl Inner {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, request: Request<Body>) -> Answer {
        let place = Place::parse(request.uri().path());
        let is_read = request.method() == Method::GET;
        let query = request.uri().query().unwrap_or_default().to_owned();
        match place {
            None if is_read => self.real.send(request).await,
            Some(place) if is_read && place.name.is_some() => self.get(&place, request).await,
            Some(place) if is_read => self.list(&place, &query, request).await,
            // News of what did not happen.
            Some(place) if place.plural == "events" => {
                let event = read(request.into_body()).await?;
                Ok(reply(StatusCode::CREATED, &event))
            }
            Some(_) if query.contains("dryRun=All") => match self.checks {
                Checks::Server => self.real.send(request).await,
                Checks::Nobody => Ok(reply(StatusCode::OK, &read(request.into_body()).await?)),
            },
            Some(place) => self.write(place, request).await,
            None => Ok(refuse(&(405, "MethodNotAllowed", "this is a rehearsal".to_owned()))),
        }
    }

    async fn get(&self, place: &Place, request: Request<Body>) -> Answer {
        let form = Form::of(&request);
        let known = self
            .memory()
            .changes
            .get(&key(place))
            .map(|change| change.after.as_ref().map(|one| form.one(one)));
        match known {
            None => self.real.send(request).await,
            Some(Some(object)) => Ok(reply(StatusCode::OK, &object)),
            Some(None) => Ok(refuse(&(404, "NotFound", "it was deleted".to_owned()))),
        }
    }

    async fn list(&self, place: &Place, query: &str, request: Request<Body>) -> Answer {
        let form = Form::of(&request);
        let response = self.real.send(request).await?;
        if !response.status().is_success() {
            return Ok(response);
        }
        let mut list = read(response.into_body()).await?;
        let selector = parameter(query, "labelSelector");
        let is_last = list["metadata"]["continue"].as_str().is_none_or(str::is_empty);
        let memory = self.memory();
        let ours = memory.changes.iter().filter(|(key, _)| {
            (&key.group, &key.plural) == (&place.group, &place.plural)
                && (place.namespace.is_none() || key.namespace == place.namespace)
        });
        let ours: BTreeMap<(Option<&str>, &str), &Change> = ours
            .map(|(key, change)| ((key.namespace.as_deref(), key.name.as_str()), change))
            .collect();
        // An empty list of metadata has none at all.
        if list["items"].is_null() {
            list["items"] = json!([]);
        }
        if let Some(items) = list["items"].as_array_mut() {
            items.retain(|item| !ours.contains_key(&named(item)));
            let there = ours.values().filter_map(|change| change.after.as_ref());
            let there = there.filter(|one| is_last && is_selected(one, selector.as_deref()));
            items.extend(there.map(|one| form.one(one)));
        }
        Ok(reply(StatusCode::OK, &list))
    }

    async fn write(&self, mut place: Place, request: Request<Body>) -> Answer {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let query = request.uri().query().unwrap_or_default().to_owned();
        let format = request.headers().get(header::CONTENT_TYPE);
        let is_apply = format
            .and_then(|it| it.to_str().ok())
            .is_some_and(|it| it.starts_with("application/apply-patch"));
        let body = read(request.into_body()).await?;
        let mut path = path.trim_end_matches("/status").to_owned();
        if method == Method::POST {
            let name = body["metadata"]["name"].as_str().unwrap_or_default();
            path = format!("{path}/{name}");
            place.name = Some(name.to_owned());
        }
        let key = key(&place);
        let live = match self.current(&key, &path).await? {
            Ok(live) => live,
            Err(response) => return Ok(response),
        };
        if method == Method::DELETE {
            let decided = self.deleted(live.as_ref(), &body);
            return Ok(self.keep_decided(key, live, decided));
        }
        let body_of = if is_apply { None } else { live.as_ref() }.unwrap_or(&body);
        let of = |field: &str| body_of[field].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (of("apiVersion"), of("kind"));
        let versions = self.kind_versions(&place, (&api_version, &kind)).await?;
        let write = FieldWrite {
            manager: &parameter(&query, "fieldManager").unwrap_or_default(),
            is_forced: parameter(&query, "force").is_some_and(|force| force == "true"),
            is_status: place.is_status,
            now: Timestamp::parse(&self.now).unwrap_or(Timestamp(0)),
            api_version: &api_version,
            kind: &kind,
            versions: &versions,
        };
        let track = |object| write.update(live.as_ref(), object);
        let decided = match method {
            Method::POST => created(live.as_ref(), body).map(track),
            Method::PUT => replaced(live.as_ref(), body, place.is_status).map(track),
            Method::PATCH if is_apply => applied(live.as_ref(), &body, &write),
            Method::PATCH => patched(live.as_ref(), &body).map(track),
            _ => Err((405, "MethodNotAllowed", "this is a rehearsal".to_owned())),
        };
        Ok(self.keep_decided(key, live, decided))
    }

    fn keep_decided(&self, key: Key, live: Option<Json>, decided: Decided) -> Response<Body> {
        match decided {
            Err(refused) => refuse(&refused),
            Ok(object) => reply(StatusCode::OK, &self.put(key, live, object)),
        }
    }

    /// An object as it is now; or what the server says instead.
    async fn current(
        &self,
        key: &Key,
        path: &str,
    ) -> Result<Result<Option<Json>, Response<Body>>, kube::Error> {
        if let Some(change) = self.memory().changes.get(key) {
            return Ok(Ok(change.after.clone()));
        }
        let request = Request::get(path).body(Body::empty());
        let request = request.map_err(kube::Error::HttpError)?;
        let response = self.real.send(request).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(Ok(None)),
            status if status.is_success() => Ok(Ok(Some(read(response.into_body()).await?))),
            _ => Ok(Err(response)),
        }
    }

    /// The versions of a kind: as it is defined, in imagination or in truth, or as the real server
    /// is built. Where the server does not say, all that is known of a kind is its metadata.
    async fn kind_versions(
        &self,
        place: &Place,
        (api_version, kind): (&str, &str),
    ) -> Result<Arc<KindVersions>, kube::Error> {
        let definition = definition_name(place).map(|name| Key {
            group: "apiextensions.k8s.io".to_owned(),
            plural: "customresourcedefinitions".to_owned(),
            namespace: None,
            name,
        });
        let named = (api_version.to_owned(), kind.to_owned());
        {
            let memory = self.memory();
            let imagined = definition.as_ref().and_then(|key| memory.changes.get(key));
            if let Some(definition) = imagined.and_then(|change| change.after.as_ref()) {
                return Ok(Arc::new(KindVersions::from_definition(definition)));
            }
            if let Some(known) = memory.kinds.get(&named) {
                return Ok(Arc::clone(known));
            }
        }
        let mut found = None;
        if let Some(Key { group, plural, name, .. }) = definition {
            let definition = self.read_real(&format!("/apis/{group}/v1/{plural}/{name}")).await?;
            found = definition.as_ref().map(KindVersions::from_definition);
        }
        if found.is_none() {
            let above = if api_version.contains('/') { "apis" } else { "api" };
            let document = self.read_real(&format!("/openapi/v3/{above}/{api_version}")).await?;
            let document = document.unwrap_or_default();
            found = KindVersions::from_openapi(&document, api_version, kind);
        }
        let found = Arc::new(found.unwrap_or_else(|| KindVersions::unknown(api_version)));
        self.memory().kinds.insert(named, Arc::clone(&found));
        Ok(found)
    }

    /// What the real server has at a path, if it has and shows it.
    async fn read_real(&self, path: &str) -> Result<Option<Json>, kube::Error> {
        let request = Request::get(path).header(header::ACCEPT, "application/json");
        let request = request.body(Body::empty()).map_err(kube::Error::HttpError)?;
        let response = self.real.send(request).await?;
        if !response.status().is_success() {
            return Ok(None);
        }
        read(response.into_body()).await.map(Some)
    }

    /// Keeps an object, if it is another one now.
    fn put(&self, key: Key, live: Option<Json>, mut object: Json) -> Json {
        let mut memory = self.memory();
        if live.as_ref() == Some(&object) {
            return object;
        }
        memory.writes += 1;
        let number = memory.writes;
        let content = |object: &Json| {
            let mut content = object.clone();
            for field in ["metadata", "status"] {
                content[field].take();
            }
            content
        };
        let generation = live.as_ref().and_then(|live| live["metadata"]["generation"].as_i64());
        let is_new = live.as_ref().is_none_or(|live| content(live) != content(&object));
        let generation = generation.unwrap_or_default() + i64::from(is_new);
        let uid = live.as_ref().and_then(|live| live["metadata"]["uid"].as_str());
        let uid = uid.map_or_else(|| format!("imagined-{number}"), str::to_owned);
        let metadata = &mut object["metadata"];
        metadata["uid"] = json!(uid);
        metadata["generation"] = json!(generation);
        metadata["resourceVersion"] = json!(format!("imagined-{number}"));
        if (key.group.as_str(), key.plural.as_str()) == ("apps", "deployments") {
            object["status"] = available_status(&object);
        }
        let metadata = &object["metadata"];
        let finalizers = metadata["finalizers"].as_array();
        let is_gone = !metadata["deletionTimestamp"].is_null()
            && finalizers.is_none_or(std::vec::Vec::is_empty);
        let after = (!is_gone).then(|| object.clone());
        memory.changes.entry(key).or_insert(Change { before: live, after: None }).after = after;
        object
    }

    fn deleted(&self, live: Option<&Json>, options: &Json) -> Decided {
        let mut object = live.cloned().ok_or_else(missing)?;
        let state = &options["preconditions"];
        agree(&object, &state["uid"], &state["resourceVersion"])?;
        object["metadata"]["deletionTimestamp"] = json!(self.now);
        Ok(object)
    }
}

/// The status of a Deployment whose pods all run: a plan tells what becomes of a cluster if what is
/// started starts.
fn available_status(deployment: &Json) -> Json {
    let replicas = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    json!({
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": replicas, "availableReplicas": replicas,
        "conditions": [{"type": "Available", "status": "True"}],
    })
}

fn created(live: Option<&Json>, object: Json) -> Decided {
    match live {
        Some(_) => Err((409, "AlreadyExists", "it is there already".to_owned())),
        None => Ok(object),
    }
}

fn replaced(live: Option<&Json>, object: Json, is_status: bool) -> Decided {
    let live = live.ok_or_else(missing)?;
    agree(live, &object["metadata"]["uid"], &object["metadata"]["resourceVersion"])?;
    let (mut whole, part) = if is_status { (live.clone(), &object) } else { (object, live) };
    if let (Json::Object(fields), Some(status)) = (&mut whole, part.get("status")) {
        fields.insert("status".to_owned(), status.clone());
    }
    if let (false, Json::Object(seen)) = (is_status, &live["metadata"]) {
        for field in ["creationTimestamp", "deletionTimestamp", "generation", "managedFields"] {
            if let Some(value) = seen.get(field) {
                whole["metadata"][field] = value.clone();
            }
        }
    }
    Ok(whole)
}

fn patched(live: Option<&Json>, patch: &Json) -> Decided {
    let mut object = live.cloned().ok_or_else(missing)?;
    agree(&object, &patch["metadata"]["uid"], &patch["metadata"]["resourceVersion"])?;
    merge(&mut object, patch);
    Ok(object)
}

fn applied(live: Option<&Json>, config: &Json, write: &FieldWrite<'_>) -> Decided {
    if let Some(live) = live {
        agree(live, &config["metadata"]["uid"], &config["metadata"]["resourceVersion"])?;
    }
    write.apply(live, config).map_err(|error| match error {
        ApplyError::Conflicts(_) => (409, "Conflict", error.message()),
        ApplyError::WrongType { .. } | ApplyError::ManagedFieldsGiven => {
            (400, "BadRequest", error.message())
        }
        error => (500, "InternalError", error.message()),
    })
}

/// Fails if an object is not the one in the state that somebody saw.
fn agree(live: &Json, uid: &Json, state: &Json) -> Result<(), Refused> {
    let metadata = &live["metadata"];
    let same = |seen: &Json, field: &str| seen.is_null() || *seen == metadata[field];
    if same(uid, "uid") && same(state, "resourceVersion") {
        return Ok(());
    }
    Err((409, "Conflict", "it has been changed".to_owned()))
}

fn missing() -> Refused {
    (404, "NotFound", "it is not there".to_owned())
}

fn key(place: &Place) -> Key {
    Key {
        group: place.group.clone(),
        plural: place.plural.clone(),
        namespace: place.namespace.clone(),
        name: place.name.clone().unwrap_or_default(),
    }
}

fn named(item: &Json) -> (Option<&str>, &str) {
    let metadata = &item["metadata"];
    (metadata["namespace"].as_str(), metadata["name"].as_str().unwrap_or_default())
}

/// How much of objects is asked for.
#[derive(Clone, Copy)]
enum Form {
    Whole,
    Metadata,
}

impl Form {
    fn of(request: &Request<Body>) -> Self {
        let accepted = request.headers().get(header::ACCEPT).and_then(|it| it.to_str().ok());
        match accepted {
            Some(accepted) if accepted.contains("PartialObjectMetadata") => Self::Metadata,
            _ => Self::Whole,
        }
    }

    fn one(self, object: &Json) -> Json {
        match self {
            Self::Whole => object.clone(),
            Self::Metadata => json!({
                "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                "metadata": object["metadata"],
            }),
        }
    }
}

/// A parameter of a query, as clients of Kubernetes write it.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    Some(value.replace("%3D", "=").replace("%2F", "/").replace("%2C", ","))
}

async fn read(body: Body) -> Result<Json, kube::Error> {
    let bytes = body.collect_bytes().await?;
    if bytes.is_empty() {
        return Ok(Json::Null);
    }
    serde_json::from_slice(&bytes).map_err(kube::Error::SerdeError)
}

fn reply(status: StatusCode, object: &Json) -> Response<Body> {
    let mut response = Response::new(Body::from(object.to_string().into_bytes()));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

fn refuse((code, reason, message): &Refused) -> Response<Body> {
    let status = StatusCode::from_u16(*code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    reply(status, &failure(*code, reason, message))
}
