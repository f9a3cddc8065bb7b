//! Where a package is: a directory, a file, a layout, a registry.

use crate::args::registry::RegistryArguments;
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interruptible;
use crate::registry;
use crate::settings::Settings;
use oci::layer::LayerSource;
use oci::{Descriptor, Document, Identifier, ImageConfig, Platform, Raw, Reference};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::remote::Client;
use store::{Layout, Store, Tarball, VerifiedBlob};
use xpkg::locate::{self, Contents};
use xpkg::version::Version;

/// How deep indexes may be nested.
const NESTING_MAX: usize = 4;
/// No image config needs more.
pub(crate) const CONFIG_SIZE_MAX: u64 = 4 << 20;

/// Tags that are suggested.
const TAGS_SHOWN: usize = 5;
/// The longest tag there can be.
const TAG_LENGTH_MAX: usize = 128;
/// How long to look for something to suggest.
const HINT_TIME_MAX: Duration = Duration::from_secs(5);

/// A place somebody named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A package that is not built yet.
    Directory(PathBuf),
    /// A docker-save or OCI archive.
    File(PathBuf),
    /// An OCI archive, and an image in it.
    Archive(PathBuf, Option<Identifier>),
    /// An OCI layout directory, and an image in it.
    Layout(PathBuf, Option<Identifier>),
    /// A reference in a registry.
    Registry(Reference),
}

impl Place {
    /// Tells what a text names: an explicit form, something that exists here, something that
    /// looks like a file, else a reference.
    pub(crate) fn parse(text: &str, arguments: &RegistryArguments) -> Outcome<Self> {
        if let Some(rest) = text.strip_prefix("oci-archive:") {
            let (path, id) = split(rest);
            return Ok(Self::Archive(path, id));
        }
        for archive in ["docker-archive:", "xpkg:"] {
            if let Some(path) = text.strip_prefix(archive) {
                return Ok(Self::File(path.into()));
            }
        }
        if let Some(rest) = text.strip_prefix("oci:") {
            return Ok(layout(rest));
        }
        if let Some(rest) = text.strip_prefix("docker://") {
            return registry::reference(rest, arguments).map(Self::Registry);
        }
        let path = Path::new(text);
        if path.is_dir() {
            let is_layout = path.join("oci-layout").is_file();
            return Ok(if is_layout { layout(text) } else { Self::Directory(path.into()) });
        }
        if path.exists() || looks_like_a_file(text) {
            return Ok(Self::File(path.into()));
        }
        // A layout that is here, and an image in it.
        if split(text).0.join("oci-layout").is_file() || text.ends_with('/') {
            return Ok(layout(text));
        }
        registry::reference(text, arguments).map(Self::Registry)
    }
}

fn looks_like_a_file(text: &str) -> bool {
    let extension = Path::new(text).extension().and_then(|extension| extension.to_str());
    let archive = matches!(extension, Some("xpkg" | "tar"));
    archive || text.starts_with("./") || text.starts_with("../") || text.starts_with('/')
}

/// `DIR`, `DIR:TAG` or `DIR@DIGEST`.
fn layout(text: &str) -> Place {
    let (path, id) = split(text.trim_end_matches('/'));
    Place::Layout(path, id)
}

/// `PATH`, `PATH:TAG` or `PATH@DIGEST`.
fn split(text: &str) -> (PathBuf, Option<Identifier>) {
    let digest =
        text.rsplit_once('@').and_then(|(path, digest)| Some((path, digest.parse().ok()?)));
    if let Some((path, digest)) = digest {
        return (path.into(), Some(Identifier::Digest(digest)));
    }
    match text.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') && !path.is_empty() => {
            (path.into(), Some(Identifier::Tag(tag.to_owned())))
        }
        _ => (text.into(), None),
    }
}

/// A path and an image in it, as [`split`] reads it.
pub(crate) fn with_id(path: &Path, id: Option<&Identifier>) -> String {
    match id {
        None => path.display().to_string(),
        Some(Identifier::Tag(tag)) => format!("{}:{tag}", path.display()),
        Some(Identifier::Digest(digest)) => format!("{}@{digest}", path.display()),
    }
}

/// A store that was opened, and what of it is meant.
pub(crate) struct Opened {
    pub(crate) store: Box<dyn Store>,
    pub(crate) id: Identifier,
    /// What messages call it.
    pub(crate) name: String,
}

impl Opened {
    /// What a reference names, reached by a client.
    pub(crate) fn of(client: &Client, reference: &Reference) -> Self {
        Self {
            store: Box::new(client.repository(reference.repository().clone())),
            id: reference.identifier().clone(),
            name: reference.to_string(),
        }
    }
}

/// Opens a place to read an image from.
pub(crate) async fn open(
    place: &Place,
    arguments: &RegistryArguments,
    settings: &Settings,
) -> Outcome<Opened> {
    match place {
        Place::Directory(path) => Err(Failure::new(
            format!("{} is a package directory, not a package", path.display()),
            "build it first: `apron build`",
        )),
        Place::File(path) => open_file(path, None).await,
        Place::Archive(path, id) => open_file(path, id.as_ref()).await,
        Place::Layout(path, id) => open_layout(path, id.as_ref()).await,
        Place::Registry(reference) => {
            let client = registry::client(arguments, settings).await?;
            Ok(Opened::of(&client, reference))
        }
    }
}

async fn open_file(path: &Path, id: Option<&Identifier>) -> Outcome<Opened> {
    let name = path.display().to_string();
    let failed = |error: &store::Error| {
        if let Err(error) = std::fs::metadata(path) {
            let hint = "check the path; a package in a registry is named like registry.example.org/team/package:v1.0.0";
            return Failure::new(format!("there is no file {name}"), hint).because(&error);
        }
        not_an_archive(path, error)
    };
    let tarball = Tarball::open(path).await.map_err(|error| failed(&error))?;
    let name = with_id(path, id);
    let id = match id {
        Some(id) => id.clone(),
        None => Identifier::Digest(tarball.only().map_err(|error| failed(&error))?),
    };
    Ok(Opened { store: Box::new(tarball), id, name })
}

/// A file that is no package file.
pub(crate) fn not_an_archive(path: &Path, error: &store::Error) -> Failure {
    let mut failure = registry::failed(format!("{} is not a package file", path.display()), error);
    if error.advice() == store::Advice::Other {
        "a package file is an archive as `apron build` and `docker save` make it"
            .clone_into(&mut failure.hint);
    }
    failure
}

async fn open_layout(path: &Path, id: Option<&Identifier>) -> Outcome<Opened> {
    let name = path.display().to_string();
    let failed = |error: &store::Error| {
        let hint = "a layout is a directory as `apron copy SOURCE oci:DIR:TAG` makes it";
        if !path.exists() {
            return Failure::new(format!("there is no directory {name}"), hint);
        }
        let mut failure = registry::failed(format!("{name} is not an OCI layout directory"), error);
        if error.advice() == store::Advice::NotFound {
            hint.clone_into(&mut failure.hint);
        }
        failure
    };
    let layout = Layout::open(path).await.map_err(|error| failed(&error))?;
    let named = with_id(path, id);
    let id = match id {
        Some(id) => id.clone(),
        None => only_of(&layout, &name).await?,
    };
    Ok(Opened { store: Box::new(layout), id, name: named })
}

async fn only_of(layout: &Layout, name: &str) -> Outcome<Identifier> {
    let mut manifests = layout.manifests().await.map_err(|error| {
        registry::failed(format!("{name} is not an OCI layout directory"), &error)
    })?;
    manifests.dedup_by(|left, right| left.digest == right.digest);
    match manifests.as_slice() {
        [only] => Ok(Identifier::Digest(only.digest.clone())),
        [] => Err(Failure::new(
            format!("the layout {name} is empty"),
            "copy something into it first: `apron copy SOURCE oci:DIR:TAG`",
        )),
        several => {
            let tags = layout.tags().await.unwrap_or_default();
            let hint = match (tags.as_slice(), several) {
                ([], [first, ..]) => {
                    format!("say which one by its digest: oci:{name}@{}", first.digest)
                }
                _ => format!(
                    "say which one: oci:{name}:TAG, with one of these tags: {}",
                    tags.join(", ")
                ),
            };
            Err(Failure::new(format!("the layout {name} holds several images"), hint))
        }
    }
}

/// An image whose package was found: its manifest and the layers to read it from.
pub(crate) struct Located {
    /// What the name stands for: a manifest, or an index of several.
    pub(crate) root: Raw,
    /// The image the package is read from.
    pub(crate) image: Raw,
    /// The verified layers that hold the package.
    pub(crate) layers: Layers,
}

/// Verified layers, as the pure rooms want them.
pub(crate) struct Layers(Vec<VerifiedBlob>);

impl LayerSource for Layers {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn open(&self, layer: usize) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(Interruptible(self.0[layer].open())))
    }
}

/// Finds the package in an image and fetches the layers that hold it. Nothing in them was
/// looked at before size and digest were found right.
pub(crate) async fn locate(
    opened: &Opened,
    platform: Option<&Platform>,
    settings: &Settings,
) -> Outcome<Located> {
    let cannot = || format!("cannot read {}", opened.name);
    let root = fetch_manifest(opened, &opened.id).await?;
    let image = choose_image(opened, &root, platform).await?;
    let Document::Manifest(manifest) = &image.document else {
        return Err(not_a_package(&opened.name, "it is an index of no image"));
    };
    let contents = locate::locate(manifest).map_err(|error| {
        Failure::new(
            format!("{} is not a package", opened.name),
            "packages are built with `apron build`",
        )
        .because(&error)
    })?;
    let wanted: Vec<Descriptor> = match contents {
        Contents::Base(layer) => vec![layer],
        Contents::Flattened(layers) => layers,
    };
    let limit = xpkg::Limits::default().layer.compressed_bytes_max;
    let mut layers = Vec::new();
    for layer in &wanted {
        let blob = store::fetch_to_file(&*opened.store, layer, limit, &settings.temporary).await;
        layers.push(blob.map_err(|error| registry::failed(cannot(), &error))?);
    }
    Ok(Located { root, image, layers: Layers(layers) })
}

/// The config of an image.
pub(crate) async fn config(opened: &Opened, image: &Raw) -> Outcome<ImageConfig> {
    let cannot = || format!("cannot read {}", opened.name);
    let Some(manifest) = image.manifest() else { return Ok(ImageConfig::default()) };
    let bytes = store::fetch_bytes(&*opened.store, &manifest.config, CONFIG_SIZE_MAX)
        .await
        .map_err(|error| registry::failed(cannot(), &error))?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let hint = "the image is damaged; build or save it again";
        Failure::new(cannot(), hint).because(&error)
    })
}

/// The manifest a tag or digest stands for; that it is not there is a failure here.
pub(crate) async fn fetch_manifest(opened: &Opened, id: &Identifier) -> Outcome<Raw> {
    let found = opened.store.manifest(id).await;
    let found =
        found.map_err(|error| registry::failed(format!("cannot read {}", opened.name), &error))?;
    match found {
        Some(raw) => Ok(raw),
        None => Err(missing_image(opened).await),
    }
}

/// Fails if an image is not there; tells whether that could be found out.
pub(crate) async fn check_exists(opened: &Opened) -> Outcome<bool> {
    // A command that only names an image waits no longer for it than for a hint.
    match tokio::time::timeout(HINT_TIME_MAX, opened.store.manifest(&opened.id)).await {
        Ok(Ok(Some(_))) => Ok(true),
        Ok(Ok(None)) => Err(missing_image(opened).await),
        Ok(Err(_)) | Err(_) => Ok(false),
    }
}

async fn missing_image(opened: &Opened) -> Failure {
    Failure::new(missing_message(&opened.name), missing_hint(opened).await)
}

fn missing_message(name: &str) -> String {
    format!("{name} does not exist")
}

/// Whether a failure says that an image is not there, and not only that it cannot be read.
pub(crate) fn is_missing(failure: &Failure, name: &Reference) -> bool {
    failure.message == missing_message(&name.to_string())
}

async fn missing_hint(opened: &Opened) -> String {
    // A hint is not worth waiting for, nor a list made to be endless.
    match tokio::time::timeout(HINT_TIME_MAX, opened.store.tags()).await {
        Ok(Ok(tags)) if !tags.is_empty() => {
            let newest = newest_first(&tags);
            let shown = newest.get(..TAGS_SHOWN).unwrap_or(&newest);
            let more = if tags.len() > shown.len() { ", …" } else { "" };
            format!("check the tag; the repository has {}{more}", shown.join(", "))
        }
        Err(_) | Ok(Err(_)) => {
            "check the name and the tag; which tags there are could not be found out".to_owned()
        }
        _ => "check the name: the repository is empty, does not exist, or is not visible to you"
            .to_owned(),
    }
}

/// Tags as people look for them: versions, the newest first, then all others.
fn newest_first(tags: &[String]) -> Vec<&str> {
    let sound = tags.iter().map(String::as_str).filter(|tag| tag.len() <= TAG_LENGTH_MAX);
    let mut ranked: Vec<_> = sound.map(|tag| (Version::parse(tag).ok(), tag)).collect();
    ranked.sort_by(|left, right| right.0.cmp(&left.0).then(left.1.cmp(right.1)));
    ranked.into_iter().map(|(_, tag)| tag).collect()
}

/// The image of an index that a package is read from, however deep it lies; an image is itself.
pub(crate) async fn choose_image(
    opened: &Opened,
    root: &Raw,
    platform: Option<&Platform>,
) -> Outcome<Raw> {
    let mut image = root.clone();
    for _ in 0..=NESTING_MAX {
        let Some(index) = image.index() else { return Ok(image) };
        let child = locate::choose(index, platform).map_err(|error| {
            Failure::new(
                format!("{} has no package for you", opened.name),
                "ask for one of the platforms it has with --platform OS/ARCH",
            )
            .because(&error)
        })?;
        image = fetch_manifest(opened, &Identifier::Digest(child.digest.clone())).await?;
    }
    Err(not_a_package(&opened.name, "its index is nested too deeply"))
}

fn not_a_package(name: &str, why: &str) -> Failure {
    Failure::new(format!("{name} is not a package: {why}"), "packages are built with `apron build`")
}

/// A failure to read the package inside an image.
pub(crate) fn unreadable(name: &str, error: &xpkg::open::OpenError) -> Failure {
    let hint = match error {
        xpkg::open::OpenError::NotAPackage => {
            "packages are built with `apron build`; one of the first format (.registry/) is installed by a ClusterPackageInstall or PackageInstall object, and read by lint, inspect, unpack and convert"
        }
        xpkg::open::OpenError::TooLarge { .. } => {
            "split the package into several; no tool installs one this large"
        }
        _ => "the package is damaged or made to do harm; get it again from a source you trust",
    };
    Failure::new(format!("{name} cannot be read as a package"), hint).because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_versions_are_suggested_first() {
        let tags = ["latest", "v1.10.0", "v1.15.0", "v1.9.0", "v1.15.0-rc.1", "edge"];
        assert_eq!(
            newest_first(&tags.map(str::to_owned)),
            ["v1.15.0", "v1.15.0-rc.1", "v1.10.0", "v1.9.0", "edge", "latest"]
        );
    }
}
