//! The seam for rules (`x-kubernetes-validations`)
//!
//! A rule is an expression about a value, `self`, and maybe about what it was before, `oldSelf`.
//! This module knows everything about rules but how to evaluate them: which values they apply
//! to, what each value was before (by field, and by key in lists of type map), which rules are
//! left out for want of an old value, what a broken rule says and where, and which are forgiven
//! because nothing changed. An [`Evaluator`] is handed in for the rest.

use serde_json::Value;

use super::error::{ErrorKind, FieldError, Path};
use super::node::{Flags, ListType, Node, Rule};
use super::validate::{Correlated, find};

/// What evaluates expressions.
pub trait Evaluator {
    /// Whether an expression refers to `oldSelf`.
    fn uses_old_self(&mut self, expression: &str) -> bool;

    /// Evaluates the expression of a rule.
    fn holds(&mut self, expression: &str, scope: &Scope<'_>) -> Verdict;

    /// Evaluates the expression of a message; nothing if that fails.
    fn message(&mut self, expression: &str, scope: &Scope<'_>) -> Option<String>;
}

/// What an expression can see.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// `self`.
    pub value: &'a Value,
    /// `oldSelf`.
    pub old: Option<&'a Value>,
    /// Whether `oldSelf` is to be an optional.
    pub optional_old: bool,
}

/// What came of evaluating a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// True.
    Holds,
    /// False.
    Broken,
    /// It could not be evaluated; what the evaluator says.
    Failed(String),
}

/// Applies all rules at or below a value.
pub(crate) fn check(
    node: &Node,
    new: &Value,
    old: Option<&Value>,
    evaluator: &mut dyn Evaluator,
) -> Vec<FieldError> {
    let current = old.map(|old| Correlated::new(node, new, old));
    let mut walk = Walk { evaluator, errors: Vec::new() };
    walk.value(node, new, old, &Path::NIL, Ratchet { current, parent: None });
    walk.errors
}

/// The nearest place with a comparable past.
#[derive(Clone, Copy)]
struct Ratchet<'a> {
    current: Option<Correlated<'a>>,
    parent: Option<Correlated<'a>>,
}

impl<'a> Ratchet<'a> {
    fn forgives(self) -> bool {
        self.current.or(self.parent).is_some_and(Correlated::unchanged)
    }

    fn below(self, step: impl Fn(Correlated<'a>) -> Option<Correlated<'a>>) -> Self {
        match self.current {
            Some(current) => Self { current: step(current), parent: Some(current) },
            None => self,
        }
    }

    fn field(self, name: &str) -> Self {
        // Both objects are of one version: its type does not show what changed.
        let type_meta = matches!(name, "apiVersion" | "kind");
        if self.current.is_some() && self.parent.is_none() && type_meta {
            return Self { current: None, parent: None };
        }
        self.below(|current| current.key(name))
    }
}

struct Walk<'e> {
    evaluator: &'e mut dyn Evaluator,
    errors: Vec<FieldError>,
}

impl Walk<'_> {
    fn value(
        &mut self,
        node: &Node,
        new: &Value,
        old: Option<&Value>,
        path: &Path,
        ratchet: Ratchet<'_>,
    ) {
        if new.is_null() || !node.has(Flags::HOLDS_RULES) {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        for rule in node.rules.iter().flatten() {
            self.rule(rule, node, (new, old), path, ratchet);
        }
        match new {
            Value::Object(map) => {
                let mut names: Vec<&String> = map.keys().collect();
                names.sort();
                for name in names {
                    let old = old.and_then(|old| old.get(name));
                    let ratchet = ratchet.field(name);
                    if let Some(schema) = node.additional_schema() {
                        self.value(schema, &map[name], old, &path.key(name), ratchet);
                    }
                    if let Some(schema) = node.property(name) {
                        self.value(schema, &map[name], old, &path.child(name), ratchet);
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = node.items.as_deref() else { return };
                for (i, item) in items.iter().enumerate() {
                    let old = past_of(node, item, old);
                    let ratchet = ratchet.below(|current| current.index(i));
                    self.value(schema, item, old, &path.index(i), ratchet);
                }
            }
            _ => {}
        }
    }

    fn rule(
        &mut self,
        rule: &Rule,
        node: &Node,
        (value, old): (&Value, Option<&Value>),
        path: &Path,
        ratchet: Ratchet<'_>,
    ) {
        let uses_old = self.evaluator.uses_old_self(&rule.expression);
        let optional_old = rule.optional_old_self == Some(true);
        if uses_old && old.is_none() && !optional_old {
            return;
        }
        let scope = Scope { value, old, optional_old };
        let kind = node.kind.map_or("", super::node::Kind::name);
        match self.evaluator.holds(&rule.expression, &scope) {
            Verdict::Holds => return,
            Verdict::Broken => {}
            Verdict::Failed(error) => {
                let detail = format!("{error} evaluating rule: {}", named(rule));
                return self.errors.push(FieldError::invalid(path, kind, detail));
            }
        }
        if !uses_old && ratchet.forgives() {
            return;
        }
        let plain = Scope { optional_old: false, ..scope };
        let expression = rule.message_expression.as_deref();
        let message =
            expression.and_then(|e| self.evaluator.message(e, &plain)).filter(|message| {
                let message = message.trim();
                !message.is_empty() && !message.contains('\n') && message.len() <= 5_120
            });
        let detail = match message {
            Some(message) => message.trim().to_owned(),
            None if rule.message.is_none() => format!("failed rule: {}", named(rule)),
            None => named(rule).to_owned(),
        };
        let path = match rule.field_path.as_deref() {
            Some(field) => path.child(&normalized(field)),
            None => path.clone(),
        };
        let shown = (!matches!(kind, "object" | "array")).then(|| value.clone());
        self.errors.push(error(rule, &path, shown, detail));
    }
}

/// What an element of a map-list was before.
fn past_of<'a>(node: &Node, item: &Value, old: Option<&'a Value>) -> Option<&'a Value> {
    let Some(ListType::Map(keys)) = node.list.as_deref() else { return None };
    find(keys, item.as_object()?, old?.as_array()?)
}

/// A rule in an error: its message, or itself.
fn named(rule: &Rule) -> &str {
    rule.message.as_deref().unwrap_or(&rule.expression).trim()
}

/// `.a['b']` as a path.
fn normalized(field: &str) -> String {
    let dotted = field.trim().replace("['", ".").replace("']", "");
    dotted.strip_prefix('.').unwrap_or(&dotted).to_owned()
}

fn error(rule: &Rule, path: &Path, value: Option<Value>, detail: String) -> FieldError {
    let mut error = match rule.reason.as_deref() {
        Some("FieldValueForbidden") => return FieldError::forbidden(path, detail),
        Some("FieldValueRequired") => return FieldError::required(path, detail),
        Some("FieldValueDuplicate") => FieldError::duplicate(path, Value::Null),
        _ => FieldError::invalid(path, Value::Null, detail),
    };
    debug_assert!(matches!(error.kind, ErrorKind::Invalid | ErrorKind::Duplicate));
    error.bad_value = value;
    error
}
