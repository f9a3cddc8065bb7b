//! Which Provider an install object goes by.
//!
//! A new one is named after the repository. It stays when the object asks for another repository: that is
//! an upgrade like any other, in which definitions and their objects pass from one revision to the next.
//! Only where other install objects have that repository already, theirs is the one.

use super::image::install_image;
use super::parties::{Parties, is_named_in};
use super::{ANNOTATION_INSTALLS, InstallWorld, provider_name};
use oci::{Reference, Repository, Rules};
use serde_json::Value as Json;

/// The Provider of an install object by its name, and one that it had before and that nothing else needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderChoice {
    /// The name; none while the object names no image and never had one.
    pub name: Option<String>,
    /// The name of what it leaves.
    pub left: Option<String>,
}

/// Chooses among all Providers there are. Runtime configurations have the names of theirs, and go after
/// them.
pub fn choose_provider(
    world: &InstallWorld,
    providers: &[Json],
    configurations: &[Json],
) -> ProviderChoice {
    let registry = &world.settings.default_registry;
    let image = install_image(&world.install.spec, registry).ok();
    let own = || providers.iter().filter(move |it| is_own(it, world));
    let alone = own().find(|it| is_alone(it, world));
    let name = |it: &Json| it["metadata"]["name"].as_str().map(str::to_owned);
    let default = || image.as_ref().map(provider_name);
    if world.install.metadata.deletion_timestamp.is_some() {
        let own = alone.or_else(|| own().next());
        let rest = || configurations.iter().find(|it| is_named_in(it, &world.install));
        return ProviderChoice {
            name: own.or_else(rest).and_then(name).or_else(default),
            left: None,
        };
    }
    let Some(wanted) = &image else {
        return ProviderChoice { name: alone.or_else(|| own().next()).and_then(name), left: None };
    };
    let is_of_wanted = |it: &&Json| {
        is_for_installs(it)
            && repository_of(it, registry).is_some_and(|it| it == *wanted.repository())
    };
    let same = own().find(is_of_wanted).or_else(|| providers.iter().find(is_of_wanted));
    let chosen = same.or(alone).and_then(name).or_else(default);
    let left = alone.and_then(name).filter(|left| Some(left) != chosen.as_ref());
    ProviderChoice { name: chosen, left }
}

/// Whether a Provider was made for install objects.
pub(super) fn is_for_installs(provider: &Json) -> bool {
    !provider["metadata"]["annotations"][ANNOTATION_INSTALLS].is_null()
}

/// Where the package of a Provider comes from.
pub(super) fn repository_of(provider: &Json, registry: &str) -> Option<Repository> {
    let package = provider["spec"]["package"].as_str()?;
    let reference = Reference::parse(package, &Rules::weak().default_registry(registry)).ok()?;
    Some(reference.repository().clone())
}

/// Whether a Provider was made for this object: objects of both kinds may have one name.
fn is_own(provider: &Json, world: &InstallWorld) -> bool {
    let kind = &provider["spec"]["commonLabels"]["core.crossplane.io/parent-kind"];
    is_named_in(provider, &world.install) && *kind == *world.install.kind
}

/// Whether no other install object asks for the repository that a Provider has.
fn is_alone(provider: &Json, world: &InstallWorld) -> bool {
    let package = provider["spec"]["package"].as_str().unwrap_or_default();
    let rules = Rules::weak().default_registry(&world.settings.default_registry);
    Reference::parse(package, &rules).is_ok_and(|it| Parties::of_others(world, &it).is_none())
}
