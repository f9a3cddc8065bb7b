//! The image a package runs, taken from an archive, a layout directory or a container engine.

use crate::failure::{Failure, Outcome};
use crate::place::{self, Place};
use crate::registry;
use crate::settings::Settings;
use oci::layer::{Effort, Limits, decompress};
use oci::{Descriptor, Document, MediaType, Platform};
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use store::VerifiedBlob;
use store::tarball::{Layer, LayerContent};
use xpkg::image::Runtime;

/// A runtime image whose layers lie in files.
pub(crate) struct RuntimeImage {
    pub(crate) image: Runtime,
    pub(crate) layers: Vec<Layer>,
}

/// Opens an archive or layout directory that holds exactly one image.
pub(crate) fn open(path: &Path, work: &Path) -> Outcome<RuntimeImage> {
    crate::block_on(read(path, work))
}

async fn read(path: &Path, work: &Path) -> Outcome<RuntimeImage> {
    let cannot = || format!("cannot embed {}", path.display());
    let arguments = crate::args::registry::RegistryArguments::upstream(false);
    let place = if path.is_dir() {
        Place::Layout(path.to_owned(), None)
    } else {
        Place::File(path.to_owned())
    };
    let opened = place::open(&place, &arguments, &Settings::default()).await?;
    let root = place::fetch_manifest(&opened, &opened.id).await?;
    let raw = match root.index() {
        None => root,
        Some(index) => {
            let child =
                xpkg::locate::choose(index, Some(&Platform::linux_amd64())).map_err(|error| {
                    Failure::new(cannot(), "embed an archive of one image, for one platform")
                        .because(&error)
                })?;
            place::fetch_manifest(&opened, &oci::Identifier::Digest(child.digest.clone())).await?
        }
    };
    let Document::Manifest(manifest) = &raw.document else {
        return Err(Failure::new(cannot(), "embed an archive of one image, for one platform"));
    };
    let config = place::config(&opened, &raw).await?;
    let mut layers = Vec::new();
    for (index, layer) in manifest.layers.iter().enumerate() {
        let limit = Limits::default().compressed_bytes_max;
        let blob = store::fetch_to_file(&*opened.store, layer, limit, work)
            .await
            .map_err(|error| registry::failed(cannot(), &error))?;
        layers.push(lay_down(&blob, &work.join(format!("runtime-{index}")))?);
    }
    let descriptors = layers.iter().map(|layer| layer.descriptor.clone()).collect();
    Ok(RuntimeImage { image: Runtime { config, layers: descriptors }, layers })
}

/// Writes a layer to a file. Plain archives are compressed, as package files hold gzip layers.
fn lay_down(blob: &VerifiedBlob, path: &Path) -> Outcome<Layer> {
    let failed = |error: std::io::Error| Failure::file(&error);
    let mut start = [0; 4];
    let mut reader = blob.open();
    let filled = reader.read(&mut start).map_err(failed)?;
    let gzip = start[..filled].starts_with(&[0x1f, 0x8b]);
    let file = fs_err::File::create(path).map_err(failed)?;
    let mut out = oci::digest::HashWriter::new(BufWriter::new(file));
    if gzip {
        std::io::copy(&mut blob.open(), &mut out).map_err(failed)?;
    } else {
        let limits = Limits::default();
        let mut plain = decompress(blob.open(), &limits).map_err(failed)?;
        oci::layer::gzip(&mut plain, &mut out, Effort::Small).map_err(failed)?;
    }
    out.flush().map_err(failed)?;
    let (_, digest, size) = out.finish();
    let descriptor = Descriptor::new(MediaType::DOCKER_LAYER_GZIP, digest, size);
    Ok(Layer { descriptor, content: LayerContent::File(path.to_owned()) })
}

/// Saves an image out of the local Docker or Podman, whichever answers.
pub(crate) fn from_engine(image: &str, work: &Path, settings: &Settings) -> Outcome<RuntimeImage> {
    let archive = work.join("engine.tar");
    machine::engine::save_image(image, &archive, &settings.path)?;
    open(&archive, work)
}
