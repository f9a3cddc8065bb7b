//! The catalog of a registry as people meet it: pushed to, retagged, deleted from, killed, and
//! asked again each time.

use crate::registry::{Served, ask};
use crate::support::{Ran, Scratch, apron, command, patiently};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Stdio;

const NOP: &str = "nopresources.nop.crossplane.io";
const INPUT: &str = "inputs.autoready.fn.crossplane.io";

/// Builds one of our packages, with something else in its readme each time.
fn build(scratch: &Scratch, name: &str, number: u32) -> String {
    let directory = scratch.copy_package(name);
    let metadata = directory.join("crossplane.yaml");
    let text = fs_err::read_to_string(&metadata).unwrap();
    let changed = text.replace("readme: |", &format!("readme: |\n      Build {number}."));
    assert_ne!(text, changed);
    fs_err::write(&metadata, changed).unwrap();
    let file = format!("{name}-{number}.xpkg");
    apron(scratch, ["build", name, "-o", &file]).ok();
    file
}

fn push(scratch: &Scratch, served: &Served, file: &str, place: &str) {
    apron(scratch, ["push", "-f", file, &served.reference(place)]).ok();
}

/// The body of an answer with this status.
fn body(served: &Served, path: &str, status: u16) -> String {
    let (found, answer) = served.get(path);
    assert_eq!(found, status, "{path}: {answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

fn json(served: &Served, path: &str) -> Json {
    serde_json::from_str(&body(served, path, 200)).unwrap()
}

/// Which packages bring a kind: `repository tag,tag tag; …`.
fn definers(served: &Served, kind: &str) -> String {
    let found = json(served, &format!("/api/v1/crds/{kind}/packages"));
    let packages = found["packages"].as_array().unwrap().iter().map(|package| {
        let versions = package["versions"].as_array().unwrap().iter().map(|version| {
            let tags = version["tags"].as_array().unwrap().iter();
            tags.map(|tag| tag.as_str().unwrap()).collect::<Vec<_>>().join(",")
        });
        let versions: Vec<String> = versions.collect();
        format!("{} {}", package["repository"].as_str().unwrap(), versions.join(" "))
    });
    packages.collect::<Vec<_>>().join("; ")
}

/// Waits until the catalog says this.
#[track_caller]
fn comes_to(served: &Served, kind: &str, expected: &str) {
    patiently(|| match definers(served, kind) {
        found if found == expected => Ok(()),
        found => Err(format!("{kind}: {found:?} instead of {expected:?}")),
    });
}

fn digest(served: &Served, repository: &str, tag: &str) -> String {
    let version = json(served, &format!("/api/v1/packages/{repository}/-/versions/{tag}"));
    version["digest"].as_str().unwrap().to_owned()
}

fn delete(served: &Served, repository: &str, reference: &str) {
    let head = format!("DELETE /v2/{repository}/manifests/{reference} HTTP/1.0\r\n\r\n");
    let (status, answer) = ask(served.address(), &head, b"").unwrap();
    assert_eq!(status, 202, "{answer}");
}

/// Everything that is asked here, as text.
fn everything(served: &Served) -> String {
    let paths = [
        "/api/v1/packages",
        "/api/v1/crds",
        "/api/v1/search?q=nop",
        "/api/v1/packages/team/nop/-/versions",
        "/api/v1/packages/team/nop/-/versions/v1.1.0/crds",
        "/api/v1/crds/nopresources.nop.crossplane.io/packages",
        "/api/v1/crds/nopresources.nop.crossplane.io/versions/v1alpha1/schema",
        "/api/v1/crds/nopresources.nop.crossplane.io/versions/v1alpha1/sample",
        "/api/v1/crds/nopresources.nop.crossplane.io/versions/v1alpha1/raw",
        "/api/v1/resolve?crd=nopresource.nop.crossplane.io/v1alpha1&lenient=true",
        "/api/v1/groups",
        "/api/v1/facets",
        "/api/v1/search?q=forProvider.conditionAfter",
    ];
    paths.map(|path| body(served, path, 200)).join("\n")
}

#[test]
fn the_catalog_is_true_whatever_happens_to_the_registry() {
    let scratch = Scratch::new();
    let (first, second) = (build(&scratch, "provider-nop", 1), build(&scratch, "provider-nop", 2));
    let function = build(&scratch, "function-auto-ready", 1);
    let served = Served::start(&scratch);
    // Pushed.
    push(&scratch, &served, &first, "team/nop:v1.0.0");
    push(&scratch, &served, &function, "team/function:v0.1.0");
    comes_to(&served, NOP, "team/nop v1.0.0");
    comes_to(&served, INPUT, "team/function v0.1.0");
    let input = json(&served, &format!("/api/v1/crds/{INPUT}/packages"));
    assert_eq!(input["packages"][0]["installs"], false, "inputs are never installed");
    assert!(json(&served, "/api/v1/openapi.json")["paths"]["/api/v1/resolve"].is_object());
    let resolved = json(&served, &format!("/api/v1/resolve?crd={NOP}/v1alpha1"));
    assert_eq!(resolved["candidates"][0]["repository"], "team/nop", "{resolved}");
    // Tagged, and the tag moved.
    push(&scratch, &served, &first, "team/nop:latest");
    comes_to(&served, NOP, "team/nop v1.0.0,latest");
    push(&scratch, &served, &second, "team/nop:latest");
    push(&scratch, &served, &second, "team/nop:v1.1.0");
    comes_to(&served, NOP, "team/nop v1.1.0,latest v1.0.0");
    push(&scratch, &served, &first, "other/nop:v3.0.0");
    comes_to(&served, NOP, "other/nop v3.0.0; team/nop v1.1.0,latest v1.0.0");
    body(&served, &format!("/api/v1/resolve?crd={NOP}"), 409);
    let changes = json(&served, "/api/v1/packages/team/nop/-/diff?from=v1.0.0&to=v1.1.0");
    assert_eq!(changes["breaking"], 0, "{changes}");
    // Untagged, and deleted.
    delete(&served, "team/nop", "latest");
    comes_to(&served, NOP, "other/nop v3.0.0; team/nop v1.1.0 v1.0.0");
    delete(&served, "team/nop", &digest(&served, "team/nop", "v1.0.0"));
    comes_to(&served, NOP, "other/nop v3.0.0; team/nop v1.1.0");
    delete(&served, "other/nop", &digest(&served, "other/nop", "v3.0.0"));
    comes_to(&served, NOP, "team/nop v1.1.0");
    body(&served, "/api/v1/packages/other/nop", 404);
    // Stopped and started.
    let before = everything(&served);
    assert!(served.stop().success());
    let served = Served::start(&scratch);
    assert_eq!(everything(&served), before);
    // Killed after a push was acknowledged, wherever the catalog was by then.
    for number in 0..3 {
        push(&scratch, &served, &first, &format!("crash/nop-{number}:v1.0.0"));
    }
    served.kill();
    let served = Served::start(&scratch);
    comes_to(
        &served,
        NOP,
        "crash/nop-0 v1.0.0; crash/nop-1 v1.0.0; crash/nop-2 v1.0.0; team/nop v1.1.0",
    );
    // Lost, or damaged, and made again from what the registry has.
    let before = everything(&served);
    assert!(served.stop().success());
    for end in ["", "-wal", "-shm"] {
        let _ = fs_err::remove_file(scratch.join(format!("data/catalog.db{end}")));
    }
    fs_err::write(scratch.join("data/catalog.db"), vec![b'x'; 5000]).unwrap();
    let served = Served::start(&scratch);
    patiently(|| {
        let (status, _) = served.get("/api/v1/packages/team/nop");
        let settled = status == 200 && everything(&served) == before;
        settled.then_some(()).ok_or_else(|| "the catalog is not what it was".to_owned())
    });
}

/// Every kind of every package leads back to it, and every package that a kind leads to brings it.
#[track_caller]
fn both_directions_hold(served: &Served) -> usize {
    let items = |path: &str| json(served, path)["items"].as_array().unwrap().clone();
    let (mut brought, mut led_to) = (BTreeSet::new(), BTreeSet::new());
    for package in items("/api/v1/packages") {
        let repository = package["repository"].as_str().unwrap();
        for version in items(&format!("/api/v1/packages/{repository}/-/versions")) {
            let digest = version["digest"].as_str().unwrap();
            let place = format!("/api/v1/packages/{repository}/-/versions/{digest}/crds");
            if version["state"] == "read" {
                let kinds = items(&place).into_iter().map(|it| it["name"].to_string());
                brought.extend(kinds.map(|kind| format!("{kind} {repository}@{digest}")));
            }
        }
    }
    for kind in items("/api/v1/crds") {
        let name = kind["name"].as_str().unwrap();
        let found = json(served, &format!("/api/v1/crds/{name}/packages"));
        for package in found["packages"].as_array().unwrap() {
            let repository = package["repository"].as_str().unwrap();
            for version in package["versions"].as_array().unwrap() {
                let digest = version["digest"].as_str().unwrap();
                led_to.insert(format!("{} {repository}@{digest}", kind["name"]));
            }
        }
    }
    assert_eq!(brought, led_to);
    brought.len()
}

/// The states of a package's versions: `tag state; …`.
fn states(served: &Served, repository: &str) -> String {
    let versions = json(served, &format!("/api/v1/packages/{repository}/-/versions"));
    let told = versions["items"].as_array().unwrap().iter().map(|version| {
        let tag = version["tags"][0].as_str().unwrap_or_default();
        format!("{tag} {}", version["state"].as_str().unwrap())
    });
    told.collect::<Vec<_>>().join("; ")
}

/// The file of the layer that a version of a package is read from.
fn layer_file(scratch: &Scratch, served: &Served, repository: &str, tag: &str) -> PathBuf {
    let accept = "application/vnd.docker.distribution.manifest.v2+json";
    let head = format!("GET /v2/{repository}/manifests/{tag} HTTP/1.0\r\nAccept: {accept}\r\n\r\n");
    let (_, answer) = ask(served.address(), &head, b"").unwrap();
    let manifest: Json = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let digest = manifest["layers"][0]["digest"].as_str().unwrap();
    scratch.join("data/blobs").join(digest.replace(':', "/"))
}

#[test]
fn both_directions_hold_after_collection_rebuilding_scrubbing_and_in_a_mirror() {
    let scratch = Scratch::new();
    let (first, second) = (build(&scratch, "provider-nop", 1), build(&scratch, "provider-nop", 2));
    let function = build(&scratch, "function-auto-ready", 1);
    let served = Served::start(&scratch);
    let keep = |words: &[&str]| {
        let flags = ["--data-dir", "data"];
        apron(&scratch, ["registry"].iter().chain(words).chain(&flags))
    };
    push(&scratch, &served, &first, "team/nop:v1.0.0");
    push(&scratch, &served, &second, "team/nop:v1.1.0");
    push(&scratch, &served, &function, "team/function:v0.1.0");
    push(&scratch, &served, &first, "other/nop:latest");
    push(&scratch, &served, &second, "other/nop:latest");
    // What has no tag is there until it is collected.
    comes_to(&served, NOP, "other/nop latest ; team/nop v1.1.0 v1.0.0");
    comes_to(&served, INPUT, "team/function v0.1.0");
    assert_eq!(both_directions_hold(&served), 5);
    keep(&["gc", "--untagged-after", "0", "--ignore-lease"]).ok();
    comes_to(&served, NOP, "other/nop latest; team/nop v1.1.0 v1.0.0");
    assert_eq!(both_directions_hold(&served), 4);
    // The registry's database is made again.
    let before = everything(&served);
    let layer = layer_file(&scratch, &served, "team/nop", "v1.0.0");
    assert!(served.stop().success());
    keep(&["rebuild"]).ok();
    let served = Served::start(&scratch);
    comes_to(&served, NOP, "other/nop latest; team/nop v1.1.0 v1.0.0");
    assert_eq!((both_directions_hold(&served), everything(&served)), (4, before));
    // The disk loses bytes: what cannot be pulled is listed as such, and leads nowhere.
    assert!(served.stop().success());
    let length = fs_err::metadata(&layer).unwrap().len();
    fs_err::write(&layer, vec![b'x'; usize::try_from(length).unwrap()]).unwrap();
    assert!(keep(&["scrub"]).failed().contains("1 blob damaged"));
    let served = Served::start(&scratch);
    comes_to(&served, NOP, "other/nop latest; team/nop v1.1.0");
    assert_eq!(states(&served, "team/nop"), "v1.1.0 read; v1.0.0 incomplete");
    assert_eq!(both_directions_hold(&served), 3);
    // Also if the database is made again meanwhile, and until another push brings the bytes.
    assert!(served.stop().success());
    keep(&["rebuild"]).ok();
    let served = Served::start(&scratch);
    comes_to(&served, NOP, "other/nop latest; team/nop v1.1.0");
    push(&scratch, &served, &first, "healing/nop:v1.0.0");
    comes_to(&served, NOP, "healing/nop v1.0.0; other/nop latest; team/nop v1.1.0 v1.0.0");
    assert_eq!(both_directions_hold(&served), 5);
    // A mirror knows what was pulled through it.
    let upstream = format!("up=http://{}", served.address());
    let mirror = Served::start_with(&scratch, &["--data-dir", "mirror", "--mirror", &upstream]);
    for (number, place) in ["up/team/nop:v1.1.0", "up/team/function:v0.1.0"].iter().enumerate() {
        let file = format!("mirrored-{number}.xpkg");
        apron(&scratch, ["pull", &mirror.reference(place), "-f", &file]).ok();
    }
    comes_to(&mirror, NOP, "up/team/nop v1.1.0");
    comes_to(&mirror, INPUT, "up/team/function v0.1.0");
    assert_eq!(both_directions_hold(&mirror), 2);
}

#[test]
fn a_package_that_is_broken_is_listed_with_the_reason_and_stops_nothing() {
    let scratch = Scratch::new();
    let file = build(&scratch, "provider-nop", 1);
    let served = Served::start(&scratch);
    let (config, layer) = ("{}", "this is no archive");
    for blob in [config, layer] {
        let digest = oci::Digest::of(blob.as_bytes());
        let head = format!(
            "POST /v2/team/broken/blobs/uploads/?digest={digest} HTTP/1.0\r\nContent-Length: {}\r\n\r\n",
            blob.len()
        );
        assert_eq!(ask(served.address(), &head, blob.as_bytes()).unwrap().0, 201);
    }
    let described = |blob: &str, kind: &str| {
        let digest = oci::Digest::of(blob.as_bytes());
        format!(r#""mediaType":"{kind}","size":{},"digest":"{digest}""#, blob.len())
    };
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest = format!(
        r#"{{"schemaVersion":2,"mediaType":"{kind}","config":{{{}}},"layers":[{{{},"annotations":{{"io.crossplane.xpkg":"base"}}}}]}}"#,
        described(config, "application/vnd.oci.image.config.v1+json"),
        described(layer, "application/vnd.oci.image.layer.v1.tar+gzip"),
    );
    let head = format!(
        "PUT /v2/team/broken/manifests/v1.0.0 HTTP/1.0\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        manifest.len()
    );
    assert_eq!(ask(served.address(), &head, manifest.as_bytes()).unwrap().0, 201);
    push(&scratch, &served, &file, "team/nop:v1.0.0");
    comes_to(&served, NOP, "team/nop v1.0.0");
    let versions = json(&served, "/api/v1/packages/team/broken/-/versions");
    assert_eq!(versions["items"][0]["state"], "broken", "{versions}");
    assert!(versions["items"][0]["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
}

fn with_input(scratch: &Scratch, input: &str, words: &[&str]) -> Ran {
    let mut program = command(scratch);
    program.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

/// What a command says, without the registry's address and without the space it takes in columns.
fn said(ran: &Ran, served: &Served) -> String {
    let mut text = ran.all().replace(served.address(), "HOST");
    while text.contains("   ") {
        text = text.replace("   ", "  ");
    }
    text
}

#[test]
fn people_ask_by_command_and_see_what_they_may_pull() {
    let scratch = Scratch::new();
    let file = build(&scratch, "provider-nop", 1);
    let user = ["registry", "user", "--data-dir", "data"];
    with_input(&scratch, "ada's password\n", &[&user[..], &["add", "ada"]].concat()).ok();
    let allow = ["allow", "ada", "secret/**", "pull,push"];
    apron(&scratch, [&user[..], &allow].concat()).ok();
    let served = Served::start(&scratch);
    let host = served.address();
    let login = ["login", "--username", "ada", "--password-stdin", host];
    with_input(&scratch, "ada's password\n", &login).ok();
    push(&scratch, &served, &file, "team/nop:v1.0.0");
    push(&scratch, &served, &file, "secret/nop:v2.0.0");
    let run = |words: &[&str]| apron(&scratch, [words, &["--registry", host]].concat());
    patiently(|| {
        let found = run(&["which", "NopResource", "-o", "json"]);
        let both = found.stdout.contains("secret/nop") && found.stdout.contains("team/nop");
        both.then_some(()).ok_or_else(|| found.all())
    });
    insta::assert_snapshot!(said(&run(&["which", "nopresource"]).ok(), &served), @r"
    nopresources.nop.crossplane.io (NopResource, Cluster)
    PACKAGE  TYPE  VERSIONS  SERVES
    HOST/secret/nop  Provider  v2.0.0  v1alpha1
    HOST/team/nop  Provider  v1.0.0  v1alpha1
    several packages bring it: install one of them, not all
    ");
    insta::assert_snapshot!(said(&run(&["search", "nop"]).ok(), &served), @r"
    PACKAGE  TYPE  NEWEST  KINDS  DESCRIPTION
    secret/nop  Provider  v2.0.0  1  A provider that does nothing, carefully.
    team/nop  Provider  v1.0.0  1  A provider that does nothing, carefully.

    KIND  NAME  PACKAGES
    NopResource  nopresources.nop.crossplane.io  secret/nop, team/nop
    ");
    // Without a name, what is public is told, and nothing of the rest.
    apron(&scratch, ["logout", host]).ok();
    let asked = "nopresources.nop.crossplane.io/v1alpha1";
    insta::assert_snapshot!(said(&run(&["which", asked]).ok(), &served), @r"
    nopresources.nop.crossplane.io (NopResource, Cluster)
    PACKAGE  TYPE  VERSIONS  SERVES
    HOST/team/nop  Provider  v1.0.0  v1alpha1
    install it with `apron install provider HOST/team/nop:v1.0.0`
    ");
    insta::assert_snapshot!(said(&run(&["search", "nop", "crossplane"]).ok(), &served), @r"
    KIND  NAME  PACKAGES
    NopResource  nopresources.nop.crossplane.io  team/nop
    ");
    insta::assert_snapshot!(said(&run(&["which", "*.nop.crossplane.io"]).ok(), &served), @r"
    KIND  NAME  PACKAGES
    NopResource  nopresources.nop.crossplane.io  team/nop
    ");
    // Mistakes come with advice.
    let failed = |words: &[&str]| run(words).failed();
    insta::assert_snapshot!(failed(&["which", "nopresuorce"]), @r"
    error: no package brings nopresuorce
    hint: did you mean nopresources.nop.crossplane.io?
    ");
    insta::assert_snapshot!(failed(&["which", "nopresources.nop.crossplane.io/v7"]), @r"
    error: no package brings nopresources.nop.crossplane.io/v7
    hint: check the name, push a package that brings it, or log in with `apron login`: only what you may pull is looked at
    ");
    insta::assert_snapshot!(failed(&["which", "no such kind.x"]), @r"
    error: `no such kind.x` is not a kind
      because `no such kind` is not the name of a kind: it has letters, digits and `-`, or is `*`
    hint: write it as Bucket, buckets.s3.example.org or buckets.s3.example.org/v1
    ");
    insta::assert_snapshot!(failed(&["search", "absent"]), @r"
    error: nothing is found for `absent`
    hint: try fewer words, or log in with `apron login`: only what you may pull is searched
    ");
    insta::assert_snapshot!(apron(&scratch, ["which", "Bucket"]).failed(), @r"
    error: it is not said which catalog to ask
    hint: name a registry with --registry HOST or a file with --catalog FILE, make a catalog with `apron catalog add`, or bring up a control plane with `apron up` and use its kubeconfig
    ");
}

#[test]
fn packages_of_any_registry_are_kept_in_a_file_for_places_without_a_network() {
    let scratch = Scratch::new();
    let (first, second) = (build(&scratch, "provider-nop", 1), build(&scratch, "provider-nop", 2));
    let function = build(&scratch, "function-auto-ready", 1);
    let served = Served::start(&scratch);
    push(&scratch, &served, &first, "team/nop:v1.0.0");
    push(&scratch, &served, &first, "team/nop:latest");
    push(&scratch, &served, &function, "team/function:v0.1.0");
    push(&scratch, &served, &second, "team/function:v9.0.0");
    let run = |words: &[&str]| apron(&scratch, [words, &["--catalog", "kept.db"]].concat());
    // A repository with its versions, and one version of another, from a list.
    let list = format!("# ours\n{}\n", served.reference("team/function:v0.1.0"));
    fs_err::write(scratch.join("list.txt"), list).unwrap();
    let add = ["catalog", "add", "--from", "list.txt", &served.reference("team/nop")];
    insta::assert_snapshot!(said(&run(&add).ok(), &served), @r"
    HOST/team/nop: 1 version, 1 new
    HOST/team/function: 1 version, 1 new
    ");
    // What is new is found, and nothing is read twice.
    push(&scratch, &served, &second, "team/nop:v1.1.0");
    insta::assert_snapshot!(said(&run(&["catalog", "sync"]).ok(), &served), @r"
    HOST/team/function: 1 version, 0 new
    HOST/team/nop: 2 versions, 1 new
    ");
    insta::assert_snapshot!(said(&run(&["which", "NopResource"]).ok(), &served), @r"
    nopresources.nop.crossplane.io (NopResource, Cluster)
    PACKAGE  TYPE  VERSIONS  SERVES
    HOST/team/nop  Provider  v1.1.0, v1.0.0  v1alpha1
    install it with `apron install provider HOST/team/nop:v1.1.0`
    ");
    run(&["catalog", "export", "all.jsonl.gz"]).ok();
    // A registry that is gone leaves what is known as it is.
    let repository = served.reference("team/nop");
    assert!(served.stop().success());
    let failed = run(&["catalog", "sync", "-o", "json"]);
    assert!(failed.stderr.contains("go on with `apron catalog sync`"), "{}", failed.all());
    assert!(run(&["search", "nop"]).ok().stdout.contains(&repository));
    // The file goes anywhere, and is asked as it is or read into another catalog.
    let asked = apron(&scratch, ["which", NOP, "--catalog", "all.jsonl.gz", "-o", "json"]).ok();
    assert!(asked.stdout.contains(&repository), "{}", asked.all());
    apron(&scratch, ["catalog", "import", "all.jsonl.gz", "--catalog", "other.db"]).ok();
    let again = apron(&scratch, ["which", NOP, "--catalog", "other.db", "-o", "json"]).ok();
    assert_eq!(again.stdout, asked.stdout);
    // A file of something else is left alone.
    fs_err::write(scratch.join("notes.txt"), "not a catalog").unwrap();
    for words in [["catalog", "import", "all.jsonl.gz"], ["catalog", "import", "notes.txt"]] {
        apron(&scratch, [&words[..], &["--catalog", "notes.txt"]].concat()).failed();
    }
    assert_eq!(fs_err::read_to_string(scratch.join("notes.txt")).unwrap(), "not a catalog");
}

#[test]
fn a_kind_is_explained_without_a_cluster() {
    let scratch = Scratch::new();
    let file = build(&scratch, "provider-nop", 1);
    let explain = |kind: &str, words: &[&str]| {
        apron(&scratch, [&["explain", kind, "--package", &file][..], words].concat())
    };
    let told = explain("NopResource.spec.forProvider", &[]).ok().stdout;
    for line in [
        "GROUP:      nop.crossplane.io",
        "KIND:       NopResource",
        "VERSION:    v1alpha1",
        "FIELD: forProvider <Object>",
        "  conditionAfter\t<[]Object>",
    ] {
        assert!(told.lines().any(|it| it.starts_with(line)), "{line}: {told}");
    }
    let whole = explain("nopresources.nop.crossplane.io", &["--recursive"]).ok().stdout;
    assert!(whole.contains("forProvider\t<Object>"), "{whole}");
    let json = explain("NopResource.spec", &["-o", "json"]).ok().stdout;
    let json: Json = serde_json::from_str(&json).unwrap();
    assert_eq!((json["kind"].as_str(), json["path"].as_str()), (Some("NopResource"), Some("spec")));
    let failed = explain("NopResource.spec.absent", &[]).failed();
    assert!(failed.contains("there is no field `absent`") && failed.contains("forProvider"));
    insta::assert_snapshot!(explain("Bucket", &[]).failed(), @r"
    error: no package brings Bucket
    hint: look for it with `apron search Bucket`, or name a package with --package
    ");
}

#[test]
fn a_registry_that_stops_ends_the_news_of_those_who_listen() {
    let scratch = Scratch::new();
    let served = Served::start(&scratch);
    let host = served.reference("");
    let mut listener = TcpStream::connect(host.trim_end_matches('/')).unwrap();
    let request =
        format!("GET /api/v1/events HTTP/1.1\r\nHost: {}\r\n\r\n", host.trim_end_matches('/'));
    listener.write_all(request.as_bytes()).unwrap();
    let mut news = Vec::new();
    while !String::from_utf8_lossy(&news).contains(": listening") {
        let mut part = [0; 1024];
        let count = listener.read(&mut part).unwrap();
        assert_ne!(count, 0, "{}", String::from_utf8_lossy(&news));
        news.extend_from_slice(&part[..count]);
    }
    let stopping = std::thread::spawn(move || served.stop());
    listener.read_to_end(&mut news).unwrap();
    // A stream that is cut off has no last chunk.
    let news = String::from_utf8_lossy(&news);
    assert!(news.ends_with("\r\n0\r\n\r\n"), "{news:?}");
    assert!(stopping.join().unwrap().success());
}
