//! Pull secrets of an install object, which are in its namespace.
//!
//! Its package is fetched and run in the manager's namespace, and pods name pull secrets of their own. So
//! each Secret is copied there, under a name that no other object's copy has: who may read a Secret, and who
//! may have it used, stays a matter of the namespace it is in. A copy follows its Secret, and goes with the
//! object, or when that names the Secret no more.

use super::parties::{key_of, namespace_of};
use super::{InstallSettings, InstallWorld, apply_over, delete_seen, is_going};
use crate::package::pull::RECHECK;
use crate::step::{Action, Wake};
use api::stacks::PackageInstall;
use oci::Digest;
use serde_json::{Value as Json, json};

/// The label of copies that says for which object they are, by its uid.
pub const LABEL_COPIED_FOR: &str = "packages.crossplane.io/copied-for";
/// The annotation of copies that says of which Secret they are: `NAMESPACE/NAME`.
const ANNOTATION_COPIED_FROM: &str = "packages.crossplane.io/copied-from";
/// The types of Secrets that pods may name as pull secrets, and the key of what is in each.
const PULL_SECRET_TYPES: [(&str, &str); 2] = [
    ("kubernetes.io/dockerconfigjson", ".dockerconfigjson"),
    ("kubernetes.io/dockercfg", ".dockercfg"),
];
/// How much of a Secret's name stays in that of its copy, which has to be short enough for a name.
const NAME_SIZE_KEPT: usize = 200;
/// How many digits tell copies apart.
const DIGITS: usize = 12;

/// A Secret that an install object names, as it is in the object's namespace.
#[derive(Clone, Debug, Default)]
pub struct NamedSecret {
    /// Its name.
    pub name: String,
    /// The Secret, if it is there.
    pub found: Option<Json>,
}

/// The names of the Secrets that an install object names.
pub fn named_secrets(install: &PackageInstall) -> impl Iterator<Item = &str> {
    install.spec.image_pull_secrets.iter().flatten().filter_map(|one| one.name.as_deref())
}

/// Whether Secrets of an object have to be copied: those of the manager's namespace are there.
pub fn needs_copies(install: &PackageInstall, settings: &InstallSettings) -> bool {
    namespace_of(install) != settings.namespace
}

/// What a Secret of an install object is called where packages run.
pub(super) fn usable_name(
    install: &PackageInstall,
    secret: &str,
    settings: &InstallSettings,
) -> String {
    if !needs_copies(install, settings) {
        return secret.to_owned();
    }
    let whole = format!("{} {} {secret}", install.kind, key_of(install));
    let digest = Digest::of(whole.as_bytes());
    let kept: String = secret.chars().take(NAME_SIZE_KEPT).collect();
    format!("{kept}-{}", digest.hex().get(..DIGITS).unwrap_or_default())
}

impl InstallWorld {
    /// Has each Secret that the object names copied, and takes back what it names no more; or what is in
    /// the way.
    pub(super) fn copy_secrets(&self) -> Result<Vec<Action>, String> {
        if !needs_copies(&self.install, &self.settings) {
            return Ok(self.delete_copies(&[]));
        }
        let mut actions = Vec::new();
        let mut kept = Vec::new();
        for secret in &self.secrets {
            let wanted = self.wanted_copy(secret)?;
            let is_it = |one: &&Json| one["metadata"]["name"] == wanted["metadata"]["name"];
            actions.extend(apply_over(&wanted, self.copies.iter().find(is_it)));
            kept.push(wanted["metadata"]["name"].clone());
        }
        actions.extend(self.delete_copies(&kept));
        Ok(actions)
    }

    /// Takes back copies, but for those of these names.
    pub(super) fn delete_copies(&self, kept: &[Json]) -> Vec<Action> {
        let is_left = |one: &&Json| !kept.contains(&one["metadata"]["name"]) && !is_going(one);
        self.copies.iter().filter(is_left).map(delete_seen).collect()
    }

    /// When to look again: no news tell of Secrets in the namespaces of others.
    pub(super) fn secrets_wake(&self) -> Wake {
        if self.secrets.is_empty() || !needs_copies(&self.install, &self.settings) {
            return Wake::OnChange;
        }
        Wake::After(RECHECK)
    }

    fn wanted_copy(&self, secret: &NamedSecret) -> Result<Json, String> {
        let (namespace, name) = (namespace_of(&self.install), &secret.name);
        let found = secret.found.as_ref().ok_or_else(|| {
            format!(
                "there is no Secret {name} in namespace {namespace}; make it, or remove it from \
                 spec.imagePullSecrets"
            )
        })?;
        let of = found["type"].as_str().unwrap_or_default();
        let Some((of, key)) = PULL_SECRET_TYPES.into_iter().find(|(known, _)| *known == of) else {
            return Err(format!(
                "Secret {name} in namespace {namespace} has type {of:?} and no credentials for a \
                 registry; make one with `kubectl create secret docker-registry`"
            ));
        };
        let mut data = json!({});
        data[key] = found["data"][key].clone();
        let mut metadata = json!({
            "name": usable_name(&self.install, name, &self.settings),
            "namespace": self.settings.namespace,
            "labels": {"app.kubernetes.io/managed-by": "package-manager"},
        });
        metadata["labels"][LABEL_COPIED_FOR] = json!(self.install.metadata.uid);
        metadata["annotations"][ANNOTATION_COPIED_FROM] = json!(format!("{namespace}/{name}"));
        Ok(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": of, "data": data,
        }))
    }
}
