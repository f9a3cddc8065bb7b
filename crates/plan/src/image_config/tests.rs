//! Names in, configurations out.

use super::{Names, Purpose, record, select, treat};
use api::pkg::ImageConfig;
use insta::assert_snapshot;
use oci::reference::DOCKER_HUB;
use serde_json::{Value as Json, json};

fn config(name: &str, prefixes: &[&str], what: &Json) -> ImageConfig {
    let matches: Vec<Json> = prefixes.iter().map(|prefix| json!({"prefix": prefix})).collect();
    let mut spec = what.clone();
    spec["matchImages"] = json!(matches);
    let object = json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "ImageConfig",
        "metadata": {"name": name}, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

fn rewrite(name: &str, from: &str, to: &str) -> ImageConfig {
    config(name, &[from], &json!({"rewriteImage": {"prefix": to}}))
}

fn secret(name: &str, prefixes: &[&str]) -> ImageConfig {
    let secret = json!({"authentication": {"pullSecretRef": {"name": format!("{name}-secret")}}});
    config(name, prefixes, &json!({"registry": secret}))
}

#[test]
fn the_longest_prefix_counts_and_then_the_first_name() {
    let configs = [
        secret("b", &["example.org/team"]),
        secret("a", &["example.org/team"]),
        secret("c", &["example.org/", "example.org/team/package:v1"]),
        secret("empty", &[""]),
        config("other", &["example.org/team/package"], &json!({"runtime": {}})),
    ];
    let chosen = |image: &str| {
        let found = select(&configs, Purpose::PullSecret, image, DOCKER_HUB);
        found
            .map_or("none".to_owned(), |it| format!("{} by {}", it.config.metadata.name, it.prefix))
    };
    let images = [
        "example.org/team/package:v2",
        "example.org/teams/package:v2",
        "example.org/team/package:v1.2",
        "example.org/x:v1",
        "elsewhere.org/x:v1",
    ];
    let lines: Vec<String> =
        images.iter().map(|image| format!("{image}: {}", chosen(image))).collect();
    assert_snapshot!(lines.join("\n"), @r"
    example.org/team/package:v2: a by example.org/team
    example.org/teams/package:v2: a by example.org/team
    example.org/team/package:v1.2: c by example.org/team/package:v1
    example.org/x:v1: c by example.org/
    elsewhere.org/x:v1: none
    ");
}

#[test]
fn a_rewrite_looks_at_what_was_asked_for_and_the_rest_at_where_that_leads() {
    let runtime = json!({"runtime": {"configRef": {"name": "small"}}});
    let configs = [
        rewrite("mirror", "example.org/", "mirror.local/cache/"),
        rewrite("chained", "mirror.local/", "nowhere.local/"),
        secret("at-the-mirror", &["mirror.local/"]),
        secret("at-home", &["example.org/"]),
        config("run", &["mirror.local/cache/p"], &runtime),
    ];
    let treatment = treat(&configs, "example.org/p:v1", DOCKER_HUB).unwrap();
    assert_eq!(treatment.resolved, "mirror.local/cache/p:v1");
    assert_eq!(treatment.pull_secret.as_deref(), Some("at-the-mirror-secret"));
    assert_eq!(treatment.runtime.as_ref().unwrap().name, "small");
    assert!(treatment.is_rewritten());
    let applied: Vec<String> =
        treatment.applied.iter().map(|one| format!("{} {}", one.name, one.reason)).collect();
    assert_eq!(
        applied,
        ["mirror RewriteImage", "at-the-mirror SetImagePullSecret", "run ConfigureRuntime"]
    );
}

#[test]
fn what_a_configuration_leaves_out_is_said() {
    let configs = [rewrite("to-nothing", "example.org/", "")];
    let said = treat(&configs, "example.org/p:v1", DOCKER_HUB).unwrap_err().to_string();
    assert_snapshot!(said, @"rewrite prefix is missing in ImageConfig to-nothing; set spec.rewriteImage.prefix");
    let verification = json!({"verification": {"provider": "Cosign"}});
    let configs = [config("signed", &["example.org/"], &verification)];
    let said = treat(&configs, "example.org/p:v1", DOCKER_HUB).unwrap_err().to_string();
    assert_snapshot!(said, @"cosign verification config is missing in ImageConfig signed; set spec.verification.cosign");
}

#[test]
fn a_package_is_the_same_whatever_it_is_called() {
    let configs = [
        rewrite("mirror", "xpkg.example.org/", "mirror.local/xpkg/"),
        rewrite("hub", "docker.io/acme/", "mirror.local/hub/"),
    ];
    let names = Names { configs: &configs, default_registry: DOCKER_HUB };
    let lines = [
        "xpkg.example.org/acme/p:v1",
        "mirror.local/xpkg/acme/p:v2",
        "mirror.local/xpkg/acme/p:v2@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "docker.io/acme/p:v1",
        "index.docker.io/acme/p:v1",
        "acme/p:v1",
        "acme/p",
        "docker.io/other/p:v1",
        "other/p:v1",
        "p",
        "localhost:5000/p",
    ]
    .map(|text| {
        let (name, _) = names.image(text).unwrap();
        let again = names.repository(&name.written).unwrap();
        assert_eq!(again, name, "{text}");
        format!("{} = {}", name.written, name.source)
    });
    assert_snapshot!(lines.join("\n"), @r"
    xpkg.example.org/acme/p = mirror.local/xpkg/acme/p
    mirror.local/xpkg/acme/p = mirror.local/xpkg/acme/p
    mirror.local/xpkg/acme/p = mirror.local/xpkg/acme/p
    docker.io/acme/p = mirror.local/hub/p
    index.docker.io/acme/p = mirror.local/hub/p
    acme/p = mirror.local/hub/p
    acme/p = mirror.local/hub/p
    docker.io/other/p = index.docker.io/other/p
    other/p = index.docker.io/other/p
    p = index.docker.io/library/p
    localhost:5000/p = localhost:5000/p
    ");
}

#[test]
fn another_default_registry_is_another_package() {
    let names = Names { configs: &[], default_registry: "xpkg.example.org" };
    let source = |text: &str| names.image(text).unwrap().0.source;
    assert_eq!(source("acme/p:v1"), source("xpkg.example.org/acme/p:v2"));
    assert_ne!(source("acme/p:v1"), source("docker.io/acme/p:v1"));
}

#[test]
fn there_is_one_record_for_each_purpose() {
    let mut refs = None;
    let steps = [
        (Purpose::Runtime, Some("x")),
        (Purpose::Verify, Some("y")),
        (Purpose::Runtime, Some("z")),
        (Purpose::Verify, None),
    ];
    for (purpose, name) in steps {
        record(&mut refs, purpose, name);
    }
    let refs = refs.unwrap();
    assert_eq!((refs.len(), refs[0].name.as_str()), (1, "z"));
}
