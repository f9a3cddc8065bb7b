//! end-3, end-7a, end-9: every kind of content, pushed, pulled and deleted, with both algorithms.

use crate::check::{Check, Entry, Level, Needs};
use crate::context::{Context, Repo};
use crate::digest::Algorithm;
use crate::exchange::Verdict;
use crate::kind::Kind;

/// One check of one kind with one algorithm.
macro_rules! step {
    ($endpoint:literal, $id:expr, $level:expr, $run:ident, $kind:ident, $algorithm:ident, $spec:expr) => {
        Entry {
            check: Check { id: $id, endpoint: $endpoint, level: $level, spec: $spec },
            needs: Needs::Nothing,
            run: |context| Box::pin($run(context, Algorithm::$algorithm, Kind::$kind)),
        }
    };
}

/// The six checks of one kind.
macro_rules! kind {
    ($name:literal, $kind:ident, $level:ident, $spec:literal) => {{
        const LEVEL: Level = Level::$level;
        vec![
            step!(
                "end-7a",
                concat!("kind.", $name, ".push.sha256"),
                LEVEL,
                push,
                $kind,
                Sha256,
                concat!("Pushing manifests: ", $spec, " is taken by tag and by digest: 201")
            ),
            step!(
                "end-3",
                concat!("kind.", $name, ".pull.sha256"),
                LEVEL,
                pull,
                $kind,
                Sha256,
                concat!("Pulling manifests: ", $spec, " comes back byte for byte, with its type")
            ),
            step!(
                "end-9",
                concat!("kind.", $name, ".delete.sha256"),
                LEVEL,
                delete,
                $kind,
                Sha256,
                concat!("Deleting manifests: ", $spec, " is gone at once, by tag and by digest")
            ),
            step!(
                "end-7a",
                concat!("kind.", $name, ".push.sha512"),
                LEVEL.softened(),
                push,
                $kind,
                Sha512,
                concat!("Pushing manifests: ", $spec, ", all digests in sha512, is taken: 201")
            ),
            step!(
                "end-3",
                concat!("kind.", $name, ".pull.sha512"),
                LEVEL.softened(),
                pull,
                $kind,
                Sha512,
                concat!(
                    "Pulling manifests: ",
                    $spec,
                    ", all digests in sha512, comes back byte for byte"
                )
            ),
            step!(
                "end-9",
                concat!("kind.", $name, ".delete.sha512"),
                LEVEL.softened(),
                delete,
                $kind,
                Sha512,
                concat!("Deleting manifests: ", $spec, ", all digests in sha512, is gone at once")
            ),
        ]
    }};
}

pub(super) fn entries() -> Vec<Entry> {
    [
        kind!("image", Image, Must, "an image"),
        kind!("uncompressed", Uncompressed, Must, "an image with uncompressed layers"),
        kind!(
            "large",
            Large,
            Should,
            "an image whose manifest has 3.9 MB (the limit SHOULD be 4 MB)"
        ),
        kind!("index", Index, Must, "an index of two images"),
        kind!("nested-index", NestedIndex, Must, "an index in an index"),
        kind!("empty-index", EmptyIndex, Must, "an index of nothing"),
        kind!("artifact", Artifact, Must, "an artifact with the empty config"),
        kind!("artifact-index", ArtifactIndex, Must, "an index with an artifactType"),
        kind!("no-layers", NoLayers, Must, "an image without layers"),
        kind!("zero-byte-layer", ZeroByteLayer, Must, "an image with a layer of zero bytes"),
        kind!("empty-json-layer", EmptyJsonLayer, Must, "an image with the layer {}"),
        kind!("data-field", DataField, Must, "an artifact with its config in the data field"),
        kind!("unknown-fields", UnknownFields, Must, "an image with fields nobody knows"),
        kind!(
            "missing-subject",
            MissingSubject,
            Must,
            "an image whose subject is not there (MUST be taken)"
        ),
        kind!("image-with-subject", ImageWithSubject, Must, "an image with a subject"),
        kind!("index-with-subject", IndexWithSubject, Must, "an index with a subject"),
        kind!(
            "non-distributable",
            NonDistributable,
            Should,
            "an image with a non-distributable layer that is not pushed"
        ),
        kind!("docker-image", DockerImage, Should, "a Docker schema 2 image"),
        kind!("docker-list", DockerList, Should, "a Docker manifest list"),
    ]
    .concat()
}

/// Pushes the kind and gives its references: the digest, and with sha256 a tag as well (a tag
/// alone resolves to whatever algorithm the registry prefers, which is sha256).
async fn pushed(
    context: &Context,
    algorithm: Algorithm,
    kind: Kind,
) -> Verdict<(Repo<'_>, crate::content::Content, Vec<String>)> {
    let (repo, item) = (context.repo(), kind.make(context, algorithm));
    item.push(&repo).await?;
    let mut references = vec![item.root.digest.clone()];
    if algorithm == Algorithm::Sha256 {
        repo.push("latest", &item.root).await?;
        references.push("latest".to_owned());
    }
    Ok((repo, item, references))
}

async fn push(context: &Context, algorithm: Algorithm, kind: Kind) -> Verdict {
    pushed(context, algorithm, kind).await.map(drop)
}

async fn pull(context: &Context, algorithm: Algorithm, kind: Kind) -> Verdict {
    let (repo, item, references) = pushed(context, algorithm, kind).await?;
    for reference in &references {
        let found = repo.need_manifest(reference, &item.root).await?;
        found.need_value("content-type", &item.root.media_type)?;
        found.need_value_if_present("docker-content-digest", &item.root.digest)?;
        repo.head_manifest(reference).send().await?.expect(&[200])?.need_no_body()?;
    }
    for child in &item.children {
        repo.need_manifest(&child.digest, child).await?;
    }
    for blob in &item.blobs {
        repo.need_blob(blob).await?;
    }
    Ok(())
}

async fn delete(context: &Context, algorithm: Algorithm, kind: Kind) -> Verdict {
    let (repo, item, references) = pushed(context, algorithm, kind).await?;
    let rest = format!("manifests/{}", item.root.digest);
    repo.delete(&rest).send().await?.expect(&[202])?;
    for reference in &references {
        repo.need_no_manifest(reference).await?;
    }
    for child in &item.children {
        repo.need_manifest(&child.digest, child).await?;
    }
    Ok(())
}
