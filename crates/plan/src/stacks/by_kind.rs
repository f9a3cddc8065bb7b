//! Install objects that ask for a definition: which image brings it.
//!
//! As for package objects, the choice is made once and written down as annotations of the object.

use super::InstallWorld;
use crate::lock::choose_image;
use crate::package::by_kind::read_kind;
use crate::step::{Action, Expect, Need, Plan, Step, Wake};
use api::pkg::{ANNOTATION_CHOSEN_FOR, ANNOTATION_CHOSEN_PACKAGE};
use serde_json::json;

/// Chooses the image for the definition that an install object asks for.
pub(super) fn choose_install(world: &InstallWorld, crd: &str) -> Step {
    let kind = match read_kind(crd) {
        Ok(kind) => kind,
        Err((why, advice)) => return Step::Do(world.tell_trouble(format!("{why}; {advice}"))),
    };
    let Some(found) = &world.kinds else { return Step::Need(vec![Need::Kind(kind)]) };
    let registry = &world.settings.default_registry;
    Step::Do(match choose_image(&kind, found, &world.pins, registry) {
        Ok((image, reason)) => write_choice(world, crd, &image, &reason),
        Err((why, advice)) => world.tell_trouble(format!("{why}; {advice}")),
    })
}

fn write_choice(world: &InstallWorld, crd: &str, image: &str, reason: &str) -> Plan {
    let change = json!({"metadata": {"annotations": {
        ANNOTATION_CHOSEN_PACKAGE: image, ANNOTATION_CHOSEN_FOR: crd,
    }}});
    let expect = Expect::as_seen(&world.install.metadata);
    let message = format!("{image} was chosen for {crd}: {reason}");
    let event = world.event(false, "ChoosePackage", message.clone());
    let choose = Action::Merge { target: world.target(), change, expect };
    Plan { actions: vec![choose, event], report: vec![message], wake: Wake::OnChange }
}
