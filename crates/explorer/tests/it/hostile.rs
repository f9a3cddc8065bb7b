//! Texts of strangers, on every page that shows them.

use crate::support::{Site, compress, definition, harbour};
use axum::http::StatusCode;
use catalog::{Dependency, ImageLayer, KindDocument, Outcome, Package, Permission, Schema};
use serde_json::json;

pub(crate) const CORPUS: [&str; 9] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "\" autofocus onfocus=\"alert(1)",
    "javascript:alert(1)",
    "</title></textarea></style><svg/onload=alert(1)>",
    "<!--<img src=\"--><img src=x onerror=alert(1)//\">",
    "&#x3c;script&#x3e;alert(1)",
    "\u{202e}<iframe srcdoc='x'>",
];

/// A package that says this wherever it can say something.
fn hostile(text: &str) -> Package {
    let said = || Some(text.to_owned());
    let mut bad = definition("buckets", text, "storage.example.org");
    text.clone_into(&mut bad.scope);
    text.clone_into(&mut bad.singular);
    bad.short_names = vec![text.to_owned()];
    Package {
        kind: text.to_owned(),
        dialect: text.to_owned(),
        name: text.to_owned(),
        crossplane: said(),
        description: said(),
        license: said(),
        source: said(),
        maintainer: said(),
        category: said(),
        keywords: vec![text.to_owned()],
        capabilities: vec![text.to_owned()],
        readme: Some(format!(
            "{text}\n\n# {text}\n\n[{text}]({text})\n\n![{text}]({text})\n\n`{text}`"
        )),
        icon: said(),
        platforms: vec![text.to_owned()],
        created: said(),
        problem: said(),
        dependencies: vec![Dependency {
            kind: text.to_owned(),
            package: text.to_owned(),
            version: text.to_owned(),
        }],
        permissions: vec![Permission {
            api_groups: vec![text.to_owned()],
            resources: vec![text.to_owned()],
            resource_names: vec![text.to_owned()],
            non_resource_urls: vec![text.to_owned()],
            verbs: vec![text.to_owned()],
        }],
        layers: vec![ImageLayer {
            digest: text.to_owned(),
            size: 1,
            media_type: text.to_owned(),
            annotations: [(text.to_owned(), text.to_owned())].into(),
        }],
        annotations: [(text.to_owned(), text.to_owned())].into(),
        documents: [(bad.name.clone(), described(&bad.name, text))].into(),
        definitions: vec![bad],
        ..Package::default()
    }
}

/// A definition whose author wrote this beside it wherever the first format lets them.
fn described(name: &str, text: &str) -> KindDocument {
    let names = [
        "package-title",
        "group-title",
        "group-overview",
        "resource-title",
        "icon-data-uri",
        "resource-title-plural",
        "resource-category",
        "resource-overview",
        "ui-schema",
    ];
    let annotations: serde_json::Map<String, serde_json::Value> =
        names.iter().map(|name| (format!("packages.crossplane.io/{name}"), json!(text))).collect();
    let document = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "annotations": annotations}, "spec": {},
    });
    let digest = format!("sha256:{}", text.len());
    KindDocument { digest, compressed: compress(document.to_string().as_bytes()) }
}

/// Start tags of a page with what is inside of them.
fn start_tags(html: &str) -> Vec<&str> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if !rest.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            continue;
        }
        // Values of attributes are quoted, and quotes inside of them are escaped.
        let mut in_quotes = false;
        let end = rest.find(|letter: char| {
            in_quotes ^= letter == '"';
            letter == '>' && !in_quotes
        });
        tags.push(&rest[..end.unwrap_or(rest.len())]);
    }
    tags
}

/// A tag without the values of its attributes.
fn names_of(tag: &str) -> String {
    tag.split('"').step_by(2).collect::<Vec<_>>().join("\"")
}

pub(crate) fn assert_harmless(html: &str, place: &str) {
    for tag in start_tags(html) {
        let names = names_of(tag).to_lowercase();
        let name = names.split([' ', '/']).next().unwrap_or_default();
        let is_ours = tag.starts_with("script src=\"/assets/explorer.");
        assert!(
            is_ours || !matches!(name, "script" | "iframe" | "style" | "object" | "embed" | "base"),
            "{place}: <{tag}>"
        );
        assert!(
            !names.contains(" on") && !names.contains(" style") && !names.contains(" srcdoc"),
            "{place}: <{tag}>"
        );
        for value in tag.split('"').skip(1).step_by(2) {
            let value = value.trim().to_lowercase();
            assert!(!value.starts_with("javascript:") || !tag.contains("href"), "{place}: <{tag}>");
        }
        let is_fetched = name == "img" || names.contains(" src=");
        let is_own = tag.contains("src=\"/assets/") || tag.contains("src=\"data:image/");
        assert!(!is_fetched || is_own, "{place}: <{tag}>");
    }
}

#[tokio::test]
async fn texts_of_strangers_are_texts_on_every_page() {
    for text in CORPUS {
        let site = Site::new();
        site.add("team/bad", &[("v1.0.0", hostile(text)), ("v1.1.0", hostile(text))]);
        let encoded: Vec<String> = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let encoded = encoded.concat();
        for path in [
            "/",
            "/kinds",
            "/p/team/bad",
            "/p/team/bad?view=kinds",
            "/p/team/bad?view=needs",
            "/p/team/bad?view=permissions",
            "/p/team/bad?view=versions",
            "/p/team/bad?view=readme",
            "/crd/buckets.storage.example.org",
            "/group/storage.example.org",
            "/search?q=bucket",
            "/suggest?q=bucket",
            "/diff/team/bad",
            "/diff/team/bad?from=v1.0.0&to=v1.1.0",
            "/api",
        ] {
            assert_harmless(&site.page(path).await, path);
        }
        // What is asked for is shown, too.
        for path in [
            format!("/?type={encoded}&category={encoded}&group={encoded}&keyword={encoded}"),
            format!("/search?q=bucket&type={encoded}&keyword={encoded}&group={encoded}"),
            format!("/kinds?q={encoded}"),
            format!("/search?q={encoded}"),
            format!("/suggest?q={encoded}"),
            format!("/p/team/bad?view=kinds&filter={encoded}"),
            format!("/p/{encoded}"),
            format!("/p/team/bad@{encoded}"),
            format!("/crd/{encoded}"),
            format!("/group/{encoded}"),
            format!("/diff/{encoded}?from={encoded}"),
            format!("/diff/team/bad?from={encoded}&to={encoded}"),
            format!("/plane/{encoded}/{encoded}"),
            format!(
                "/crd/buckets.storage.example.org?filter={encoded}&at={encoded}&field={encoded}&package={encoded}"
            ),
        ] {
            assert_harmless(&site.get(&path).await.html, &path);
        }
    }
}

#[tokio::test]
async fn fields_of_strangers_are_texts_and_a_schema_without_end_has_a_page() {
    for text in CORPUS {
        let site = Site::new();
        let field = json!({
            "type": text, "description": text, "default": text, "enum": [text], "pattern": text,
            "format": text, "x-kubernetes-validations": [{"rule": text, "message": text}],
        });
        let wide: serde_json::Map<String, serde_json::Value> =
            (0..3000).map(|number| (format!("{text}{number}"), field.clone())).collect();
        let deep = (0..40).fold(field.clone(), |inner, _| json!({"properties": {"deep": inner}}));
        let schema = json!({"properties": {"spec": {"required": [text], "properties": {
            text: field, "wide": {"properties": wide}, "deep": deep,
        }}}});
        site.add("team/bad", &[("v1.0.0", with_schema(&schema))]);
        for path in [
            "/crd/buckets.storage.example.org/v1",
            "/crd/buckets.storage.example.org/v1?filter=deep",
            "/crd/buckets.storage.example.org/v1?filter=alert",
            "/crd/buckets.storage.example.org/v1?at=spec.deep",
        ] {
            let page = site.page(path).await;
            assert_harmless(&page, path);
            assert!(page.len() < 400_000, "{path} is {} bytes", page.len());
        }
        let page = site.page("/crd/buckets.storage.example.org/v1").await;
        assert!(page.contains("3,000 fields below wide"), "what is large is folded");
    }
}

/// A provider whose bucket has this schema.
fn with_schema(schema: &serde_json::Value) -> Package {
    let mut package = harbour();
    let digest = "sha256:schema".to_owned();
    package.schemas = vec![Schema {
        digest: digest.clone(),
        compressed: compress(schema.to_string().as_bytes()),
        fields: Vec::new(),
    }];
    package.definitions.truncate(1);
    for version in &mut package.definitions[0].versions {
        version.schema = Some(digest.clone());
    }
    package
}

#[tokio::test]
async fn every_answer_is_held_by_a_strict_policy() {
    let site = Site::new();
    site.add("team/provider-harbour", &[("v0.4.2", harbour())]);
    for path in [
        "/",
        "/kinds",
        "/p/team/provider-harbour",
        "/p/none",
        "/crd/%00",
        "/sign-in",
        "/assets/x",
        "/api",
        "/plane",
    ] {
        let shown = site.get(path).await;
        let policy = shown.headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'; style-src 'self'; script-src 'self'"),
            "{path}"
        );
        assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"), "{path}");
        assert_eq!(shown.headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(shown.headers["referrer-policy"], "no-referrer", "{path}");
    }
}

#[tokio::test]
async fn nonsense_is_answered_and_harms_nothing() {
    let site = Site::new();
    site.add("team/provider-harbour", &[("v0.4.2", harbour())]);
    site.index.learn("sha256:unknown", &Outcome::Other).unwrap();
    for path in [
        "/?page=99999999999999999999",
        "/?page=100000",
        "/?page=-1",
        "/kinds?cursor=nonsense",
        "/p/team/provider-harbour?view=kinds&page=18446744073709551615",
        "/p/team/provider-harbour@",
        "/p//",
        "/p/%ff%fe",
        "/crd/*.storage.example.org",
        "/crd/buckets.storage.example.org?at=spec.none&filter=",
        "/search?q=%00%00",
        "/search?q=%22%20OR%201=1",
    ] {
        let shown = site.get(path).await;
        assert!(!shown.status.is_server_error(), "{path}: {}", shown.status);
        assert_ne!(shown.status, StatusCode::NO_CONTENT);
    }
    let long = format!("/search?q={}", "a".repeat(5000));
    assert_eq!(site.get(&long).await.status, StatusCode::OK);
}
