//! What may be changed of a pod that is there: little, because its programs run as it says.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::pod_spec::{CONTAINER_LISTS, check_image_spaces, list_field, text_field};
use schema::object::field_error::FieldError;
use schema::object::shortened;

/// What may be changed, in upstream's words.
const CHANGEABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,\
    `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// How many characters are told of a field that was changed.
const TOLD_MAX: usize = 200;

/// What is wrong with a change of a pod's specification. Both are complete.
pub fn check_change(old: &Value, new: &Value, wrong: &mut Vec<FieldError>) {
    for list in CONTAINER_LISTS {
        let (path, containers) = (format!("spec.{list}"), list_field(new, list));
        if containers.len() != list_field(old, list).len() {
            let why = "pod updates may not add or remove containers";
            wrong.push(FieldError::forbidden(&path, why));
            return;
        }
        for (at, container) in containers.iter().enumerate() {
            let path = format!("{path}[{at}].image");
            if text_field(container, "image").is_empty() {
                wrong.push(FieldError::required(&path, ""));
            }
            check_image_spaces(&path, container, wrong);
        }
    }
    if let Some(error) = find_deadline_error(old, new) {
        let is_set = new.get("activeDeadlineSeconds").is_some();
        wrong.push(error);
        if is_set {
            return;
        }
    }
    check_tolerations(list_field(old, "tolerations"), list_field(new, "tolerations"), wrong);
    check_gates(list_field(old, "schedulingGates"), list_field(new, "schedulingGates"), wrong);
    check_selector(old, new, wrong);
    let (before, after) = (without_empty(old), without_empty(&with_old_values(old, new)));
    if before != after {
        let told = tell_changes(&before, &after).join("\n");
        let why = format!("pod updates may not change fields other than {CHANGEABLE}\n{told}");
        wrong.push(FieldError::forbidden("spec", &why));
    }
}

/// A deadline may be set, and made shorter.
fn find_deadline_error(old: &Value, new: &Value) -> Option<FieldError> {
    const PATH: &str = "spec.activeDeadlineSeconds";
    let deadline = |spec: &Value| spec.get("activeDeadlineSeconds").and_then(Value::as_i64);
    match (deadline(old), deadline(new)) {
        (Some(_), None) => {
            let why = "must not update from a positive integer to nil value";
            Some(FieldError::invalid(PATH, &Value::Null, why))
        }
        (_, Some(after)) if !(0..=i64::from(i32::MAX)).contains(&after) => {
            let why = format!("must be between 0 and {}, inclusive", i32::MAX);
            Some(FieldError::invalid(PATH, &json!(after), &why))
        }
        (Some(before), Some(after)) if before < after => {
            let why = "must be less than or equal to previous value";
            Some(FieldError::invalid(PATH, &json!(after), why))
        }
        _ => None,
    }
}

/// Tolerations are only added; those that are there may last another time.
fn check_tolerations(old: &[Value], new: &[Value], wrong: &mut Vec<FieldError>) {
    let timeless = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Value::Object(fields) = &mut toleration {
            fields.shift_remove("tolerationSeconds");
            fields.sort_keys();
        }
        toleration.to_string()
    };
    let there: HashSet<String> = new.iter().map(timeless).collect();
    if !old.iter().all(|one| there.contains(&timeless(one))) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        wrong.push(FieldError::forbidden("spec.tolerations", why));
    }
}

/// Gates are only opened.
fn check_gates(old: &[Value], new: &[Value], wrong: &mut Vec<FieldError>) {
    let there: HashSet<&str> = old.iter().map(|gate| text_field(gate, "name")).collect();
    for (at, gate) in new.iter().enumerate() {
        let name = text_field(gate, "name");
        if !there.contains(name) {
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            let path = format!("spec.schedulingGates[{at}].name");
            wrong.push(FieldError::forbidden(&path, &why));
        }
    }
}

fn is_gated(spec: &Value) -> bool {
    !list_field(spec, "schedulingGates").is_empty()
}

/// The nodes for a pod that waits at a gate may be narrowed.
fn check_selector(old: &Value, new: &Value, wrong: &mut Vec<FieldError>) {
    let selector = |spec: &Value| spec.get("nodeSelector").cloned().unwrap_or_default();
    let (before, after) = (selector(old), selector(new));
    let mut labels = before.as_object().into_iter().flatten();
    if is_gated(old) && !labels.all(|(label, value)| after.get(label) == Some(value)) {
        let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        wrong.push(FieldError::invalid("spec.nodeSelector", &after, why));
    }
}

/// The new specification, with the old values where they may be changed.
fn with_old_values(old: &Value, new: &Value) -> Value {
    let mut new = new.clone();
    for list in CONTAINER_LISTS {
        let containers = new.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, before) in containers.zip(list_field(old, list)) {
            copy_field(before, container, "image");
        }
    }
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        copy_field(old, &mut new, field);
    }
    let grace = |spec: &Value| spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64);
    if grace(old).is_some_and(|seconds| seconds < 0) && grace(&new) == Some(1) {
        copy_field(old, &mut new, "terminationGracePeriodSeconds");
    }
    if is_gated(old) {
        copy_field(old, &mut new, "nodeSelector");
        copy_field(old, &mut new, "affinity");
    }
    new
}

fn copy_field(from: &Value, to: &mut Value, field: &str) {
    let Value::Object(to) = to else { return };
    match from.get(field) {
        Some(value) => to.insert(field.to_owned(), value.clone()),
        None => to.shift_remove(field),
    };
}

/// The same without what is as good as left out.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().map(|(name, value)| (name.clone(), without_empty(value)));
            Value::Object(kept.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_empty).collect()),
        other => other.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// The fields that differ, as they were and as they were to become.
fn tell_changes(old: &Value, new: &Value) -> Vec<String> {
    let none = Map::new();
    let (before, after) = (old.as_object().unwrap_or(&none), new.as_object().unwrap_or(&none));
    let added = after.keys().filter(|name| !before.contains_key(*name));
    let mut lines = Vec::new();
    for name in before.keys().chain(added) {
        let (was, is) = (before.get(name), after.get(name));
        if was == is {
            continue;
        }
        for (sign, value) in [("-", was), ("+", is)] {
            if let Some(value) = value {
                let text = value.to_string();
                lines.push(format!("{sign} spec.{name}: {}", shortened(&text, TOLD_MAX)));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(old: &Value, new: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        check_change(old, new, &mut wrong);
        wrong.iter().map(FieldError::sentence).collect()
    }

    /// A specification with a field more.
    fn spec(field: &str, value: Value) -> Value {
        let mut spec = json!({
            "containers": [{"name": "c", "image": "i:1", "resources": {}}],
            "initContainers": [{"name": "i", "image": "i:1"}], "nodeName": "one",
        });
        spec[field] = value;
        spec
    }

    #[test]
    fn images_deadlines_and_more_tolerations_may_be_changed() {
        let old = spec("tolerations", json!([{"key": "a", "operator": "Exists"}]));
        let mut new = old.clone();
        new["containers"][0]["image"] = json!("i:2");
        new["initContainers"][0]["image"] = json!("i:2");
        new["activeDeadlineSeconds"] = json!(60);
        new["tolerations"] = json!([
            {"operator": "Exists", "key": "a", "tolerationSeconds": 5}, {"key": "b"},
        ]);
        // Nothing, in other words.
        new["volumes"] = json!([]);
        new["containers"][0]["resources"] = Value::Null;
        assert_eq!(faults(&old, &new), [""; 0]);
        let mut shorter = new.clone();
        shorter["activeDeadlineSeconds"] = json!(30);
        assert_eq!(faults(&new, &shorter), [""; 0]);
        let path = "spec.activeDeadlineSeconds: Invalid value";
        let longer = format!("{path}: 60: must be less than or equal to previous value");
        assert_eq!(faults(&shorter, &new), [longer]);
        let mut gone = new.clone();
        gone.as_object_mut().unwrap().shift_remove("activeDeadlineSeconds");
        let never = format!("{path}: null: must not update from a positive integer to nil value");
        assert_eq!(faults(&new, &gone), [never]);
        let why = "existing toleration can not be modified except its tolerationSeconds";
        let lost = spec("tolerations", json!([{"key": "b"}]));
        assert_eq!(faults(&old, &lost), [format!("spec.tolerations: Forbidden: {why}")]);
        let short = |seconds: i64| spec("terminationGracePeriodSeconds", json!(seconds));
        assert_eq!(faults(&short(-5), &short(1)), [""; 0]);
        assert_eq!(faults(&short(5), &short(1)).len(), 1);
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        let old = spec("restartPolicy", json!("Always"));
        for (field, value) in [
            ("nodeName", json!("two")),
            ("restartPolicy", json!("Never")),
            ("volumes", json!([{"name": "v"}])),
            ("containers", json!([{"name": "c", "image": "i:1", "args": ["x"]}])),
        ] {
            let mut new = old.clone();
            new[field] = value;
            let said = faults(&old, &new).join("");
            let begin = "spec: Forbidden: pod updates may not change fields other than \
                `spec.containers[*].image`,`spec.initContainers[*].image`,";
            assert!(said.starts_with(begin), "{said}");
            assert!(said.contains(&format!("\n+ spec.{field}: ")), "{said}");
        }
        let more = spec("containers", json!([{"name": "c"}, {"name": "d"}]));
        let why = "pod updates may not add or remove containers";
        assert_eq!(faults(&old, &more), [format!("spec.containers: Forbidden: {why}")]);
    }

    #[test]
    fn gates_are_only_opened_and_a_pod_behind_one_may_be_told_its_nodes() {
        let gated = spec("schedulingGates", json!([{"name": "a"}, {"name": "b"}]));
        assert_eq!(faults(&gated, &spec("schedulingGates", json!([{"name": "b"}]))), [""; 0]);
        let why = "only deletion is allowed, but found new scheduling gate 'c'";
        let more = spec("schedulingGates", json!([{"name": "b"}, {"name": "c"}]));
        let said = format!("spec.schedulingGates[1].name: Forbidden: {why}");
        assert_eq!(faults(&gated, &more), [said]);
        let mut narrow = gated.clone();
        narrow["nodeSelector"] = json!({"disk": "fast"});
        assert_eq!(faults(&gated, &narrow), [""; 0]);
        assert_eq!(faults(&narrow, &gated).len(), 1);
    }
}
