//! What pods and nodes use, as the objects that a metrics server makes of it (`metrics.k8s.io/v1beta1`).

use schema::object::quantity::{Finest, canonical};
use schema::object::{meta_text, metadata, time};
use serde_json::{Value, json};
use std::time::Duration;

/// The group and version of these objects.
pub const API_VERSION: &str = "metrics.k8s.io/v1beta1";

/// An amount of processors and memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MeasuredUsage {
    /// Billionths of a core, on average.
    pub cpu_nano: u64,
    /// Bytes that are in use now.
    pub memory: u64,
}

/// What a pod or a node uses, and when that was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageReading {
    /// The end of the time that was looked at, in seconds since 1970.
    pub at: u64,
    /// How long that time was.
    pub window: Duration,
    /// Containers of a pod by name; of a node, one part without a name.
    pub parts: Vec<(String, MeasuredUsage)>,
}

/// The `PodMetrics` of a Pod, made now.
pub fn pod_metrics(pod: &Value, reading: &UsageReading, now: u64) -> Value {
    let mut answer = head("PodMetrics", pod, reading, now);
    let container =
        |(name, used): &(String, MeasuredUsage)| json!({"name": name, "usage": write_usage(*used)});
    answer["containers"] = reading.parts.iter().map(container).collect();
    answer
}

/// The `NodeMetrics` of a Node, made now.
pub fn node_metrics(node: &Value, reading: &UsageReading, now: u64) -> Value {
    let mut answer = head("NodeMetrics", node, reading, now);
    let used = reading.parts.first().map(|(_, used)| *used);
    answer["usage"] = write_usage(used.unwrap_or_default());
    answer
}

fn head(kind: &str, object: &Value, reading: &UsageReading, now: u64) -> Value {
    let mut own = json!({"name": meta_text(object, "name")});
    let namespace = meta_text(object, "namespace");
    if !namespace.is_empty() {
        own["namespace"] = json!(namespace);
    }
    own["creationTimestamp"] = json!(time::format(now));
    if let Some(labels) = metadata(object).get("labels") {
        own["labels"] = labels.clone();
    }
    json!({
        "kind": kind, "apiVersion": API_VERSION, "metadata": own,
        "timestamp": time::format(reading.at), "window": write_duration(reading.window),
    })
}

fn write_usage(MeasuredUsage { cpu_nano, memory }: MeasuredUsage) -> Value {
    let canonical = |text: String| canonical(&text, Finest::Billionth).unwrap_or(text);
    let memory = match (memory >> 10, memory & 0x3ff) {
        (kibibytes, 0) => canonical(format!("{kibibytes}Ki")),
        _ => memory.to_string(),
    };
    json!({"cpu": canonical(format!("{cpu_nano}n")), "memory": memory})
}

/// A time as Go writes it, in whole milliseconds: `15.003s`, `1m0s`.
fn write_duration(span: Duration) -> String {
    let (minutes, seconds) = (span.as_secs() / 60, span.as_secs() % 60);
    let part = format!(".{:03}", span.subsec_millis());
    let seconds = format!("{seconds}{}s", part.trim_end_matches('0').trim_end_matches('.'));
    match (minutes / 60, minutes % 60) {
        (0, 0) => seconds,
        (0, minutes) => format!("{minutes}m{seconds}"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}"),
    }
}

/// The role that comes with a metrics server: who may view a namespace may know what its pods use.
pub fn usage_reader_role() -> Value {
    let label = |role: &str| format!("rbac.authorization.k8s.io/aggregate-to-{role}");
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {
            "name": "system:aggregated-metrics-reader",
            "labels": {label("admin"): "true", label("edit"): "true", label("view"): "true"},
        },
        "rules": [{
            "apiGroups": ["metrics.k8s.io"], "resources": ["pods", "nodes"],
            "verbs": ["get", "list"],
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_go_writes_them() {
        let written = |millis: u64| write_duration(Duration::from_millis(millis));
        let all = [0, 15_000, 15_030, 60_000, 75_500, 3_600_000].map(written);
        assert_eq!(all, ["0s", "15s", "15.03s", "1m0s", "1m15.5s", "1h0m0s"]);
    }

    #[test]
    fn amounts_are_written_in_the_unit_that_leaves_no_fraction() {
        let written = |cpu_nano, memory| write_usage(MeasuredUsage { cpu_nano, memory });
        assert_eq!(written(1_234_567, 13 << 20), json!({"cpu": "1234567n", "memory": "13Mi"}));
        assert_eq!(written(250_000_000, 4_097), json!({"cpu": "250m", "memory": "4097"}));
        assert_eq!(written(0, 0), json!({"cpu": "0", "memory": "0"}));
    }
}
