//! A package of the first format as the stream of one of today: what installs packages reads that.

use super::app::VersionTag;
use super::convert::{ConvertOptions, convert_stack};
use super::dependency::CrdRequirement;
use super::record::{RecordOptions, write_documents};
use super::{Stack, StackLimits, read_layers, read_stack};
use oci::layer::{LayerError, LayerSource};
use serde_json::{Value as Json, json};
use std::fmt;
use xpkg::diagnostic::{Diagnostic, Severity};

/// The field of the stream's metadata that has the package's record, for those who install it as what
/// it is. Packages of today have no such field.
pub const RECORD_FIELD: &str = "stack";

/// The annotation by which metadata that is only shown says how far the package's rights reach.
pub const SCOPE_ANNOTATION: &str = "packages.crossplane.io/permission-scope";

/// Annotations of the metadata that are large, and in the record as well.
const LARGE: [&str; 2] = ["meta.crossplane.io/readme", "meta.crossplane.io/iconURI"];

/// Why there is no stream of a package.
#[derive(Debug)]
pub enum StreamError {
    /// A layer cannot be read.
    Layer(LayerError),
    /// What is in `.registry/` is wrong.
    Findings(Vec<Diagnostic>),
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layer(error) => write!(f, "{error}"),
            Self::Findings(findings) => f.write_str(&list_errors(findings)),
        }
    }
}

impl std::error::Error for StreamError {}

impl From<LayerError> for StreamError {
    fn from(error: LayerError) -> Self {
        Self::Layer(error)
    }
}

/// The stream of the package in an image's layers; nothing if there is no `/.registry/`.
pub fn read_stream(layers: &dyn LayerSource) -> Result<Option<String>, StreamError> {
    Ok(open_layers(layers)?.map(|stack| stack.to_stream()))
}

/// The same for those who show packages and install none: with its texts and pictures, and without
/// its record.
pub fn read_described(layers: &dyn LayerSource) -> Result<Option<String>, StreamError> {
    Ok(open_layers(layers)?.map(|stack| stack.describe_stream()))
}

fn open_layers(layers: &dyn LayerSource) -> Result<Option<Stack>, StreamError> {
    let limits = StackLimits::default();
    let Some(files) = read_layers(layers, &limits)? else { return Ok(None) };
    let (stack, findings) = read_stack(&files, &limits);
    stack.map(Some).ok_or(StreamError::Findings(findings))
}

impl Stack {
    /// The documents with what is for readers.
    fn describe_stream(&self) -> String {
        let mut documents = self.list_documents();
        if let (Some(metadata), Some(scope)) = (documents.first_mut(), self.app.scope) {
            metadata["metadata"]["annotations"][SCOPE_ANNOTATION] = json!(scope.as_str());
        }
        write_documents(&documents)
    }

    /// The documents of a package of today with the same definitions, metadata first.
    fn list_documents(&self) -> Vec<Json> {
        let converted = convert_stack(self, &ConvertOptions { name: None, image: None });
        let mut documents: Vec<Json> =
            converted.files.into_iter().map(|(_, document)| document).collect();
        let needed = self.list_needed_kinds();
        if let (Some(metadata), false) = (documents.first_mut(), needed.is_empty()) {
            metadata["spec"]["dependsOn"] = Json::Array(needed);
        }
        documents
    }

    /// Dependencies on the kinds that the package needs and does not bring itself.
    fn list_needed_kinds(&self) -> Vec<Json> {
        let is_own = |one: &CrdRequirement| {
            let name = format!("{}.{}", one.name, one.group);
            self.definitions.iter().any(|definition| definition.name() == name)
        };
        let needed = self.app.requirements.iter().filter(|one| !is_own(one));
        needed.map(|one| json!({"crd": one.to_string()})).collect()
    }

    /// The documents with the package's record, and without what is in there as well.
    fn to_stream(&self) -> String {
        let mut documents = self.list_documents();
        if let Some(metadata) = documents.first_mut() {
            let options = RecordOptions { name: None, image: None, tag: VersionTag::Untagged };
            metadata[RECORD_FIELD] = self.to_record(&options);
            let annotations = metadata.pointer_mut("/metadata/annotations");
            if let Some(annotations) = annotations.and_then(Json::as_object_mut) {
                annotations.retain(|key, _| !LARGE.contains(&key.as_str()));
            }
        }
        write_documents(&documents)
    }
}

/// The errors among findings, in one line.
fn list_errors(findings: &[Diagnostic]) -> String {
    const SHOWN_MAX: usize = 3;
    let errors = findings.iter().filter(|one| one.severity == Severity::Error);
    let errors: Vec<String> = errors
        .map(|one| {
            let hint = one.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!(".registry/{} line {}: {}{hint}", one.file, one.line, one.message)
        })
        .collect();
    let shown = errors.iter().take(SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join("; ");
    match errors.len().saturating_sub(SHOWN_MAX) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}
