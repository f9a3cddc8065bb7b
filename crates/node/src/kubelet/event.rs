//! Events on pods, counted if they repeat, written beside the work.

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use std::collections::HashMap;
use tokio::sync::mpsc;

/// Events that wait to be written; more are dropped, as they may be.
const WAITING_MAX: usize = 512;
/// Events whose repetitions are counted.
const COUNTED_MAX: usize = 4_096;

/// Writes events.
#[derive(Clone)]
pub(crate) struct EventRecorder {
    sender: mpsc::Sender<PodEvent>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct EventKey {
    uid: String,
    field: Option<String>,
    reason: &'static str,
    message: String,
}

struct PodEvent {
    object: ObjectReference,
    key: EventKey,
    is_warning: bool,
    at: Timestamp,
}

impl EventRecorder {
    /// Starts the writer.
    pub(crate) fn start(client: Client, node: &str) -> Self {
        let (sender, waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(write_events(client, node.to_owned(), waiting));
        Self { sender }
    }

    /// Says something about a pod or, with its name and field, about a container of it.
    pub(crate) fn record(
        &self,
        pod: &Pod,
        container: Option<(&str, bool)>,
        (reason, is_warning): (&'static str, bool),
        message: String,
    ) {
        let meta = &pod.metadata;
        let field = container.map(|(name, is_first)| {
            let list = if is_first { "initContainers" } else { "containers" };
            format!("spec.{list}{{{name}}}")
        });
        let object = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: meta.name.clone(),
            namespace: meta.namespace.clone(),
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            field_path: field.clone(),
        };
        let uid = meta.uid.clone().unwrap_or_default();
        let key = EventKey { uid, field, reason, message };
        let _ = self.sender.try_send(PodEvent { object, key, is_warning, at: Timestamp::now() });
    }
}

async fn write_events(client: Client, node: String, mut waiting: mpsc::Receiver<PodEvent>) {
    let mut written: HashMap<EventKey, (String, i32)> = HashMap::new();
    while let Some(event) = waiting.recv().await {
        let namespace = event.object.namespace.clone().unwrap_or_default();
        let api: Api<Event> = Api::namespaced(client.clone(), &namespace);
        if let Some((name, count)) = written.get_mut(&event.key) {
            let repeated = count.saturating_add(1);
            let patch = json!({"count": repeated, "lastTimestamp": Time(event.at)});
            if api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.is_ok() {
                *count = repeated;
                continue;
            }
        }
        let made = describe_event(&event, &node);
        let name = made.metadata.name.clone().unwrap_or_default();
        if api.create(&PostParams::default(), &made).await.is_ok() {
            if written.len() >= COUNTED_MAX {
                written.clear();
            }
            written.insert(event.key, (name, 1));
        }
    }
}

fn describe_event(event: &PodEvent, node: &str) -> Event {
    let pod = event.object.name.clone().unwrap_or_default();
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{pod}.{:x}", event.at.as_nanosecond())),
            namespace: event.object.namespace.clone(),
            ..ObjectMeta::default()
        },
        involved_object: event.object.clone(),
        reason: Some(event.key.reason.to_owned()),
        message: Some(event.key.message.clone()),
        type_: Some(if event.is_warning { "Warning" } else { "Normal" }.to_owned()),
        count: Some(1),
        first_timestamp: Some(Time(event.at)),
        last_timestamp: Some(Time(event.at)),
        source: Some(EventSource {
            component: Some("kubelet".to_owned()),
            host: Some(node.to_owned()),
        }),
        reporting_component: Some("kubelet".to_owned()),
        reporting_instance: Some(node.to_owned()),
        ..Event::default()
    }
}
