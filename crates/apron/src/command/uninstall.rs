//! `uninstall`: a package and everything it brought.

use crate::args::cluster::ClusterArguments;
use crate::cluster::Cluster;
use crate::cluster::wait::{self, Goal};
use crate::command::change::{Change, tell_all};
use crate::command::login;
use crate::failure::{Failure, Outcome};
use crate::output::{self, ObjectFormat};
use crate::settings::Settings;
use controller::is_automatic;
use inventory::definitions::{self, Definition, total};
use inventory::lower;
use inventory::{Installed, Inventory, Which};
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
    let found: Outcome<Vec<&Installed>> =
        request.which.iter().map(|which| inventory.find(which)).collect();
    let found = found?;
    for one in &found {
        refuse_needed(request, &inventory, one, &found)?;
    }
    let mut lost = Vec::new();
    for one in &found {
        lost.extend(definitions::owned(&cluster, one).await?);
    }
    if !request.dry_run && !is_agreed(request, &lost)? {
        output::say("nothing was changed");
        return Ok(());
    }
    let (mut gone, mut failed) = (Vec::new(), None);
    for one in &found {
        if !request.dry_run
            && let Err(failure) = cluster.delete(&cluster.packages(one.kind), one.name()).await
        {
            failed = Some(failure);
            break;
        }
        gone.push(change(request, one));
    }
    tell_all(&gone, request.format, &cluster)?;
    if request.dry_run {
        show(request, &lost, &needless_packages(&inventory, &found));
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

fn change(request: &Request, one: &Installed) -> Change {
    let (kind, name) = (one.kind, one.name().to_owned());
    let said = if request.dry_run { "would uninstall" } else { "uninstalled" };
    let detail = format!("{} {}", lower(kind), output::bold(&name));
    Change { word: "deleted", said, kind, name, detail, object: one.json.clone() }
}

/// What others need stays, unless they go, too.
fn refuse_needed(
    request: &Request,
    inventory: &Inventory,
    one: &Installed,
    going: &[&Installed],
) -> Outcome {
    let stays = |other: &&Installed| !going.iter().any(|it| it.id() == other.id());
    let users: Vec<String> =
        inventory.needed_by(one).into_iter().filter(stays).map(Installed::id).collect();
    if users.is_empty() || request.force {
        return Ok(());
    }
    let verb = if users.len() == 1 { "needs" } else { "need" };
    Err(Failure::new(
        format!("{} {verb} {}", users.join(" and "), one.id()),
        "uninstall them together, or this one alone with --force; the package manager may bring \
         it back",
    ))
}

/// Packages that the package manager brought for others, and that only what goes needs.
fn needless_packages<'a>(inventory: &'a Inventory, going: &[&'a Installed]) -> Vec<&'a Installed> {
    let mut all = going.to_vec();
    let is_of = |all: &[&Installed], one: &Installed| all.iter().any(|it| it.id() == one.id());
    loop {
        let next = inventory.packages.iter().find(|one| {
            let users = inventory.needed_by(one);
            let is_left = !users.is_empty() && users.into_iter().all(|it| is_of(&all, it));
            is_left && is_automatic(&one.package) && !is_of(&all, one)
        });
        let Some(next) = next else { return all.split_off(going.len()) };
        all.push(next);
    }
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
