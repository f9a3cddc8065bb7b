//! `diff`: what changed between two packages, breaking changes first.

use super::build::read_files;
use crate::args::registry::RegistryArguments;
use crate::directory::{Directory, Selecting, examples_below};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::place::{self, Place};
use crate::settings::Settings;
use oci::Platform;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{BufReader, BufWriter, Seek, Write};
use std::path::Path;
use std::process::ExitCode;
use xpkg::compare::{Change, Comparison, Contents, Severity, change_sentences, compare};
use xpkg::source::Sources;

/// What to compare, and what is too much.
pub(crate) struct Request {
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) fail_on: FailOn,
    pub(crate) all: bool,
    pub(crate) format: Format,
    /// Which image of multi-platform packages.
    pub(crate) platform: Option<Platform>,
    pub(crate) registry: RegistryArguments,
}

/// Which changes end the command with 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum FailOn {
    /// Those that may break what works now
    #[default]
    Breaking,
    /// Those, and what should be known before an upgrade
    Warning,
    /// Any change
    Any,
    /// None
    Never,
}

impl FailOn {
    fn is_met(self, comparison: &Comparison) -> bool {
        let has = |severity| comparison.count(severity) > 0;
        match self {
            Self::Breaking => has(Severity::Breaking),
            Self::Warning => has(Severity::Breaking) || has(Severity::Warning),
            Self::Any => !comparison.changes.is_empty(),
            Self::Never => false,
        }
    }
}

/// How the command ends when there are such changes.
const CHANGES: u8 = 2;
/// Fields that are named in one line; of more it is told how many they are.
const PATHS_MAX: usize = 5;
/// Lines of notes, unless all are asked for.
const NOTES_MAX: usize = 20;

/// Changes as programs read them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    old: &'a str,
    new: &'a str,
    breaking: usize,
    warnings: usize,
    notes: usize,
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
    changes: &'a [Change],
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Compares two packages.
pub(crate) fn run(request: &Request, settings: &Settings) -> Outcome<ExitCode> {
    let old = read_contents(&request.old, request, settings)?;
    let new = read_contents(&request.new, request, settings)?;
    let comparison = compare(&old, &new);
    match request.format {
        Format::Json => output::print_json(&Report {
            old: &request.old,
            new: &request.new,
            breaking: comparison.count(Severity::Breaking),
            warnings: comparison.count(Severity::Warning),
            notes: comparison.count(Severity::Note),
            left_out: comparison.left_out(),
            changes: &comparison.changes,
        })?,
        Format::Text => draw(request, &comparison).into_iter().for_each(output::print),
    }
    let is_met = request.fail_on.is_met(&comparison);
    Ok(if is_met { ExitCode::from(CHANGES) } else { ExitCode::SUCCESS })
}

fn read_contents(package: &str, request: &Request, settings: &Settings) -> Outcome<Contents> {
    match Place::parse(package, &request.registry)? {
        Place::Directory(path) => read_directory(&path, settings),
        place => read_image(&place, request, settings),
    }
}

fn read_image(place: &Place, request: &Request, settings: &Settings) -> Outcome<Contents> {
    let (name, located) = crate::block_on(async {
        let opened = place::open(place, &request.registry, settings).await?;
        let located = place::locate(&opened, request.platform.as_ref(), settings).await?;
        Ok((opened.name, located))
    })?;
    let limits = xpkg::Limits::default();
    xpkg::open::package_yaml(&located.layers, &limits)
        .and_then(|reader| Contents::read(reader, &limits))
        .map_err(|error| place::unreadable(&name, &error))
}

/// A directory is compared as the package it would be built into.
fn read_directory(root: &Path, settings: &Settings) -> Outcome<Contents> {
    let directory = Directory::walk(root, examples_below(root).as_deref(), &Selecting::default())?;
    let files = read_files(&directory.files, |path| directory.read(path))?;
    let (plan, findings) = xpkg::build::plan(&Sources {
        files: &files,
        examples: &[],
        skipped: &directory.skipped,
        metadata: Selecting::default().metadata.file(),
    });
    let Some(plan) = plan else {
        output::findings(&findings, output::say_always);
        let message = format!("{} cannot be built into a package", root.display());
        return Err(Failure::new(message, "fix what is listed above; `apron lint` shows the same"));
    };
    let unwritten = |error: &dyn std::error::Error| {
        let message = format!("cannot read the package in {}", root.display());
        Failure::new(message, "run the command again when nothing changes the files").because(error)
    };
    let file = tempfile::tempfile_in(&settings.temporary).map_err(|error| Failure::file(&error))?;
    let mut writer = BufWriter::new(file);
    plan.package
        .write(|path| directory.read(path), &mut writer)
        .map_err(|error| unwritten(&error))?;
    writer.flush().map_err(|error| Failure::file(&error))?;
    let mut file = writer.into_inner().map_err(|error| unwritten(&error))?;
    file.rewind().map_err(|error| Failure::file(&error))?;
    Contents::read(BufReader::new(file), &xpkg::Limits::default())
        .map_err(|error| place::unreadable(&root.display().to_string(), &error))
}

/// The changes in words: by severity, then by object; what is said of several fields is said once.
fn draw(request: &Request, comparison: &Comparison) -> Vec<String> {
    let Request { old, new, .. } = request;
    if comparison.changes.is_empty() {
        return vec![format!("{old} and {new} bring the same")];
    }
    let count = |severity, noun| output::count(comparison.count(severity), noun);
    let mut lines = vec![format!(
        "{}, {}, {} from {old} to {}",
        count(Severity::Breaking, "breaking change"),
        count(Severity::Warning, "warning"),
        count(Severity::Note, "note"),
        output::bold(new),
    )];
    for severity in [Severity::Breaking, Severity::Warning, Severity::Note] {
        let of_severity: Vec<&Change> =
            comparison.changes.iter().filter(|change| change.severity == severity).collect();
        let mut drawn = draw_changes(&of_severity, request.all);
        let most = if severity == Severity::Note && !request.all { NOTES_MAX } else { usize::MAX };
        if drawn.len() > most {
            let rest = drawn.len() - most;
            drawn.truncate(most);
            drawn.push(output::dim(format!("  … {rest} more lines; --all shows them")));
        }
        if !drawn.is_empty() {
            lines.push(String::new());
            lines.push(output::bold(heading(severity)));
            lines.append(&mut drawn);
        }
    }
    if comparison.left_out() > 0 {
        lines.push(format!("… and {} more", output::count(comparison.left_out(), "change")));
    }
    lines
}

fn heading(severity: Severity) -> &'static str {
    match severity {
        Severity::Breaking => "breaking",
        Severity::Warning => "warnings",
        Severity::Note => "notes",
    }
}

/// Lines of one severity, below the objects they are about.
fn draw_changes(changes: &[&Change], all: bool) -> Vec<String> {
    let mut objects: BTreeMap<Option<String>, Vec<&Change>> = BTreeMap::new();
    for change in changes {
        let object = change.object.as_ref().map(ToString::to_string);
        objects.entry(object).or_default().push(change);
    }
    let mut lines = Vec::new();
    for (object, changes) in objects {
        lines.push(format!("  {}", object.as_deref().unwrap_or("the package itself")));
        let most = if all { usize::MAX } else { PATHS_MAX };
        let sentences = change_sentences(&changes, most).into_iter();
        lines.extend(sentences.map(|(_, sentence)| format!("    {sentence}")));
    }
    lines
}
