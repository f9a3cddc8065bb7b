//! `group.yaml` and `*resource.yaml`: what people read about groups and kinds.

use super::document::{MappingFields, insert_text};
use super::files::directory_of;
use super::findings::StackFindings;
use super::rules;
use serde_json::{Map, Value as Json};
use yaml::{Node, Position};

const GROUP_KNOWN: [&str; 6] =
    ["group", "title", "overviewShort", "overview", "readme", "category"];
const RESOURCE_KNOWN: [&str; 8] = [
    "id",
    "title",
    "titlePlural",
    "category",
    "overviewShort",
    "shortOverview",
    "overview",
    "readme",
];

/// Fields and the annotations they become, without the prefix.
const GROUP_ANNOTATIONS: [(&str, &str); 5] = [
    ("title", "group-title"),
    ("category", "group-category"),
    ("overview", "group-overview"),
    ("overviewShort", "group-overview-short"),
    ("readme", "group-readme"),
];
const RESOURCE_ANNOTATIONS: [(&str, &str); 7] = [
    ("category", "resource-category"),
    ("title", "resource-title"),
    ("titlePlural", "resource-title-plural"),
    ("overview", "resource-overview"),
    // The format's text says the one and its table the other; the first that is there counts.
    ("overviewShort", "resource-overview-short"),
    ("shortOverview", "resource-overview-short"),
    ("readme", "resource-readme"),
];

/// What one `group.yaml` or `*resource.yaml` says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DescribingFile {
    /// The file.
    pub(crate) path: String,
    /// Where it begins.
    pub(crate) position: Position,
    /// The group it is for, or the kind; any, if it says none.
    pub(crate) subject: Option<String>,
    /// Annotations without their prefix.
    pub(crate) annotations: Map<String, Json>,
}

impl DescribingFile {
    /// Reads a `group.yaml`.
    pub(crate) fn read_group(file: &str, node: &Node<'_>, findings: &mut StackFindings) -> Self {
        Self::read_described((file, node), "group", &GROUP_KNOWN, &GROUP_ANNOTATIONS, findings)
    }

    /// Reads a `*resource.yaml`.
    pub(crate) fn read_resource(file: &str, node: &Node<'_>, findings: &mut StackFindings) -> Self {
        Self::read_described((file, node), "id", &RESOURCE_KNOWN, &RESOURCE_ANNOTATIONS, findings)
    }

    /// The directory it counts in, and below.
    pub(crate) fn directory(&self) -> &str {
        directory_of(&self.path)
    }

    fn read_described(
        (file, node): (&str, &Node<'_>),
        subject: &str,
        known: &[&str],
        annotations: &[(&str, &str)],
        findings: &mut StackFindings,
    ) -> Self {
        let fields = MappingFields { file, node, rule: &rules::METADATA_INVALID };
        fields.report_unknown(known, findings);
        let mut made = Map::new();
        for (key, annotation) in annotations {
            let value = fields.read_text(key, findings);
            if !made.contains_key(*annotation) {
                insert_text(&mut made, annotation, value);
            }
        }
        Self {
            path: file.to_owned(),
            position: node.position,
            subject: fields.read_text(subject, findings),
            annotations: made,
        }
    }
}
