//! From the bytes of a package back to what it says.
//!
//! `package.yaml` is read as a stream: a batch of documents is taken, parsed and checked on all
//! cores, and only the small reports stay. A package of any size is opened in the memory of one
//! batch.

use crate::Limits;
use crate::build::place_whole;
use crate::diagnostic::{self, Diagnostic};
use crate::lint::{self, DocumentReport};
use crate::locate::PACKAGE_FILE;
use crate::source::syntax;
use api::meta::Meta;
use oci::layer::{LayerError, LayerSource, open_file};
use rayon::prelude::*;
use std::io::{self, Read};
use yaml::{DuplicateKeys, Node, Options, RawDocument, SplitError};

/// A batch ends when it holds this many bytes of text.
const BATCH_BYTES: usize = 8 << 20;

/// Why a package could not be read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The layer is broken or hostile.
    #[error("cannot read the package layer")]
    Layer(#[source] LayerError),
    /// The layer has no package in it.
    #[error("there is no `package.yaml` at the root of the image, so it is not a package")]
    NotAPackage,
    /// The stream cannot be cut into documents.
    #[error("cannot read `package.yaml`")]
    Split(#[source] SplitError),
    /// More than was allowed.
    #[error("`package.yaml` is larger than the limit of {limit} bytes (package_bytes_max)")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
}

/// What a package says.
#[derive(Clone, Debug, Default)]
pub struct Opened {
    /// One report per document, in order.
    pub reports: Vec<DocumentReport>,
    /// All findings, sorted by place.
    pub diagnostics: Vec<Diagnostic>,
    /// Bytes of `package.yaml`.
    pub size: u64,
}

impl Opened {
    /// The metadata, if there is exactly one that can be read.
    pub fn meta(&self) -> Option<&Meta> {
        let mut metas = self.reports.iter().filter_map(|report| report.meta.as_ref());
        metas.next().filter(|_| metas.next().is_none())
    }
}

/// A reader of `package.yaml` in the layers a package was located in. A clean end is given only
/// after the archive was read to its end and found sound.
pub fn package_yaml<'a>(
    layers: &'a dyn LayerSource,
    limits: &'a Limits,
) -> Result<Box<dyn Read + 'a>, OpenError> {
    let reader = open_file(layers, PACKAGE_FILE, &limits.layer).map_err(OpenError::Layer)?;
    let reader = reader.ok_or(OpenError::NotAPackage)?;
    let limit = limits.package_bytes_max;
    Ok(Box::new(Capped { reader, left: limit, limit }))
}

/// Reads a package's stream and checks it.
pub fn read(reader: impl Read, limits: &Limits) -> Result<Opened, OpenError> {
    read_with(reader, limits, |_, _| (), |()| Ok(()))
}

/// Reads a package's stream, checks it, and makes something of each document while it is parsed,
/// as [`check`] does.
pub fn read_with<T: Send, E: From<OpenError>>(
    reader: impl Read,
    limits: &Limits,
    make: impl Fn(&RawDocument, Option<&Node<'_>>) -> T + Sync,
    take: impl FnMut(T) -> Result<(), E>,
) -> Result<Opened, E> {
    let mut size = 0;
    let documents = yaml::split::stream(Counted { reader, count: &mut size }, &limits.yaml);
    let documents = documents.map(|one| one.map_err(|error| E::from(split_error(error))));
    let opened = check(documents, limits, make, take)?;
    Ok(Opened { size, ..opened })
}

/// Checks the documents of a package, and makes something of each: `make` gets its text and, if it
/// could be parsed, its tree, on any core; `take` gets what was made, in order.
pub fn check<T: Send, E>(
    documents: impl Iterator<Item = Result<RawDocument, E>>,
    limits: &Limits,
    make: impl Fn(&RawDocument, Option<&Node<'_>>) -> T + Sync,
    mut take: impl FnMut(T) -> Result<(), E>,
) -> Result<Opened, E> {
    let (mut opened, mut documents) = (Opened::default(), documents);
    loop {
        let batch = take_batch(&mut documents)?;
        if batch.is_empty() {
            break;
        }
        let results: Vec<(Result<DocumentReport, Diagnostic>, T)> =
            batch.par_iter().map(|document| check_one(document, limits, &make)).collect();
        for (result, made) in results {
            take(made)?;
            match result {
                Ok(report) => opened.reports.push(report),
                Err(finding) => opened.diagnostics.push(finding),
            }
        }
    }
    if opened.diagnostics.is_empty() {
        opened.diagnostics.extend(lint::package(&opened.reports));
    }
    let own = opened.reports.iter().flat_map(|report| report.diagnostics.iter().cloned());
    opened.diagnostics.extend(own);
    place_whole(&mut opened.diagnostics, PACKAGE_FILE);
    diagnostic::sort(&mut opened.diagnostics);
    Ok(opened)
}

fn take_batch<E>(
    documents: &mut impl Iterator<Item = Result<RawDocument, E>>,
) -> Result<Vec<RawDocument>, E> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while bytes < BATCH_BYTES {
        let Some(document) = documents.next().transpose()? else { break };
        bytes += document.text.len();
        batch.push(document);
    }
    Ok(batch)
}

/// Foreign packages may repeat a key, which every Kubernetes tool reads as "the last one
/// counts"; refusing them here would make installed packages unreadable.
fn check_one<T>(
    document: &RawDocument,
    limits: &Limits,
    make: &impl Fn(&RawDocument, Option<&Node<'_>>) -> T,
) -> (Result<DocumentReport, Diagnostic>, T) {
    let options = Options { duplicate_keys: DuplicateKeys::LastWins };
    match yaml::parse_with(&document.text, document.line, &limits.yaml, options) {
        Ok(node) => (Ok(lint::document(PACKAGE_FILE, &node)), make(document, Some(&node))),
        Err(error) => (Err(syntax(PACKAGE_FILE, error)), make(document, None)),
    }
}

/// Our own errors travel inside I/O errors through the splitter.
fn split_error(error: SplitError) -> OpenError {
    match error {
        SplitError::Read { source, .. } => match source.downcast::<OpenError>() {
            Ok(ours) => ours,
            Err(other) => OpenError::Layer(LayerError::from_io(other)),
        },
        other => OpenError::Split(other),
    }
}

struct Counted<'a, R> {
    reader: R,
    count: &'a mut u64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        *self.count += count as u64;
        Ok(count)
    }
}

/// Lets `limit` bytes pass; one more is an error, never a quiet end.
struct Capped<'a> {
    reader: Box<dyn Read + 'a>,
    left: u64,
    limit: u64,
}

impl Read for Capped<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        match self.left.checked_sub(count as u64) {
            Some(left) => self.left = left,
            None => return Err(io::Error::other(OpenError::TooLarge { limit: self.limit })),
        }
        Ok(count)
    }
}
