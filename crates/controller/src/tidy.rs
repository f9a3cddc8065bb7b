//! Keeps the cache small: packages of no revision go.

use crate::cache::NAME_DIGITS;
use crate::cluster::{Error, Which};
use crate::{Entry, Hands};
use oci::Digest;
use std::time::Duration;
use tokio::sync::watch::Receiver;

/// How often.
const INTERVAL: Duration = Duration::from_secs(600);

/// Removes what nobody needs, from time to time, until told to stop.
pub(crate) async fn run(hands: &Hands, mut stop: Receiver<bool>) {
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(INTERVAL) => {}
        }
        if let Err(error) = tidy(hands).await {
            hands.say(Entry::trouble("cache", "", &error.to_string()));
        }
    }
}

/// Removes packages that no revision is called after.
async fn tidy(hands: &Hands) -> Result<(), Error> {
    let api_version = format!("{}/v1", hands.settings.group());
    let mut ends: Vec<String> = Vec::new();
    for kind in ["ProviderRevision", "ConfigurationRevision", "FunctionRevision"] {
        let all = hands.cluster.list_metadata(&api_version, kind, Which::default()).await?;
        let names = all.iter().filter_map(|one| one["metadata"]["name"].as_str());
        ends.extend(names.map(|name| name.rsplit('-').next().unwrap_or_default().to_owned()));
    }
    let is_needed = move |digest: &Digest| {
        ends.iter().any(|end| end.len() >= NAME_DIGITS && digest.hex().starts_with(end.as_str()))
    };
    let gone = hands.cache.keep(is_needed).await;
    for digest in gone.map_err(|error| Error::Busy(error.to_string()))? {
        hands.say(Entry::news("cache", &digest.to_string(), "no revision needs it any more"));
    }
    Ok(())
}
