//! Where the package is inside an image: which child of an index, which layer of a manifest.

use oci::{Descriptor, Index, Manifest, Platform};

/// The annotation (and label prefix) that marks package layers.
pub const ANNOTATION: &str = "io.crossplane.xpkg";
/// Its value on the layer that holds `package.yaml`.
pub const BASE: &str = "base";
/// Its value on the layer that holds examples.
pub const EXAMPLES: &str = "upbound";
/// Its value on the child of an index that holds third-party content.
pub const EXTENSIONS: &str = "xpkg-extensions";
/// The file everything is about.
pub const PACKAGE_FILE: &str = "package.yaml";
/// Where examples lie in their layer.
pub const EXAMPLES_FILE: &str = ".up/examples.yaml";

/// Layers of an image that are read as one; container runtimes mount no more than half of that.
pub const LAYERS_MAX: usize = 256;

/// Why no package could be found in an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocateError {
    /// The index has no child that could be a package.
    #[error("the image index lists no manifests, so there is no package in it")]
    IndexEmpty,
    /// No child for the platform.
    #[error("the image index has no manifest for {wanted}; it has {available}")]
    PlatformMissing {
        /// What was wanted.
        wanted: String,
        /// What there is, separated by commas.
        available: String,
    },
    /// Two layers claim to be the package.
    #[error("the image has {0} layers annotated `io.crossplane.xpkg: base`; a package has one")]
    BaseDuplicate(usize),
    /// Nothing in it.
    #[error("the image has no layers, so there is no package in it")]
    LayersMissing,
    /// More than anybody could run.
    #[error(
        "none of the image's {0} layers says it is the package, and no more than {LAYERS_MAX} are searched (layers_max)"
    )]
    LayersMany(usize),
}

/// Where `package.yaml` is to be read from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one, for a moment")]
pub enum Contents {
    /// One layer says it is the one.
    Base(Descriptor),
    /// None says so: the file system that all of them make together, lowest first.
    Flattened(Vec<Descriptor>),
}

/// Whether a child of an index holds third-party content that is none of our business.
pub fn is_extension(child: &Descriptor) -> bool {
    let marked = child.annotations.get(ANNOTATION).is_some_and(|value| value == EXTENSIONS);
    marked && child.platform.is_none()
}

/// Whether a child of an index could hold the package.
pub fn is_image(child: &Descriptor) -> bool {
    !is_extension(child) && !is_attestation(child)
}

/// Build tools add children that describe others and run on nothing.
fn is_attestation(child: &Descriptor) -> bool {
    child.annotations.contains_key("vnd.docker.reference.type")
        || child.platform.as_ref().is_some_and(|platform| platform.os == "unknown")
}

/// Chooses the child of an index to read the package from: the only one whatever its platform,
/// else the one asked for, else `linux/amd64`. A child that names no platform counts as that.
pub fn choose<'a>(
    index: &'a Index,
    wanted: Option<&Platform>,
) -> Result<&'a Descriptor, LocateError> {
    let children: Vec<&Descriptor> =
        index.manifests.iter().filter(|child| is_image(child)).collect();
    match children.as_slice() {
        [] => return Err(LocateError::IndexEmpty),
        [only] => return Ok(only),
        _ => {}
    }
    let default = Platform::linux_amd64();
    let wanted = wanted.unwrap_or(&default);
    let serves = |child: &&&Descriptor| {
        let platform = child.platform.as_ref().filter(|platform| !platform.os.is_empty());
        platform.unwrap_or(&default).serves(wanted)
    };
    children.iter().find(serves).copied().ok_or_else(|| LocateError::PlatformMissing {
        wanted: wanted.to_string(),
        available: platforms(&children),
    })
}

/// Finds the layer that holds the package.
pub fn locate(manifest: &Manifest) -> Result<Contents, LocateError> {
    let is_base =
        |layer: &&Descriptor| layer.annotations.get(ANNOTATION).is_some_and(|value| value == BASE);
    let bases: Vec<&Descriptor> = manifest.layers.iter().filter(is_base).collect();
    match bases.as_slice() {
        [base] => Ok(Contents::Base((*base).clone())),
        [] if manifest.layers.is_empty() => Err(LocateError::LayersMissing),
        [] if manifest.layers.len() > LAYERS_MAX => {
            Err(LocateError::LayersMany(manifest.layers.len()))
        }
        [] => Ok(Contents::Flattened(manifest.layers.clone())),
        several => Err(LocateError::BaseDuplicate(several.len())),
    }
}

fn platforms(children: &[&Descriptor]) -> String {
    let name = |child: &&Descriptor| match &child.platform {
        Some(platform) => platform.to_string(),
        None => "one without a platform".to_owned(),
    };
    children.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use oci::{Digest, MediaType};

    fn child(platform: &str) -> Descriptor {
        let digest = Digest::of(platform.as_bytes());
        let mut child = Descriptor::new(MediaType::OCI_MANIFEST, digest, 1);
        child.platform = platform.parse().ok();
        child
    }

    fn extension() -> Descriptor {
        let mut child = child("");
        child.annotations.insert(ANNOTATION.into(), EXTENSIONS.into());
        child
    }

    #[test]
    fn the_child_is_chosen_as_the_specification_says() {
        let check = |children: Vec<Descriptor>,
                     wanted: Option<&str>,
                     expected: Result<&str, &str>| {
            let index = Index::oci(children);
            let wanted = wanted.map(|text| text.parse().unwrap());
            let chosen = choose(&index, wanted.as_ref());
            let chosen = chosen.map(|child| child.platform.clone().unwrap_or_default().to_string());
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(chosen.map_err(|error| error.to_string()), expected);
        };
        let none = "the image index lists no manifests, so there is no package in it";
        check(vec![], None, Err(none));
        check(vec![extension()], None, Err(none));
        check(vec![child("linux/arm64")], None, Ok("linux/arm64"));
        check(vec![extension(), child("linux/arm64")], None, Ok("linux/arm64"));
        check(vec![child("linux/arm64"), child("linux/amd64")], None, Ok("linux/amd64"));
        check(
            vec![child("linux/arm64"), child("linux/amd64")],
            Some("linux/arm64"),
            Ok("linux/arm64"),
        );
        check(
            vec![child("linux/arm64"), child("windows/amd64")],
            None,
            Err(
                "the image index has no manifest for linux/amd64; it has linux/arm64, windows/amd64",
            ),
        );
        check(vec![child("linux/arm64"), child("")], None, Ok("/"));
        check(vec![child("linux/arm64"), child("unknown/unknown")], None, Ok("linux/arm64"));
    }

    #[test]
    fn the_layer_is_the_annotated_one_or_all_of_them() {
        let layer = |value: Option<&str>| {
            let mut layer = Descriptor::of(MediaType::DOCKER_LAYER_GZIP, b"x");
            let value = value.map(|value| (ANNOTATION.to_owned(), value.to_owned()));
            layer.annotations.extend(value);
            layer
        };
        let manifest =
            |layers| Manifest::docker(Descriptor::of(MediaType::DOCKER_CONFIG, b"{}"), layers);
        let base = layer(Some("base"));
        let found = locate(&manifest(vec![layer(None), base.clone(), layer(Some("upbound"))]));
        assert_eq!(found, Ok(Contents::Base(base.clone())));
        let plain = vec![layer(None), layer(Some("other"))];
        assert_eq!(locate(&manifest(plain.clone())), Ok(Contents::Flattened(plain)));
        assert_eq!(locate(&manifest(vec![base.clone(), base])), Err(LocateError::BaseDuplicate(2)));
        assert_eq!(locate(&manifest(vec![])), Err(LocateError::LayersMissing));
    }
}
