//! Packages that are asked for by a kind: which image that is.
//!
//! The choice is made once and written down as annotations of the object, so that what is installed
//! does not move when other packages are published. Another kind in `spec.crd` is another choice.

use super::World;
use crate::lock::choose_image;
use crate::step::{Action, Expect, Need, Plan, Step, Wake};
use api::kind_reference::KindReference;
use api::pkg::revision::{ACTIVE, Revision};
use api::pkg::{ANNOTATION_CHOSEN_FOR, ANNOTATION_CHOSEN_PACKAGE};
use serde_json::json;

/// Chooses the image for the kind that a package object asks for.
pub(super) fn choose_package(world: &World, crd: &str) -> Step {
    let kind = match read_kind(crd) {
        Ok(kind) => kind,
        Err((why, advice)) => return Step::Do(world.unfetched(&why, advice)),
    };
    let Some(found) = &world.kinds else { return Step::Need(vec![Need::Kind(kind)]) };
    let names: Vec<&str> = found.kinds.keys().map(String::as_str).collect();
    let own = world.revisions.iter().find(|one| is_bringing(one, &names));
    let chosen = match own {
        Some(own) => Ok((own.spec.image.clone(), "its revision brings it".to_owned())),
        None => choose_image(&kind, found, &world.pins, &world.settings.default_registry),
    };
    Step::Do(match chosen {
        Ok((image, reason)) => write_choice(world, crd, &image, &reason),
        Err((why, advice)) => world.unfetched(&why, &advice),
    })
}

/// The kind that `spec.crd` names, or why it names none, and what to do about it.
pub(crate) fn read_kind(crd: &str) -> Result<KindReference, (String, &'static str)> {
    match KindReference::parse(crd) {
        Ok(kind) if kind.name.is_some() => Ok(kind),
        Ok(kind) => {
            Err((format!("{kind} in spec.crd is a group of kinds"), "name one of its kinds"))
        }
        Err(error) => {
            let advice = "write it as buckets.s3.example.org/v1";
            Err((format!("spec.crd names no kind: {error}"), advice))
        }
    }
}

/// Whether a revision is active and has one of these definitions.
fn is_bringing(revision: &Revision, definitions: &[&str]) -> bool {
    let objects = revision.status.iter().flat_map(|status| status.object_refs.iter().flatten());
    let mut definitions_of = objects.filter(|one| one.kind.ends_with("Definition"));
    revision.spec.desired_state == ACTIVE
        && definitions_of.any(|one| definitions.contains(&one.name.as_str()))
}

fn write_choice(world: &World, crd: &str, image: &str, reason: &str) -> Plan {
    let change = json!({"metadata": {"annotations": {
        ANNOTATION_CHOSEN_PACKAGE: image, ANNOTATION_CHOSEN_FOR: crd,
    }}});
    let expect = Expect::as_seen(&world.package.metadata);
    let message = format!("{image} was chosen for {crd}: {reason}");
    let event = world.event(false, "ChoosePackage", message.clone());
    let choose = Action::Merge { target: world.target(), change, expect };
    Plan { actions: vec![choose, event], report: vec![message], wake: Wake::OnChange }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image_config::Treatment;
    use crate::lock::{KindCandidate, KindPins, KindSources, Offered};
    use crate::package::pull::Image;
    use crate::package::{Settings, step};
    use crate::signature::Trust;
    use api::meta::PackageKind;
    use serde_json::Value as Json;
    use std::collections::BTreeMap;

    const CRD: &str = "buckets.s3.example.org";

    fn world(crd: &str) -> World {
        let package = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider",
            "metadata": {"name": "p", "resourceVersion": "7"}, "spec": {"crd": crd},
        });
        World {
            package: serde_json::from_value(package).unwrap(),
            kind: PackageKind::Provider,
            revisions: Vec::new(),
            image: Image::default(),
            treatment: Treatment::default(),
            trust: Trust::default(),
            owners: BTreeMap::new(),
            kinds: None,
            pins: KindPins { command: "apron pin".to_owned(), ..KindPins::default() },
            refused: Vec::new(),
            settings: Settings { default_registry: "r.io".to_owned(), runs_packages: true },
            now: "2026-01-01T00:00:00Z".to_owned(),
        }
    }

    fn offered(repositories: &[&str], is_served: bool) -> KindSources {
        let candidate = |repository: &&str| KindCandidate {
            repository: (*repository).to_owned(),
            tags: ["v1.9.0", "v1.10.0", "v2.0.0-rc.1"].map(str::to_owned).to_vec(),
            catalog: "r.io".to_owned(),
        };
        let candidates = repositories.iter().map(candidate).collect();
        let offered = Offered { is_served, candidates, ..Offered::default() };
        let kinds = BTreeMap::from([(CRD.to_owned(), offered)]);
        KindSources { kinds, catalogs: vec!["r.io".to_owned()], ..KindSources::default() }
    }

    /// The annotations that are written, or what the conditions say.
    fn outcome(world: &World) -> String {
        let Step::Do(plan) = step(world) else { return "asks".to_owned() };
        let told = plan.actions.iter().find_map(|action| match action {
            Action::Merge { change, .. } => Some(change["metadata"]["annotations"].to_string()),
            Action::Status { status, .. } => {
                Some(status["conditions"][0]["message"].as_str().unwrap_or_default().to_owned())
            }
            _ => None,
        });
        told.unwrap_or_default()
    }

    #[test]
    fn the_newest_release_of_the_only_package_is_chosen_and_written_down() {
        let mut world = world("buckets.s3.example.org/v1");
        assert_eq!(outcome(&world), "asks");
        world.kinds = Some(offered(&["r.io/s3"], false));
        let written: Json = serde_json::from_str(&outcome(&world)).unwrap();
        assert_eq!(written[ANNOTATION_CHOSEN_PACKAGE], "r.io/s3:v1.10.0");
        assert_eq!(written[ANNOTATION_CHOSEN_FOR], "buckets.s3.example.org/v1");
        let mut package = world.package.clone();
        package.metadata.annotations = serde_json::from_value(written).unwrap();
        assert_eq!(package.clone().with_chosen_image().spec.package, "r.io/s3:v1.10.0");
        package.spec.crd = Some("queues.sqs.example.org".to_owned());
        assert_eq!(package.with_chosen_image().spec.package, "", "another kind, another choice");
    }

    #[test]
    fn several_packages_are_named_until_one_is_pinned() {
        let mut world = world(CRD);
        world.kinds = Some(offered(&["r.io/s3", "r.io/squat"], false));
        let told = outcome(&world);
        assert!(told.contains("several packages bring the CRD"), "{told}");
        assert!(told.contains("`apron pin buckets.s3.example.org r.io/s3`"), "{told}");
        world.pins.repositories.insert(CRD.to_owned(), "r.io/squat".to_owned());
        assert!(outcome(&world).contains("r.io/squat:v1.10.0"));
    }

    #[test]
    fn a_kind_that_is_there_takes_no_package_unless_its_own_revision_brings_it() {
        let mut world = world(CRD);
        world.kinds = Some(offered(&[], true));
        assert!(outcome(&world).contains("is there already"), "{}", outcome(&world));
        let revision = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision",
            "metadata": {"name": "p-1"},
            "spec": {"desiredState": "Active", "image": "r.io/s3:v1.0.0", "revision": 1},
            "status": {"objectRefs": [{"apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition", "name": CRD}]},
        });
        world.revisions = vec![serde_json::from_value(revision).unwrap()];
        assert!(outcome(&world).contains("r.io/s3:v1.0.0"), "{}", outcome(&world));
    }

    #[test]
    fn what_is_no_kind_is_refused_with_words() {
        assert!(outcome(&world("buckets")).contains("spec.crd names no kind"));
        assert!(outcome(&world("*.s3.example.org")).contains("is a group of kinds"));
    }
}
