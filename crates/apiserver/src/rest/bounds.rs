//! What an object must be like to be stored: no bigger than a store of Kubernetes takes, and no
//! deeper than it can be read again.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::http::status::Failure;
use crate::kind::Kind;
use schema::object::depth::{self, DEPTH_MAX};
use schema::object::field_error::FieldError;
use schema::object::{meta_text, metadata};

/// The longest text of a stored object: what etcd takes unless it is told otherwise.
pub(crate) const STORED_MAX: usize = 3 << 19;

/// The text of what is stored, in exactly as many bytes as it has: it stays for long.
pub(super) fn encode(packed: &Value) -> Bytes {
    Bytes::from(schema::object::text(packed).into_boxed_slice())
}

/// The text of what a client wants to be stored. What is too big or too deep already may stay so,
/// or it could not be mended piece by piece and its finalizers never go, but become no worse.
pub(super) fn encode_bounded(
    kind: &Kind,
    packed: &Value,
    before: Option<(&Value, usize)>,
) -> Result<Bytes, Failure> {
    let deepest = depth::measure(packed);
    if deepest > DEPTH_MAX && before.is_none_or(|(old, _)| deepest > depth::measure(old)) {
        return Err(too_deep(kind, packed));
    }
    let text = encode(packed);
    let grows = |(old, size): (&Value, usize)| {
        size <= STORED_MAX || own_size(packed, text.len()) > own_size(old, size)
    };
    if text.len() > STORED_MAX && before.is_none_or(grows) {
        // What etcd says, as the API server hands it on: without a reason, as its own fault.
        return Err(Failure::internal("etcdserver: request is too large"));
    }
    Ok(text)
}

/// How many bytes of an object are not about who wrote it: the server notes that even of those who
/// only take something away.
fn own_size(object: &Value, size: usize) -> usize {
    const FIELD: &str = "managedFields";
    let named = |owners| schema::object::text(&json!({FIELD: owners})).len();
    size.saturating_sub(metadata(object).get(FIELD).map_or(0, named))
}

/// Go's decoder says `exceeded max depth`, though it goes deeper; where is ours.
fn too_deep(kind: &Kind, packed: &Value) -> Failure {
    let place = depth::too_deep(packed).unwrap_or_default();
    let why = format!("exceeded max depth: nested deeper than {DEPTH_MAX} levels");
    let wrong = FieldError::invalid(&place, &json!("nested"), &why);
    Failure::invalid_object(kind, meta_text(packed, "name"), &[wrong])
}
