//! From the bytes of a package back to what it says.
//!
//! `package.yaml` is read as a stream: a batch of documents is taken, parsed and checked on all
//! cores, and only the small reports stay. A package of any size is opened in the memory of one
//! batch, which is bounded by what its text could come to.
//!
//! Documents with anchors or aliases can be larger than their text. They are read one after the
//! other, so that what they copy counts together and it does not matter how many cores there are.

use crate::Limits;
use crate::build::place_whole;
use crate::diagnostic::{self, Diagnostic};
use crate::lint::rules::DUPLICATE_KEY;
use crate::lint::{self, DocumentReport};
use crate::locate::PACKAGE_FILE;
use crate::source::syntax;
use api::meta::Meta;
use oci::layer::{LayerError, LayerSource, open_file};
use rayon::prelude::*;
use std::io::{self, Read};
use yaml::{DuplicateKeys, Node, Options, RawDocument, SplitError};

/// A batch ends when it holds this many bytes of text,
const BATCH_BYTES: usize = 8 << 20;
/// or what could be this many nodes.
const BATCH_NODES: usize = 1_000_000;

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
    /// More than was allowed, of something else.
    #[error("the package has more {what} than the limit of {limit} ({name})")]
    TooMuch {
        /// Of what.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// Its name.
        name: &'static str,
    },
    /// Anchors and aliases copy more than its text warrants.
    #[error("`package.yaml` is much larger than its text")]
    Copies(#[source] Box<yaml::ParseError>),
    /// Nobody wants to know any more.
    #[error("reading the package was given up")]
    Cancelled,
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
    read_with(reader, limits, |_, _| (), |()| Ok(()), &|| false)
}

/// Reads a package's stream and checks it, and finds keys that stand twice in a mapping as well. Tools
/// read such a package, and the last of them counts; its author meant something else.
pub fn read_strictly(reader: impl Read, limits: &Limits) -> Result<Opened, OpenError> {
    let mut found = Vec::new();
    let find = |document: &RawDocument, node: Option<&Node<'_>>| {
        // Documents that cannot be read at all are told of already.
        node.and_then(|_| find_duplicate_key(document, limits))
    };
    let take = |finding| {
        found.extend(finding);
        Ok(())
    };
    let mut opened = read_with(reader, limits, find, take, &|| false)?;
    opened.diagnostics.append(&mut found);
    diagnostic::sort(&mut opened.diagnostics);
    Ok(opened)
}

fn find_duplicate_key(document: &RawDocument, limits: &Limits) -> Option<Diagnostic> {
    let options = Options { duplicate_keys: DuplicateKeys::Reject };
    let read = yaml::parse_with(&document.text, document.line, &limits.yaml, options);
    let error = read.err()?;
    let rule = DUPLICATE_KEY.name;
    let finding = Diagnostic::warning(rule, PACKAGE_FILE, error.position, error.message);
    Some(finding.hint("remove one of them and build the package again; the last one counts now"))
}

/// Reads a package's stream, checks it, and makes something of each document while it is parsed,
/// as [`check`] does.
pub fn read_with<T: Send, E: From<OpenError>>(
    reader: impl Read,
    limits: &Limits,
    make: impl Fn(&RawDocument, Option<&Node<'_>>) -> T + Sync,
    take: impl FnMut(T) -> Result<(), E>,
    is_cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Opened, E> {
    let mut size = 0;
    let documents = yaml::split::stream(Counted { reader, count: &mut size }, &limits.yaml);
    let documents = documents.map(|one| one.map_err(|error| E::from(split_error(error))));
    let opened = check(documents, limits, make, take, is_cancelled)?;
    Ok(Opened { size, ..opened })
}

/// Checks the documents of a package, and makes something of each: `make` gets its text and, if it
/// could be parsed, its tree, on any core; `take` gets what was made, in order. Whether anybody
/// still wants to know is asked before each document.
pub fn check<T: Send, E: From<OpenError>>(
    documents: impl Iterator<Item = Result<RawDocument, E>>,
    limits: &Limits,
    make: impl Fn(&RawDocument, Option<&Node<'_>>) -> T + Sync,
    mut take: impl FnMut(T) -> Result<(), E>,
    is_cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Opened, E> {
    let (mut opened, mut documents) = (Opened::default(), documents);
    let mut used = Used { total: limits.total(), report_bytes: 0 };
    loop {
        let batch = take_batch(&mut documents, limits)?;
        if batch.is_empty() {
            break;
        }
        let plain: Vec<Option<Checked<T>>> = batch
            .par_iter()
            .map(|document| (!is_cancelled()).then(|| check_plain(document, limits, &make))?)
            .collect();
        for (document, plain) in batch.iter().zip(plain) {
            if is_cancelled() {
                return Err(OpenError::Cancelled.into());
            }
            let checked = match plain {
                Some(checked) => {
                    used.total.add_plain(checked.nodes, document.text.len());
                    checked
                }
                None => check_copying(document, limits, &make, &mut used.total)?,
            };
            used.count(&checked, document, limits)?;
            take(checked.made)?;
            match checked.outcome {
                Ok(report) => opened.reports.push(report),
                Err(finding) => opened.diagnostics.push(finding),
            }
        }
    }
    finish(&mut opened);
    Ok(opened)
}

/// Looks at the package as a whole.
fn finish(opened: &mut Opened) {
    if opened.diagnostics.is_empty() {
        opened.diagnostics.extend(lint::package(&opened.reports));
    }
    let own = opened.reports.iter().flat_map(|report| report.diagnostics.iter().cloned());
    opened.diagnostics.extend(own);
    place_whole(&mut opened.diagnostics, PACKAGE_FILE);
    diagnostic::sort(&mut opened.diagnostics);
}

/// What the documents of a package have used together.
struct Used {
    total: yaml::Total,
    report_bytes: usize,
}

impl Used {
    fn count<T>(
        &mut self,
        checked: &Checked<T>,
        document: &RawDocument,
        limits: &Limits,
    ) -> Result<(), OpenError> {
        self.report_bytes += match &checked.outcome {
            Ok(report) => report.size(document.text.len()),
            Err(finding) => finding.size(),
        };
        if self.total.is_exceeded() {
            let (limit, name) = (limits.package_nodes_max, "package_nodes_max");
            return Err(OpenError::TooMuch { what: "nodes", limit, name });
        }
        if self.report_bytes > limits.report_bytes_max {
            let (limit, name) = (limits.report_bytes_max as u64, "report_bytes_max");
            return Err(OpenError::TooMuch { what: "to be said about it", limit, name });
        }
        Ok(())
    }
}

/// As many documents as are looked at together.
fn take_batch<E>(
    documents: &mut impl Iterator<Item = Result<RawDocument, E>>,
    limits: &Limits,
) -> Result<Vec<RawDocument>, E> {
    let (mut batch, mut bytes, mut nodes) = (Vec::new(), 0, 0);
    while bytes < BATCH_BYTES && nodes < BATCH_NODES {
        let Some(document) = documents.next().transpose()? else { break };
        bytes += document.text.len();
        nodes += nodes_possible(&document.text).min(limits.yaml.nodes_max);
        batch.push(document);
    }
    Ok(batch)
}

/// How many nodes a text without aliases could have: between two of them, other than a key and its
/// missing value, is one of these.
fn nodes_possible(text: &str) -> usize {
    let separates = |byte: &&u8| matches!(byte, b'\n' | b'\r' | b',' | b':' | b'-' | b'[' | b'{');
    2 * (text.as_bytes().iter().filter(separates).count() + 1)
}

/// A document that was looked at.
struct Checked<T> {
    outcome: Result<DocumentReport, Diagnostic>,
    made: T,
    nodes: usize,
}

/// Foreign packages may repeat a key, which every Kubernetes tool reads as "the last one
/// counts"; refusing them here would make installed packages unreadable.
const OPTIONS: Options = Options { duplicate_keys: DuplicateKeys::LastWins };

/// Looks at a document; nothing if it has anchors or aliases.
fn check_plain<T>(
    document: &RawDocument,
    limits: &Limits,
    make: &impl Fn(&RawDocument, Option<&Node<'_>>) -> T,
) -> Option<Checked<T>> {
    match yaml::parse_plain(&document.text, document.line, &limits.yaml, OPTIONS) {
        Ok(parsed) => parsed.map(|(node, nodes)| Checked {
            outcome: Ok(lint::document(PACKAGE_FILE, &node)),
            made: make(document, Some(&node)),
            nodes,
        }),
        Err(error) => {
            let outcome = Err(syntax(PACKAGE_FILE, error));
            Some(Checked { outcome, made: make(document, None), nodes: 0 })
        }
    }
}

/// Looks at a document with anchors or aliases. If all of them together copy too much, nothing
/// more is read.
fn check_copying<T>(
    document: &RawDocument,
    limits: &Limits,
    make: &impl Fn(&RawDocument, Option<&Node<'_>>) -> T,
    total: &mut yaml::Total,
) -> Result<Checked<T>, OpenError> {
    let (text, line) = (&document.text, document.line);
    Ok(match yaml::parse_counted(text, line, &limits.yaml, OPTIONS, total) {
        Ok(node) => {
            let outcome = Ok(lint::document(PACKAGE_FILE, &node));
            Checked { outcome, made: make(document, Some(&node)), nodes: 0 }
        }
        Err(error) if error.is_of_stream() => return Err(OpenError::Copies(Box::new(error))),
        Err(error) => {
            let outcome = Err(syntax(PACKAGE_FILE, error));
            Checked { outcome, made: make(document, None), nodes: 0 }
        }
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const META: &str =
        "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: c}\n";

    /// Reads a package, and counts the nodes of all trees that were made.
    fn counted(text: &str, limits: &Limits) -> (usize, Result<Opened, OpenError>) {
        fn nodes(node: &Node<'_>) -> usize {
            let items: usize = node.items().iter().map(nodes).sum();
            let entries: usize = node.entries().iter().map(|one| 1 + nodes(&one.value)).sum();
            1 + items + entries
        }
        let sum = AtomicUsize::new(0);
        let make = |_: &RawDocument, node: Option<&Node<'_>>| {
            sum.fetch_add(node.map_or(0, nodes), Ordering::Relaxed);
        };
        let opened = read_with(text.as_bytes(), limits, make, |()| Ok(()), &|| false);
        (sum.into_inner(), opened)
    }

    fn aliases(times: usize) -> String {
        let values = ["some value"; 9].join(",");
        format!("a: &a [{values}]\nb: [{}]\n---\n", vec!["*a"; times].join(","))
    }

    /// M7: two thousand small documents are bounded like one.
    #[test]
    fn m7_alias_documents_of_a_package_count_together() {
        let text = format!("{META}---\n{}", aliases(80).repeat(2000));
        let (nodes, opened) = counted(&text, &Limits::default());
        let error = opened.unwrap_err();
        assert!(matches!(error, OpenError::Copies(_)), "{error:?}");
        assert!(nodes < 1_000_000, "{nodes} nodes were made of {} bytes", text.len());
    }

    #[test]
    fn m7_honest_aliases_are_read() {
        let text = format!("{META}---\n{}", aliases(20).repeat(1000));
        let (nodes, opened) = counted(&text, &Limits::default());
        let opened = opened.unwrap();
        assert_eq!(opened.reports.len(), 1001);
        assert!(nodes > 200_000, "{nodes}");
    }

    #[test]
    fn m7_what_no_api_server_takes_is_refused_before_it_is_parsed() {
        let text = format!("{META}---\na: {}\n", "x".repeat(3 << 20));
        let (nodes, opened) = counted(&text, &Limits::default());
        let error = opened.unwrap_err();
        assert!(
            matches!(error, OpenError::Split(SplitError::DocumentTooLarge { .. })),
            "{error:?}"
        );
        assert_eq!(nodes, 0);
        let dense = format!("{META}---\na: [{}]\n", "1,".repeat(600_000));
        let (nodes, opened) = counted(&dense, &Limits::default());
        let found = &opened.unwrap().diagnostics[0].message;
        assert!(found.contains("nodes_max") && nodes < 100, "{found} {nodes}");
    }

    #[test]
    fn m7_all_nodes_of_a_package_have_a_limit() {
        let limits = Limits { package_nodes_max: 1000, ..Limits::default() };
        let text = "a: [1, 2, 3, 4, 5, 6]\n---\n".repeat(200);
        let error = counted(&text, &limits).1.unwrap_err().to_string();
        assert_eq!(error, "the package has more nodes than the limit of 1000 (package_nodes_max)");
    }

    /// M7: what is kept of documents is small, or the package is refused.
    #[test]
    fn m7_what_is_kept_of_a_package_has_a_limit() {
        let limits = Limits { report_bytes_max: 100_000, ..Limits::default() };
        let name = "x".repeat(10_000);
        let document =
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n---\n");
        let error = counted(&document.repeat(20), &limits).1.unwrap_err().to_string();
        assert!(error.contains("report_bytes_max"), "{error}");
        assert!(counted(&document.repeat(2), &limits).1.is_ok());
    }

    #[test]
    fn m7_reading_ends_between_documents_when_nobody_wants_it() {
        let (asked, parsed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let text = format!("{}a: 1\n---\n", "a: {b: c}\n---\n".repeat(1000));
        let make = |_: &RawDocument, _: Option<&Node<'_>>| {
            parsed.fetch_add(1, Ordering::Relaxed);
        };
        let is_cancelled = || asked.fetch_add(1, Ordering::Relaxed) >= 10;
        let take = |()| Ok(());
        let read = read_with(text.as_bytes(), &Limits::default(), make, take, &is_cancelled);
        assert!(matches!(read, Err(OpenError::Cancelled)), "{read:?}");
        assert!(parsed.into_inner() <= 10);
    }

    proptest! {
        /// M7: batches are bounded by this guess, so it must never be too low.
        #[test]
        fn m7_no_text_has_more_nodes_than_it_could_have(
            text in "[ab'\"?#!|>:, \\n\\[\\]{}-]{0,40}",
        ) {
            if let Ok(Some((_, nodes))) =
                yaml::parse_plain(&text, 1, &yaml::Limits::default(), OPTIONS)
            {
                prop_assert!(nodes <= nodes_possible(&text), "{} {:?}", nodes, text);
            }
        }
    }
}
