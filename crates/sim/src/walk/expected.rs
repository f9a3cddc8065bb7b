//! What the packages of a walk must come to, besides what holds for all packages.

use super::ground::STABLE;
use crate::laws::{Cluster, condition, owners};
use crate::picture::{name, text, uid};
use serde_json::Value as Json;

/// Images that can never be installed: one that is not there, one that no API server takes, and two
/// that need each other.
const HOPELESS: [&str; 4] = ["/nop:v9.9.9", "/broken:", "/cycle:", "/circle:"];

/// What is not as it must be, in sentences. What the tag leads to is told by the beginning of its
/// digest.
pub(super) fn unexpected(objects: &[Json], stable: &str) -> Vec<String> {
    let walked = Walked { cluster: Cluster { objects } };
    let mut said = Vec::new();
    for package in walked.cluster.packages() {
        said.extend(walked.health(package));
        said.extend(followed(package, stable));
    }
    let revisions = walked.cluster.revisions();
    said.extend(revisions.iter().filter_map(|one| walked.runtime(one)));
    said.extend(walked.definition());
    said
}

struct Walked<'a> {
    cluster: Cluster<'a>,
}

impl Walked<'_> {
    /// Whoever nothing is in the way of is healthy, and the hopeless are not.
    fn health(&self, package: &Json) -> Option<String> {
        let image = text(&package["spec"], "package");
        let is_mirrored = !self.cluster.of_kind(|kind| kind == "ImageConfig").is_empty();
        let is_hopeless = HOPELESS.iter().any(|one| image.contains(one));
        let is_there = !is_hopeless && (is_mirrored || !image.contains("/elsewhere/"));
        let (healthy, why) = condition(package, "Healthy");
        let (installed, reason) = condition(package, "Installed");
        let who = name(package);
        if package["spec"]["revisionActivationPolicy"] == "Manual" {
            return None;
        }
        if is_hopeless && installed == "True" && healthy == "True" {
            return Some(format!("{who} is {image}, and cannot be healthy"));
        }
        let is_free = is_there
            && self.has_its_runtime(package)
            && !self.is_behind(package)
            && !self.has_rival(package);
        (is_free && healthy != "True")
            .then(|| format!("{who} should be healthy: {installed} {reason}; {why}"))
    }

    /// Whether others want what a package wants, or may not be what it needs. A revision without a
    /// package is one that somebody wanted to stay.
    fn has_rival(&self, package: &Json) -> bool {
        let is_rival = |kind: &str| {
            let packages = self.cluster.of_kind(|one| one == kind);
            let orphans = self.cluster.of_kind(|one| one == format!("{kind}Revision"));
            packages.len() > 1 || orphans.iter().any(|one| owners(one).is_empty())
        };
        // What nobody but a manager made is called after where it is from.
        let is_chosen = |one: &&Json| !text(&one["metadata"], "name").starts_with("team-");
        match text(package, "kind") {
            "Configuration" if package["metadata"]["name"] == "composes" => false,
            "Configuration" => {
                let needed = self.cluster.of_kind(|kind| kind == "Provider" || kind == "Function");
                let is_alone = self.cluster.of_kind(|kind| kind == "Configuration").len() == 1;
                !is_alone || is_rival("Provider") || needed.iter().any(is_chosen)
            }
            "Provider" => is_rival("Provider") || self.is_needed(),
            kind => is_rival(kind),
        }
    }

    /// Whether a provider is needed by others, who may need another version.
    fn is_needed(&self) -> bool {
        let configurations = self.cluster.of_kind(|kind| kind == "Configuration");
        configurations.iter().any(|one| one["metadata"]["name"] != "composes")
    }

    /// Whether the configuration that a package is to be run with is there.
    fn has_its_runtime(&self, package: &Json) -> bool {
        let configs = self.cluster.of_kind(|kind| kind == "DeploymentRuntimeConfig");
        let is_there = configs.iter().any(|one| one["metadata"]["name"] == "custom");
        package["spec"]["runtimeConfigRef"]["name"] != "custom" || is_there
    }

    /// Whether a package needs something older than what there is, which nobody makes older.
    fn is_behind(&self, package: &Json) -> bool {
        let is_new = |one: &&Json| text(&one["spec"], "package").ends_with("/nop:v1.2.0");
        text(&package["spec"], "package").ends_with("/top:v1.0.0")
            && self.cluster.of_kind(|kind| kind == "Provider").iter().any(is_new)
    }

    /// A Deployment has the argument that the configuration of its package has.
    fn runtime(&self, revision: &Json) -> Option<String> {
        let configs = self.cluster.of_kind(|kind| kind == "DeploymentRuntimeConfig");
        let named = &revision["spec"]["runtimeConfigRef"]["name"];
        let config = configs.iter().find(|one| one["metadata"]["name"] == *named);
        let is_wanted = config.is_some_and(|one| one["spec"].to_string().contains("--debug"));
        let is_its =
            |one: &&Json| owners(one).iter().any(|owner| owner["uid"].as_str() == uid(revision));
        let deployments = self.cluster.of_kind(|kind| kind == "Deployment");
        let deployment = deployments.into_iter().find(is_its)?;
        let args = deployment.pointer("/spec/template/spec/containers/0/args");
        let is_there = args.is_some_and(|args| args.to_string().contains("--debug"));
        (self.has_its_runtime(revision) && is_wanted != is_there)
            .then(|| format!("{} is run with {args:?}", name(revision)))
    }

    /// The definition is that of the version whose revision controls it.
    fn definition(&self) -> Option<String> {
        let definitions = self.cluster.of_kind(|kind| kind == "CustomResourceDefinition");
        let mut definitions = definitions.into_iter();
        let definition =
            definitions.find(|one| one["metadata"]["name"] == "things.nop.example.org")?;
        let owner = owners(definition).iter().find(|owner| owner["controller"] == true)?;
        let revisions = self.cluster.revisions();
        let revision = revisions.into_iter().find(|one| uid(one) == owner["uid"].as_str())?;
        let image = text(&revision["spec"], "image");
        let (_, version) = image.split_once("/nop:v")?;
        let is_other = image.contains("/other/");
        let field =
            if is_other { "other".into() } else { format!("v{}", version.replace('.', "x")) };
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        let fields = definition.pointer(schema).and_then(Json::as_object);
        fields
            .is_none_or(|fields| !fields.contains_key(&field))
            .then(|| format!("{} is of {image} and has {fields:?}", name(definition)))
    }
}

/// Whoever always looks at the tag has what it was moved to.
fn followed(package: &Json, stable: &str) -> Option<String> {
    let spec = &package["spec"];
    let current = text(&package["status"], "currentRevision");
    let is_followed = spec["package"] == STABLE && spec["packagePullPolicy"] == "Always";
    (is_followed && !current.ends_with(stable))
        .then(|| format!("{} is at {current}, its tag at {stable}", name(package)))
}
