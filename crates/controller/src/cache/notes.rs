//! Signatures as the cache writes them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plan::signature::{Form, Signed};
use serde_json::{Value as Json, json};

const SIMPLE: &str = "simple";
const ENVELOPE: &str = "envelope";

/// A signature as it is written down.
pub(super) fn written(signed: &Signed) -> Json {
    let form = match signed.form {
        Form::Simple => SIMPLE,
        Form::Envelope => ENVELOPE,
    };
    let payload = STANDARD.encode(&signed.payload);
    json!({"payload": payload, "signature": signed.signature, "form": form})
}

/// A signature that was written down.
pub(super) fn signed(written: &Json) -> Option<Signed> {
    let form = match written["form"].as_str()? {
        SIMPLE => Form::Simple,
        ENVELOPE => Form::Envelope,
        _ => return None,
    };
    let payload = STANDARD.decode(written["payload"].as_str()?).ok()?;
    Some(Signed { payload, signature: written["signature"].as_str()?.to_owned(), form })
}
