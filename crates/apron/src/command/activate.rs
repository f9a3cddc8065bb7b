//! `activate` and `rollback`: which revision of a package is the one that counts.

use super::update;
use crate::args::cluster::ClusterArguments;
use crate::cluster::Cluster;
use crate::cluster::wait::{self, Goal};
use crate::command::change::{Change, Voice};
use crate::failure::{Failure, Outcome};
use crate::output::{self, ObjectFormat};
use crate::settings::Settings;
use api::pkg::revision::{ACTIVE, Revision};
use inventory::{Installed, Inventory, Which, lower, version};
use serde_json::{Value as Json, json};
use std::time::Duration;

/// Which package, and which revision of it.
pub(crate) struct Request {
    pub(crate) which: Which,
    /// By name or number; the one that is asked for, or the one before.
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
        Some(named) => one.revision_named(named)?,
        None => one.next().ok_or_else(|| one.without_revisions())?,
    };
    if revision.spec.desired_state == ACTIVE {
        return tell_active(request, cluster, one, revision).await;
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
        Some(named) => one.revision_named(named)?,
        None => one.revision_before(one.find_holder(cluster).await.as_deref())?,
    };
    let (is_manual, image) = (one.package.is_manual(), &revision.spec.image);
    // What is active need not be what is asked for: that may not exist, or not have come yet.
    let is_asked = is_manual || *image == one.package.spec.package;
    if revision.spec.desired_state == ACTIVE && is_asked {
        return tell_active(request, cluster, one, revision).await;
    }
    if is_manual {
        return activate(request, cluster, one, revision, "rolled back").await;
    }
    if !is_asked {
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

/// The revision is active already, and programs get it all the same.
async fn tell_active(
    request: &Request,
    cluster: &Cluster,
    one: &Installed,
    revision: &Revision,
) -> Outcome {
    let name = &revision.metadata.name;
    output::say(format_args!("{name} is active already"));
    if matches!(request.format, ObjectFormat::Text | ObjectFormat::Wide) {
        return Ok(());
    }
    let object = cluster.get::<Json>(&cluster.revisions(one.kind), name).await?;
    Change {
        word: "unchanged",
        said: "active already",
        kind: lower(one.kind),
        name: one.name().to_owned(),
        detail: String::new(),
        object: object.unwrap_or_default(),
    }
    .tell(Voice::Apron(request.format), cluster)
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
    Change { word: "updated", said, kind: lower(kind), name, detail, object }
        .tell(Voice::Apron(request.format), cluster)
}
