//! `lint`: everything that can be said about packages without installing them.

use super::build::read_files;
use crate::args::registry::RegistryArguments;
use crate::directory::{Directory, Selecting, examples_below};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::place::{self, Place};
use crate::settings::Settings;
use crate::stacks;
use oci::Platform;
use serde::Serialize;
use std::path::Path;
use xpkg::diagnostic::{Diagnostic, Severity};
use xpkg::lint::Root;
use xpkg::open::OpenError;
use xpkg::source::Sources;

/// What to check, and how to tell.
pub(crate) struct Request {
    pub(crate) packages: Vec<String>,
    pub(crate) selecting: Selecting,
    /// Which image of multi-platform packages.
    pub(crate) platform: Option<Platform>,
    pub(crate) strict: bool,
    pub(crate) format: Format,
    pub(crate) registry: RegistryArguments,
}

/// The form of the findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Format {
    /// Words for people
    #[default]
    Text,
    /// JSON for programs
    Json,
    /// SARIF for code hosts
    Sarif,
}

/// Findings as programs read them.
#[derive(Serialize)]
pub(crate) struct Report<'a> {
    errors: usize,
    warnings: usize,
    findings: &'a [Diagnostic],
}

impl<'a> Report<'a> {
    pub(crate) fn new(findings: &'a [Diagnostic]) -> Self {
        let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
        Self { errors, warnings: findings.len() - errors, findings }
    }
}

/// Checks packages.
pub(crate) fn run(request: &Request, settings: &Settings) -> Outcome {
    let mut findings = Vec::new();
    for package in &request.packages {
        findings.extend(check(package, request, settings)?);
    }
    let report = Report::new(&findings);
    let Report { errors, warnings, .. } = report;
    match request.format {
        Format::Text => {
            output::findings(&findings, output::print);
            let packages = output::count(request.packages.len(), "package");
            let (errors, warnings) =
                (output::count(errors, "error"), output::count(warnings, "warning"));
            output::print(format_args!("{packages} checked: {errors}, {warnings}"));
        }
        Format::Json => output::print_json(&report)?,
        Format::Sarif => {
            let rules = xpkg::lint::rules().iter().chain(stack::rules::stack_rules());
            output::print_json(&xpkg::sarif::to_sarif(&findings, rules))?;
        }
    }
    if errors > 0 {
        let message = format!("the check found {}", output::count(errors, "error"));
        return Err(Failure::new(message, "fix what is listed, then check again"));
    }
    if request.strict && warnings > 0 {
        let message = format!("the check found {}", output::count(warnings, "warning"));
        return Err(Failure::new(message, "fix what is listed, or check without --strict"));
    }
    Ok(())
}

fn check(package: &str, request: &Request, settings: &Settings) -> Outcome<Vec<Diagnostic>> {
    let place = Place::parse(package, &request.registry)?;
    let mut findings = match &place {
        Place::Directory(path) => check_directory(path, &request.selecting)?,
        other => check_image(other, request, settings)?,
    };
    // With several packages, or one that is not here, a file name alone does not say which.
    let here = package == "." && request.packages.len() == 1;
    if !here {
        let prefix = package.trim_end_matches('/');
        let separator = if matches!(place, Place::Directory(_)) { "/" } else { "!" };
        for finding in &mut findings {
            finding.file = format!("{prefix}{separator}{}", finding.file);
        }
    }
    Ok(findings)
}

fn check_directory(root: &Path, selecting: &Selecting) -> Outcome<Vec<Diagnostic>> {
    if let Some(found) = stacks::read_directory(root)? {
        return Ok(found.findings);
    }
    let directory = Directory::walk(root, examples_below(root).as_deref(), selecting)?;
    let files = read_files(&directory.files, |path| directory.read(path))?;
    let examples = read_files(&directory.examples, |path| directory.read_example(path))?;
    let sources = Sources {
        files: &files,
        examples: &examples,
        skipped: &directory.skipped,
        metadata: selecting.metadata.file(),
    };
    let mut findings = xpkg::build::plan(&sources).1;
    findings.extend(stack::report_ignored(root.join(stack::REGISTRY_DIRECTORY).exists()));
    Ok(findings)
}

fn check_image(place: &Place, request: &Request, settings: &Settings) -> Outcome<Vec<Diagnostic>> {
    let (name, located, config) = crate::block_on(async {
        let opened = place::open(place, &request.registry, settings).await?;
        let located = place::locate(&opened, request.platform.as_ref(), settings).await?;
        let config = place::config(&opened, &located.image).await?;
        Ok((opened.name, located, config))
    })?;
    let limits = xpkg::Limits::default();
    let read = xpkg::open::package_yaml(&located.layers, &limits)
        .and_then(|reader| xpkg::open::read_strictly(reader, &limits));
    if let Err(OpenError::NotAPackage) = read
        && let Some(found) = stacks::read_image(&name, &located.layers, stacks::tag_of(place))?
    {
        return Ok(found.findings);
    }
    let opened = read.map_err(|error| place::unreadable(&name, &error))?;
    let root = match (place, located.root.index()) {
        (Place::File(_), _) => Root::File,
        (_, Some(index)) => Root::Index(index),
        (_, None) => Root::Manifest,
    };
    let beside = opened.meta().map(|meta| xpkg::lint::image(meta, &config, root));
    let mut findings = opened.diagnostics;
    findings.extend(beside.unwrap_or_default());
    findings.extend(stack::find_ignored(&located.layers).unwrap_or_default());
    Ok(findings)
}
