//! Makes an object of the cluster what a package says.
//!
//! The package's document is parsed again, because it was too large to be kept. What the plan lays
//! over it wins; what others wrote into the metadata of the object stays; the rest is replaced.

use crate::Hands;
use crate::cache::CacheError;
use crate::cluster::{Error, Mode, chain};
use crate::revision::bare;
use plan::revision::desired::{desired, replacement};
use plan::step::{Expect, Packaged, Write};
use serde_json::Value as Json;

/// Makes the object, or replaces it.
pub(super) async fn establish(hands: &Hands, write: &Write, mode: Mode) -> Result<(), Error> {
    let Write { target, object, expect } = write;
    let wanted = wanted(hands, object).await?;
    let live = match expect {
        Expect::Absent => None,
        Expect::Anything | Expect::Unchanged { .. } => hands.cluster.get_metadata(target).await?,
    };
    let answer = match live {
        None if matches!(expect, Expect::Unchanged { .. }) => {
            return Err(Error::Stale(format!("{} {} is gone", target.kind, target.name)));
        }
        None => hands.cluster.create(target, &wanted, mode).await?,
        Some(live) => {
            let mut live = bare(live)?;
            // It must still be the one, in the state, that this was decided on.
            if let Expect::Unchanged { uid, resource_version } = expect {
                live.uid.clone_from(uid);
                live.resource_version.clone_from(resource_version);
            }
            hands.cluster.replace(target, &replacement(wanted, &live), mode).await?
        }
    };
    if mode == Mode::Real {
        let state = answer["spec"]["state"].as_str().map(str::to_owned);
        hands.written.note(target, object, &bare(answer)?, state);
    }
    Ok(())
}

/// A package's object with what the plan lays over it, as it is sent.
pub(crate) async fn wanted(hands: &Hands, object: &Packaged) -> Result<Json, Error> {
    Ok(desired(document(hands, object).await?, &object.overlay))
}

async fn document(hands: &Hands, object: &Packaged) -> Result<Json, Error> {
    let read = hands.cache.document(&object.package, object.document).await;
    read.map_err(|error| match error {
        // It is fetched again when the package is looked at again.
        CacheError::Absent { .. } | CacheError::Damaged { .. } => Error::Stale(error.to_string()),
        other => Error::Busy(chain(&other)),
    })
}
