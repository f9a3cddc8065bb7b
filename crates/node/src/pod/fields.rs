//! What a pod is told of itself: fields of the object, and what it may use.

use super::quantity::{divide_up, parse_milli};
use super::{PodSurroundings, find_container};
use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};
use std::collections::BTreeMap;

/// The text of a field of a pod (`metadata.labels['a']`, `status.podIP`).
pub fn field_text(pod: &Pod, path: &str, place: &PodSurroundings) -> Result<String, String> {
    let meta = &pod.metadata;
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let entry = |map: &Option<BTreeMap<String, String>>, key: &str| {
        map.as_ref().and_then(|all| all.get(key)).cloned().unwrap_or_default()
    };
    if let Some((map, key)) = subscript(path) {
        return match map {
            "metadata.labels" => Ok(entry(&meta.labels, key)),
            "metadata.annotations" => Ok(entry(&meta.annotations, key)),
            _ => Err(format!("fieldPath {path:?} does not support subscript")),
        };
    }
    Ok(match path {
        "metadata.name" => text(&meta.name),
        "metadata.namespace" => text(&meta.namespace),
        "metadata.uid" => text(&meta.uid),
        "metadata.labels" => map_lines(meta.labels.as_ref()),
        "metadata.annotations" => map_lines(meta.annotations.as_ref()),
        "spec.nodeName" => place.node_name.clone(),
        "spec.serviceAccountName" => {
            pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone()).unwrap_or_default()
        }
        "status.hostIP" | "status.hostIPs" => place.host_address.to_string(),
        "status.podIP" | "status.podIPs" => place.address.to_string(),
        _ => return Err(format!("unsupported fieldPath: {path}")),
    })
}

fn subscript(path: &str) -> Option<(&str, &str)> {
    let (map, rest) = path.split_once("['")?;
    Some((map, rest.strip_suffix("']")?))
}

/// Labels or annotations as a file has them: sorted, with values quoted as Go does.
fn map_lines(map: Option<&BTreeMap<String, String>>) -> String {
    let lines = map.into_iter().flatten().map(|(key, value)| format!("{key}={value:?}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// What a container may use of something, in units of the divisor.
pub fn resource_text(
    pod: &Pod,
    owner: Option<&Container>,
    wish: &ResourceFieldSelector,
    place: &PodSurroundings,
) -> Result<String, String> {
    let spec = pod.spec.as_ref();
    let container = match &wish.container_name {
        Some(name) if !name.is_empty() => spec.and_then(|spec| find_container(spec, name)),
        _ => owner,
    };
    let container = container.ok_or_else(|| {
        format!("container {} not found", wish.container_name.as_deref().unwrap_or_default())
    })?;
    let resources = container.resources.as_ref();
    let (kind, name) = wish.resource.split_once('.').unwrap_or(("", ""));
    let map = match kind {
        "limits" => resources.and_then(|all| all.limits.as_ref()),
        "requests" => resources.and_then(|all| all.requests.as_ref()),
        _ => return Err(format!("unsupported container resource : {}", wish.resource)),
    };
    let said = map.and_then(|all| all.get(name)).and_then(|amount| parse_milli(&amount.0));
    // A container without a limit is told what the machine has.
    let value = match (said, kind, name) {
        (Some(value), _, _) => value,
        (None, "limits", "cpu") => i128::from(place.cpu_milli),
        (None, "limits", "memory") => i128::from(place.memory).saturating_mul(1_000),
        (None, _, _) => 0,
    };
    let divisor = wish.divisor.as_ref().and_then(|one| parse_milli(&one.0)).filter(|one| *one > 0);
    Ok(divide_up(value, divisor.unwrap_or(1_000)).to_string())
}
