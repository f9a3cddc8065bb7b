//! `uninstall`: a package and everything it brought.

use crate::args::cluster::ClusterArguments;
use crate::cluster::Cluster;
use crate::cluster::wait::{self, Goal};
use crate::command::change::{Change, tell_all};
use crate::command::login;
use crate::failure::{Failure, Outcome};
use crate::output::{self, ObjectFormat};
use crate::settings::Settings;
use inventory::definitions::{self, Definition, total};
use inventory::{FoundObject, Installed, Inventory, Which};
use std::io::IsTerminal as _;
use std::time::Duration;

/// So many definitions with objects are named where nobody can be asked.
const SHOWN_MAX: usize = 10;

/// What to remove.
pub(crate) struct Request {
    pub(crate) which: Vec<Which>,
    /// Although other packages need it.
    pub(crate) force: bool,
    /// Only say what would go, with the objects of each kind.
    pub(crate) dry_run: bool,
    /// Although there are objects of its kinds, which are deleted.
    pub(crate) deletes_objects: bool,
    /// How long to wait until it is gone; not at all if it is not said.
    pub(crate) wait: Option<Duration>,
    pub(crate) format: ObjectFormat,
    pub(crate) cluster: ClusterArguments,
}

/// Removes packages.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    let inventory = Inventory::gather(&cluster).await?;
    let found: Outcome<Vec<FoundObject<'_>>> =
        request.which.iter().map(|which| inventory.find_object(which)).collect();
    let found = found?;
    let going = inventory.going_with(&found);
    if !request.force {
        inventory.refuse_needed(&found, &going)?;
    }
    let mut lost = Vec::new();
    for one in &going {
        lost.extend(definitions::owned(&cluster, one).await?);
    }
    if !request.dry_run && !is_agreed(request, &lost)? {
        output::say("nothing was changed");
        return Ok(());
    }
    let (mut gone, mut failed) = (Vec::new(), None);
    for one in &found {
        let (resource, name) = one.address(&cluster);
        if !request.dry_run
            && let Err(failure) = cluster.delete(&resource, name).await
        {
            failed = Some(failure);
            break;
        }
        gone.push(change(request, *one));
    }
    tell_all(&gone, request.format, &cluster)?;
    if request.dry_run {
        show(request, &lost, &inventory.needless_without(&going));
    }
    if let Some(failure) = failed {
        return Err(failure);
    }
    if let (Some(time), false) = (request.wait, request.dry_run) {
        let which: Vec<Which> = found.iter().map(|one| one.which()).collect();
        wait::until(&cluster, &which, Goal::Deleted, time).await?;
    }
    Ok(())
}

fn change(request: &Request, one: FoundObject<'_>) -> Change {
    let (kind, name) = one.kind_and_name();
    let said = if request.dry_run { "would uninstall" } else { "uninstalled" };
    let detail = format!("{kind} {}", output::bold(&name));
    Change { word: "deleted", said, kind, name, detail, object: one.json().clone() }
}

/// The definitions that go, those with objects each with the first of them; and packages that stay
/// without a use.
fn show(request: &Request, lost: &[Definition], needless: &[&Installed]) {
    let (idle, lived): (Vec<&Definition>, Vec<&Definition>) =
        lost.iter().partition(|it| it.instances.is_none());
    let mut lines: Vec<String> = lived.iter().flat_map(|it| it.lines()).collect();
    if !idle.is_empty() {
        lines.push(format!("- {}", total(&idle)));
    }
    let needless = needless.iter().map(|it| it.id());
    lines.extend(needless.map(|id| format!("{id} stays, and nothing needs it any more")));
    match request.format {
        ObjectFormat::Text | ObjectFormat::Wide => lines.iter().for_each(output::print),
        _ => lines.iter().for_each(output::say),
    }
}

/// Whether somebody agrees that objects of the packages' kinds go with them.
fn is_agreed(request: &Request, lost: &[Definition]) -> Outcome<bool> {
    let lived: Vec<&Definition> = lost.iter().filter(|it| !it.instances.is_none()).collect();
    if lived.is_empty() || request.deletes_objects {
        return Ok(true);
    }
    let total = total(&lived);
    if !std::io::stdin().is_terminal() {
        let mut failure = Failure::new(
            format!("{total} would be deleted"),
            "see them with --dry-run; with --delete-objects they are deleted",
        );
        let shown = lived.iter().take(SHOWN_MAX);
        failure.causes.extend(shown.map(|it| format!("{} has {}", it.id(), it.instances)));
        return Err(failure);
    }
    lived.iter().flat_map(|it| it.lines()).for_each(output::say);
    let answer = login::ask(&format!("delete {total}? [y/N]"))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
