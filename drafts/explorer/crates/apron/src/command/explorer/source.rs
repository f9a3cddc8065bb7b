//! A control plane for the explorer, read from its API server with the rights of a kubeconfig.

use crate::cluster::inventory::Inventory;
use crate::cluster::{Cluster, Resource};
use crate::command::status;
use ::explorer::plane::{PlaneEvent, PlaneReport, PlaneSource};
use async_trait::async_trait;
use serde_json::Value as Json;
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

/// Events that are kept of what an API server has.
const EVENTS_MAX: usize = 200;

/// A cluster that may come up after its pages do.
#[derive(Clone)]
pub(crate) struct ClusterSource {
    cluster: Arc<OnceLock<Cluster>>,
    stop: watch::Receiver<bool>,
}

impl ClusterSource {
    /// A source without a cluster yet, until it is told to stop.
    pub(crate) fn new(stop: watch::Receiver<bool>) -> Self {
        Self { cluster: Arc::default(), stop }
    }

    /// Shows this cluster from now on.
    pub(crate) fn set_cluster(&self, cluster: Cluster) {
        let _ = self.cluster.set(cluster);
    }
}

#[async_trait]
impl PlaneSource for ClusterSource {
    async fn read_report(&self) -> Result<PlaneReport, String> {
        let cluster = self.cluster.get().ok_or("the API server is not up yet")?;
        let inventory = Inventory::gather(cluster).await.map_err(|failure| failure.message)?;
        // Events are there for people; a kubeconfig that may not read them shows the rest.
        let events = cluster.list::<Json>(&Resource::core_of_cluster("events")).await;
        let events = events.ok().flatten().unwrap_or_default();
        Ok(PlaneReport {
            packages: status::report_packages(&inventory),
            events: list_events(events, &cluster.group),
        })
    }

    fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }
}

/// Events about packages and their revisions, the last first.
fn list_events(events: Vec<Json>, group: &str) -> Vec<PlaneEvent> {
    let mut told: Vec<PlaneEvent> =
        events.iter().filter(|event| is_about(event, group)).map(read_event).collect();
    told.sort_by(|one, other| other.time.cmp(&one.time).then_with(|| one.object.cmp(&other.object)));
    told.truncate(EVENTS_MAX);
    told
}

fn is_about(event: &Json, group: &str) -> bool {
    let version = event["involvedObject"]["apiVersion"].as_str().unwrap_or_default();
    version.split_once('/').is_some_and(|(of, _)| of == group)
}

fn read_event(event: &Json) -> PlaneEvent {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let object = &event["involvedObject"];
    let times = [
        &event["lastTimestamp"],
        &event["series"]["lastObservedTime"],
        &event["eventTime"],
        &event["metadata"]["creationTimestamp"],
    ];
    PlaneEvent {
        time: times.into_iter().find_map(Json::as_str).unwrap_or_default().to_owned(),
        severity: text(&event["type"]),
        object: format!("{} {}", text(&object["kind"]), text(&object["name"])),
        reason: text(&event["reason"]),
        message: text(&event["message"]),
        count: event["count"].as_u64().unwrap_or(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_events_of_packages_are_told_the_last_first() {
        let event = |group: &str, name: &str, time: &str| {
            json!({"involvedObject": {"apiVersion": format!("{group}/v1"), "kind": "Provider", "name": name},
                   "type": "Normal", "reason": "Installed", "message": "m", "lastTimestamp": time})
        };
        let events = vec![
            event("pkg.crossplane.io", "a", "2026-01-01T00:00:00Z"),
            event("apps", "b", "2026-01-02T00:00:00Z"),
            event("pkg.crossplane.io", "c", "2026-01-03T00:00:00Z"),
            json!({"involvedObject": {"apiVersion": "v1"}}),
            json!(null),
        ];
        let told = list_events(events, "pkg.crossplane.io");
        let names: Vec<&str> = told.iter().map(|event| event.object.as_str()).collect();
        assert_eq!(names, ["Provider c", "Provider a"]);
    }
}
