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

fn signed(name: &str, prefixes: &[&str]) -> ImageConfig {
    let verification = json!({"provider": "Cosign", "cosign": {"authorities": []}});
    config(name, prefixes, &json!({"verification": verification}))
}

/// Which configuration asks for signatures of an image.
fn asks(configs: &[ImageConfig], image: &str, default_registry: &str) -> String {
    let treatment = treat(configs, image, default_registry).unwrap();
    treatment.verification.map_or("nobody".to_owned(), |(config, _)| config)
}

#[test]
fn h6_no_other_spelling_gets_round_a_policy() {
    let configs =
        [signed("team", &["r.example.org/team/"]), signed("port", &["127.0.0.1:22043/team/"])];
    for image in [
        "r.example.org/team/p:v1",
        "R.Example.ORG/team/p:v1",
        "r.example.org./team/p:v1",
        "r.example.org:443/team/p:v1",
        "r.example.org:00443/team/p",
        "r.example.org:/team/p@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    ] {
        assert_eq!(asks(&configs, image, DOCKER_HUB), "team", "{image}");
    }
    assert_eq!(asks(&configs, "127.0.0.1:022043/team/p", DOCKER_HUB), "port");
    assert_eq!(asks(&configs, "127.0.0.1.:22043/team/p", DOCKER_HUB), "port");
    assert_eq!(asks(&configs, "[::ffff:127.0.0.1]:22043/team/p", DOCKER_HUB), "port");
    assert_eq!(asks(&configs, "team/p", "R.example.org:443"), "team");
}

#[test]
fn h6_a_policy_holds_however_its_prefix_is_spelled() {
    for prefix in [
        "R.Example.org/team/",
        "r.example.org:443/team/",
        "r.example.org./team/",
        "r.example.org:0443",
        "r.example.org.",
        "r.example.",
        "R.Ex",
    ] {
        let configs = [signed("team", &[prefix])];
        assert_eq!(asks(&configs, "r.example.org/team/p:v1", DOCKER_HUB), "team", "{prefix}");
        assert_eq!(asks(&configs, "s.example.org/team/p:v1", DOCKER_HUB), "nobody", "{prefix}");
    }
}

#[test]
fn h6_the_policy_does_not_depend_on_which_name_was_chosen() {
    let configs = [
        signed("short", &["acme/"]),
        signed("longer", &["index.docker.io/acme/p"]),
        signed("dev", &["docker.io/acme/p:dev"]),
        signed("library", &["docker.io/nginx"]),
    ];
    for image in ["acme/p:v1", "docker.io/acme/p:v1", "index.docker.io/acme/p:v1"] {
        assert_eq!(asks(&configs, image, DOCKER_HUB), "longer", "{image}");
    }
    for image in ["acme/q:v1", "docker.io/acme/q:v1", "index.docker.io/acme/q:v1"] {
        assert_eq!(asks(&configs, image, DOCKER_HUB), "short", "{image}");
    }
    // A tag before a digest is a comment, and chooses nothing.
    let digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(asks(&configs, &format!("acme/p:dev@{digest}"), DOCKER_HUB), "longer");
    for image in ["nginx", "library/nginx", "docker.io/nginx:v1", "index.docker.io/library/nginx"] {
        assert_eq!(asks(&configs, image, DOCKER_HUB), "library", "{image}");
    }
}

#[test]
fn h6_a_tag_that_goes_without_saying_is_judged_like_a_written_one() {
    let configs = [signed("latest", &["r.example.org/p:latest"])];
    assert_eq!(asks(&configs, "r.example.org/p", DOCKER_HUB), "latest");
    let configs = [rewrite("mirror", "r.example.org/", "m.example.org/")];
    let resolved = |image: &str| treat(&configs, image, DOCKER_HUB).unwrap().resolved;
    assert_eq!(resolved("r.example.org/p"), "m.example.org/p");
    assert_eq!(resolved("r.example.org/p:latest"), "m.example.org/p:latest");
}

#[test]
fn h6_an_empty_prefix_asks_for_signatures_of_everything_after_all_others() {
    let configs = [signed("all", &[""]), signed("team", &["r.example.org/team/"])];
    assert_eq!(asks(&configs, "r.example.org/team/p:v1", DOCKER_HUB), "team");
    for image in ["r.example.org/other/p:v1", "localhost:5000/team/p", "p", "x.y/z"] {
        assert_eq!(asks(&configs, image, DOCKER_HUB), "all", "{image}");
    }
    // As upstream has it, an empty prefix neither rewrites nor names credentials.
    let configs = [rewrite("mirror", "", "m.example.org/"), secret("secret", &[""])];
    let treatment = treat(&configs, "r.example.org/p:v1", DOCKER_HUB).unwrap();
    assert_eq!((treatment.resolved.as_str(), treatment.pull_secret), ("r.example.org/p:v1", None));
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
