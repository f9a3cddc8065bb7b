//! `catalog`: catalogs in files, of packages in any registry.

use super::source::{self, Catalog, CatalogChoice};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::settings::Settings;
use crate::{private, registry};
use ::catalog::Rights;
use ::catalog::gather::{
    GatherError, GatherSource, GatheredSource, Gatherer, list_sources, sources_path,
};
use futures::StreamExt as _;
use oci::Rules;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest file that is fetched from a registry.
const EXPORT_SIZE_MAX: usize = 512 << 20;

/// What to do.
pub(crate) enum CatalogDeed {
    Add { sources: Vec<String>, from: Option<PathBuf> },
    Sync,
    Export(PathBuf),
    Import(PathBuf),
}

/// What to do, and with which catalog.
pub(crate) struct Request {
    pub(crate) deed: CatalogDeed,
    pub(crate) asked: CatalogChoice,
    pub(crate) format: Format,
}

/// Does it.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    match &request.deed {
        CatalogDeed::Add { sources, from } => {
            let listed = from.as_ref().map(fs_err::read_to_string).transpose();
            let listed = listed.map_err(|error| Failure::file(&error))?.unwrap_or_default();
            let sources: Vec<String> =
                sources.iter().cloned().chain(list_sources(&listed)).collect();
            let path = catalog_path(request, settings)?;
            gather_sources(request, settings, &path, &sources).await
        }
        CatalogDeed::Sync => {
            let path = catalog_path(request, settings)?;
            let sources = read_remembered(&path)?;
            if sources.is_empty() {
                let hint = "name packages with `apron catalog add REPOSITORY`";
                let what = format!("nothing was added to the catalog {}", path.display());
                return Err(Failure::new(what, hint));
            }
            gather_sources(request, settings, &path, &sources).await
        }
        CatalogDeed::Export(to) => export_catalog(request, settings, to).await,
        CatalogDeed::Import(from) => import_catalog(request, settings, from),
    }
}

/// The catalog that was named, or the user's own.
fn catalog_path(request: &Request, settings: &Settings) -> Outcome<PathBuf> {
    if let Some(path) = &request.asked.file {
        return Ok(path.clone());
    }
    let path = source::own_path(settings).ok_or_else(|| {
        Failure::new("it is not said where the catalog is", "name a file with --catalog FILE")
    })?;
    path.parent().map_or(Ok(()), private::make_directory)?;
    Ok(path)
}

/// What a catalog was made of.
fn read_remembered(path: &Path) -> Outcome<Vec<String>> {
    match fs_err::read_to_string(sources_path(path)) {
        Ok(text) => Ok(list_sources(&text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Failure::file(&error)),
    }
}

async fn gather_sources(
    request: &Request,
    settings: &Settings,
    path: &Path,
    sources: &[String],
) -> Outcome {
    let rules =
        Rules::weak().any_digest().default_registry(&request.asked.registry.default_registry);
    let mut parsed = Vec::new();
    for text in sources {
        parsed.push(GatherSource::parse(text, &rules).map_err(|error| {
            let hint =
                "name a repository, such as registry.example.org/team/package, or a tag of it";
            Failure::new(format!("`{text}` is not a repository"), hint).because(&error)
        })?);
    }
    let index = Arc::new(source::open_kept(path)?);
    // Before anything is read: what is interrupted goes on with `sync`.
    let mut remembered = read_remembered(path)?;
    remembered.extend(sources.iter().cloned());
    remembered.sort();
    remembered.dedup();
    private::write_file(&sources_path(path), &(remembered.join("\n") + "\n"))?;
    let packages = registry::client(&request.asked.registry, settings).await?;
    let gatherer = Gatherer { index, packages, temporary: settings.temporary.clone() };
    let (mut all, mut failed) = (Vec::new(), 0);
    let mut gathering = std::pin::pin!(gatherer.gather_all(&parsed));
    while let Some(outcome) = gathering.next().await {
        match outcome {
            Ok(found) => {
                failed += found.unread.len();
                tell_gathered(&found, request.format);
                all.push(found);
            }
            Err(GatherError::Store(name, error)) => {
                failed += 1;
                output::fail(&registry::failed(format!("cannot look at {name}"), &error));
            }
            Err(GatherError::Index(error)) => return Err(source::unusable_catalog(path, &error)),
        }
    }
    if request.format == Format::Json {
        output::print_json(&all)?;
    }
    if failed > 0 {
        let what = format!("{} could not be read", output::count(failed, "version or repository"));
        return Err(Failure::new(what, "go on with `apron catalog sync`: what was read stays"));
    }
    Ok(())
}

fn tell_gathered(gathered: &GatheredSource, format: Format) {
    let GatheredSource { repository, versions, read, broken, unread } = gathered;
    broken.iter().chain(unread).for_each(output::warn);
    if format == Format::Text {
        let versions = output::count(*versions, "version");
        output::print(format_args!("{repository}: {versions}, {read} new"));
    }
}

/// Writes what the asked catalog has; without one that is named, the user's own.
async fn export_catalog(request: &Request, settings: &Settings, to: &Path) -> Outcome {
    let catalog = match &request.asked.host {
        Some(_) => Catalog::connect(&request.asked, settings).await?,
        None => Catalog::open(&catalog_path(request, settings)?)?,
    };
    let file = |error: std::io::Error| Failure::file(&error);
    let beside = to.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut written = tempfile::NamedTempFile::new_in(beside).map_err(file)?;
    match &catalog {
        Catalog::File { index, path, .. } => {
            let done = index.export_compressed(&Rights::all(), written.as_file_mut());
            done.map_err(|error| source::unusable_catalog(path, &error))?;
        }
        Catalog::Remote(..) => {
            let bytes = catalog.read("/api/v1/index.jsonl.gz", EXPORT_SIZE_MAX).await?;
            let bytes = bytes.ok_or_else(|| {
                let hint = "ask a registry that `apron registry serve` or `apron up` serves";
                Failure::new("the registry has no catalog to export", hint)
            })?;
            written.write_all(&bytes).map_err(file)?;
        }
    }
    written.as_file().sync_all().map_err(file)?;
    let size = written.as_file().metadata().map_err(file)?.len();
    written.persist(to).map_err(|error| file(error.error))?;
    if request.format == Format::Json {
        return output::print_json(&serde_json::json!({"file": to, "size": size}));
    }
    output::print(format_args!("wrote {} ({})", to.display(), output::size(size)));
    Ok(())
}

fn import_catalog(request: &Request, settings: &Settings, from: &Path) -> Outcome {
    let path = catalog_path(request, settings)?;
    let mut file = fs_err::File::open(from).map_err(|error| Failure::file(&error))?;
    let index = source::open_kept(&path)?;
    let count = index.import(&mut file).map_err(|error| source::not_exported(from, &error))?;
    if request.format == Format::Json {
        return output::print_json(&serde_json::json!({"repositories": count}));
    }
    let count = output::count(count, "package");
    output::print(format_args!("imported {count} into {}", path.display()));
    Ok(())
}
