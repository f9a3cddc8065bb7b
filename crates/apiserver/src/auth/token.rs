//! Tokens the server signs for service accounts, and what makes one acceptable: our
//! signature with our algorithm, our issuer, the right audience and time, and that the
//! account (and what the token is bound to) is still there, the same one.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};

use super::rule::quoted;
use super::who::{Accepted, INVALID, Rejected};
use super::{User, service_account, service_account_groups};
use crate::Server;
use schema::object::{meta_text, time};

/// The only algorithm: a token cannot choose another.
pub(super) const ALGORITHM: &str = "ES256";
/// How far clocks may be apart, in seconds.
const LEEWAY: u64 = 60;
/// The longest token looked at.
const LENGTH_MAX: usize = 16 << 10;

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("not a private key for ECDSA with P-256 in PKCS #8: {0}")]
pub struct KeyError(String);

/// The key tokens are signed with.
pub struct Signer {
    key: EcdsaKeyPair,
    id: String,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Signer {
    /// From a private key as PKCS #8.
    pub fn from_pkcs8(bytes: &[u8]) -> Result<Self, KeyError> {
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, bytes);
        Self::new(key.map_err(|error| KeyError(error.to_string()))?)
    }

    /// A new key, for a server that forgets.
    pub fn generate() -> Result<Self, KeyError> {
        let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING);
        Self::new(key.map_err(|error| KeyError(error.to_string()))?)
    }

    fn new(key: EcdsaKeyPair) -> Result<Self, KeyError> {
        let public = key.public_key().as_der().map_err(|error| KeyError(error.to_string()))?;
        let id = BASE64.encode(digest(&SHA256, public.as_ref()));
        Ok(Self { key, id })
    }

    /// Signs claims.
    pub(super) fn sign(&self, claims: &Value) -> Option<String> {
        let header = json!({"alg": ALGORITHM, "kid": self.id});
        let signed =
            format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes()).ok()?;
        Some(format!("{signed}.{}", BASE64.encode(signature)))
    }

    fn verifies(&self, signed: &str, signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.public_key())
            .verify(signed.as_bytes(), signature)
            .is_ok()
    }

    /// The public key, for those who check tokens themselves.
    pub(crate) fn key_set(&self) -> Value {
        // An uncompressed point: a mark and two numbers of equal length.
        let point = self.key.public_key().as_ref();
        let (x, y) = point.get(1..).unwrap_or_default().split_at(point.len() / 2);
        json!({"keys": [{
            "use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": ALGORITHM,
            "x": BASE64.encode(x), "y": BASE64.encode(y),
        }]})
    }
}

fn rejected<T>(why: impl Into<String>) -> Result<T, Rejected> {
    Err(Rejected(why.into()))
}

/// Looks at a token that is not one of those agreed on.
pub(super) fn accept(
    server: &Server,
    token: &str,
    wanted: &[String],
) -> Result<Accepted, Rejected> {
    let claims = open(server, token)?;
    let audiences: Vec<String> = match claims.get("aud") {
        Some(Value::Array(list)) => {
            list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Some(Value::String(one)) => vec![one.clone()],
        _ => Vec::new(),
    };
    let common: Vec<String> =
        audiences.iter().filter(|one| wanted.contains(one)).cloned().collect();
    if common.is_empty() {
        return rejected(format!(
            "token audiences {} is invalid for the target audiences {}",
            quoted(&audiences),
            quoted(wanted)
        ));
    }
    check_time(server, &claims)?;
    Ok(Accepted { user: account(server, &claims)?, audiences: common })
}

/// The claims of a token that we signed. Nothing in it is believed before its signature is.
fn open(server: &Server, token: &str) -> Result<Value, Rejected> {
    let nobody = || Rejected(INVALID.to_owned());
    let json = |part: &str| -> Option<Value> {
        serde_json::from_slice(&BASE64.decode(part).ok()?).ok().filter(Value::is_object)
    };
    let mut parts = token.split('.');
    let (Some(head), Some(body), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(nobody());
    };
    if token.len() > LENGTH_MAX {
        return Err(nobody());
    }
    let header = json(head).ok_or_else(nobody)?;
    let text = |field: &str| header.get(field).and_then(Value::as_str).unwrap_or_default();
    if text("alg") != ALGORITHM || header.get("crit").is_some() {
        return Err(nobody());
    }
    let signature = BASE64.decode(signature).map_err(|_| nobody())?;
    let (said, _) = token.rsplit_once('.').ok_or_else(nobody)?;
    let signer = server.signer.as_ref().ok_or_else(nobody)?;
    if !signer.verifies(said, &signature) {
        return Err(nobody());
    }
    let claims = json(body).ok_or_else(nobody)?;
    if claims.get("iss").and_then(Value::as_str) != Some(server.issuer()) {
        return Err(nobody());
    }
    Ok(claims)
}

fn check_time(server: &Server, claims: &Value) -> Result<(), Rejected> {
    let now = server.world.now();
    let at = |field: &str| claims.get(field).and_then(Value::as_u64);
    if at("nbf").is_some_and(|start| now.saturating_add(LEEWAY) < start) {
        return rejected("service account token is not valid yet");
    }
    if at("exp").is_none_or(|end| now.saturating_sub(LEEWAY) > end) {
        return rejected("service account token has expired");
    }
    if at("iat").is_some_and(|issued| now.saturating_add(LEEWAY) < issued) {
        return rejected("service account token is issued in the future");
    }
    Ok(())
}

/// The account a token is for, if it is still the one it was made for.
fn account(server: &Server, claims: &Value) -> Result<User, Rejected> {
    let claim = |pointer: &str| {
        let found = claims.pointer(&format!("/kubernetes.io/{pointer}"));
        found.and_then(Value::as_str).unwrap_or_default()
    };
    let namespace = claim("namespace");
    let (name, uid) = (claim("serviceaccount/name"), claim("serviceaccount/uid"));
    let Some(object) = find(server, "serviceaccounts", namespace, name) else {
        return rejected(format!("serviceaccounts {name:?} not found"));
    };
    let found = meta_text(&object, "uid");
    if found != uid {
        return rejected(format!("service account UID ({found}) does not match claim ({uid})"));
    }
    if was_deleted(server, &object) {
        return rejected(format!("service account {namespace}/{name} has been deleted"));
    }
    for (kind, plural) in [("secret", "secrets"), ("pod", "pods"), ("node", "nodes")] {
        let (bound, uid) = (claim(&format!("{kind}/name")), claim(&format!("{kind}/uid")));
        // A pod's node is only told, not checked.
        if bound.is_empty() || (kind == "node" && !claim("pod/name").is_empty()) {
            continue;
        }
        let place = if kind == "node" { "" } else { namespace };
        let lost = "service account token has been invalidated";
        let Some(object) = find(server, plural, place, bound) else { return rejected(lost) };
        let found = meta_text(&object, "uid");
        if found != uid {
            return rejected(format!(
                "{kind} UID ({found}) does not match service account {kind} ref claim ({uid})"
            ));
        }
        if was_deleted(server, &object) {
            return rejected(lost);
        }
    }
    let mut user = User {
        name: service_account(namespace, name),
        uid: uid.to_owned(),
        groups: service_account_groups(namespace),
        ..User::default()
    };
    let id = claims.get("jti").and_then(Value::as_str).unwrap_or_default();
    let id = if id.is_empty() { String::new() } else { format!("JTI={id}") };
    for (key, value) in [
        ("credential-id", id.as_str()),
        ("pod-name", claim("pod/name")),
        ("pod-uid", claim("pod/uid")),
        ("node-name", claim("node/name")),
        ("node-uid", claim("node/uid")),
    ] {
        if !value.is_empty() {
            let key = format!("authentication.kubernetes.io/{key}");
            user.extra.insert(key, vec![value.to_owned()]);
        }
    }
    Ok(user)
}

/// An object of the core, as it is now.
pub(super) fn find(server: &Server, plural: &str, namespace: &str, name: &str) -> Option<Value> {
    let kind = server.kinds.find("", "v1", plural)?;
    let place = Some(namespace).filter(|namespace| !namespace.is_empty());
    let entry = server.log.get(&kind.key(place, name))?;
    crate::rest::open(&kind, &entry).ok()
}

/// Whether an object has been on its way out for longer than clocks may be apart.
fn was_deleted(server: &Server, object: &Value) -> bool {
    let deleted = time::parse(meta_text(object, "deletionTimestamp"));
    deleted.is_some_and(|at| at < server.world.now().saturating_sub(LEEWAY))
}
