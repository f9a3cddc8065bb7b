//! Metadata onto definitions: which files reach a definition, and what is written on it.

use super::definition::OwnedDefinition;
use super::files::{base_name, directory_of, reaches_directory};
use super::findings::StackFindings;
use super::icon::StackIcon;
use super::limits::StackLimits;
use super::metadata::DescribingFile;
use super::{STACK_API_VERSION, STACK_GROUP, rules};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use yaml::Position;

const UI_SCHEMA: &str = "ui-schema";
const UI_SEPARATOR: &str = "\n---\n";

/// A `*ui-schema.yaml`, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UiSchemaFile {
    /// The file.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
}

impl UiSchemaFile {
    /// What stands before `ui-schema.yaml` in the name.
    fn prefix(&self) -> &str {
        base_name(&self.path).strip_suffix("ui-schema.yaml").unwrap_or_default()
    }
}

/// Everything that says something about definitions.
#[derive(Clone, Debug, Default)]
pub(crate) struct DescribingFiles {
    pub(crate) title: Option<String>,
    pub(crate) groups: Vec<DescribingFile>,
    pub(crate) resources: Vec<DescribingFile>,
    pub(crate) icons: Vec<StackIcon>,
    pub(crate) ui_schemas: Vec<UiSchemaFile>,
}

impl DescribingFiles {
    /// Writes on each definition what reaches it, and tells of files that reach none.
    pub(crate) fn annotate_all(
        &self,
        definitions: &mut [OwnedDefinition],
        limits: &StackLimits,
        findings: &mut StackFindings,
    ) {
        let mut used = BTreeSet::new();
        let alone = self.match_unnamed(definitions, findings);
        for (index, definition) in definitions.iter_mut().enumerate() {
            let mut written: Vec<(String, String)> = Vec::new();
            let title = self.title.iter().map(|title| ("package-title".to_owned(), title.clone()));
            written.extend(title);
            let unnamed = alone.iter().find(|(_, at)| *at == index).map(|(file, _)| *file);
            let described =
                [self.find_group(definition), self.find_resource(definition).or(unnamed)];
            for file in described.into_iter().flatten() {
                used.insert(file.path.as_str());
                written.extend(
                    file.annotations
                        .iter()
                        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))),
                );
            }
            if let Some(icon) = self.find_icon(definition) {
                used.insert(icon.path.as_str());
                written.push(("icon-data-uri".to_owned(), icon.data_uri()));
            }
            written.extend(self.join_ui_schemas(definition, &mut used));
            write_annotations(definition, written);
            check_size(definition, limits, findings);
        }
        self.report_unused(&used, definitions, findings);
    }

    /// The nearest `group.yaml` whose group is the definition's, or that names none.
    fn find_group(&self, definition: &OwnedDefinition) -> Option<&DescribingFile> {
        let is_for = |file: &&DescribingFile| {
            file.subject.as_ref().is_none_or(|group| *group == definition.group)
        };
        nearest(self.groups.iter().filter(is_for), definition)
    }

    /// The nearest `*resource.yaml` whose `id` is the definition's kind.
    fn find_resource(&self, definition: &OwnedDefinition) -> Option<&DescribingFile> {
        let is_for = |file: &&DescribingFile| {
            file.subject.as_ref().is_some_and(|id| id.eq_ignore_ascii_case(&definition.kind))
        };
        nearest(self.resources.iter().filter(is_for), definition)
    }

    /// `*resource.yaml` files without an `id`, each with the only definition beside it.
    fn match_unnamed(
        &self,
        definitions: &[OwnedDefinition],
        findings: &mut StackFindings,
    ) -> Vec<(&DescribingFile, usize)> {
        let mut matched = Vec::new();
        for file in self.resources.iter().filter(|file| file.subject.is_none()) {
            let beside = definitions.iter().enumerate();
            let beside: Vec<usize> = beside
                .filter(|(_, one)| one.directory() == file.directory())
                .map(|(index, _)| index)
                .collect();
            let [only] = beside.as_slice() else { continue };
            let kind = definitions[*only].kind.to_lowercase();
            let message = format!("resource.yaml has no id; it is taken to be about {kind}");
            let place = (file.path.as_str(), file.position);
            findings.advise_at(
                &rules::METADATA_UNUSED,
                place,
                message,
                format!("write id: {kind}"),
            );
            matched.push((file, *only));
        }
        matched
    }

    /// The icon in the nearest directory that has one; there one for the kind goes before one for all,
    /// and preferred types before others.
    fn find_icon(&self, definition: &OwnedDefinition) -> Option<&StackIcon> {
        let is_for = |icon: &&StackIcon| {
            reaches_directory(directory_of(&icon.path), definition.directory())
                && is_meant(&icon.prefix, definition)
        };
        let depth = |icon: &StackIcon| depth_of(directory_of(&icon.path));
        let icons = self.icons.iter().filter(is_for);
        icons.min_by_key(|icon| (std::cmp::Reverse(depth(icon)), icon.preference()))
    }

    /// All ui-schemas that reach a definition: what it has itself, then from the root downwards, in one
    /// directory those for all kinds before those for one.
    fn join_ui_schemas<'s>(
        &'s self,
        definition: &OwnedDefinition,
        used: &mut BTreeSet<&'s str>,
    ) -> Option<(String, String)> {
        let mut files: Vec<&UiSchemaFile> = self
            .ui_schemas
            .iter()
            .filter(|file| reaches_directory(directory_of(&file.path), definition.directory()))
            .filter(|file| is_meant(file.prefix(), definition))
            .collect();
        files.sort_by_key(|file| (depth_of(directory_of(&file.path)), !file.prefix().is_empty()));
        used.extend(files.iter().map(|file| file.path.as_str()));
        let key = format!("{STACK_GROUP}/{UI_SCHEMA}");
        let own = definition.object.pointer("/metadata/annotations").and_then(|all| all.get(&key));
        let texts = own.and_then(Json::as_str).into_iter();
        let texts = texts.chain(files.iter().map(|file| file.text.as_str()));
        let texts: Vec<&str> =
            texts.map(|text| text.trim_matches('\n')).filter(|text| !text.is_empty()).collect();
        // The format's example ends with a line break, as YAML files do.
        (!files.is_empty() && !texts.is_empty())
            .then(|| (UI_SCHEMA.to_owned(), format!("{}\n", texts.join(UI_SEPARATOR))))
    }

    fn report_unused(
        &self,
        used: &BTreeSet<&str>,
        definitions: &[OwnedDefinition],
        findings: &mut StackFindings,
    ) {
        let described = self.groups.iter().chain(&self.resources);
        let described = described.map(|file| (file.path.as_str(), file.position));
        // The package itself has the icons at the root.
        let icons = self.icons.iter().filter(|icon| icon.path != base_name(&icon.path));
        let icons = icons.map(|icon| (icon.path.as_str(), Position::default()));
        let schemas = self.ui_schemas.iter().map(|file| (file.path.as_str(), Position::default()));
        for (path, at) in described.chain(icons).chain(schemas) {
            // Without definitions there is a finding of its own.
            if used.contains(path) || definitions.is_empty() {
                continue;
            }
            let message = "no definition gets what this file says";
            let hint = match base_name(path) {
                "group.yaml" => "put it into a directory above definitions of its group",
                name if name.ends_with("resource.yaml") => {
                    "let id be the kind of a definition in its directory or below"
                }
                _ => {
                    "call it icon.EXT or ui-schema.yaml, or begin its name with KIND. in lower case; \
                      others may be nearer or preferred"
                }
            };
            findings.advise_at(&rules::METADATA_UNUSED, (path, at), message, hint);
        }
    }
}

/// Whether what stands before a common name means this definition: nothing, its kind, or its kind and
/// one of its versions.
fn is_meant(prefix: &str, definition: &OwnedDefinition) -> bool {
    let mut words = prefix.trim_end_matches('.').split('.');
    let kind = words.next().unwrap_or_default();
    if prefix.is_empty() {
        return true;
    }
    let is_version_named = |word: &str| {
        let digits = word.strip_prefix('v').unwrap_or_default();
        digits.starts_with(|first: char| first.is_ascii_digit())
    };
    prefix.ends_with('.')
        && kind == definition.kind.to_lowercase()
        && words
            .filter(|word| is_version_named(word))
            .all(|word| definition.versions.iter().any(|version| version == word))
}

fn depth_of(directory: &str) -> usize {
    if directory.is_empty() { 0 } else { 1 + directory.matches('/').count() }
}

/// The file in the nearest directory; of several there the first by name.
fn nearest<'f>(
    files: impl Iterator<Item = &'f DescribingFile>,
    definition: &OwnedDefinition,
) -> Option<&'f DescribingFile> {
    let reaching = files.filter(|file| reaches_directory(file.directory(), definition.directory()));
    reaching.min_by_key(|file| (std::cmp::Reverse(depth_of(file.directory())), &file.path))
}

fn write_annotations(definition: &mut OwnedDefinition, written: Vec<(String, String)>) {
    if written.is_empty() {
        return;
    }
    if let Some(annotations) = definition.annotations_mut() {
        for (key, value) in written {
            annotations.insert(format!("{STACK_GROUP}/{key}"), Json::String(value));
        }
    }
}

fn check_size(definition: &OwnedDefinition, limits: &StackLimits, findings: &mut StackFindings) {
    let annotations = definition.object.pointer("/metadata/annotations").and_then(Json::as_object);
    let size = |(key, value): (&String, &Json)| key.len() + value.as_str().map_or(0, str::len);
    let size: usize = annotations.into_iter().flatten().map(size).sum();
    if size > limits.annotation_bytes_max {
        let limit = limits.annotation_bytes_max;
        let message = format!(
            "annotations of {} come to {size} bytes, more than {limit} (annotation_bytes_max)",
            definition.name()
        );
        let hint = "shorten readmes and ui-schemas, or use a smaller icon";
        let place = (definition.file.as_str(), definition.position);
        findings.advise_at(&rules::ANNOTATIONS_SIZE, place, message, hint);
    }
}

/// The install object that a definition belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallOwner {
    /// `ClusterPackageInstall` or `PackageInstall`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl OwnedDefinition {
    /// The definition as a cluster gets it for an install object.
    pub fn with_owner(&self, owner: &InstallOwner) -> Json {
        let mut object = self.object.clone();
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": STACK_API_VERSION,
            "kind": owner.kind,
            "name": owner.name,
            "uid": owner.uid,
        }]);
        object
    }
}
