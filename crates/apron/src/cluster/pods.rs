//! What is in the way of programs of packages: their pods, and the ends of their logs. A user without the
//! right to read those is told the rest.

use super::Cluster;
use crate::failure::Outcome;
use crate::output;
use api::pkg::LABEL_REVISION;
use futures::future::join_all;
use futures::io::AsyncReadExt as _;
use inventory::{Installed, LogRun, LogTail, PodTrouble, Resource};
use kube::api::LogParams;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

/// How many lines of a log are shown with what is in the way.
const LINES: i64 = 10;
/// The longest end of a log that is shown with what is in the way.
const LOG_SIZE_MAX: u32 = 16 << 10;
/// How long a node may take to give the end of a log.
const LOG_TIME_MAX: Duration = Duration::from_secs(5);

/// What is in the way of pods, each with the package that they run.
pub(crate) type PodTroubles = Vec<(String, PodTrouble)>;

/// The pods of a revision.
pub(crate) async fn find_pods(cluster: &Cluster, revision: &str) -> Outcome<Vec<Json>> {
    let pods = Resource::core(&cluster.namespace, "pods");
    cluster.list_labelled(&pods, LABEL_REVISION, revision).await
}

/// What is in the way of the programs of packages, without their logs.
pub(crate) async fn find_troubles(cluster: &Cluster, installed: &[&Installed]) -> PodTroubles {
    let mut found = Vec::new();
    for one in installed {
        let Some(revision) = one.failing_runtime() else { continue };
        let pods = find_pods(cluster, &revision.metadata.name).await.unwrap_or_default();
        let troubles = pods.iter().flat_map(PodTrouble::of_pod);
        found.extend(troubles.map(|trouble| (one.id(), trouble)));
    }
    if found.iter().any(|(_, trouble)| trouble.message.is_empty()) {
        let events = Resource::core(&cluster.namespace, "events");
        let events = cluster.list::<Json>(&events).await.ok().flatten().unwrap_or_default();
        for (_, trouble) in &mut found {
            trouble.add_warning(&events);
        }
    }
    found
}

/// The same with the ends of the logs.
pub(crate) async fn find_logged_troubles(
    cluster: &Cluster,
    installed: &[&Installed],
) -> PodTroubles {
    let mut found = find_troubles(cluster, installed).await;
    join_all(found.iter_mut().map(|(_, trouble)| read_log_end(cluster, trouble))).await;
    found
}

/// Adds the end of the log that tells most, if there is one.
async fn read_log_end(cluster: &Cluster, trouble: &mut PodTrouble) {
    for run in trouble.log_runs() {
        let lines = timeout(LOG_TIME_MAX, read_last_lines(cluster, trouble, *run)).await;
        let lines = lines.ok().flatten().unwrap_or_default();
        if !lines.is_empty() {
            trouble.log = Some(LogTail { of_previous_run: *run == LogRun::Previous, lines });
            return;
        }
    }
}

async fn read_last_lines(
    cluster: &Cluster,
    trouble: &PodTrouble,
    run: LogRun,
) -> Option<Vec<String>> {
    let wished = LogParams {
        container: trouble.container.clone(),
        previous: run == LogRun::Previous,
        tail_lines: Some(LINES),
        limit_bytes: Some(i64::from(LOG_SIZE_MAX)),
        ..LogParams::default()
    };
    let log = cluster.open_log(&cluster.namespace, &trouble.pod, &wished).await.ok().flatten()?;
    let mut text = Vec::new();
    pin!(log).take(u64::from(LOG_SIZE_MAX)).read_to_end(&mut text).await.ok()?;
    Some(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
}

/// What was told of pods while packages are waited for.
#[derive(Default)]
pub(crate) struct PodNews {
    /// The last sentence about each container.
    sentences: BTreeMap<String, String>,
    /// The run of each container of which the log was shown last.
    shown: BTreeMap<String, i64>,
}

impl PodNews {
    /// Tells what has changed since the last look; of a run that has ended, with the end of its log, once.
    pub(crate) async fn tell_changes(&mut self, cluster: &Cluster, installed: &[&Installed]) {
        for (id, mut trouble) in find_troubles(cluster, installed).await {
            let container = trouble.container.as_deref().unwrap_or_default();
            let (key, sentence) = (format!("{}/{container}", trouble.pod), trouble.sentence());
            if self.sentences.get(&key) == Some(&sentence) {
                continue;
            }
            output::say(format_args!("{} {sentence}", output::bold(id)));
            self.sentences.insert(key.clone(), sentence);
            let Some(ended) = trouble.ended_run() else { continue };
            if self.shown.get(&key) == Some(&ended) {
                continue;
            }
            read_log_end(cluster, &mut trouble).await;
            if let Some(log) = &trouble.log {
                log.lines.iter().for_each(|line| output::say(quote_line(line)));
                self.shown.insert(key, ended);
            }
        }
    }
}

/// A line of a program's log among those of a command.
fn quote_line(line: &str) -> String {
    format!("  {} {line}", output::dim("|"))
}
