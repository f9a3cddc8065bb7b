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
    pub(crate) platform: Option<Platform>,
    pub(crate) format: Format,
    pub(crate) registry: RegistryArguments,
}

/// Pulls a package.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let reference = registry::reference(&request.reference, &request.registry)?;
    let target = request.file.clone().unwrap_or_else(|| file_name(&reference).into());
    let layout = target.is_dir() || target.as_os_str().as_encoded_bytes().ends_with(b"/");
    let destination = if layout {
        let id = reference.identifier().clone();
        Place::Layout(target, Some(id).filter(|id| id.as_tag().is_some()))
    } else {
        Place::File(target)
    };
    let place = Place::Registry(reference);
    let source = place::open(&place, &request.registry, settings).await?;
    let copy = Copy {
        source,
        destination,
        // A package file holds one image; a layout holds them all.
        platform: request.platform.clone(),
        single: !layout,
        referrers: false,
        arguments: &request.registry,
        settings,
    };
    copy.run().await?.tell("pulled", "fetched", request.format)
}

/// `provider-nop-v0.4.0.xpkg` for `…/provider-nop:v0.4.0`.
fn file_name(reference: &Reference) -> String {
    let name = reference.repository().path().rsplit('/').next().unwrap_or("package");
    match reference.identifier() {
        Identifier::Tag(tag) => format!("{name}-{tag}.xpkg"),
        Identifier::Digest(digest) => format!("{name}-{}.xpkg", &digest.hex()[..12]),
    }
}
