//! `app.yaml`: what a package says about itself.

use super::dependency::CrdRequirement;
use super::document::{MappingFields, insert_text};
use super::findings::StackFindings;
use super::rules;
use serde_json::{Map, Value as Json, json};
use std::fmt;
use xpkg::diagnostic::Diagnostic;
use xpkg::version::Version;
use yaml::{Node, Position};

/// Fields that are copied as texts, in the order of the format.
const TEXTS: [&str; 10] = [
    "version",
    "title",
    "overviewShort",
    "overview",
    "readme",
    "company",
    "category",
    "website",
    "source",
    "license",
];

const KNOWN: [&str; 17] = [
    "apiVersion",
    "version",
    "title",
    "overviewShort",
    "overview",
    "readme",
    "maintainers",
    "owners",
    "company",
    "category",
    "keywords",
    "website",
    "source",
    "license",
    "packageType",
    "permissionScope",
    "dependsOn",
];

const PACKAGE_TYPES: [&str; 4] = ["Provider", "Stack", "Application", "Addon"];

/// Where a package needs rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionScope {
    /// In the whole cluster.
    Cluster,
    /// In the namespace it is installed in.
    Namespaced,
}

impl PermissionScope {
    /// As files and objects write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Namespaced => "Namespaced",
        }
    }
}

impl fmt::Display for PermissionScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What `app.yaml` says.
#[derive(Clone, Debug, PartialEq)]
pub struct AppMetadata {
    /// The part of the record's spec that comes from here.
    pub spec: Map<String, Json>,
    /// Where the package needs rights, if it says so.
    pub scope: Option<PermissionScope>,
    /// Definitions it depends on.
    pub requirements: Vec<CrdRequirement>,
    /// Where its version stands.
    version_position: Position,
}

impl AppMetadata {
    /// One of the texts.
    pub fn find_text(&self, key: &str) -> Option<&str> {
        self.spec.get(key).and_then(Json::as_str)
    }

    /// Reads the file; wrong fields are told of and left out.
    pub(crate) fn read_app(file: &str, node: &Node<'_>, findings: &mut StackFindings) -> Self {
        let fields = MappingFields { file, node, rule: &rules::APP_INVALID };
        fields.report_unknown(&KNOWN, findings);
        check_format(&fields, findings);
        let mut spec = Map::new();
        for key in TEXTS {
            insert_text(&mut spec, key, fields.read_text(key, findings));
        }
        for key in ["maintainers", "owners"] {
            let people = read_people(&fields, key, findings);
            if !people.is_empty() {
                spec.insert(key.to_owned(), Json::Array(people));
            }
        }
        let keywords = fields.read_texts("keywords", findings);
        if !keywords.is_empty() {
            spec.insert("keywords".to_owned(), json!(keywords));
        }
        let package_type = read_choice(&fields, "packageType", &PACKAGE_TYPES, findings);
        insert_text(&mut spec, "packageType", package_type);
        let scope = read_scope(&fields, findings);
        insert_text(&mut spec, "permissionScope", scope.map(|scope| scope.to_string()));
        let requirements = read_requirements(&fields, findings);
        if !requirements.is_empty() {
            let named = requirements.iter().map(|one| json!({"crd": one.to_string()}));
            spec.insert("dependsOn".to_owned(), named.collect());
        }
        Self { spec, scope, requirements, version_position: fields.place_of("version").1 }
    }
}

/// The format has had the versions 0.1.0, 1.1 and 1.2; files may leave it out.
fn check_format(fields: &MappingFields<'_, '_>, findings: &mut StackFindings) {
    let Some(format) = fields.read_text("apiVersion", findings) else { return };
    let is_known = ["0.1.", "1."].iter().any(|begin| format.starts_with(begin))
        || ["0.1", "1"].contains(&format.as_str());
    if !is_known {
        let message = format!("apiVersion {format:?} is no version of this format");
        let hint = "write apiVersion: 0.1.0, or leave it out";
        findings.advise_at(&rules::APP_INVALID, fields.place_of("apiVersion"), message, hint);
    }
}

fn read_people(
    fields: &MappingFields<'_, '_>,
    key: &str,
    findings: &mut StackFindings,
) -> Vec<Json> {
    let mut people = Vec::new();
    for item in fields.read_items(key, findings) {
        if item.entries().is_empty() {
            fields.report_type(key, item, "a list of mappings with name and email", findings);
            continue;
        }
        let person = MappingFields { node: item, ..*fields };
        person.report_unknown(&["name", "email"], findings);
        let mut made = Map::new();
        for key in ["name", "email"] {
            insert_text(&mut made, key, person.read_text(key, findings));
        }
        people.push(Json::Object(made));
    }
    people
}

fn read_choice(
    fields: &MappingFields<'_, '_>,
    key: &str,
    choices: &[&str],
    findings: &mut StackFindings,
) -> Option<String> {
    let text = fields.read_text(key, findings)?;
    if choices.contains(&text.as_str()) {
        return Some(text);
    }
    let message = format!("{key} {text:?} does not exist");
    let hint = format!("write one of {}", choices.join(", "));
    findings.advise_at(&rules::APP_INVALID, fields.place_of(key), message, hint);
    None
}

fn read_scope(
    fields: &MappingFields<'_, '_>,
    findings: &mut StackFindings,
) -> Option<PermissionScope> {
    if fields.find_field("permissionScope").is_none() {
        let message = "permissionScope is missing: either kind of install object takes the package";
        let hint = "write permissionScope: Cluster or permissionScope: Namespaced";
        findings.advise_at(&rules::APP_SCOPE, (fields.file, fields.node.position), message, hint);
        return None;
    }
    let scopes = [PermissionScope::Cluster, PermissionScope::Namespaced];
    let words = scopes.map(PermissionScope::as_str);
    let word = read_choice(fields, "permissionScope", &words, findings)?;
    scopes.into_iter().find(|scope| scope.as_str() == word)
}

fn read_requirements(
    fields: &MappingFields<'_, '_>,
    findings: &mut StackFindings,
) -> Vec<CrdRequirement> {
    let mut requirements = Vec::new();
    for item in fields.read_items("dependsOn", findings) {
        let dependency = MappingFields { node: item, rule: &rules::DEPENDENCY_CRD, ..*fields };
        dependency.report_unknown(&["crd"], findings);
        let hint =
            "write - crd: NAME.GROUP/VERSION, for example buckets.storage.example.org/v1alpha1";
        let Some(text) = dependency.read_text("crd", findings) else {
            if dependency.find_field("crd").is_none() {
                let (message, place) = ("dependency names no crd", (fields.file, item.position));
                findings.advise_at(&rules::DEPENDENCY_CRD, place, message, hint);
            }
            continue;
        };
        match CrdRequirement::parse(&text) {
            Ok(requirement) => requirements.push(requirement),
            Err(why) => {
                let message = format!("dependency {text:?} is not the name of a definition: {why}");
                let place = dependency.place_of("crd");
                findings.advise_at(&rules::DEPENDENCY_CRD, place, message, hint);
            }
        }
    }
    requirements
}

/// What is known about the tag that a package was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionTag<'t> {
    /// It came from this tag.
    Tag(&'t str),
    /// It came by digest, from a file or from a directory: there is nothing to compare with.
    Untagged,
}

impl AppMetadata {
    /// The version of the package: what `app.yaml` says, or else the tag.
    pub fn choose_version(&self, tag: VersionTag<'_>) -> Option<String> {
        let from_tag = match tag {
            VersionTag::Tag(tag) => Some(tag),
            VersionTag::Untagged => None,
        };
        self.find_text("version").or(from_tag).map(str::to_owned)
    }

    /// Compares the version with the tag of the image. A leading `v` counts on neither side; a tag
    /// that is no version, such as `latest`, cannot be compared and is only told of.
    pub fn check_tag(&self, tag: VersionTag<'_>) -> Option<Diagnostic> {
        let (version, VersionTag::Tag(tag)) = (self.find_text("version")?, tag) else {
            return None;
        };
        let bare = |text: &str| text.strip_prefix('v').unwrap_or(text).to_owned();
        if bare(version) == bare(tag) {
            return None;
        }
        let at = self.version_position;
        if Version::parse(tag).is_err() {
            let message = format!("version {version:?} cannot be compared with the tag {tag:?}");
            let rule = rules::VERSION_CHANNEL.name;
            let finding = Diagnostic::warning(rule, "app.yaml", at, message);
            return Some(finding.hint(format!("push it to the tag v{} as well", bare(version))));
        }
        let message = format!("version {version:?} is not the tag {tag:?}");
        let finding = Diagnostic::error(rules::VERSION_TAG.name, "app.yaml", at, message);
        Some(finding.hint(format!("push it to the tag v{}, or leave version out", bare(version))))
    }
}
