//! What is installed and everything it needs, as objects for git: pinned, and nothing automatic.
//!
//! A git repository that names all packages leaves nothing to be chosen by the version that was pushed
//! last: applying these objects leads to exactly them. The versions are those that the manager would
//! come to.

use super::act::{self, free_name};
use super::members::{Member, Members};
use super::question::Question;
use super::sources::digest_of;
use super::{World, words};
use crate::step::Need;
use api::pkg::{
    ANNOTATION_AUTOMATIC, ANNOTATION_CHOSEN_BECAUSE, ANNOTATION_CHOSEN_FOR,
    ANNOTATION_CHOSEN_PACKAGE, ANNOTATION_SUCCESSOR, Package,
};
use oci::Digest;
use serde_json::{Map, Value as Json, json};
use solver::{Change, Outcome, Pin};
use std::collections::BTreeSet;

/// Annotations that say how a package came to be where it is, which git says by itself.
const PLACED: [&str; 6] = [
    ANNOTATION_AUTOMATIC,
    ANNOTATION_SUCCESSOR,
    ANNOTATION_CHOSEN_PACKAGE,
    ANNOTATION_CHOSEN_FOR,
    ANNOTATION_CHOSEN_BECAUSE,
    "kubectl.kubernetes.io/last-applied-configuration",
];

/// What API servers fill in where a package does not say it.
fn defaults() -> [(&'static str, Json); 6] {
    let runtime = json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig",
        "name": "default",
    });
    [
        ("ignoreCrossplaneConstraints", json!(false)),
        ("packagePullPolicy", json!("IfNotPresent")),
        ("revisionActivationPolicy", json!("Automatic")),
        ("revisionHistoryLimit", json!(1)),
        ("skipDependencyResolution", json!(false)),
        ("runtimeConfigRef", runtime),
    ]
}

/// How packages are pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinning {
    /// By version; what has none, by digest.
    Versions,
    /// All by digest, beside their version.
    Digests,
}

/// What is to be installed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// The objects; what is needed comes first.
    pub objects: Vec<Json>,
    /// Packages that cannot have what they ask for, each with why. Those that have something are among
    /// the objects, with what they have.
    pub refused: Vec<(String, String)>,
}

/// Makes objects of all packages and what they need, or says what to find out first.
pub fn render(world: &World, pinning: Pinning) -> Result<Rendered, Vec<Need>> {
    let members = Members::new(world);
    let question = Question::new(world, &members)?;
    let settlement = match solver::solve(&question.problem, &question.known) {
        Outcome::Missing(needs) => return Err(question.needs(&needs)),
        Outcome::Settled(settlement) => settlement,
    };
    let conflicts = settlement.conflicts.iter().map(|one| (one.name.clone(), words(one)));
    let mut rendered = Rendered { objects: Vec::new(), refused: conflicts.collect() };
    let packages = world.packages.iter();
    let mut taken: BTreeSet<(String, String)> =
        packages.map(|one| (one.kind.clone(), one.metadata.name.clone())).collect();
    let mut needs = Vec::new();
    for change in &settlement.changes {
        let member = change.name.as_deref().and_then(|label| members.by_label(label));
        match pinned_image(world, &question, member, change, pinning) {
            Err(need) => needs.push(need),
            Ok(Err(why)) => rendered.refused.push((label_of(change), why)),
            Ok(Ok(image)) => {
                let object = match member {
                    Some(member) => kept(member.package, &image),
                    None => added(world, &question, change, &image, &mut taken),
                };
                let why = || "nobody says what kind of package it is".to_owned();
                match object {
                    Some(object) => rendered.objects.push(object),
                    None => rendered.refused.push((label_of(change), why())),
                }
            }
        }
    }
    if needs.is_empty() { Ok(rendered) } else { Err(needs) }
}

fn label_of(change: &Change) -> String {
    change.name.clone().unwrap_or_else(|| change.source.to_string())
}

/// The image of a package, as git should have it.
fn pinned_image(
    world: &World,
    question: &Question<'_>,
    member: Option<&Member<'_>>,
    change: &Change,
    pinning: Pinning,
) -> Result<Result<String, String>, Need> {
    let name = member.map(|member| &member.name);
    let Some(name) = name.or_else(|| question.directory.get(&change.source)) else {
        return Ok(Err("it has no name".to_owned()));
    };
    let written = &name.written;
    // What was asked for by a tag that is no version is known by its bytes.
    let tag = match (&change.to, member) {
        (Pin::Digest(_), Some(member)) => {
            let asked = (member.asked == change.to).then(|| tag_of(&member.package.spec.package));
            asked.flatten().or_else(|| member.tags().remove(&change.to))
        }
        (Pin::Digest(_), None) => None,
        (tag, _) => Some(tag.to_string()),
    };
    let is_version = matches!(change.to, Pin::Version(_));
    if is_version && pinning == Pinning::Versions {
        return Ok(Ok(act::image(written, &change.to)));
    }
    let digest = match &change.to {
        Pin::Digest(digest) => Ok(digest.clone()),
        Pin::Version(_) | Pin::Channel(_) => digest_behind(world, question, change, name)?,
    };
    let tag = tag.map(|tag| format!(":{tag}")).unwrap_or_default();
    Ok(digest.map(|digest| format!("{written}{tag}@{digest}")))
}

/// The tag that an image is written with, also beside a digest.
fn tag_of(image: &str) -> Option<String> {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    let last = name.rsplit('/').next()?;
    last.split_once(':').map(|(_, tag)| tag.to_owned())
}

/// The bytes behind what was chosen.
fn digest_behind(
    world: &World,
    question: &Question<'_>,
    change: &Change,
    name: &crate::image_config::Name,
) -> Result<Result<Digest, String>, Need> {
    let key = (change.source.clone(), change.to.clone());
    if let Some(solver::Contents::Package(package)) = question.known.contents.get(&key)
        && let Some(digest) = &package.digest
    {
        return Ok(Ok(digest.clone()));
    }
    let tag = change.to.to_string();
    match (digest_of(world, &name.repository, &tag), name.repository.tag(&tag)) {
        (Some(answer), _) => Ok(answer),
        (None, Ok(reference)) => Err(Need::Digest(reference)),
        (None, Err(error)) => Ok(Err(error.to_string())),
    }
}

/// A package that is there, without what only a cluster says of it.
fn kept(package: &Package, image: &str) -> Option<Json> {
    let Package { api_version, kind, metadata, spec, .. } = package;
    let mut spec = serde_json::to_value(spec).ok()?;
    let fields = spec.as_object_mut()?;
    fields.remove("crd");
    fields.retain(|field, value| {
        !value.is_null() && !defaults().iter().any(|(name, usual)| name == field && usual == value)
    });
    fields.insert("package".to_owned(), json!(image));
    let mut about = Map::new();
    about.insert("name".to_owned(), json!(metadata.name));
    if !metadata.labels.is_empty() {
        about.insert("labels".to_owned(), json!(metadata.labels));
    }
    let annotations = metadata.annotations.iter();
    let annotations: Map<String, Json> = annotations
        .filter(|(key, _)| !PLACED.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), json!(value)))
        .collect();
    if !annotations.is_empty() {
        about.insert("annotations".to_owned(), Json::Object(annotations));
    }
    Some(json!({"apiVersion": api_version, "kind": kind, "metadata": about, "spec": spec}))
}

/// A package that is not there yet, and comes because others need it.
fn added(
    world: &World,
    question: &Question<'_>,
    change: &Change,
    image: &str,
    taken: &mut BTreeSet<(String, String)>,
) -> Option<Json> {
    let kind = change.kind.as_deref().and_then(act::known_kind)?;
    let (name, _) = free_name(kind, question.directory.get(&change.source)?, taken);
    taken.insert((kind.as_str().to_owned(), name.clone()));
    Some(json!({
        "apiVersion": format!("{}/v1", world.settings.group),
        "kind": kind.as_str(),
        "metadata": {"name": name},
        "spec": {"package": image},
    }))
}
