//! Keys of an issuer, and whether one of them signed a token.
//!
//! The algorithm follows from the key, never from the token: a token that names another than its
//! key is for is refused, whatever it says.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::Deserialize;

/// A list of keys as issuers publish it.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Keys {
    keys: Vec<Key>,
}

/// One of them; those of a kind we do not know are passed over.
#[derive(Clone, Debug, Deserialize)]
struct Key {
    kty: String,
    #[serde(default)]
    kid: String,
    #[serde(default, rename = "use")]
    usage: Option<String>,
    #[serde(default)]
    alg: Option<String>,
    #[serde(default)]
    crv: Option<String>,
    #[serde(default)]
    n: String,
    #[serde(default)]
    e: String,
    #[serde(default)]
    x: String,
    #[serde(default)]
    y: String,
}

/// A token's header: which key, and how.
#[derive(Debug, Deserialize)]
pub(super) struct Header {
    alg: String,
    #[serde(default)]
    pub(super) kid: String,
    /// Extensions that must be understood; we understand none.
    #[serde(default)]
    crit: Option<serde_json::Value>,
}

impl Keys {
    pub(super) fn has(&self, kid: &str) -> bool {
        self.keys.iter().any(|key| key.kid == kid)
    }

    /// Whether one of the keys made this signature.
    pub(super) fn verify(&self, header: &Header, text: &[u8], signature: &[u8]) -> bool {
        let fitting = self.keys.iter().filter(|key| key.kid == header.kid && key.signs());
        header.crit.is_none()
            && fitting.into_iter().any(|key| key.verify(&header.alg, text, signature))
    }
}

impl Key {
    fn signs(&self) -> bool {
        self.usage.as_deref().is_none_or(|it| it == "sig")
    }

    /// The one algorithm this key is for.
    fn algorithm(&self) -> Option<&'static str> {
        let algorithm = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => "RS256",
            ("EC", Some("P-256")) => "ES256",
            ("OKP", Some("Ed25519")) => "EdDSA",
            _ => return None,
        };
        self.alg.as_deref().is_none_or(|it| it == algorithm).then_some(algorithm)
    }

    fn verify(&self, named: &str, text: &[u8], signature: &[u8]) -> bool {
        match self.algorithm().filter(|it| *it == named) {
            Some("RS256") => self.verify_rsa(text, signature),
            Some("ES256") => self.verify_ecdsa(text, signature),
            Some("EdDSA") => self.verify_ed25519(text, signature),
            _ => None,
        }
        .is_some()
    }

    fn verify_rsa(&self, text: &[u8], signature: &[u8]) -> Option<()> {
        let (n, e) = (BASE64.decode(&self.n).ok()?, BASE64.decode(&self.e).ok()?);
        let key = RsaPublicKeyComponents { n, e };
        key.verify(&RSA_PKCS1_2048_8192_SHA256, text, signature).ok()
    }

    fn verify_ecdsa(&self, text: &[u8], signature: &[u8]) -> Option<()> {
        let (x, y) = (BASE64.decode(&self.x).ok()?, BASE64.decode(&self.y).ok()?);
        let point = [&[4], x.as_slice(), y.as_slice()].concat();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(text, signature).ok()
    }

    fn verify_ed25519(&self, text: &[u8], signature: &[u8]) -> Option<()> {
        let key = BASE64.decode(&self.x).ok()?;
        UnparsedPublicKey::new(&ED25519, key).verify(text, signature).ok()
    }
}
