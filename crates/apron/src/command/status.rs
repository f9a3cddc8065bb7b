//! `status`: packages, their revisions and what they need, as a tree, with what is in the way.

use crate::args::cluster::ClusterArguments;
use crate::cluster::Cluster;
use crate::cluster::pods::{PodTroubles, find_logged_troubles};
use crate::failure::{Failure, Outcome};
use crate::output::tree::{self, Branch};
use crate::output::{self, ObjectFormat, bold, dim};
use crate::settings::Settings;
use api::pkg::revision::{ACTIVE, Revision};
use explorer::plane::{PlaneNeed, PlanePackage, PlaneRevision};
use inventory::{
    FoundObject, InstallObject, InstallShown, Installed, Inventory, Needed, PodTrouble, Which,
    count_objects, revision_state, version,
};
use serde::Serialize;

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
    let roots: Vec<FoundObject<'_>> = if request.which.is_empty() {
        let installs = inventory.installs.iter().map(FoundObject::Install);
        installs.chain(inventory.roots().into_iter().map(FoundObject::Package)).collect()
    } else {
        request.which.iter().map(|which| inventory.find_object(which)).collect::<Outcome<_>>()?
    };
    let all = packages_of(&inventory, &roots);
    let troubles = match request.format {
        ObjectFormat::Name => Vec::new(),
        _ => Box::pin(find_logged_troubles(&cluster, &all)).await,
    };
    let drawing = Drawing { inventory: &inventory, troubles: &troubles, is_wide: false };
    show(request.format, &cluster, &drawing, &roots)?;
    let named = if request.which.is_empty() { &[][..] } else { &roots };
    let ill = named.iter().filter(|one| !one.state(&inventory).is_well());
    let ill: Vec<String> = ill.map(|one| one.id()).collect();
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
    let roots: Outcome<Vec<FoundObject<'_>>> =
        which.iter().map(|it| inventory.find_object(it)).collect();
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

/// A package or an install object, for programs.
#[derive(Serialize)]
#[serde(untagged)]
enum ObjectStatus<'a> {
    Package(Box<PackageStatus>),
    Install(Box<InstallShown<'a>>),
}

/// The packages of these and what they need, each once.
fn packages_of<'a>(inventory: &'a Inventory, roots: &[FoundObject<'a>]) -> Vec<&'a Installed> {
    let packages: Vec<&Installed> =
        roots.iter().filter_map(|root| root.package(inventory)).collect();
    inventory.closures(&packages)
}

fn show(
    format: ObjectFormat,
    cluster: &Cluster,
    drawing: &Drawing<'_>,
    roots: &[FoundObject<'_>],
) -> Outcome {
    let packages = packages_of(drawing.inventory, roots);
    let installs = roots.iter().filter(|one| matches!(one, FoundObject::Install(_))).copied();
    let all = installs.chain(packages.iter().copied().map(FoundObject::Package));
    let all: Vec<FoundObject<'_>> = all.collect();
    let report = || -> Vec<ObjectStatus<'_>> {
        let told = all.iter().map(|one| match one {
            FoundObject::Package(one) => ObjectStatus::Package(drawing.report_status(one).into()),
            FoundObject::Install(one) => ObjectStatus::Install(one.shown(drawing.inventory).into()),
        });
        told.collect()
    };
    match format {
        ObjectFormat::Json => return output::print_json(&report()),
        ObjectFormat::Yaml => return output::print_yaml(&report()),
        ObjectFormat::Name => all.iter().for_each(|one| output::print(one.full_name(cluster))),
        ObjectFormat::Text => drawing.draw_trees(roots),
        ObjectFormat::Wide => Drawing { is_wide: true, ..*drawing }.draw_trees(roots),
    }
    Ok(())
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
        state: revision_state(one),
        version: version(&one.spec.image),
        objects: count_objects(one),
    }
}

fn report_need(it: &Needed<'_>) -> PlaneNeed {
    PlaneNeed {
        package: it.dependency.package.clone(),
        constraints: it.dependency.constraints.clone(),
        installed: it.installed.map(Installed::id),
        version: it.installed.map(Installed::version),
        satisfied: it.fits().unwrap_or(it.installed.is_some() || it.is_external()),
        reason: it.dependency.reason.clone(),
    }
}

struct Drawing<'a> {
    inventory: &'a Inventory,
    troubles: &'a PodTroubles,
    is_wide: bool,
}

impl Drawing<'_> {
    fn draw_trees(&self, roots: &[FoundObject<'_>]) {
        if roots.is_empty() {
            output::say("nothing is installed; `apron install REFERENCE` installs a package");
        }
        let mut seen = Vec::new();
        for root in roots {
            let tree = match root {
                FoundObject::Package(one) => self.package(one, None, &mut seen),
                FoundObject::Install(one) => self.install(one, &mut seen),
            };
            tree::lines(&tree).into_iter().for_each(output::print);
        }
    }

    /// An install object with its record, and the Provider that it became.
    fn install(&self, one: &InstallObject, seen: &mut Vec<String>) -> Branch {
        let about = if self.is_wide { one.package() } else { one.version(self.inventory) };
        let (kind, state) = (one.kind.to_lowercase(), one.state(self.inventory).word());
        let complaints = one.complaints(self.inventory);
        let mut below: Vec<Branch> =
            complaints.into_iter().map(|it| Branch::leaf(format!("! {it}"))).collect();
        below.extend(one.record_line().map(Branch::leaf));
        let provider = one.provider(self.inventory);
        below.extend(provider.map(|provider| self.package(provider, None, seen)));
        Branch { line: format!("{kind} {} {about}: {state}", bold(one.key())), below }
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
            Some(one) if needed.fits() == Some(false) => {
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
    let state = revision_state(one);
    let objects = output::count(count_objects(one), "object");
    let about = match one.spec.desired_state.as_str() {
        ACTIVE => format!("{state}, {objects}"),
        _ => state,
    };
    let version = version(&one.spec.image);
    Branch::leaf(format!("revision {} {} {version}: {about}", one.spec.revision, one.metadata.name))
}
