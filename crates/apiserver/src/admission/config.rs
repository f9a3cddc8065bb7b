//! Which webhooks there are, and which of them a write concerns.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde_json::Value;

use super::Action;
use crate::Server;
use crate::kind::Kind;
use schema::cel::{self, Program, Trouble};
use schema::object::selector::Labels;

/// The group of the configurations.
pub(super) const GROUP: &str = "admissionregistration.k8s.io";
/// What the conditions of one webhook may cost together; upstream's limit.
const CONDITIONS_LIMIT: u64 = 2_500_000;

/// The longest anybody waits for a webhook, in seconds; configurations cannot say more.
const SECONDS_MAX: u64 = 30;

/// What webhooks of a sort may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Mutating,
    Validating,
}

/// The configured webhooks, read again when a configuration changed.
#[derive(Default)]
pub(crate) struct Hooks {
    mutating: RwLock<Known>,
    validating: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    /// The configurations with the versions they were read at.
    seen: Vec<(String, u64)>,
    hooks: Arc<Vec<Arc<Hook>>>,
}

impl Hooks {
    /// The webhooks of a sort, by the names of their configurations.
    pub(crate) fn of(&self, server: &Server, sort: Sort) -> Arc<Vec<Arc<Hook>>> {
        let (slot, plural) = match sort {
            Sort::Mutating => (&self.mutating, "mutatingwebhookconfigurations"),
            Sort::Validating => (&self.validating, "validatingwebhookconfigurations"),
        };
        let Ok(snapshot) = server.log.list(&format!("{plural}.{GROUP}/"), None) else {
            return Arc::default();
        };
        if snapshot.entries.is_empty() {
            return Arc::default();
        }
        let seen: Vec<(String, u64)> =
            snapshot.entries.iter().map(|(key, entry)| (key.to_string(), entry.version)).collect();
        {
            let known = slot.read().unwrap_or_else(PoisonError::into_inner);
            if known.seen == seen {
                return Arc::clone(&known.hooks);
            }
        }
        let mut hooks = Vec::new();
        for (_, entry) in &snapshot.entries {
            let Ok(object) = serde_json::from_slice::<Value>(&entry.value) else { continue };
            let list = object.get("webhooks").and_then(Value::as_array);
            hooks.extend(list.into_iter().flatten().map(|hook| Arc::new(Hook::read(hook))));
        }
        let hooks = Arc::new(hooks);
        *slot.write().unwrap_or_else(PoisonError::into_inner) =
            Known { seen, hooks: Arc::clone(&hooks) };
        hooks
    }
}

/// One webhook.
pub(crate) struct Hook {
    pub(super) name: String,
    pub(super) client: Value,
    rules: Vec<Value>,
    /// Whether a write fails if it cannot be asked.
    pub(super) fail: bool,
    /// Whether only the versions it names concern it.
    exact: bool,
    namespaces: Labels,
    objects: Labels,
    conditions: Vec<(String, Result<Program, String>)>,
    pub(super) seconds: u64,
    /// Whether it wants to be asked again.
    pub(super) reinvoke: bool,
}

impl Hook {
    fn read(hook: &Value) -> Self {
        let text = |field: &str| hook.get(field).and_then(Value::as_str).unwrap_or_default();
        let list =
            |field: &str| hook.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
        let condition = |one: &Value| {
            let text = |field: &str| one.get(field).and_then(Value::as_str).unwrap_or_default();
            (text("expression").to_owned(), Program::read(text("expression")))
        };
        Self {
            name: text("name").to_owned(),
            client: hook.get("clientConfig").cloned().unwrap_or_default(),
            rules: list("rules"),
            fail: text("failurePolicy") != "Ignore",
            exact: text("matchPolicy") == "Exact",
            namespaces: selector(hook.get("namespaceSelector")),
            objects: selector(hook.get("objectSelector")),
            conditions: list("matchConditions").iter().map(condition).collect(),
            seconds: hook.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(10),
            reinvoke: text("reinvocationPolicy") == "IfNeeded",
        }
    }

    pub(super) fn timeout(&self) -> Duration {
        Duration::from_secs(self.seconds.clamp(1, SECONDS_MAX))
    }

    /// The kind, in the version it is to be asked in, if a write concerns it.
    pub(super) fn concerns(&self, server: &Server, action: &Action<'_>) -> Option<Arc<Kind>> {
        let kind = &action.request.kind;
        let found = if self.matches(kind, action) {
            Arc::clone(kind)
        } else if self.exact {
            return None;
        } else {
            let versions = server.kinds.versions(kind);
            versions.into_iter().find(|other| self.matches(other, action))?
        };
        let selected = self.selects_namespace(server, action) && self.selects_object(action);
        selected.then_some(found)
    }

    fn matches(&self, kind: &Kind, action: &Action<'_>) -> bool {
        self.rules.iter().any(|rule| {
            let has = |field: &str, wanted: &str| {
                let list = rule.get(field).and_then(Value::as_array);
                list.into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .any(|one| one == "*" || one == wanted)
            };
            let scope = rule.get("scope").and_then(Value::as_str).unwrap_or("*");
            let scoped = match scope {
                "Namespaced" => kind.namespaced,
                "Cluster" => !kind.namespaced,
                _ => true,
            };
            let subresource = action.request.target.subresource.as_deref().unwrap_or_default();
            scoped
                && has("operations", action.operation)
                && has("apiGroups", &kind.group)
                && has("apiVersions", &kind.version)
                && rule
                    .get("resources")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .any(|one| resource_matches(one, &kind.plural, subresource))
        })
    }

    /// Whether the namespace the object is in is among those that concern it.
    fn selects_namespace(&self, server: &Server, action: &Action<'_>) -> bool {
        if self.namespaces.is_empty() {
            return true;
        }
        let kind = &action.request.kind;
        if kind.group.is_empty() && kind.kind == "Namespace" {
            let object = action.object.as_ref().or(action.old.as_ref());
            return self.namespaces.matches(object.and_then(labels));
        }
        let Some(namespace) = action.request.target.namespace.as_deref() else { return true };
        let stored = server
            .kinds
            .find("", "v1", "namespaces")
            .and_then(|kind| server.log.get(&kind.key(None, namespace)));
        let object: Value =
            stored.and_then(|entry| serde_json::from_slice(&entry.value).ok()).unwrap_or_default();
        self.namespaces.matches(labels(&object))
    }

    fn selects_object(&self, action: &Action<'_>) -> bool {
        self.objects.is_empty()
            || [&action.object, &action.old]
                .into_iter()
                .flatten()
                .any(|object| self.objects.matches(labels(object)))
    }

    /// Whether all conditions hold; one that cannot be evaluated counts only if none is false.
    pub(super) fn conditions(&self, request: &Value) -> Result<bool, String> {
        let null = Value::Null;
        let part = |field: &str| request.get(field).unwrap_or(&null);
        let names =
            [("request", request), ("object", part("object")), ("oldObject", part("oldObject"))];
        let (mut trouble, mut left) = (Vec::new(), CONDITIONS_LIMIT);
        for (text, program) in &self.conditions {
            let program = match program {
                Ok(program) => program,
                Err(error) => {
                    trouble.push(format!("compilation error: {error}"));
                    continue;
                }
            };
            let outcome = program.holds(&names, left.min(cel::CALL_LIMIT));
            left = left.saturating_sub(outcome.cost);
            match outcome.value {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(Trouble::Cost) => trouble.push(format!(
                    "validation failed due to running out of cost budget, no further validation \
                     rules will be run: {text}"
                )),
                Err(Trouble::Failed(why)) => {
                    trouble.push(format!("expression '{text}' resulted in error: {why}"));
                }
            }
        }
        if trouble.is_empty() { Ok(true) } else { Err(trouble.join(", ")) }
    }
}

/// `pods`, `pods/status`, `pods/*`, `*`, `*/scale` or `*/*`.
fn resource_matches(pattern: &str, plural: &str, subresource: &str) -> bool {
    let (resource, part) = pattern.split_once('/').unwrap_or((pattern, ""));
    if pattern == "*" {
        return subresource.is_empty();
    }
    let resource = resource == "*" || resource == plural;
    resource && (part == subresource || part == "*")
}

fn labels(object: &Value) -> Option<&serde_json::Map<String, Value>> {
    object.pointer("/metadata/labels").and_then(Value::as_object)
}

/// A selector, from its form in objects.
fn selector(value: Option<&Value>) -> Labels {
    let mut parts = Vec::new();
    let value = value.unwrap_or(&Value::Null);
    for (key, wanted) in value.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        parts.push(format!("{key}={}", wanted.as_str().unwrap_or_default()));
    }
    for one in value.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let text = |field: &str| one.get(field).and_then(Value::as_str).unwrap_or_default();
        let values: Vec<&str> = one
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let (key, values) = (text("key"), values.join(","));
        parts.push(match text("operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        });
    }
    Labels::parse(&parts.join(",")).unwrap_or_default()
}
