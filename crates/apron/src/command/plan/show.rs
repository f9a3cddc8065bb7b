//! How a plan is told: package by package, and how much it is in all.

use crate::output::{bold, count, dim};
use controller::rehearsal::{Action, ObjectAction, ObjectPreview, PackagePreview, Preview};
use inventory::version;

/// The lines of a plan.
pub(super) fn draw(preview: &Preview) -> Vec<String> {
    if preview.packages.is_empty() {
        return vec!["nothing would change".to_owned()];
    }
    let mut lines: Vec<String> = preview.packages.iter().flat_map(package).collect();
    lines.extend(preview.standing.iter().map(|it| format!("! wrong already: {it}")));
    if preview.troubles.is_empty() {
        lines.push(summary(preview));
    }
    lines
}

fn package(one: &PackagePreview) -> Vec<String> {
    let to = version(&one.to);
    let sign = if one.action == Action::Install { '+' } else { '~' };
    let from = one.from.as_deref().map(version).unwrap_or_default();
    let what = match one.action {
        Action::Install => format!("{to} is installed"),
        Action::Upgrade => format!("{from} is upgraded to {to}"),
        Action::Downgrade => format!("{from} is downgraded to {to}"),
        Action::Switch => format!("{from} becomes {to}"),
        Action::Keep => format!("{to} stays"),
    };
    let kind = one.kind.to_lowercase();
    let mut lines = vec![format!("{sign} {kind} {} {what}", bold(&one.name))];
    let mut add = |line: String| lines.push(format!("    {line}"));
    add(dim(&one.to));
    one.because.iter().for_each(|because| add(format!("because {because}")));
    if let Some(replaced) = &one.replaces {
        add(format!("takes the place of {replaced}, which was installed automatically"));
    }
    if let Some(revision) = &one.awaits_activation {
        add(format!("revision {revision} waits: apron activate {}", one.name));
    }
    one.objects.iter().for_each(|object| add(told(object)));
    one.definitions_retained.iter().for_each(|told| add(format!("! {told}")));
    one.permissions_gained.iter().for_each(|it| add(format!("+ may {}", may(it))));
    one.permissions_lost.iter().for_each(|it| add(format!("- may no longer {}", may(it))));
    one.runtime.iter().for_each(|line| add(format!("> {line}")));
    one.revisions_removed.iter().for_each(|it| add(format!("- revision {it}")));
    lines
}

fn told(object: &ObjectPreview) -> String {
    let ObjectPreview { kind, name, action, details } = object;
    let (sign, note) = match action {
        ObjectAction::Add => ('+', String::new()),
        ObjectAction::Change => ('~', String::new()),
        ObjectAction::Keep => {
            (' ', ": no longer part of the package, stays with its older revision".to_owned())
        }
        ObjectAction::Retain => {
            (' ', ": no longer part of the package, stays for its objects".to_owned())
        }
        ObjectAction::Remove => ('-', ": goes".to_owned()),
    };
    let details = match details.as_slice() {
        [] => String::new(),
        details => format!(": {}", details.join("; ")),
    };
    format!("{sign} {kind} {name}{note}{details}")
}

/// `get, list: things.example.org` as `get, list things.example.org`.
fn may(right: &str) -> String {
    match right.split_once(": ") {
        Some(("*", things)) => format!("do everything with {things}"),
        Some((verbs, things)) => format!("{verbs} {things}"),
        None => right.to_owned(),
    }
}

fn summary(preview: &Preview) -> String {
    let packages = |actions: &[Action]| {
        preview.packages.iter().filter(|one| actions.contains(&one.action)).count()
    };
    let objects = |action: ObjectAction| {
        let all = preview.packages.iter().flat_map(|one| &one.objects);
        all.filter(|one| one.action == action).count()
    };
    let moved = packages(&[Action::Upgrade, Action::Downgrade, Action::Switch]);
    format!(
        "{} to install, {moved} to change; {} to add, {} to change, {} to remove",
        count(packages(&[Action::Install]), "package"),
        count(objects(ObjectAction::Add), "object"),
        objects(ObjectAction::Change),
        objects(ObjectAction::Remove),
    )
}
