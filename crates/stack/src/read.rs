//! All files of a package together.

use super::annotate::{DescribingFiles, UiSchemaFile};
use super::app::AppMetadata;
use super::behavior::read_behavior;
use super::definition::OwnedDefinition;
use super::document::DocumentReader;
use super::files::{
    FileRole, RegistryFiles, StackFile, UnreadFile, UnreadReason, base_name, find_yaml_name,
};
use super::findings::StackFindings;
use super::icon::StackIcon;
use super::install::read_deployment;
use super::limits::StackLimits;
use super::metadata::DescribingFile;
use super::rules;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use xpkg::diagnostic::{Diagnostic, Severity};
use yaml::Position;

/// A package of the first format.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// What it says about itself.
    pub app: AppMetadata,
    /// The Deployment that runs it, if there is one.
    pub deployment: Option<Json>,
    /// What its templating controller is told, if it has one.
    pub behavior: Option<Json>,
    /// Its definitions, in the order of files.
    pub definitions: Vec<OwnedDefinition>,
    /// Icons of the package as a whole, the preferred one first.
    pub icons: Vec<StackIcon>,
}

/// Reads a package. All findings are told at once, in reading order; the package is there if none of
/// them is an error.
pub fn read_stack(files: &RegistryFiles, limits: &StackLimits) -> (Option<Stack>, Vec<Diagnostic>) {
    let mut findings = StackFindings::default();
    for unread in &files.unread {
        report_unread(unread, limits, &mut findings);
    }
    // What was read of so many files is chance.
    if files.unread.iter().any(|unread| unread.reason == UnreadReason::TooMany) {
        return (None, findings.into_sorted());
    }
    let mut parts = Parts::default();
    let mut reader = DocumentReader::new(limits);
    // Definitions are held to the scope that app.yaml says.
    let (app, rest): (Vec<_>, Vec<_>) =
        files.files.iter().partition(|file| file.path == "app.yaml");
    for file in app.into_iter().chain(rest) {
        parts.read_file(file, &mut reader, limits, &mut findings);
    }
    report_missing(&parts, &files.unread, &mut findings);
    report_duplicates(&parts.definitions, &mut findings);
    parts.describing.annotate_all(&mut parts.definitions, limits, &mut findings);
    let findings = findings.into_sorted();
    let is_sound = findings.iter().all(|finding| finding.severity != Severity::Error);
    let stack = parts.into_stack().filter(|_| is_sound);
    (stack, findings)
}

/// What was read so far.
#[derive(Default)]
struct Parts {
    app: Option<AppMetadata>,
    has_app_file: bool,
    deployment: Option<Json>,
    behavior: Option<Json>,
    definitions: Vec<OwnedDefinition>,
    has_definition_file: bool,
    describing: DescribingFiles,
}

impl Parts {
    fn into_stack(self) -> Option<Stack> {
        let mut icons = self.describing.icons;
        icons.retain(|icon| icon.path == base_name(&icon.path) && icon.prefix.is_empty());
        icons.sort_by_key(StackIcon::preference);
        Some(Stack {
            app: self.app?,
            deployment: self.deployment,
            behavior: self.behavior,
            definitions: self.definitions,
            icons,
        })
    }

    fn read_file(
        &mut self,
        file: &StackFile,
        reader: &mut DocumentReader<'_>,
        limits: &StackLimits,
        findings: &mut StackFindings,
    ) {
        let Some(role) = FileRole::of_path(&file.path) else {
            report_extension(file, findings);
            return;
        };
        if !role.counts_at(&file.path) {
            let message = format!("{} means nothing here and is ignored", base_name(&file.path));
            let place = (file.path.as_str(), Position::default());
            let hint = format!("put it into {}", role.place());
            findings.advise_at(&rules::FILE_PLACE, place, message, hint);
            return;
        }
        match role {
            FileRole::App | FileRole::Install | FileRole::Behavior => {
                self.read_root(role, file, reader, findings);
            }
            FileRole::Rights => report_rights(file, findings),
            FileRole::Definition => self.read_definitions(file, reader, findings),
            _ => self.read_describing(role, file, reader, limits, findings),
        }
    }

    fn read_root(
        &mut self,
        role: FileRole,
        file: &StackFile,
        reader: &mut DocumentReader<'_>,
        findings: &mut StackFindings,
    ) {
        self.has_app_file |= role == FileRole::App;
        let wrong = match role {
            FileRole::App => &rules::APP_INVALID,
            FileRole::Install => &rules::INSTALL_INVALID,
            _ => &rules::BEHAVIOR_INVALID,
        };
        let Some(node) = reader.read_mapping(file, wrong, findings) else {
            report_empty(file, wrong, findings);
            return;
        };
        match role {
            FileRole::App => {
                let app = AppMetadata::read_app(&file.path, &node, findings);
                self.describing.title = app.find_text("title").map(str::to_owned);
                self.app = Some(app);
            }
            FileRole::Install => self.deployment = read_deployment(&file.path, &node, findings),
            _ => self.behavior = read_behavior(&file.path, &node, findings),
        }
    }

    fn read_definitions(
        &mut self,
        file: &StackFile,
        reader: &mut DocumentReader<'_>,
        findings: &mut StackFindings,
    ) {
        self.has_definition_file = true;
        let scope = self.app.as_ref().and_then(|app| app.scope);
        for node in reader.read_documents(file, findings) {
            let read = OwnedDefinition::read_definition(&file.path, &node, scope, findings);
            self.definitions.extend(read);
        }
    }

    fn read_describing(
        &mut self,
        role: FileRole,
        file: &StackFile,
        reader: &mut DocumentReader<'_>,
        limits: &StackLimits,
        findings: &mut StackFindings,
    ) {
        let describing = &mut self.describing;
        match role {
            FileRole::Icon(media) => {
                describing.icons.extend(StackIcon::read_icon(file, media, limits, findings));
            }
            FileRole::UiSchema => {
                // Any content will do, as long as it can be read.
                reader.read_documents(file, findings);
                if let Some(text) = super::document::read_text(file, findings) {
                    let (path, text) = (file.path.clone(), text.to_owned());
                    describing.ui_schemas.push(UiSchemaFile { path, text });
                }
            }
            _ => {
                let Some(node) = reader.read_mapping(file, &rules::METADATA_INVALID, findings)
                else {
                    return;
                };
                if role == FileRole::Group {
                    let read = DescribingFile::read_group(&file.path, &node, findings);
                    describing.groups.push(read);
                } else {
                    let read = DescribingFile::read_resource(&file.path, &node, findings);
                    describing.resources.push(read);
                }
            }
        }
    }
}

/// An empty file at the root says nothing, where it has to say something.
fn report_empty(file: &StackFile, rule: &xpkg::lint::Rule, findings: &mut StackFindings) {
    let is_blank = |line: &str| {
        line.trim().is_empty() || line.starts_with("---") || line.trim_start().starts_with('#')
    };
    if String::from_utf8_lossy(&file.bytes).lines().all(is_blank) {
        let message = format!("{} is empty", file.path);
        let place = (file.path.as_str(), Position::default());
        findings.advise_at(rule, place, message, "write its fields, or remove the file");
    }
}

fn report_extension(file: &StackFile, findings: &mut StackFindings) {
    if let Some(name) = find_yaml_name(&file.path) {
        let message = format!("{} is not read", base_name(&file.path));
        let place = (file.path.as_str(), Position::default());
        findings.advise_at(&rules::FILE_PLACE, place, message, format!("call it {name}"));
    }
}

fn report_rights(file: &StackFile, findings: &mut StackFindings) {
    let message = "rbac.yaml is ignored: rights follow from definitions and dependsOn";
    let hint =
        "name the definitions of other packages under dependsOn in app.yaml, and remove rbac.yaml";
    let place = (file.path.as_str(), Position::default());
    findings.advise_at(&rules::RBAC_IGNORED, place, message, hint);
}

fn report_missing(parts: &Parts, unread: &[UnreadFile], findings: &mut StackFindings) {
    let is_unread = |role: FileRole| {
        let is =
            |one: &UnreadFile| one.path.is_empty() || FileRole::of_path(&one.path) == Some(role);
        unread.iter().any(is)
    };
    let at = Position::default();
    if !parts.has_app_file && !is_unread(FileRole::App) {
        let message = "Package does not contain an app.yaml file";
        let hint = "add .registry/app.yaml with at least a title";
        findings.advise_at(&rules::APP_MISSING, ("app.yaml", at), message, hint);
    }
    if !parts.has_definition_file && !is_unread(FileRole::Definition) {
        let message = "the package has no definition";
        let hint = "put CustomResourceDefinitions into files *crd.yaml below .registry/resources";
        findings.advise_at(&rules::DEFINITION_MISSING, ("resources", at), message, hint);
    }
}

fn report_duplicates(definitions: &[OwnedDefinition], findings: &mut StackFindings) {
    let mut first: BTreeMap<&str, &OwnedDefinition> = BTreeMap::new();
    for definition in definitions {
        if let Some(other) = first.get(definition.name()) {
            let place = (definition.file.as_str(), definition.position);
            let name = definition.name();
            let (file, line) = (&other.file, other.position.line);
            let message = format!("definition {name} is also in {file}:{line}");
            let hint = "keep one, with all versions in it";
            findings.advise_at(&rules::DEFINITION_DUPLICATE, place, message, hint);
        } else {
            first.insert(definition.name(), definition);
        }
    }
}

fn report_unread(unread: &UnreadFile, limits: &StackLimits, findings: &mut StackFindings) {
    let (message, hint) = match unread.reason {
        UnreadReason::Link => {
            ("is a link, and links are not followed".to_owned(), "put the file itself there")
        }
        UnreadReason::Irregular => (
            "is no regular file with a plain name".to_owned(),
            "put a regular file there, or nothing",
        ),
        UnreadReason::TooDeep => {
            ("lies below too many directories".to_owned(), "put it into a shorter path")
        }
        UnreadReason::TooLarge => {
            ("is too large to be read (file_bytes_max)".to_owned(), "make it smaller, or split it")
        }
        UnreadReason::TooMuch => (
            format!(
                "is more than {} bytes of files allow (registry_bytes_max)",
                limits.registry_bytes_max
            ),
            "split the package into several",
        ),
        UnreadReason::TooMany => (
            format!(
                "is one file more than the {} that a package may have (files_max)",
                limits.files_max
            ),
            "keep files that are no part of the package out of .registry",
        ),
    };
    let shown = if unread.path.is_empty() { super::REGISTRY_DIRECTORY } else { &unread.path };
    let message = format!("{shown} {message}");
    findings.advise_at(&rules::FILE_UNREAD, (shown, Position::default()), message, hint);
}
