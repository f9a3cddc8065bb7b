//! Files that appear whole or not at all.
//!
//! Bytes go to a temporary file beside the target, are flushed to the disk, and only then take
//! the target's name. A crash leaves a stale `.apron-…` file and nothing else.

use crate::{Blob, Cause, Error, Layout};
use futures::TryStreamExt;
use std::fs::Permissions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile, TempDir};

/// How a temporary file of ours begins.
pub(crate) const TEMP_PREFIX: &str = ".apron-";

/// Pieces that may wait between the network and the disk.
const CHUNKS_WAITING: usize = 8;

/// Whether a file survives a power cut once it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Flushed to the disk before it has its name.
    Synced,
    /// For directories nobody will look at after a crash.
    Scratch,
}

/// Opens a regular file for reading. Anything else, such as a pipe, could keep us waiting.
pub(crate) fn open_regular(path: &Path) -> io::Result<fs_err::File> {
    if !fs_err::metadata(path)?.is_file() {
        let message = format!("{} is not a regular file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    fs_err::File::open(path)
}

/// Runs blocking file work off the async threads.
pub(crate) async fn blocking<T, F>(work: F) -> Result<T, Cause>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, Cause> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Cause::Io(io::Error::other(error))),
    }
}

/// A new temporary file that will have the permissions an ordinary file gets, or only its
/// owner's.
pub(crate) fn temporary(directory: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(TEMP_PREFIX);
    set_mode(&mut builder, mode);
    builder.tempfile_in(directory).map_err(|error| nameless(&error, directory))
}

/// A directory beside a file, with a layout in it to collect what the file shall hold.
pub(crate) async fn collect_beside(target: &Path) -> Result<(TempDir, Layout), Error> {
    let beside = parent(target).to_owned();
    let made = blocking(move || {
        let made = Builder::new().prefix(TEMP_PREFIX).tempdir_in(&beside);
        Ok(made.map_err(|error| nameless(&error, &beside))?)
    });
    let directory = made.await.map_err(|cause| Error::Write { path: target.to_owned(), cause })?;
    let collected = Layout::scratch(directory.path().to_owned()).await?;
    Ok((directory, collected))
}

/// Why nothing can be made in a directory. The name of a temporary file would help nobody.
pub fn nameless(error: &io::Error, directory: &Path) -> io::Error {
    let directory = directory.display();
    let text = match error.kind() {
        io::ErrorKind::NotFound => format!("there is no directory {directory}"),
        io::ErrorKind::NotADirectory => format!("{directory} is not a directory"),
        io::ErrorKind::PermissionDenied => format!("{directory} may not be written to"),
        io::ErrorKind::StorageFull => format!("there is no space left on the disk of {directory}"),
        io::ErrorKind::ReadOnlyFilesystem => format!("the disk of {directory} is read-only"),
        kind => format!("{directory}: {kind}"),
    };
    io::Error::new(error.kind(), text)
}

/// The mode ordinary files are asked for; the process's umask takes its part.
pub(crate) const MODE_ORDINARY: u32 = 0o666;
/// The mode of files with secrets in them.
pub(crate) const MODE_PRIVATE: u32 = 0o600;

#[cfg(unix)]
fn set_mode(builder: &mut Builder<'_, '_>, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(Permissions::from_mode(mode));
}

#[cfg(not(unix))]
fn set_mode(_builder: &mut Builder<'_, '_>, _mode: u32) {}

/// Gives a finished temporary file its name.
pub(crate) fn persist(
    file: NamedTempFile,
    target: &Path,
    durability: Durability,
) -> io::Result<()> {
    if durability == Durability::Synced {
        file.as_file().sync_all()?;
    }
    file.persist(target).map_err(|error| {
        io::Error::new(error.error.kind(), format!("{}: {}", target.display(), error.error))
    })?;
    if durability == Durability::Synced {
        sync_directory(parent(target))?;
    }
    Ok(())
}

/// Replaces a file with these bytes.
pub(crate) fn replace(
    target: &Path,
    bytes: &[u8],
    mode: u32,
    durability: Durability,
) -> io::Result<()> {
    let mut file = temporary(parent(target), mode)?;
    file.write_all(bytes)?;
    persist(file, target, durability)
}

/// The directory a file lies in.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => Path::new("."),
    }
}

/// A rename is on the disk only when its directory is.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) {
        fs_err::File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// Spools a stream into a writer on a blocking thread; the writer comes back at the end.
pub(crate) async fn spool<W>(blob: Blob, mut writer: W) -> Result<W, Cause>
where
    W: Write + Send + 'static,
{
    let (sender, mut receiver) = tokio::sync::mpsc::channel::<bytes::Bytes>(CHUNKS_WAITING);
    let task = tokio::task::spawn_blocking(move || -> io::Result<W> {
        while let Some(chunk) = receiver.blocking_recv() {
            writer.write_all(&chunk)?;
        }
        Ok(writer)
    });
    let mut stream = blob.stream;
    let read = async {
        while let Some(chunk) = stream.try_next().await? {
            // The receiver hangs up only when writing failed; its own error is the better one.
            if sender.send(chunk).await.is_err() {
                break;
            }
        }
        Ok::<(), io::Error>(())
    }
    .await;
    drop(sender);
    let written = task.await.map_err(|error| Cause::Io(io::Error::other(error)))?;
    read?;
    Ok(written?)
}

/// Puts a verified blob under its final name.
pub(crate) async fn write_blob(
    blob: Blob,
    scratch: PathBuf,
    target: PathBuf,
    durability: Durability,
) -> Result<(), Cause> {
    let file = blocking(move || Ok(temporary(&scratch, MODE_ORDINARY)?)).await?;
    let file = spool(blob, file).await?;
    blocking(move || {
        fs_err::create_dir_all(parent(&target))?;
        Ok(persist(file, &target, durability)?)
    })
    .await
}
