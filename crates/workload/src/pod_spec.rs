//! What the specification of a pod must have, in a pod as in a template: names, images, and volumes for
//! all that is mounted.

use std::collections::HashSet;

use serde_json::{Value, json};

use schema::object::field_error::FieldError;
use schema::object::name::{self, NameRule};

/// The lists of containers that are started with a pod.
pub(crate) const CONTAINER_LISTS: [&str; 2] = ["containers", "initContainers"];

/// A list in an object, or an empty one.
pub(crate) fn list_field<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A text in an object, or an empty one.
pub(crate) fn text_field<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// What is wrong with the specification at this path.
pub fn check_spec(path: &str, spec: &Value, wrong: &mut Vec<FieldError>) {
    let volumes = check_volumes(&format!("{path}.volumes"), list_field(spec, "volumes"), wrong);
    if list_field(spec, "containers").is_empty() {
        wrong.push(FieldError::required(&format!("{path}.containers"), ""));
    }
    let mut names = HashSet::new();
    for list in CONTAINER_LISTS {
        for (at, container) in list_field(spec, list).iter().enumerate() {
            let path = format!("{path}.{list}[{at}]");
            check_container(&path, container, &volumes, wrong);
            let name = text_field(container, "name");
            if !names.insert(name) {
                wrong.push(duplicate(&format!("{path}.name"), name));
            }
        }
    }
    let deadline = spec.get("activeDeadlineSeconds");
    if let Some(seconds) = deadline.filter(|it| it.as_i64().is_some_and(|it| !is_deadline(it))) {
        let why = format!("must be between 1 and {}, inclusive", i32::MAX);
        wrong.push(FieldError::invalid(&format!("{path}.activeDeadlineSeconds"), seconds, &why));
    }
}

/// What is wrong with the images of a pod that may be in a template.
pub fn check_images(path: &str, spec: &Value, wrong: &mut Vec<FieldError>) {
    for list in CONTAINER_LISTS {
        for (at, container) in list_field(spec, list).iter().enumerate() {
            check_image_spaces(&format!("{path}.{list}[{at}].image"), container, wrong);
        }
    }
}

/// Spaces around an image are no part of its name.
pub(crate) fn check_image_spaces(path: &str, container: &Value, wrong: &mut Vec<FieldError>) {
    let image = text_field(container, "image");
    if image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        wrong.push(FieldError::invalid(path, &json!(image), why));
    }
}

fn is_deadline(seconds: i64) -> bool {
    (1..=i64::from(i32::MAX)).contains(&seconds)
}

fn duplicate(path: &str, name: &str) -> FieldError {
    FieldError {
        reason: "FieldValueDuplicate",
        field: path.to_owned(),
        message: format!("Duplicate value: {name:?}"),
    }
}

fn check_label(path: &str, name: &str, wrong: &mut Vec<FieldError>) {
    if name.is_empty() {
        wrong.push(FieldError::required(path, ""));
        return;
    }
    for fault in name::check(NameRule::Label, name) {
        wrong.push(FieldError::invalid(path, &json!(name), &fault));
    }
}

/// Checks volumes; gives the names of those that can be mounted.
fn check_volumes<'a>(
    path: &str,
    volumes: &'a [Value],
    wrong: &mut Vec<FieldError>,
) -> HashSet<&'a str> {
    let mut names = HashSet::new();
    for (at, volume) in volumes.iter().enumerate() {
        let (path, name) = (format!("{path}[{at}].name"), text_field(volume, "name"));
        let before = wrong.len();
        check_label(&path, name, wrong);
        if names.contains(name) {
            wrong.push(duplicate(&path, name));
        }
        if wrong.len() == before {
            names.insert(name);
        }
    }
    names
}

fn check_container(
    path: &str,
    container: &Value,
    volumes: &HashSet<&str>,
    wrong: &mut Vec<FieldError>,
) {
    check_label(&format!("{path}.name"), text_field(container, "name"), wrong);
    if text_field(container, "image").is_empty() {
        wrong.push(FieldError::required(&format!("{path}.image"), ""));
    }
    let mut places = HashSet::new();
    for (at, mount) in list_field(container, "volumeMounts").iter().enumerate() {
        let path = format!("{path}.volumeMounts[{at}]");
        let (name, place) = (text_field(mount, "name"), text_field(mount, "mountPath"));
        if name.is_empty() {
            wrong.push(FieldError::required(&format!("{path}.name"), ""));
        }
        if !volumes.contains(name) {
            wrong.push(FieldError {
                reason: "FieldValueNotFound",
                field: format!("{path}.name"),
                message: format!("Not found: {name:?}"),
            });
        }
        if place.is_empty() {
            wrong.push(FieldError::required(&format!("{path}.mountPath"), ""));
        }
        if !places.insert(place) {
            let field = format!("{path}.mountPath");
            wrong.push(FieldError::invalid(&field, &json!(place), "must be unique"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(spec: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        check_spec("spec", spec, &mut wrong);
        check_images("spec", spec, &mut wrong);
        wrong.iter().map(FieldError::sentence).collect()
    }

    #[test]
    fn a_pod_needs_containers_with_names_and_images() {
        let fine = json!({"containers": [{"name": "c", "image": "i"}]});
        assert_eq!(faults(&fine), [""; 0]);
        assert_eq!(faults(&json!({})), ["spec.containers: Required value"]);
        let nameless = json!({"containers": [{}, {"name": "c", "image": " i"}]});
        assert_eq!(
            faults(&nameless),
            [
                "spec.containers[0].name: Required value",
                "spec.containers[0].image: Required value",
                "spec.containers[1].image: Invalid value: \" i\": must not have leading or trailing \
                 whitespace",
            ]
        );
        let same = json!({
            "containers": [{"name": "c", "image": "i"}, {"name": "c", "image": "i"}],
            "initContainers": [{"name": "c", "image": "i"}],
        });
        assert_eq!(
            faults(&same),
            [
                "spec.containers[1].name: Duplicate value: \"c\"",
                "spec.initContainers[0].name: Duplicate value: \"c\"",
            ]
        );
        let odd = faults(&json!({"containers": [{"name": "C_", "image": "i"}]}));
        assert_eq!(odd.len(), 1);
        let said =
            "spec.containers[0].name: Invalid value: \"C_\": a lowercase RFC 1123 label must";
        assert!(odd[0].starts_with(said), "{odd:?}");
    }

    #[test]
    fn what_is_mounted_is_a_volume_of_the_pod() {
        let mount = |name: &str, place: &str| json!({"name": name, "mountPath": place});
        let pod = |volumes: Value, mounts: Value| {
            let container = json!({"name": "c", "image": "i", "volumeMounts": mounts});
            json!({"volumes": volumes, "containers": [container]})
        };
        let volumes = json!([{"name": "v"}, {"name": "w"}]);
        let mounts = json!([mount("v", "/a"), mount("v", "/b")]);
        assert_eq!(faults(&pod(volumes.clone(), mounts)), [""; 0]);
        let mounts = json!([mount("x", "/a"), mount("v", "/a"), mount("v", "")]);
        assert_eq!(
            faults(&pod(volumes, mounts)),
            [
                "spec.containers[0].volumeMounts[0].name: Not found: \"x\"",
                "spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/a\": must be unique",
                "spec.containers[0].volumeMounts[2].mountPath: Required value",
            ]
        );
        let same = json!([{"name": "v"}, {"name": "v"}, {}]);
        assert_eq!(
            faults(&pod(same, json!([]))),
            [
                "spec.volumes[1].name: Duplicate value: \"v\"",
                "spec.volumes[2].name: Required value",
            ]
        );
    }
}
