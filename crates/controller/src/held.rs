//! What the cache holds of a revision's package, without asking a registry.

use crate::Hands;
use crate::cache::Contents;
use api::pkg::revision::Revision;
use oci::{Digest, Identifier, Reference, Rules};
use std::sync::Arc;

/// The package of a revision, if it is in the cache: the bytes that the revision is called after,
/// whatever its tag means by now.
pub(crate) async fn held(hands: &Hands, revision: &Revision) -> Option<Arc<Contents>> {
    let digest = digest(hands, revision)?;
    hands.cache.contents(&digest).await.ok()
}

/// The digest of that package. The directory of the cache is only searched if the image does not
/// lead there.
pub(crate) fn digest(hands: &Hands, revision: &Revision) -> Option<Digest> {
    let is_right = |digest: &Digest| xpkg::label::is_made_of(&revision.metadata.name, digest.hex());
    let rules = Rules::weak().default_registry(&hands.settings.default_registry).git_sources();
    let reference = Reference::parse(&revision.spec.image, &rules).ok();
    let named = reference.and_then(|reference| match reference.identifier() {
        Identifier::Digest(digest) => Some(digest.clone()),
        Identifier::Tag(_) => hands.cache.tag(&reference.name()),
    });
    let named = named.filter(|digest| is_right(digest) && hands.cache.has(digest));
    named.or_else(|| hands.cache.packages().into_iter().find(is_right))
}
