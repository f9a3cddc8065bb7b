//! Reading YAML files and the fields of mappings, with types checked and places known.

use super::files::StackFile;
use super::findings::StackFindings;
use super::limits::StackLimits;
use super::rules;
use serde_json::Value as Json;
use xpkg::lint::Rule;
use yaml::{Node, Options, Position, Value};

/// Reads documents; what those of all files come to together is bounded.
pub(crate) struct DocumentReader<'l> {
    limits: &'l StackLimits,
    total: yaml::Total,
}

impl<'l> DocumentReader<'l> {
    /// Begins with a package.
    pub(crate) fn new(limits: &'l StackLimits) -> Self {
        Self { limits, total: yaml::Total::new(limits.nodes_max) }
    }

    /// All documents of a file that can be read; what cannot becomes findings.
    pub(crate) fn read_documents<'a>(
        &mut self,
        file: &'a StackFile,
        findings: &mut StackFindings,
    ) -> Vec<Node<'a>> {
        let Some(text) = read_text(file, findings) else { return Vec::new() };
        let mut nodes = Vec::new();
        for document in yaml::split::documents(text, &self.limits.yaml) {
            let document = match document {
                Ok(document) => document,
                Err(error) => {
                    let at = (file.path.as_str(), Position::default());
                    let hint = "split the file, or correct the line";
                    findings.advise_at(&rules::YAML_SYNTAX, at, error.to_string(), hint);
                    break;
                }
            };
            let (text, line) = (document.text, document.line);
            let (limits, options) = (&self.limits.yaml, Options::default());
            match yaml::parse_counted(text, line, limits, options, &mut self.total) {
                Ok(node) => nodes.push(node),
                Err(error) => {
                    let is_over = error.is_of_stream();
                    findings.add_syntax(&file.path, error);
                    if is_over {
                        break;
                    }
                }
            }
            if self.total.is_exceeded() {
                let message = format!(
                    "the package has more YAML nodes than the limit of {} (nodes_max)",
                    self.limits.nodes_max
                );
                let at = (file.path.as_str(), Position::default());
                findings.advise_at(&rules::YAML_SYNTAX, at, message, "split the package");
                break;
            }
        }
        nodes
    }

    /// The one mapping that a file has to hold.
    pub(crate) fn read_mapping<'a>(
        &mut self,
        file: &'a StackFile,
        rule: &'static Rule,
        findings: &mut StackFindings,
    ) -> Option<Node<'a>> {
        let mut nodes = self.read_documents(file, findings);
        let name = super::files::base_name(&file.path);
        if let Some(second) = nodes.get(1) {
            let message = format!("{name} has more than one document");
            let hint = "keep one, and remove the others";
            findings.advise_at(rule, (&file.path, second.position), message, hint);
        }
        let node = (!nodes.is_empty()).then(|| nodes.swap_remove(0))?;
        if matches!(node.value, Value::Mapping(_)) {
            return Some(node);
        }
        let message = format!("{name} must be a mapping, not {}", with_article(node.type_name()));
        findings.advise_at(
            rule,
            (&file.path, node.position),
            message,
            "write fields as `key: value`",
        );
        None
    }
}

/// The text of a file, if it is one.
pub(crate) fn read_text<'a>(file: &'a StackFile, findings: &mut StackFindings) -> Option<&'a str> {
    match std::str::from_utf8(&file.bytes) {
        Ok(text) => Some(text),
        Err(error) => {
            let valid = &file.bytes[..error.valid_up_to()];
            let line = String::from_utf8_lossy(valid).matches('\n').count() + 1;
            let at = Position { line: u32::try_from(line).unwrap_or(u32::MAX), column: 1 };
            let hint = "save the file as UTF-8";
            findings.advise_at(
                &rules::YAML_SYNTAX,
                (&file.path, at),
                "file is not UTF-8 text",
                hint,
            );
            None
        }
    }
}

/// The fields of one mapping in one file.
#[derive(Clone, Copy)]
pub(crate) struct MappingFields<'n, 'a> {
    /// The file.
    pub(crate) file: &'n str,
    /// The mapping.
    pub(crate) node: &'n Node<'a>,
    /// The rule that speaks of wrong types.
    pub(crate) rule: &'static Rule,
}

impl<'n, 'a> MappingFields<'n, 'a> {
    /// The place of a field's value, or of the mapping.
    pub(crate) fn place_of(&self, key: &str) -> (&'n str, Position) {
        (self.file, self.node.get(key).map_or(self.node.position, |value| value.position))
    }

    /// Tells of fields that mean nothing.
    pub(crate) fn report_unknown(&self, known: &[&str], findings: &mut StackFindings) {
        for entry in self.node.entries() {
            if known.contains(&entry.key.as_ref()) {
                continue;
            }
            let hint = match xpkg::lint::closest(&entry.key, known.iter().copied()) {
                Some(close) => format!("did you mean {close:?}?"),
                None => format!("known here: {}", known.join(", ")),
            };
            let message = format!("field {:?} means nothing here and is ignored", entry.key);
            findings.advise_at(&rules::UNKNOWN_FIELD, (self.file, entry.position), message, hint);
        }
    }

    /// The field, if it is there and not null.
    pub(crate) fn find_field(&self, key: &str) -> Option<&'n Node<'a>> {
        self.node.get(key).filter(|value| !value.is_null())
    }

    /// The text of a field; empty texts count as absent.
    pub(crate) fn read_text(&self, key: &str, findings: &mut StackFindings) -> Option<String> {
        let value = self.find_field(key)?;
        let Some(text) = value.as_str() else {
            self.report_type(key, value, "a string", findings);
            return None;
        };
        Some(text.to_owned()).filter(|text| !text.is_empty())
    }

    /// The items of a list.
    pub(crate) fn read_items(&self, key: &str, findings: &mut StackFindings) -> &'n [Node<'a>] {
        let Some(value) = self.find_field(key) else { return &[] };
        if !matches!(value.value, Value::Sequence(_)) {
            self.report_type(key, value, "a list", findings);
        }
        value.items()
    }

    /// The texts of a list.
    pub(crate) fn read_texts(&self, key: &str, findings: &mut StackFindings) -> Vec<String> {
        let mut texts = Vec::new();
        for item in self.read_items(key, findings) {
            match item.as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => self.report_type(key, item, "a list of strings", findings),
            }
        }
        texts
    }

    /// A mapping below a field, with a name for messages.
    pub(crate) fn read_below(&self, key: &str, findings: &mut StackFindings) -> Option<Self> {
        let value = self.find_field(key)?;
        if matches!(value.value, Value::Mapping(_)) {
            return Some(Self { node: value, ..*self });
        }
        self.report_type(key, value, "a mapping", findings);
        None
    }

    /// Says that a value is of the wrong type.
    pub(crate) fn report_type(
        &self,
        key: &str,
        value: &Node<'_>,
        expected: &str,
        findings: &mut StackFindings,
    ) {
        let found = value.type_name();
        let message = format!("{key} must be {expected}, not {}", with_article(found));
        let is_scalar = !matches!(value.value, Value::Sequence(_) | Value::Mapping(_));
        let hint = match expected {
            "a string" if is_scalar => "put the value in quotes".to_owned(),
            _ => format!("write {expected}"),
        };
        findings.advise_at(self.rule, (self.file, value.position), message, hint);
    }
}

/// A type's name as sentences have it.
pub(crate) fn with_article(type_name: &str) -> String {
    let article = if type_name.starts_with('i') { "an" } else { "a" };
    format!("{article} {type_name}")
}

/// Puts a text into a JSON object, if there is one.
pub(crate) fn insert_text(
    object: &mut serde_json::Map<String, Json>,
    key: &str,
    value: Option<String>,
) {
    if let Some(value) = value {
        object.insert(key.to_owned(), Json::String(value));
    }
}
