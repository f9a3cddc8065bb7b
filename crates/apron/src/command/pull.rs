//! `pull`: from a registry to a file or a layout directory.

use super::copy::Copy;
use crate::args::registry::RegistryArguments;
use crate::failure::Outcome;
use crate::output::Format;
use crate::place::{self, Place};
use crate::registry;
use crate::settings::Settings;
use oci::{Identifier, Platform, Reference};
use std::path::PathBuf;

/// What to fetch, and where to put it.
pub(crate) struct Request {
    pub(crate) reference: String,
    pub(crate) file: Option<PathBuf>,
    pub(crate) images: Images,
    pub(crate) format: Format,
    pub(crate) registry: RegistryArguments,
}

/// Which images of a multi-platform package.
pub(crate) enum Images {
    /// The one that packages are read from, or all if the target can hold them.
    Usual,
    For(Platform),
    All,
}

/// Pulls a package.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let reference = registry::reference(&request.reference, &request.registry)?;
    let all = matches!(request.images, Images::All);
    let extension = if all { "tar" } else { "xpkg" };
    let target = request.file.clone();
    let target = target.unwrap_or_else(|| file_name(&reference, extension).into());
    let layout = target.is_dir() || target.as_os_str().as_encoded_bytes().ends_with(b"/");
    let tag = Some(reference.identifier().clone()).filter(|id| id.as_tag().is_some());
    let destination = match (layout, all) {
        (true, _) => Place::Layout(target, tag),
        // A package file holds one image; an archive of a layout holds them all.
        (false, true) => Place::Archive(target, tag),
        (false, false) => Place::File(target),
    };
    let place = Place::Registry(reference);
    let source = place::open(&place, &request.registry, settings).await?;
    let copy = Copy {
        source,
        destination,
        platform: match &request.images {
            Images::For(platform) => Some(platform.clone()),
            Images::Usual | Images::All => None,
        },
        single: !layout && !all,
        referrers: false,
        arguments: &request.registry,
        settings,
    };
    copy.run().await?.tell("pulled", "fetched", request.format)
}

/// `provider-nop-v0.4.0.xpkg` for `…/provider-nop:v0.4.0`.
fn file_name(reference: &Reference, extension: &str) -> String {
    let name = reference.repository().path().rsplit('/').next().unwrap_or("package");
    match reference.identifier() {
        Identifier::Tag(tag) => format!("{name}-{tag}.{extension}"),
        Identifier::Digest(digest) => format!("{name}-{}.{extension}", &digest.hex()[..12]),
    }
}
