//! Public keys, and whether they fit a signature.

use aws_lc_rs::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plan::signature::{Hash, Signed};
use x509_parser::oid_registry::{
    OID_EC_P256, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_NIST_EC_P384, OID_NIST_EC_P521,
    OID_PKCS1_RSAENCRYPTION, OID_SIG_ED25519,
};
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::SubjectPublicKeyInfo;

/// The line that a file with a public key begins with.
const LABEL: &str = "PUBLIC KEY";

/// What a key is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    P256,
    P384,
    P521,
    Ed25519,
    Rsa,
}

/// Somebody's public key.
#[derive(Clone, Debug)]
pub(super) struct PublicKey {
    scheme: Scheme,
    der: Vec<u8>,
}

impl PublicKey {
    /// Reads a key as cosign and openssl write it.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let hint = "hint: it begins with -----BEGIN PUBLIC KEY-----";
        let pem = Pem::iter_from_buffer(text).next().and_then(Result::ok);
        let pem = pem.ok_or_else(|| format!("is no key in PEM; {hint}"))?;
        if pem.label != LABEL {
            return Err(format!("holds a {}, not a public key; {hint}", pem.label));
        }
        let parsed = SubjectPublicKeyInfo::from_der(&pem.contents);
        let (_, info) = parsed.map_err(|error| format!("is no key: {error}; {hint}"))?;
        let curve = info.algorithm.parameters.as_ref().and_then(|any| any.as_oid().ok());
        let scheme = match (&info.algorithm.algorithm, curve) {
            (kind, _) if *kind == OID_PKCS1_RSAENCRYPTION => Scheme::Rsa,
            (kind, _) if *kind == OID_SIG_ED25519 => Scheme::Ed25519,
            (kind, Some(curve)) if *kind == OID_KEY_TYPE_EC_PUBLIC_KEY => {
                if curve == OID_EC_P256 {
                    Scheme::P256
                } else if curve == OID_NIST_EC_P384 {
                    Scheme::P384
                } else if curve == OID_NIST_EC_P521 {
                    Scheme::P521
                } else {
                    return Err(format!("is on a curve that is not known: {curve}"));
                }
            }
            (kind, _) => return Err(format!("is of a kind that is not known: {kind}")),
        };
        Ok(Self { scheme, der: pem.contents.clone() })
    }

    /// Whether it made a signature.
    pub(super) fn verify(&self, hash: Hash, signed: &Signed) -> Result<(), String> {
        let algorithm = self.algorithm(hash)?;
        let signature = STANDARD.decode(&signed.signature);
        let signature = signature.map_err(|_| "the signature is not base64".to_owned())?;
        UnparsedPublicKey::new(algorithm, &self.der)
            .verify(&signed.message(), &signature)
            .map_err(|_| "the signature is another's, or what was signed was changed".to_owned())
    }

    fn algorithm(&self, hash: Hash) -> Result<&'static dyn VerificationAlgorithm, String> {
        Ok(match (self.scheme, hash) {
            (Scheme::P256, Hash::Sha256) => &signature::ECDSA_P256_SHA256_ASN1,
            (Scheme::P256, Hash::Sha384) => &signature::ECDSA_P256_SHA384_ASN1,
            (Scheme::P256, Hash::Sha512) => &signature::ECDSA_P256_SHA512_ASN1,
            (Scheme::P384, Hash::Sha256) => &signature::ECDSA_P384_SHA256_ASN1,
            (Scheme::P384, Hash::Sha384) => &signature::ECDSA_P384_SHA384_ASN1,
            (Scheme::P384, Hash::Sha512) => &signature::ECDSA_P384_SHA512_ASN1,
            (Scheme::P521, Hash::Sha224) => &signature::ECDSA_P521_SHA224_ASN1,
            (Scheme::P521, Hash::Sha256) => &signature::ECDSA_P521_SHA256_ASN1,
            (Scheme::P521, Hash::Sha384) => &signature::ECDSA_P521_SHA384_ASN1,
            (Scheme::P521, Hash::Sha512) => &signature::ECDSA_P521_SHA512_ASN1,
            (Scheme::Rsa, Hash::Sha256) => &signature::RSA_PKCS1_2048_8192_SHA256,
            (Scheme::Rsa, Hash::Sha384) => &signature::RSA_PKCS1_2048_8192_SHA384,
            (Scheme::Rsa, Hash::Sha512) => &signature::RSA_PKCS1_2048_8192_SHA512,
            // It hashes in a way of its own.
            (Scheme::Ed25519, _) => &signature::ED25519,
            (Scheme::P256 | Scheme::P384 | Scheme::Rsa, Hash::Sha224) => {
                let hint = "hint: sign with sha256 and say so in hashAlgorithm";
                return Err(format!("sha224 is not verified for keys of its kind; {hint}"));
            }
        })
    }
}
