//! A worker: everything for one pod, one thing after the other.

use super::Station;
use super::ending::Ending;
use super::pull::{Fetched, PullFailure};
use super::services::describe_live;
use super::source::HeldTokens;
use crate::image::PulledImage;
use crate::pod::actions::next_actions;
use crate::pod::change::follow_spec;
use crate::pod::probing::{ProbeKind, ProbeTally};
use crate::pod::record::PodRecord;
use crate::pod::status::{SIMULATED, is_ready, make_status};
use crate::pod::{PodSources, PodSurroundings, is_label};
use crate::protocol::{ContainerName, VolumeFile};
use crate::sandbox::NodeHandle;
use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Conditions that only this node writes.
const OWN_CONDITIONS: [&str; 5] =
    ["PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready", SIMULATED];
/// How often it is looked whether what volumes are made of is different.
const REFRESH: Duration = Duration::from_secs(30);
/// The pause after something was refused that is not the pod's fault.
const RETRY: SignedDuration = SignedDuration::from_secs(1);
/// How long a node may take for what is a moment's work.
pub(super) const MOMENT: Duration = Duration::from_secs(60);

/// What a worker is told.
#[derive(Debug)]
pub(crate) enum PodNotice {
    /// The object is different.
    Changed(Box<Pod>),
    /// The object is gone.
    Gone,
    /// Something may be different.
    Look,
    /// A container's program ended.
    Exited {
        /// Which one.
        container: ContainerName,
        /// Its exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// Whether it used too much memory.
        out_of_memory: bool,
        /// What it said of its end.
        message: Option<String>,
    },
    /// A probe was answered.
    Probed {
        /// Which container's.
        container: ContainerName,
        /// Which one.
        kind: ProbeKind,
        /// Why it failed, if it did.
        failure: Option<String>,
    },
    /// An image was fetched, or could not be.
    Pulled {
        /// For which container.
        container: String,
        /// What came of it.
        result: Result<FetchedNotice, PullFailure>,
    },
}

/// An image that came, and how long that took.
pub(crate) struct FetchedNotice {
    pub(crate) fetched: Fetched,
    pub(crate) took: Duration,
}

impl std::fmt::Debug for FetchedNotice {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "an image after {:?}", self.took)
    }
}

/// The worker of a pod.
pub(crate) struct PodWorker {
    pub(super) station: Arc<Station>,
    pub(super) pod: Pod,
    pub(super) record: PodRecord,
    pub(super) mailbox: mpsc::UnboundedSender<PodNotice>,
    notices: mpsc::UnboundedReceiver<PodNotice>,
    /// The node that has its namespaces.
    pub(super) node_number: Option<u64>,
    /// Whether a node was asked for them, and may have made them late or in part.
    pub(super) was_asked: bool,
    /// Its address, which it has from the first try to its end.
    pub(super) address: Option<Ipv4Addr>,
    /// What its volumes are, as the node was told.
    pub(super) volumes: BTreeMap<String, Vec<VolumeFile>>,
    pub(super) sources: PodSources,
    pub(super) tokens: HeldTokens,
    /// Images for the next start of containers.
    pub(super) images: BTreeMap<String, PulledImage>,
    /// Images that run; kept as long as this has them.
    pub(super) in_use: BTreeMap<String, PulledImage>,
    /// Tasks that ask or stop a container, ended with its run.
    pub(super) tasks: BTreeMap<String, Vec<AbortHandle>>,
    pub(super) pulls: Vec<AbortHandle>,
    pub(super) tallies: BTreeMap<(String, ProbeKind), ProbeTally>,
    /// Containers that were told to end.
    pub(super) stopping: std::collections::BTreeSet<String>,
    pub(super) ending: Option<Ending>,
    /// When what volumes are made of was looked at.
    pub(super) refreshed: Option<Instant>,
    /// How often volumes could not be made.
    pub(super) mount_failures: u32,
    /// The status as it was written last.
    written: Option<Value>,
    pub(super) is_gone: bool,
}

impl PodWorker {
    /// A worker for a pod of which this node may have run something in an earlier life.
    pub(crate) fn new(
        station: Arc<Station>,
        pod: Pod,
        mailbox: mpsc::UnboundedSender<PodNotice>,
        notices: mpsc::UnboundedReceiver<PodNotice>,
    ) -> Self {
        let now = Timestamp::now();
        let mut record = PodRecord::resume(&pod, now);
        record.started.get_or_insert(now);
        Self {
            station,
            pod,
            record,
            mailbox,
            notices,
            node_number: None,
            was_asked: false,
            address: None,
            volumes: BTreeMap::new(),
            sources: PodSources::default(),
            tokens: HeldTokens::new(),
            images: BTreeMap::new(),
            in_use: BTreeMap::new(),
            tasks: BTreeMap::new(),
            pulls: Vec::new(),
            tallies: BTreeMap::new(),
            stopping: std::collections::BTreeSet::new(),
            ending: None,
            refreshed: None,
            mount_failures: 0,
            written: None,
            is_gone: false,
        }
    }

    /// Works until the pod is gone.
    pub(crate) async fn run(mut self) {
        loop {
            let wake = self.take_step().await;
            if self.is_gone {
                break;
            }
            let refresh = Instant::now() + REFRESH;
            let wake = wake.map_or(refresh, |at| refresh.min(Instant::now() + until(at)));
            tokio::select! {
                notice = self.notices.recv() => match notice {
                    Some(notice) => self.take_notice(notice),
                    None => break,
                },
                () = tokio::time::sleep_until(wake) => {}
            }
            while let Ok(notice) = self.notices.try_recv() {
                self.take_notice(notice);
            }
        }
        self.leave().await;
    }

    /// Takes in what others said of the pod. News may be older than what this worker wrote of it.
    fn take_object(&mut self, pod: Pod) {
        let before = std::mem::replace(&mut self.pod, pod);
        if let Some(first) = &before.spec {
            let told = self.pod.spec.as_ref().unwrap_or(first);
            self.pod.spec = Some(follow_spec(first, told));
        }
        let (Some(_), Some(mut own)) = (&self.written, before.status) else { return };
        let is_own = |kind: &str| OWN_CONDITIONS.contains(&kind);
        let told = self.pod.status.take().and_then(|status| status.conditions);
        let mut conditions = own.conditions.take().unwrap_or_default();
        conditions.retain(|one| is_own(&one.type_));
        let others = told.into_iter().flatten().filter(|one| !is_own(&one.type_));
        own.conditions = Some(others.chain(conditions).collect());
        self.pod.status = Some(own);
    }

    fn take_notice(&mut self, notice: PodNotice) {
        match notice {
            PodNotice::Changed(pod) => self.take_object(*pod),
            PodNotice::Gone => self.is_gone = true,
            PodNotice::Look => {}
            PodNotice::Exited { container, code, signal, out_of_memory, message } => {
                self.note_exit(&container, (code, signal), out_of_memory, message);
            }
            PodNotice::Probed { container, kind, failure } => {
                self.note_probe(&container, kind, failure.as_deref());
            }
            PodNotice::Pulled { container, result } => self.note_pull(&container, result),
        }
    }

    /// Does what is to be done now, and says when to look again.
    async fn take_step(&mut self) -> Option<Timestamp> {
        let spec = self.pod.spec.clone()?;
        if self.station.is_stopping() && !self.record.has_running() {
            self.is_gone = true;
            return None;
        }
        if self.was_over_before() && self.pod.metadata.deletion_timestamp.is_none() {
            return None;
        }
        let node = self.present_node(&spec);
        if self.pod.metadata.deletion_timestamp.is_some() || self.station.is_stopping() {
            return self.step_ending(&spec, node.as_ref()).await;
        }
        let Some(node) = node else {
            self.report().await;
            return None;
        };
        let mut actions = next_actions(&spec, &mut self.record, Timestamp::now());
        for name in &actions.stop {
            self.stop_container(&spec, name, None);
        }
        if actions.is_over {
            self.close_sandbox(Some(&node)).await;
        } else if let Err(retry) = self.prepare_sandbox(&spec, &node).await {
            actions.start.clear();
            actions.wake = Some(actions.wake.map_or(retry, |at| at.min(retry)));
        }
        for name in &actions.start {
            self.begin_container(&spec, name, &node).await;
        }
        if !actions.start.is_empty() {
            let after = next_actions(&spec, &mut self.record, Timestamp::now());
            actions.wake = after.wake;
            // What can be started at once is started in the next step.
            if !after.start.is_empty() {
                let _ = self.mailbox.send(PodNotice::Look);
            }
        }
        if !self.report().await {
            let retry = later(RETRY);
            actions.wake = Some(actions.wake.map_or(retry, |at| at.min(retry)));
        }
        actions.wake
    }

    /// Whether the pod had ended for good when this worker began: what it says then stays.
    fn was_over_before(&self) -> bool {
        let phase = self.pod.status.as_ref().and_then(|status| status.phase.as_deref());
        self.node_number.is_none() && matches!(phase, Some("Succeeded" | "Failed"))
    }

    /// The node, and whether it is still the one that has the pod.
    fn present_node(&mut self, spec: &PodSpec) -> Option<NodeHandle> {
        let present = self.station.machine.present();
        let number = present.as_ref().map(|(number, _)| *number);
        if self.node_number.is_some() && self.node_number != number {
            self.record.lose_sandbox(spec, Timestamp::now());
            self.end_tasks();
            self.node_number = None;
            self.was_asked = false;
            self.volumes.clear();
            self.refreshed = None;
            self.stopping.clear();
            let host = self.station.settings.host_address;
            let status = make_status(&self.pod, &self.record, host, Timestamp::now());
            self.show_to_services(&status);
        }
        present.map(|(_, node)| node)
    }

    /// Ends all tasks of containers.
    pub(super) fn end_tasks(&mut self) {
        for task in std::mem::take(&mut self.tasks).into_values().flatten() {
            task.abort();
        }
        self.tallies.clear();
    }

    /// What the pod is told of the machine.
    pub(super) fn surroundings(&self, address: Ipv4Addr) -> PodSurroundings {
        let settings = &self.station.settings;
        PodSurroundings {
            node_name: settings.node_name.clone(),
            host_address: settings.host_address,
            address,
            api: settings.config.api,
            cpu_milli: settings.cpu_milli,
            memory: settings.memory,
        }
    }

    /// Warns in an event.
    pub(super) fn warn(&self, container: Option<&str>, reason: &'static str, message: String) {
        let container = container.map(|name| (name, self.is_first(name)));
        self.station.events.record(&self.pod, container, (reason, true), message);
    }

    /// Says something of a container in an event.
    pub(super) fn say_of(&self, container: &str, reason: &'static str, message: String) {
        let container = Some((container, self.is_first(container)));
        self.station.events.record(&self.pod, container, (reason, false), message);
    }

    /// Whether a container is one that is started before the others.
    pub(super) fn is_first(&self, name: &str) -> bool {
        let first = self.pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
        first.into_iter().any(|one| one.name == name)
    }

    /// The directory of the pod's output.
    pub(super) fn log_directory(&self) -> PathBuf {
        log_directory(&self.station.settings.logs, &self.pod)
    }

    /// Writes the status if it is different from what was written, and tells Services. Says whether it is written.
    pub(super) async fn report(&mut self) -> bool {
        let host = self.station.settings.host_address;
        let status = make_status(&self.pod, &self.record, host, Timestamp::now());
        self.show_to_services(&status);
        let status = explicit(&status);
        if self.written.as_ref() == Some(&status) {
            return true;
        }
        let meta = &self.pod.metadata;
        let namespace = meta.namespace.clone().unwrap_or_default();
        let pods: Api<Pod> = Api::namespaced(self.station.client.clone(), &namespace);
        let name = meta.name.clone().unwrap_or_default();
        let patch = json!({"metadata": {"uid": meta.uid}, "status": own_parts(&status)});
        match pods.patch_status(&name, &PatchParams::default(), &Patch::Strategic(&patch)).await {
            Ok(pod) => {
                // Conditions of others and the times of own ones are taken from there the next time.
                self.pod.status = pod.status;
                self.written = Some(status);
                true
            }
            Err(kube::Error::Api(refusal)) if refusal.code == 404 || refusal.code == 409 => {
                // Gone, or another pod of this name: the watch tells.
                self.written = Some(status);
                true
            }
            Err(_) => false,
        }
    }

    /// Services lead to a pod that is ready by all that decides about it: sidecars and conditions of others, too.
    fn show_to_services(&self, status: &PodStatus) {
        let uid = self.pod.metadata.uid.clone().unwrap_or_default();
        let is_ending = self.record.is_ending || self.pod.metadata.deletion_timestamp.is_some();
        let live = self.record.address.filter(|_| !is_ending && self.record.has_running());
        let live = live.map(|address| describe_live(&self.pod, address, is_ready(status)));
        self.station.services.set_pod(&uid, live);
    }
}

/// Where the output of a pod is, below the directory of all.
pub(super) fn log_directory(logs: &std::path::Path, pod: &Pod) -> PathBuf {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let meta = &pod.metadata;
    let (namespace, name, uid) = (text(&meta.namespace), text(&meta.name), text(&meta.uid));
    // One directory, whatever an API server lets names be.
    logs.join(format!("{namespace}_{name}_{uid}").replace('/', "_"))
}

/// Where the output of a container's present run is, below the directory of all, or of the one before; nothing, if
/// it was not started so often, or has a name that no container can have.
pub fn locate_log(
    logs: &std::path::Path,
    pod: &Pod,
    container: &str,
    is_previous: bool,
) -> Option<(PathBuf, u32)> {
    let status = pod.status.as_ref().filter(|_| is_label(container))?;
    let first = status.init_container_statuses.iter().flatten();
    let mut all = first.chain(status.container_statuses.iter().flatten());
    let found = all.find(|one| one.name == container)?;
    let present = u32::try_from(found.restart_count).ok()?;
    let waits = found.state.as_ref().is_some_and(|state| state.waiting.is_some());
    // A container that waits to be started again has ended: that run is the last one, and the present one.
    let attempt = if is_previous && !waits { present.checked_sub(1)? } else { present };
    Some((log_directory(logs, pod).join(container), attempt))
}

/// A status in which what is not said takes away what was said before.
fn explicit(status: &PodStatus) -> Value {
    let mut told = json!(status);
    if let Some(fields) = told.as_object_mut() {
        for name in ["podIP", "podIPs", "reason", "message", "initContainerStatuses"] {
            fields.entry(name).or_insert(Value::Null);
        }
    }
    told
}

/// What a strategic merge patch says of a status: conditions of others stay as they are, be they older or newer than what
/// this node knows of them, own ones lose what they do not say any more, and addresses replace those before.
fn own_parts(status: &Value) -> Value {
    let mut told = status.clone();
    let Some(fields) = told.as_object_mut() else { return told };
    if let Some(conditions) = fields.get_mut("conditions").and_then(Value::as_array_mut) {
        conditions.retain(|one| {
            let kind = one.get("type").and_then(Value::as_str).unwrap_or_default();
            OWN_CONDITIONS.contains(&kind) || kind == "PodScheduled"
        });
        for one in conditions.iter_mut().filter_map(Value::as_object_mut) {
            for name in ["reason", "message"] {
                one.entry(name).or_insert(Value::Null);
            }
        }
    }
    if let Some(addresses) = fields.get_mut("podIPs").and_then(Value::as_array_mut) {
        addresses.insert(0, json!({"$patch": "replace"}));
    }
    told
}

/// How long it is until then.
pub(super) fn until(at: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default()
}

/// So much later than now.
pub(super) fn later(span: SignedDuration) -> Timestamp {
    let now = Timestamp::now();
    now.checked_add(span).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started_pod(container: &str) -> Pod {
        let value = json!({
            "metadata": {"namespace": "n", "name": "p", "uid": "u"},
            "status": {"containerStatuses": [{"name": container, "restartCount": 2,
                "image": "i", "imageID": "", "ready": true, "state": {"running": {}}}]},
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_log_is_found_below_the_directory_of_logs_and_nowhere_else() {
        let logs = std::path::Path::new("/logs");
        let found = locate_log(logs, &started_pod("c"), "c", false);
        assert_eq!(found, Some((logs.join("n_p_u/c"), 2)));
        for name in ["/etc", "..", "../../other", "c/../.."] {
            assert_eq!(locate_log(logs, &started_pod(name), name, false), None, "{name}");
        }
        let mut odd = started_pod("c");
        odd.metadata.name = Some("../../p".to_owned());
        let (directory, _) = locate_log(logs, &odd, "c", true).unwrap();
        assert_eq!(directory, logs.join("n_.._.._p_u/c"));
    }

    #[test]
    fn conditions_of_others_are_not_written_and_own_ones_keep_nothing_old() {
        let status = json!({
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "example.org/gate", "status": "False", "reason": "Old"},
            ],
            "podIPs": [{"ip": "10.244.0.7"}],
        });
        assert_eq!(
            own_parts(&status),
            json!({
                "conditions": [
                    {"type": "Ready", "status": "True", "reason": null, "message": null},
                ],
                "podIPs": [{"$patch": "replace"}, {"ip": "10.244.0.7"}],
            })
        );
        let none = json!({"podIPs": null});
        assert_eq!(own_parts(&none), none);
    }
}
