//! `permissions`: what packages ask for beyond their own kinds, and who allows it.
//!
//! The manager writes down what the package of a revision asks for, so nothing is fetched here.
//! What is allowed is the rules of one `ClusterRole`, which gathers others by a label; `allow`
//! writes one of those, named after the package.

mod show;

pub(crate) use inventory::roles::{ensure_gathered, gathered, read_allowed};

use crate::args::cluster::ClusterArguments;
use crate::cluster::Cluster;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, bold};
use crate::settings::Settings;
use api::meta::{PackageKind, PermissionRequest};
use api::pkg::revision::{ACTIVE, Revision};
use controller::authority::in_lines;
use controller::authority::rules::beyond;
use inventory::{Installed, Inventory, Which, roles};
use show::Shown;

/// What to do.
pub(crate) struct Request {
    pub(crate) deed: Deed,
    pub(crate) format: Format,
    pub(crate) cluster: ClusterArguments,
}

/// What to do with the permissions of packages.
pub(crate) enum Deed {
    List,
    Show(Which),
    Allow(Which),
    Revoke(Which),
}

/// Does it.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    let inventory = Inventory::gather(&cluster).await?;
    match &request.deed {
        Deed::List => list(request, &cluster, &inventory).await,
        Deed::Show(which) => {
            let one = inventory.find(which)?;
            let shown = Shown::of(one, &cluster, &read_allowed(&cluster).await?.permissions)?;
            show::package(request.format, &shown)
        }
        Deed::Allow(which) => allow(request, &cluster, inventory.find(which)?).await,
        Deed::Revoke(which) => revoke(request, &cluster, &inventory, which).await,
    }
}

/// What a package asks for: its active revision, and the newest, which may wait to be activated.
pub(super) fn asked(one: &Installed) -> Vec<PermissionRequest> {
    let mut asked: Vec<PermissionRequest> = Vec::new();
    let is_active = |it: &&Revision| it.spec.desired_state == ACTIVE;
    let newest = one.revisions.iter().take(1).filter(|it| !is_active(it));
    for revision in one.revisions.iter().filter(is_active).chain(newest) {
        let status = revision.status.iter();
        for rule in status.flat_map(|status| status.permission_requests.iter().flatten()) {
            let rule = PermissionRequest::from(rule);
            if !asked.contains(&rule) {
                asked.push(rule);
            }
        }
    }
    asked
}

/// Fails unless the package manager has looked into a package.
fn refuse_unseen(one: &Installed) -> Outcome {
    if one.revisions.iter().any(|it| !it.conditions().is_empty()) {
        return Ok(());
    }
    Err(Failure::new(
        format!("nobody knows yet what {} asks for", one.id()),
        format!(
            "the package manager has not looked into it; `apron status {}` says how far it is",
            one.id()
        ),
    ))
}

async fn list(request: &Request, cluster: &Cluster, inventory: &Inventory) -> Outcome {
    let allowed = read_allowed(cluster).await?.permissions;
    let asking = inventory.packages.iter().filter(|one| !asked(one).is_empty());
    let shown: Vec<Shown> =
        asking.map(|one| Shown::of(one, cluster, &allowed)).collect::<Outcome<_>>()?;
    let left = roles::left_behind(cluster, inventory).await?;
    show::all(request.format, &shown, &left)
}

async fn allow(request: &Request, cluster: &Cluster, one: &Installed) -> Outcome {
    refuse_unseen(one)?;
    let mut asked = asked(one);
    // No API server takes a rule without verbs; whoever asks like that gets nothing by it.
    asked.retain(|rule| !rule.verbs.is_empty());
    if asked.is_empty() {
        output::say(format_args!("{} asks for nothing beyond its own kinds", one.id()));
        return Ok(());
    }
    ensure_gathered(cluster).await?;
    roles::write(cluster, one.kind, one.name(), &asked).await?;
    if request.format == Format::Json {
        return show::package(request.format, &Shown::of(one, cluster, &asked)?);
    }
    let id = one.id();
    for line in in_lines(&asked) {
        output::print(format_args!("allowed {}: {line}", bold(&id)));
    }
    output::say(format_args!(
        "the package manager goes on by itself; take it back with `apron permissions revoke {id}`"
    ));
    Ok(())
}

async fn revoke(
    request: &Request,
    cluster: &Cluster,
    inventory: &Inventory,
    which: &Which,
) -> Outcome {
    let found = inventory.find(which).ok();
    let kinds = match found.map(|one| one.kind).or(which.kind) {
        Some(kind) => vec![kind],
        None => PackageKind::ALL.to_vec(),
    };
    let mut revoked = Vec::new();
    for kind in kinds {
        if roles::delete(cluster, kind, &which.name).await? {
            revoked.push(roles::name(cluster, kind, &which.name));
        }
    }
    if revoked.is_empty() {
        return Err(Failure::new(
            format!("nothing was allowed for {} with `apron permissions allow`", which.name),
            "`apron permissions list` says what is; other ClusterRoles are for those who made them",
        ));
    }
    if request.format == Format::Json {
        return output::print_json(&revoked);
    }
    for role in &revoked {
        output::print(format_args!("deleted clusterrole/{role}"));
    }
    // The role that gathers follows after a moment, so it is not asked.
    let others = roles::written_by_others(cluster, &revoked).await?;
    let asked = found.map(asked).unwrap_or_default();
    let still = beyond(&asked, &beyond(&asked, &others));
    for line in in_lines(&still) {
        output::warn(format_args!("other ClusterRoles still allow it to {line}"));
    }
    Ok(())
}
