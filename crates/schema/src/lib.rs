//! # Room `schema`: what a Kubernetes object may look like
//!
//! A `CustomResourceDefinition` describes its objects in a subset of `OpenAPI` v3. This room turns
//! such a schema into a [`Structural`] and does with it what the API server does on every
//! request, in its words and its order:
//!
//! ```text
//!   body ─► coerce ─► prune ─► default ─► (admission) ─► validate ─► stored
//!   stored ─► prune ─► default ─► answer
//!
//!   Structural::compile ── node: interned, shared ── Pool
//!        ├─ coerce    metadata through its typed form              metadata
//!        ├─ prune     unknown fields out, their paths back         prune
//!        ├─ default   stray nulls out, defaults in, recursively    defaults
//!        └─ validate  values (validate, format, pattern),
//!                     embedded resources (metadata), sets and maps (lists),
//!                     rules (in the language of `cel`)             rules
//! ```
//!
//! Beside schemas stand what all objects have in common ([`object`]: metadata, names, labels,
//! quantities, times), what a definition itself must be ([`validate_crd`]), and the language of
//! rules ([`cel`]).
//!
//! The room refuses to know servers, storage and who asks. Start at [`Structural::compile`].
//!
//! Everything is a function of its arguments: no clock, no files, no state but a [`Pool`] that
//! shares equal subtrees. An error is a [`FieldError`], one cause of a 422.
//!
//! The specification is the Go code of Kubernetes 1.36: vectors made with it are replayed by the
//! tests. Where Go's answer depends on the order of a map, ours is in order of name.
//!
//! **Rules** (`x-kubernetes-validations`) are applied by [`Structural::validate_rules`], after
//! everything else was found in order; [`Structural::validate`] does not apply them.

pub mod cel;
pub mod clock;
pub mod columns;
mod crd;
mod defaults;
mod error;
mod format;
pub mod jsonpath;
mod lists;
mod metadata;
pub mod names;
mod node;
pub mod object;
mod pattern;
mod prune;
mod rules;
mod structural;
#[cfg(test)]
mod tests;
pub mod text;
mod validate;

use std::sync::Arc;

use serde_json::{Map, Value};

pub use crd::{check_client, check_review_versions, validate_crd, validate_new_crd};
pub use error::{ErrorKind, FieldError, Path, summary};
pub use metadata::{Malformed, NameRule, Scope};
pub use node::Pool;
pub use prune::Root;

pub(crate) use node::{Flags, Kind, ListType, Node};
pub(crate) use text::quote;
use validate::{Correlated, Step};

/// A compiled schema. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Structural {
    root: Arc<Node>,
}

impl Structural {
    /// Compiles `openAPIV3Schema` as stored, or says why it is not structural.
    pub fn compile(schema: &Value) -> Result<Self, Vec<FieldError>> {
        Self::compile_in(&mut Pool::default(), schema)
    }

    /// Compiles a schema that shares what it can with others in the pool.
    pub fn compile_in(pool: &mut Pool, schema: &Value) -> Result<Self, Vec<FieldError>> {
        let errors = structural::check(schema, &Path::new("openAPIV3Schema"));
        if errors.is_empty() { Ok(Self { root: pool.compile(schema) }) } else { Err(errors) }
    }

    /// Compiles a schema that was checked when its definition was stored.
    pub fn compile_stored(pool: &mut Pool, schema: &Value) -> Self {
        Self { root: pool.compile(schema) }
    }

    /// Removes fields the schema does not know; returns their paths, sorted.
    pub fn prune(&self, value: &mut Value, root: Root) -> Vec<String> {
        prune::prune(&self.root, value, root)
    }

    /// Removes `null`s that are neither allowed nor defaulted.
    pub fn drop_nulls(&self, value: &mut Value) {
        defaults::drop_nulls(Some(&self.root), value);
    }

    /// Fills in defaults.
    pub fn fill(&self, value: &mut Value) {
        defaults::fill(Some(&self.root), value);
    }

    /// Removes `null`s that are neither allowed nor defaulted, then fills in defaults.
    pub fn default(&self, value: &mut Value) {
        self.drop_nulls(value);
        self.fill(value);
    }

    /// Reads and rewrites metadata, at the root and in embedded resources, as its typed form
    /// would; returns the paths of unknown metadata fields, sorted.
    pub fn coerce(
        &self,
        value: &mut Value,
        malformed: Malformed,
    ) -> Result<Vec<String>, Box<FieldError>> {
        metadata::coerce(&self.root, value, true, malformed)
    }

    /// The first metadata, at the root and then in embedded resources, that its typed form cannot
    /// hold, in the words of Go's decoder.
    pub fn find_metadata_fault(&self, value: &Value) -> Option<String> {
        metadata::find_fault(&self.root, value)
    }

    /// Everything wrong with an object: schema, embedded resources, sets and maps, in that
    /// order. With the object as it was, faults that were there before are forgiven.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = self.validate_values(new, old);
        errors.extend(self.validate_embedded(new));
        errors.extend(self.validate_lists(new, old));
        errors
    }

    /// The first part of [`Self::validate`]: values against the schema.
    pub fn validate_values(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let before = old.map(|old| Correlated::new(&self.root, new, old));
        validate::check(&self.root, new, &Step::Root, before).errors(&Path::NIL)
    }

    /// The second part: metadata of embedded resources.
    pub fn validate_embedded(&self, new: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        metadata::check_embedded(&self.root, new, &Path::NIL, false, &mut errors);
        errors
    }

    /// The third part: sets and maps without repetitions, unless there were some before.
    pub fn validate_lists(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let check = |value: &Value| {
            let mut errors = Vec::new();
            lists::check(&self.root, value, &Path::NIL, &mut errors);
            errors
        };
        if old.is_some_and(|old| !check(old).is_empty()) { Vec::new() } else { check(new) }
    }

    /// Everything wrong with a write to the status: only that part is held against the schema,
    /// and sets and maps as a whole.
    pub fn validate_status(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let Some((schema, status)) = self.root.property("status").zip(new.get("status")) {
            // A status that was not there before correlates with nothing and forgives nothing,
            // but for a null, which is as good as nothing.
            let before = Correlated::new(&self.root, new, old).key("status");
            let forgiven = status.is_null() && old.get("status").is_none_or(Value::is_null);
            let outcome = validate::check(schema, status, &Step::Root, before);
            errors.extend(outcome.errors(&Path::new("status")).into_iter().filter(|_| !forgiven));
        }
        errors.extend(self.validate_lists(new, Some(old)));
        errors
    }

    /// Whether the schema has rules (`x-kubernetes-validations`).
    pub fn has_rules(&self) -> bool {
        self.root.has(Flags::HOLDS_RULES)
    }

    /// Applies the rules; to be called when nothing blocks them.
    pub fn validate_rules(&self, new: &Value, old: Option<&Value>) -> rules::Judged {
        rules::check(&self.root, new, old)
    }

    /// The error the server adds instead of evaluating rules when other errors get in the way.
    pub fn rules_blocked(&self, errors: &[FieldError]) -> Option<FieldError> {
        let blocked = self.has_rules() && errors.iter().any(validate::blocks_rules);
        let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
        blocked.then(|| FieldError::invalid(&Path::NIL, Value::Null, detail))
    }
}

/// Everything wrong with the `metadata` of an object, below the path `metadata`.
pub fn validate_metadata(metadata: &Value, scope: Scope, rule: NameRule) -> Vec<FieldError> {
    let path = Path::new("metadata");
    let mut errors = Vec::new();
    match metadata::read_meta(metadata) {
        Ok((read, _)) => {
            let faults = |name: &str, prefix| rule.faults(name, prefix);
            metadata::check_meta(&read, scope, &faults, &path, &mut errors);
        }
        Err(error) => errors.push(FieldError::invalid(&path, metadata.clone(), error)),
    }
    errors
}

/// Everything wrong with a change of `metadata`.
pub fn validate_metadata_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let path = Path::new("metadata");
    let mut errors = Vec::new();
    match (metadata::read_meta(new), metadata::read_meta(old)) {
        (Ok((new, _)), Ok((old, _))) => {
            metadata::check_meta_update(&new, &old, &path, &mut errors);
        }
        (Err(error), _) => errors.push(FieldError::invalid(&path, new.clone(), error)),
        (Ok(_), Err(_)) => {}
    }
    errors
}

/// Metadata as its typed form writes it back, and the fields it does not know.
pub fn read_metadata(metadata: &Value) -> Result<(Map<String, Value>, Vec<String>), String> {
    metadata::read_meta(metadata)
}

/// Whether a text has one of the formats schemas know.
pub(crate) fn is_format(name: &str, text: &str) -> bool {
    format::Format::any(name).is_some_and(|format| format.accepts(text))
}

/// Whether a text can stand in the first line of an HTTP request.
pub(crate) fn is_request_uri(text: &str) -> bool {
    is_format("uri", text)
}

/// What is wrong with a name of one of the sorts that expressions can ask about.
pub(crate) fn check_name(sort: &str, text: &str) -> Vec<String> {
    let prefix = sort.strip_suffix("Prefix");
    // The beginning of a name may end in a dash, for something will follow.
    let beginning = text.strip_suffix('-').map(|start| format!("{start}a"));
    let text = match (prefix, &beginning) {
        (Some(_), Some(beginning)) => beginning.as_str(),
        _ => text,
    };
    match prefix.unwrap_or(sort) {
        "dns1123Label" => names::label(text),
        "dns1123Subdomain" => names::subdomain(text),
        "dns1035Label" => names::label_1035(text),
        "qualifiedName" => names::label_key(text),
        _ => names::label_value(text),
    }
}
