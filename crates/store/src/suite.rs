//! The laws of a store, as code that every store is run through.
//!
//! Each function is one law, and leaves content behind; [`run`] holds a fresh, writable store to
//! all of them. Media that can be written only once are held to those that make sense for them.
//! Nothing here panics: a law that does not hold is a [`Fault`], so that servers can run the
//! suite against themselves.

use crate::{Error, Store};
use bytes::Bytes;
use futures::TryStreamExt;
use oci::{Descriptor, Digest, Identifier, Index, Manifest, MediaType, Raw};

const BIG_SIZE: usize = 8 << 20;

/// A law that does not hold.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The store failed.
    #[error("the store failed")]
    Store(#[source] Box<Error>),
    /// The store did not do what it should.
    #[error("a law is broken: {0}")]
    Law(&'static str),
    /// The suite's own content could not be made.
    #[error("the suite's own manifest cannot be used")]
    Manifest(#[source] oci::ManifestError),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Store(Box::new(error))
    }
}

/// Holds a fresh store to all laws.
pub async fn run(store: &dyn Store) -> Result<(), Fault> {
    missing_things_are_answers(store).await?;
    blobs_come_back(store).await?;
    the_same_blob_may_be_put_twice(store).await?;
    wrong_bytes_are_refused(store).await?;
    manifests_have_tags_and_digests(store).await?;
    wrong_manifest_digests_are_refused(store).await?;
    tags_move(store).await?;
    tags_are_sorted(store).await?;
    an_index_has_children(store).await?;
    referrers_are_listed(store).await?;
    big_blobs_stream(store).await
}

/// What is not there is `None`, `false` or empty.
pub async fn missing_things_are_answers(store: &dyn Store) -> Result<(), Fault> {
    let nothing = Descriptor::of(MediaType::OCTET_STREAM, b"nothing is here");
    let by_digest = Identifier::Digest(nothing.digest.clone());
    let by_tag = tag("nothing");
    law(store.manifest(&by_tag).await?.is_none(), "a missing tag is none")?;
    law(store.manifest(&by_digest).await?.is_none(), "a missing digest is none")?;
    law(store.head(&by_tag).await?.is_none(), "a missing tag has no head")?;
    law(store.head(&by_digest).await?.is_none(), "a missing digest has no head")?;
    law(store.blob(&nothing).await?.is_none(), "a missing blob is none")?;
    law(!store.has_blob(&nothing.digest).await?, "a missing blob is not there")?;
    law(store.tags().await?.is_empty(), "a fresh store has no tags")?;
    let referrers = store.referrers(&nothing.digest, None).await?;
    law(referrers.is_empty(), "nothing refers to what is not there")
}

/// What was put can be read.
pub async fn blobs_come_back(store: &dyn Store) -> Result<(), Fault> {
    for content in [&b"a blob"[..], b"", b"\0"] {
        let descriptor = put(store, content).await?;
        law(store.has_blob(&descriptor.digest).await?, "a blob that was put is there")?;
        let bytes = read(store, &descriptor).await?;
        law(bytes == content, "a blob comes back as it was put")?;
    }
    Ok(())
}

/// Putting a blob that is there changes nothing.
pub async fn the_same_blob_may_be_put_twice(store: &dyn Store) -> Result<(), Fault> {
    put(store, b"twice").await?;
    let descriptor = put(store, b"twice").await?;
    law(read(store, &descriptor).await? == b"twice"[..], "a blob put twice is the same blob")
}

/// A blob that is not what its descriptor says is refused and leaves nothing behind.
pub async fn wrong_bytes_are_refused(store: &dyn Store) -> Result<(), Fault> {
    let promised = Descriptor::of(MediaType::OCTET_STREAM, b"promised");
    for lie in [&b"promisee"[..], b"promise", b"promised!", b""] {
        let source = Bytes::copy_from_slice(lie);
        law(store.put_blob(&promised, &source).await.is_err(), "wrong bytes are refused")?;
        law(!store.has_blob(&promised.digest).await?, "refused bytes are not there")?;
        law(store.blob(&promised).await?.is_none(), "refused bytes cannot be read")?;
    }
    // And one that is there is not read under another size.
    let mut longer = put(store, b"sized").await?;
    longer.size += 1;
    let Some(blob) = store.blob(&longer).await? else {
        return Ok(());
    };
    let outcome: Result<Vec<Bytes>, _> = blob.stream.try_collect().await;
    law(outcome.is_err(), "a stream of the wrong size does not end well")
}

/// A manifest is found by its tag and by its digest, byte for byte.
pub async fn manifests_have_tags_and_digests(store: &dyn Store) -> Result<(), Fault> {
    let raw = image(store, "tagged").await?;
    store.put_manifest(&tag("v1"), &raw).await?;
    let by_digest = Identifier::Digest(raw.digest.clone());
    for id in [tag("v1"), by_digest] {
        let found = store.manifest(&id).await?;
        law(found.is_some_and(|found| found == raw), "a manifest comes back as it was put")?;
        let head = store.head(&id).await?;
        let same = head
            .is_some_and(|head| head.digest == raw.digest && head.size == raw.bytes.len() as u64);
        law(same, "head and manifest agree")?;
    }
    let untagged = image(store, "untagged").await?;
    let by_digest = Identifier::Digest(untagged.digest.clone());
    store.put_manifest(&by_digest, &untagged).await?;
    law(store.manifest(&by_digest).await?.is_some(), "a manifest needs no tag")
}

/// A manifest cannot be put under a digest it does not have.
pub async fn wrong_manifest_digests_are_refused(store: &dyn Store) -> Result<(), Fault> {
    let raw = image(store, "honest").await?;
    let other = Identifier::Digest(Digest::of(b"some other manifest"));
    law(store.put_manifest(&other, &raw).await.is_err(), "a wrong digest is refused")?;
    law(store.manifest(&other).await?.is_none(), "a refused manifest is not there")
}

/// A tag means what it was last set to; what it meant before is still there by digest.
pub async fn tags_move(store: &dyn Store) -> Result<(), Fault> {
    let (one, two) = (image(store, "one").await?, image(store, "two").await?);
    for raw in [&one, &two, &one, &two] {
        store.put_manifest(&tag("moving"), raw).await?;
        let found = store.manifest(&tag("moving")).await?;
        law(found.is_some_and(|found| found.digest == raw.digest), "a tag can be moved")?;
    }
    let before = store.manifest(&Identifier::Digest(one.digest)).await?;
    law(before.is_some(), "what a tag meant before is still there")
}

/// Tags are listed once each, sorted.
pub async fn tags_are_sorted(store: &dyn Store) -> Result<(), Fault> {
    let raw = image(store, "sorted").await?;
    for name in ["sort-b", "sort-a", "sort-C", "sort-a"] {
        store.put_manifest(&tag(name), &raw).await?;
    }
    let tags = store.tags().await?;
    let ours: Vec<&str> =
        tags.iter().map(String::as_str).filter(|it| it.starts_with("sort-")).collect();
    law(ours == ["sort-C", "sort-a", "sort-b"], "tags are sorted, each once")
}

/// An index is kept as it is, and its children are found by digest.
pub async fn an_index_has_children(store: &dyn Store) -> Result<(), Fault> {
    let children = [image(store, "child one").await?, image(store, "child two").await?];
    for child in &children {
        store.put_manifest(&Identifier::Digest(child.digest.clone()), child).await?;
    }
    let descriptors = children.iter().map(Raw::descriptor).collect();
    let index = Raw::from_index(&Index::oci(descriptors)).map_err(Fault::Manifest)?;
    store.put_manifest(&tag("index"), &index).await?;
    let found = store.manifest(&tag("index")).await?;
    law(found.is_some_and(|found| found == index), "an index comes back as it was put")?;
    for child in children {
        let found = store.manifest(&Identifier::Digest(child.digest.clone())).await?;
        law(found.is_some_and(|found| found == child), "children are found by digest")?;
    }
    Ok(())
}

/// What has a subject is listed under it, by type if asked.
pub async fn referrers_are_listed(store: &dyn Store) -> Result<(), Fault> {
    let subject = image(store, "subject").await?;
    store.put_manifest(&tag("subject"), &subject).await?;
    let mut digests = Vec::new();
    for artifact_type in ["application/x.signature", "application/x.sbom"] {
        let raw = referrer(store, &subject, artifact_type).await?;
        store.put_manifest(&Identifier::Digest(raw.digest.clone()), &raw).await?;
        digests.push(raw.digest);
    }
    let mut all: Vec<Digest> =
        store.referrers(&subject.digest, None).await?.into_iter().map(|each| each.digest).collect();
    all.sort();
    let mut expected = digests.clone();
    expected.sort();
    law(all == expected, "all referrers are listed")?;
    let some = store.referrers(&subject.digest, Some("application/x.sbom")).await?;
    let only = some.len() == 1 && some[0].digest == digests[1];
    law(only, "referrers are filtered by type")
}

/// A blob of many pieces comes back whole.
pub async fn big_blobs_stream(store: &dyn Store) -> Result<(), Fault> {
    let content: Vec<u8> = (0_u32..)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .take(BIG_SIZE)
        .collect();
    let descriptor = put(store, &content).await?;
    let Some(blob) = store.blob(&descriptor).await? else {
        return Err(Fault::Law("a big blob is there"));
    };
    let mut seen = 0;
    let mut stream = blob.stream;
    while let Some(chunk) = next(&mut stream).await? {
        let fits = content.get(seen..seen + chunk.len()) == Some(&chunk[..]);
        law(fits, "a big blob comes back as it was put")?;
        seen += chunk.len();
    }
    law(seen == BIG_SIZE, "a big blob comes back whole")
}

/// Puts the blobs of a small image and gives its manifest.
pub async fn image(store: &dyn Store, text: &str) -> Result<Raw, Fault> {
    let config = format!(
        r#"{{"architecture":"amd64","os":"linux","rootfs":{{"type":"layers","diff_ids":["{}"]}},"config":{{"Labels":{{"text":"{text}"}}}}}}"#,
        Digest::of(text.as_bytes())
    );
    let mut config = put(store, config.as_bytes()).await?;
    config.media_type = MediaType::DOCKER_CONFIG;
    let mut layer = put(store, format!("layer of {text}").as_bytes()).await?;
    layer.media_type = MediaType::DOCKER_LAYER;
    Raw::from_manifest(&Manifest::docker(config, vec![layer])).map_err(Fault::Manifest)
}

async fn referrer(store: &dyn Store, subject: &Raw, artifact_type: &str) -> Result<Raw, Fault> {
    let mut config = put(store, b"{}").await?;
    config.media_type = MediaType::EMPTY_JSON;
    let layer = put(store, artifact_type.as_bytes()).await?;
    let mut manifest = Manifest::docker(config, vec![layer]);
    manifest.media_type = MediaType::OCI_MANIFEST;
    manifest.artifact_type = Some(artifact_type.to_owned());
    manifest.subject = Some(subject.descriptor());
    Raw::from_manifest(&manifest).map_err(Fault::Manifest)
}

async fn put(store: &dyn Store, content: &[u8]) -> Result<Descriptor, Fault> {
    let descriptor = Descriptor::of(MediaType::OCTET_STREAM, content);
    store.put_blob(&descriptor, &Bytes::copy_from_slice(content)).await?;
    Ok(descriptor)
}

async fn read(store: &dyn Store, descriptor: &Descriptor) -> Result<Bytes, Fault> {
    Ok(crate::fetch_bytes(store, descriptor, descriptor.size).await?)
}

async fn next(stream: &mut crate::ByteStream) -> Result<Option<Bytes>, Fault> {
    stream.try_next().await.map_err(|_| Fault::Law("a stream of right bytes does not fail"))
}

fn tag(name: &str) -> Identifier {
    Identifier::Tag(name.to_owned())
}

fn law(holds: bool, law: &'static str) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(Fault::Law(law)) }
}
