//! The arithmetic of rules: what one list of them grants of another.

use api::meta::PermissionRequest;
use serde_json::{Map, Value as Json, json};

/// Single things that a package may ask for; so many are read by nobody.
pub const RIGHTS_MAX: usize = 10_000;
/// Bytes of all texts in the rules of a package.
pub const TEXT_SIZE_MAX: usize = 65_536;

/// One thing that may be done.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// The resource with its group, or the address, and the name of the object if only one is meant.
    pub thing: String,
    /// What may be done with it.
    pub verb: String,
}

/// Why rules are too many to be looked at; nothing if they are not.
pub fn excess(requests: &[PermissionRequest]) -> Option<String> {
    let size: usize = requests.iter().flat_map(lists).flatten().map(String::len).sum();
    if size > TEXT_SIZE_MAX {
        return Some(format!(
            "it asks for permissions in {size} bytes of text, and at most {TEXT_SIZE_MAX} are read"
        ));
    }
    let count = requests.iter().map(count).fold(0_usize, usize::saturating_add);
    (count > RIGHTS_MAX).then(|| {
        format!("it asks for {count} single permissions, and at most {RIGHTS_MAX} are looked at")
    })
}

fn lists(request: &PermissionRequest) -> [&Vec<String>; 5] {
    [
        &request.api_groups,
        &request.resources,
        &request.resource_names,
        &request.non_resource_urls,
        &request.verbs,
    ]
}

/// How many single things a rule is about.
fn count(request: &PermissionRequest) -> usize {
    let names = request.resource_names.len().max(1);
    let resources = request.api_groups.len().saturating_mul(request.resources.len());
    let things = resources.saturating_mul(names).saturating_add(request.non_resource_urls.len());
    things.saturating_mul(request.verbs.len())
}

/// The parts of rules that an allow list does not grant, each a rule about one resource or address.
/// Rules in excess are not granted at all.
pub fn beyond(
    requests: &[PermissionRequest],
    allowed: &[PermissionRequest],
) -> Vec<PermissionRequest> {
    let mut found: Vec<PermissionRequest> = Vec::new();
    let is_excess = excess(requests).is_some();
    for request in requests {
        if allowed.iter().any(|rule| covers(rule, request)) {
            continue;
        }
        if is_excess {
            found.push(request.clone());
            continue;
        }
        for part in parts(request) {
            let is_refused = |verb: &&String| {
                let one = PermissionRequest { verbs: vec![(*verb).clone()], ..part.clone() };
                !allowed.iter().any(|rule| covers(rule, &one))
            };
            let verbs: Vec<String> = part.verbs.iter().filter(is_refused).cloned().collect();
            let refused = PermissionRequest { verbs, ..part };
            if !refused.verbs.is_empty() && !found.contains(&refused) {
                found.push(refused);
            }
        }
    }
    found
}

/// A rule, cut so that each part is about one resource, object or address.
fn parts(request: &PermissionRequest) -> Vec<PermissionRequest> {
    let verbs = || request.verbs.clone();
    let urls = request.non_resource_urls.iter().map(|url| PermissionRequest {
        non_resource_urls: vec![url.clone()],
        verbs: verbs(),
        ..PermissionRequest::default()
    });
    let mut parts: Vec<PermissionRequest> = urls.collect();
    let names: Vec<Vec<String>> = match request.resource_names.as_slice() {
        [] => vec![Vec::new()],
        names => names.iter().map(|name| vec![name.clone()]).collect(),
    };
    for group in &request.api_groups {
        for resource in &request.resources {
            parts.extend(names.iter().map(|names| PermissionRequest {
                api_groups: vec![group.clone()],
                resources: vec![resource.clone()],
                resource_names: names.clone(),
                verbs: verbs(),
                ..PermissionRequest::default()
            }));
        }
    }
    parts
}

/// Whether a rule of an allow list grants a whole other rule. Only what is written is compared:
/// `*` grants everything in its place, and nothing else grants `*`.
fn covers(rule: &PermissionRequest, asked: &PermissionRequest) -> bool {
    let has_all = |list: &[String], wanted: &[String]| wanted.iter().all(|it| list.contains(it));
    let grants = |list: &[String], wanted: &[String]| {
        list.iter().any(|one| one == "*") || has_all(list, wanted)
    };
    let (names, wanted) = (&rule.resource_names, &asked.resource_names);
    // A rule without names is about all objects, and one with names never is.
    let is_named = names.is_empty() || !wanted.is_empty() && has_all(names, wanted);
    let is_about_resources = !asked.resources.is_empty() || !asked.api_groups.is_empty();
    let grants_resources = grants(&rule.api_groups, &asked.api_groups)
        && grants(&rule.resources, &asked.resources)
        && is_named;
    (!is_about_resources || grants_resources)
        && grants(&rule.non_resource_urls, &asked.non_resource_urls)
        && grants(&rule.verbs, &asked.verbs)
}

/// Everything that rules are about, one by one; nothing if they are too many.
pub fn rights(requests: &[PermissionRequest]) -> Vec<Right> {
    if excess(requests).is_some() {
        return Vec::new();
    }
    let each = requests.iter().flat_map(parts);
    each.flat_map(|part| {
        let thing = thing(&part);
        let right = move |verb| Right { thing: thing.clone(), verb };
        part.verbs.into_iter().map(right)
    })
    .collect()
}

/// What a rule about one resource or address is about.
fn thing(part: &PermissionRequest) -> String {
    let first = |list: &[String]| list.first().cloned();
    if let Some(url) = first(&part.non_resource_urls) {
        return url;
    }
    let (group, resource) = (first(&part.api_groups), first(&part.resources));
    let (group, resource) = (group.unwrap_or_default(), resource.unwrap_or_default());
    let of = if group.is_empty() { String::new() } else { format!(".{group}") };
    let name = first(&part.resource_names).map(|name| format!(" {name}")).unwrap_or_default();
    format!("{resource}{of}{name}")
}

/// A rule as roles write it.
pub fn to_json(request: &PermissionRequest) -> Json {
    let mut rule = Map::new();
    for (key, values) in [
        ("apiGroups", &request.api_groups),
        ("resources", &request.resources),
        ("resourceNames", &request.resource_names),
        ("nonResourceURLs", &request.non_resource_urls),
        ("verbs", &request.verbs),
    ] {
        if !values.is_empty() {
            rule.insert(key.to_owned(), json!(values));
        }
    }
    Json::Object(rule)
}
