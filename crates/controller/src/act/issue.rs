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
    let mut data = secret["data"].as_object().cloned().unwrap_or_default();
    for (from, to) in keep {
        let kept = live.as_ref().map(|live| live["data"][*from].clone()).unwrap_or_default();
        data.insert((*to).to_owned(), kept);
    }
    if let Some(make) = make {
        let pair = pair(hands, make).await?;
        data.insert(make.certificate.to_owned(), Json::from(STANDARD.encode(pair.certificate)));
        data.insert(make.key.to_owned(), Json::from(STANDARD.encode(pair.key)));
    }
    write(hands, &target, secret, live, data).await
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
    let Some(mut live) = live else {
        let mut secret = secret.clone();
        secret["data"] = Json::Object(data);
        return hands.cluster.create(target, &secret, Mode::Real).await.map(|_| ());
    };
    live["data"] = Json::Object(data);
    // Who is said to own it was decided on the state that it is in.
    if let Some(owners) = secret["metadata"].get("ownerReferences") {
        live["metadata"]["ownerReferences"] = owners.clone();
    }
    hands.cluster.replace(target, &live, Mode::Real).await.map(|_| ())
}
