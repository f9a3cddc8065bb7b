//! Looking after a data directory: collecting garbage, scrubbing, rebuilding.

use super::{cannot_open, control, failed, open_existing};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// Collect garbage.
pub(crate) struct Collect {
    pub(crate) directory: PathBuf,
    pub(crate) untagged_after: Option<Duration>,
    pub(crate) dry_run: bool,
    pub(crate) ignore_lease: bool,
    pub(crate) format: Format,
}

/// Read every blob again.
pub(crate) struct Scrub {
    pub(crate) directory: PathBuf,
    pub(crate) format: Format,
}

/// Make the database again.
pub(crate) struct Rebuild {
    pub(crate) directory: PathBuf,
    pub(crate) format: Format,
}

/// Collects what nothing refers to.
pub(crate) async fn collect(request: &Collect) -> Outcome {
    let what = ::registry::Collect {
        untagged_after: request.untagged_after,
        dry_run: request.dry_run,
        ignore_lease: request.ignore_lease,
    };
    let done = match control::collect(&request.directory, &what).await? {
        Some(done) => done,
        None => collect_alone(request, &what).await?,
    };
    if request.format == Format::Json {
        return output::print_json(&json!({
            "dryRun": request.dry_run,
            "manifests": done.manifests,
            "links": done.links,
            "blobs": done.blobs,
            "bytes": done.bytes,
            "orphans": done.orphans,
            "uploads": done.uploads,
        }));
    }
    let verb = if request.dry_run { "would collect" } else { "collected" };
    output::print(format_args!("{verb} {}", summary(&done)));
    Ok(())
}

/// Collects in a directory that nothing serves.
async fn collect_alone(
    request: &Collect,
    what: &::registry::Collect,
) -> Outcome<::registry::Collected> {
    let registry = open_existing(&request.directory)?;
    let done = registry.collect(what).await;
    let done = done.map_err(|error| failed("cannot collect garbage", &error))?;
    registry.flush_views().await;
    Ok(done)
}

/// What a collection did, in one line.
pub(super) fn summary(done: &::registry::Collected) -> String {
    let count =
        |number: u64, noun| output::count(usize::try_from(number).unwrap_or(usize::MAX), noun);
    format!(
        "{} ({}), {}, {}, {}",
        count(done.blobs + done.orphans, "blob"),
        output::size(done.bytes),
        count(done.manifests, "untagged manifest"),
        count(done.links, "unused link"),
        count(done.uploads, "old upload"),
    )
}

/// Reads every blob again.
pub(crate) async fn scrub(request: &Scrub) -> Outcome {
    let registry = open_existing(&request.directory)?;
    let done = registry.scrub().await;
    let done = done.map_err(|error| failed("cannot scrub the registry", &error))?;
    let damaged: Vec<String> = done.damaged.iter().map(ToString::to_string).collect();
    if request.format == Format::Json {
        let (blobs, bytes) = (done.blobs, done.bytes);
        output::print_json(&json!({ "blobs": blobs, "bytes": bytes, "damaged": damaged }))?;
    } else {
        let blobs = usize::try_from(done.blobs).unwrap_or(usize::MAX);
        let read = format!("{} ({})", output::count(blobs, "blob"), output::size(done.bytes));
        output::print(format_args!("read {read}, {} damaged", damaged.len()));
        for digest in &damaged {
            output::print(format_args!("  damaged  {digest}"));
        }
    }
    if damaged.is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        format!("{} damaged and taken out of service", output::count(damaged.len(), "blob")),
        "push the packages that use them again; the damaged bytes are in quarantine/",
    ))
}

/// Makes the database again from the views and the blobs.
pub(crate) async fn rebuild(request: &Rebuild) -> Outcome {
    let directory = request.directory.clone();
    let done = tokio::task::spawn_blocking(move || ::registry::rebuild(&directory)).await;
    let done = done.map_err(|error| {
        Failure::new("rebuilding was interrupted", "run the command again").because(&error)
    })?;
    let done = done.map_err(|error| cannot_open(&request.directory, &error))?;
    if request.format == Format::Json {
        return output::print_json(&json!({
            "repositories": done.repositories,
            "manifests": done.manifests,
            "tags": done.tags,
            "blobs": done.blobs,
            "problems": done.problems,
        }));
    }
    output::print(format_args!(
        "found {} repositories, {} manifests, {} tags, {} blobs",
        done.repositories, done.manifests, done.tags, done.blobs
    ));
    for problem in &done.problems {
        output::print(format_args!("  lost  {problem}"));
    }
    Ok(())
}
