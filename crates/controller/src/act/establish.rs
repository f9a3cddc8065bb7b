//! Makes an object of the cluster what a package says.
//!
//! The package's document is read again, because it was too large to be kept. What the plan lays
//! over it wins; labels and annotations that others wrote stay; the rest is replaced.

use crate::Hands;
use crate::cache::CacheError;
use crate::cluster::{Answer, Error, MANAGER, Mode, chain};
use crate::revision::bare;
use plan::revision::desired::{self, replacement};
use plan::step::{Expect, Packaged, Write};
use serde_json::Value as Json;

/// The one kind of which more than metadata matters once it was written.
const WITH_STATE: &str = "ManagedResourceDefinition";

/// Makes the object, or replaces it.
pub(super) async fn establish(hands: &Hands, write: &Write, mode: Mode) -> Result<(), Error> {
    let Write { target, object, expect } = write;
    let live = match expect {
        Expect::Absent => None,
        Expect::Anything | Expect::Unchanged { .. } => hands.cluster.get_metadata(target).await?,
    };
    let form = if target.kind == WITH_STATE { Answer::Whole } else { Answer::Metadata };
    let answer = match live {
        None if matches!(expect, Expect::Unchanged { .. }) => {
            return Err(Error::Stale(format!("{} {} is gone", target.kind, target.name)));
        }
        None => {
            let text = wanted(hands, object, String::into_bytes).await?;
            hands.cluster.create_text(target, text, mode, form).await?
        }
        Some(mut live) => {
            desired::disown(&mut live, MANAGER);
            let mut live = bare(live)?;
            // It must still be the one, in the state, that this was decided on.
            if let Expect::Unchanged { uid, resource_version } = expect {
                live.uid.clone_from(uid);
                live.resource_version.clone_from(resource_version);
            }
            let replaced = move |wanted| replacement(wanted, &live).to_string().into_bytes();
            let text = parsed(hands, object, replaced).await?;
            hands.cluster.replace_text(target, text, mode, form).await?
        }
    };
    if mode == Mode::Real {
        let state = answer["spec"]["state"].as_str().map(str::to_owned);
        hands.written.note(target, object, &bare(answer)?, state);
    }
    Ok(())
}

/// What is made of a package's object with what the plan lays over it.
pub(crate) async fn parsed<T: Send + 'static>(
    hands: &Hands,
    object: &Packaged,
    then: impl FnOnce(Json) -> T + Send + 'static,
) -> Result<T, Error> {
    let then = move |text: String| serde_json::from_str(&text).map(then);
    wanted(hands, object, then).await?.map_err(unreadable)
}

/// The same, made of its text.
async fn wanted<T: Send + 'static>(
    hands: &Hands,
    object: &Packaged,
    then: impl FnOnce(String) -> T + Send + 'static,
) -> Result<T, Error> {
    let overlay = object.overlay.clone();
    let then = move |document: &str| desired::text(document, &overlay).map(then);
    let read = hands.cache.document(&object.package, object.document, then).await;
    let read = read.map_err(|error| match error {
        // It is fetched again when the package is looked at again.
        CacheError::Absent { .. } | CacheError::Damaged { .. } => Error::Stale(error.to_string()),
        other => Error::Busy(chain(&other)),
    });
    read?.map_err(unreadable)
}

/// What the cache has was made here, and its digest is right.
#[expect(clippy::needless_pass_by_value, reason = "it is what errors are mapped with")]
fn unreadable(error: serde_json::Error) -> Error {
    Error::Busy(format!("the package cache has what cannot be read: {error}"))
}
