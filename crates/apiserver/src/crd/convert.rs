//! Conversion between the versions of a definition, by its webhook
//!
//! An object is stored in one version and shown in any. Where versions differ in more than
//! their names, a webhook knows how. It is asked before an object is needed, for many at
//! once; what it said is remembered as long as the definition stays the same, since a version
//! of the log never changes. Who asked holds what was said until it was used: however much that
//! is, it is not forgotten between being converted and being read.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use serde_json::{Value, json};

use crate::Server;
use crate::http::status::Failure;
use crate::outbound;
use schema::object::meta_text;

/// How long a webhook may take; upstream's limit.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The most answers that are remembered for requests to come.
const KNOWN_MAX: usize = 4096;
/// The most objects that a webhook is sent at once.
const OBJECTS_MAX: usize = 512;
/// The most bytes of stored text that it is sent at once, unless one object has more: the answer
/// is bounded, too.
const BYTES_MAX: usize = 1 << 20;

/// How the objects of a definition are brought to another version.
#[derive(Debug)]
pub struct Conversion {
    client: Value,
    reviews: Vec<String>,
    known: Mutex<Known>,
}

/// What a webhook said: the newest answers, and those that a request still holds.
#[derive(Debug, Default)]
struct Known {
    answers: HashMap<(Source, String), Weak<Value>>,
    newest: VecDeque<Arc<Value>>,
    /// How many answers there were after those that nobody holds were last swept out.
    swept: usize,
}

/// Converted objects that somebody is about to read.
pub(crate) type Held = Vec<Arc<Value>>;

/// What was converted: an entry of the log, or an object on its way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    Entry(u64),
    Object(String),
}

impl Conversion {
    /// The conversion a definition asks for, if it is more than another name.
    pub(crate) fn of(definition: &Value) -> Option<Arc<Self>> {
        let conversion = definition.pointer("/spec/conversion")?;
        if conversion.get("strategy") != Some(&json!("Webhook")) {
            return None;
        }
        let webhook = conversion.get("webhook")?;
        let reviews = webhook.get("conversionReviewVersions").and_then(Value::as_array);
        let reviews = reviews.into_iter().flatten().filter_map(Value::as_str);
        Some(Arc::new(Self {
            client: webhook.get("clientConfig").cloned().unwrap_or_default(),
            reviews: reviews.map(str::to_owned).collect(),
            known: Mutex::default(),
        }))
    }

    /// What is known of a source in a version.
    pub(crate) fn known(&self, source: &Source, version: &str) -> Option<Arc<Value>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.answers.get(&(source.clone(), version.to_owned()))?.upgrade()
    }

    /// Remembers an object, at least as long as the result is held.
    pub(crate) fn remember(&self, source: Source, version: &str, object: Value) -> Arc<Value> {
        let object = Arc::new(object);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.answers.insert((source, version.to_owned()), Arc::downgrade(&object));
        known.newest.push_back(Arc::clone(&object));
        if known.newest.len() > KNOWN_MAX {
            known.newest.pop_front();
        }
        if known.answers.len() >= known.swept.max(KNOWN_MAX).saturating_mul(2) {
            known.answers.retain(|_, object| object.strong_count() > 0);
            known.swept = known.answers.len();
        }
        object
    }

    /// Brings entries to a version, as many at once as one call may hold, and remembers them.
    pub(crate) async fn convert_all(
        &self,
        server: &Server,
        entries: Vec<(Source, usize, Value)>,
        version: &str,
    ) -> Result<Held, Failure> {
        let mut held = Vec::with_capacity(entries.len());
        let mut entries = entries.into_iter().peekable();
        while entries.peek().is_some() {
            let (mut sources, mut objects, mut bytes) = (Vec::new(), Vec::new(), 0_usize);
            while let Some((source, size, object)) = entries.next_if(|(_, size, _)| {
                let fits = bytes.saturating_add(*size) <= BYTES_MAX;
                objects.is_empty() || (objects.len() < OBJECTS_MAX && fits)
            }) {
                bytes = bytes.saturating_add(size);
                sources.push(source);
                objects.push(object);
            }
            let converted = self.convert(server, objects, version).await?;
            for (source, object) in sources.into_iter().zip(converted) {
                held.push(self.remember(source, version, object));
            }
        }
        Ok(held)
    }

    /// Brings objects to a version, those that are in another.
    pub(crate) async fn convert(
        &self,
        server: &Server,
        objects: Vec<Value>,
        version: &str,
    ) -> Result<Vec<Value>, Failure> {
        let other = |object: &&Value| object.get("apiVersion") != Some(&json!(version));
        let asked: Vec<Value> = objects.iter().filter(other).cloned().collect();
        let Some(first) = asked.first() else { return Ok(objects) };
        let from = described(first);
        let answer = self.ask(server, &asked, version).await;
        let answer = answer.map_err(|why| {
            Failure::new(500, "", format!("conversion webhook for {from} failed: {why}"))
        })?;
        if answer.len() != asked.len() {
            let message = format!(
                "conversion webhook for {from} returned {} objects, expected {}",
                answer.len(),
                asked.len()
            );
            return Err(Failure::new(500, "", message));
        }
        let mut answer = answer.into_iter().enumerate();
        let mut out = Vec::with_capacity(objects.len());
        for object in objects {
            if !other(&&object) {
                out.push(object);
                continue;
            }
            let Some((at, converted)) = answer.next() else { break };
            let converted = restored(&object, converted, version)
                .map_err(|fault| Failure::new(500, "", fault.sentence(&from, at)))?;
            out.push(converted);
        }
        Ok(out)
    }

    async fn ask(
        &self,
        server: &Server,
        objects: &[Value],
        version: &str,
    ) -> Result<Vec<Value>, String> {
        let known = ["v1", "v1beta1"];
        let review = self.reviews.iter().find(|review| known.contains(&review.as_str()));
        let Some(review) = review else {
            return Err("no supported conversion review versions".to_owned());
        };
        let uid = crate::world::uid(server.world.as_ref());
        let question = json!({
            "kind": "ConversionReview",
            "apiVersion": format!("apiextensions.k8s.io/{review}"),
            "request": {"uid": uid, "desiredAPIVersion": version, "objects": objects},
            "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
        });
        let outbound = server.world.outbound();
        // Upstream's client gives its time limit along.
        let answer =
            outbound::review(outbound, &self.client, &question, TIMEOUT, "timeout=30s").await?;
        read(&answer, &uid, review)
    }
}

/// The converted objects, or why there are none.
fn read(answer: &Value, uid: &str, review: &str) -> Result<Vec<Value>, String> {
    let text = |value: &Value, pointer: &str| {
        value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (version, kind) = (text(answer, "/apiVersion"), text(answer, "/kind"));
    let wanted = format!("apiextensions.k8s.io/{review}");
    if version != wanted || kind != "ConversionReview" {
        return Err(format!(
            "expected webhook response of {wanted}, Kind=ConversionReview, got {version}, Kind={kind}"
        ));
    }
    let Some(response) = answer.get("response").filter(|response| response.is_object()) else {
        return Err("no response provided".to_owned());
    };
    let said = text(response, "/uid");
    if said != uid {
        return Err(format!("expected response.uid={uid:?}, got {said:?}"));
    }
    let status = text(response, "/result/status");
    if status != "Success" {
        let message = text(response, "/result/message");
        if message.is_empty() {
            return Err(format!("response.result.status was '{status}', not 'Success'"));
        }
        return Err(message);
    }
    let objects = response.get("convertedObjects").and_then(Value::as_array);
    Ok(objects.cloned().unwrap_or_default())
}

/// `example.org/v1, Kind=Widget`.
fn described(object: &Value) -> String {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    format!("{}, Kind={}", text("apiVersion"), text("kind"))
}

/// What is wrong with a converted object.
enum Fault {
    /// It is not what was asked for.
    Index(String),
    /// It is not the same object any more.
    Object(String),
    /// Its metadata is broken.
    Metadata(String),
}

impl Fault {
    fn sentence(&self, from: &str, at: usize) -> String {
        match self {
            Self::Index(why) => format!(
                "conversion webhook for {from} returned invalid object at index {at}: {why}"
            ),
            Self::Object(why) => {
                format!("conversion webhook for {from} returned invalid object: {why}")
            }
            Self::Metadata(why) => {
                format!("conversion webhook for {from} returned invalid metadata: {why}")
            }
        }
    }
}

/// A converted object with the metadata of the original; only labels and annotations may
/// differ.
fn restored(original: &Value, mut converted: Value, version: &str) -> Result<Value, Fault> {
    let text = |object: &Value, field: &str| {
        object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let said = text(&converted, "apiVersion");
    if said != version {
        return Err(Fault::Index(format!(
            "invalid groupVersion (expected {version}, received {said})"
        )));
    }
    let (expected, said) = (text(original, "kind"), text(&converted, "kind"));
    if expected != said {
        return Err(Fault::Index(format!("invalid kind (expected {expected}, received {said})")));
    }
    for (field, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (before, after) = (meta_text(original, field), meta_text(&converted, field));
        if before != after {
            return Err(Fault::Object(format!("must have the same {name}: {before} != {after}")));
        }
    }
    let Some(Value::Object(said)) = converted.get("metadata").cloned() else {
        return Err(Fault::Metadata("missing metadata in converted object".to_owned()));
    };
    let mut metadata = original.get("metadata").cloned().unwrap_or_else(|| json!({}));
    let Value::Object(kept) = &mut metadata else {
        return Err(Fault::Metadata("invalid metadata in input object".to_owned()));
    };
    for field in ["labels", "annotations"] {
        match said.get(field) {
            None | Some(Value::Null) => {
                kept.shift_remove(field);
            }
            Some(Value::Object(map)) => {
                if let Some((key, _)) = map.iter().find(|(_, value)| !value.is_string()) {
                    return Err(Fault::Metadata(format!(
                        "metadata.{field}[{key}] must be a string in converted object"
                    )));
                }
                kept.insert(field.to_owned(), json!(map));
            }
            Some(_) => {
                return Err(Fault::Metadata(format!(
                    "invalid metadata.{field} in converted object"
                )));
            }
        }
    }
    converted["metadata"] = metadata;
    Ok(converted)
}
