//! `spec`: names, versions and what hangs off them

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::super::error::{FieldError, Path};
use super::super::names;
use super::super::structural::{below, flag, list, text};
use super::field_path::field_path;
use super::{Options, conversion, internal, push_joined, push_kind, schema};

/// A `spec` in the shape the server has inside: what all versions share is at the top.
pub(crate) struct Spec<'a> {
    pub(crate) raw: &'a Value,
    pub(crate) versions: Vec<Version<'a>>,
    /// The schema all versions share; absent where they differ.
    pub(crate) validation: Option<&'a Value>,
    pub(crate) subresources: Option<&'a Value>,
    pub(crate) columns: &'a [Value],
    pub(crate) selectable: &'a [Value],
    pub(crate) conversion: &'a Value,
    pub(crate) preserve_unknown_fields: bool,
}

/// An entry of `versions`, without what is at the top.
pub(crate) struct Version<'a> {
    pub(crate) name: &'a str,
    pub(crate) served: bool,
    pub(crate) storage: bool,
    pub(crate) deprecated: bool,
    pub(crate) deprecation_warning: Option<&'a str>,
    pub(crate) schema: Option<&'a Value>,
    pub(crate) subresources: Option<&'a Value>,
    pub(crate) columns: &'a [Value],
    pub(crate) selectable: &'a [Value],
}

impl<'a> Version<'a> {
    fn of(raw: &'a Value) -> Self {
        let present = |key: &str| raw.get(key).filter(|value| !value.is_null());
        Self {
            name: text(raw, "name"),
            served: flag(raw, "served"),
            storage: flag(raw, "storage"),
            deprecated: flag(raw, "deprecated"),
            deprecation_warning: raw.get("deprecationWarning").and_then(Value::as_str),
            schema: present("schema").and_then(|schema| schema.get("openAPIV3Schema")),
            subresources: present("subresources"),
            columns: list(raw, "additionalPrinterColumns"),
            selectable: list(raw, "selectableFields"),
        }
    }
}

impl<'a> Spec<'a> {
    pub(crate) fn of(raw: &'a Value) -> Self {
        let mut versions: Vec<Version<'a>> =
            list(raw, "versions").iter().map(Version::of).collect();
        Self {
            raw,
            validation: hoist(&mut versions, |v| &mut v.schema),
            subresources: hoist(&mut versions, |v| &mut v.subresources),
            columns: hoist(&mut versions, |v| &mut v.columns),
            selectable: hoist(&mut versions, |v| &mut v.selectable),
            versions,
            conversion: raw.get("conversion").unwrap_or(&Value::Null),
            preserve_unknown_fields: flag(raw, "preserveUnknownFields"),
        }
    }

    /// All schemas, shared or not.
    pub(crate) fn schemas(&self) -> impl Iterator<Item = &'a Value> {
        self.validation.into_iter().chain(self.versions.iter().filter_map(|v| v.schema))
    }

    fn names(&self) -> &'a Value {
        self.raw.get("names").unwrap_or(&Value::Null)
    }

    /// The versions as an error shows them.
    fn shown_versions(&self) -> Value {
        if self.raw.get("versions").is_none_or(Value::is_null) {
            return Value::Null;
        }
        self.versions.iter().map(internal::version).collect()
    }
}

/// Moves what all versions say alike to the top.
fn hoist<'a, T: Copy + Default + PartialEq>(
    versions: &mut [Version<'a>],
    part: impl for<'b> Fn(&'b mut Version<'a>) -> &'b mut T,
) -> T {
    let Some((first, rest)) = versions.split_first_mut() else { return T::default() };
    let shared = *part(first);
    if !rest.iter_mut().all(|version| *part(version) == shared) {
        return T::default();
    }
    for version in versions {
        *part(version) = T::default();
    }
    shared
}

/// Whether there is a status subresource among these.
fn has_status(subresources: Option<&Value>) -> bool {
    subresources.is_some_and(|s| s.get("status").is_some_and(|status| !status.is_null()))
}

pub(crate) fn check(spec: &Spec<'_>, options: &Options, errors: &mut Vec<FieldError>) {
    let path = Path::new("spec");
    check_group(spec, &path, errors);
    match text(spec.raw, "scope") {
        "" => errors.push(FieldError::required(&path.child("scope"), "")),
        "Cluster" | "Namespaced" => {}
        scope => {
            let supported = ["Cluster", "Namespaced"];
            errors.push(FieldError::not_supported(&path.child("scope"), scope, supported));
        }
    }
    check_schemas_given(spec, options, &path, errors);
    let structural = options.structural
        || !spec.preserve_unknown_fields
        || spec.schemas().any(|s| schema::any(s, &schema::has_default_or_extension));
    if spec.preserve_unknown_fields && spec.schemas().any(|s| schema::any(s, &schema::has_default))
    {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid(&path.child("preserveUnknownFields"), true, detail));
    }
    check_versions(spec, options, structural, &path, errors);
    for name in ["plural", "singular", "kind", "listKind"] {
        if text(spec.names(), name).is_empty() {
            errors.push(FieldError::required(&path.child("names").child(name), ""));
        }
    }
    check_names(spec.names(), &path.child("names"), errors);
    if let Some(shared) = spec.validation {
        let status = has_status(spec.subresources)
            || spec.versions.iter().any(|v| has_status(v.subresources));
        let check = schema::Check { options, structural, status };
        check.run(shared, &path.child("validation"), errors);
    }
    check_subresources(spec.subresources, &path.child("subresources"), errors);
    check_columns(spec.columns, &path.child("additionalPrinterColumns"), errors);
    if !spec.selectable.is_empty() {
        let below = path.child("selectableFields");
        match spec.validation {
            None => {
                let detail = "may only be set when validations.schema is included";
                errors.push(FieldError::invalid(&below, "", detail));
            }
            Some(shared) => check_selectable(spec.selectable, shared, &below, options, "", errors),
        }
    }
    conversion::check(spec, options, &path.child("conversion"), errors);
}

fn check_group(spec: &Spec<'_>, path: &Path, errors: &mut Vec<FieldError>) {
    let path = path.child("group");
    let group = text(spec.raw, "group");
    if group.is_empty() {
        return errors.push(FieldError::required(&path, ""));
    }
    let faults = names::subdomain(group);
    push_joined(errors, &path, group, &faults);
    if faults.is_empty() && !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push(FieldError::invalid(&path, group, detail));
    }
}

fn check_schemas_given(
    spec: &Spec<'_>,
    options: &Options,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    if spec.validation.is_some() {
        return;
    }
    for (i, version) in spec.versions.iter().enumerate().filter(|(_, v)| v.schema.is_none()) {
        let path = path.child("versions").index(i).child("schema").child("openAPIV3Schema");
        if options.schema {
            errors.push(FieldError::required(&path, ""));
        } else if !spec.preserve_unknown_fields && version.served {
            errors.push(FieldError::required(&path, "because otherwise all fields are pruned"));
        }
    }
}

fn check_versions(
    spec: &Spec<'_>,
    options: &Options,
    structural: bool,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let per_version = spec.versions.iter().any(|v| v.subresources.is_some());
    let below = path.child("versions");
    let mut first: HashMap<&str, &Version<'_>> = HashMap::new();
    for version in &spec.versions {
        first.entry(version.name).or_insert(version);
    }
    for (i, version) in spec.versions.iter().enumerate() {
        let path = below.index(i);
        push_joined(errors, &path.child("name"), version.name, &names::label_1035(version.name));
        // Looked up by name: of two versions with one name, the first speaks for both.
        let named = first.get(version.name);
        let own = match named.filter(|_| per_version) {
            Some(named) => named.subresources,
            None => spec.subresources,
        };
        check_version(version, options, structural, has_status(own), &path, errors);
    }
    let unique = first.len() == spec.versions.len();
    let mut refuse = |detail: &str| {
        let error = FieldError::invalid(&below, spec.shown_versions(), detail);
        errors.push(error.with_field_order());
    };
    if !unique {
        refuse("must contain unique version names");
    }
    if spec.versions.iter().filter(|v| v.storage).count() != 1 {
        refuse("must have exactly one version marked as storage version");
    }
    if let Some(first) = spec.versions.first().filter(|first| !first.name.is_empty()) {
        push_joined(errors, &path.child("version"), first.name, &names::label_1035(first.name));
    }
}

fn check_version(
    version: &Version<'_>,
    options: &Options,
    structural: bool,
    status: bool,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    for detail in warning_faults(version) {
        let value = version.deprecation_warning.unwrap_or_default();
        let error = FieldError::invalid(&path.child("deprecationWarning"), value, detail);
        errors.push(error.with_field_order());
    }
    if let Some(own) = version.schema {
        schema::Check { options, structural, status }.run(own, &path.child("schema"), errors);
    }
    check_subresources(version.subresources, &path.child("subresources"), errors);
    check_columns(version.columns, &path.child("additionalPrinterColumns"), errors);
    if version.selectable.is_empty() {
        return;
    }
    let below = path.child("selectableFields");
    match version.schema {
        None => {
            let detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
            errors.push(FieldError::invalid(&below, "", detail));
        }
        Some(own) => {
            check_selectable(version.selectable, own, &below, options, version.name, errors);
        }
    }
}

fn warning_faults(version: &Version<'_>) -> Vec<String> {
    let Some(warning) = version.deprecation_warning else { return Vec::new() };
    if !version.deprecated {
        return vec!["can only be set for deprecated versions".to_owned()];
    }
    let mut faults = Vec::new();
    if warning.len() > 256 {
        faults.push("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        faults.push("must not be an empty string".to_owned());
    }
    if let Some((i, _)) = warning.char_indices().find(|(_, c)| c.is_control()) {
        faults.push(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {i}"
        ));
    }
    faults
}

pub(crate) fn check_names(names: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    for name in ["plural", "singular"] {
        let value = text(names, name);
        if !value.is_empty() {
            push_joined(errors, &path.child(name), value, &names::label_1035(value));
        }
    }
    for name in ["kind", "listKind"] {
        if !text(names, name).is_empty() {
            push_kind(errors, &path.child(name), text(names, name));
        }
    }
    let each = |name: &str, errors: &mut Vec<FieldError>| {
        for (i, value) in list(names, name).iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            push_joined(errors, &path.child(name).index(i), value, &names::label_1035(value));
        }
    };
    each("shortNames", errors);
    let list_kind = text(names, "listKind");
    if !list_kind.is_empty() && text(names, "kind") == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(&path.child("listKind"), list_kind, detail));
    }
    each("categories", errors);
}

fn check_subresources(subresources: Option<&Value>, path: &Path, errors: &mut Vec<FieldError>) {
    let Some(scale) = subresources.and_then(|s| below(s, "scale")) else { return };
    for (name, beginnings, detail) in [
        ("specReplicasPath", &[".spec."][..], "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."], "should be a json path under .status"),
        (
            "labelSelectorPath",
            &[".spec.", ".status."],
            "should be a json path under either .spec or .status",
        ),
    ] {
        let path = path.child(&format!("scale.{name}"));
        match text(scale, name) {
            "" if name == "labelSelectorPath" => {}
            "" => errors.push(FieldError::required(&path, "")),
            value if !value.starts_with('.') => not_simple(value, &path, errors),
            value if beginnings.iter().any(|beginning| value.starts_with(beginning)) => {}
            value => {
                let error = FieldError::invalid(&path, value, detail);
                let pointer = name == "labelSelectorPath";
                errors.push(if pointer { error.with_field_order() } else { error });
            }
        }
    }
}

fn not_simple(value: &str, path: &Path, errors: &mut Vec<FieldError>) {
    errors.push(FieldError::invalid(path, value, "must be a simple json path starting with ."));
}

fn check_columns(columns: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] =
        ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    let one_of = |names: &[&str]| format!("must be one of {}", names.join(","));
    for (i, column) in columns.iter().enumerate() {
        let path = path.index(i);
        if text(column, "name").is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        match text(column, "type") {
            "" => errors.push(FieldError::required(&path.child("type"), one_of(&TYPES))),
            kind if TYPES.contains(&kind) => {}
            kind => errors.push(FieldError::invalid(&path.child("type"), kind, one_of(&TYPES))),
        }
        let format = text(column, "format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            errors.push(FieldError::invalid(&path.child("format"), format, one_of(&FORMATS)));
        }
        match text(column, "jsonPath") {
            "" => errors.push(FieldError::required(&path.child("JSONPath"), "")),
            value if !value.starts_with('.') => not_simple(value, &path.child("JSONPath"), errors),
            _ => {}
        }
    }
}

fn check_selectable(
    fields: &[Value],
    schema: &Value,
    path: &Path,
    options: &Options,
    version: &str,
    errors: &mut Vec<FieldError>,
) {
    let mut seen: HashSet<String> = HashSet::new();
    for (i, field) in fields.iter().enumerate() {
        let path = path.index(i).child("jsonPath");
        let json_path = text(field, "jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let (found, target) = match field_path(json_path, schema, false) {
            Ok(found) => found,
            Err(error) => {
                let detail = format!("is an invalid path: {error}");
                errors.push(FieldError::invalid(&path, json_path, detail));
                continue;
            }
        };
        let found = found.to_string();
        if found == "metadata" || found.starts_with("metadata.") || found.starts_with("metadata[") {
            let detail = "must not point to fields in metadata";
            errors.push(FieldError::invalid(&path, json_path, detail));
        }
        if !matches!(target.map_or("", |t| text(t, "type")), "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(&path, json_path, detail));
        }
        if !seen.insert(found) {
            errors.push(FieldError::duplicate(&path, json_path));
        }
    }
    if seen.len() > 8 && !options.many_selectable.iter().any(|name| name == version) {
        errors.push(FieldError::too_many(path, seen.len(), 8));
    }
}

/// Which sets of selectable fields were too many before and did not change.
pub(super) fn many_selectable(spec: &Spec<'_>, old: &Spec<'_>) -> Vec<String> {
    let mut names = Vec::new();
    if old.selectable.len() > 8 && old.selectable == spec.selectable {
        names.push(String::new());
    }
    for version in &spec.versions {
        let kept =
            |old: &&Version<'_>| old.name == version.name && old.selectable == version.selectable;
        if old.versions.iter().find(kept).is_some_and(|old| old.selectable.len() > 8) {
            names.push(version.name.to_owned());
        }
    }
    names
}

pub(super) fn check_immutable(
    spec: &Spec<'_>,
    old: &Spec<'_>,
    established: bool,
    errors: &mut Vec<FieldError>,
) {
    let path = Path::new("spec");
    let names = path.child("names");
    let mut same = |path: Path, new: &str, old: &str| {
        if new != old {
            errors.push(FieldError::invalid(&path, new, "field is immutable"));
        }
    };
    if established {
        same(path.child("scope"), text(spec.raw, "scope"), text(old.raw, "scope"));
        same(names.child("kind"), text(spec.names(), "kind"), text(old.names(), "kind"));
    }
    same(path.child("group"), text(spec.raw, "group"), text(old.raw, "group"));
    same(names.child("plural"), text(spec.names(), "plural"), text(old.names(), "plural"));
}
