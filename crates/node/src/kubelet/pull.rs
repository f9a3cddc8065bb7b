//! Images of containers, fetched as their pull policies say.

use super::Station;
use super::upkeep::remove_unnamed_images;
use crate::image::{PullError, PulledImage};
use k8s_openapi::api::core::v1::{Container, Pod, Secret};
use kube::Api;
use oci::Identifier;
use oci::reference::{Reference, Rules};
use std::sync::Arc;
use store::auth::Keychain;
use store::remote::{Client, Settings};

/// Why there is no image: the reason that a status says, and a sentence.
pub(crate) type PullFailure = (String, String);

/// An image, and whether it was here already.
pub(crate) struct Fetched {
    pub(crate) image: PulledImage,
    pub(crate) was_here: bool,
}

/// Fetches the image of a container.
pub(crate) async fn fetch_image(
    station: &Arc<Station>,
    pod: &Pod,
    container: &Container,
    told: impl FnOnce(),
) -> Result<Fetched, PullFailure> {
    let name = container.image.clone().unwrap_or_default();
    let rules = Rules::weak().default_registry(&station.settings.default_registry);
    let reference = Reference::parse(&name, &rules)
        .map_err(|error| ("InvalidImageName".to_owned(), chain(&error)))?;
    let usual = match reference.identifier() {
        Identifier::Tag(tag) if tag == "latest" => "Always",
        _ => "IfNotPresent",
    };
    let policy = container.image_pull_policy.as_deref().filter(|policy| !policy.is_empty());
    let policy = policy.unwrap_or(usual);
    if policy != "Always" {
        if let Some(image) = find_here(station, &name, reference.identifier()) {
            return Ok(Fetched { image, was_here: true });
        }
        if policy == "Never" {
            let why = format!("Container image {name:?} is not present with pull policy of Never");
            return Err(("ErrImageNeverPull".to_owned(), why));
        }
    }
    told();
    let keychain = pull_keychain(station, pod).await;
    let client = Client::new(station.transport.clone(), keychain, Settings::default());
    let remote = client.repository(reference.repository().clone());
    let mut pulled = station.images.pull(&remote, reference.identifier(), &|_| {}).await;
    // A disk that is full has room again without the images that are only kept for later.
    if pulled.as_ref().is_err_and(PullError::is_disk_full)
        && remove_unnamed_images(station, 0).await > 0
    {
        pulled = station.images.pull(&remote, reference.identifier(), &|_| {}).await;
    }
    let image = pulled.map_err(|error| {
        (error.reason().to_owned(), format!("failed to pull image {name:?}: {}", chain(&error)))
    })?;
    // An image that is not remembered is asked for again; nothing else depends on it.
    let _ = station.images.remember(&name, &image);
    Ok(Fetched { image, was_here: false })
}

/// An image that is here already. What cannot be read of those is fetched again.
fn find_here(station: &Station, name: &str, identifier: &Identifier) -> Option<PulledImage> {
    let by_digest = match identifier {
        Identifier::Digest(digest) => station.images.cached(digest).ok().flatten(),
        Identifier::Tag(_) => None,
    };
    by_digest.or_else(|| station.images.remembered(name).ok().flatten())
}

/// What a pod's secrets say of registries, and then what this machine's user has.
async fn pull_keychain(station: &Station, pod: &Pod) -> Keychain {
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    let secrets: Api<Secret> = Api::namespaced(station.client.clone(), &namespace);
    let mut keychain = Keychain::anonymous();
    let named = pod.spec.iter().flat_map(|spec| spec.image_pull_secrets.iter().flatten());
    for one in named {
        // A secret that is not there is passed over: the image may be open to all.
        let Ok(Some(secret)) = secrets.get_opt(&one.name).await else { continue };
        let data = secret.data.unwrap_or_default();
        let config = data.get(".dockerconfigjson").or_else(|| data.get(".dockercfg"));
        if let Some(said) = config.and_then(|bytes| Keychain::from_json(&bytes.0).ok()) {
            keychain = keychain.or(said);
        }
    }
    keychain.or(station.keychain.clone())
}

/// An error with its causes, in a line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        said.push_str(": ");
        said.push_str(&inner.to_string());
        cause = inner.source();
    }
    said
}
