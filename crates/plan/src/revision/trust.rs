//! Whether a package may be installed at all.

use super::contents::Contents;
use super::draft::Draft;
use super::{Halt, World, bounded, fetch, withdraw};
use crate::authority::{self, Allowed, Judgement};
use crate::control::group;
use crate::signature::Trust;
use crate::step::{Action, Expect, Need, Plan};
use api::meta::Meta;
use api::pkg::{is_steering_annotation, is_steering_label};
use api::stacks::{STACKS_VERSION, stacks_group};
use oci::Digest;
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use xpkg::constraint::Constraint;
use xpkg::version::Version;

/// Fails if what somebody asks of the image cannot be met.
pub(super) fn refused(world: &World, draft: &mut Draft) -> Result<(), Halt> {
    let Trust::Refused(why) = &world.trust else { return Ok(()) };
    draft.unverified(world, why);
    Err(Halt::trouble("ParsePackage", format!("cannot get package: {why}")))
}

/// Fails unless the bytes are signed as they should be.
pub(super) fn verified(world: &World, draft: &mut Draft, digest: &Digest) -> Result<(), Halt> {
    match &world.trust {
        Trust::Refused(_) => refused(world, draft),
        Trust::Asked { .. } => {
            let image = fetch::pinned(world, digest.clone())?;
            Err(Halt::Need(vec![Need::Signatures(image)]))
        }
        Trust::Accepted { config, authority } => {
            let message =
                format!("{digest} is signed by {authority}, as ImageConfig {config} asks");
            draft.verified(world, message);
            Ok(())
        }
        Trust::Unasked => {
            draft.unasked();
            Ok(())
        }
    }
}

/// The metadata of a package that is one.
pub(super) fn valid<'a>(world: &World, contents: &'a Contents) -> Result<&'a Meta, Halt> {
    let why = "validating package contents failed";
    let invalid = |said: String| Halt::trouble("ValidatePackage", format!("{why}: {said}"));
    if !contents.faults.is_empty() {
        let faults = bounded(&contents.faults, "; ");
        return Err(invalid(format!("{faults}; install a version of the package that is mended")));
    }
    let Some(meta) = &contents.meta else {
        return Err(invalid("not exactly one package meta type; every package has one".to_owned()));
    };
    if meta.kind() != world.kind {
        let (is, wanted) = (meta.kind().as_str(), world.kind.as_str());
        return Err(invalid(format!(
            "package meta type is not {wanted}: {} is a {is}; install it as a {is}",
            world.revision.spec.image
        )));
    }
    Ok(meta)
}

/// Fails if a package of the first format came without the object that says how it is run. Only that
/// has its Deployment hardened and its scope checked, by the runtime configuration of the Provider's
/// name. What is installed already goes on.
pub(super) fn require_install_object(world: &World, contents: &Contents) -> Result<(), Halt> {
    let config = world.revision.spec.runtime_config_ref.as_ref();
    let is_confined = config.is_some_and(|it| it.name == world.package_name());
    let is_served = world.serves_installs && is_confined || world.revision.is_present();
    let Some(kind) = contents.installed_by.filter(|_| !is_served) else {
        return Ok(());
    };
    let revision = &world.revision;
    let (_, suffix) = group(&revision.api_version).split_once('.').unwrap_or_default();
    let (image, package) = (&revision.spec.image, world.kind.as_str());
    Err(Halt::trouble(
        "ValidatePackage",
        format!(
            "{image} is a package of the first format, which only an install object runs as its \
             install.yaml says: write a {kind} of {}/{STACKS_VERSION} with spec.package {image}, and \
             it takes this {package} over; or turn the package into one of today with `apron convert`",
            stacks_group(suffix)
        ),
    ))
}

/// Writes the labels and annotations of the metadata onto the revision, unmodified, where others look
/// for them. What tells revisions from each other, or steers this manager, is not a package's to say.
pub(super) fn mark(world: &World, meta: &Meta) -> Result<(), Halt> {
    let metadata = &world.revision.metadata;
    let mut change = Map::new();
    let is_steering: [fn(&str) -> bool; 2] = [is_steering_label, is_steering_annotation];
    for ((field, said, seen), is_steering) in [
        ("labels", meta.labels(), &metadata.labels),
        ("annotations", meta.annotations(), &metadata.annotations),
    ]
    .into_iter()
    .zip(is_steering)
    {
        let new: BTreeMap<&String, &String> = said
            .iter()
            .filter(|(key, value)| !is_steering(key) && seen.get(key) != Some(value))
            .map(|(key, value)| (key, value))
            .collect();
        if !new.is_empty() {
            change.insert(field.to_owned(), json!(new));
        }
    }
    if change.is_empty() {
        return Ok(());
    }
    let change = json!({"metadata": Json::Object(change)});
    let expect = Expect::as_seen(metadata);
    let actions = vec![Action::Merge { target: world.target(), change, expect }];
    Err(Halt::First(Plan { actions, ..Plan::default() }))
}

/// What the metadata says that is not a package's to say, for people.
pub(super) fn withheld(meta: &Meta) -> Option<String> {
    let labels = meta.labels().iter().filter(|(key, _)| is_steering_label(key));
    let annotations = meta.annotations().iter().filter(|(key, _)| is_steering_annotation(key));
    let labels = labels.map(|(key, _)| format!("the label {key}"));
    let annotations = annotations.map(|(key, _)| format!("the annotation {key}"));
    let all: Vec<String> = labels.chain(annotations).collect();
    (!all.is_empty()).then(|| {
        let all = super::listing(&all);
        format!("the metadata of the package steers the package manager: {all}; not copied here")
    })
}

/// Whether a version of Crossplane is one of those that a package is made for.
pub(crate) fn is_made_for(constraint: &str, version: &str) -> bool {
    match (Constraint::parse(constraint), Version::parse(version)) {
        (Ok(constraint), Ok(version)) => constraint.matches(&version),
        _ => false,
    }
}

/// Fails if the package is not made for the Crossplane there is.
pub(super) fn compatible(world: &World, meta: &Meta) -> Result<(), Halt> {
    let ignored = world.revision.spec.ignore_crossplane_constraints == Some(true);
    let Some(text) = meta.crossplane().filter(|_| !ignored) else { return Ok(()) };
    let have = &world.settings.crossplane_version;
    if is_made_for(text, have) {
        return Ok(());
    }
    let message = format!(
        "incompatible Crossplane version: package is not compatible with Crossplane version \
         ({have}): it asks for {text}; install a version of the package made for {have}, or set \
         ignoreCrossplaneConstraints"
    );
    Err(Halt::lasting("LintPackage", message))
}

/// Fails if the package brings what no package may, or asks for more than it may have.
pub(super) fn permitted(world: &World, draft: &Draft, contents: &Contents) -> Result<(), Halt> {
    if !world.is_active() {
        return Ok(());
    }
    let (judgement, allowed) = judge_contents(world, contents, &BTreeSet::new())?;
    if judgement.is_good() {
        return Ok(());
    }
    withdraw::webhooks(world, draft)?;
    let message = if judgement.forbidden.is_empty() {
        let (kind, package) = (world.kind, world.package_name());
        authority::refusal(&judgement.refused, allowed, kind, package)
    } else {
        authority::prohibition(&judgement.forbidden)
    };
    if !judgement.forbidden.is_empty() && !allowed.aggregated_groups.is_empty() {
        // APIServices are not watched.
        return Err(Halt::trouble("SyncPackage", message));
    }
    // The role that allows more is watched, and more is forbidden only to other versions.
    Err(Halt::lasting("SyncPackage", message))
}

/// What is said to the package where definitions of these names are others', and by what is allowed.
pub(super) fn judge_contents<'w>(
    world: &'w World,
    contents: &Contents,
    others: &BTreeSet<&str>,
) -> Result<(Judgement, &'w Allowed), Halt> {
    let allowed = match &world.allowed {
        Some(allowed) => allowed,
        None if authority::asked(contents, others).is_nothing() => &world.settings.allowed,
        None => return Err(Halt::Need(vec![Need::Permissions])),
    };
    Ok((authority::judge_among(contents, others, allowed), allowed))
}
