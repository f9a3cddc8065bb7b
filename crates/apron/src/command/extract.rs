//! `extract`: a package's stream, compressed, as the package cache keeps it.

use super::push;
use crate::args::registry::RegistryArguments;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::place::{self, Place};
use crate::registry;
use crate::settings::Settings;
use oci::Platform;
use oci::layer::{Effort, gzip};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// What to extract, and where to.
pub(crate) struct Request {
    pub(crate) from: From,
    pub(crate) output: PathBuf,
    pub(crate) platform: Option<Platform>,
    pub(crate) registry: RegistryArguments,
    pub(crate) quiet: bool,
}

/// Where the package is.
pub(crate) enum From {
    /// Whatever the text names.
    Anywhere(String),
    /// A package file; the only one here if none is named.
    File(Option<PathBuf>),
    /// An image of the local Docker or Podman.
    Engine(String),
    /// A reference.
    Registry(String),
}

/// Extracts a package.
pub(crate) fn run(request: &Request, settings: &Settings) -> Outcome {
    if request.output == Path::new("-") {
        return Err(Failure::new(
            "the contents cannot be written to standard output",
            "name a file with -o, for example -o package.gz",
        ));
    }
    let work = tempfile::tempdir_in(&settings.temporary).map_err(|error| Failure::file(&error))?;
    let place = place(request, work.path(), settings)?;
    let (name, located) = crate::block_on(async {
        let opened = place::open(&place, &request.registry, settings).await?;
        let located = place::locate(&opened, request.platform.as_ref(), settings).await?;
        Ok((opened.name, located))
    })?;
    let target = request.output.clone();
    let limits = xpkg::Limits::default();
    let mut reader = xpkg::open::package_yaml(&located.layers, &limits)
        .map_err(|error| place::unreadable(&name, &error))?;
    let written = write(&target, |file| gzip(&mut reader, file, Effort::Fast));
    let size = written.map_err(|error| failed(error, &name, &target))?;
    if !request.quiet {
        output::print(format_args!("extracted {name} to {}", output::bold(target.display())));
        output::print(format_args!("  size  {}", output::size(size)));
    }
    Ok(())
}

fn place(request: &Request, work: &Path, settings: &Settings) -> Outcome<Place> {
    Ok(match &request.from {
        From::Anywhere(text) => Place::parse(text, &request.registry)?,
        From::File(Some(path)) => Place::File(path.clone()),
        From::File(None) => Place::File(push::files(&[])?.swap_remove(0)),
        From::Registry(text) => Place::Registry(registry::reference(text, &request.registry)?),
        From::Engine(image) => {
            let archive = work.join("engine.tar");
            machine::engine::save_image(image, &archive, &settings.path)?;
            Place::File(archive)
        }
    })
}

/// Writes a file that appears under its name when it is complete, or not at all.
fn write(
    target: &Path,
    content: impl FnOnce(&mut BufWriter<&mut NamedTempFile>) -> std::io::Result<()>,
) -> std::io::Result<u64> {
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".apron-")
        .permissions(PermissionsExt::from_mode(0o666))
        .tempfile_in(parent)
        .map_err(|error| store::nameless(&error, parent))?;
    let mut writer = BufWriter::with_capacity(256 << 10, &mut file);
    content(&mut writer)?;
    writer.flush()?;
    drop(writer);
    file.as_file().sync_all()?;
    let size = file.as_file().metadata()?.len();
    file.persist(target).map_err(|error| error.error)?;
    Ok(size)
}

/// An error of reading travels through the writer; tell it from one of writing.
fn failed(error: std::io::Error, name: &str, target: &Path) -> Failure {
    use oci::layer::LayerError;
    use xpkg::open::OpenError;
    match error.downcast::<OpenError>() {
        Ok(error) => place::unreadable(name, &error),
        Err(error) => match error.downcast::<LayerError>() {
            Ok(error) => place::unreadable(name, &OpenError::Layer(error)),
            Err(error) => {
                let message = format!("cannot write {}", target.display());
                Failure::new(message, "check that the directory exists, is writable and has room")
                    .because(&error)
            }
        },
    }
}
