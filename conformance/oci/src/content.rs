//! The kinds of content that a registry must carry, and how each is made.

use crate::context::{Blob, Context, Repo};
use crate::digest::Algorithm;
use crate::exchange::Verdict;
use serde_json::{Value, json};

pub(crate) const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(crate) const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
pub(crate) const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
pub(crate) const EMPTY: &str = "application/vnd.oci.empty.v1+json";
pub(crate) const DOCKER_IMAGE: &str = "application/vnd.docker.distribution.manifest.v2+json";
pub(crate) const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// Everything, as clients in wide use send it.
pub(crate) const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.docker.distribution.manifest.v2+json";

/// The bytes of a manifest or index, and what they are called.
#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    pub(crate) media_type: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) digest: String,
}

impl Manifest {
    /// The document as it stands, under the media type that it states.
    pub(crate) fn of(document: &Value, algorithm: Algorithm) -> Self {
        let media_type = document["mediaType"].as_str().unwrap_or(IMAGE).to_owned();
        let bytes = document.to_string().into_bytes();
        let digest = algorithm.digest(&bytes);
        Self { media_type, bytes, digest }
    }

    pub(crate) fn descriptor(&self) -> Value {
        json!({"mediaType": self.media_type, "digest": self.digest, "size": self.bytes.len()})
    }
}

/// A descriptor of a blob.
pub(crate) fn descriptor(media_type: &str, blob: &Blob) -> Value {
    json!({"mediaType": media_type, "digest": blob.digest, "size": blob.bytes.len()})
}

/// What a kind consists of.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) blobs: Vec<Blob>,
    /// Manifests that the root refers to.
    pub(crate) children: Vec<Manifest>,
    /// The thing itself.
    pub(crate) root: Manifest,
    /// The digest in the `subject` of the root.
    pub(crate) subject: Option<String>,
}

impl Content {
    /// Pushes everything but the thing itself.
    pub(crate) async fn push_parts(&self, repo: &Repo<'_>) -> Verdict {
        for blob in &self.blobs {
            repo.push_blob(blob).await?;
        }
        for child in &self.children {
            repo.push(&child.digest, child).await?;
        }
        Ok(())
    }

    /// Pushes everything, the thing itself by its digest.
    pub(crate) async fn push(&self, repo: &Repo<'_>) -> Verdict {
        self.push_parts(repo).await?;
        repo.push(&self.root.digest, &self.root).await.map(drop)
    }

    /// Pushes everything, the thing itself under a tag.
    pub(crate) async fn push_as(&self, repo: &Repo<'_>, tag: &str) -> Verdict {
        self.push_parts(repo).await?;
        repo.push(tag, &self.root).await.map(drop)
    }
}

/// An image configuration that nobody else has.
fn config(context: &Context, algorithm: Algorithm) -> Blob {
    let made = context.with_random(crate::random::Random::suffix);
    let config = json!({
        "architecture": "amd64", "os": "linux", "author": made,
        "config": {"Labels": {"org.example.run": made}},
        "rootfs": {"type": "layers", "diff_ids": [algorithm.digest(made.as_bytes())]},
    });
    Blob::new(config.to_string(), algorithm)
}

/// An image of one layer as a JSON document, with the blobs it needs.
pub(crate) fn image_document(context: &Context, algorithm: Algorithm) -> (Value, Vec<Blob>) {
    let config = config(context, algorithm);
    let layer = context.blob(200, algorithm);
    let document = json!({
        "schemaVersion": 2, "mediaType": IMAGE,
        "config": descriptor(CONFIG, &config), "layers": [descriptor(LAYER, &layer)],
    });
    (document, vec![config, layer])
}

/// The usual content: an image of one layer.
pub(crate) fn image(context: &Context, algorithm: Algorithm) -> Content {
    let (document, blobs) = image_document(context, algorithm);
    Content { blobs, children: Vec::new(), root: Manifest::of(&document, algorithm), subject: None }
}

/// An artifact with an empty config, as signatures and attestations are: `{}` is the config and
/// the only layer, the annotation makes it one of its own.
pub(crate) fn artifact_document(context: &Context, algorithm: Algorithm) -> (Value, Vec<Blob>) {
    let empty = Blob::new("{}", algorithm);
    let made = context.with_random(crate::random::Random::suffix);
    let document = json!({
        "schemaVersion": 2, "mediaType": IMAGE, "artifactType": "application/vnd.example.artifact",
        "config": descriptor(EMPTY, &empty), "layers": [descriptor(EMPTY, &empty)],
        "annotations": {"org.example.run": made},
    });
    (document, vec![empty])
}

/// An index of two images.
pub(crate) fn index(context: &Context, algorithm: Algorithm) -> Content {
    let children = [image(context, algorithm), image(context, algorithm)];
    let document = index_of(&children.each_ref().map(|child| child.root.clone()));
    Content {
        blobs: children.iter().flat_map(|child| child.blobs.clone()).collect(),
        children: children.iter().map(|child| child.root.clone()).collect(),
        root: Manifest::of(&document, algorithm),
        subject: None,
    }
}

/// The document of an index.
pub(crate) fn index_of(children: &[Manifest]) -> Value {
    let mut manifests: Vec<Value> = children.iter().map(Manifest::descriptor).collect();
    for (entry, architecture) in manifests.iter_mut().zip(["amd64", "arm64"]) {
        entry["platform"] = json!({"architecture": architecture, "os": "linux"});
    }
    json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests})
}
