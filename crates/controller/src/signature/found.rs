//! Where a registry has the signatures of an image.

use crate::fetch::FetchError;
use oci::{Descriptor, Digest, Document, Identifier, Manifest, Raw};
use plan::signature::{ANNOTATION, ARTIFACT, BUNDLE, Form, Signed, bundle, tag};
use store::{Store, fetch_bytes};

/// How many artifacts, and layers of each, are looked at.
const COUNT_MAX: usize = 64;
/// How large what was signed may be: it only names an image, and bundles hold certificates.
const SIZE_MAX: u64 = 1 << 20;

/// All signatures of an image. Anybody may put some there; nothing is believed yet.
pub(super) async fn signatures(
    store: &dyn Store,
    image: &Digest,
) -> Result<Vec<Signed>, FetchError> {
    let mut found = Vec::new();
    if let Some(manifest) = manifest(store.manifest(&Identifier::Tag(tag(image))).await?) {
        simple(store, &manifest, &mut found).await?;
    }
    match referring(store, image, &mut found).await {
        // Registries that know nothing of referrers have their ways to say so.
        Err(_) if !found.is_empty() => Ok(found),
        other => other.map(|()| found),
    }
}

fn manifest(raw: Option<Raw>) -> Option<Manifest> {
    match raw?.document {
        Document::Manifest(manifest) => Some(manifest),
        Document::Index(_) => None,
    }
}

/// Payloads, with their signatures beside them.
async fn simple(
    store: &dyn Store,
    manifest: &Manifest,
    found: &mut Vec<Signed>,
) -> Result<(), FetchError> {
    for layer in manifest.layers.iter().take(COUNT_MAX) {
        let Some(signature) = layer.annotations.get(ANNOTATION) else { continue };
        let payload = fetch_bytes(store, layer, SIZE_MAX).await?.to_vec();
        found.push(Signed { payload, signature: signature.clone(), form: Form::Simple });
    }
    Ok(())
}

/// Artifacts that say that they are about the image.
async fn referring(
    store: &dyn Store,
    image: &Digest,
    found: &mut Vec<Signed>,
) -> Result<(), FetchError> {
    let of = |one: &Descriptor| one.artifact_type.clone().unwrap_or_default();
    let all = store.referrers(image, None).await?;
    let signatures = all.iter().filter(|one| of(one) == ARTIFACT || of(one).starts_with(BUNDLE));
    for one in signatures.take(COUNT_MAX) {
        let raw = store.manifest(&Identifier::Digest(one.digest.clone())).await?;
        let Some(manifest) = manifest(raw) else { continue };
        if of(one) == ARTIFACT {
            simple(store, &manifest, found).await?;
            continue;
        }
        for layer in manifest.layers.iter().take(COUNT_MAX) {
            let bytes = fetch_bytes(store, layer, SIZE_MAX).await?;
            // One that cannot be read is as good as none.
            found.extend(bundle(&bytes).unwrap_or_default());
        }
    }
    Ok(())
}
