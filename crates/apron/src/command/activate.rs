//! `activate` and `rollback`: which revision of a package is the one that counts.

use super::update;
use crate::args::cluster::ClusterArguments;
use crate::cluster::inventory::{Installed, Inventory, Which, version};
use crate::cluster::wait::{self, Goal};
use crate::cluster::{Cluster, lower};
use crate::command::change::{Change, Voice};
use crate::failure::{Failure, Outcome};
use crate::output::{self, ObjectFormat};
use crate::settings::Settings;
use api::pkg::revision::{ACTIVE, Revision};
use serde_json::json;
use std::time::Duration;

/// Which package, and which revision of it.
pub(crate) struct Request {
    pub(crate) which: Which,
    /// By name or number; the newest, or the one before.
    pub(crate) revision: Option<String>,
    /// Back to what was, instead of on to what is new.
    pub(crate) back: Option<Back>,
    /// How long to wait until it is healthy; not at all if it is not said.
    pub(crate) wait: Option<Duration>,
    pub(crate) format: ObjectFormat,
    pub(crate) cluster: ClusterArguments,
}

/// How to go back.
pub(crate) struct Back {
    /// Let revisions be activated by hand from now on, where there is no other way.
    pub(crate) manual: bool,
}

/// Activates a revision.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    let inventory = Inventory::gather(&cluster).await?;
    let one = inventory.find(&request.which)?;
    match &request.back {
        None => forward(request, &cluster, one).await?,
        Some(back) => backward(request, &cluster, one, back).await?,
    }
    if let Some(time) = request.wait {
        wait::until(&cluster, &[one.which()], Goal::Healthy, time).await?;
    }
    Ok(())
}

async fn forward(request: &Request, cluster: &Cluster, one: &Installed) -> Outcome {
    let revision = match &request.revision {
        Some(named) => find(one, named)?,
        None => one.revisions.first().ok_or_else(|| no_revisions(one))?,
    };
    if revision.spec.desired_state == ACTIVE {
        output::say(format_args!("{} is active already", revision.metadata.name));
        return Ok(());
    }
    if !one.package.is_manual() {
        return Err(Failure::new(
            format!("the package manager decides which revision of {} is active", one.id()),
            format!(
                "go back with `apron rollback {0}`, or to any version with `apron update {0} VERSION`",
                one.name()
            ),
        ));
    }
    activate(request, cluster, one, revision, "activated").await
}

async fn backward(request: &Request, cluster: &Cluster, one: &Installed, back: &Back) -> Outcome {
    let revision = match &request.revision {
        Some(named) => find(one, named)?,
        None => before(one)?,
    };
    if revision.spec.desired_state == ACTIVE {
        output::say(format_args!("{} is active already", revision.metadata.name));
        return Ok(());
    }
    if one.package.is_manual() {
        return activate(request, cluster, one, revision, "rolled back").await;
    }
    let image = &revision.spec.image;
    if *image != one.package.spec.package {
        return update::change(cluster, one, image, Voice::Apron(request.format), "rolled back")
            .await;
    }
    if !back.manual {
        return Err(Failure::new(
            format!("{image} does not mean what it meant in {}", revision.metadata.name),
            "go back all the same with --manual-activation, which stops new content from being \
             activated by itself; or name a version: apron update NAME VERSION",
        ));
    }
    let patch = json!({"spec": {"revisionActivationPolicy": "Manual"}});
    cluster.merge(&cluster.packages(one.kind), one.name(), &patch).await?;
    activate(request, cluster, one, revision, "rolled back").await
}

async fn activate(
    request: &Request,
    cluster: &Cluster,
    one: &Installed,
    revision: &Revision,
    said: &'static str,
) -> Outcome {
    let (kind, name) = (one.kind, one.name().to_owned());
    let patch = json!({"spec": {"desiredState": ACTIVE}});
    let object = cluster.merge(&cluster.revisions(kind), &revision.metadata.name, &patch).await?;
    let (id, of) = (&revision.metadata.name, version(&revision.spec.image));
    let package = format!("{} {}", lower(kind), output::bold(&name));
    let detail = match request.back {
        None => format!("revision {id} ({of}) of {package}"),
        Some(_) => format!("{package} to revision {id} ({of})"),
    };
    Change { word: "updated", said, kind, name, detail, object }
        .tell(Voice::Apron(request.format), cluster)
}

/// The revision that was active before the one that is.
fn before(one: &Installed) -> Outcome<&Revision> {
    let active = one.active().map(|it| it.spec.revision);
    let was = |it: &&Revision| active.is_none_or(|active| it.spec.revision < active);
    let mut older = one.revisions.iter().filter(|it| it.spec.desired_state != ACTIVE);
    older.find(was).ok_or_else(|| {
        Failure::new(
            format!("{} has no older revision to go back to", one.id()),
            format!(
                "name a version instead: apron update {} VERSION; revisionHistoryLimit says how \
                 many revisions are kept",
                one.name()
            ),
        )
    })
}

fn find<'a>(one: &'a Installed, named: &str) -> Outcome<&'a Revision> {
    let is_it = |it: &&Revision| {
        it.metadata.name == named
            || it.spec.revision.to_string() == named
            || version(&it.spec.image) == named
    };
    one.revisions.iter().find(is_it).ok_or_else(|| {
        let known: Vec<String> = one
            .revisions
            .iter()
            .map(|it| format!("{} ({})", it.metadata.name, version(&it.spec.image)))
            .collect();
        if known.is_empty() {
            return no_revisions(one);
        }
        let message = format!("{} has no revision {named}", one.id());
        Failure::new(message, format!("it has {}", known.join(", ")))
    })
}

fn no_revisions(one: &Installed) -> Failure {
    Failure::new(
        format!("{} has no revisions yet", one.id()),
        format!("see what it waits for with `apron status {}`", one.name()),
    )
}
