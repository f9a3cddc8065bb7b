//! Who controls an object, and how another comes into control of it by an apply.
//!
//! After a restore from a backup everybody has another uid, so whoever controls an object is also
//! known by name: by group, kind and name, because managers of two groups may be on one cluster.
//!
//! To the API server an owner with another uid is another owner, and an object has one that
//! controls it. An apply takes away what the same manager applied before. What somebody else wrote,
//! as whoever restores does, it leaves there, and two would be in control: that is refused, for
//! ever. So such an owner is taken away first.

use crate::same::is_given_up;
use crate::step::{Action, Expect, MANAGER, Target};
use api::object::OwnerReference;
use api::pkg::revision::Revision;
use serde_json::{Value as Json, json};

/// The owner that controls an object.
pub fn controller_of(object: &Json) -> Option<&Json> {
    owners(object).find(|owner| owner["controller"] == json!(true))
}

/// Whether a revision controls an object.
pub fn is_controlled_by(object: &Json, revision: &Revision) -> bool {
    controller_of(object).is_some_and(|owner| is_meant(owner, revision))
}

/// Whether an owner is this revision: by its uid, or by its name.
pub fn is_meant(owner: &Json, revision: &Revision) -> bool {
    let Revision { api_version, kind, metadata, .. } = revision;
    let is_named = owner["kind"] == **kind
        && owner["name"] == *metadata.name
        && group(owner["apiVersion"].as_str().unwrap_or_default()) == group(api_version);
    is_named || metadata.uid.as_deref().is_some_and(|uid| owner["uid"] == uid)
}

/// Whether an object controls another, by its uid or by its name.
pub fn is_controlled_by_object(object: &Json, controller: &Json) -> bool {
    controller_of(object).is_some_and(|owner| {
        let group_of =
            |one: &Json| group(one["apiVersion"].as_str().unwrap_or_default()).to_owned();
        let metadata = &controller["metadata"];
        let is_named = owner["kind"] == controller["kind"]
            && owner["name"] == metadata["name"]
            && group_of(owner) == group_of(controller);
        is_named || (owner["uid"].is_string() && owner["uid"] == metadata["uid"])
    })
}

/// Whether an owner is this revision, by its name.
pub fn is_named(owner: &OwnerReference, revision: &Revision) -> bool {
    owner.kind == revision.kind
        && owner.name == revision.metadata.name
        && group(&owner.api_version) == group(&revision.api_version)
}

/// The group of an API.
pub fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Makes an object say this over what was seen of it.
pub fn apply(wanted: &Json, seen: Option<&Json>) -> Vec<Action> {
    let object = wanted.clone();
    let expect = Expect::as_found(seen);
    let is_wanted = |owner: &Json| owners(wanted).any(|one| one["uid"] == owner["uid"]);
    let stays = |owner: &&Json| {
        owner["controller"] != json!(true) || is_wanted(owner) || {
            let uid = owner["uid"].as_str().unwrap_or_default();
            seen.is_some_and(|seen| is_given_up(seen, "ownerReferences", "uid", uid, MANAGER))
        }
    };
    let all = || seen.into_iter().flat_map(owners);
    if all().all(|owner| stays(&owner)) {
        return vec![Action::Apply { object, expect }];
    }
    let kept: Vec<&Json> = all().filter(stays).collect();
    let change = json!({"metadata": {"ownerReferences": kept}});
    let first = Action::Merge { target: Target::of(wanted), change, expect: expect.clone() };
    // Its state is another after that, but it is still the same object.
    let expect = match expect {
        Expect::Unchanged { uid, .. } => Expect::Unchanged { uid, resource_version: None },
        other => other,
    };
    vec![first, Action::Apply { object, expect }]
}

fn owners(object: &Json) -> impl Iterator<Item = &Json> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(uid: &str) -> Json {
        json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision", "name": "one",
            "uid": uid, "controller": true,
        })
    }

    fn service(owners: &[Json], records: &Json) -> Json {
        let metadata = json!({
            "name": "one", "uid": "s", "resourceVersion": "7",
            "ownerReferences": owners, "managedFields": records,
        });
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata})
    }

    fn record(manager: &str, operation: &str, uid: &str) -> Json {
        let key = format!("k:{}", json!({"uid": uid}));
        json!({
            "manager": manager, "operation": operation,
            "fieldsV1": {"f:metadata": {"f:ownerReferences": {".": {}, key: {}}}},
        })
    }

    /// What is done before the apply, and what must be true for the apply.
    fn first(seen: &Json) -> (Option<Json>, Option<String>) {
        let mut actions = apply(&service(&[owner("new")], &json!([])), Some(seen));
        let Some(Action::Apply { expect: Expect::Unchanged { resource_version, .. }, .. }) =
            actions.pop()
        else {
            panic!("an apply over what was seen");
        };
        let change = actions.pop().map(|action| match action {
            Action::Merge { change, .. } => change["metadata"]["ownerReferences"].clone(),
            other => panic!("{other:?}"),
        });
        (change, resource_version)
    }

    #[test]
    fn who_is_in_control_is_taken_away_first_where_an_apply_would_leave_them() {
        let (ours, theirs) = (record("apron", "Apply", "old"), record("restore", "Update", "old"));
        let other = json!({"kind": "ConfigMap", "name": "x", "uid": "x"});
        let owners = [other.clone(), owner("old")];
        let goes = (Some(json!([other])), None);
        let stays = (None, Some("7".to_owned()));
        let cases = [
            ("an apply of ours before", json!([ours]), &stays),
            ("somebody who restored it", json!([theirs]), &goes),
            ("both", json!([ours, theirs]), &goes),
            ("nobody knows", json!([]), &goes),
        ];
        for (who, records, expected) in cases {
            assert_eq!(&first(&service(&owners, &records)), expected, "{who}");
        }
        let ours = service(&[owner("new"), other], &json!([theirs]));
        assert_eq!(first(&ours), stays, "it is us");
    }

    #[test]
    fn owners_of_another_group_are_others() {
        let revision: Revision = serde_json::from_value(json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision",
            "metadata": {"name": "one", "uid": "new"}, "spec": {},
        }))
        .unwrap();
        let mut it = owner("old");
        assert!(is_meant(&it, &revision), "by name");
        it["apiVersion"] = json!("pkg.apron.example.org/v1");
        assert!(!is_meant(&it, &revision), "another group");
        it["uid"] = json!("new");
        assert!(is_meant(&it, &revision), "by uid");
    }
}
