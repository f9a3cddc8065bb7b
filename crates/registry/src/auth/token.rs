//! Tokens: signed statements about who may do what for five minutes.
//!
//! A token is a JWT signed with Ed25519. The algorithm is not read from the token: there is one,
//! and a token that names another is none of ours. Keys have names; a new one takes over after a
//! month, and the one before it is good until the next change.

use super::scope::Grant;
use super::users::replace;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// How long a token is good, in seconds.
pub const TOKEN_AGE_MAX: u64 = 300;
/// How long a key signs, in seconds.
pub const KEY_AGE_MAX: u64 = 30 * 86_400;
/// The file in the data directory.
pub const KEYS_FILE: &str = "token-keys.json";
/// Clocks that were set back a little do no harm.
const CLOCK_SLACK: u64 = 10;
const TOKEN_LENGTH_MAX: usize = 16 << 10;
const ALGORITHM: &str = "EdDSA";

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Who signed it.
    pub iss: String,
    /// The registry it is for.
    pub aud: String,
    /// Whom it is about; empty for nobody in particular.
    pub sub: String,
    /// When it ends, in seconds since 1970.
    pub exp: u64,
    /// When it begins.
    pub nbf: u64,
    /// When it was made.
    pub iat: u64,
    /// Its own name.
    pub jti: String,
    /// What it was had for; it is good as long as that is.
    pub origin: Origin,
    /// What it is good for.
    pub access: Vec<Grant>,
}

/// The credential that a token was had for. Whether it still counts is asked with each request
/// that brings the token: a token cannot outlive it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Which password, key or mapping it is; none for nobody in particular.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
    /// When it ends by itself, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    alg: String,
    typ: String,
    kid: String,
}

/// A key as it is kept.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    kid: String,
    created: u64,
    seed: String,
}

/// The keys that sign and verify; the first one signs.
pub struct Keys(Vec<(Stored, Ed25519KeyPair)>);

impl Keys {
    /// Reads the keys of a data directory; makes one if there is none, or if it is old.
    pub fn open(directory: &Path, now: u64) -> io::Result<Self> {
        let path = directory.join(KEYS_FILE);
        let mut stored: Vec<Stored> = match fs_err::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        if stored.first().is_none_or(|key| key.created.saturating_add(KEY_AGE_MAX) < now) {
            stored.insert(0, Stored::new(now)?);
            stored.truncate(2);
            replace(&path, &serde_json::to_vec_pretty(&stored)?)?;
        }
        let pairs: io::Result<Vec<_>> =
            stored.into_iter().map(|key| key.pair().map(|pair| (key, pair))).collect();
        Ok(Self(pairs?))
    }

    /// Signs claims.
    pub fn sign(&self, claims: &Claims) -> Option<String> {
        let (stored, pair) = self.0.first()?;
        let kid = stored.kid.clone();
        let header = Header { alg: ALGORITHM.to_owned(), typ: "JWT".to_owned(), kid };
        let header = BASE64.encode(serde_json::to_vec(&header).ok()?);
        let claims = BASE64.encode(serde_json::to_vec(claims).ok()?);
        let text = format!("{header}.{claims}");
        let signature = BASE64.encode(pair.sign(text.as_bytes()));
        Some(format!("{text}.{signature}"))
    }

    /// What a token says, if one of our keys signed it, for this audience, and now is its time.
    pub fn verify(&self, token: &str, audience: &str, now: u64) -> Option<Claims> {
        if token.len() > TOKEN_LENGTH_MAX {
            return None;
        }
        let (text, signature) = token.rsplit_once('.')?;
        let (header, claims) = text.split_once('.')?;
        let header: Header = serde_json::from_slice(&BASE64.decode(header).ok()?).ok()?;
        if header.alg != ALGORITHM || header.typ != "JWT" {
            return None;
        }
        let (_, pair) = self.0.iter().find(|(stored, _)| stored.kid == header.kid)?;
        let public = UnparsedPublicKey::new(&ED25519, pair.public_key().as_ref());
        public.verify(text.as_bytes(), &BASE64.decode(signature).ok()?).ok()?;
        let claims: Claims = serde_json::from_slice(&BASE64.decode(claims).ok()?).ok()?;
        let ours = claims.iss == ISSUER && claims.aud == audience;
        let timely = claims.nbf <= now
            && now < claims.exp
            && claims.exp <= now.saturating_add(TOKEN_AGE_MAX.saturating_mul(2));
        (ours && timely).then_some(claims)
    }
}

/// Who signs.
pub const ISSUER: &str = "apron";

impl Claims {
    /// A token's content, from now on and no longer than what it was had for.
    pub fn new(
        subject: &str,
        audience: &str,
        origin: Origin,
        access: Vec<Grant>,
        now: u64,
    ) -> Option<Self> {
        let exp = now.saturating_add(TOKEN_AGE_MAX);
        Some(Self {
            iss: ISSUER.to_owned(),
            aud: audience.to_owned(),
            sub: subject.to_owned(),
            exp: origin.ends.map_or(exp, |ends| ends.min(exp)),
            nbf: now.saturating_sub(CLOCK_SLACK),
            iat: now,
            jti: BASE64.encode(random::<12>().ok()?),
            origin,
            access,
        })
    }
}

impl Stored {
    fn new(created: u64) -> io::Result<Self> {
        let kid = BASE64.encode(random::<9>()?);
        Ok(Self { kid, created, seed: BASE64.encode(random::<32>()?) })
    }

    fn pair(&self) -> io::Result<Ed25519KeyPair> {
        let unusable = || io::Error::other("the key file holds what is no key");
        let seed = BASE64.decode(&self.seed).map_err(|_| unusable())?;
        Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| unusable())
    }
}

/// Random bytes.
pub(super) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(now: u64) -> (tempfile::TempDir, Keys) {
        let directory = tempfile::tempdir().unwrap();
        let keys = Keys::open(directory.path(), now).unwrap();
        (directory, keys)
    }

    #[test]
    fn tokens_are_good_in_their_time_and_place_only() {
        let (_directory, keys) = keys(1000);
        let claims = Claims::new("alice", "here", Origin::default(), Vec::new(), 1000).unwrap();
        let token = keys.sign(&claims).unwrap();
        assert_eq!(keys.verify(&token, "here", 1000), Some(claims.clone()));
        assert_eq!(keys.verify(&token, "there", 1000), None);
        assert_eq!(keys.verify(&token, "here", 1300), None);
        assert_eq!(keys.verify(&token, "here", 900), None);
        let foreign = keys.sign(&Claims { iss: "other".to_owned(), ..claims.clone() }).unwrap();
        assert_eq!(keys.verify(&foreign, "here", 1000), None);
        let eternal = keys.sign(&Claims { exp: u64::MAX, ..claims }).unwrap();
        assert_eq!(keys.verify(&eternal, "here", 1000), None);
    }

    /// M3: also by the clock alone.
    #[test]
    fn m3_a_token_ends_with_what_it_was_had_for() {
        let (_directory, keys) = keys(1000);
        let origin = Origin { proof: Some("key:x".to_owned()), ends: Some(1020) };
        let claims = Claims::new("ci", "here", origin, Vec::new(), 1000).unwrap();
        let token = keys.sign(&claims).unwrap();
        assert_eq!(keys.verify(&token, "here", 1019), Some(claims));
        assert_eq!(keys.verify(&token, "here", 1020), None);
        let eternal = Origin { proof: None, ends: Some(u64::MAX) };
        let claims = Claims::new("ci", "here", eternal, Vec::new(), 1000).unwrap();
        assert_eq!(claims.exp, 1000 + TOKEN_AGE_MAX);
    }

    #[test]
    fn another_algorithm_or_content_is_refused() {
        let (_directory, keys) = keys(1000);
        let claims = Claims::new("alice", "here", Origin::default(), Vec::new(), 1000).unwrap();
        let token = keys.sign(&claims).unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        let kid = &keys.0[0].0.kid;
        for alg in ["none", "None", "HS256", "ES256", "RS256", "eddsa", ""] {
            let header =
                BASE64.encode(format!("{{\"alg\":\"{alg}\",\"typ\":\"JWT\",\"kid\":\"{kid}\"}}"));
            for signature in ["", parts[2]] {
                let forged = format!("{header}.{}.{signature}", parts[1]);
                assert_eq!(keys.verify(&forged, "here", 1000), None, "{alg}");
            }
        }
        let other = Claims { sub: "root".to_owned(), ..claims };
        let other = BASE64.encode(serde_json::to_vec(&other).unwrap());
        assert_eq!(keys.verify(&format!("{}.{other}.{}", parts[0], parts[2]), "here", 1000), None);
        for text in ["", ".", "..", "a.b", "a.b.c", &token[1..], &"x".repeat(100_000)] {
            assert_eq!(keys.verify(text, "here", 1000), None);
        }
    }

    #[test]
    fn a_new_key_takes_over_and_the_old_one_still_verifies() {
        let (directory, old) = keys(1000);
        let later = 1000 + KEY_AGE_MAX + 1;
        let claims = Claims::new("a", "here", Origin::default(), Vec::new(), later).unwrap();
        let token = old.sign(&claims).unwrap();
        let new = Keys::open(directory.path(), later).unwrap();
        assert_ne!(new.0[0].0.kid, old.0[0].0.kid);
        assert!(new.verify(&token, "here", later).is_some());
        let newest = Keys::open(directory.path(), later * 2).unwrap();
        assert_eq!(newest.0.len(), 2);
        let (_other, stranger) = keys(later);
        assert_eq!(stranger.verify(&token, "here", later), None);
    }
}
