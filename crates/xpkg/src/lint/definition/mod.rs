//! Definitions as an API server sees them.
//!
//! ```text
//!   node ──► form: JSON, as it reaches the server ──► schema::validate_new_crd ──► field errors
//!    │                                                                            │
//!    └──────────────► locate: where a field stands ◄──── words: its path ◄────────┘
//! ```
//!
//! What an API server would say is asked of the room that answers for apron's own API server, so
//! the two cannot differ: structural schemas, defaults, patterns, expressions in CEL, names,
//! versions. Positions are looked up only for what is wrong. What an API server estimates, and
//! nothing here does, is the cost of expressions.

mod form;
mod locate;
#[cfg(test)]
mod tests;
mod words;

pub(super) use form::{claim_as_definition, composite_as_definition, definition_as_installed};

use super::findings::Findings;
use super::rules::{self, Rule};
use serde_json::Value as Json;
use std::collections::HashSet;
use yaml::Node;

/// The rules that findings about a definition carry.
#[derive(Clone, Copy)]
pub(super) struct DefinitionRules {
    invalid: &'static Rule,
    schema: &'static Rule,
    default: &'static Rule,
    expression: &'static Rule,
}

/// The rules for custom resources.
pub(super) const CUSTOM: DefinitionRules = DefinitionRules {
    invalid: &rules::CRD_INVALID,
    schema: &rules::CRD_SCHEMA,
    default: &rules::CRD_DEFAULT,
    expression: &rules::CRD_EXPRESSION,
};

/// The rules for composite resources.
pub(super) const COMPOSITE: DefinitionRules = DefinitionRules {
    invalid: &rules::XRD_INVALID,
    schema: &rules::XRD_SCHEMA,
    default: &rules::XRD_DEFAULT,
    expression: &rules::XRD_EXPRESSION,
};

impl DefinitionRules {
    /// The rule that a field belongs to.
    fn of_field(&self, path: &str) -> &'static Rule {
        let Some((_, in_schema)) = path.split_once(".openAPIV3Schema") else { return self.invalid };
        if in_schema.contains(".x-kubernetes-validations") {
            self.expression
        } else if in_schema.rsplit(".properties[").next().is_some_and(is_default) {
            self.default
        } else {
            self.schema
        }
    }
}

/// Whether the end of a path leads into a default.
fn is_default(path: &str) -> bool {
    let after = path.split_once(".default").map(|(_, after)| after);
    after.is_some_and(|after| after.is_empty() || after.starts_with(['.', '[']))
}

/// Of a document with so many values of wrong types nothing more is said: a server cannot decode it.
const MISTYPED_MAX: usize = 16;

/// Reports what an API server would say about a definition in the form that reaches it. `rename`
/// turns names of its fields into those of the document.
pub(super) fn check_definition(
    node: &Node<'_>,
    definition: Json,
    rules: &DefinitionRules,
    rename: fn(&str) -> Option<String>,
    findings: &mut Findings<'_>,
) {
    if findings.count_of(&rules::OBJECT_TYPE) >= MISTYPED_MAX {
        return;
    }
    let mut told = HashSet::new();
    for error in schema::validate_new_crd(definition) {
        let Some(path) = rename(&words::written_path(&error.path)) else { continue };
        let found = locate::find_field(node, &path);
        let at = found.shown;
        let is_mistyped = findings.has_found(&rules::OBJECT_TYPE, found.value);
        let message = words::describe_error(&path, &error);
        if is_mistyped || !told.insert((at, message.clone())) {
            continue;
        }
        findings.advise(rules.of_field(&path), at, message, words::advise_on(&path, &error));
    }
}

/// Fields that others look after: names and what cannot be decoded ([`super::object`],
/// [`super::types`]), the status, which is the server's, and the approval of groups of Kubernetes, which
/// depends on the type of package ([`super::authority`]).
const OF_OTHERS: [&str; 3] =
    ["metadata.name", "metadata.annotations[api-approved.kubernetes.io]", "status"];

/// The fields of a definition that this document has, under their own names.
pub(super) fn keep_names(path: &str) -> Option<String> {
    let is_other = OF_OTHERS.iter().any(|other| path.starts_with(other)) || path == "metadata";
    (!is_other).then(|| path.to_owned())
}
