//! Which configurations say how a package is run.
//!
//! A runtime configuration is what everything starts from: the one an image configuration asks
//! for, if there is such a one for the image, or the one the package names. A controller
//! configuration, the older way, has the last word where a provider still names one.

use super::World;
use crate::image_config::{self, Purpose};
use api::pkg::ImageConfig;
use api::pkg::controller_config::ControllerConfig;
use api::pkg::revision::Revision;
use api::pkg::runtime_config::{DeploymentRuntimeConfig, TemplateMeta};

/// The runtime configuration of packages that name none. It says nothing until somebody makes it.
const DEFAULT: &str = "default";

/// The configurations that count for a revision.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen<'a> {
    /// What everything starts from.
    pub(super) runtime: Option<&'a DeploymentRuntimeConfig>,
    /// What has the last word.
    pub(super) controller: Option<&'a ControllerConfig>,
    /// The image configuration that chose the runtime configuration.
    pub(super) picked_by: Option<&'a str>,
    /// The Secret that an image configuration gives for the package's image.
    pub(super) pull_secret: Option<&'a str>,
}

/// All configurations that may say how a package is reached.
#[derive(Clone, Debug, Default)]
pub struct Configurations {
    /// Image configurations.
    pub image: Vec<ImageConfig>,
    /// Runtime configurations.
    pub runtime: Vec<DeploymentRuntimeConfig>,
}

impl Configurations {
    /// The name of the Service that leads to what runs a revision of this image, as image
    /// configurations have rewritten it; or what is missing to tell.
    pub fn service(
        &self,
        revision: &Revision,
        image: &str,
        default_registry: &str,
    ) -> Result<String, String> {
        let configs = (self.image.as_slice(), self.runtime.as_slice());
        let (runtime, _) = runtime_config(configs, revision, image, default_registry)?;
        Ok(service_name(runtime, revision))
    }
}

/// The runtime configuration of a revision, and the image configuration that chose it.
fn runtime_config<'a>(
    (image_configs, runtime_configs): (&'a [ImageConfig], &'a [DeploymentRuntimeConfig]),
    revision: &'a Revision,
    image: &str,
    registry: &str,
) -> Result<(Option<&'a DeploymentRuntimeConfig>, Option<&'a str>), String> {
    let by_image = image_config::select(image_configs, Purpose::Runtime, image, registry);
    let by_image = by_image.and_then(|found| {
        let runtime = found.config.spec.as_ref()?.runtime.as_ref()?;
        Some((runtime.config_ref.as_ref()?, found.config.metadata.name.as_str()))
    });
    let (reference, picked_by) = match by_image {
        Some((reference, config)) => (Some(reference), Some(config)),
        None => (revision.spec.runtime_config_ref.as_ref(), None),
    };
    if let Some(reference) = reference {
        let kind = reference.kind.as_deref().unwrap_or("DeploymentRuntimeConfig");
        if kind != "DeploymentRuntimeConfig" {
            return Err(format!(
                "the runtime configuration is of kind {kind}; only DeploymentRuntimeConfig is known"
            ));
        }
    }
    let name = reference.map_or(DEFAULT, |reference| reference.name.as_str());
    let runtime = runtime_configs.iter().find(|one| one.metadata.name == name);
    if runtime.is_none() && name != DEFAULT {
        return Err(format!(
            "cannot get referenced deployment runtime config: there is no \
             DeploymentRuntimeConfig {name}; make it, or name another in runtimeConfigRef"
        ));
    }
    Ok((runtime, picked_by))
}

/// Finds what counts for a revision, or says what is missing.
pub(super) fn choose<'a>(world: &'a World, revision: &'a Revision) -> Result<Chosen<'a>, String> {
    let configs = (world.image_configs.as_slice(), world.runtime_configs.as_slice());
    let (image, registry) = (resolved_image(revision), &world.settings.default_registry);
    let (runtime, picked_by) = runtime_config(configs, revision, image, registry)?;
    let controller = match &revision.spec.controller_config_ref {
        None => None,
        Some(reference) => {
            let name = reference.name.as_deref().unwrap_or_default();
            let found = world.controller_configs.iter().find(|one| one.metadata.name == name);
            Some(found.ok_or_else(|| {
                format!(
                    "cannot get referenced controller config: there is no ControllerConfig \
                     {name}; make it, or name another in controllerConfigRef"
                )
            })?)
        }
    };
    Ok(Chosen { runtime, controller, picked_by, pull_secret: pull_secret(world, revision)? })
}

/// The Secret of the image configuration that was used to fetch the package: the same one runs it.
fn pull_secret<'a>(world: &'a World, revision: &Revision) -> Result<Option<&'a str>, String> {
    let applied = revision.status.iter().flat_map(|status| &status.applied_image_config_refs);
    let Some(applied) = applied.flatten().find(|one| one.reason == Purpose::PullSecret.reason())
    else {
        return Ok(None);
    };
    let config = world.image_configs.iter().find(|one| one.metadata.name == applied.name);
    let config = config.ok_or_else(|| {
        format!("the package was fetched with ImageConfig {}, which is gone", applied.name)
    })?;
    let registry = config.spec.as_ref().and_then(|spec| spec.registry.as_ref());
    let authentication = registry.and_then(|registry| registry.authentication.as_ref());
    Ok(authentication.and_then(|found| found.pull_secret_ref.name.as_deref()))
}

/// The image, as image configurations have rewritten it.
pub(super) fn resolved_image(revision: &Revision) -> &str {
    let resolved = revision.status.as_ref().and_then(|status| status.resolved_image.as_deref());
    resolved.filter(|image| !image.is_empty()).unwrap_or(&revision.spec.image)
}

/// Names of the objects that run a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) deployment: String,
    pub(super) service: String,
    pub(super) account: String,
}

/// The name of the Service: that of a template, or the package's.
fn service_name(runtime: Option<&DeploymentRuntimeConfig>, revision: &Revision) -> String {
    let template = runtime.and_then(|config| config.spec.as_ref()?.service_template.as_ref());
    let given = name(template.and_then(|one| one.metadata.as_ref()));
    given.unwrap_or_else(|| super::package_name(revision).to_owned())
}

/// The name that a template gives, if it gives one.
fn name(template: Option<&TemplateMeta>) -> Option<String> {
    template.and_then(|meta| meta.name.clone()).filter(|name| !name.is_empty())
}

impl Chosen<'_> {
    pub(super) fn names(&self, revision: &Revision) -> Names {
        let spec = self.runtime.and_then(|config| config.spec.as_ref());
        let deployment = spec.and_then(|spec| spec.deployment_template.as_ref());
        let account = spec.and_then(|spec| spec.service_account_template.as_ref());
        let given = self.controller.and_then(|config| config.spec.as_ref());
        let given = given.and_then(|spec| spec.service_account_name.clone());
        let own = || revision.metadata.name.clone();
        Names {
            deployment: name(deployment.and_then(|one| one.metadata.as_ref())).unwrap_or_else(own),
            service: service_name(self.runtime, revision),
            account: given
                .or_else(|| name(account.and_then(|one| one.metadata.as_ref())))
                .unwrap_or_else(own),
        }
    }

    /// The record of the image configuration that chose the runtime configuration.
    pub(super) fn record(&self, revision: &mut api::pkg::revision::RevisionStatus) {
        let refs = &mut revision.applied_image_config_refs;
        image_config::record(refs, Purpose::Runtime, self.picked_by);
    }
}
