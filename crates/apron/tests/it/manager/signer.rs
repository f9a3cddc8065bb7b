//! Somebody who signs images as cosign does: openssl makes the keys and the signatures, and they
//! are put beside the image in both of cosign's ways.

use super::stage::Stage;
use crate::registry::ask;
use crate::support::{peer, program};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oci::Digest;
use serde_json::{Value as Json, json};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const PAYLOAD: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// How a key is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    /// As `cosign generate-key-pair` makes it.
    P256,
    Ed25519,
}

/// Somebody with a key.
pub(super) struct Signer<'stage> {
    stage: &'stage Stage,
    name: &'static str,
    scheme: Scheme,
}

impl<'stage> Signer<'stage> {
    pub(super) fn new(stage: &'stage Stage, name: &'static str, scheme: Scheme) -> Self {
        let (key, public) = (format!("{name}.key"), format!("{name}.pub"));
        let curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
        let algorithm = match scheme {
            Scheme::P256 => &curve[..],
            Scheme::Ed25519 => &["-algorithm", "ed25519"],
        };
        let words = [&["genpkey", "-out", &key], algorithm].concat();
        program(&stage.scratch, "openssl", words).ok();
        program(&stage.scratch, "openssl", ["pkey", "-in", &key, "-pubout", "-out", &public]).ok();
        Self { stage, name, scheme }
    }

    /// The key that others know it by.
    pub(super) fn public(&self) -> String {
        let path = self.stage.scratch.join(format!("{}.pub", self.name));
        fs_err::read_to_string(path).unwrap()
    }

    /// An authority of an image configuration, whose key is in the Secret of this name.
    pub(super) fn authority(&self, secret: &str) -> Json {
        let reference = json!({"name": secret, "key": "cosign.pub"});
        json!({"name": self.name, "key": {"secretRef": reference, "hashAlgorithm": "sha256"}})
    }

    /// Asks for its signature on all images that begin like this. Image configuration and Secret
    /// are called like the signer.
    pub(super) fn is_asked_for(&self, prefix: &str) {
        self.stage.secret(self.name, "cosign.pub", &self.public());
        self.stage.image_config(self.name, &asks(prefix, &[self.authority(self.name)]));
    }

    fn signature(&self, message: &[u8]) -> String {
        let (file, made) = (format!("{}.message", self.name), format!("{}.made", self.name));
        self.stage.scratch.write(&file, message);
        let key = format!("{}.key", self.name);
        let words = match self.scheme {
            Scheme::P256 => vec!["dgst", "-sha256", "-sign", &key, "-out", &made, &file],
            Scheme::Ed25519 => {
                vec!["pkeyutl", "-sign", "-rawin", "-inkey", &key, "-out", &made, "-in", &file]
            }
        };
        program(&self.stage.scratch, "openssl", words).ok();
        STANDARD.encode(fs_err::read(self.stage.scratch.join(&made)).unwrap())
    }

    /// Signs an image by tag, and those who signed before stay: `cosign sign`, up to its second
    /// version.
    pub(super) fn sign(&self, image: &str) {
        let (registry, repository) = place(image);
        let digest = digest(self.stage, image);
        let payload = json!({
            "critical": {
                "identity": {"docker-reference": format!("{registry}/{repository}")},
                "image": {"docker-manifest-digest": digest.to_string()},
                "type": "cosign container image signature",
            },
            "optional": null,
        });
        let payload = payload.to_string();
        let signature = self.signature(payload.as_bytes());
        let mut layer = put(registry, repository, PAYLOAD, payload.as_bytes());
        layer["annotations"] = json!({"dev.cosignproject.cosign/signature": signature});
        let tag = format!("sha256-{}.sig", digest.hex());
        let path = format!("/v2/{repository}/manifests/{tag}");
        let head = format!("GET {path} HTTP/1.0\r\nAccept: {MANIFEST}\r\n\r\n");
        let (status, before) = ask(registry, &head, b"").unwrap();
        let mut layers = Vec::new();
        if status == 200 {
            let before: Json =
                serde_json::from_str(before.split_once("\r\n\r\n").unwrap().1).unwrap();
            layers.clone_from(before["layers"].as_array().unwrap());
        }
        layers.push(layer);
        let ids: Vec<&Json> = layers.iter().map(|one| &one["digest"]).collect();
        let config = json!({
            "architecture": "", "created": "0001-01-01T00:00:00Z",
            "history": [{"created": "0001-01-01T00:00:00Z"}], "os": "",
            "rootfs": {"type": "layers", "diff_ids": ids}, "config": {},
        });
        let of = "application/vnd.oci.image.config.v1+json";
        let config = put(registry, repository, of, config.to_string().as_bytes());
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers,
        });
        put_manifest(registry, &path, &manifest);
    }

    /// Signs an image with a bundle that refers to it: `cosign sign` from its third version on.
    pub(super) fn sign_with_a_bundle(&self, image: &str) {
        let (registry, repository) = place(image);
        let digest = digest(self.stage, image);
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"digest": {"sha256": digest.hex()}}],
            "predicateType": "https://sigstore.dev/cosign/sign/v1",
            "predicate": {},
        });
        let (statement, of) = (statement.to_string(), "application/vnd.in-toto+json");
        let message = format!("DSSEv1 {} {of} {} {statement}", of.len(), statement.len());
        let signature = self.signature(message.as_bytes());
        let bundle = json!({
            "mediaType": BUNDLE,
            "verificationMaterial": {"publicKey": {"hint": self.name}},
            "dsseEnvelope": {
                "payload": STANDARD.encode(&statement), "payloadType": of,
                "signatures": [{"sig": signature}],
            },
        });
        let layer = put(registry, repository, BUNDLE, bundle.to_string().as_bytes());
        let config = put(registry, repository, "application/vnd.oci.empty.v1+json", b"{}");
        let head = format!(
            "GET /v2/{repository}/manifests/{digest} HTTP/1.0\r\nAccept: {MANIFEST}\r\n\r\n"
        );
        let (status, found) = ask(registry, &head, b"").unwrap();
        assert_eq!(status, 200, "{found}");
        let size = found.split_once("\r\n\r\n").unwrap().1.len();
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": BUNDLE, "config": config,
            "layers": [layer],
            "subject": {"mediaType": MANIFEST, "size": size, "digest": digest.to_string()},
        });
        let own = Digest::of(manifest.to_string().as_bytes());
        put_manifest(registry, &format!("/v2/{repository}/manifests/{own}"), &manifest);
    }
}

/// What an image configuration says that asks for one of these.
pub(super) fn asks(prefix: &str, authorities: &[Json]) -> Json {
    json!({
        "matchImages": [{"prefix": prefix}],
        "verification": {"provider": "Cosign", "cosign": {"authorities": authorities}},
    })
}

/// The digest behind a tag.
pub(super) fn digest(stage: &Stage, image: &str) -> Digest {
    peer(&stage.scratch, "crane", ["digest", image]).ok().stdout.trim().parse().unwrap()
}

fn place(image: &str) -> (&str, &str) {
    let (registry, rest) = image.split_once('/').unwrap();
    (registry, rest.split_once(':').unwrap().0)
}

/// Pushes a blob, and gives its descriptor.
fn put(registry: &str, repository: &str, of: &str, bytes: &[u8]) -> Json {
    let digest = Digest::of(bytes);
    let head = format!(
        "POST /v2/{repository}/blobs/uploads/?digest={digest} HTTP/1.0\r\nContent-Type: \
         application/octet-stream\r\nContent-Length: {}\r\n\r\n",
        bytes.len()
    );
    let (status, answer) = ask(registry, &head, bytes).unwrap();
    assert_eq!(status, 201, "{answer}");
    json!({"mediaType": of, "size": bytes.len(), "digest": digest.to_string()})
}

fn put_manifest(registry: &str, path: &str, manifest: &Json) {
    let manifest = manifest.to_string();
    let head = format!(
        "PUT {path} HTTP/1.0\r\nContent-Type: {MANIFEST}\r\nContent-Length: {}\r\n\r\n",
        manifest.len()
    );
    let (status, answer) = ask(registry, &head, manifest.as_bytes()).unwrap();
    assert_eq!(status, 201, "{answer}");
}
