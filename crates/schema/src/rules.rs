//! Rules: `x-kubernetes-validations`
//!
//! A rule is an expression about a value, `self`, and maybe about what it was before, `oldSelf`.
//! This module knows which values rules apply to, what each value was before (by field, and by
//! key in lists of type map), which rules are left out for want of an old value, what a broken
//! rule says and where, which are forgiven because nothing changed, and how much all of them
//! together may cost.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use serde_json::Value;

use super::error::{ERRORS_MAX, FieldError, Path};
use super::node::{Flags, Kind, Node, Rule};
use super::validate::{Correlated, Past, Twins};
use crate::cel::value::{Shape, Trouble, Val};
use crate::cel::{Binding, CALL_LIMIT, Program};

/// What all rules of one write may cost together; upstream's limit.
const BUDGET: u64 = 10_000_000;
/// The longest message an expression may make.
const MESSAGE_MAX: usize = 5_120;

/// The expressions of a rule, read when first needed. Says nothing about the rule itself:
/// two rules are equal if their texts are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Compiled(OnceLock<std::sync::Arc<Programs>>);

#[derive(Debug)]
struct Programs {
    rule: Result<Program, String>,
    message: Option<Program>,
    uses_old: bool,
}

impl PartialEq for Compiled {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Compiled {}

impl Hash for Compiled {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Rule {
    fn programs(&self) -> &Programs {
        self.compiled.0.get_or_init(|| {
            let rule = Program::read(&self.expression);
            let uses_old = rule.as_ref().is_ok_and(|program| program.mentions("oldSelf"));
            let message = self.message_expression.as_deref();
            let message = message.and_then(|text| Program::read(text).ok());
            std::sync::Arc::new(Programs { rule, message, uses_old })
        })
    }
}

/// What the rules say about an object.
#[derive(Debug, Default)]
pub struct Judged {
    /// What is wrong.
    pub errors: Vec<FieldError>,
    /// What was wrong before and is forgiven.
    pub forgiven: Vec<FieldError>,
}

/// Applies all rules at or below a value.
pub(crate) fn check(node: &Node, new: &Value, old: Option<&Value>) -> Judged {
    let current = old.map(|old| Correlated::new(node, new, old));
    let mut walk = Walk { judged: Judged::default(), budget: BUDGET, unchanged: HashMap::new() };
    let place = Place { path: Path::NIL, root: true };
    // Running out of the budget ends the walk; what was found so far stands.
    let _ = walk.value(node, new, old, &place, Ratchet { current, parent: None });
    walk.judged
}

/// The nearest place with a comparable past.
#[derive(Clone, Copy)]
struct Ratchet<'a> {
    current: Option<Correlated<'a>>,
    parent: Option<Correlated<'a>>,
}

impl<'a> Ratchet<'a> {
    fn below(self, step: impl Fn(Correlated<'a>) -> Option<Correlated<'a>>) -> Self {
        match self.current {
            Some(current) => Self { current: step(current), parent: Some(current) },
            None => self,
        }
    }

    fn element(self, twins: Option<&Twins<'a>>, index: usize) -> Self {
        self.below(|_| twins.and_then(|twins| twins.get(index)))
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

/// Where a value is.
struct Place {
    path: Path,
    /// At the root of a resource, whose identity rules can see.
    root: bool,
}

impl Place {
    fn of(path: Path, node: &Node) -> Self {
        Self { path, root: node.has(Flags::EMBEDDED) }
    }
}

struct Walk {
    judged: Judged,
    budget: u64,
    /// Whether places changed, by address: a list is asked about for each of its elements.
    unchanged: HashMap<usize, bool>,
}

/// The budget is spent.
struct Spent;

impl Walk {
    fn value(
        &mut self,
        node: &Node,
        new: &Value,
        old: Option<&Value>,
        place: &Place,
        ratchet: Ratchet<'_>,
    ) -> Result<(), Spent> {
        if new.is_null() || !node.has(Flags::HOLDS_RULES) {
            return Ok(());
        }
        let old = old.filter(|old| !old.is_null());
        for rule in node.rules.iter().flatten() {
            self.rule(rule, node, (new, old), place, ratchet)?;
        }
        match new {
            Value::Object(map) => {
                let mut names: Vec<&String> = map.keys().collect();
                names.sort();
                for name in names {
                    let old = old.and_then(|old| old.get(name));
                    let ratchet = ratchet.field(name);
                    if let Some(schema) = node.additional_schema() {
                        let place = Place::of(place.path.key(name), schema);
                        self.value(schema, &map[name], old, &place, ratchet)?;
                    }
                    if let Some(schema) = node.property(name) {
                        let place = Place::of(place.path.child(name), schema);
                        self.value(schema, &map[name], old, &place, ratchet)?;
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = node.items.as_deref() else { return Ok(()) };
                let past = old.and_then(Value::as_array).and_then(|old| Past::of(node, old));
                let twins = ratchet.current.and_then(Correlated::twins);
                for (i, item) in items.iter().enumerate() {
                    let old = past.as_ref().and_then(|past| past.find(item));
                    let ratchet = ratchet.element(twins.as_ref(), i);
                    let place = Place::of(place.path.index(i), schema);
                    self.value(schema, item, old, &place, ratchet)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn rule(
        &mut self,
        rule: &Rule,
        node: &Node,
        (value, old): (&Value, Option<&Value>),
        place: &Place,
        ratchet: Ratchet<'_>,
    ) -> Result<(), Spent> {
        let programs = rule.programs();
        let optional = rule.optional_old_self == Some(true);
        if programs.uses_old && old.is_none() && !optional {
            return Ok(());
        }
        let kind = node.kind.map_or("", Kind::name);
        let program = match &programs.rule {
            Ok(program) => program,
            Err(error) => {
                let detail = format!("rule compile error: {error}");
                self.judged.errors.push(FieldError::invalid(&place.path, kind, detail));
                return Ok(());
            }
        };
        let names = bindings((value, old), Shape::Typed(node, place.root));
        let seen = if optional { optional_old(&names) } else { names.clone() };
        let outcome = program.truth(&seen, CALL_LIMIT);
        self.spend(outcome.cost, &place.path, kind, "validation failed")?;
        match outcome.value {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(trouble) => return self.trouble(trouble, rule, kind, &place.path),
        }
        let path = match rule.field_path.as_deref() {
            Some(field) => place.path.child(&normalized(field)),
            None => place.path.clone(),
        };
        let forgiven = !programs.uses_old && self.forgives(ratchet);
        let detail = match &programs.message {
            Some(program) => self.message(program, &names, rule, kind, &path)?,
            None => None,
        };
        let detail = detail.unwrap_or_else(|| match rule.message {
            None => format!("failed rule: {}", named(rule)),
            Some(_) => named(rule).to_owned(),
        });
        let shown = (!matches!(kind, "object" | "array")).then(|| value.clone());
        let error = error(rule, &path, shown, detail);
        if !forgiven {
            self.judged.errors.push(error);
        } else if self.judged.forgiven.len() < ERRORS_MAX {
            self.judged.forgiven.push(error);
        }
        if self.judged.errors.len() >= ERRORS_MAX { Err(Spent) } else { Ok(()) }
    }

    /// Whether a broken rule is forgiven because nothing changed there.
    fn forgives(&mut self, ratchet: Ratchet<'_>) -> bool {
        let Some(place) = ratchet.current.or(ratchet.parent) else { return false };
        *self.unchanged.entry(place.address()).or_insert_with(|| place.unchanged())
    }

    /// Takes what an evaluation cost from the budget.
    fn spend(&mut self, cost: u64, path: &Path, kind: &str, what: &str) -> Result<(), Spent> {
        if cost > self.budget {
            let detail = format!(
                "{what} due to running out of cost budget, no further validation rules will be run"
            );
            self.judged.errors.push(FieldError::invalid(path, kind, detail));
            return Err(Spent);
        }
        self.budget -= cost;
        Ok(())
    }

    /// Says that a rule could not be evaluated.
    fn trouble(
        &mut self,
        trouble: Trouble,
        rule: &Rule,
        kind: &str,
        path: &Path,
    ) -> Result<(), Spent> {
        let (detail, last) = match trouble {
            Trouble::Cost => {
                let why = "'operation cancelled: actual cost limit exceeded': no further \
                           validation rules will be run due to call cost exceeds limit for rule";
                (format!("{why}: {}", named(rule)), true)
            }
            Trouble::Failed(error) if error.starts_with("no such overload") => {
                let why = "call arguments did not match a supported operator, function or macro \
                           signature for rule";
                (format!("'{error}': {why}: {}", named(rule)), false)
            }
            Trouble::Failed(error) => (format!("{error} evaluating rule: {}", named(rule)), false),
        };
        self.judged.errors.push(FieldError::invalid(path, kind, detail));
        if last { Err(Spent) } else { Ok(()) }
    }

    /// The message an expression makes, if it makes a good one.
    fn message(
        &mut self,
        program: &Program,
        names: &[Binding<'_>],
        rule: &Rule,
        kind: &str,
        path: &Path,
    ) -> Result<Option<String>, Spent> {
        let outcome = program.text(names, CALL_LIMIT);
        self.spend(outcome.cost, path, kind, "messageExpression evaluation failed")?;
        match outcome.value {
            Ok(message) => {
                let message = message.trim();
                let good =
                    !message.is_empty() && !message.contains('\n') && message.len() <= MESSAGE_MAX;
                Ok(good.then(|| message.to_owned()))
            }
            Err(Trouble::Cost) => {
                let text = rule.message_expression.as_deref().unwrap_or_default();
                let why = "no further validation rules will be run due to call cost exceeds limit \
                           for messageExpression";
                let detail = format!("{why}: {}", super::quote(text));
                self.judged.errors.push(FieldError::invalid(path, kind, detail));
                Err(Spent)
            }
            Err(Trouble::Failed(_)) => Ok(None),
        }
    }
}

/// `self`, and `oldSelf` if there is one.
fn bindings<'a>(
    (value, old): (&'a Value, Option<&'a Value>),
    shape: Shape<'a>,
) -> Vec<Binding<'a>> {
    let old = old.map(|old| ("oldSelf", Val::read(old, shape)));
    [("self", Val::read(value, shape))].into_iter().chain(old).collect()
}

/// The same names, with `oldSelf` as an optional.
fn optional_old<'a>(names: &[Binding<'a>]) -> Vec<Binding<'a>> {
    let old = names.iter().find(|(name, _)| *name == "oldSelf");
    let old =
        old.map_or(Val::Optional(None), |(_, old)| Val::some(old.clone().unwrap_or(Val::Null)));
    let rest = names.iter().filter(|(name, _)| *name != "oldSelf").cloned();
    rest.chain([("oldSelf", Ok(old))]).collect()
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
    error.bad_value = value;
    error
}
