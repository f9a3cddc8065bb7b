//! A `.registry/` beside the metadata of a package of today: that metadata counts, and nothing reads it.

use super::files::Gathering;
use super::findings::StackFindings;
use super::layers::choose_files;
use super::limits::StackLimits;
use super::{REGISTRY_DIRECTORY, rules};
use oci::layer::{LayerError, LayerSource, flatten};
use xpkg::diagnostic::Diagnostic;
use yaml::Position;

/// What to say of a package of today whose directory may have a `.registry/`.
pub fn report_ignored(has_registry: bool) -> Vec<Diagnostic> {
    let mut findings = StackFindings::default();
    if has_registry {
        findings.advise_at(
            &rules::REGISTRY_IGNORED,
            (REGISTRY_DIRECTORY, Position::default()),
            "a package of the first format is beside one of today, which alone counts",
            "remove .registry, or the metadata of today if the first format is meant",
        );
    }
    findings.into_sorted()
}

/// The same of an image, by its layers.
pub fn find_ignored(layers: &dyn LayerSource) -> Result<Vec<Diagnostic>, LayerError> {
    let limits = StackLimits::default();
    let flat = flatten(layers, &limits.layer)?;
    let mut gathering = Gathering::new(&limits);
    Ok(report_ignored(choose_files(&flat, &mut gathering).is_some()))
}
