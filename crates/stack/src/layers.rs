//! The files of a package in an image: `/.registry/` of the file system that all layers make.

use super::REGISTRY_DIRECTORY;
use super::files::{Gathering, RegistryFiles, UnreadReason};
use super::limits::StackLimits;
use oci::layer::{Archive, EntryKind, Flat, LayerError, LayerSource, decompress, flatten};
use std::collections::BTreeMap;
use std::io::Read;

/// Paths to read, by layer and by the place of the entry in it.
pub(crate) type Wanted<'f> = BTreeMap<(usize, usize), Vec<&'f str>>;

/// Reads `/.registry/` out of layers; `None` if there is no such directory. Nothing is extracted and
/// nothing in the image is run; links are told of and not followed.
pub fn read_layers(
    source: &dyn LayerSource,
    limits: &StackLimits,
) -> Result<Option<RegistryFiles>, LayerError> {
    let flat = flatten(source, &limits.layer)?;
    let mut gathering = Gathering::new(limits);
    let Some(wanted) = choose_files(&flat, &mut gathering) else { return Ok(None) };
    for layer in 0..source.count() {
        let last = wanted.range((layer, 0)..=(layer, usize::MAX)).next_back();
        if let Some(((_, last), _)) = last {
            read_layer((source, layer, *last), &wanted, &mut gathering, limits)?;
        }
    }
    Ok(Some(gathering.finish()))
}

/// Offers everything below the directory; `None` if there is nothing at all.
pub(crate) fn choose_files<'f>(
    flat: &'f Flat,
    gathering: &mut Gathering<'_>,
) -> Option<Wanted<'f>> {
    let prefix = format!("{REGISTRY_DIRECTORY}/");
    let mut wanted = Wanted::new();
    let mut is_there = false;
    if let Some(root) = flat.paths.get(REGISTRY_DIRECTORY)
        && root.kind != EntryKind::Directory
    {
        gathering.add_unread("", reason_of(&root.kind));
        is_there = true;
    }
    for (path, location) in &flat.paths {
        let Some(path) = path.strip_prefix(&prefix) else { continue };
        is_there = true;
        match &location.kind {
            EntryKind::Directory => {}
            EntryKind::File => {
                if gathering.accepts_file(path, location.size) {
                    wanted.entry((location.layer, location.ordinal)).or_default().push(path);
                }
            }
            other => gathering.add_unread(path, reason_of(other)),
        }
    }
    is_there.then_some(wanted)
}

fn reason_of(kind: &EntryKind) -> UnreadReason {
    match kind {
        EntryKind::Symlink(_) | EntryKind::HardLink(_) => UnreadReason::Link,
        EntryKind::File | EntryKind::Directory | EntryKind::Special => UnreadReason::Irregular,
    }
}

/// Reads the wanted files of one layer, up to the last of them.
fn read_layer(
    (source, layer, last): (&dyn LayerSource, usize, usize),
    wanted: &Wanted<'_>,
    gathering: &mut Gathering<'_>,
    limits: &StackLimits,
) -> Result<(), LayerError> {
    let blob = source.open(layer).map_err(LayerError::Read)?;
    let expanded = decompress(blob, &limits.layer).map_err(LayerError::from_io)?;
    let mut archive = Archive::new(expanded, &limits.layer);
    for ordinal in 0..=last {
        archive.next_entry()?.ok_or(LayerError::Truncated)?;
        let Some(paths) = wanted.get(&(layer, ordinal)) else { continue };
        let mut bytes = Vec::new();
        archive.read_to_end(&mut bytes).map_err(LayerError::from_io)?;
        for path in paths {
            gathering.add_file(path, bytes.clone());
        }
    }
    Ok(())
}
