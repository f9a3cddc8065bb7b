//! Why things are as they are, and what would change.

use super::World;
use super::act::image;
use super::members::Members;
use super::question::Question;
use solver::{
    Action, Bringer, Change, Conflict, Listing, Pin, Range, Requirement, Settlement, Source,
};
use std::collections::BTreeMap;

/// What was decided about each package, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// One for each package that is to be there; what is needed comes before what needs it.
    pub changes: Vec<Change>,
    /// Who cannot have what they want.
    pub conflicts: Vec<Conflict>,
    /// The names of package objects, and which packages they are.
    pub names: BTreeMap<String, Source>,
    /// For packages with higher versions than the one chosen: those versions, and who does not
    /// accept them.
    pub passed_over: BTreeMap<Source, Vec<String>>,
    /// For packages that were chosen for a kind: for which, and why they.
    pub chosen: BTreeMap<Source, Vec<String>>,
    /// Kinds that packages need and that are there without one, each a sentence.
    pub external: Vec<String>,
}

impl Report {
    pub(super) fn new(
        world: &World,
        members: &Members<'_>,
        question: &Question<'_>,
        settlement: Settlement,
    ) -> Self {
        let names = members.all.iter().map(|one| (one.label.clone(), one.name.source.clone()));
        let names: BTreeMap<String, Source> = names.collect();
        let Settlement { changes, conflicts } = settlement;
        let passed_over = changes.iter().filter_map(|change| {
            let passed = passed_over(change, &changes, question);
            (!passed.is_empty()).then(|| (change.source.clone(), passed))
        });
        let passed_over = passed_over.collect();
        let (chosen, external) = origins(world, question);
        Self { changes, conflicts, names, passed_over, chosen, external }
    }

    /// What changes, in sentences; nothing when everything stays.
    pub fn sentences(&self) -> Vec<String> {
        let moved = self.changes.iter().filter(|change| change.action != Action::Keep);
        // What was asked for and is not there yet is on its way without us.
        let ours = moved.filter(|change| change.action != Action::Install || change.name.is_none());
        let changes = ours.map(|change| {
            let chosen = self.chosen.get(&change.source).into_iter().flatten().cloned();
            let reasons: Vec<String> = because(change).into_iter().chain(chosen).collect();
            match reasons.as_slice() {
                [] => change.to_string(),
                reasons => format!("{change}, because {}", reasons.join("; ")),
            }
        });
        let conflicts = self.conflicts.iter().map(|one| format!("{} is refused: {one}", one.name));
        changes.chain(conflicts).collect()
    }

    /// Everything there is to say about one package, by the name of its object or its repository.
    pub fn why(&self, name: &str) -> Vec<String> {
        let source = self.names.get(name).cloned().unwrap_or_else(|| Source::new(name));
        let mut lines = Vec::new();
        if let Some(change) = self.changes.iter().find(|change| change.source == source) {
            let is = image(change.source.as_str(), &change.to);
            lines.push(match (&change.from, change.action) {
                (_, Action::Keep) => format!("{name} is {is}"),
                (Some(from), action) => format!("{name} is {from}, and will {action} to {is}"),
                (None, _) => format!("{name} will be {is}"),
            });
            let needs = change.because.iter();
            let needs =
                needs.map(|one| format!("{} {} needs it: {}", one.source, one.pin, one.wants));
            let before = lines.len();
            lines.extend(needs);
            if lines.len() == before {
                lines.push("nobody needs it; somebody asked for it".to_owned());
            }
            lines.extend(self.chosen.get(&source).into_iter().flatten().cloned());
        }
        lines.extend(self.passed_over.get(&source).into_iter().flatten().cloned());
        let involved = self.conflicts.iter().filter(|one| one.involved.contains(&source));
        for conflict in involved {
            lines.push(format!("{} is refused:", conflict.name));
            lines.extend(conflict.sentences.iter().map(|sentence| format!("  {sentence}")));
            lines.push(format!("  hint: {}", conflict.hint));
        }
        lines
    }
}

/// Why packages were chosen for kinds, and which kinds need none.
fn origins(world: &World, question: &Question<'_>) -> (BTreeMap<Source, Vec<String>>, Vec<String>) {
    let (mut chosen, mut external) = (BTreeMap::<Source, Vec<String>>::new(), Vec::new());
    for (crd, choice) in &question.choices {
        let reason = &choice.reason;
        match (&choice.name, &choice.bringer) {
            (Some(name), _) => {
                let told = chosen.entry(name.source.clone()).or_default();
                told.push(format!("chosen for the CRD {crd}: {reason}"));
            }
            (None, Bringer::There) => external.push(format!("the CRD {crd} is there: {reason}")),
            (None, _) => {}
        }
    }
    let packages = world.lock.iter().flat_map(|lock| lock.packages.iter().flatten());
    for dependency in packages.flat_map(|one| &one.dependencies) {
        let Some((written, reason)) =
            dependency.brought_by.as_ref().zip(dependency.reason.as_ref())
        else {
            continue;
        };
        let Ok(name) = question.sources.repository(written) else { continue };
        let told = chosen.entry(name.source).or_default();
        let line = format!("brings the CRD {}: {reason}", dependency.package);
        if !question.choices.contains_key(&dependency.package) && !told.contains(&line) {
            told.push(line);
        }
    }
    (chosen, external)
}

fn because(change: &Change) -> Option<String> {
    let needs = change.because.iter();
    let needs = needs.map(|one| format!("{} {} needs {}", one.source, one.pin, one.wants));
    let needs = needs.collect::<Vec<_>>().join(" and ");
    Some(needs).filter(|needs| !needs.is_empty())
}

/// Versions above the one chosen, with who among the chosen does not accept them.
fn passed_over(change: &Change, changes: &[Change], question: &Question<'_>) -> Vec<String> {
    let Some(Listing::Tags(tags)) = question.known.listings.get(&change.source) else {
        return Vec::new();
    };
    let Some(chosen) = change.to.version() else { return Vec::new() };
    let mut higher: Vec<Pin> = tags.iter().map(|tag| Pin::parse(&tag.name)).collect();
    higher.retain(|pin| {
        let version = pin.version();
        version.is_some_and(|it| it > chosen && it.is_installable() && !it.is_prerelease())
    });
    higher.sort();
    let Some(highest) = higher.last() else { return Vec::new() };
    let against = changes.iter().filter_map(|other| {
        let range = refuses(other, &change.source, highest, question)?;
        Some(format!("{highest} is passed over: {} {} needs {range}", other.source, other.to))
    });
    against.collect()
}

fn refuses<'q>(
    change: &Change,
    source: &Source,
    pin: &Pin,
    question: &'q Question<'_>,
) -> Option<&'q Range> {
    let inside = question.known.contents.get(&(change.source.clone(), change.to.clone()))?;
    let solver::Contents::Package(package) = inside else { return None };
    package.requires.iter().find_map(|requirement| match requirement {
        Requirement::Package { source: target, range, .. } => {
            (target == source && !range.accepts(pin)).then_some(range)
        }
        Requirement::Crd(_) | Requirement::Invalid(_) => None,
    })
}
