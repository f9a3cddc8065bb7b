//! The roles of a composite resource definition: what people, and Crossplane, may do with the
//! kinds it defines.
//!
//! Crossplane makes definitions of resources of it. RBAC knows kinds by name alone, so where one of
//! that name is there and was made by another owner, nobody gets rights on the kind. A plural that is
//! no name of a kind has no definition that could be there: `*` is every kind of the group to RBAC, and
//! so such plurals give no rights at all.

use super::{Claim, told};
use crate::adoption;
use crate::authority::Allowed;
use crate::control::is_controlled_by_object;
use crate::step::{Refusal, Step, Target};
use api::kind_reference::{is_group, is_label};
use serde_json::{Value as Json, json};

const READ: [&str; 3] = ["get", "list", "watch"];

/// What decides about the roles of a definition.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The definition.
    pub definition: Json,
    /// Those of the definitions that Crossplane makes of it ([`derived_definitions`]) that are there.
    pub derived: Vec<Json>,
    /// What packages may bring; people's definitions get no other rights than packages'.
    pub allowed: Allowed,
    /// The `ClusterRoles` that it controls.
    pub owned: Vec<Json>,
    /// Those of their names that nothing controls.
    pub uncontrolled: Vec<Json>,
    /// Whether whatever is there already may be taken over.
    pub adopts_existing: bool,
    /// What the API server would not do when this was last decided.
    pub refusals: Vec<Refusal>,
}

/// Decides about the roles of a definition.
pub fn step(world: &World) -> Step {
    let definition = &world.definition;
    let metadata = &definition["metadata"];
    let is_paused = metadata["annotations"][api::pkg::ANNOTATION_PAUSED] == "true";
    if is_paused || !metadata["deletionTimestamp"].is_null() {
        return Step::Do(crate::step::Plan::default());
    }
    if !world.refusals.is_empty() {
        return Step::Do(told(&world.refusals, &Target::of(definition)));
    }
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    let is_closed = world.allowed.closed(group).is_some();
    let wanted = if is_closed { Vec::new() } else { roles(definition, &world.derived) };
    let whose = Target::of(definition);
    let claim = Claim {
        owned: &world.owned,
        uncontrolled: &world.uncontrolled,
        adopts_existing: world.adopts_existing,
        mark: adoption::mark(&whose.api_version, &whose.kind, &whose.name),
        whose: &whose,
    };
    Step::Do(claim.settle(&wanted))
}

/// The plurals that can be a kind's, with the names of the definitions that Crossplane makes of them.
fn derived_names(definition: &Json) -> impl Iterator<Item = (&str, String)> {
    let spec = &definition["spec"];
    let group = spec["group"].as_str().unwrap_or_default();
    let plurals = [&spec["names"]["plural"], &spec["claimNames"]["plural"]];
    let plurals = plurals.into_iter().filter_map(Json::as_str);
    let served = plurals.filter(move |plural| is_label(plural) && is_group(group));
    served.map(move |plural| (plural, format!("{plural}.{group}")))
}

/// The definitions that Crossplane makes of one of composite resources.
pub fn derived_definitions(definition: &Json) -> Vec<Target> {
    let target = |(_, name): (&str, String)| Target {
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        namespace: None,
        name,
    };
    derived_names(definition).map(target).collect()
}

/// The roles of a definition, for those of its kinds that are not others': of the definitions that
/// Crossplane makes of it, these are there.
pub fn roles(definition: &Json, derived: &[Json]) -> Vec<Json> {
    let spec = &definition["spec"];
    let group = spec["group"].as_str().unwrap_or_default();
    let is_others = |name: &str| {
        let mut of_name = derived.iter().filter(|one| one["metadata"]["name"] == name);
        of_name.any(|one| !is_controlled_by_object(one, definition))
    };
    let own: Vec<&str> = derived_names(definition)
        .filter_map(|(plural, name)| (!is_others(&name)).then_some(plural))
        .collect();
    if own.is_empty() {
        return Vec::new();
    }
    let find_own = |names: &Json| {
        let plural = names["plural"].as_str();
        own.iter().copied().find(|one| Some(*one) == plural)
    };
    let (plural, claim) = (find_own(&spec["names"]), find_own(&spec["claimNames"]));
    let rule = |plural: &str, verbs: &[&str]| {
        let resources = [plural.to_owned(), format!("{plural}/status")];
        json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
    };
    let finalizers = |plural: &str| {
        let resources = [format!("{plural}/finalizers")];
        json!({"apiGroups": [group], "resources": resources, "verbs": ["update"]})
    };
    let both = || plural.into_iter().chain(claim);
    let every = |verbs: &[&str]| both().map(|plural| rule(plural, verbs)).collect::<Vec<_>>();
    let system: Vec<Json> =
        both().flat_map(|plural| [rule(plural, &["*"]), finalizers(plural)]).collect();
    let browse: Vec<Json> = plural.into_iter().map(|plural| rule(plural, &READ)).collect();
    vec![
        role(definition, "crossplane", &["crossplane"], &system),
        role(definition, "edit", &["admin", "ns-admin", "edit", "ns-edit"], &every(&["*"])),
        role(definition, "view", &["view", "ns-view"], &every(&READ)),
        role(definition, "browse", &["browse"], &browse),
    ]
}

fn role(definition: &Json, end: &str, aggregate_to: &[&str], rules: &[Json]) -> Json {
    let metadata = &definition["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let labels: Json = aggregate_to
        .iter()
        .map(|to| (format!("rbac.crossplane.io/aggregate-to-{to}"), json!("true")))
        .collect();
    let owner = json!({
        "apiVersion": definition["apiVersion"], "kind": definition["kind"], "name": name,
        "uid": metadata["uid"], "controller": true, "blockOwnerDeletion": true,
    });
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": format!("crossplane:composite:{name}:aggregate-to-{end}"),
            "labels": labels,
            "ownerReferences": [owner],
        },
        "rules": rules,
    })
}
