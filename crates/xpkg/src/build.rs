//! From source files to the bytes of a package.
//!
//! Building is in two steps so that nothing is written before everything was checked, and so
//! that a package of any size needs little memory: files are read and checked one by one, in any
//! order and on any number of cores ([`SourceFile::read_plain`]); [`plan`] then says which pieces of
//! which files make up `package.yaml`; [`Plan::write`] reads those pieces again and lays them
//! down. Documents are copied as the author wrote them, comments included: what is installed is
//! exactly what was written, and no field is lost that this version of apron does not know.

use crate::diagnostic::{self, Diagnostic, Severity};
use crate::lint::rules::EXAMPLE_INVALID;
use crate::lint::{self, DocumentReport};
use crate::locate::{EXAMPLES_FILE, PACKAGE_FILE};
use crate::source::{METADATA_FILE, SourceFile, Sources};
use api::meta::Meta;
use oci::Digest;
use oci::layer::{LayerWriter, WrittenLayer};
use std::io::{self, Write};
use std::ops::Range;

const SEPARATOR: &[u8] = b"---\n";

/// What will be written, piece by piece.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The package's metadata.
    pub meta: Meta,
    /// `package.yaml`: metadata first, then objects in the order of their files.
    pub package: Stream,
    /// The examples, if there are any.
    pub examples: Option<Stream>,
}

/// A YAML stream made of pieces of files.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    files: Vec<StreamFile>,
    pieces: Vec<Piece>,
    size: u64,
}

#[derive(Clone, Debug)]
struct StreamFile {
    path: String,
    digest: Digest,
}

#[derive(Clone, Debug)]
struct Piece {
    file: usize,
    range: Range<usize>,
}

/// Why a planned stream could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A file could not be read again.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file is not what was checked.
    #[error("`{path}` changed while the package was being built")]
    Changed {
        /// The file.
        path: String,
    },
    /// The layer could not be written.
    #[error("cannot write the layer")]
    Write(#[source] io::Error),
}

/// Checks a package as a whole. The plan is there if no finding is an error.
pub fn plan(sources: &Sources<'_>) -> (Option<Plan>, Vec<Diagnostic>) {
    let Sources { files, examples, skipped, metadata } = *sources;
    let documents = files.iter().flat_map(|file| &file.documents);
    let reports: Vec<DocumentReport> = documents.map(|document| document.report.clone()).collect();
    let mut findings: Vec<Diagnostic> =
        files.iter().chain(examples).flat_map(|file| &file.diagnostics).cloned().collect();
    findings.extend(reports.iter().flat_map(|report| &report.diagnostics).cloned());
    // Objects in files that do not parse are unknown, so checks of the whole would be wrong.
    if files.iter().all(|file| file.diagnostics.is_empty()) {
        findings.extend(lint::package(&reports));
    }
    lint::places::check(&reports, skipped, metadata, &mut findings);
    findings.extend(examples.iter().flat_map(check_examples));
    place_whole(&mut findings, metadata.unwrap_or(METADATA_FILE));
    diagnostic::sort(&mut findings);
    let failed = findings.iter().any(|finding| finding.severity == Severity::Error);
    let meta = reports.iter().find_map(|report| report.meta.clone());
    let plan = meta.filter(|_| !failed).map(|meta| Plan {
        meta,
        package: Stream::new(files, |report| report.meta.is_some()),
        examples: Some(Stream::new(examples, |_| false)).filter(|stream| stream.size > 0),
    });
    (plan, findings)
}

/// A finding about the package as a whole is shown at the file where it would be mended.
pub(crate) fn place_whole(findings: &mut [Diagnostic], file: &str) {
    for finding in findings.iter_mut().filter(|finding| finding.file.is_empty()) {
        file.clone_into(&mut finding.file);
    }
}

/// Examples may be anything, as long as they are Kubernetes objects.
fn check_examples(file: &SourceFile) -> Vec<Diagnostic> {
    let incomplete = |report: &DocumentReport| {
        report.identity.api_version.is_empty() || report.identity.kind.is_empty()
    };
    let broken = file.documents.iter().filter(|document| incomplete(&document.report));
    broken
        .map(|document| {
            let at = document.report.position;
            let message = "example is not a Kubernetes object: it has no apiVersion or no kind";
            Diagnostic::error(EXAMPLE_INVALID.name, &file.path, at, message)
                .hint("give it both, or leave it out with --ignore")
        })
        .collect()
}

impl Plan {
    /// Writes the layer that holds `package.yaml`.
    pub fn write_package<W: Write>(
        &self,
        read: impl FnMut(&str) -> io::Result<Vec<u8>>,
        out: W,
    ) -> Result<(W, WrittenLayer), WriteError> {
        self.package.write_layer(PACKAGE_FILE, read, out)
    }
}

impl Stream {
    /// Lines up all documents of some files, those that come `first` before the others.
    fn new(files: &[SourceFile], first: impl Fn(&DocumentReport) -> bool) -> Self {
        let mut stream = Self::default();
        let (mut early, mut late) = (Vec::new(), Vec::new());
        for (index, file) in files.iter().enumerate() {
            stream.files.push(StreamFile { path: file.path.clone(), digest: file.digest.clone() });
            for document in &file.documents {
                let piece = Piece { file: index, range: document.range.clone() };
                let group = if first(&document.report) { &mut early } else { &mut late };
                group.push((piece, document.ends_in_newline));
            }
        }
        early.extend(late);
        for (piece, ends_in_newline) in early {
            let newline = u64::from(!ends_in_newline);
            stream.size += SEPARATOR.len() as u64 + piece.range.len() as u64 + newline;
            stream.pieces.push(piece);
        }
        stream
    }

    /// Bytes of the stream.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Writes the layer that holds the examples.
    pub fn write_examples<W: Write>(
        &self,
        read: impl FnMut(&str) -> io::Result<Vec<u8>>,
        out: W,
    ) -> Result<(W, WrittenLayer), WriteError> {
        self.write_layer(EXAMPLES_FILE, read, out)
    }

    fn write_layer<W: Write>(
        &self,
        name: &str,
        read: impl FnMut(&str) -> io::Result<Vec<u8>>,
        out: W,
    ) -> Result<(W, WrittenLayer), WriteError> {
        let mut layer = LayerWriter::new(out).map_err(WriteError::Write)?;
        layer.start_file(name, self.size).map_err(WriteError::Write)?;
        self.write(read, &mut layer)?;
        layer.finish().map_err(WriteError::Write)
    }

    /// Writes the stream, reading each file again through `read`. Bytes that differ from those
    /// that were checked are refused.
    pub fn write(
        &self,
        mut read: impl FnMut(&str) -> io::Result<Vec<u8>>,
        out: &mut impl Write,
    ) -> Result<(), WriteError> {
        let mut open: Option<(usize, Vec<u8>)> = None;
        for piece in &self.pieces {
            if open.as_ref().is_none_or(|(file, _)| *file != piece.file) {
                open = Some((piece.file, self.read_again(piece.file, &mut read)?));
            }
            let Some((_, bytes)) = &open else { continue };
            let text = &bytes[piece.range.clone()];
            let newline: &[u8] = if text.ends_with(b"\n") { b"" } else { b"\n" };
            for part in [SEPARATOR, text, newline] {
                out.write_all(part).map_err(WriteError::Write)?;
            }
        }
        Ok(())
    }

    fn read_again(
        &self,
        file: usize,
        read: &mut impl FnMut(&str) -> io::Result<Vec<u8>>,
    ) -> Result<Vec<u8>, WriteError> {
        let StreamFile { path, digest } = &self.files[file];
        let failed = |source| WriteError::Read { path: path.clone(), source };
        let bytes = read(path).map_err(failed)?;
        if digest.matches(&bytes) {
            Ok(bytes)
        } else {
            Err(WriteError::Changed { path: path.clone() })
        }
    }
}
