//! Install objects that users want.

use super::ANY_REGISTRY;
use crate::installed::{Installed, Inventory, reference};
use api::pkg::revision::Revision;
use api::stacks::{PackageInstallSpec, STACKS_VERSION};
use controller::stacks::install_image;
use ground::failure::{Failure, Outcome};
use oci::Reference;
use serde_json::{Value as Json, json};

/// An install object that a user wants.
#[derive(Clone, Debug, Default)]
pub struct InstallWish {
    /// `ClusterPackageInstall` or `PackageInstall`.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The registry that packages and images without one come from.
    pub source: Option<String>,
    /// The image.
    pub package: String,
    /// Secrets with credentials for the registry.
    pub pull_secrets: Vec<String>,
    /// When images are pulled.
    pub pull_policy: Option<String>,
}

impl InstallWish {
    /// What commands call the object.
    pub fn id(&self) -> String {
        format!("{}/{}/{}", self.kind.to_lowercase(), self.namespace, self.name)
    }

    /// The object, of a group.
    pub fn object(&self, group: &str) -> Json {
        let mut spec = json!({"package": self.package});
        if let Some(source) = &self.source {
            spec["source"] = json!(source);
        }
        if !self.pull_secrets.is_empty() {
            let secrets: Vec<Json> =
                self.pull_secrets.iter().map(|name| json!({"name": name})).collect();
            spec["imagePullSecrets"] = json!(secrets);
        }
        if let Some(policy) = &self.pull_policy {
            spec["imagePullPolicy"] = json!(policy);
        }
        json!({
            "apiVersion": format!("{group}/{STACKS_VERSION}"),
            "kind": self.kind,
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": spec,
        })
    }

    /// The image that is meant, in words that name the mistake if there is none.
    pub fn image(&self, registry: &str) -> Result<Reference, String> {
        let (source, package) = (self.source.clone(), Some(self.package.clone()));
        install_image(
            &PackageInstallSpec { source, package, ..PackageInstallSpec::default() },
            registry,
        )
    }

    /// Refuses what cannot be while a Provider of the same repository is installed that no install
    /// object brought: what runs is its maker's.
    pub fn refuse_rival(&self, inventory: &Inventory) -> Outcome {
        let Ok(image) = self.image(ANY_REGISTRY) else { return Ok(()) };
        let image = image.as_written().to_owned();
        let Some(image) = reference(&image) else { return Ok(()) };
        let is_rival = |one: &&Installed| {
            !one.is_for_installs() && one.active().is_some_and(Revision::is_present)
        };
        let rival = inventory.of_repository(image.repository()).into_iter().find(is_rival);
        rival.map_or(Ok(()), |rival| {
            let id = rival.id();
            Err(Failure::new(
                format!("{} is installed already, as {id}", image.repository()),
                format!("uninstall that first: apron uninstall {id}"),
            ))
        })
    }
}
