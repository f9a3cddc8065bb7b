//! Which image an install object means, and whose registry other images come from.

use api::stacks::PackageInstallSpec;
use oci::{Reference, Rules};

/// The image of the package that an install object asks for, in words that name the mistake if it
/// asks for none. One that asks for a definition has an image once that was chosen
/// ([`PackageInstall::with_chosen_image`](api::stacks::PackageInstall::with_chosen_image)).
pub fn install_image(spec: &PackageInstallSpec, registry: &str) -> Result<Reference, String> {
    let text = |field: &Option<String>| field.clone().filter(|text| !text.is_empty());
    let package = match (text(&spec.package), text(&spec.crd)) {
        (Some(package), None) => package,
        (None, Some(crd)) => {
            return Err(format!("no package was chosen yet for {crd}; wait, or name one"));
        }
        (Some(_), Some(_)) => {
            return Err("spec has both package and crd; keep one of them".to_owned());
        }
        (None, None) => return Err("spec has neither package nor crd; set one of them".to_owned()),
    };
    let image = from_source(spec.source.as_deref(), &package);
    let rules = Rules::weak().default_registry(registry);
    Reference::parse(&image, &rules).map_err(|error| {
        format!(
            "cannot read the image {image:?}: {error}; write it as NAME:TAG, as in team/stack:v1"
        )
    })
}

/// The definition that an install object asks for instead of an image.
pub(super) fn asked_kind(spec: &PackageInstallSpec) -> Option<&str> {
    let is_open = spec.package.iter().all(String::is_empty);
    spec.crd.as_deref().filter(|crd| is_open && !crd.is_empty())
}

/// The registry that an install object names, with the path if it has one.
pub fn bare_source(source: Option<&str>) -> Option<&str> {
    let source = source.unwrap_or_default();
    let source = source.split_once("://").map_or(source, |(_, rest)| rest).trim_matches('/');
    Some(source).filter(|source| !source.is_empty())
}

/// An image with the registry of an install object before it, unless it names one itself.
pub(super) fn from_source(source: Option<&str>, image: &str) -> String {
    match bare_source(source).filter(|_| !names_registry(image)) {
        None => image.to_owned(),
        Some(source) => format!("{source}/{}", image.trim_start_matches('/')),
    }
}

/// Whether an image names its registry: a host has a dot or a port, or is this machine.
fn names_registry(image: &str) -> bool {
    image.split_once('/').is_some_and(|(first, _)| {
        first.contains('.') || first.contains(':') || first == "localhost"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_stands_before_images_that_name_no_registry() {
        for (source, image, expected) in [
            (None, "private-user/image", "private-user/image"),
            (Some(""), "private-user/image", "private-user/image"),
            (
                Some("private.example.com"),
                "private-user/image",
                "private.example.com/private-user/image",
            ),
            (Some("https://private.example.com/"), "image:v1", "private.example.com/image:v1"),
            (Some("private.example.com/team"), "image", "private.example.com/team/image"),
            (Some("private.example.com"), "docker.io/x", "docker.io/x"),
            (Some("private.example.com"), "localhost/x", "localhost/x"),
            (Some("private.example.com"), "host:5000/x", "host:5000/x"),
        ] {
            assert_eq!(from_source(source, image), expected, "{source:?} {image}");
        }
    }

    #[test]
    fn an_install_object_that_asks_for_nothing_or_too_much_is_told_so() {
        let spec = |package: &str, crd: &str| PackageInstallSpec {
            package: Some(package.to_owned()),
            crd: Some(crd.to_owned()),
            ..PackageInstallSpec::default()
        };
        let said = |spec: PackageInstallSpec| {
            install_image(&spec, "registry.example.org").map(|it| it.to_string())
        };
        assert_eq!(said(spec("team/stack:v1", "")).unwrap(), "registry.example.org/team/stack:v1");
        for (package, crd, words) in [
            ("", "", "spec has neither package nor crd; set one of them"),
            ("a", "b.example.org/v1", "spec has both package and crd; keep one of them"),
            (
                "",
                "b.example.org/v1",
                "no package was chosen yet for b.example.org/v1; wait, or name one",
            ),
        ] {
            assert_eq!(said(spec(package, crd)).unwrap_err(), words);
        }
        assert!(said(spec("a b", "")).unwrap_err().starts_with("cannot read the image \"a b\""));
    }
}
