//! `install` of a package of the first format: an install object, which the package manager makes true.

use super::change::Change;
use super::install::{Options, Request};
use crate::cluster::Cluster;
use crate::cluster::wait::{self, Goal};
use crate::failure::{Failure, Outcome};
use crate::output;
use inventory::{FoundObject, InstallWish, Inventory};
use serde_json::Value as Json;

/// The namespace of install objects if none is named, as kubectl has it.
const NAMESPACE: &str = "default";

/// What is said of install objects alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectOptions {
    /// Found out from the package if it is not said.
    pub(crate) kind: Option<&'static str>,
    pub(crate) namespace: Option<String>,
    /// The registry of images that name none.
    pub(crate) source: Option<String>,
}

impl ObjectOptions {
    /// The object for a package, called so, or after the last part of the repository.
    pub(super) fn wish(
        &self,
        kind: &'static str,
        (package, name): (&str, Option<&str>),
        registry: &str,
    ) -> Outcome<InstallWish> {
        let namespace = self.namespace.clone().unwrap_or_else(|| NAMESPACE.to_owned());
        let (source, package) = (self.source.clone(), package.to_owned());
        let wish = InstallWish { kind, namespace, source, package, ..InstallWish::default() };
        let image = wish.image(registry).map_err(|why| {
            Failure::new(why, "a reference looks like registry.example.org/team/package:v1.0.0")
        })?;
        let path = image.repository().path();
        let last = || xpkg::label::to_dns_label(path.rsplit('/').next().unwrap_or(path));
        Ok(InstallWish { name: name.map_or_else(last, str::to_owned), ..wish })
    }

    /// Says no to what packages of today have no use for.
    pub(super) fn refuse_today(&self) -> Outcome {
        let Some(namespace) = &self.namespace else { return Ok(()) };
        Err(Failure::new(
            format!("a package of today has no namespace, so it cannot be in {namespace}"),
            "leave out --install-namespace, which is for packages of the first format",
        ))
    }
}

/// Says no to what install objects have no word for.
fn refuse_options(options: &Options) -> Outcome {
    let given = [
        (options.manual_activation, "--manual-activation"),
        (options.revision_history_limit.is_some(), "--revision-history-limit"),
        (options.runtime_config.is_some(), "--runtime-config"),
        (options.controller_config.is_some(), "--config"),
        (options.skip_dependency_resolution, "--skip-dependency-resolution"),
        (options.ignore_crossplane_constraints, "--ignore-crossplane-constraints"),
    ];
    let Some((_, flag)) = given.into_iter().find(|(is_given, _)| *is_given) else { return Ok(()) };
    Err(Failure::new(
        format!("an install object of the first format cannot say {flag}"),
        format!(
            "leave {flag} out, or turn the package into a Provider of today with `apron convert`"
        ),
    ))
}

/// Makes the install object of a kind, and waits if that was asked for.
pub(super) async fn install(request: &Request, kind: &'static str, cluster: &Cluster) -> Outcome {
    refuse_options(&request.options)?;
    let inventory = Inventory::gather(cluster).await?;
    let named = (request.package.as_str(), request.name.as_deref());
    let wish = request.object.wish(kind, named, &request.registry.default_registry)?;
    let wish = InstallWish {
        pull_secrets: request.options.pull_secrets.clone(),
        pull_policy: request.options.pull_policy.clone(),
        ..wish
    };
    wish.refuse_rival(&inventory)?;
    let resource = cluster.installs(kind, &wish.namespace);
    let object = wish.object(&cluster.stacks_group());
    let made = cluster.create(&resource, &wish.name, &object).await?;
    let which = inventory::Which::parse(&wish.id());
    match made {
        Some(object) => {
            let (kind, name) = (kind.to_lowercase(), format!("{}/{}", wish.namespace, wish.name));
            let detail = format!("{kind} {}", output::bold(&name));
            Change { word: "created", said: "installed", kind, name, detail, object }
                .tell(request.voice, cluster)?;
        }
        None => tell_present(&Inventory::gather(cluster).await?.find_object(&which)?, &object)?,
    }
    if let Some(time) = request.wait {
        wait::until(cluster, &[which], Goal::Healthy, time).await?;
    }
    Ok(())
}

/// An object of that name that asks for the same is fine; another one is changed by another command.
fn tell_present(found: &FoundObject<'_>, wanted: &Json) -> Outcome {
    let (there, (kind, name)) = (found.json(), found.kind_and_name());
    let (id, asked) = (found.id(), wanted["spec"]["package"].as_str().unwrap_or_default());
    if !there["metadata"]["deletionTimestamp"].is_null() {
        return Err(Failure::new(
            format!("{kind} {name} is being uninstalled"),
            format!("install it once it is gone: apron wait {id} --for deleted"),
        ));
    }
    let is_same = |field: &str| there["spec"][field] == wanted["spec"][field];
    if !is_same("package") || !is_same("source") {
        let before = there["spec"]["package"].as_str().or(there["spec"]["crd"].as_str());
        return Err(Failure::new(
            format!("{kind} {name} is there already, for {}", before.unwrap_or("nothing")),
            format!("change its version: apron update {id} {asked}; or give this one another name"),
        ));
    }
    output::say(format_args!(
        "{kind} {} is installed already; nothing changed",
        output::bold(&name)
    ));
    Ok(())
}
