//! Every lie is noticed by the check that is about it, and that check passes without the lie.

use crate::peer::{Kind, Peer};
use crate::proxy::{self, Answer, Lie};
use conformance_oci::{Selection, Target, run};

fn is_blob(answer: &Answer) -> bool {
    answer.target.contains("/blobs/sha256:")
}

/// The check, and a lie about what it demands.
const LIES: [(&str, Lie); 25] = [
    ("base.get", |a| a.status("200", "404")),
    ("base.api-version", |a| a.drop("docker-distribution-api-version")),
    ("blob.get.sha256", |a| {
        if a.method == "GET" && is_blob(a) {
            a.body[10] ^= 1;
        }
    }),
    ("blob.head.sha256", |a| {
        if a.method == "HEAD" {
            a.body = b"a body after HEAD".to_vec();
        }
    }),
    ("blob.head.length.sha256", |a| {
        if a.method == "HEAD" {
            a.drop("content-length");
        }
    }),
    ("blob.head.equals-get.sha256", |a| {
        if a.method == "HEAD" {
            a.drop("etag");
        }
    }),
    ("blob.digest-header.present.sha256", |a| a.drop("docker-content-digest")),
    ("blob.digest-header.matches.sha256", |a| {
        a.head =
            a.head.replace("Docker-Content-Digest: sha256:", "Docker-Content-Digest: sha256:0");
    }),
    ("blob.content-type", |a| a.head = a.head.replace("octet-stream", "x-tar")),
    ("blob.if-none-match", |a| a.status("304", "200")),
    ("blob.other-repository.sha256", |a| a.status("404", "200")),
    ("blob.range.first-last.sha256", |a| a.head = a.head.replace("bytes 100-299/", "bytes 0-199/")),
    ("blob.range.clamped", |a| a.status("206", "200")),
    ("upload.post", |a| a.drop("location")),
    ("upload.post.uuid", |a| a.drop("docker-upload-uuid")),
    ("upload.put.digest-header.sha256", |a| {
        if a.method == "PUT" {
            a.drop("docker-content-digest");
        }
    }),
    ("chunks.range", |a| a.head = a.head.replace("Range: 0-", "Range: bytes=0-")),
    ("mount.from.mounts.sha256", |a| a.status("201", "202")),
    ("manifest.content-type", |a| {
        a.head = a.head.replace("manifest.v1+json", "manifest.v1+json; charset=utf-8");
    }),
    ("manifest.put.location.sha256", |a| {
        if a.method == "PUT" && a.target.contains("/manifests/") {
            a.head = a.head.replace("/manifests/", "/elsewhere/");
        }
    }),
    ("kind.index.pull.sha256", |a| {
        if a.method == "GET" && a.target.contains("/manifests/") {
            a.body.push(b'\n');
            let body = a.body.clone();
            a.say(body);
        }
    }),
    ("delete.manifest.sha256", |a| {
        if a.method == "GET" {
            a.status("404", "200");
        }
    }),
    ("refuse.blob.unknown.code", |a| {
        if a.method == "GET" {
            a.say(r#"{"errors":[{"code":"blob_unknown"}]}"#);
        }
    }),
    ("refuse.manifest.unknown-tag.status", |a| a.status("404", "500")),
    ("catalog.list", |a| {
        if a.target.contains("_catalog") {
            a.say(r#"{"repositories":[]}"#);
        }
    }),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lies_are_noticed() {
    let peer = Peer::start(Kind::DockerRegistry, false).await;
    for (id, lie) in LIES {
        for (what, lie, wanted) in [("the truth", truth as Lie, true), ("a lie", lie, false)] {
            let target = Target::new(proxy::start(peer.port(), lie).await);
            let selection = Selection { filter: Some(id.to_owned()), ..Selection::default() };
            let report = run(&target, &selection).await.unwrap();
            let finding = report.findings.iter().find(|finding| finding.check.id == id);
            let finding = finding.unwrap_or_else(|| panic!("no check is called {id}"));
            assert_eq!(finding.passed(), wanted, "{id} with {what}\n{}", report.to_text());
        }
    }
}

fn truth(_: &mut Answer) {}
