//! Two packages' metadata: what they are, need and ask for.

use super::{Change, Changes, Severity};
use api::meta::{Meta, PermissionRequest};
use std::collections::{BTreeMap, BTreeSet};

/// Finds the changes between what two packages say about themselves.
pub(super) fn compare_metadata(old: Option<&Meta>, new: Option<&Meta>) -> Vec<Change> {
    let mut found = Changes::of_package();
    let (Some(old), Some(new)) = (old, new) else { return found.list };
    if old.kind() != new.kind() {
        let message = format!("{} becomes {}", old.kind().as_str(), new.kind().as_str());
        found.add(Severity::Breaking, "package-kind", "", message);
    }
    if old.name() != new.name() {
        let message = format!("name {} becomes {}", old.name(), new.name());
        found.add(Severity::Note, "package-name", "", message);
    }
    let (before, after) = (old.crossplane(), new.crossplane());
    if before != after {
        let message = format!("crossplane version {} becomes {}", or_any(before), or_any(after));
        found.add(Severity::Warning, "crossplane", "", message);
    }
    compare_dependencies(old, new, &mut found);
    compare_permissions(old, new, &mut found);
    compare_capabilities(old, new, &mut found);
    if let (Some(before), Some(after)) = (old.image(), new.image())
        && before != after
    {
        let message = format!("controller image {before} becomes {after}");
        found.add(Severity::Note, "image", "", message);
    }
    found.list
}

fn or_any(constraint: Option<&str>) -> &str {
    constraint.map(str::trim).filter(|text| !text.is_empty()).unwrap_or("any")
}

fn compare_dependencies(old: &Meta, new: &Meta, found: &mut Changes) {
    let of = |meta: &Meta| -> BTreeMap<String, String> {
        let named = meta.dependencies().iter().filter_map(|dependency| {
            let target = dependency.target.as_ref()?;
            Some((target.package.clone(), dependency.version.clone()))
        });
        named.collect()
    };
    let (old, new) = (of(old), of(new));
    for (package, version) in &new {
        match old.get(package) {
            None => {
                let message = format!("depends on {package} {version}");
                let message = message.trim_end().to_owned();
                found.add(Severity::Warning, "dependency", "", message);
            }
            Some(before) if before != version => {
                let message = format!("dependency on {package} {before} becomes {version}");
                found.add(Severity::Warning, "dependency", "", message);
            }
            Some(_) => {}
        }
    }
    for package in old.keys().filter(|package| !new.contains_key(*package)) {
        let message = format!("no longer depends on {package}");
        found.add(Severity::Note, "dependency", "", message);
    }
}

fn compare_permissions(old: &Meta, new: &Meta, found: &mut Changes) {
    let of = |meta: &Meta| -> BTreeSet<String> {
        meta.permission_requests().iter().map(permission_words).collect()
    };
    let (old, new) = (of(old), of(new));
    for rule in new.difference(&old) {
        let message = format!("asks for the permission to {rule}");
        found.add(Severity::Warning, "permissions", "", message);
    }
    for rule in old.difference(&new) {
        let message = format!("no longer asks for the permission to {rule}");
        found.add(Severity::Note, "permissions", "", message);
    }
}

/// A rule in words: `get, list pods, deployments (apps)`.
fn permission_words(request: &PermissionRequest) -> String {
    let sorted = |list: &[String]| {
        let all: BTreeSet<&str> = list.iter().map(String::as_str).collect();
        all.into_iter().collect::<Vec<_>>().join(", ")
    };
    let groups: Vec<String> =
        request.api_groups.iter().filter(|group| !group.is_empty()).cloned().collect();
    let verbs = sorted(&request.verbs);
    let objects = [&request.resources, &request.non_resource_urls].map(|list| sorted(list));
    let objects =
        objects.into_iter().filter(|list| !list.is_empty()).collect::<Vec<_>>().join(", ");
    let groups = if groups.is_empty() { String::new() } else { format!(" ({})", sorted(&groups)) };
    let names = match request.resource_names.as_slice() {
        [] => String::new(),
        names => format!(" named {}", sorted(names)),
    };
    format!("{verbs} {objects}{groups}{names}")
}

fn compare_capabilities(old: &Meta, new: &Meta, found: &mut Changes) {
    let of = |meta: &Meta| -> BTreeSet<String> {
        meta.capabilities().unwrap_or_default().iter().cloned().collect()
    };
    let (old, new) = (of(old), of(new));
    for capability in new.difference(&old) {
        let message = format!("capability {capability} added");
        found.add(Severity::Note, "capabilities", "", message);
    }
    for capability in old.difference(&new) {
        let message = format!("capability {capability} removed");
        found.add(Severity::Warning, "capabilities", "", message);
    }
}
