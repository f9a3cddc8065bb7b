//! Signatures of images: fetched, held against keys, remembered.
//!
//! Whatever decides to use an image by its digest asks here first, also if the package is in the
//! cache. Signatures that were found once are kept there, too, so that a package that was accepted
//! needs no registry; but they are held against the keys as they are now each time, and a key that
//! is gone or replaced takes its word back.

mod found;
mod key;
#[cfg(test)]
mod tests;

use crate::access::access;
use crate::kind::Learnt;
use crate::{Entry, Hands, cluster};
use api::pkg::{KeyReference, Verification};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use key::PublicKey;
use oci::{Digest, Reference};
use plan::package::pull::Policy;
use plan::signature::{Doubt, Signed, Signer, Trust, judge, signer};
use plan::step::Target;

/// The keys of those who may sign, or why one cannot be had.
type Keys = Vec<(KeyReference, Result<PublicKey, String>)>;

/// Finds out whether an image has the signatures that are asked for.
pub(crate) async fn learn(
    hands: &Hands,
    trust: &mut Trust,
    image: &Reference,
    secrets: &[String],
    policy: Policy,
) -> Result<Learnt, cluster::Error> {
    let (Trust::Asked { config, verification }, Some(digest)) =
        (&*trust, image.identifier().as_digest())
    else {
        return Err(cluster::Error::Refused(format!("nobody asks for signatures of {image}")));
    };
    let keys = keys(hands, verification).await?;
    let held = |signatures: &[Signed]| weigh(verification, digest, signatures, &keys);
    let mut judged = held(&hands.cache.signatures(digest));
    if judged.is_err() {
        judged = match policy {
            Policy::Never => judged.map_err(|why| {
                format!("{why}; its pull policy is Never, so the registry is not asked for more")
            }),
            _ => match fetched(hands, image, secrets).await? {
                Err(why) => Err(format!(
                    "signature verification failed: cannot fetch the signatures of {image}: {why}"
                )),
                Ok(signatures) => held(&signatures).inspect(|_| keep(hands, digest, &signatures)),
            },
        };
    }
    *trust = Trust::judged(config, image, judged);
    Ok(if matches!(trust, Trust::Accepted { .. }) { Learnt::Known } else { Learnt::Unknown })
}

/// What cannot be kept is fetched again when it is needed.
fn keep(hands: &Hands, digest: &Digest, signatures: &[Signed]) {
    if let Err(error) = hands.cache.remember_signatures(digest, signatures) {
        let (digest, why) = (digest.to_string(), cluster::chain(&error));
        hands.say(Entry::trouble("signatures", &digest, &why));
    }
}

async fn fetched(
    hands: &Hands,
    image: &Reference,
    secrets: &[String],
) -> Result<Result<Vec<Signed>, String>, cluster::Error> {
    let Some(digest) = image.identifier().as_digest() else { return Ok(Ok(Vec::new())) };
    let mut access = access(hands, secrets).await?;
    let keychain = std::mem::take(&mut access.keychain);
    let remote = hands.fetch.remote(image.repository(), keychain);
    let found = found::signatures(&remote, digest).await;
    Ok(found.map_err(|error| access.explain(error).why))
}

/// Who of those that may sign an image has done so.
fn weigh(
    verification: &Verification,
    image: &Digest,
    signatures: &[Signed],
    keys: &Keys,
) -> Result<String, String> {
    let fits = |signer: &Signer, signed: &Signed| {
        let key = keys.iter().find(|(reference, _)| *reference == signer.key).map(|(_, key)| key);
        match key {
            Some(Ok(key)) => key.verify(signer.hash, signed).map_err(Doubt::Key),
            Some(Err(why)) => Err(Doubt::Unavailable(why.clone())),
            None => Err(Doubt::NoKey),
        }
    };
    judge(verification, image, signatures, fits).map(|(authority, _)| authority)
}

async fn keys(hands: &Hands, verification: &Verification) -> Result<Keys, cluster::Error> {
    let mut keys = Keys::new();
    let authorities = verification.cosign.iter().flat_map(|cosign| &cosign.authorities);
    for Signer { key, .. } in authorities.filter_map(|one| signer(one).ok()) {
        let target = Target {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: Some(hands.settings.namespace.clone()),
            name: key.name.clone(),
        };
        hands.sought.note(&key.name);
        let place = format!("Secret {} in namespace {}", key.name, hands.settings.namespace);
        let read = match hands.cluster.get(&target).await? {
            None => Err(format!("there is no {place}; hint: put the public key there")),
            Some(secret) => {
                let text = secret["data"][&key.key].as_str();
                let text = text.and_then(|text| STANDARD.decode(text).ok());
                let text = text.ok_or_else(|| {
                    format!("{place} has no {:?}; hint: put the public key there", key.key)
                });
                text.and_then(|text| {
                    PublicKey::parse(&text).map_err(|why| format!("{:?} of {place} {why}", key.key))
                })
            }
        };
        keys.push((key, read));
    }
    Ok(keys)
}
