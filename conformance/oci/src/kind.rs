//! The kinds of content: every shape of manifest that a registry must take and give back.

use crate::content::{
    Content, DOCKER_IMAGE, DOCKER_LIST, EMPTY, INDEX, LAYER, Manifest, artifact_document,
    descriptor, image, image_document, index, index_of,
};
use crate::context::{Blob, Context};
use crate::digest::Algorithm;
use serde_json::{Value, json};

const TAR: &str = "application/vnd.oci.image.layer.v1.tar";
const NON_DISTRIBUTABLE: &str = "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip";
const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
const DOCKER_LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";

/// The kinds. Each is pushed, pulled and deleted with both algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Image,
    Uncompressed,
    Large,
    Index,
    NestedIndex,
    EmptyIndex,
    Artifact,
    ArtifactIndex,
    NoLayers,
    ZeroByteLayer,
    EmptyJsonLayer,
    DataField,
    UnknownFields,
    MissingSubject,
    ImageWithSubject,
    IndexWithSubject,
    NonDistributable,
    DockerImage,
    DockerList,
}

impl Kind {
    /// Makes one that nobody else has.
    pub(crate) fn make(self, context: &Context, algorithm: Algorithm) -> Content {
        match self {
            Self::Image => image(context, algorithm),
            Self::Uncompressed => {
                with(context, algorithm, |d| d["layers"][0]["mediaType"] = TAR.into())
            }
            Self::Large => with(context, algorithm, |d| d["annotations"] = padding()),
            Self::Index => index(context, algorithm),
            Self::NestedIndex => nested(context, algorithm),
            Self::EmptyIndex => empty_index(context, algorithm),
            Self::Artifact => artifact(context, algorithm),
            Self::ArtifactIndex => artifact_index(context, algorithm),
            Self::NoLayers => with(context, algorithm, |d| d["layers"] = json!([])),
            Self::ZeroByteLayer => with_layer(context, algorithm, ""),
            Self::EmptyJsonLayer => with_layer(context, algorithm, "{}"),
            Self::DataField => data_field(context, algorithm),
            Self::UnknownFields => with(context, algorithm, unknown_fields),
            Self::MissingSubject => missing_subject(context, algorithm),
            Self::ImageWithSubject => image_with_subject(context, algorithm),
            Self::IndexWithSubject => index_with_subject(context, algorithm),
            Self::NonDistributable => non_distributable(context, algorithm),
            Self::DockerImage => docker_image(context, algorithm),
            Self::DockerList => docker_list(context, algorithm),
        }
    }
}

/// An image whose document is changed before it becomes bytes.
fn with(context: &Context, algorithm: Algorithm, change: impl FnOnce(&mut Value)) -> Content {
    let (mut document, blobs) = image_document(context, algorithm);
    change(&mut document);
    let subject = document["subject"]["digest"].as_str().map(ToOwned::to_owned);
    Content { blobs, children: Vec::new(), root: Manifest::of(&document, algorithm), subject }
}

/// An image whose only layer is this text.
fn with_layer(context: &Context, algorithm: Algorithm, layer: &str) -> Content {
    let layer = Blob::new(layer, algorithm);
    let mut item = with(context, algorithm, |d| d["layers"] = json!([descriptor(LAYER, &layer)]));
    item.blobs.truncate(1);
    item.blobs.push(layer);
    item
}

/// Annotations of 3.9 MB: 39 of 100 000 bytes.
fn padding() -> Value {
    let entries = (0..39).map(|i| (format!("org.example.pad{i:02}"), "x".repeat(99_970).into()));
    Value::Object(entries.collect())
}

fn unknown_fields(document: &mut Value) {
    document["x-example"] = json!({"nested": [1, 2.5, null, true, "text"]});
    document["config"]["x-example"] = json!("in a descriptor");
    document["layers"][0]["x-example"] = json!({"in": "another"});
}

/// An index in an index.
fn nested(context: &Context, algorithm: Algorithm) -> Content {
    let mut item = index(context, algorithm);
    item.children.push(item.root.clone());
    item.root = Manifest::of(&index_of(std::slice::from_ref(&item.root)), algorithm);
    item
}

fn empty_index(context: &Context, algorithm: Algorithm) -> Content {
    let mut document = index_of(&[]);
    document["annotations"] =
        json!({"org.example.run": context.with_random(crate::random::Random::suffix)});
    let root = Manifest::of(&document, algorithm);
    Content { blobs: Vec::new(), children: Vec::new(), root, subject: None }
}

fn artifact(context: &Context, algorithm: Algorithm) -> Content {
    let (document, blobs) = artifact_document(context, algorithm);
    Content { blobs, children: Vec::new(), root: Manifest::of(&document, algorithm), subject: None }
}

fn artifact_index(context: &Context, algorithm: Algorithm) -> Content {
    let child = artifact(context, algorithm);
    let mut document = index_of(std::slice::from_ref(&child.root));
    document["artifactType"] = json!("application/vnd.example.artifact-index");
    Content {
        blobs: child.blobs,
        children: vec![child.root],
        root: Manifest::of(&document, algorithm),
        subject: None,
    }
}

/// The config is embedded in its descriptor (base64 of `{}`), and the blob is pushed as well.
fn data_field(context: &Context, algorithm: Algorithm) -> Content {
    let empty = Blob::new("{}", algorithm);
    let mut item = with(context, algorithm, |document| {
        document["config"] = descriptor(EMPTY, &empty);
        document["config"]["data"] = json!("e30=");
        document["artifactType"] = json!("application/vnd.example.data");
    });
    item.blobs[0] = empty;
    item
}

fn missing_subject(context: &Context, algorithm: Algorithm) -> Content {
    let subject = image(context, algorithm).root.descriptor();
    with(context, algorithm, |document| document["subject"] = subject)
}

fn image_with_subject(context: &Context, algorithm: Algorithm) -> Content {
    let subject = image(context, algorithm);
    let mut item =
        with(context, algorithm, |document| document["subject"] = subject.root.descriptor());
    item.blobs.extend(subject.blobs);
    item.children.push(subject.root);
    item
}

fn index_with_subject(context: &Context, algorithm: Algorithm) -> Content {
    let mut item = index(context, algorithm);
    let subject = image(context, algorithm);
    let mut document = index_of(&item.children);
    document["subject"] = subject.root.descriptor();
    item.subject = Some(subject.root.digest.clone());
    item.blobs.extend(subject.blobs);
    item.children.push(subject.root);
    item.root = Manifest::of(&document, algorithm);
    item
}

/// The second layer is not distributable: it stays where its `urls` say, and is not pushed.
fn non_distributable(context: &Context, algorithm: Algorithm) -> Content {
    let foreign = context.blob(100, algorithm);
    with(context, algorithm, |document| {
        let mut layer = descriptor(NON_DISTRIBUTABLE, &foreign);
        layer["urls"] = json!([format!("https://layers.example.org/{}", foreign.digest)]);
        document["layers"] = json!([document["layers"][0].clone(), layer]);
    })
}

fn docker_image(context: &Context, algorithm: Algorithm) -> Content {
    with(context, algorithm, |document| {
        document["mediaType"] = json!(DOCKER_IMAGE);
        document["config"]["mediaType"] = json!(DOCKER_CONFIG);
        document["layers"][0]["mediaType"] = json!(DOCKER_LAYER);
    })
}

fn docker_list(context: &Context, algorithm: Algorithm) -> Content {
    let child = docker_image(context, algorithm);
    let mut document = index_of(std::slice::from_ref(&child.root));
    document["mediaType"] = json!(DOCKER_LIST);
    Content {
        blobs: child.blobs,
        children: vec![child.root],
        root: Manifest::of(&document, algorithm),
        subject: None,
    }
}

/// A referrer: an image with this subject, changed as needed.
pub(crate) fn referrer(
    context: &Context,
    algorithm: Algorithm,
    subject: &Value,
    change: impl FnOnce(&mut Value),
) -> Content {
    let (mut document, blobs) = artifact_document(context, algorithm);
    document["subject"] = subject.clone();
    change(&mut document);
    Content {
        blobs,
        children: Vec::new(),
        root: Manifest::of(&document, algorithm),
        subject: document["subject"]["digest"].as_str().map(ToOwned::to_owned),
    }
}

/// An index with this subject and no children.
pub(crate) fn referring_index(context: &Context, subject: &Value) -> Value {
    let run = context.with_random(crate::random::Random::suffix);
    json!({
        "schemaVersion": 2, "mediaType": INDEX, "manifests": [], "subject": subject,
        "annotations": {"org.example.run": run},
    })
}
