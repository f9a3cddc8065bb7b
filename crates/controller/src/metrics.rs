//! What the manager counts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A family of numbers: what it is called, whether it only grows, and what it means.
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
}

const RECONCILES: Family = Family {
    name: "apron_reconciles_total",
    kind: "counter",
    help: "How often an object was looked at, and how that ended.",
};
const SECONDS: Family = Family {
    name: "apron_reconcile_seconds_total",
    kind: "counter",
    help: "How long looking at objects took.",
};
const WRITES: Family = Family {
    name: "apron_api_writes_total",
    kind: "counter",
    help: "Changes sent to the API server.",
};
const DEPTH: Family =
    Family { name: "apron_queue_depth", kind: "gauge", help: "Objects that wait to be looked at." };
const LEADER: Family = Family {
    name: "apron_is_leader",
    kind: "gauge",
    help: "Whether this is the manager that works.",
};

/// Everything counted so far.
#[derive(Debug)]
pub struct Metrics {
    prepared: AtomicBool,
    numbers: Mutex<BTreeMap<(&'static str, String), f64>>,
}

impl Default for Metrics {
    /// Nobody leads from the start: who stands by says so, and does not keep silent.
    fn default() -> Self {
        let metrics = Self { prepared: AtomicBool::default(), numbers: Mutex::default() };
        metrics.leads(false);
        metrics
    }
}

impl Metrics {
    fn change(&self, family: &Family, labels: String, change: impl FnOnce(&mut f64)) {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        change(numbers.entry((family.name, labels)).or_default());
    }

    /// An object was looked at.
    pub(crate) fn looked(&self, controller: &str, outcome: &str, took: Duration) {
        let labels = format!("controller=\"{controller}\",result=\"{outcome}\"");
        self.change(&RECONCILES, labels, |number| *number += 1.0);
        let labels = format!("controller=\"{controller}\"");
        self.change(&SECONDS, labels, |number| *number += took.as_secs_f64());
    }

    /// A change was sent.
    pub(crate) fn wrote(&self, verb: &str, kind: &str, accepted: bool) {
        let result = if accepted { "accepted" } else { "refused" };
        let labels = format!("verb=\"{verb}\",kind=\"{kind}\",result=\"{result}\"");
        self.change(&WRITES, labels, |number| *number += 1.0);
    }

    /// So many objects wait.
    #[expect(clippy::cast_precision_loss, reason = "no queue is that long")]
    pub(crate) fn waiting(&self, controller: &str, depth: usize) {
        let labels = format!("controller=\"{controller}\"");
        self.change(&DEPTH, labels, |number| *number = depth as f64);
    }

    /// Whether this manager works.
    pub fn leads(&self, leads: bool) {
        self.change(&LEADER, String::new(), |number| *number = f64::from(u8::from(leads)));
    }

    /// The API server was reached, and knows what it must.
    pub(crate) fn is_prepared(&self) {
        self.prepared.store(true, Ordering::Relaxed);
    }

    /// Whether this manager works, or would if another did not.
    pub fn is_ready(&self) -> bool {
        self.prepared.load(Ordering::Relaxed)
    }

    /// Everything, as Prometheus reads it.
    pub fn render(&self) -> String {
        let numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        for family in [RECONCILES, SECONDS, WRITES, DEPTH, LEADER] {
            let _ = writeln!(text, "# HELP {} {}", family.name, family.help);
            let _ = writeln!(text, "# TYPE {} {}", family.name, family.kind);
            for ((_, labels), number) in
                numbers.iter().filter(|((name, _), _)| *name == family.name)
            {
                let labels =
                    if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
                let _ = writeln!(text, "{}{labels} {number}", family.name);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stands_by_says_that_it_does_not_lead() {
        let metrics = Metrics::default();
        let said = |metrics: &Metrics| {
            let text = metrics.render();
            let line = text.lines().find(|line| line.starts_with("apron_is_leader"));
            line.map(str::to_owned)
        };
        assert_eq!(said(&metrics).as_deref(), Some("apron_is_leader 0"));
        metrics.leads(true);
        assert_eq!(said(&metrics).as_deref(), Some("apron_is_leader 1"));
        metrics.leads(false);
        assert_eq!(said(&metrics).as_deref(), Some("apron_is_leader 0"));
    }

    #[test]
    fn prometheus_can_read_it() {
        let metrics = Metrics::default();
        metrics.looked("provider", "done", Duration::from_millis(500));
        metrics.looked("provider", "done", Duration::from_millis(250));
        metrics.wrote("apply", "Lock", true);
        metrics.waiting("provider", 3);
        metrics.leads(true);
        let text = metrics.render();
        for line in [
            "# TYPE apron_reconciles_total counter",
            "apron_reconciles_total{controller=\"provider\",result=\"done\"} 2",
            "apron_reconcile_seconds_total{controller=\"provider\"} 0.75",
            "apron_api_writes_total{verb=\"apply\",kind=\"Lock\",result=\"accepted\"} 1",
            "apron_queue_depth{controller=\"provider\"} 3",
            "apron_is_leader 1",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
        }
    }
}
