//! Where things lie in a package directory: what was not taken, and where the metadata has to be.

use super::findings::finding;
use super::report::DocumentReport;
use super::rules::{FILE_SKIPPED, METADATA_MISSING, METADATA_PLACE};
use crate::diagnostic::Diagnostic;
use crate::source::{METADATA_FILE, SkipReason, SkippedFile};
use yaml::Position;

const FOLLOW: &str = "put the file itself there, or say --follow-links";

/// Tells each file that a walk met and did not take, and metadata in a file other than the one
/// where it has to be (anywhere, if none is named). Replaces findings that these explain.
pub(crate) fn check(
    reports: &[DocumentReport],
    skipped: &[SkippedFile],
    metadata_file: Option<&str>,
    found: &mut Vec<Diagnostic>,
) {
    let wanted = metadata_file.unwrap_or(METADATA_FILE);
    if skipped.iter().any(|one| one.path == wanted) {
        found.retain(|finding| finding.rule != METADATA_MISSING.name);
    }
    found.extend(skipped.iter().map(|one| describe_skipped(one, wanted)));
    let mut metadata = reports.iter().filter(|report| report.is_metadata);
    // Beside metadata at its place, other metadata is a second one, which is told already.
    if metadata_file.is_none() || metadata.clone().any(|report| report.file == wanted) {
        return;
    }
    found.extend(metadata.next().map(|report| {
        let message = format!("package metadata belongs in {wanted}");
        let hint = format!("move it there, or name this file: --metadata {}", report.file);
        finding(&METADATA_PLACE, &report.file, report.position, message).hint(hint)
    }));
}

fn describe_skipped(skipped: &SkippedFile, wanted: &str) -> Diagnostic {
    let (message, hint) = match skipped.why {
        SkipReason::Link => ("is a link, and links are not followed", FOLLOW),
        SkipReason::LinkToDirectory => (
            "is a link to a directory, and such links are not followed",
            "put the directory itself there, or leave it out with --ignore",
        ),
        SkipReason::LinkOutside => (
            "is a link that leads out of the package",
            "put the file itself there, or allow the directory it leads to: --follow-links=DIR",
        ),
        SkipReason::LinkBroken => (
            "is a link that leads to no file",
            "put the file itself there, or leave it out with --ignore",
        ),
        SkipReason::TooDeep => (
            "lies too deep, and its files are not read",
            "move it up, or leave it out with --ignore",
        ),
        SkipReason::NotUtf8 => ("has a name that is not UTF-8, and is not read", "rename it"),
        SkipReason::NotRegular => (
            "is neither a file nor a directory, and is not read",
            "put a file there, or leave it out with --ignore",
        ),
    };
    let rule = if skipped.path == wanted { &METADATA_PLACE } else { &FILE_SKIPPED };
    finding(rule, &skipped.path, Position::default(), message).hint(hint)
}
