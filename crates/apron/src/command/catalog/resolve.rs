//! Which package to install for a kind: the only one that brings it, or the one that is pinned.

use super::{Catalog, CatalogChoice, escape};
use crate::args::registry::RegistryArguments;
use crate::cluster::Cluster;
use crate::command::pin;
use crate::failure::{Failure, Outcome};
use crate::settings::Settings;
use ::catalog::KindReference;
use ::catalog::answer::Definers;
use ::catalog::choice::{ChosenPackage, choose_package};
use controller::CatalogAddress;

/// Which kind, and where to ask.
pub(crate) struct KindQuestion<'a> {
    pub(crate) kind: &'a str,
    pub(crate) host: Option<&'a str>,
    pub(crate) registry: &'a RegistryArguments,
    /// Where the package manager runs, and choices stand.
    pub(crate) namespace: &'a str,
}

/// Finds the package to install for a kind.
pub(crate) async fn find_package(
    asked: &KindQuestion<'_>,
    cluster: Cluster,
    settings: &Settings,
) -> Outcome<ChosenPackage> {
    let kind = pin::read_kind(asked.kind)?;
    if kind.name.is_none() {
        let hint = format!("`apron which {kind}` lists its kinds and the packages that bring them");
        return Err(Failure::new(format!("{kind} is a group of kinds, not one of them"), hint));
    }
    let host = asked.host.map(CatalogAddress::parse).transpose().map_err(|why| {
        Failure::new(why, "name a host, such as registry.example.org or 127.0.0.1:5000")
    })?;
    let host = host.map(|address| address.registry);
    let choice = CatalogChoice { host, file: None, registry: asked.registry.clone() };
    let catalog = Catalog::connect(&choice, settings).await?;
    let address = format!("/api/v1/crds/{}/packages", escape(&kind.bare()));
    let found: Definers = catalog.ask_all(&address).await?;
    let place = catalog.host().map(|host| CatalogAddress {
        registry: host.to_owned(),
        stands_in: cluster.own_registry().as_deref() == Some(host),
    });
    let pinned = pinned_repository(cluster, asked.namespace, &kind, &found.crd).await?;
    let full_name = |name: &str| match &place {
        Some(place) => place.full_name(name),
        None => catalog.full_name(name),
    };
    choose_package(&found, &kind, pinned.as_deref(), full_name)
        .map_err(|refusal| Failure::new(refusal.reason, refusal.hint))
}

async fn pinned_repository(
    cluster: Cluster,
    namespace: &str,
    kind: &KindReference,
    crd: &str,
) -> Outcome<Option<String>> {
    let pins = pin::PinStore { cluster, namespace }.read().await?.unwrap_or_default();
    Ok(kind.pin_keys(crd).iter().find_map(|key| pins.get(key)).cloned())
}
