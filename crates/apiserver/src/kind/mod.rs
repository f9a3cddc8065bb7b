//! # Kinds: what can be served, as data
//!
//! Built-in kinds are rows of a table, custom ones are read from their definitions; from
//! here on both are a [`Kind`] and take the same path.

mod builtin;
mod check;
mod defaults;
pub(crate) mod event;
#[cfg(test)]
mod merging_tests;
mod pod;
pub mod print;
mod required;
pub mod service;
pub(crate) mod shape;
mod typed;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use serde_json::Value;

use crate::crd::convert::Conversion;
use schema::object::name::NameRule;

pub use check::check;
pub use defaults::{blank, prepare};
pub(crate) use pod::keep_assigned as keep_pod;
pub use shape::{LazyShape, Shape};

/// What the column `Name` means.
pub(crate) const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, \
    although some resources may allow a client to request the generation of an appropriate name \
    automatically. Name is primarily intended for creation idempotence and configuration \
    definition. Cannot be updated. More info: \
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// What the column `Age` means.
pub(crate) const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object \
    was created. It is not guaranteed to be set in happens-before order across separate \
    operations. Clients may not set this value. It is represented in RFC3339 form and is in \
    UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// A column of the tables `kubectl get` prints.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its head.
    pub name: String,
    /// `string`, `integer`, `date`, …
    pub type_: String,
    /// `name` for the first column, else mostly nothing.
    pub format: String,
    /// What it means.
    pub description: String,
    /// Columns above zero are shown only when asked for.
    pub priority: i64,
}

/// Where a scalable kind keeps what `/scale` shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// The wished number.
    pub spec_path: String,
    /// The present number.
    pub status_path: String,
    /// The selector, if it has one.
    pub selector_path: Option<String>,
}

/// One kind in one version.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "a row of a table: each column is a fact")]
pub struct Kind {
    /// The API group; empty for the core.
    pub group: String,
    /// The version.
    pub version: String,
    /// The name in URLs.
    pub plural: String,
    /// The name of one.
    pub singular: String,
    /// The name in objects.
    pub kind: String,
    /// The name of its lists.
    pub list_kind: String,
    /// What people type.
    pub short_names: Vec<String>,
    /// Groups such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether `/status` is apart.
    pub status: bool,
    /// Whether and how it scales.
    pub scale: Option<Scale>,
    /// Whether it comes from a definition rather than from the table.
    pub custom: bool,
    /// Whether changes of what is wished count up `metadata.generation`.
    pub generation: bool,
    /// Whether a PUT may come without a version.
    pub unconditional: bool,
    /// What names look like.
    pub names: NameRule,
    /// Fields that can be selected on, besides name and namespace.
    pub selectable: Vec<String>,
    /// The printed columns of a built-in kind.
    pub columns: Vec<Column>,
    /// The version under which objects are stored.
    pub storage_version: String,
    /// What its objects may look like.
    pub shape: LazyShape,
    /// What they look like in the log, where that is another version.
    pub stored_shape: Option<LazyShape>,
    /// How its versions are converted, where they differ in more than their names.
    pub conversion: Option<Arc<Conversion>>,
    /// Whether its objects are questions: answered, never stored.
    pub fleeting: bool,
    /// Whether its objects are counted when they are asked for, never stored.
    pub counted: bool,
    /// Whether its definition is being removed: nothing may be made any more.
    pub terminating: bool,
    /// What clients are told who still use this version.
    pub deprecation: Option<String>,
}

impl Kind {
    /// `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Whether a collection may be removed at once. Namespaces go one by one.
    pub fn is_removed_in_bulk(&self) -> bool {
        !(self.group.is_empty() && self.kind == "Namespace")
    }

    /// `configmaps` or `widgets.example.org`: how messages name it.
    pub fn resource(&self) -> String {
        qualified(&self.plural, &self.group)
    }

    /// `ConfigMap` or `Widget.example.org`: how messages about invalid objects name it.
    pub fn qualified_kind(&self) -> String {
        qualified(&self.kind, &self.group)
    }

    /// Where in the log objects of this kind lie, in one namespace or in all.
    pub fn prefix(&self, namespace: Option<&str>) -> String {
        match namespace {
            Some(namespace) => format!("{}.{}/{namespace}/", self.plural, self.stored_group()),
            None => format!("{}.{}/", self.plural, self.stored_group()),
        }
    }

    /// Where in the log one object lies.
    pub fn key(&self, namespace: Option<&str>, name: &str) -> String {
        format!("{}.{}/{}/{name}", self.plural, self.stored_group(), namespace.unwrap_or_default())
    }

    /// The group under which objects lie: events of both APIs are the same.
    fn stored_group(&self) -> &str {
        if event::is_newer(self) { "" } else { &self.group }
    }
}

/// A key of the log as the resource, namespace and name that [`Kind::key`] put together.
pub fn split_key(key: &str) -> (&str, &str, &str) {
    let (resource, rest) = key.split_once('/').unwrap_or((key, ""));
    let (namespace, name) = rest.split_once('/').unwrap_or(("", rest));
    (resource, namespace, name)
}

/// Brings an incoming built-in object into the form that is stored: defaults filled in, and
/// written as the structure it is. Definitions have rules of their own.
pub fn complete(kind: &Kind, object: &mut Value) {
    defaults::complete(kind, object);
    if kind.group == crate::crd::GROUP && kind.kind == crate::crd::KIND {
        wire::typed::settle_columns(object);
    } else if !kind.custom {
        wire::typed::settle(&kind.api_version(), &kind.kind, object);
    }
}

/// The kind of what `serviceaccounts/NAME/token` is asked.
pub fn token_request() -> Arc<Kind> {
    static KIND: LazyLock<Arc<Kind>> = LazyLock::new(|| Arc::new(builtin::token_request()));
    Arc::clone(&KIND)
}

/// Whether a built-in kind of this version and name exists.
pub fn is_builtin(api_version: &str, name: &str) -> bool {
    builtin::is_kind(api_version, name)
}

fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

/// The names that one definition has, so that no other of its group can have them.
#[derive(Debug, Clone, Default)]
pub struct Claim {
    /// The group in which the names count.
    pub group: String,
    /// Plural, singular and short names.
    pub resources: Vec<String>,
    /// The names of the kind and of its lists.
    pub kinds: Vec<String>,
    /// Whether the definition wants names that others have.
    pub contested: bool,
}

/// Every kind that is served now.
#[derive(Debug, Default)]
pub struct Kinds {
    builtin: Vec<Arc<Kind>>,
    custom: RwLock<BTreeMap<String, Vec<Arc<Kind>>>>,
    claims: RwLock<BTreeMap<String, Claim>>,
}

impl Kinds {
    /// The built-in kinds only.
    pub fn new() -> Self {
        Self { builtin: builtin::table(false), ..Self::default() }
    }

    /// The built-in kinds, and what pods and nodes use.
    pub fn with_usage() -> Self {
        Self { builtin: builtin::table(true), ..Self::default() }
    }

    /// The kind behind a URL's group, version and plural.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        let fits = |kind: &&Arc<Kind>| {
            kind.group == group && kind.version == version && kind.plural == plural
        };
        if let Some(kind) = self.builtin.iter().find(fits) {
            return Some(Arc::clone(kind));
        }
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        custom.get(&qualified(plural, group))?.iter().find(fits).cloned()
    }

    /// The kind that objects name by their `apiVersion` and `kind`.
    pub fn named(&self, api_version: &str, name: &str) -> Option<Arc<Kind>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let fits =
            |kind: &&Arc<Kind>| kind.kind == name && kind.version == version && kind.group == group;
        if let Some(kind) = self.builtin.iter().find(fits) {
            return Some(Arc::clone(kind));
        }
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        custom.values().flatten().find(fits).cloned()
    }

    /// The kind whose objects lie under a resource of the log, in one of its versions.
    pub fn stored_under(&self, resource: &str) -> Option<Arc<Kind>> {
        let (plural, group) = resource.split_once('.')?;
        let fits = |kind: &&Arc<Kind>| kind.plural == plural && kind.group == group;
        if let Some(kind) = self.builtin.iter().find(fits) {
            return Some(Arc::clone(kind));
        }
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        custom.get(resource)?.first().cloned()
    }

    /// A custom kind in each version it is served in.
    pub fn versions(&self, kind: &Kind) -> Vec<Arc<Kind>> {
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        custom.get(&kind.resource()).cloned().unwrap_or_default()
    }

    /// Whether a group and version exist at all.
    pub fn has_version(&self, group: &str, version: &str) -> bool {
        self.all().iter().any(|kind| kind.group == group && kind.version == version)
    }

    /// Whether built-in kinds are in this group, in whatever version.
    pub fn has_builtin_group(&self, group: &str) -> bool {
        self.builtin.iter().any(|kind| kind.group == group)
    }

    /// Every kind, built-in ones first.
    pub fn all(&self) -> Vec<Arc<Kind>> {
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        self.builtin.iter().chain(custom.values().flatten()).cloned().collect()
    }

    /// Judges the names of one definition against those of all and keeps what it gets, in
    /// one go: of two that want the same name only one can have it.
    pub fn claim<T>(
        &self,
        name: &str,
        judge: impl FnOnce(&str, &BTreeMap<String, Claim>) -> (Claim, T),
    ) -> T {
        let mut claims = self.claims.write().unwrap_or_else(PoisonError::into_inner);
        let (claim, answer) = judge(name, &claims);
        claims.insert(name.to_owned(), claim);
        answer
    }

    /// Gives up the names of one definition; says who may want them.
    pub fn release(&self, name: &str) -> Vec<String> {
        let mut claims = self.claims.write().unwrap_or_else(PoisonError::into_inner);
        let Some(gone) = claims.remove(name) else { return Vec::new() };
        let waiting =
            claims.iter().filter(|(_, claim)| claim.contested && claim.group == gone.group);
        waiting.map(|(name, _)| name.clone()).collect()
    }

    /// Serves the versions of one definition from now on; none stops serving it.
    pub fn define(&self, name: &str, kinds: Vec<Kind>) {
        let mut custom = self.custom.write().unwrap_or_else(PoisonError::into_inner);
        if kinds.is_empty() {
            custom.remove(name);
        } else {
            custom.insert(name.to_owned(), kinds.into_iter().map(Arc::new).collect());
        }
    }
}

/// The value a field selector compares: a path's text in an object.
pub fn field_text(object: &Value, path: &str) -> String {
    match schema::object::path::find(object, &format!(".{path}")).first() {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Object(_)) if path == "source" => event::source(object),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}
