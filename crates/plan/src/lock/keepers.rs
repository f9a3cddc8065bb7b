//! Packages whose image another field manager keeps.
//!
//! A package object that came from git, or from kubectl, has a field manager for its `spec.package`
//! that is not this one. Editing it would make the two fight, or leave git behind the cluster. So it
//! is not moved for the sake of others unless an administrator asks for that, for all packages or for
//! one; instead the conflict says what to write where it is kept.

use super::act::image;
use super::members::{Member, Members};
use super::question::Question;
use super::{Settings, World};
use crate::step::{MANAGER, Need};
use api::pkg::{ANNOTATION_AUTOMATIC, ANNOTATION_UPGRADES, Package};
use serde_json::Value as Json;
use solver::{Outcome, Settlement};

/// The field manager besides this one that keeps the image that a package asks for.
fn keeper_of(package: &Package) -> Option<&str> {
    let records = package.metadata.rest.get("managedFields").and_then(Json::as_array);
    let is_its = |record: &&Json| {
        record["manager"] != MANAGER && record["fieldsV1"]["f:spec"].get("f:package").is_some()
    };
    records.into_iter().flatten().find(is_its).and_then(|record| record["manager"].as_str())
}

/// Whether this manager brought a package for others, and no other field manager keeps its image since.
pub fn is_automatic(package: &Package) -> bool {
    package.metadata.annotations.contains_key(ANNOTATION_AUTOMATIC) && keeper_of(package).is_none()
}

/// The field manager that keeps a package where it is.
pub(super) fn holder_of<'a>(package: &'a Package, settings: &Settings) -> Option<&'a str> {
    let allowed = package.metadata.annotations.get(ANNOTATION_UPGRADES);
    let is_allowed = settings.moves_kept || allowed.is_some_and(|value| value == "true");
    keeper_of(package).filter(|_| !is_allowed)
}

/// Says of conflicts what to write where packages are kept, if that would settle them.
pub(super) fn advise_conflicts(
    world: &World,
    members: &Members<'_>,
    settlement: &mut Settlement,
) -> Result<(), Vec<Need>> {
    let is_held = |member: &&Member<'_>| holder_of(member.package, &world.settings).is_some();
    let held: Vec<&Member<'_>> = members.all.iter().filter(is_held).collect();
    if held.is_empty() || settlement.conflicts.is_empty() {
        return Ok(());
    }
    let settings = Settings { moves_kept: true, ..world.settings.clone() };
    let freed = World { settings, ..world.clone() };
    let members = Members::new(&freed);
    let question = Question::new(&freed, &members)?;
    let other = match solver::solve(&question.problem, &question.known) {
        Outcome::Missing(needs) => return Err(question.needs(&needs)),
        Outcome::Settled(other) => other,
    };
    for conflict in &mut settlement.conflicts {
        if other.conflicts.iter().any(|one| one.name == conflict.name) {
            continue;
        }
        let involved = held.iter().filter(|one| conflict.involved.contains(&one.name.source));
        let lines = involved.filter_map(|member| moved_image(member, &other, &world.settings));
        let lines: Vec<String> = lines.collect();
        if !lines.is_empty() {
            conflict.hint = format!(
                "write {}; or let the package manager do it, with \
                 --enable-dependency-version-upgrades or by the annotation \
                 {ANNOTATION_UPGRADES}=true",
                lines.join(" and ")
            );
        }
    }
    Ok(())
}

/// What to write of a package that would be moved.
fn moved_image(member: &Member<'_>, other: &Settlement, settings: &Settings) -> Option<String> {
    let holder = holder_of(member.package, settings)?;
    let of_it = |name: &Option<String>| name.as_deref() == Some(&member.label);
    let change = other.changes.iter().find(|one| of_it(&one.name))?;
    let to = image(&member.name.written, &change.to);
    let Package { kind, metadata, .. } = member.package;
    (change.to != *member.wish()).then(|| {
        format!("{to} into spec.package of {kind} {}, which {holder} keeps", metadata.name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn m4_a_package_is_automatic_until_somebody_keeps_its_image() {
        let is = |annotation: &str, manager: &str, field: &str| {
            let fields = json!({"f:spec": {field: {}}});
            let metadata = json!({
                "name": "p", "annotations": {annotation: "true"},
                "managedFields": [{"manager": manager, "fieldsV1": fields}],
            });
            let package = json!({
                "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": metadata,
                "spec": {"package": "r.io/p:v1"},
            });
            is_automatic(&serde_json::from_value(package).unwrap())
        };
        assert!(is(ANNOTATION_AUTOMATIC, MANAGER, "f:package"));
        assert!(is(ANNOTATION_AUTOMATIC, "argocd-controller", "f:revisionHistoryLimit"));
        assert!(!is(ANNOTATION_AUTOMATIC, "argocd-controller", "f:package"));
        assert!(!is("example.org/other", MANAGER, "f:package"));
    }
}
