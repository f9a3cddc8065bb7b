//! `inspect`: what is in a package.

mod show;

use super::build::read_files;
use crate::args::registry::RegistryArguments;
use crate::directory::{Directory, Selecting, examples_below};
use crate::failure::Outcome;
use crate::output;
use crate::place::{self, Located, Place};
use crate::settings::Settings;
use crate::stacks;
use oci::{Identifier, Platform};
use std::path::Path;
use xpkg::facts::{ExtensionFacts, ImageFacts, Inspection};
use xpkg::lint::DocumentReport;
use xpkg::locate;
use xpkg::open::OpenError;
use xpkg::source::Sources;

/// What to show, and how.
pub(crate) struct Request {
    pub(crate) package: String,
    pub(crate) format: Format,
    pub(crate) all: bool,
    pub(crate) platform: Option<Platform>,
    pub(crate) registry: RegistryArguments,
}

/// The form of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Format {
    /// Sections of columns
    #[default]
    Table,
    /// The package and what is in it, as branches
    Tree,
    /// JSON for programs
    Json,
    /// The same as YAML
    Yaml,
}

/// Shows a package.
pub(crate) fn run(request: &Request, settings: &Settings) -> Outcome {
    let place = Place::parse(&request.package, &request.registry)?;
    let inspection = match &place {
        Place::Directory(path) => inspect_directory(path)?,
        other => inspect_image(other, request, settings)?,
    };
    match request.format {
        Format::Json => output::print_json(&inspection),
        Format::Yaml => output::print_yaml(&inspection),
        Format::Table => {
            show::table(&inspection, request.all);
            Ok(())
        }
        Format::Tree => {
            show::tree(&inspection, request.all);
            Ok(())
        }
    }
}

fn inspect_directory(root: &Path) -> Outcome<Inspection> {
    if let Some(found) = stacks::read_directory(root)? {
        return Ok(found.inspect(root.display().to_string()));
    }
    let directory = Directory::walk(root, examples_below(root).as_deref(), &Selecting::default())?;
    let files = read_files(&directory.files, |path| directory.read(path))?;
    let examples = read_files(&directory.examples, |path| directory.read_example(path))?;
    let (plan, findings) = xpkg::build::plan(&Sources {
        files: &files,
        examples: &examples,
        skipped: &directory.skipped,
        metadata: None,
    });
    let documents = files.into_iter().flat_map(|file| file.documents);
    let reports: Vec<DocumentReport> = documents.map(|document| document.report).collect();
    let size = plan.map_or(0, |plan| plan.package.size());
    Ok(Inspection::new(root.display().to_string(), &reports, &findings, size))
}

fn inspect_image(place: &Place, request: &Request, settings: &Settings) -> Outcome<Inspection> {
    let (name, located, extensions) = crate::block_on(async {
        let opened = place::open(place, &request.registry, settings).await?;
        let located = place::locate(&opened, request.platform.as_ref(), settings).await?;
        let extensions = match extension(&located) {
            Some(id) => Some(place::fetch_manifest(&opened, &id).await?),
            None => None,
        };
        Ok((opened.name, located, extensions))
    })?;
    let limits = xpkg::Limits::default();
    let read = xpkg::open::package_yaml(&located.layers, &limits)
        .and_then(|reader| xpkg::open::read(reader, &limits));
    let old = match read {
        Err(OpenError::NotAPackage) => {
            stacks::read_image(&name, &located.layers, stacks::tag_of(place))?
        }
        _ => None,
    };
    let mut inspection = if let Some(found) = old {
        found.inspect(name)
    } else {
        let opened = read.map_err(|error| place::unreadable(&name, &error))?;
        Inspection::new(name, &opened.reports, &opened.diagnostics, opened.size)
    };
    let extensions = extensions.as_ref().map(ExtensionFacts::new);
    inspection.image =
        Some(ImageFacts { extensions, ..ImageFacts::new(&located.root, &located.image) });
    Ok(inspection)
}

/// The child of an index that holds content for other readers.
fn extension(located: &Located) -> Option<Identifier> {
    let children = &located.root.index()?.manifests;
    let child = children.iter().find(|child| locate::is_extension(child))?;
    Some(Identifier::Digest(child.digest.clone()))
}
