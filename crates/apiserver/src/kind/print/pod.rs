//! Rows of pods: one word for the state of many containers.

use serde_json::{Value, json};

use super::Seen;

pub(super) fn row(see: &Seen<'_>) -> Vec<Value> {
    let found = summary(see);
    let gates = see.list("/spec/readinessGates");
    let gates = if gates.is_empty() {
        "<none>".to_owned()
    } else {
        let open = gates.iter().filter(|gate| {
            let is = |one: &&Value| one["type"] == gate["conditionType"];
            let found = see.list("/status/conditions").iter().find(is);
            found.is_some_and(|one| one["status"] == "True")
        });
        format!("{}/{}", open.count(), gates.len())
    };
    vec![
        json!(see.text("/metadata/name")),
        json!(format!("{}/{}", found.ready, found.containers)),
        json!(found.reason),
        json!(found.restarts_text(see)),
        see.age(),
        json!(see.or("/status/podIPs/0/ip", "<none>")),
        json!(see.or("/spec/nodeName", "<none>")),
        json!(see.or("/status/nominatedNodeName", "<none>")),
        json!(gates),
    ]
}

/// What is said about a pod.
#[derive(Default)]
struct Summary {
    containers: usize,
    ready: usize,
    reason: String,
    restarts: i64,
    last: String,
}

impl Summary {
    fn restarts_text(&self, see: &Seen<'_>) -> String {
        if self.restarts == 0 || self.last.is_empty() {
            return self.restarts.to_string();
        }
        format!("{} ({} ago)", self.restarts, see.since(&self.last))
    }

    /// Counts how often a container was started again.
    fn count(&mut self, status: &Value) {
        // Anybody may write a status, and any number.
        let restarts = status["restartCount"].as_i64().unwrap_or_default();
        self.restarts = self.restarts.saturating_add(restarts);
        let ended = status.pointer("/lastState/terminated/finishedAt").and_then(Value::as_str);
        // Times of one form compare as texts.
        if let Some(ended) = ended.filter(|ended| *ended > self.last.as_str()) {
            ended.clone_into(&mut self.last);
        }
    }
}

fn summary(see: &Seen<'_>) -> Summary {
    let conditions = see.list("/status/conditions");
    let holds =
        |kind: &str| conditions.iter().any(|one| one["type"] == kind && one["status"] == "True");
    let mut found = Summary {
        containers: see.list("/spec/containers").len(),
        reason: see.or("/status/reason", see.text("/status/phase")).to_owned(),
        ..Summary::default()
    };
    let gated = |one: &Value| one["type"] == "PodScheduled" && one["reason"] == "SchedulingGated";
    if conditions.iter().any(gated) {
        "SchedulingGated".clone_into(&mut found.reason);
    }
    let helpers = see.list("/spec/initContainers");
    let stays = |one: &Value| one["restartPolicy"] == "Always";
    let kept = helpers.iter().filter(|one| stays(one)).count();
    found.containers = found.containers.saturating_add(kept);
    let mut starting = Summary::default();
    let mut staying = Summary::default();
    let initializing = start(see, &mut found, &mut starting, &mut staying);
    if !initializing || holds("Initialized") {
        (found.restarts, found.last) = (staying.restarts, staying.last);
        run(see, &mut found, holds("Ready"));
    } else {
        (found.restarts, found.last) = (starting.restarts, starting.last);
    }
    let going = !see.text("/metadata/deletionTimestamp").is_empty();
    let over = ["Succeeded", "Failed"].contains(&see.text("/status/phase"));
    if going && see.text("/status/reason") == "NodeLost" {
        "Unknown".clone_into(&mut found.reason);
    } else if going && !over {
        "Terminating".clone_into(&mut found.reason);
    }
    found
}

/// Looks at the containers that run first; says whether they are not done.
fn start(
    see: &Seen<'_>,
    found: &mut Summary,
    starting: &mut Summary,
    staying: &mut Summary,
) -> bool {
    let helpers = see.list("/spec/initContainers");
    for (at, status) in see.list("/status/initContainerStatuses").iter().enumerate() {
        let of = helpers.iter().find(|one| one["name"] == status["name"]);
        let stays = of.is_some_and(|one| one["restartPolicy"] == "Always");
        starting.count(status);
        if stays {
            staying.count(status);
        }
        let ended = status.pointer("/state/terminated");
        if ended.is_some_and(|ended| ended["exitCode"] == 0) {
            continue;
        }
        if stays && status["started"] == true {
            found.ready = found.ready.saturating_add(usize::from(status["ready"] == true));
            continue;
        }
        let waits = status.pointer("/state/waiting/reason").and_then(Value::as_str);
        found.reason = match (ended, waits) {
            (Some(ended), _) => format!("Init:{}", end(ended)),
            (None, Some(why)) if !why.is_empty() && why != "PodInitializing" => {
                format!("Init:{why}")
            }
            _ => format!("Init:{at}/{}", helpers.len()),
        };
        return true;
    }
    false
}

/// Looks at the containers themselves.
fn run(see: &Seen<'_>, found: &mut Summary, ready: bool) {
    let (mut running, mut failed) = (false, String::new());
    for status in see.list("/status/containerStatuses").iter().rev() {
        found.count(status);
        let waits = status.pointer("/state/waiting/reason").and_then(Value::as_str);
        if let Some(why) = waits.filter(|why| !why.is_empty()) {
            why.clone_into(&mut found.reason);
        } else if let Some(ended) = status.pointer("/state/terminated") {
            found.reason = end(ended);
            if ended["exitCode"] != 0 {
                failed.clone_from(&found.reason);
            }
        } else if status["ready"] == true && status.pointer("/state/running").is_some() {
            running = true;
            found.ready = found.ready.saturating_add(1);
        }
    }
    if found.reason == "Completed" {
        if running && ready {
            "Running".clone_into(&mut found.reason);
        } else if !failed.is_empty() {
            found.reason = failed;
        } else if running {
            "NotReady".clone_into(&mut found.reason);
        }
    }
}

/// Why a container ended.
fn end(ended: &Value) -> String {
    match (ended["reason"].as_str().unwrap_or_default(), ended["signal"].as_i64()) {
        ("", Some(signal)) if signal != 0 => format!("Signal:{signal}"),
        ("", _) => format!("ExitCode:{}", ended["exitCode"]),
        (reason, _) => reason.to_owned(),
    }
}
