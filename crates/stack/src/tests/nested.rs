//! Metadata, icons and ui-schemas in a tree: what reaches which definition.

use super::{APP, definition_of, read, shown};
use serde_json::{Value, json};

const GROUP: &str = "title: Group\ncategory: Samples\n";

/// Annotations of the definition of a kind, without the prefix.
fn annotations(files: &[(&str, &str)], kind: &str) -> Value {
    let (stack, findings) = read(files);
    let stack = stack.unwrap_or_else(|| panic!("{}", shown(&findings)));
    let definition = stack.definitions.iter().find(|one| one.kind == kind).unwrap();
    let all = definition.object["metadata"]["annotations"].as_object().unwrap();
    let bare = |key: &String| key.trim_start_matches("packages.crossplane.io/").to_owned();
    all.iter().map(|(key, value)| (bare(key), value.clone())).collect()
}

#[test]
fn the_nearest_metadata_counts_and_all_ui_schemas_do() {
    let (mine, sibling, cousin) =
        (definition_of("Mytype"), definition_of("Sibling"), definition_of("Cousin"));
    let files = [
        ("app.yaml", APP),
        ("icon.jpg", "\u{1}"),
        ("icon.png", "png"),
        ("resources/g/group.yaml", GROUP),
        ("resources/g/ui-schema.yaml", "a: group\n"),
        ("resources/g/mytype/crd.yaml", &mine),
        ("resources/g/mytype/sibling.crd.yaml", &sibling),
        ("resources/g/mytype/icon.gif", "gif"),
        ("resources/g/mytype/icon.svg", "svg"),
        ("resources/g/mytype/mytype.icon.gif", "mine"),
        ("resources/g/mytype/ui-schema.yaml", "\na: sibling\n\n"),
        ("resources/g/mytype/mytype.ui-schema.yaml", "a: kind\n"),
        ("resources/g/mytype/mytype.v1alpha1.ui-schema.yaml", "a: version\n"),
        ("resources/g/mytype/mytype.v9.ui-schema.yaml", "a: other\n"),
        ("resources/g/mytype/resource.yaml", "id: MYTYPE\ntitle: Mine\nshortOverview: Short\n"),
        ("resources/g/mytypes/crd.yaml", &cousin),
    ];
    let found = annotations(&files, "Mytype");
    assert_eq!(
        found,
        json!({
            "package-title": "Sample", "group-title": "Group", "group-category": "Samples",
            "resource-title": "Mine", "resource-overview-short": "Short",
            "icon-data-uri": "data:image/gif;base64,bWluZQ==",
            "ui-schema": "a: group\n---\na: sibling\n---\na: kind\n---\na: version\n",
        })
    );
    let sibling = annotations(&files, "Sibling");
    assert_eq!(sibling["icon-data-uri"], "data:image/svg+xml;base64,c3Zn");
    assert_eq!(sibling["ui-schema"], "a: group\n---\na: sibling\n");
    assert!(sibling.get("resource-title").is_none());
    // A directory whose name begins alike is another directory, and the package's icon is the nearest.
    let cousin = annotations(&files, "Cousin");
    assert_eq!(cousin["icon-data-uri"], "data:image/png;base64,cG5n");
    assert_eq!(cousin["ui-schema"], "a: group\n");
}

#[test]
fn what_a_definition_says_itself_is_kept_and_files_win() {
    let written = "metadata:\n  annotations:\n    own: kept\n    packages.crossplane.io/ui-schema: 'first: 1'\n    packages.crossplane.io/group-title: old\n";
    let definition = definition_of("Mytype").replace("metadata:\n", written);
    let files = [
        ("app.yaml", APP),
        ("resources/crd.yaml", definition.as_str()),
        ("resources/group.yaml", GROUP),
        ("resources/ui-schema.yaml", "second: 2\n"),
    ];
    let found = annotations(&files, "Mytype");
    assert_eq!(found["own"], "kept");
    assert_eq!(found["group-title"], "Group");
    assert_eq!(found["ui-schema"], "first: 1\n---\nsecond: 2\n");
}

#[test]
fn several_definitions_share_a_file_and_rights_name_each() {
    let both = format!("{}---\n{}", definition_of("Mytype"), definition_of("Policy"));
    let both = both.replace("policys", "policies");
    let app = "title: t\npermissionScope: Namespaced\ndependsOn:\n- crd: bucket.storage.example.org/v1\n- crd: '*.all.example.org'\n";
    let (stack, findings) = read(&[("app.yaml", app), ("resources/crd.yaml", &both)]);
    let stack = stack.unwrap_or_else(|| panic!("{}", shown(&findings)));
    let rules = crate::rights::list_rules(&stack.definitions, &stack.app.requirements);
    assert_eq!(
        json!(rules),
        json!([
            {"apiGroups": [""], "resources": ["configmaps", "events", "secrets"], "verbs": ["*"]},
            {"apiGroups": ["samples.example.org"], "resources": ["mytypes", "mytypes/finalizers"], "verbs": ["*"]},
            {"apiGroups": ["samples.example.org"], "resources": ["policies", "policies/finalizers"], "verbs": ["*"]},
            {"apiGroups": ["storage.example.org"], "resources": ["bucket", "buckets"], "verbs": ["*"]},
            {"apiGroups": ["all.example.org"], "resources": ["*"], "verbs": ["*"]},
        ])
    );
}

#[test]
fn words_that_are_singular_are_meant_as_plurals_too() {
    let check = |name: &str, expected: &[&str]| {
        assert_eq!(crate::rights::name_plurals(name), expected, "{name}");
    };
    check("*", &["*"]);
    check("buckets", &["buckets"]);
    check("bucket", &["bucket", "buckets"]);
    check("policy", &["policy", "policies"]);
    check("key", &["key", "keys"]);
    check("redis", &["redis", "redises"]);
    check("address", &["address", "addresses"]);
}
