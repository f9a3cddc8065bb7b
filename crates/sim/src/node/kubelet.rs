//! The kubelet: makes what runs on the machine what Pods say, and says in Pods what runs. What it knows is
//! gone when it dies.

use super::NODE;
use super::machine::SharedMachine;
use super::status::describe_status;
use crate::laws::is_going;
use crate::picture::text;
use futures::StreamExt as _;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// Between two signs of life.
const HEARTBEAT: Duration = Duration::from_secs(60);
/// After something was refused.
const SOON: Duration = Duration::from_secs(2);
/// After a sign of life was refused, or a watch ended. The pause is always the same, so that a schedule
/// means the same each time.
const PAUSE: Duration = Duration::from_secs(15);
/// How long a program has to end, if nothing says.
const GRACE: u64 = 30;

/// The pause of a watch.
struct SamePause;

impl Iterator for SamePause {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(PAUSE)
    }
}

impl Backoff for SamePause {
    fn reset(&mut self) {}
}

/// A kubelet at work.
pub(super) struct PlayedKubelet {
    client: Client,
    machine: SharedMachine,
    /// By uid; nothing before the first list is whole.
    pods: BTreeMap<String, Json>,
    is_listed: bool,
    listed: BTreeSet<String>,
    /// What was said last of pods.
    said: BTreeMap<String, Json>,
    is_registered: bool,
    next_beat: Instant,
}

impl PlayedKubelet {
    pub(super) fn new(client: Client, machine: SharedMachine) -> Self {
        Self {
            client,
            machine,
            pods: BTreeMap::new(),
            is_listed: false,
            listed: BTreeSet::new(),
            said: BTreeMap::new(),
            is_registered: false,
            next_beat: Instant::now(),
        }
    }

    fn api_of(&self, kind: (&str, &str, &str), namespace: Option<&str>) -> Api<DynamicObject> {
        let (group, version, kind) = kind;
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// Runs pods until it is killed.
    pub(super) async fn run_pods(mut self) {
        self.machine.power_on();
        self.next_beat = Instant::now();
        let mine = Config::default().fields(&format!("spec.nodeName={NODE}"));
        let pods = self.api_of(("", "v1", "Pod"), None);
        let mut news = watcher(pods, mine).backoff(SamePause).boxed();
        let machine = self.machine.clone();
        loop {
            let wake = self.look_around().await;
            tokio::select! {
                biased;
                Some(one) = news.next() => self.take_news(one),
                () = machine.hear_change() => {}
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    fn take_news(&mut self, news: Result<Event<DynamicObject>, watcher::Error>) {
        match news {
            Ok(Event::Init) => self.listed.clear(),
            Ok(Event::InitApply(pod)) => {
                self.listed.extend(pod.metadata.uid.clone());
                self.keep_pod(&pod);
            }
            Ok(Event::InitDone) => {
                self.is_listed = true;
                let listed = std::mem::take(&mut self.listed);
                self.pods.retain(|uid, _| listed.contains(uid));
            }
            Ok(Event::Apply(pod)) => self.keep_pod(&pod),
            Ok(Event::Delete(pod)) => {
                self.pods.remove(pod.metadata.uid.as_deref().unwrap_or_default());
            }
            // The watcher tries again by itself.
            Err(_) => {}
        }
    }

    fn keep_pod(&mut self, pod: &DynamicObject) {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let mut kept = json!(pod);
        kept["kind"] = json!("Pod");
        self.pods.insert(uid, kept);
    }

    /// Does what there is to do, and says when to look again.
    async fn look_around(&mut self) -> Instant {
        let now = Instant::now();
        if now >= self.next_beat {
            let is_heard = self.send_heartbeat().await;
            self.next_beat = now + if is_heard { HEARTBEAT } else { PAUSE };
        }
        let mut wake = self.next_beat;
        if !self.is_listed {
            return wake;
        }
        for (uid, pod) in self.pods.clone() {
            if !self.step_pod(&uid, &pod).await {
                wake = wake.min(Instant::now() + SOON);
            }
        }
        self.machine.keep_only(|uid| self.pods.contains_key(uid));
        match self.machine.next_change() {
            Some(seconds) => wake.min(Instant::now() + Duration::from_secs(seconds)),
            None => wake,
        }
    }

    /// Brings a pod one step on; says whether the API server did what was asked.
    async fn step_pod(&mut self, uid: &str, pod: &Json) -> bool {
        if is_going(pod) {
            let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap_or(GRACE);
            if !self.machine.end_program(uid, grace) {
                return self.report_pod(uid, pod).await;
            }
            return self.report_pod(uid, pod).await && self.remove_pod(uid, pod).await;
        }
        let is_over = ["Succeeded", "Failed"].contains(&text(&pod["status"], "phase"));
        if is_over && self.machine.program_of(uid).is_none() {
            return true;
        }
        self.machine.run_program(uid, pod);
        self.report_pod(uid, pod).await
    }

    /// Says how a pod is, if that is not what was said last.
    async fn report_pod(&mut self, uid: &str, pod: &Json) -> bool {
        let Some(program) = self.machine.program_of(uid) else { return true };
        let status = describe_status(&program);
        if self.said.get(uid) == Some(&status) {
            return true;
        }
        let metadata = &pod["metadata"];
        let api = self.api_of(("", "v1", "Pod"), Some(text(metadata, "namespace")));
        let patch = json!({"metadata": {"uid": uid}, "status": status});
        let patch = Patch::Strategic(&patch);
        match api.patch_status(text(metadata, "name"), &PatchParams::default(), &patch).await {
            Ok(_) => {
                self.said.insert(uid.to_owned(), status);
                true
            }
            // Of a pod that is gone the watch tells.
            Err(_) => false,
        }
    }

    /// Removes the object of a pod of which nothing runs any more.
    async fn remove_pod(&mut self, uid: &str, pod: &Json) -> bool {
        let metadata = &pod["metadata"];
        let api = self.api_of(("", "v1", "Pod"), Some(text(metadata, "namespace")));
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let parameters = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        let name = text(metadata, "name");
        let is_gone = match api.delete(name, &parameters).await {
            Ok(_) => true,
            Err(kube::Error::Api(refusal)) if [404, 409].contains(&refusal.code) => {
                let found = api.get_opt(name).await;
                found
                    .is_ok_and(|one| one.is_none_or(|one| one.metadata.uid.as_deref() != Some(uid)))
            }
            Err(_) => false,
        };
        if is_gone {
            self.pods.remove(uid);
            self.said.remove(uid);
        }
        is_gone
    }

    /// Says that the node is there: once with all it can do, and then in a lease.
    async fn send_heartbeat(&mut self) -> bool {
        if !self.is_registered {
            self.is_registered = self.register_node().await.is_ok();
        }
        self.is_registered && self.renew_lease().await.is_ok()
    }

    async fn register_node(&self) -> Result<(), kube::Error> {
        let nodes = self.api_of(("", "v1", "Node"), None);
        if nodes.get_opt(NODE).await?.is_none() {
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}});
            let node = serde_json::from_value(node).map_err(kube::Error::SerdeError)?;
            nodes.create(&PostParams::default(), &node).await?;
        }
        let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady"});
        let patch = json!({"status": {"conditions": [ready], "allocatable": {"pods": "10"}}});
        let patch = Patch::Merge(&patch);
        nodes.patch_status(NODE, &PatchParams::default(), &patch).await.map(drop)
    }

    async fn renew_lease(&self) -> Result<(), kube::Error> {
        let kind = ("coordination.k8s.io", "v1", "Lease");
        let leases = self.api_of(kind, Some("kube-node-lease"));
        let renewed = json!({"spec": {"holderIdentity": NODE, "leaseDurationSeconds": 120}});
        let patch = Patch::Merge(&renewed);
        match leases.patch(NODE, &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(refusal)) if refusal.code == 404 => {
                let lease = json!({
                    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                    "metadata": {"name": NODE}, "spec": renewed["spec"],
                });
                let lease = serde_json::from_value(lease).map_err(kube::Error::SerdeError)?;
                leases.create(&PostParams::default(), &lease).await.map(drop)
            }
            other => other.map(drop),
        }
    }
}
