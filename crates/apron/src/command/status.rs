//! `status`: packages, their revisions and what they need, as a tree, with what is in the way.

use crate::args::cluster::ClusterArguments;
use crate::cluster::Cluster;
use crate::cluster::pods::{PodTroubles, find_logged_troubles};
use crate::failure::{Failure, Outcome};
use crate::output::tree::{self, Branch};
use crate::output::{self, ObjectFormat, bold, dim};
use crate::settings::Settings;
use api::condition::{self, types};
use api::pkg::revision::{ACTIVE, Revision};
use explorer::plane::{PlaneNeed, PlanePackage, PlaneRevision};
use inventory::{Installed, Inventory, Needed, PodTrouble, Which, lower, reference, version};
use serde::Serialize;
use xpkg::constraint::Constraint;
use xpkg::version::Version;

/// What to show.
pub(crate) struct Request {
    /// All, if none is named.
    pub(crate) which: Vec<Which>,
    pub(crate) format: ObjectFormat,
    pub(crate) cluster: ClusterArguments,
}

/// Shows packages; fails if one that was named is not well.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    let inventory = Inventory::gather(&cluster).await?;
    let roots: Vec<&Installed> = if request.which.is_empty() {
        roots(&inventory)
    } else {
        request.which.iter().map(|which| inventory.find(which)).collect::<Outcome<_>>()?
    };
    let all: Vec<&Installed> = distinct(&inventory, &roots);
    let troubles = match request.format {
        ObjectFormat::Name => Vec::new(),
        _ => Box::pin(find_logged_troubles(&cluster, &all)).await,
    };
    let drawing = Drawing { inventory: &inventory, troubles: &troubles, is_wide: false };
    show(request.format, &cluster.group, &drawing, &roots)?;
    let named = if request.which.is_empty() { &[][..] } else { &roots };
    let ill: Vec<String> =
        named.iter().filter(|one| !one.state().is_well()).map(|one| one.id()).collect();
    if ill.is_empty() {
        return Ok(());
    }
    let verb = if ill.len() == 1 { "is" } else { "are" };
    Err(Failure::new(
        format!("{} {verb} not well", ill.join(" and ")),
        "the lines above say why; `apron wait` waits until it is",
    ))
}

/// Draws packages of an inventory.
pub(super) fn draw(inventory: &Inventory, which: &[Which]) -> Outcome {
    let roots: Outcome<Vec<&Installed>> = which.iter().map(|it| inventory.find(it)).collect();
    Drawing { inventory, troubles: &Vec::new(), is_wide: false }.draw_trees(&roots?);
    Ok(())
}

/// A package, and what is in the way of its pods.
#[derive(Serialize)]
struct PackageStatus {
    #[serde(flatten)]
    package: PlanePackage,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pods: Vec<PodTrouble>,
}

fn show(format: ObjectFormat, group: &str, drawing: &Drawing<'_>, roots: &[&Installed]) -> Outcome {
    let all = distinct(drawing.inventory, roots);
    let report =
        || -> Vec<PackageStatus> { all.iter().map(|one| drawing.report_status(one)).collect() };
    match format {
        ObjectFormat::Json => return output::print_json(&report()),
        ObjectFormat::Yaml => return output::print_yaml(&report()),
        ObjectFormat::Name => {
            for one in &all {
                output::print(format_args!("{}.{group}/{}", lower(one.kind), one.name()));
            }
        }
        ObjectFormat::Text => drawing.draw_trees(roots),
        ObjectFormat::Wide => Drawing { is_wide: true, ..*drawing }.draw_trees(roots),
    }
    Ok(())
}

/// Packages and what they need, each once.
fn distinct<'a>(inventory: &'a Inventory, roots: &[&'a Installed]) -> Vec<&'a Installed> {
    let mut kept: Vec<&Installed> = Vec::new();
    for one in roots.iter().flat_map(|root| inventory.closure(root)) {
        if !kept.iter().any(|other| other.id() == one.id()) {
            kept.push(one);
        }
    }
    kept
}

/// Packages that nobody needs, and one of each circle.
fn roots(inventory: &Inventory) -> Vec<&Installed> {
    let is_root = |one: &&Installed| inventory.needed_by(one).is_empty();
    let mut roots: Vec<&Installed> = inventory.packages.iter().filter(is_root).collect();
    for one in &inventory.packages {
        let is_shown =
            roots.iter().any(|root| inventory.closure(root).iter().any(|it| it.id() == one.id()));
        if !is_shown {
            roots.push(one);
        }
    }
    roots
}

/// Everything there is to say about a package.
pub(crate) fn report_package(one: &Installed, inventory: &Inventory) -> PlanePackage {
    PlanePackage {
        id: one.id(),
        name: one.name().to_owned(),
        kind: one.kind.as_str(),
        version: one.version(),
        package: one.package.spec.package.clone(),
        state: one.state().word(),
        is_well: one.state().is_well(),
        waiting: one.waiting().map(|it| version(&it.spec.image)),
        messages: one.complaints(),
        remark: one.remark(),
        revisions: one.revisions.iter().map(report_revision).collect(),
        dependencies: inventory.needs(one).iter().map(report_need).collect(),
        needed_by: inventory.needed_by(one).into_iter().map(Installed::id).collect(),
    }
}

fn report_revision(one: &Revision) -> PlaneRevision {
    PlaneRevision {
        name: one.metadata.name.clone(),
        number: one.spec.revision,
        state: state_of(one),
        version: version(&one.spec.image),
        objects: objects_of(one),
    }
}

fn report_need(it: &Needed<'_>) -> PlaneNeed {
    PlaneNeed {
        package: it.dependency.package.clone(),
        constraints: it.dependency.constraints.clone(),
        installed: it.installed.map(Installed::id),
        version: it.installed.map(Installed::version),
        satisfied: fits(it).unwrap_or(it.installed.is_some() || it.is_external()),
        reason: it.dependency.reason.clone(),
    }
}

/// What a revision is, and not only what it is to be: one that never had anything in the cluster is
/// not called active.
fn state_of(one: &Revision) -> String {
    let said = condition::find(one.conditions(), types::REVISION_HEALTHY);
    let said = said.filter(|it| !it.is_past(one.metadata.generation));
    match one.spec.desired_state.as_str() {
        "" => "undecided".to_owned(),
        ACTIVE if one.is_present() => "active".to_owned(),
        ACTIVE if said.is_some_and(|it| it.status == "False") => "not installed".to_owned(),
        ACTIVE => "installing".to_owned(),
        state => state.to_lowercase(),
    }
}

/// How many of its objects are in the cluster; those that it only means to bring have no identity yet.
fn objects_of(one: &Revision) -> usize {
    let objects = one.status.iter().flat_map(|it| it.object_refs.iter().flatten());
    objects.filter(|it| it.uid.is_some()).count()
}

/// Whether what is installed will do; nothing if that cannot be told.
fn fits(it: &Needed<'_>) -> Option<bool> {
    let installed = it.installed?;
    if it.is_on_kind() {
        return None;
    }
    let constraints = &it.dependency.constraints;
    let reference = reference(installed.image())?;
    if constraints.starts_with("sha256:") {
        return Some(reference.identifier().to_string() == *constraints);
    }
    let version = Version::parse(reference.identifier().as_tag()?).ok()?;
    Some(Constraint::parse(constraints).ok()?.matches(&version))
}

struct Drawing<'a> {
    inventory: &'a Inventory,
    troubles: &'a PodTroubles,
    is_wide: bool,
}

impl Drawing<'_> {
    fn draw_trees(&self, roots: &[&Installed]) {
        if roots.is_empty() {
            output::say("nothing is installed; `apron install REFERENCE` installs a package");
        }
        let mut seen = Vec::new();
        for root in roots {
            let tree = self.package(root, None, &mut seen);
            tree::lines(&tree).into_iter().for_each(output::print);
        }
    }

    fn report_status(&self, one: &Installed) -> PackageStatus {
        let (package, id) = (report_package(one, self.inventory), one.id());
        let own = self.troubles.iter().filter(|(of, _)| *of == id);
        PackageStatus { package, pods: own.map(|(_, trouble)| trouble.clone()).collect() }
    }

    /// What is in the way of the pods of a package, each with the end of its log.
    fn pods(&self, one: &Installed) -> impl Iterator<Item = Branch> {
        let id = one.id();
        let own = self.troubles.iter().filter(move |(of, _)| *of == id);
        own.map(|(_, trouble)| {
            let lines = trouble.log.iter().flat_map(|log| &log.lines);
            Branch {
                line: format!("! {}", trouble.sentence()),
                below: lines.map(|line| Branch::leaf(dim(line))).collect(),
            }
        })
    }

    fn package(&self, one: &Installed, note: Option<String>, seen: &mut Vec<String>) -> Branch {
        let state = one.state();
        let about = if self.is_wide { one.image().to_owned() } else { one.version() };
        let kind = one.kind.as_str().to_lowercase();
        let note = note.map(|note| format!(" {}", dim(note))).unwrap_or_default();
        let head = format!("{kind} {} {about}{note}: {}", bold(one.name()), state.word());
        if seen.contains(&one.id()) {
            return Branch::leaf(format!("{head} {}", dim("(see above)")));
        }
        seen.push(one.id());
        let mut below: Vec<Branch> =
            one.complaints().into_iter().map(|it| Branch::leaf(format!("! {it}"))).collect();
        below.extend(self.pods(one));
        below.extend(one.remark().map(Branch::leaf));
        below.extend(one.revisions.iter().map(revision));
        for needed in self.inventory.needs(one) {
            below.push(self.dependency(&needed, seen));
        }
        Branch { line: head, below }
    }

    fn dependency(&self, needed: &Needed<'_>, seen: &mut Vec<String>) -> Branch {
        let dependency = needed.dependency;
        let constraints = needed.wants();
        match needed.installed {
            Some(one) if fits(needed) == Some(false) => {
                self.package(one, Some(format!("(does not fit {constraints})")), seen)
            }
            Some(one) => self.package(one, Some(format!("({constraints})")), seen),
            None if needed.is_external() => Branch::leaf(format!(
                "{} {}",
                bold(&dependency.package),
                dim(format_args!("({constraints})"))
            )),
            None => Branch::leaf(format!(
                "! {} {}: not installed",
                bold(&dependency.package),
                dim(format_args!("({constraints})"))
            )),
        }
    }
}

fn revision(one: &Revision) -> Branch {
    let state = state_of(one);
    let objects = output::count(objects_of(one), "object");
    let about = match one.spec.desired_state.as_str() {
        ACTIVE => format!("{state}, {objects}"),
        _ => state,
    };
    let version = version(&one.spec.image);
    Branch::leaf(format!("revision {} {} {version}: {about}", one.spec.revision, one.metadata.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_in_the_cluster_is_called_active() {
        let revision = |state: &str, healthy: Option<&str>, uid: Option<&str>| -> Revision {
            let conditions: Vec<_> = healthy
                .map(|status| {
                    json!({"type": "RevisionHealthy", "status": status, "reason": "R",
                           "lastTransitionTime": "2026-01-31T12:00:00Z"})
                })
                .into_iter()
                .collect();
            let object = json!({"apiVersion": "v1", "kind": "K", "name": "n", "uid": uid});
            let revision = json!({
                "apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision",
                "metadata": {"name": "p-1"},
                "spec": {"image": "p:v1", "revision": 1, "desiredState": state},
                "status": {"conditions": conditions, "objectRefs": [object]},
            });
            serde_json::from_value(revision).unwrap()
        };
        for (state, healthy, uid, said) in [
            ("Active", Some("True"), Some("u"), "active"),
            ("Active", Some("True"), None, "active"),
            ("Active", Some("False"), None, "not installed"),
            // An object of it may be in the way of an update, but it is there.
            ("Active", Some("False"), Some("u"), "active"),
            ("Active", None, None, "installing"),
            ("Inactive", Some("True"), Some("u"), "inactive"),
            ("", None, None, "undecided"),
        ] {
            let revision = revision(state, healthy, uid);
            assert_eq!(state_of(&revision), said, "{state} {healthy:?} {uid:?}");
            assert_eq!(objects_of(&revision), usize::from(uid.is_some()), "only what is there");
        }
    }
}
