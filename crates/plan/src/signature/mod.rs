//! Signatures: whether somebody who is trusted has signed an image.
//!
//! cosign keeps the signatures of an image beside it, in one of two forms ([`Form`]). Under a tag
//! made from its digest ([`tag`]) each layer is a *payload* that names the digest, with a signature
//! over the payload in an annotation. Newer ones refer to the image as their subject, and are
//! [`bundle`]s: an envelope around a statement that names the digest. An image configuration names
//! authorities; the first whose key fits a signature, and whose payload is about this very image,
//! accepts it.
//!
//! What this room decides: where signatures are, which authorities can be asked and with which
//! hash, what a payload says, and what to tell people. Whether a key fits is arithmetic that the
//! caller does. [`Trust`] is what packages and revisions know of all this: nothing is made of an
//! image that somebody asks signatures for before it is accepted, wherever its bytes come from.
//!
//! Only keys are known here. Who signed without a key is told by a log that must be reached, and
//! that is refused with a clear word rather than taken on trust. Upstream asks for an entry in
//! that log for keys, too; here a key is enough.

mod form;
#[cfg(test)]
mod tests;
mod trust;

pub use form::{Form, Signed, bundle, claims};
pub use trust::Trust;

use api::pkg::{CosignAuthority, KeyReference, Verification};
use oci::Digest;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// The annotation of a layer that has the signature, in base64.
pub const ANNOTATION: &str = "dev.cosignproject.cosign/signature";
/// The media type of a layer that is a payload.
pub const PAYLOAD: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// What artifacts are that hold payloads and refer to the image.
pub const ARTIFACT: &str = "application/vnd.dev.cosign.artifact.sig.v1+json";
/// How the types of artifacts begin that are bundles, whatever their version.
pub const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";

/// The tag under which the signatures of an image are.
pub fn tag(digest: &Digest) -> String {
    format!("{}-{}.sig", digest.algorithm().as_str(), digest.hex())
}

/// How a payload was hashed before it was signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// SHA-224.
    Sha224,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Hash {
    fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "sha224" => Some(Self::Sha224),
            "sha256" => Some(Self::Sha256),
            "sha384" => Some(Self::Sha384),
            "sha512" => Some(Self::Sha512),
            _ => None,
        }
    }
}

/// Somebody who can be asked: the key they sign with.
#[derive(Clone, Debug, PartialEq)]
pub struct Signer {
    /// What they are called.
    pub name: String,
    /// Where their key is.
    pub key: KeyReference,
    /// How they hash.
    pub hash: Hash,
}

/// What a payload claims besides the image.
pub type Claims = BTreeMap<String, Json>;

/// Why a signature, or an authority, does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The authority is known by a certificate.
    Keyless,
    /// The authority must have attested something.
    Attestations,
    /// The authority has no key.
    NoKey,
    /// Nobody hashes like that.
    Hash(String),
    /// There are no signatures.
    Unsigned,
    /// The payload cannot be read.
    Payload(String),
    /// The payload is about something else.
    OtherImage(String),
    /// The authority's key cannot be had, for this reason.
    Unavailable(String),
    /// The key does not fit, for this reason.
    Key(String),
}

impl std::fmt::Display for Doubt {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Keyless => formatter.write_str(
                "keyless signatures cannot be verified, because that takes a transparency log; \
                 hint: name a key in spec.verification.cosign.authorities",
            ),
            Self::Attestations => formatter.write_str(
                "attestations cannot be verified; hint: leave out attestations, and have the \
                 image itself signed",
            ),
            Self::NoKey => formatter.write_str("it has no key; hint: set key.secretRef"),
            Self::Hash(hash) => write!(
                formatter,
                "{hash:?} is not a hash; hint: use sha224, sha256, sha384 or sha512"
            ),
            Self::Unsigned => formatter.write_str("the image has no signatures"),
            Self::Payload(why) => write!(formatter, "what was signed cannot be read: {why}"),
            Self::OtherImage(other) => write!(formatter, "what was signed is {other}"),
            Self::Unavailable(why) => write!(formatter, "its key cannot be used: {why}"),
            Self::Key(why) => write!(formatter, "the key does not fit: {why}"),
        }
    }
}

impl std::error::Error for Doubt {}

/// What is needed to ask an authority.
pub fn signer(authority: &CosignAuthority) -> Result<Signer, Doubt> {
    if authority.attestations.as_ref().is_some_and(|all| !all.is_empty()) {
        return Err(Doubt::Attestations);
    }
    let key = match (&authority.key, &authority.keyless) {
        // A key is enough; cosign asks for identities only where there is none.
        (Some(key), _) => key,
        (None, Some(_)) => return Err(Doubt::Keyless),
        (None, None) => return Err(Doubt::NoKey),
    };
    let said = if key.hash_algorithm.is_empty() { "sha256" } else { &key.hash_algorithm };
    let hash = Hash::parse(said).ok_or_else(|| Doubt::Hash(said.to_owned()))?;
    Ok(Signer { name: authority.name.clone(), key: key.secret_ref.clone(), hash })
}

/// The authority that accepts an image, or what is wrong with all of them. Whether the key of a
/// signer fits a signature is for the caller to say.
pub fn judge(
    verification: &Verification,
    image: &Digest,
    signatures: &[Signed],
    fits: impl Fn(&Signer, &Signed) -> Result<(), Doubt>,
) -> Result<(String, Claims), String> {
    let authorities = verification.cosign.iter().flat_map(|cosign| &cosign.authorities);
    let mut doubts = Vec::new();
    for authority in authorities {
        match accepts(authority, image, signatures, &fits) {
            Ok(claims) => return Ok((authority.name.clone(), claims)),
            Err(doubt) => doubts.push(format!("{}: {doubt}", authority.name)),
        }
    }
    if doubts.is_empty() {
        doubts.push("nobody is trusted; hint: name authorities".to_owned());
    }
    Err(format!("signature verification failed: {}", doubts.join("; ")))
}

/// One signature that fits is enough; of several that do not, the last is told.
fn accepts(
    authority: &CosignAuthority,
    image: &Digest,
    signatures: &[Signed],
    fits: impl Fn(&Signer, &Signed) -> Result<(), Doubt>,
) -> Result<Claims, Doubt> {
    let signer = signer(authority)?;
    let mut doubt = Doubt::Unsigned;
    for signed in signatures {
        // The key comes first: what nobody trusted signed says nothing.
        match fits(&signer, signed).and_then(|()| claims(signed, image)) {
            Ok(claims) => return Ok(claims),
            Err(new) => doubt = new,
        }
    }
    Err(doubt)
}
