//! Who asks for a package: install objects that share a Provider.

use super::image::install_image;
use super::secrets::{named_secrets, usable_name};
use super::{ANNOTATION_INSTALLS, InstallSettings, InstallWorld};
use api::stacks::{CLUSTER_INSTALL, PackageInstall, STACKS_VERSION};
use oci::{Digest, Reference};
use serde_json::{Map, Value as Json, json};

/// The longest value of a label, and the longest name in its key.
const LABEL_SIZE_MAX: usize = 63;
/// How much of a longer text stays before the letters that tell it from others.
const LABEL_SIZE_KEPT: usize = 57;

/// Install objects that ask for one package, the oldest first.
pub(super) struct Parties<'w> {
    /// The one that says how the package is fetched and run.
    pub(super) lead: &'w PackageInstall,
    all: Vec<&'w PackageInstall>,
}

impl<'w> Parties<'w> {
    /// All that ask for the package of an image, of which the object that is looked at is one; or why
    /// it cannot be.
    pub(super) fn of(world: &'w InstallWorld, image: &Reference) -> Result<Self, String> {
        let ours = &world.install;
        let mut all = Self::stay(world, image);
        all.push(ours);
        world.sort_parties(&mut all);
        let lead = all[0];
        let told = format!("{} {}", lead.kind, key_of(lead));
        let repository = image.repository();
        let is_lead = key_of(lead) == key_of(ours) && lead.kind == ours.kind;
        if !is_lead && (lead.kind == CLUSTER_INSTALL || ours.kind == CLUSTER_INSTALL) {
            return Err(format!(
                "{repository} is installed already, by {told}, and can be in a cluster only once \
                 with rights in all of it; delete one of the two"
            ));
        }
        let registry = &world.settings.default_registry;
        let leading = install_image(&lead.spec, registry)?;
        if leading.name() != image.name() {
            return Err(format!(
                "{told} has {repository} installed as {}, and its definitions can be there in one \
                 version only; ask for the same version, or change that one first",
                leading.identifier()
            ));
        }
        // Only namespaced installs of the very same image share it.
        all.retain(|one| {
            one.kind == lead.kind
                && install_image(&one.spec, registry).is_ok_and(|it| it.name() == image.name())
        });
        Ok(Self { lead, all })
    }

    /// The others that ask for the package, if there are any.
    pub(super) fn of_others(world: &'w InstallWorld, image: &Reference) -> Option<Self> {
        let mut all = Self::stay(world, image);
        world.sort_parties(&mut all);
        let lead = *all.first()?;
        Some(Self { lead, all })
    }

    /// Others that ask for any version of the package and are not on their way out.
    fn stay(world: &'w InstallWorld, image: &Reference) -> Vec<&'w PackageInstall> {
        let registry = &world.settings.default_registry;
        let is_other = |one: &&PackageInstall| {
            key_of(one) != key_of(&world.install) || one.kind != world.install.kind
        };
        let asks = |one: &&PackageInstall| {
            one.metadata.deletion_timestamp.is_none()
                && install_image(&one.spec, registry)
                    .is_ok_and(|it| it.repository() == image.repository())
        };
        world.installs.iter().filter(is_other).filter(asks).collect()
    }

    /// The namespaces that the package has rights in; none if it has them everywhere.
    pub(super) fn namespaces(&self) -> Vec<&str> {
        if self.lead.kind == CLUSTER_INSTALL {
            return Vec::new();
        }
        let mut all: Vec<&str> = self.all.iter().map(|one| namespace_of(one)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The annotation by which objects say whom they are for.
    pub(super) fn annotation(&self) -> Json {
        let mut keys: Vec<String> = self.all.iter().map(|one| key_of(one)).collect();
        keys.sort_unstable();
        json!({ANNOTATION_INSTALLS: keys.join(",")})
    }

    /// The Provider that brings the package.
    pub(super) fn provider(
        &self,
        (name, image): (&str, &Reference),
        settings: &InstallSettings,
        is_activated: bool,
    ) -> Json {
        let policy = if is_activated { "Automatic" } else { "Manual" };
        let mut spec = json!({
            "package": image.as_written(),
            "revisionActivationPolicy": policy,
            "commonLabels": self.labels(settings),
            "runtimeConfigRef": {
                "apiVersion": format!("{}/v1beta1", settings.group),
                "kind": "DeploymentRuntimeConfig",
                "name": name,
            },
        });
        let asked = &self.lead.spec;
        let secrets = named_secrets(self.lead).map(|one| usable_name(self.lead, one, settings));
        let secrets: Vec<Json> = secrets.map(|name| json!({"name": name})).collect();
        if !secrets.is_empty() {
            spec["packagePullSecrets"] = json!(secrets);
        }
        if let Some(policy) = asked.image_pull_policy.as_ref().filter(|it| !it.is_empty()) {
            spec["packagePullPolicy"] = json!(policy);
        }
        if let Some(account) = &asked.service_account {
            spec["serviceAccount"] = json!(account);
        }
        json!({
            "apiVersion": format!("{}/v1", settings.group),
            "kind": "Provider",
            "metadata": {"name": name, "annotations": self.annotation()},
            "spec": spec,
        })
    }

    /// Labels of everything that the package brings.
    fn labels(&self, settings: &InstallSettings) -> Json {
        let mut labels = parent_labels(self.lead, settings);
        let namespaces = self.namespaces();
        let scope = if namespaces.is_empty() { "environment" } else { "namespace" };
        labels.insert("crossplane.io/scope".to_owned(), json!(scope));
        for namespace in namespaces {
            labels.insert(format!("namespace.crossplane.io/{namespace}"), json!("true"));
        }
        for one in &self.all {
            let name = format!("{}-{}", namespace_of(one), one.metadata.name);
            let key = format!("parent.{}/{}", settings.stacks_group, shorten(&name));
            labels.insert(key, json!("true"));
        }
        Json::Object(labels)
    }
}

/// Labels that lead from an object to the install object it is there for.
pub(super) fn parent_labels(
    install: &PackageInstall,
    settings: &InstallSettings,
) -> Map<String, Json> {
    let parts = [
        ("group", settings.stacks_group.as_str()),
        ("version", STACKS_VERSION),
        ("kind", install.kind.as_str()),
        ("namespace", namespace_of(install)),
        ("name", install.metadata.name.as_str()),
    ];
    let labels = parts
        .map(|(part, value)| (format!("core.crossplane.io/parent-{part}"), json!(shorten(value))));
    labels.into_iter().collect()
}

/// A text that fits into a label; a longer one ends in letters that tell it from others.
pub(super) fn shorten(text: &str) -> String {
    if text.len() <= LABEL_SIZE_MAX {
        return text.to_owned();
    }
    let kept = (0..=LABEL_SIZE_KEPT).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let digest = Digest::of(text.as_bytes());
    format!("{}-{}", &text[..kept], digest.hex().get(..5).unwrap_or_default())
}

/// The namespace of an install object.
pub(super) fn namespace_of(install: &PackageInstall) -> &str {
    install.metadata.rest.get("namespace").and_then(Json::as_str).unwrap_or_default()
}

/// What an install object is called among all.
pub(super) fn key_of(install: &PackageInstall) -> String {
    format!("{}/{}", namespace_of(install), install.metadata.name)
}

impl InstallWorld {
    /// Those that the Provider was made for come first, then the oldest.
    fn sort_parties(&self, all: &mut [&PackageInstall]) {
        all.sort_by_cached_key(|one| {
            let is_new = !self.provider.as_ref().is_some_and(|it| is_named_in(it, one));
            (is_new, created_at(one).to_owned(), key_of(one), one.kind.clone())
        });
    }
}

/// Whether an object says that it was made for an install object, among others.
pub(super) fn is_named_in(object: &Json, install: &PackageInstall) -> bool {
    let named = object["metadata"]["annotations"][ANNOTATION_INSTALLS].as_str();
    let key = key_of(install);
    named.is_some_and(|named| named.split(',').any(|one| one == key))
}

fn created_at(install: &PackageInstall) -> &str {
    install.metadata.rest.get("creationTimestamp").and_then(Json::as_str).unwrap_or_default()
}
