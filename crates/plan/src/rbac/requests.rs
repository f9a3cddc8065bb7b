//! What packages ask for beyond their own kinds, and what of it they may have.

use api::meta::PermissionRequest;
use std::collections::BTreeSet;

/// What was refused, and what to do about it, in a sentence.
pub fn refusal(refused: &[String]) -> String {
    format!(
        "the package asks for permissions it may not have: {}; let an administrator allow them, or \
         use a package that does not ask for them",
        refused.join(", ")
    )
}

/// Everything that is asked for and no rule of the allow list grants, one thing at a time.
pub fn refused(requests: &[PermissionRequest], allowed: &[PermissionRequest]) -> Vec<String> {
    let mut refused = BTreeSet::new();
    for request in requests {
        for verb in &request.verbs {
            for url in &request.non_resource_urls {
                let grants = |rule: &PermissionRequest| {
                    has(&rule.verbs, verb) && has(&rule.non_resource_urls, url)
                };
                if !allowed.iter().any(grants) {
                    refused.insert(format!("{verb} {url}"));
                }
            }
            refused.extend(refused_resources(request, verb, allowed));
        }
    }
    refused.into_iter().collect()
}

fn refused_resources(
    request: &PermissionRequest,
    verb: &str,
    allowed: &[PermissionRequest],
) -> Vec<String> {
    let every = vec!["*".to_owned()];
    let names = if request.resource_names.is_empty() { &every } else { &request.resource_names };
    let mut refused = Vec::new();
    for group in &request.api_groups {
        for resource in &request.resources {
            for name in names {
                let grants = |rule: &PermissionRequest| {
                    let fits = rule.resource_names.is_empty() || has(&rule.resource_names, name);
                    has(&rule.verbs, verb)
                        && has(&rule.api_groups, group)
                        && has(&rule.resources, resource)
                        && fits
                };
                if !allowed.iter().any(grants) {
                    let of = if group.is_empty() { String::new() } else { format!(".{group}") };
                    let name = if name == "*" { String::new() } else { format!(" {name}") };
                    refused.push(format!("{verb} {resource}{of}{name}"));
                }
            }
        }
    }
    refused
}

/// Whether a list has a value, or everything.
fn has(list: &[String], value: &str) -> bool {
    list.iter().any(|one| one == value || one == "*")
}
