//! `build`: a directory in, a package file out.

use super::build_stack;
use super::extra_layer::{self, ExtraLayer};
use super::lint;
use crate::directory::{self, Directory, Selecting};
use crate::failure::{Failure, Outcome};
use crate::git::{self, GitSettings};
use crate::output::{self, Format};
use crate::runtime_image;
use crate::settings::Settings;
use crate::stacks;
use api::meta::{Meta, PackageKind};
use oci::Raw;
use oci::layer::WrittenLayer;
use rayon::prelude::*;
use serde::Serialize;
use std::fs::File as StdFile;
use std::path::{Path, PathBuf};
use store::tarball::{Layer, LayerContent};
use tempfile::TempDir;
use xpkg::build::{Plan, WriteError};
use xpkg::diagnostic::{Diagnostic, Severity};
use xpkg::image::{self, Image, PackageLayer};
use xpkg::locate;
use xpkg::source::{Reading, SourceFile, Sources};

/// Findings that a failure names if they are not printed.
const FINDINGS_NAMED_MAX: usize = 5;

/// What to build, and how.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) root: PathBuf,
    pub(crate) examples: Examples,
    pub(crate) selecting: Selecting,
    pub(crate) file: File,
    pub(crate) runtime: Option<Runtime>,
    /// More layers, for other readers.
    pub(crate) layers: Vec<ExtraLayer>,
    /// The type of package it has to be, if one was named.
    pub(crate) kind: Option<PackageKind>,
    pub(crate) strict: bool,
    pub(crate) report: Report,
    /// Certificate authorities of a Git server.
    pub(crate) ca_file: Option<PathBuf>,
}

/// Where examples come from.
#[derive(Clone)]
pub(crate) enum Examples {
    /// The directory `examples` in the package root, if there is one.
    Below,
    /// This directory, if there is one.
    At(PathBuf),
    /// Nowhere.
    None,
}

/// Where the package goes.
#[derive(Clone)]
pub(crate) enum File {
    /// A name made of the package's name and digest, in the package root.
    Derived,
    /// The same name, in this directory.
    DerivedIn(PathBuf),
    /// This name and `.xpkg`, in the package root.
    Named(String),
    /// Exactly here.
    At(PathBuf),
}

/// The image a package runs.
#[derive(Clone)]
pub(crate) enum Runtime {
    /// From the local Docker or Podman.
    Engine(String),
    /// From an archive or layout directory.
    Archive(PathBuf),
}

/// What to tell on success.
#[derive(Clone)]
pub(crate) enum Report {
    Tell(Format),
    Quiet,
    /// Not even findings: a failure names them.
    Silent,
}

#[derive(Serialize)]
pub(super) struct Built {
    pub(super) file: PathBuf,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) digest: String,
    pub(super) size: u64,
    pub(super) objects: usize,
    pub(super) warnings: usize,
    /// The commit that it was built from, if that was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) commit: Option<String>,
}

/// Builds a package, from a directory or from Git.
pub(crate) fn run(request: &Request, settings: &Settings) -> Outcome {
    let source = request.root.to_str().map(git::parse_source).transpose()?.flatten();
    let Some(source) = source else { return build_directory(request, settings) };
    let reaching = GitSettings { environment: settings.clone(), ca_file: request.ca_file.clone() };
    let checkout = git::fetch_source(&source, &reaching)?;
    git::warn_of_submodules(&checkout);
    let file = match &request.file {
        File::At(path) => File::At(path.clone()),
        File::Named(name) => File::At(directory::with_extension(name, "xpkg").into()),
        File::Derived | File::DerivedIn(_) => File::DerivedIn(".".into()),
    };
    let request = Request { root: checkout.root(), file, ..request.clone() };
    build_commit(&request, settings, Some(checkout.commit.clone())).map(|_| ())
}

/// Builds a package of either format.
fn build_directory(request: &Request, settings: &Settings) -> Outcome {
    if let Some((registry, _)) = stacks::find_registry(&request.root) {
        return build_stack::build_stack(request, &registry, settings);
    }
    build(request, settings).map(|_| ())
}

/// Builds a package, and gives what it says about itself.
pub(crate) fn build(request: &Request, settings: &Settings) -> Outcome<Meta> {
    build_commit(request, settings, None)
}

fn build_commit(request: &Request, settings: &Settings, commit: Option<String>) -> Outcome<Meta> {
    let examples = match &request.examples {
        Examples::Below => directory::examples_below(&request.root),
        Examples::At(path) => Some(path.clone()),
        Examples::None => None,
    };
    refuse_stdout(&request.file)?;
    let directory = Directory::walk(&request.root, examples.as_deref(), &request.selecting)?;
    let (plan, findings, objects) = check(&directory, request)?;
    let warnings = findings.len();
    let work = work_directory(request)?;
    let runtime = runtime(request, work.path(), settings)?;
    let (image, layers) = pack(&plan, &directory, request, runtime, work.path())?;
    let target = target(request, plan.meta.name(), &image);
    let raw = write_image(&target, &image, &layers)?;
    let built = Built {
        size: fs_err::metadata(&target).map_err(|error| Failure::file(&error))?.len(),
        file: target,
        kind: plan.meta.kind().as_str().to_owned(),
        name: plan.meta.name().to_owned(),
        digest: raw.digest.to_string(),
        objects,
        warnings,
        commit,
    };
    tell(&built, &request.report)?;
    Ok(plan.meta)
}

/// Writes an image as a package file.
pub(super) fn write_image(target: &Path, image: &Image, layers: &[Layer]) -> Outcome<Raw> {
    let hint =
        "check that the directory exists, is writable and has room, or choose another file with -o";
    store::tarball::write(target, &image.config, layers).map_err(|error| {
        Failure::new(format!("cannot write {}", target.display()), hint).because(&error)
    })
}

/// A package is a file with a name; a file called `-` is never what was meant.
pub(super) fn refuse_stdout(file: &File) -> Outcome {
    match file {
        File::At(path) if path == Path::new("-") => Err(Failure::new(
            "a package cannot be written to standard output",
            "name a file with -o, for example -o my-package.xpkg",
        )),
        _ => Ok(()),
    }
}

pub(super) fn tell(built: &Built, report: &Report) -> Outcome {
    match report {
        Report::Quiet | Report::Silent => Ok(()),
        Report::Tell(Format::Json) => output::print_json(built),
        Report::Tell(Format::Text) => {
            output::print(format_args!(
                "built {} {} from {}",
                built.kind.to_lowercase(),
                output::bold(&built.name),
                output::count(built.objects, "object"),
            ));
            output::print(format_args!("  file    {}", built.file.display()));
            output::print(format_args!("  size    {}", output::size(built.size)));
            output::print(format_args!("  digest  {}", built.digest));
            if let Some(commit) = &built.commit {
                output::print(format_args!("  commit  {commit}"));
            }
            Ok(())
        }
    }
}

/// Reads and checks all files; findings are shown, and errors among them end the build.
fn check(directory: &Directory, request: &Request) -> Outcome<(Plan, Vec<Diagnostic>, usize)> {
    let files = read_files(&directory.files, |path| directory.read(path))?;
    let examples = read_files(&directory.examples, |path| directory.read_example(path))?;
    let (plan, mut findings) = xpkg::build::plan(&Sources {
        files: &files,
        examples: &examples,
        skipped: &directory.skipped,
        metadata: request.selecting.metadata.file(),
    });
    if let (Some(plan), Some(wanted)) = (&plan, request.kind) {
        findings.extend(kind_mismatch(plan, wanted, &files));
    }
    if !matches!(request.report, Report::Silent) {
        output::findings(&findings, output::say_always);
    }
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    let failed = errors > 0 || (request.strict && !findings.is_empty());
    let trouble = match errors {
        0 => output::count(findings.len(), "warning"),
        errors => output::count(errors, "error"),
    };
    let objects = files.iter().map(|file| file.documents.len()).sum::<usize>().saturating_sub(1);
    match plan {
        Some(plan) if !failed => Ok((plan, findings, objects)),
        _ => {
            if matches!(request.report, Report::Tell(Format::Json)) {
                output::print_json(&lint::Report::new(&findings))?;
            }
            let mut failure = Failure::new(
                format!("the package has {trouble}; nothing was written"),
                "fix what is listed above and build again; `apron lint` shows the same list",
            );
            if matches!(request.report, Report::Silent) {
                failure.causes = name_findings(&findings);
                "fix what is listed, and build again".clone_into(&mut failure.hint);
            }
            Err(failure)
        }
    }
}

/// The first few findings, each in a line.
fn name_findings(findings: &[Diagnostic]) -> Vec<String> {
    let lines = std::sync::Mutex::new(Vec::new());
    output::findings(findings, |line| {
        lines.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(line);
    });
    let mut lines = lines.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    lines.truncate(FINDINGS_NAMED_MAX);
    lines
}

fn kind_mismatch(plan: &Plan, wanted: PackageKind, files: &[SourceFile]) -> Option<Diagnostic> {
    let found = plan.meta.kind();
    if found == wanted {
        return None;
    }
    let documents = files.iter().flat_map(|file| &file.documents);
    let report = documents.map(|document| &document.report).find(|report| report.meta.is_some())?;
    let message = format!("this is a {} package, not a {}", found.as_str(), wanted.as_str());
    let hint =
        format!("build it with `kubectl crossplane build {}`", found.as_str().to_lowercase());
    Some(Diagnostic::error("package-kind", &report.file, report.position, message).hint(hint))
}

/// Reads files on all cores, and those that count together one after the other.
pub(crate) fn read_files(
    paths: &[String],
    read: impl Fn(&str) -> std::io::Result<Vec<u8>> + Sync,
) -> Outcome<Vec<SourceFile>> {
    let limits = xpkg::Limits::default();
    let read = |path: &str| read(path).map_err(|error| Failure::file(&error));
    let plain: Vec<Option<SourceFile>> = paths
        .par_iter()
        .map(|path| Ok(SourceFile::read_plain(path, &read(path)?, &limits)))
        .collect::<Outcome<_>>()?;
    let mut reading = Reading::new(&limits);
    let files = paths.iter().zip(plain);
    files
        .map(|(path, plain)| match plain {
            Some(file) => Ok(reading.take(file)),
            None => Ok(reading.read(path, &read(path)?)),
        })
        .collect()
}

/// Temporary files lie beside the result, so that the last step is a rename.
pub(super) fn work_directory(request: &Request) -> Outcome<TempDir> {
    let beside = match &request.file {
        File::At(path) => path.parent().filter(|parent| !parent.as_os_str().is_empty()),
        File::DerivedIn(directory) => Some(directory.as_path()),
        _ => Some(request.root.as_path()),
    };
    let beside = beside.unwrap_or(Path::new("."));
    tempfile::Builder::new().prefix(".apron-").tempdir_in(beside).map_err(|error| {
        Failure::new(
            format!("cannot write to {}", beside.display()),
            "check that the directory exists and is writable, or choose another file with -o",
        )
        .because(&store::nameless(&error, beside))
    })
}

pub(super) fn runtime(
    request: &Request,
    work: &Path,
    settings: &Settings,
) -> Outcome<Option<runtime_image::RuntimeImage>> {
    match &request.runtime {
        None => Ok(None),
        Some(Runtime::Archive(path)) => runtime_image::open(path, work).map(Some),
        Some(Runtime::Engine(image)) => runtime_image::from_engine(image, work, settings).map(Some),
    }
}

/// Writes the package's layers and puts the image together.
fn pack(
    plan: &Plan,
    directory: &Directory,
    request: &Request,
    runtime: Option<runtime_image::RuntimeImage>,
    work: &Path,
) -> Outcome<(Image, Vec<Layer>)> {
    let mut written = Vec::new();
    let path = work.join("package");
    let file = fs_err::File::create(&path).map_err(|error| Failure::file(&error))?;
    let (_, layer) = plan
        .write_package(|path| directory.read(path), buffered(file.into()))
        .map_err(|error| write_failed(&error))?;
    written.push((path, locate::BASE.to_owned(), layer));
    if let Some(examples) = &plan.examples {
        let path = work.join("examples");
        let file = fs_err::File::create(&path).map_err(|error| Failure::file(&error))?;
        let (_, layer) = examples
            .write_examples(|path| directory.read_example(path), buffered(file.into()))
            .map_err(|error| write_failed(&error))?;
        written.push((path, locate::EXAMPLES.to_owned(), layer));
    }
    for (index, extra) in request.layers.iter().enumerate() {
        let path = work.join(format!("layer-{index}"));
        written.push((path.clone(), extra.role.clone(), extra_layer::write(&extra.root, &path)?));
    }
    assemble(runtime, written)
}

pub(super) fn assemble(
    runtime: Option<runtime_image::RuntimeImage>,
    written: Vec<(PathBuf, String, WrittenLayer)>,
) -> Outcome<(Image, Vec<Layer>)> {
    let parts: Vec<PackageLayer> = written
        .iter()
        .map(|(_, role, layer)| PackageLayer { layer: layer.clone(), role: role.clone() })
        .collect();
    let (base, mut layers) = match runtime {
        Some(runtime) => (Some(runtime.image), runtime.layers),
        None => (None, Vec::new()),
    };
    let image = image::assemble(base, &parts).map_err(|error| {
        Failure::new("cannot put the image together", "embed an image that is not a package itself")
            .because(&error)
    })?;
    layers.extend(written.into_iter().map(|(path, _, layer)| Layer {
        descriptor: layer.descriptor,
        content: LayerContent::File(path),
    }));
    Ok((image, layers))
}

fn buffered(file: StdFile) -> std::io::BufWriter<StdFile> {
    std::io::BufWriter::with_capacity(256 << 10, file)
}

fn write_failed(error: &WriteError) -> Failure {
    let hint = match error {
        WriteError::Changed { .. } => "build again once nothing changes the files",
        WriteError::Read { .. } => "check the file's permissions",
        WriteError::Write(_) => "check that the disk has room",
    };
    Failure::new("cannot pack the package", hint).because(error)
}

pub(super) fn target(request: &Request, name: &str, image: &Image) -> PathBuf {
    match &request.file {
        File::At(path) => path.clone(),
        File::Named(name) => beside(&request.root, &directory::with_extension(name, "xpkg")),
        File::Derived => beside(&request.root, &derived_name(name, image)),
        File::DerivedIn(directory) => beside(directory, &derived_name(name, image)),
    }
}

fn derived_name(name: &str, image: &Image) -> String {
    format!("{}.xpkg", xpkg::label::friendly_id(name, image.plain.digest.hex()))
}

/// A file in a directory; here, without the `./`.
fn beside(root: &Path, name: &str) -> PathBuf {
    if root == Path::new(".") { name.into() } else { root.join(name) }
}
