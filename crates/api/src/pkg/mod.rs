//! The group `pkg.crossplane.io`: packages in a cluster, and what is known about them.
//!
//! Providers, Configurations and Functions differ in a field or two, so one type serves for all
//! three, and one for their revisions; the CRD of each kind has the fields that kind has.
//!
//! - `package` and [`revision`]: what is installed, and each state it was in.
//! - [`lock`]: who needs whom, and who owns what.
//! - `image_config`, [`runtime_config`], [`controller_config`]: how images are fetched and run.

pub mod controller_config;
mod image_config;
pub mod lock;
mod package;
pub mod revision;
pub mod runtime_config;
#[cfg(test)]
mod tests;

pub use image_config::{
    Attestation, Cosign, CosignAuthority, Identity, ImageConfig, ImageConfigSpec, ImageMatch, Key,
    KeyReference, Keyless, Registry, RegistryAuthentication, RewriteImage, Runtime, Verification,
};
pub use package::{
    ImageConfigRef, LocalReference, Package, PackageSpec, PackageStatus, RuntimeConfigRef,
    ServiceAccountOptions,
};

/// The group under Crossplane's own suffix.
pub const GROUP: &str = "pkg.crossplane.io";
/// The label of a revision that names its package.
pub const LABEL_PACKAGE: &str = "pkg.crossplane.io/package";
/// The longest name of a package, in bytes: it is the value of that label, and values of labels are
/// shorter than names of objects may be.
pub const PACKAGE_NAME_SIZE_MAX: usize = 63;
/// The label of a revision that names its family of providers.
pub const LABEL_FAMILY: &str = "pkg.crossplane.io/provider-family";
/// The label of a pod that names the provider it runs.
pub const LABEL_PROVIDER: &str = "pkg.crossplane.io/provider";
/// The label of a pod that names the function it runs.
pub const LABEL_FUNCTION: &str = "pkg.crossplane.io/function";
/// The label of a pod that names the revision it runs.
pub const LABEL_REVISION: &str = "pkg.crossplane.io/revision";
/// On definitions that stay with a package though no revision of it brings them: its name.
pub const LABEL_RETAINED: &str = "pkg.crossplane.io/retained-for";
/// The finalizer of revisions.
pub const FINALIZER_REVISION: &str = "revision.pkg.crossplane.io";
/// The finalizer of a lock that lists packages.
pub const FINALIZER_LOCK: &str = "lock.pkg.crossplane.io";
/// The annotation that stops all work on an object while it says `true`.
pub const ANNOTATION_PAUSED: &str = "crossplane.io/paused";
/// The annotation of an object that names the package that brought it, as kubectl names objects:
/// `provider.pkg.crossplane.io/p`. It stays when owners are lost, as in an orphaning delete or a
/// restore.
pub const ANNOTATION_BROUGHT_BY: &str = "pkg.crossplane.io/brought-by";
/// The annotation by which an administrator gives an object to the package it names in that form.
pub const ANNOTATION_ADOPT: &str = "pkg.crossplane.io/adopt";
/// The annotation of a package that may take over whatever is there already, while it says `true`.
pub const ANNOTATION_ADOPT_EXISTING: &str = "pkg.crossplane.io/adopt-existing";
/// The annotation of a revision with the number it got when it was last activated by hand.
pub const ANNOTATION_ACTIVATED_AS: &str = "pkg.crossplane.io/activated-as";
/// The annotation of a package that the manager may move to versions that others need while it says
/// `true`, also if its image is kept by another field manager.
pub const ANNOTATION_UPGRADES: &str = "pkg.crossplane.io/dependency-version-upgrades";
/// The annotation of a package that the manager brought because others need it, and that no user
/// installed by name: `true`.
pub const ANNOTATION_AUTOMATIC: &str = "pkg.crossplane.io/automatic";
/// The annotation of an automatic package that makes room for one that a user installed by name: the
/// name of that package, which gets its revisions.
pub const ANNOTATION_SUCCESSOR: &str = "pkg.crossplane.io/gives-way-to";
/// The annotation of a package that is asked for by a kind: the image that was chosen for it.
pub const ANNOTATION_CHOSEN_PACKAGE: &str = "pkg.crossplane.io/chosen-package";
/// The annotation of the same package with the kind that the image was chosen for.
pub const ANNOTATION_CHOSEN_FOR: &str = "pkg.crossplane.io/chosen-for";
/// The annotation of a package that was installed for kinds, with why it was chosen: a line of
/// `KIND REASON` for each.
pub const ANNOTATION_CHOSEN_BECAUSE: &str = "pkg.crossplane.io/chosen-because";
/// The annotation of a provider's Deployment that tells how far it has come in taking over from the
/// Deployment of the revision before.
pub const ANNOTATION_HANDOVER: &str = "pkg.crossplane.io/handover";
/// The annotation of a provider's Deployment that was scaled to zero for the next revision's: how many
/// pods it had, and for which Deployment it stands back.
pub const ANNOTATION_STANDBY: &str = "pkg.crossplane.io/standby";

/// Annotations by which administrators and the manager itself steer the manager. Those that a
/// package's metadata has are not copied to its revision: a package would pause itself, or take
/// what it was not given.
const STEERING_ANNOTATIONS: [&str; 5] = [
    ANNOTATION_PAUSED,
    ANNOTATION_BROUGHT_BY,
    ANNOTATION_ADOPT,
    ANNOTATION_ADOPT_EXISTING,
    ANNOTATION_ACTIVATED_AS,
];

/// Whether an annotation steers the package manager, so that packages may not set it.
pub fn is_steering_annotation(key: &str) -> bool {
    STEERING_ANNOTATIONS.contains(&key)
}

/// Whether a label tells the manager whose something is, so that packages may not set it. Of labels
/// under its group only that of provider families is a package's to say.
pub fn is_steering_label(key: &str) -> bool {
    let is_ours = key.strip_prefix(GROUP).is_some_and(|rest| rest.starts_with('/'));
    is_ours && key != LABEL_FAMILY
}
