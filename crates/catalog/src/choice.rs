//! The one package to install for a kind, of those that a catalog lists for it.
//!
//! A person chooses among several packages, by a pin; never age, downloads or names.

use crate::answer::{Definer, Definers, DefiningVersion};
use crate::grammar::KindReference;
use api::meta::PackageKind;
use xpkg::version::Version;

/// A package to install for a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenPackage {
    /// Its type.
    pub kind: PackageKind,
    /// Its image, with its registry and tag.
    pub image: String,
}

/// Why no package was chosen, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChoiceRefusal {
    /// Why.
    pub reason: String,
    /// What to do.
    pub hint: String,
}

/// Chooses the package of a kind: the pinned one, or the only one. `full_name` says how the world
/// calls a repository of the catalog.
pub fn choose_package(
    found: &Definers,
    kind: &KindReference,
    pinned: Option<&str>,
    full_name: impl Fn(&str) -> String,
) -> Result<ChosenPackage, ChoiceRefusal> {
    let candidates = found.packages.iter().filter_map(|definer| {
        let (tag, kind) = (newest_tag(definer, kind)?, package_kind(definer)?);
        Some((full_name(&definer.repository), tag, (kind, definer)))
    });
    let candidates: Vec<(String, &str, (PackageKind, &Definer))> = candidates.collect();
    let own = pinned.and_then(|pinned| candidates.iter().find(|(name, ..)| name == pinned));
    match (own, pinned, candidates.as_slice()) {
        (Some((name, tag, of)), ..) | (None, None, [(name, tag, of)]) => {
            choose_image(*of, format!("{name}:{tag}"))
        }
        (None, _, []) => Err(refuse_missing(kind, found)),
        (None, Some(pinned), _) => Err(ChoiceRefusal {
            reason: format!("{pinned}, which is pinned for {kind}, does not bring it"),
            hint: format!("pin another one with `apron pin {} REPOSITORY`", found.crd),
        }),
        (None, None, several) => {
            let names: Vec<&str> = several.iter().map(|(name, ..)| name.as_str()).collect();
            let first = names.first().copied().unwrap_or_default();
            Err(ChoiceRefusal {
                reason: format!("several packages bring {kind}: {}", names.join(", ")),
                hint: format!("choose one, for example with `apron pin {} {first}`", found.crd),
            })
        }
    }
}

/// The chosen image, unless it is a package of the first format, which no package object installs.
fn choose_image(
    (kind, definer): (PackageKind, &Definer),
    image: String,
) -> Result<ChosenPackage, ChoiceRefusal> {
    match definer.find_install_kind() {
        None => Ok(ChosenPackage { kind, image }),
        Some(install) => Err(ChoiceRefusal {
            reason: format!("{image} is a package of the first format, which a {install} installs"),
            hint: definer.advise_install(&image),
        }),
    }
}

/// The newest release that serves the kind, or if there is none, the newest version that does.
fn newest_tag<'a>(definer: &'a Definer, kind: &KindReference) -> Option<&'a str> {
    let serves = |version: &&DefiningVersion| {
        let mut served = version.versions.iter().filter(|one| one.served);
        served.any(|one| kind.accepts_version(&one.name))
    };
    let serving = definer.versions.iter().filter(|_| definer.installs).filter(serves);
    let tags: Vec<&str> = serving.flat_map(|it| &it.tags).map(String::as_str).collect();
    let is_release = |tag: &&&str| Version::parse(tag).is_ok_and(|it| !it.is_prerelease());
    tags.iter().find(is_release).or(tags.first()).copied()
}

fn package_kind(definer: &Definer) -> Option<PackageKind> {
    PackageKind::ALL.into_iter().find(|kind| kind.as_str() == definer.kind)
}

fn refuse_missing(kind: &KindReference, found: &Definers) -> ChoiceRefusal {
    let others = found.packages.iter().filter(|definer| definer.installs);
    let versions = others.flat_map(|it| &it.versions).flat_map(|it| &it.versions);
    let mut versions: Vec<&str> =
        versions.filter(|it| it.served).map(|it| it.name.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    let hint = match (versions.as_slice(), found.suggestions.as_slice()) {
        ([], []) => {
            "check the name, push a package that brings it, or name another --catalog".to_owned()
        }
        ([], some) => format!("did you mean {}?", some.join(" or ")),
        (versions, _) => format!("there is {} of it", versions.join(", ")),
    };
    ChoiceRefusal { reason: format!("no package brings {kind}"), hint }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definers(packages: &[(&str, &[(&str, &str)])]) -> Definers {
        let package = |(repository, versions): &(&str, &[(&str, &str)])| {
            let version = |(tag, serves): &(&str, &str)| {
                json!({"tags": [tag], "digest": format!("sha256:{}", "0".repeat(64)), "versions": [
                    {"name": serves, "served": true, "storage": true, "deprecated": false}]})
            };
            let versions: Vec<_> = versions.iter().map(version).collect();
            json!({"repository": repository, "type": "Provider", "origin": "crd",
                   "installs": true, "versions": versions})
        };
        let packages: Vec<_> = packages.iter().map(package).collect();
        serde_json::from_value(json!({
            "crd": "wants.a.b", "group": "a.b", "packages": packages, "ambiguous": false,
            "next": null,
        }))
        .unwrap()
    }

    fn choose(found: &Definers, kind: &str, pinned: Option<&str>) -> Result<String, String> {
        let kind = KindReference::parse(kind).unwrap();
        let chosen = choose_package(found, &kind, pinned, |name| format!("r/{name}"));
        chosen.map(|one| one.image).map_err(|one| format!("{}; {}", one.reason, one.hint))
    }

    #[test]
    fn the_only_package_is_chosen_in_its_newest_release_that_serves_the_kind() {
        let found =
            definers(&[("p", &[("v3.0.0-rc.1", "v1"), ("v2.0.0", "v1"), ("v1.0.0", "v2")])]);
        assert_eq!(choose(&found, "wants.a.b", None).unwrap(), "r/p:v2.0.0");
        assert_eq!(choose(&found, "wants.a.b/v2", None).unwrap(), "r/p:v1.0.0");
        let missed = choose(&found, "wants.a.b/v9", None).unwrap_err();
        assert_eq!(missed, "no package brings wants.a.b/v9; there is v1, v2 of it");
    }

    #[test]
    fn a_package_of_the_first_format_is_left_to_its_install_object() {
        let mut found = definers(&[("p", &[("v1.0.0", "v1")])]);
        found.packages[0].dialect = stack::STACK_API_VERSION.to_owned();
        let refused = choose(&found, "wants.a.b", None).unwrap_err();
        let why = "r/p:v1.0.0 is a package of the first format, which a ClusterPackageInstall \
                   installs; install it with `echo '{";
        assert!(refused.starts_with(why), "{refused}");
    }

    #[test]
    fn of_several_packages_only_the_pinned_one_is_chosen() {
        let found = definers(&[("p", &[("v1.0.0", "v1")]), ("q", &[("v9.0.0", "v1")])]);
        let several = choose(&found, "wants.a.b", None).unwrap_err();
        assert_eq!(
            several,
            "several packages bring wants.a.b: r/p, r/q; choose one, for example with `apron pin \
             wants.a.b r/p`"
        );
        assert_eq!(choose(&found, "wants.a.b", Some("r/q")).unwrap(), "r/q:v9.0.0");
        let other = choose(&found, "wants.a.b", Some("r/z")).unwrap_err();
        assert!(other.starts_with("r/z, which is pinned for wants.a.b, does not bring it"));
    }
}
