//! `copy`: any source to any sink.

use crate::args::registry::RegistryArguments;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, progress};
use crate::place::{self, Opened, Place};
use crate::registry;
use crate::settings::Settings;
use oci::{Descriptor, Digest, Identifier, Platform, Raw};
use serde::Serialize;
use std::path::Path;
use store::{Advice, Copied, CopyOptions, Error, Layout, OciArchive, Store, TarballSink};
use xpkg::locate;

/// What to copy, and where.
pub(crate) struct Request {
    pub(crate) source: String,
    pub(crate) destination: String,
    pub(crate) platform: Option<Platform>,
    pub(crate) referrers: bool,
    pub(crate) format: Format,
    pub(crate) registry: RegistryArguments,
}

/// Copies a package or image.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let arguments = &request.registry;
    let from = Place::parse(&request.source, arguments)?;
    let destination = destination(&request.destination, &from, arguments)?;
    refuse_unnamed_registry(&request.destination, &destination, arguments)?;
    let source = place::open(&from, arguments, settings).await?;
    let copy = Copy {
        source,
        destination,
        platform: request.platform.clone(),
        single: false,
        referrers: request.referrers,
        arguments,
        settings,
    };
    copy.run().await?.tell("copied", "sent", request.format)
}

/// A layout that exists, or that a directory's name says should; otherwise as a source is read.
fn destination(text: &str, from: &Place, arguments: &RegistryArguments) -> Outcome<Place> {
    let place = match Place::parse(text, arguments)? {
        // An empty directory becomes a layout; one with other things in it is a mistake.
        Place::Directory(path) if path.read_dir().is_ok_and(|mut all| all.next().is_none()) => {
            Place::Layout(path, None)
        }
        Place::Directory(path) => {
            return Err(Failure::new(
                format!("{} is a directory with other things in it", path.display()),
                format!("name a new directory: oci:{}/NEW", path.display()),
            ));
        }
        other => other,
    };
    // What keeps tags keeps the one it came from.
    let id = match from {
        Place::Registry(reference) => Some(reference.identifier().clone()),
        Place::Layout(_, id) | Place::Archive(_, id) => id.clone(),
        Place::File(_) | Place::Directory(_) => None,
    };
    let tag = id.filter(|id| id.as_tag().is_some());
    Ok(match place {
        Place::Layout(path, None) => Place::Layout(path, tag),
        Place::Archive(path, None) => Place::Archive(path, tag),
        other => other,
    })
}

/// A bare name is more often meant as a directory than as a repository of somebody else's registry,
/// unless a registry was chosen for bare names.
fn refuse_unnamed_registry(
    text: &str,
    destination: &Place,
    arguments: &RegistryArguments,
) -> Outcome {
    let Place::Registry(reference) = destination else { return Ok(()) };
    let registry = reference.repository().registry();
    let is_named = text.starts_with("docker://")
        || text.split_once('/').is_some_and(|(host, _)| {
            host.contains(['.', ':']) || host.eq_ignore_ascii_case("localhost")
        });
    if is_named || arguments.default_registry != oci::reference::DOCKER_HUB {
        return Ok(());
    }
    Err(Failure::new(
        format!("`{text}` names no registry; it would go to {registry}, as {reference}"),
        format!(
            "write docker://{reference} to mean that, oci:{text} for a directory, or ./{text}.xpkg for a file"
        ),
    ))
}

/// A copy about to happen.
pub(crate) struct Copy<'a> {
    pub(crate) source: Opened,
    pub(crate) destination: Place,
    pub(crate) platform: Option<Platform>,
    /// Whether the destination holds one image, so that one has to be chosen.
    pub(crate) single: bool,
    pub(crate) referrers: bool,
    pub(crate) arguments: &'a RegistryArguments,
    pub(crate) settings: &'a Settings,
}

/// A copy that happened.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Done {
    source: String,
    destination: String,
    digest: String,
    /// What was taken of a package for several platforms.
    #[serde(skip_serializing_if = "Option::is_none")]
    platform: Option<String>,
    blobs_copied: usize,
    blobs_already_there: usize,
    blobs_mounted: usize,
    bytes: u64,
}

impl Copy<'_> {
    /// Copies.
    pub(crate) async fn run(self) -> Outcome<Done> {
        let (destination, copied) = match &self.destination {
            Place::Directory(path) => {
                return Err(Failure::new(
                    format!("{} is a package directory", path.display()),
                    "copy to a file, an OCI layout directory or a reference",
                ));
            }
            Place::File(path) => (path.display().to_string(), self.to_file(path).await?),
            Place::Layout(path, id) => {
                let sink = Layout::create(path).await.map_err(|error| unwritable(path, &error))?;
                let copied = self.to_layout(&sink, id.as_ref()).await?;
                (format!("oci:{}", place::with_id(path, id.as_ref())), copied)
            }
            Place::Archive(path, id) => {
                let cannot = |error: &Error| unwritable(path, error);
                let sink = OciArchive::create(path).await.map_err(|error| cannot(&error))?;
                let copied = self.to_layout(sink.layout(), id.as_ref()).await?;
                sink.finish().await.map_err(|error| cannot(&error))?;
                (format!("oci-archive:{}", place::with_id(path, id.as_ref())), copied)
            }
            Place::Registry(reference) => {
                let client = registry::client(self.arguments, self.settings).await?;
                let sink = client.repository(reference.repository().clone());
                let copied =
                    self.send(&self.chosen().await?, &sink, reference.identifier()).await?;
                (reference.to_string(), copied)
            }
        };
        let taken = self.taken(&copied.digest).await?;
        Ok(Done {
            source: self.source.name,
            destination,
            platform: taken,
            digest: copied.digest.to_string(),
            blobs_copied: copied.blobs_copied,
            blobs_already_there: copied.blobs_skipped,
            blobs_mounted: copied.blobs_mounted,
            bytes: copied.bytes,
        })
    }

    async fn to_layout(&self, sink: &Layout, id: Option<&Identifier>) -> Outcome<Copied> {
        let raw = self.chosen().await?;
        let to = id.cloned().unwrap_or_else(|| Identifier::Digest(raw.digest.clone()));
        self.send(&raw, sink, &to).await
    }

    /// What is copied: all of it, or the image for the platform.
    async fn chosen(&self) -> Outcome<Raw> {
        let root = place::fetch_manifest(&self.source, &self.source.id).await?;
        match &self.platform {
            None => Ok(root),
            platform => place::choose_image(&self.source, &root, platform.as_ref()).await,
        }
    }

    async fn to_file(&self, path: &Path) -> Outcome<Copied> {
        let sink = TarballSink::create(path).await.map_err(|error| unwritable(path, &error))?;
        let raw = self.image_for_file().await?;
        let copied = self.send(&raw, &sink, &Identifier::Tag("latest".to_owned())).await?;
        sink.finish().await.map_err(|error| unwritable(path, &error))?;
        Ok(copied)
    }

    /// A file holds one image: of an index, the one for the platform, as when a package is read.
    async fn image_for_file(&self) -> Outcome<Raw> {
        let raw = place::fetch_manifest(&self.source, &self.source.id).await?;
        let Some(index) = raw.index() else { return Ok(raw) };
        let several = index.manifests.iter().filter(|child| locate::is_image(child)).count() > 1;
        if several && !self.single && self.platform.is_none() {
            return Err(Failure::new(
                format!(
                    "{} holds images for several platforms, and a file holds one",
                    self.source.name
                ),
                "choose one with --platform OS/ARCH, or copy all of them: oci-archive:FILE, oci:DIR",
            ));
        }
        place::choose_image(&self.source, &raw, self.platform.as_ref()).await
    }

    /// What was taken, if the source holds several images: one of them, or all.
    async fn taken(&self, copied: &Digest) -> Outcome<Option<String>> {
        let root = place::fetch_manifest(&self.source, &self.source.id).await?;
        let Some(index) = root.index() else { return Ok(None) };
        let images: Vec<_> =
            index.manifests.iter().filter(|child| locate::is_image(child)).collect();
        let name = |child: &Descriptor| {
            child.platform.as_ref().map_or_else(|| "no platform".to_owned(), ToString::to_string)
        };
        let all = images.iter().map(|child| name(child)).collect::<Vec<_>>().join(", ");
        Ok(match images.iter().find(|child| child.digest == *copied) {
            _ if images.len() < 2 => None,
            Some(one) => Some(format!("{} of {all}", name(one))),
            None if *copied == root.digest => Some(all),
            None => None,
        })
    }

    async fn send(&self, raw: &Raw, sink: &dyn Store, to: &Identifier) -> Outcome<Copied> {
        let options = CopyOptions { referrers: self.referrers, ..CopyOptions::new() };
        store::copy_as(&*self.source.store, raw, sink, to, &options, progress::watcher())
            .await
            .map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &Error) -> Failure {
        registry::failed(format!("cannot copy {}", self.source.name), error)
    }
}

/// A place to write to that cannot be written.
fn unwritable(path: &Path, error: &Error) -> Failure {
    let mut failure = registry::failed(format!("cannot write {}", path.display()), error);
    if matches!(error.advice(), Advice::NotFound | Advice::Forbidden | Advice::Other) {
        "check that the directory exists, is writable and has room".clone_into(&mut failure.hint);
    }
    failure
}

impl Done {
    /// Tells what was done to the package, and to its bytes.
    pub(crate) fn tell(&self, verb: &str, moved: &str, format: Format) -> Outcome {
        if format == Format::Json {
            return output::print_json(self);
        }
        let (source, destination) = (&self.source, output::bold(&self.destination));
        output::print(format_args!("{verb} {source} to {destination}"));
        output::print(format_args!("  digest   {}", self.digest));
        if let Some(platform) = &self.platform {
            output::print(format_args!("  platform {platform}"));
        }
        let mounted = match self.blobs_mounted {
            0 => String::new(),
            count => format!(", {count} mounted"),
        };
        output::print(format_args!(
            "  {moved:<8} {} in {}, {} already there{mounted}",
            output::size(self.bytes),
            output::count(self.blobs_copied, "blob"),
            self.blobs_already_there,
        ));
        Ok(())
    }
}
