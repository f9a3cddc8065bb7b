//! A control plane as values: what is installed, how it is, and what happened to it.
//!
//! The shell gathers them with the rights of a kubeconfig; `apron status` prints the same values, so that
//! a page and a terminal never differ in a word.

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value as Json;

/// Events that are kept of those an API server has.
const EVENTS_MAX: usize = 200;

/// Knows a control plane.
#[async_trait]
pub trait PlaneSource: Send + Sync {
    /// What is so now, or why that cannot be told.
    async fn read_report(&self) -> Result<PlaneReport, PlaneProblem>;

    /// Comes back when pages that wait for news should let go.
    async fn until_stopped(&self);
}

/// Why a control plane cannot be shown, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaneProblem {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// What is installed in a control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaneReport {
    /// What messages call the cluster.
    pub place: String,
    /// The packages, by kind and name.
    pub packages: Vec<PlanePackage>,
    /// Why not every package has what it needs, if that is so.
    pub unresolved: Option<String>,
    /// What happened to them, the last first.
    pub events: Vec<PlaneEvent>,
}

/// Everything there is to say about an installed package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanePackage {
    /// Its kind and name: `provider/harbour`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// `Provider`, `Configuration` or `Function`.
    pub kind: &'static str,
    /// The version that is there.
    pub version: String,
    /// The reference that was asked for.
    pub package: String,
    /// How it is, in a word.
    pub state: &'static str,
    /// Whether that is how it should be.
    #[serde(skip)]
    pub is_well: bool,
    /// The version that waits to be activated instead of the one that is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// What is in the way, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
    /// What is to be known of it although all is well: that it is only simulated, say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// Its revisions, the newest first.
    pub revisions: Vec<PlaneRevision>,
    /// What it needs.
    pub dependencies: Vec<PlaneNeed>,
    /// The packages that need it, by kind and name.
    pub needed_by: Vec<String>,
}

/// A revision of an installed package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlaneRevision {
    /// Its name.
    pub name: String,
    /// Its number.
    pub number: i64,
    /// What it is: active, inactive, not installed.
    pub state: String,
    /// Its version.
    pub version: String,
    /// How many objects it has.
    pub objects: usize,
}

/// Something that an installed package needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlaneNeed {
    /// The repository.
    pub package: String,
    /// The versions that will do.
    pub constraints: String,
    /// The package that is there for it, by kind and name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<String>,
    /// The version of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether that version will do.
    pub satisfied: bool,
    /// Of a kind: why it comes from there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Something that happened to a package or a revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaneEvent {
    /// When, as the API server writes it.
    pub time: String,
    /// Whether it is a warning.
    pub is_warning: bool,
    /// The kind of the object.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// The reason, in a word.
    pub reason: String,
    /// The rest, in a sentence.
    pub message: String,
    /// How often it happened.
    pub count: u64,
}

impl PlaneEvent {
    /// Of an API server's events those about objects of a group, the last first.
    pub fn of_group(events: &[Json], group: &str) -> Vec<Self> {
        let is_about = |event: &&Json| {
            let version = event["involvedObject"]["apiVersion"].as_str().unwrap_or_default();
            version.split_once('/').is_some_and(|(of, _)| of == group)
        };
        let mut told: Vec<Self> = events.iter().filter(is_about).map(Self::from_json).collect();
        told.sort_by(|one, other| {
            other.time.cmp(&one.time).then_with(|| one.name.cmp(&other.name))
        });
        told.truncate(EVENTS_MAX);
        told
    }

    fn from_json(event: &Json) -> Self {
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let times = [
            &event["lastTimestamp"],
            &event["series"]["lastObservedTime"],
            &event["eventTime"],
            &event["metadata"]["creationTimestamp"],
        ];
        Self {
            time: times.into_iter().find_map(Json::as_str).unwrap_or_default().to_owned(),
            is_warning: event["type"] == "Warning",
            kind: text(&event["involvedObject"]["kind"]),
            name: text(&event["involvedObject"]["name"]),
            reason: text(&event["reason"]),
            message: text(&event["message"]),
            count: event["count"].as_u64().unwrap_or(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_events_of_packages_are_told_the_last_first() {
        let event = |group: &str, name: &str, time: &str| {
            let object =
                json!({"apiVersion": format!("{group}/v1"), "kind": "Provider", "name": name});
            json!({"involvedObject": object, "type": "Normal", "reason": "Installed",
                   "message": "m", "lastTimestamp": time})
        };
        let events = vec![
            event("pkg.crossplane.io", "a", "2026-01-01T00:00:00Z"),
            event("apps", "b", "2026-01-02T00:00:00Z"),
            event("pkg.crossplane.io", "c", "2026-01-03T00:00:00Z"),
            json!({"involvedObject": {"apiVersion": "v1"}}),
            json!(null),
        ];
        let told = PlaneEvent::of_group(&events, "pkg.crossplane.io");
        let names: Vec<&str> = told.iter().map(|event| event.name.as_str()).collect();
        assert_eq!(names, ["c", "a"]);
    }
}
