//! `logs`: what the programs of a package print, in whichever pods they run.

mod follow;

use crate::args::cluster::ClusterArguments;
use crate::cluster::Cluster;
use crate::cluster::pods::find_pods;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::settings::Settings;
use api::pkg::revision::Revision;
use inventory::{Installed, Inventory, LogLines, LoggedContainer, PodAbsence, Resource, Which};
use kube::api::LogParams;
use serde_json::Value as Json;
use std::time::Duration;

/// Which log, and how much of it.
pub(crate) struct Request {
    pub(crate) which: Which,
    pub(crate) follow: bool,
    pub(crate) previous: bool,
    /// So many lines of each pod; all, if it is not said.
    pub(crate) tail: Option<i64>,
    pub(crate) since: Option<Duration>,
    pub(crate) timestamps: bool,
    /// The one that runs the package, if it is not said.
    pub(crate) container: Option<String>,
    /// The active one, if it is not said.
    pub(crate) revision: Option<String>,
    pub(crate) cluster: ClusterArguments,
}

impl Request {
    /// What is asked of an API server about one container.
    fn parameters(&self, container: &str) -> LogParams {
        // API servers count whole seconds, from one.
        let since = self.since.map(|since| since.as_secs().max(1));
        LogParams {
            container: Some(container.to_owned()),
            previous: self.previous,
            tail_lines: self.tail,
            since_seconds: since.map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX)),
            timestamps: self.timestamps,
            ..LogParams::default()
        }
    }

    fn choose_containers(&self, pods: &[Json]) -> Outcome<Vec<LoggedContainer>> {
        let choose = |pod| LoggedContainer::choose(pod, self.container.as_deref());
        pods.iter().map(choose).collect()
    }

    /// The revision that is meant.
    fn choose_revision<'a>(&self, one: &'a Installed) -> Outcome<&'a Revision> {
        one.check_logged()?;
        match &self.revision {
            Some(named) => one.revision_named(named),
            None => one.logged_revision(),
        }
    }
}

/// Prints logs, and goes on with what follows if that was asked for.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    let inventory = Inventory::gather(&cluster).await?;
    let one = inventory.find(&request.which)?;
    let revision = request.choose_revision(one)?;
    let pods = find_pods(&cluster, &revision.metadata.name).await?;
    if pods.is_empty() {
        let absence = find_absence(&cluster, revision).await;
        let failure = absence.explain(one, revision, &cluster.namespace);
        if !request.follow || !absence.is_passing() {
            return Err(failure);
        }
        output::say(format_args!("{}; waiting for them", failure.message));
    }
    let containers = request.choose_containers(&pods)?;
    if request.follow {
        let name = revision.metadata.name.clone();
        return Box::pin(follow::follow_pods(request, &cluster, name, containers)).await;
    }
    print_logs(request, &cluster, &containers).await
}

/// Why there are no pods, as far as the user may know.
async fn find_absence(cluster: &Cluster, revision: &Revision) -> PodAbsence {
    let deployments = Resource::in_namespace("apps", "v1", &cluster.namespace, "deployments");
    let deployments = cluster.list::<Json>(&deployments).await.ok().flatten();
    PodAbsence::find_cause(deployments.as_deref(), revision)
}

/// Prints the logs of pods one after the other. A pod without one is told of, unless none has any.
async fn print_logs(
    request: &Request,
    cluster: &Cluster,
    containers: &[LoggedContainer],
) -> Outcome {
    let missing: Vec<Failure> =
        containers.iter().filter_map(|one| one.explain_missing(request.previous)).collect();
    let all_miss = missing.len() == containers.len();
    for failure in missing {
        if all_miss {
            return Err(failure);
        }
        let Failure { message, causes, .. } = failure;
        output::warn([vec![message], causes].concat().join(": "));
    }
    let has_log = |one: &&LoggedContainer| one.explain_missing(request.previous).is_none();
    for one in containers.iter().filter(has_log) {
        let prefix = if containers.len() > 1 { describe_pod(one) } else { String::new() };
        let wished = request.parameters(&one.container);
        let opened = cluster.open_log(&cluster.namespace, &one.pod, &wished).await?;
        let Some(log) = opened else { continue };
        let mut lines = LogLines::new(log);
        while let Some(line) =
            lines.read_line().await.map_err(|error| explain_break(one, &error))?
        {
            if !output::print_log_line(&prefix, line) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// What stands before the lines of a pod that is one of several.
fn describe_pod(one: &LoggedContainer) -> String {
    format!("[{}] ", one.pod)
}

fn explain_break(one: &LoggedContainer, error: &std::io::Error) -> Failure {
    let message = format!("the log of {} broke off", one.pod);
    Failure::new(message, "run the command again; --since leaves out what was printed")
        .because(error)
}
