//! What a package's controller may do: it follows from what the package owns and depends on.

use super::definition::OwnedDefinition;
use super::dependency::CrdRequirement;
use serde_json::{Value as Json, json};

/// The rules of a package: what every controller needs, its own kinds, and those it depends on.
pub(crate) fn list_rules(
    definitions: &[OwnedDefinition],
    requirements: &[CrdRequirement],
) -> Vec<Json> {
    let core = rule("", &["configmaps".to_owned(), "events".to_owned(), "secrets".to_owned()]);
    let owned = definitions.iter().map(|one| rule(&one.group, &list_resources(one)));
    let needed = requirements.iter().map(|one| rule(&one.group, &name_plurals(&one.name)));
    std::iter::once(core).chain(owned).chain(needed).collect()
}

fn rule(group: &str, resources: &[String]) -> Json {
    json!({"apiGroups": [group], "resources": resources, "verbs": ["*"]})
}

/// The resources of an owned definition. Finalizers are a resource of their own to controllers that
/// may set owners only where they may also set finalizers, whether the definition says so or not.
fn list_resources(definition: &OwnedDefinition) -> Vec<String> {
    let plural = &definition.plural;
    let mut resources = vec![plural.clone()];
    for name in ["status", "scale"] {
        if definition.has_subresource(name) {
            resources.push(format!("{plural}/{name}"));
        }
    }
    resources.push(format!("{plural}/finalizers"));
    resources
}

/// The resources that a name may stand for. Rules need plurals, and dependencies may be written as
/// singulars: where the definition cannot be asked, both words are meant.
pub fn name_plurals(name: &str) -> Vec<String> {
    let is_plural = name == "*"
        || (name.ends_with('s') && !["ss", "is", "us"].iter().any(|end| name.ends_with(end)));
    if is_plural {
        return vec![name.to_owned()];
    }
    let guess = match name.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if ["s", "x", "ch", "sh"].iter().any(|end| name.ends_with(end)) => format!("{name}es"),
        _ => format!("{name}s"),
    };
    vec![name.to_owned(), guess]
}
