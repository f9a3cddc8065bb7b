//! The names an image goes by, and the prefix that says most about them.

use super::{Purpose, Selected};
use api::pkg::{ImageConfig, ImageConfigSpec};
use oci::reference::{DOCKER_HUB, canonical_prefixes};
use oci::{Repository, Rules};

/// Docker Hub, as people write it.
const DOCKER_HUB_ALIAS: &str = "docker.io";
/// Where Docker Hub keeps what has no namespace.
const DOCKER_HUB_LIBRARY: &str = "library/";

/// All canonical names of what is in a repository, the full one first. They depend on where it is,
/// not on what somebody wrote: whoever could choose the name could choose the policy.
pub(super) fn spellings(
    repository: &Repository,
    full: &str,
    default_registry: &str,
) -> Vec<String> {
    let registry = repository.registry();
    let rules = Rules::weak().default_registry(default_registry);
    let by_default = Repository::parse("any/thing", &rules);
    let is_default = by_default.is_ok_and(|default| default.registry() == registry);
    let within = full.strip_prefix(registry).map_or(full, |rest| rest.trim_start_matches('/'));
    let short = is_default.then(|| within.to_owned());
    let mut names = vec![full.to_owned()];
    if registry == DOCKER_HUB {
        names.push(format!("{DOCKER_HUB_ALIAS}/{within}"));
        names.extend(short);
        if let Some(bare) = within.strip_prefix(DOCKER_HUB_LIBRARY) {
            names.push(format!("{DOCKER_HUB}/{bare}"));
            names.push(format!("{DOCKER_HUB_ALIAS}/{bare}"));
            names.extend(is_default.then(|| bare.to_owned()));
        }
    } else {
        names.extend(short);
    }
    names
}

/// The configuration whose prefix leaves least of a name unsaid; of several, the one whose name comes
/// first. What follows a prefix is compared, and not the prefix, because names of one image begin
/// differently and end alike.
pub(super) fn choose<'a>(
    configs: &'a [ImageConfig],
    purpose: Purpose,
    names: &[String],
) -> Option<Selected<'a>> {
    let serving = configs.iter().filter_map(|config| Some((config, config.spec.as_ref()?)));
    let serving = serving.filter(|(_, spec)| purpose.is_served_by(spec));
    let matching = serving.flat_map(|(config, spec)| {
        let found = matches(spec, purpose, names);
        found.map(move |(prefix, rest)| Selected { config, prefix, rest: rest.to_owned() })
    });
    matching.min_by(|one, two| {
        let key = |it: &Selected<'_>| (it.prefix.is_empty(), it.rest.len());
        let name = |it: &Selected<'_>| it.config.metadata.name.clone();
        key(one).cmp(&key(two)).then_with(|| name(one).cmp(&name(two)))
    })
}

/// Prefixes of a configuration that match, each with what follows it.
fn matches<'a, 'name>(
    spec: &'a ImageConfigSpec,
    purpose: Purpose,
    names: &'name [String],
) -> impl Iterator<Item = (&'a str, &'name str)> {
    let prefixes = spec.match_images.iter().map(|one| one.prefix.as_str());
    let prefixes = prefixes.filter(move |it| !it.is_empty() || purpose == Purpose::Verify);
    prefixes.filter_map(|prefix| {
        let written = canonical_prefixes(prefix);
        let rest = written
            .iter()
            .find_map(|prefix| names.iter().find_map(|name| name.strip_prefix(prefix.as_str())))?;
        Some((prefix, rest))
    })
}
