//! Makes a Secret with keys and certificates.
//!
//! What must not be seen is read from the cluster, made here, and written back: it is in no plan
//! and in no log. A Secret that was absent is made and never overwritten, so of two who make the
//! authority at once one wins and the other looks again; one that was seen is replaced in the
//! state it was seen in.

use super::{state, target_in};
use crate::Hands;
use crate::certificate::{self, Pair};
use crate::cluster::{Error, Mode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plan::step::{Expect, Make, Target};
use serde_json::{Map, Value as Json};

/// Makes the Secret.
pub(super) async fn issue(
    hands: &Hands,
    secret: &Json,
    keep: &[(&'static str, &'static str)],
    make: Option<&Make>,
    expect: &Expect,
) -> Result<(), Error> {
    let target = target_in(secret);
    let live = hands.cluster.get(&target).await?;
    let (_, version) = state(expect);
    let is_as_seen = match (&live, expect) {
        (None, Expect::Absent) | (_, Expect::Anything) => true,
        (Some(live), Expect::Unchanged { .. }) => {
            version.as_deref() == live["metadata"]["resourceVersion"].as_str()
        }
        _ => false,
    };
    if !is_as_seen {
        return Err(Error::Stale(format!("Secret {} is not as it was", target.name)));
    }
    let mut data = laid(live.as_ref(), secret, keep);
    if let Some(make) = make {
        let pair = pair(hands, make).await?;
        data.insert(make.certificate.to_owned(), Json::from(STANDARD.encode(pair.certificate)));
        data.insert(make.key.to_owned(), Json::from(STANDARD.encode(pair.key)));
    }
    write(hands, &target, secret, live, data).await
}

/// The data of a Secret, less what is made: what others keep there stays.
fn laid(
    live: Option<&Json>,
    secret: &Json,
    keep: &[(&'static str, &'static str)],
) -> Map<String, Json> {
    let seen = live.and_then(|live| live["data"].as_object());
    let mut data = seen.cloned().unwrap_or_default();
    data.extend(secret["data"].as_object().cloned().unwrap_or_default());
    for (from, to) in keep {
        let kept = seen.and_then(|seen| seen.get(*from)).cloned().unwrap_or_default();
        data.insert((*to).to_owned(), kept);
    }
    data.retain(|_, value| !value.is_null());
    data
}

/// Keys take their time to make, and nobody else should wait for that.
async fn pair(hands: &Hands, what: &Make) -> Result<Pair, Error> {
    let authority = match &what.signer {
        None => None,
        Some(signer) => Some(authority(hands, signer).await?),
    };
    let what = what.clone();
    let work = tokio::task::spawn_blocking(move || certificate::make(&what, authority.as_ref()));
    let pair = work.await.map_err(|error| Error::Busy(error.to_string()))?;
    pair.map_err(Error::Refused)
}

async fn authority(hands: &Hands, signer: &Target) -> Result<Pair, Error> {
    let Some(secret) = hands.cluster.get(signer).await? else {
        return Err(Error::Stale(format!("Secret {} is gone", signer.name)));
    };
    let text = |field: &str| {
        let bytes = STANDARD.decode(secret["data"][field].as_str().unwrap_or_default());
        let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        text.ok_or_else(|| Error::Refused(format!("{field} of Secret {} is no text", signer.name)))
    };
    Ok(Pair { certificate: text("tls.crt")?, key: text("tls.key")? })
}

async fn write(
    hands: &Hands,
    target: &Target,
    secret: &Json,
    live: Option<Json>,
    data: Map<String, Json>,
) -> Result<(), Error> {
    let Some(live) = live else {
        let mut secret = secret.clone();
        secret["data"] = Json::Object(data);
        return hands.cluster.create(target, &secret, Mode::Real).await.map(|_| ());
    };
    hands.cluster.replace(target, &replaced(live, secret, data), Mode::Real).await.map(|_| ())
}

/// A Secret that is there, with other data. Who is said to own it was decided on the state that it
/// is in.
fn replaced(mut live: Json, secret: &Json, data: Map<String, Json>) -> Json {
    live["data"] = Json::Object(data);
    if let Some(owners) = secret["metadata"].get("ownerReferences") {
        live["metadata"]["ownerReferences"] = owners.clone();
    }
    live
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_named_stays_in_a_secret() {
        let live = json!({
            "metadata": {"name": "s", "ownerReferences": [{"uid": "old"}, {"uid": "theirs"}]},
            "type": "Opaque",
            "data": {"password": "x", "tls.crt": "1", "next.crt": "2", "next.key": "3"},
        });
        let secret = json!({
            "metadata": {"name": "s", "ownerReferences": [{"uid": "new"}, {"uid": "theirs"}]},
            "data": {"ca.crt": "4", "next.crt": null, "next.key": null},
        });
        let keep = [("next.crt", "tls.crt"), ("next.key", "tls.key"), ("tls.crt", "previous.crt")];
        let data = laid(Some(&live), &secret, &keep);
        let all = json!({
            "password": "x", "ca.crt": "4", "tls.crt": "2", "tls.key": "3", "previous.crt": "1",
        });
        assert_eq!(json!(data), all);
        let replaced = replaced(live, &secret, data);
        assert_eq!(replaced["metadata"], secret["metadata"]);
        assert_eq!((&replaced["type"], &replaced["data"]), (&json!("Opaque"), &all));
    }

    #[test]
    fn nothing_is_taken_from_a_secret_that_is_not_there() {
        let secret = json!({"data": {"ca.crt": "4", "next.crt": null}});
        assert_eq!(json!(laid(None, &secret, &[])), json!({"ca.crt": "4"}));
        assert!(laid(None, &json!({}), &[]).is_empty());
    }
}
