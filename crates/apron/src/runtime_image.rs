//! The image a package runs, taken from an archive, a layout directory or a container engine.

use crate::failure::{Failure, Outcome};
use crate::place::{self, Place};
use crate::registry;
use crate::settings::Settings;
use oci::layer::{Effort, Limits, decompress};
use oci::{Descriptor, Document, ImageConfig, MediaType, Platform};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use store::VerifiedBlob;
use store::tarball::{Layer, LayerContent};
use xpkg::image::Runtime;

/// No image config needs more.
const CONFIG_SIZE_MAX: u64 = 4 << 20;

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
    let place = match path.is_dir() {
        true => Place::Layout(path.to_owned(), None),
        false => Place::File(path.to_owned()),
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
    let config = store::fetch_bytes(&*opened.store, &manifest.config, CONFIG_SIZE_MAX)
        .await
        .map_err(|error| registry::failed(cannot(), &error))?;
    let config: ImageConfig = serde_json::from_slice(&config).map_err(|error| {
        Failure::new(cannot(), "save the image again, for example with `docker save`")
            .because(&error)
    })?;
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
    save(image, &archive, settings)?;
    open(&archive, work)
}

/// Writes an image of a container engine as a docker-save archive.
pub(crate) fn save(image: &str, archive: &Path, settings: &Settings) -> Outcome {
    let engines: Vec<(&str, PathBuf)> = ["docker", "podman"]
        .into_iter()
        .filter_map(|name| Some((name, find(name, settings)?)))
        .collect();
    let mut failure = Failure::new(
        format!("cannot get the image {image} from a container engine"),
        "start Docker or Podman and pull the image, or save it elsewhere and give the archive (--embed-runtime-image-tarball, --from-xpkg)",
    );
    if engines.is_empty() {
        failure.causes.push("neither docker nor podman is on the PATH".to_owned());
    }
    for (name, program) in engines {
        let saved = Command::new(program)
            .args(["save", "--output"])
            .arg(archive)
            .arg(image)
            .stdin(Stdio::null())
            .output();
        match saved {
            Ok(saved) if saved.status.success() => return Ok(()),
            Ok(saved) => {
                let words = String::from_utf8_lossy(&saved.stderr);
                let last = words.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
                failure.causes.push(format!("{name} says: {}", last.trim()));
            }
            Err(error) => failure.causes.push(format!("{name} cannot be started: {error}")),
        }
        // A half-written archive of one engine must not be mistaken for the other's.
        let _ = fs_err::remove_file(archive);
    }
    Err(failure)
}

fn find(name: &str, settings: &Settings) -> Option<PathBuf> {
    std::env::split_paths(&settings.path).map(|path| path.join(name)).find(|path| path.is_file())
}
