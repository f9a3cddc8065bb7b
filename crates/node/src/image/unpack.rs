//! Layers, one after the other, to what they come to.
//!
//! Each layer is read twice. The first time nothing of it is written: it is read to its end within limits, its
//! digest is compared, and its whiteouts hide what lower layers left, wherever they stand in it. The second time
//! its entries are put in their places, in order, so that the last of two with one name counts.

use super::error::EntryError;
use super::plan::{PlannedLayer, PullPlan};
use super::tree::{FileTree, split_path};
use super::{ImageOptions, PullError};
use oci::Hasher;
use oci::layer::{Archive, EntryKind, LayerError, LayerSource, LayerUse, Limits, decompress};
use std::io::{self, Read};
use std::path::Path;

/// Names that begin so are whiteouts, and hide what the rest of the name names.
const WHITEOUT: &str = ".wh.";
/// This one hides everything in its directory.
const OPAQUE: &str = ".wh..wh..opq";
/// Others that begin so are an old storage driver's own, and mean nothing.
const WHITEOUT_META: &str = ".wh..wh.";

/// Lays an image down in `directory`: `image/fs` is its file system.
pub(super) fn lay_down_image(
    directory: &Path,
    plan: &PullPlan,
    layers: &dyn LayerSource,
    options: &ImageOptions,
) -> Result<(), PullError> {
    let failed = |cause| PullError::directory(directory, cause);
    let (image, staging) = (directory.join("image"), directory.join("staging"));
    fs_err::create_dir(&image).map_err(failed)?;
    fs_err::create_dir(&staging).map_err(failed)?;
    let mut tree = FileTree::create(&image, &staging, options).map_err(failed)?;
    let limits = &options.limits.layers;
    let mut left = limits.clone();
    for (position, layer) in plan.layers.iter().enumerate() {
        let open = || layers.open(position);
        let laid_down = check_layer(&mut tree, layer, open, &left)
            .and_then(|used| place_layer(&mut tree, open, &left).map(|()| used));
        let used = laid_down.map_err(|cause| PullError::Layer {
            digest: layer.descriptor.digest.clone(),
            cause: Box::new(match cause {
                EntryError::Layer(error) => EntryError::Layer(error.of_the_whole(limits)),
                other => other,
            }),
        })?;
        left = left.without(used);
    }
    Ok(())
}

/// Reads a layer to its end, and hides what it hides.
fn check_layer<'a>(
    tree: &mut FileTree,
    layer: &PlannedLayer,
    open: impl Fn() -> io::Result<Box<dyn Read + 'a>>,
    limits: &Limits,
) -> Result<LayerUse, EntryError> {
    let blob = open().map_err(LayerError::Read)?;
    let expanded = decompress(blob, limits).map_err(LayerError::from_io)?;
    let mut hashed = HashedRead { inner: expanded, hasher: layer.diff_id.hasher() };
    let mut archive = Archive::new(&mut hashed, limits);
    while let Some(entry) = archive.next_entry()? {
        let (directory, name) = split_path(&entry.path);
        if is_below_whiteout(directory) {
            continue;
        }
        if name == OPAQUE {
            tree.clear_directory(directory, &entry.path)?;
        } else if let Some(hidden) = hidden_name(name) {
            if matches!(hidden, "" | "." | "..") {
                return Err(EntryError::Whiteout(entry.path));
            }
            tree.remove_path(directory, hidden, &entry.path)?;
        } else if entry.kind == EntryKind::Directory && !name.is_empty() {
            tree.clear_way(&entry.path)?;
        }
    }
    let used = archive.used();
    let actual = hashed.hasher.finish();
    if actual != layer.diff_id {
        return Err(EntryError::DiffId { expected: layer.diff_id.clone(), actual });
    }
    Ok(used)
}

fn place_layer<'a>(
    tree: &mut FileTree,
    open: impl Fn() -> io::Result<Box<dyn Read + 'a>>,
    limits: &Limits,
) -> Result<(), EntryError> {
    let blob = open().map_err(LayerError::Read)?;
    let expanded = decompress(blob, limits).map_err(LayerError::from_io)?;
    let mut archive = Archive::new(expanded, limits);
    while let Some(entry) = archive.next_entry()? {
        let (directory, name) = split_path(&entry.path);
        if !name.starts_with(WHITEOUT) && !is_below_whiteout(directory) {
            tree.place_entry(&entry, &mut archive)?;
        }
    }
    Ok(())
}

/// What a whiteout hides; nothing if it is none.
fn hidden_name(name: &str) -> Option<&str> {
    if name.starts_with(WHITEOUT_META) {
        return None;
    }
    name.strip_prefix(WHITEOUT)
}

fn is_below_whiteout(directory: &str) -> bool {
    directory.split('/').any(|name| name.starts_with(WHITEOUT))
}

/// Hashes what is read.
struct HashedRead<R> {
    inner: R,
    hasher: Hasher,
}

impl<R: Read> Read for HashedRead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hasher.update(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}
