//! `push`: package files to a registry.

use super::extra_layer;
use crate::args::registry::RegistryArguments;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, progress};
use crate::place::{self, Place};
use crate::registry;
use crate::settings::Settings;
use api::meta::{Meta, PackageKind};
use oci::manifest::Annotations;
use oci::{Descriptor, Identifier, ImageConfig, Index, Platform, Raw, Reference};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::tarball::{Layer, LayerContent};
use store::{Copied, CopyOptions, Error, Progress, Store, Tarball};
use xpkg::image;

/// What to push, and where.
pub(crate) struct Request {
    pub(crate) reference: String,
    /// Whether the reference must leave nothing unsaid.
    pub(crate) strict_reference: bool,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) annotations: Vec<String>,
    /// A directory of content for other readers.
    pub(crate) extensions: Option<PathBuf>,
    /// The type of package it has to be, if one was named.
    pub(crate) kind: Option<PackageKind>,
    /// How to tell; upstream says nothing.
    pub(crate) format: Option<Format>,
    pub(crate) registry: RegistryArguments,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Pushed {
    reference: String,
    digest: String,
    platforms: Vec<String>,
    blobs_sent: usize,
    blobs_already_there: usize,
    bytes_sent: u64,
}

/// A package file that was opened.
pub(super) struct Package {
    path: PathBuf,
    tarball: Tarball,
    pub(super) raw: Raw,
    config: ImageConfig,
}

/// Pushes packages.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    refuse_file(&request.reference)?;
    let reference = if request.strict_reference {
        registry::strict_reference(&request.reference)?
    } else {
        registry::reference(&request.reference, &request.registry)?
    };
    let Identifier::Tag(_) = reference.identifier() else {
        return Err(Failure::new(
            format!("`{}` names a digest, and packages are pushed to tags", request.reference),
            "push to a tag, for example registry.example.org/team/package:v1.0.0",
        ));
    };
    let annotations = annotations(&request.annotations)?;
    let files = files(&request.files)?;
    let mut packages = Vec::new();
    for path in &files {
        packages.push(open(path, &annotations).await?);
    }
    check_platforms(&packages)?;
    if let Some(wanted) = request.kind {
        for path in &files {
            check_kind(path, wanted, &request.registry, settings).await?;
        }
    }
    let work = tempfile::tempdir_in(&settings.temporary).map_err(|error| Failure::file(&error))?;
    let extensions = match &request.extensions {
        Some(root) => Some(pack_extensions(root, work.path()).await?),
        None => None,
    };
    let client = registry::client(&request.registry, settings).await?;
    let sink = client.repository(reference.repository().clone());
    let progress = if request.format.is_some() { progress::watcher() } else { progress::nobody() };
    let cargo = Cargo { packages, extensions, annotations };
    let pushed = push(&cargo, &sink, &reference, &progress)
        .await
        .map_err(|error| registry::failed(format!("cannot push to {reference}"), &error))?;
    tell(&pushed, request.format)
}

/// Whoever names a type of package means it.
async fn check_kind(
    path: &Path,
    wanted: PackageKind,
    arguments: &RegistryArguments,
    settings: &Settings,
) -> Outcome {
    let opened = place::open(&Place::File(path.to_owned()), arguments, settings).await?;
    let located = place::locate(&opened, None, settings).await?;
    let limits = xpkg::Limits::default();
    let contents = xpkg::open::package_yaml(&located.layers, &limits)
        .and_then(|reader| xpkg::open::read(reader, &limits))
        .map_err(|error| place::unreadable(&opened.name, &error))?;
    match contents.meta().map(Meta::kind) {
        Some(found) if found != wanted => {
            let (found, wanted) = (found.as_str(), wanted.as_str());
            Err(Failure::new(
                format!("{} is a {found} package, not a {wanted}", path.display()),
                format!("push it with `kubectl crossplane push {}`", found.to_lowercase()),
            ))
        }
        _ => Ok(()),
    }
}

fn tell(pushed: &Pushed, format: Option<Format>) -> Outcome {
    match format {
        None => Ok(()),
        Some(Format::Json) => output::print_json(pushed),
        Some(Format::Text) => {
            output::print(format_args!("pushed {}", output::bold(&pushed.reference)));
            output::print(format_args!("  digest     {}", pushed.digest));
            if !pushed.platforms.is_empty() {
                output::print(format_args!("  platforms  {}", pushed.platforms.join(", ")));
            }
            output::print(format_args!(
                "  sent       {} in {}, {} already there",
                output::size(pushed.bytes_sent),
                output::count(pushed.blobs_sent, "blob"),
                pushed.blobs_already_there,
            ));
            Ok(())
        }
    }
}

/// Everything that one push sends.
struct Cargo {
    packages: Vec<Package>,
    /// Content for other readers.
    extensions: Option<Package>,
    annotations: Annotations,
}

impl Cargo {
    /// The only image, which needs no index.
    fn only(&self) -> Option<&Package> {
        match self.packages.as_slice() {
            [only] if self.extensions.is_none() => Some(only),
            _ => None,
        }
    }

    /// The index of all images, those with the package first: upstream takes a child without a platform
    /// for what it looks for.
    fn index(&self) -> Result<Raw, oci::ManifestError> {
        let packages = self.packages.iter().map(|package| {
            let mut child = package.as_child();
            child.platform = package.platform_among(&self.packages);
            child
        });
        let extensions = self.extensions.iter().map(|package| Descriptor {
            artifact_type: package.as_child().artifact_type,
            ..image::extensions_child(&package.raw)
        });
        let mut index = Index::oci(packages.chain(extensions).collect());
        index.annotations.clone_from(&self.annotations);
        Raw::from_index(&index)
    }

    fn platforms(&self) -> Vec<String> {
        let platforms = self.packages.iter().map(Package::platform);
        platforms.filter(|it| !it.os.is_empty()).map(|it| it.to_string()).collect()
    }
}

/// One file goes to the tag; several go to their digests and an index of them to the tag.
async fn push(
    cargo: &Cargo,
    sink: &dyn Store,
    reference: &Reference,
    progress: &Arc<dyn Progress>,
) -> Result<Pushed, Error> {
    let mut done = Vec::new();
    for package in cargo.packages.iter().chain(&cargo.extensions) {
        let to = match cargo.only() {
            Some(_) => reference.identifier().clone(),
            None => Identifier::Digest(package.raw.digest.clone()),
        };
        done.push(push_one(package, sink, &to, progress).await?);
    }
    let (digest, platforms) = if let Some(only) = cargo.only() {
        (only.raw.digest.clone(), Vec::new())
    } else {
        let raw = cargo.index().map_err(|error| Error::PutManifest {
            place: sink.place(),
            id: reference.identifier().to_string(),
            cause: error.into(),
        })?;
        sink.put_manifest(reference.identifier(), &raw).await?;
        (raw.digest, cargo.platforms())
    };
    Ok(Pushed {
        reference: reference.to_string(),
        digest: digest.to_string(),
        platforms,
        blobs_sent: done.iter().map(|copied| copied.blobs_copied).sum(),
        blobs_already_there: done
            .iter()
            .map(|copied| copied.blobs_skipped + copied.blobs_mounted)
            .sum(),
        bytes_sent: done.iter().map(|copied| copied.bytes).sum(),
    })
}

/// The manifest to push may carry annotations the file's own does not have, so it is sent as it is
/// at hand, after the blobs.
pub(super) async fn push_one(
    package: &Package,
    sink: &dyn Store,
    to: &Identifier,
    progress: &Arc<dyn Progress>,
) -> Result<Copied, Error> {
    let (options, progress) = (CopyOptions::new(), Arc::clone(progress));
    store::copy_as(&package.tarball, &package.raw, sink, to, &options, progress).await
}

impl Package {
    /// The image as a child of an index.
    fn as_child(&self) -> Descriptor {
        let config = self.raw.manifest().map(|manifest| manifest.config.media_type.to_string());
        Descriptor { artifact_type: config, ..self.raw.descriptor() }
    }

    /// What an index says it runs on; nothing, if it runs nowhere. Upstream names no variants: they are
    /// only needed where nothing else tells images apart.
    fn platform_among(&self, packages: &[Self]) -> Option<Platform> {
        let mut platform = self.platform();
        if packages.iter().filter(|other| other.is_for_processor_of(self)).count() == 1 {
            platform.variant.clear();
        }
        Some(platform).filter(|platform| !platform.os.is_empty())
    }

    fn is_for_processor_of(&self, other: &Self) -> bool {
        let (one, other) = (&self.config, &other.config);
        (&one.os, &one.architecture) == (&other.os, &other.architecture)
    }

    fn platform(&self) -> Platform {
        Platform {
            os_version: self.config.os_version.clone(),
            variant: self.config.variant.clone(),
            ..Platform::new(&self.config.os, &self.config.architecture)
        }
    }
}

/// Opens a package file.
pub(super) async fn open(path: &Path, annotations: &Annotations) -> Outcome<Package> {
    let failed = |error: &Error| {
        if let Err(error) = std::fs::metadata(path) {
            return Failure::new(
                format!("there is no package file {}", path.display()),
                "check the path, or build the package first with `apron build`",
            )
            .because(&error);
        }
        place::not_an_archive(path, error)
    };
    let tarball = Tarball::open(path).await.map_err(|error| failed(&error))?;
    let id = Identifier::Digest(tarball.only().map_err(|error| failed(&error))?);
    let raw = tarball.manifest(&id).await.map_err(|error| failed(&error))?;
    let unusable = || {
        Failure::new(
            format!("{} is not an archive of one image", path.display()),
            "push package files as `apron build` makes them",
        )
    };
    let raw = raw.ok_or_else(unusable)?;
    let mut manifest = raw.manifest().ok_or_else(unusable)?.clone();
    let config = store::fetch_bytes(&tarball, &manifest.config, place::CONFIG_SIZE_MAX)
        .await
        .map_err(|error| failed(&error))?;
    let config = serde_json::from_slice(&config).map_err(|error| unusable().because(&error))?;
    let raw = if annotations.is_empty() {
        raw
    } else {
        manifest.annotations.extend(annotations.clone());
        Raw::from_manifest(&manifest).map_err(|error| unusable().because(&error))?
    };
    Ok(Package { path: path.to_owned(), tarball, raw, config }).and_then(check_package)
}

/// Packs a directory of content for other readers as an image of its own.
async fn pack_extensions(root: &Path, work: &Path) -> Outcome<Package> {
    let path = work.join("layer");
    let layer = extra_layer::write(root, &path)?;
    let (raw, config) = image::extensions(&layer).map_err(|error| {
        Failure::new(format!("cannot pack {}", root.display()), "please report this")
            .because(&error)
    })?;
    let layers = [Layer { descriptor: layer.descriptor, content: LayerContent::File(path) }];
    let archive = work.join("extensions.tar");
    let failed = |error: &Error| {
        Failure::new(format!("cannot pack {}", root.display()), "check that the disk has room")
            .because(error)
    };
    store::tarball::write(&archive, &config, &layers).map_err(|error| failed(&error))?;
    let tarball = Tarball::open(&archive).await.map_err(|error| failed(&error))?;
    Ok(Package { path: archive, tarball, raw, config: ImageConfig::default() })
}

/// What is pushed must be a package: pushing something else is a mistake nobody notices until
/// an installation fails.
fn check_package(package: Package) -> Outcome<Package> {
    let Some(manifest) = package.raw.manifest() else { return Ok(package) };
    match xpkg::locate::locate(manifest) {
        Ok(_) => Ok(package),
        Err(error) => Err(Failure::new(
            format!("{} is not a package", package.path.display()),
            "packages are built with `apron build`",
        )
        .because(&error)),
    }
}

/// An index says what each of its images runs on, so each file must say so, and no two the same.
fn check_platforms(packages: &[Package]) -> Outcome {
    let mut seen: Vec<(String, &Path)> = Vec::new();
    for package in packages.iter().filter(|_| packages.len() > 1) {
        let (platform, path) = (package.platform(), package.path.as_path());
        if platform.os.is_empty() || platform.architecture.is_empty() {
            return Err(Failure::new(
                format!("{} does not say what it runs on: it has no runtime image", path.display()),
                "push one file; a package without a runtime is the same on every platform",
            ));
        }
        let name = platform.to_string();
        if let Some((_, other)) = seen.iter().find(|(seen, _)| *seen == name) {
            return Err(Failure::new(
                format!("{} and {} are both for {name}", other.display(), path.display()),
                "give one file per platform",
            ));
        }
        seen.push((name, path));
    }
    Ok(())
}

/// A file in place of the reference would be pushed to, as a repository of Docker Hub.
fn refuse_file(text: &str) -> Outcome {
    let is_file = Path::new(text).extension().is_some_and(|extension| extension == "xpkg");
    if !is_file {
        return Ok(());
    }
    Err(Failure::new(
        format!("`{text}` is a package file, not a place to push to"),
        format!("say where: apron push registry.example.org/team/package:v1.0.0 -f {text}"),
    ))
}

/// The files to push: those named, or the only one here.
pub(crate) fn files(named: &[PathBuf]) -> Outcome<Vec<PathBuf>> {
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    let entries = fs_err::read_dir(".").map_err(|error| Failure::file(&error))?;
    let mut packages: Vec<PathBuf> =
        entries.filter_map(Result::ok).map(|entry| entry.file_name().into()).collect();
    packages.retain(|path| path.extension().is_some_and(|extension| extension == "xpkg"));
    packages.sort();
    match packages.len() {
        1 => Ok(packages),
        0 => Err(Failure::new(
            "there is no .xpkg file in this directory",
            "build one with `apron build`, or name it with -f",
        )),
        _ => {
            let list: Vec<_> = packages.iter().map(|path| path.display().to_string()).collect();
            Err(Failure::new(
                "there are several .xpkg files in this directory, and only one can be meant",
                format!("name the one to use with -f: {}", list.join(", ")),
            ))
        }
    }
}

fn annotations(words: &[String]) -> Outcome<Annotations> {
    let pair = |word: &String| match word.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(Failure::new(
            format!("annotation `{word}` is not of the form KEY=VALUE"),
            "for example: --annotation org.opencontainers.image.version=v1.0.0",
        )),
    };
    words.iter().map(pair).collect()
}
