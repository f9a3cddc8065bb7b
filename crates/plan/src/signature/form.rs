//! The two forms of signatures: what exactly was signed, and what that says.

use super::{Claims, Doubt};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oci::Digest;
use serde_json::Value as Json;

/// What a payload says it is.
const CLAIM: &str = "cosign container image signature";
/// What a statement says that is a signature and nothing more.
const PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";
/// What is in an envelope that holds a statement.
const STATEMENT: &str = "application/vnd.in-toto+json";

/// How what was signed is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The payload itself is signed.
    Simple,
    /// The payload is a statement, and was signed in an envelope.
    Envelope,
}

/// A payload, and the signature that was found with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// What it says.
    pub payload: Vec<u8>,
    /// The signature, in base64.
    pub signature: String,
    /// How it was signed.
    pub form: Form,
}

impl Signed {
    /// The very bytes that the signature is over.
    pub fn message(&self) -> Vec<u8> {
        match self.form {
            Form::Simple => self.payload.clone(),
            Form::Envelope => {
                let (of, size) = (STATEMENT.len(), self.payload.len());
                let mut message = format!("DSSEv1 {of} {STATEMENT} {size} ").into_bytes();
                message.extend_from_slice(&self.payload);
                message
            }
        }
    }
}

/// The signatures in a bundle. Bundles about something else than a statement have none.
pub fn bundle(bytes: &[u8]) -> Result<Vec<Signed>, Doubt> {
    let bundle: Json =
        serde_json::from_slice(bytes).map_err(|error| Doubt::Payload(error.to_string()))?;
    let envelope = &bundle["dsseEnvelope"];
    if envelope["payloadType"] != STATEMENT {
        return Ok(Vec::new());
    }
    let payload = STANDARD.decode(envelope["payload"].as_str().unwrap_or_default());
    let payload = payload.map_err(|error| Doubt::Payload(error.to_string()))?;
    let signatures = envelope["signatures"].as_array().into_iter().flatten();
    let signatures = signatures.filter_map(|one| one["sig"].as_str());
    let signed = signatures.map(|signature| Signed {
        payload: payload.clone(),
        signature: signature.to_owned(),
        form: Form::Envelope,
    });
    Ok(signed.collect())
}

/// What a payload claims, if it is about this image.
pub fn claims(signed: &Signed, image: &Digest) -> Result<Claims, Doubt> {
    let payload: Json = serde_json::from_slice(&signed.payload)
        .map_err(|error| Doubt::Payload(error.to_string()))?;
    match signed.form {
        Form::Simple => simple(&payload, image),
        Form::Envelope => statement(&payload, image),
    }
}

fn simple(payload: &Json, image: &Digest) -> Result<Claims, Doubt> {
    let critical = &payload["critical"];
    if critical["type"] != CLAIM {
        return Err(Doubt::Payload(format!("its type is {}", critical["type"])));
    }
    let signed = critical["image"]["docker-manifest-digest"].as_str().unwrap_or_default();
    if signed.parse().as_ref() != Ok(image) {
        let other = if signed.is_empty() { "no image" } else { signed };
        return Err(Doubt::OtherImage(other.to_owned()));
    }
    let optional = payload["optional"].as_object().cloned().unwrap_or_default();
    Ok(optional.into_iter().collect())
}

/// A statement says many things about images; only one of them is that it was signed.
fn statement(payload: &Json, image: &Digest) -> Result<Claims, Doubt> {
    let about = &payload["predicateType"];
    if about != PREDICATE {
        return Err(Doubt::Payload(format!("it is a statement of type {about}, no signature")));
    }
    let subjects = payload["subject"].as_array().into_iter().flatten();
    let algorithm = image.algorithm();
    let mut subjects = subjects.filter_map(|one| one["digest"][algorithm.as_str()].as_str());
    if subjects.clone().any(|hex| hex == image.hex()) {
        return Ok(Claims::new());
    }
    let other = subjects.next().map(|hex| format!("{}:{hex}", algorithm.as_str()));
    Err(Doubt::OtherImage(other.unwrap_or_else(|| "no image".to_owned())))
}
