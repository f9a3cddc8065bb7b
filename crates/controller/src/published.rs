//! How the manager is set up, where others can read it.
//!
//! A plan can only tell what a manager would do if it knows how that one is set up. The manager that
//! works writes it into a `ConfigMap` of its namespace: what decides about packages, and nothing secret.
//! Plans of users that may read it go by it. What an older or newer manager says and is not known here
//! is passed over.

use crate::cluster::{Error, Force, Mode};
use crate::{CatalogAddress, Entry, Hands, Movement, Settings, Unsupported, queue};
use api::manager::published_name;
use api::meta::{PackageKind, PermissionRequest};
use plan::step::Target;
use serde_json::{Map, Value as Json, json};
use tokio::sync::watch::Receiver;

/// The field of the `ConfigMap`.
const FIELD: &str = "settings.json";

/// What of the settings decides about packages, as it is published.
fn write_settings(settings: &Settings) -> Json {
    let kinds = settings.runs.iter().map(|kind| kind.as_str());
    json!({
        "defaultRegistry": settings.default_registry,
        "catalogs": settings.catalogs.iter().map(|one| json!({
            "registry": one.registry, "standsIn": one.stands_in,
        })).collect::<Vec<_>>(),
        "dependencyVersions": movement_name(settings.movement),
        "movesPackagesKeptElsewhere": settings.moves_kept,
        "runs": kinds.collect::<Vec<_>>(),
        "allowedPermissions": settings.allowed.iter().map(write_rule).collect::<Vec<_>>(),
        "allowedRole": settings.allowed_role,
        "allowedGroups": settings.allowed_groups,
        "managesRoles": settings.manages_roles,
        "crossplaneVersion": settings.crossplane_version,
        "defersDefinitions": settings.defers_definitions,
        "adoptsExisting": settings.adopts_existing,
        "skipsUnsupportedObjects": settings.unsupported == Unsupported::Skip,
    })
}

/// A rule as roles write it.
fn write_rule(rule: &PermissionRequest) -> Json {
    let PermissionRequest { api_groups, resources, resource_names, non_resource_urls, verbs } =
        rule;
    json!({
        "apiGroups": api_groups, "resources": resources, "resourceNames": resource_names,
        "nonResourceURLs": non_resource_urls, "verbs": verbs,
    })
}

/// Settings with what was published in their place.
fn read_settings(published: &Json, mut settings: Settings) -> Settings {
    let text = |field: &str| published[field].as_str().map(str::to_owned);
    let list = |field: &str| published[field].as_array();
    let flag = |field: &str, to: &mut bool| *to = published[field].as_bool().unwrap_or(*to);
    if let Some(registry) = text("defaultRegistry") {
        settings.default_registry = registry;
    }
    if let Some(catalogs) = list("catalogs") {
        settings.catalogs = catalogs.iter().filter_map(read_catalog).collect();
    }
    if let Some(movement) = text("dependencyVersions").and_then(|name| movement_named(&name)) {
        settings.movement = movement;
    }
    flag("movesPackagesKeptElsewhere", &mut settings.moves_kept);
    if let Some(kinds) = list("runs") {
        let is_run = |kind: &PackageKind| kinds.iter().any(|name| *name == kind.as_str());
        settings.runs = PackageKind::ALL.into_iter().filter(is_run).collect();
    }
    if let Some(rules) = list("allowedPermissions") {
        let rules = rules.iter().filter_map(|rule| PermissionRequest::from_json(rule).ok());
        settings.allowed = rules.collect();
    }
    if published.get("allowedRole").is_some() {
        settings.allowed_role = text("allowedRole");
    }
    if let Some(groups) = list("allowedGroups") {
        let groups = groups.iter().filter_map(Json::as_str);
        settings.allowed_groups = groups.map(str::to_owned).collect();
    }
    flag("managesRoles", &mut settings.manages_roles);
    if let Some(version) = text("crossplaneVersion") {
        settings.crossplane_version = version;
    }
    flag("defersDefinitions", &mut settings.defers_definitions);
    flag("adoptsExisting", &mut settings.adopts_existing);
    settings.unsupported = match published["skipsUnsupportedObjects"].as_bool() {
        Some(true) => Unsupported::Skip,
        Some(false) => Unsupported::Refuse,
        None => settings.unsupported,
    };
    settings
}

fn read_catalog(written: &Json) -> Option<CatalogAddress> {
    let registry = written["registry"].as_str()?.to_owned();
    Some(CatalogAddress { registry, stands_in: written["standsIn"].as_bool().unwrap_or_default() })
}

const MOVEMENTS: [(Movement, &str); 4] = [
    (Movement::Held, "held"),
    (Movement::Named, "named"),
    (Movement::Upgrades, "upgrades"),
    (Movement::Any, "any"),
];

fn movement_name(movement: Movement) -> &'static str {
    MOVEMENTS.iter().find(|(one, _)| *one == movement).map_or("upgrades", |(_, name)| name)
}

fn movement_named(name: &str) -> Option<Movement> {
    MOVEMENTS.iter().find(|(_, one)| *one == name).map(|(movement, _)| *movement)
}

/// Where the settings of a manager are.
pub fn target(settings: &Settings) -> Target {
    Target {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        namespace: Some(settings.namespace.clone()),
        name: published_name(&settings.group_suffix),
    }
}

/// Settings as the manager of the cluster has them, where those in hand name its namespace and group;
/// none if it does not say, or a user may not know.
pub async fn published_settings(hands: &Hands) -> Result<Option<Settings>, Error> {
    let found = match hands.cluster.get(&target(&hands.settings)).await {
        Err(Error::Refused(_)) => None,
        found => found?,
    };
    let text = found.as_ref().and_then(|one| one["data"][FIELD].as_str());
    let published = text.and_then(|text| serde_json::from_str::<Json>(text).ok());
    let published = published.filter(Json::is_object);
    Ok(published.map(|published| read_settings(&published, hands.settings.clone())))
}

/// Publishes the settings, if they are not there. A manager without the right to do so says it, and
/// works.
async fn publish(hands: &Hands) -> Result<(), Error> {
    let target = target(&hands.settings);
    let text = write_settings(&hands.settings).to_string();
    let live = hands.cluster.get(&target).await?;
    if live.is_some_and(|live| live["data"][FIELD] == text) {
        return Ok(());
    }
    let mut data = Map::new();
    data.insert(FIELD.to_owned(), Json::from(text));
    let object = json!({
        "apiVersion": target.api_version, "kind": target.kind,
        "metadata": {"name": target.name, "namespace": target.namespace},
        "data": data,
    });
    hands.cluster.apply(&target, &object, Force::Overrule, Mode::Real).await.map(|_| ())
}

/// Publishes the settings of a manager that works, and tries again while the API server is away.
pub(crate) async fn run(hands: &Hands, mut stop: Receiver<bool>) {
    let mut pause = queue::BACKOFF;
    while let Err(error) = publish(hands).await {
        if matches!(error, Error::Deposed(_)) {
            return;
        }
        let name = target(&hands.settings).name;
        let why = format!("cannot publish how the manager is set up, so that plans know: {error}");
        hands.say(Entry::trouble("manager", &name, &why));
        if matches!(error, Error::Refused(_)) {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(queue::BACKOFF_MAX),
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h6_what_is_published_is_read_as_it_was_written() {
        let own = || Settings::alone("one");
        let told = Settings {
            default_registry: "xpkg.example.org".to_owned(),
            catalogs: vec![CatalogAddress {
                registry: "c.example.org".to_owned(),
                stands_in: true,
            }],
            movement: Movement::Held,
            moves_kept: true,
            runs: vec![PackageKind::Function],
            allowed: vec![PermissionRequest::everything()],
            allowed_role: None,
            allowed_groups: vec!["gateway.networking.k8s.io".to_owned()],
            manages_roles: false,
            crossplane_version: "v1.2.3".to_owned(),
            defers_definitions: true,
            adopts_existing: true,
            unsupported: Unsupported::Skip,
            ..own()
        };
        for settings in [told, own()] {
            let other = Settings { identity: "two".to_owned(), ..Settings::alone("two") };
            let written = write_settings(&settings);
            let read = read_settings(&written, other);
            assert_eq!(read.identity, "two");
            assert_eq!(write_settings(&read), written);
        }
        // A field that is not there changes nothing.
        let kept = read_settings(&json!({"runs": 7, "new": true}), own());
        assert_eq!(write_settings(&kept), write_settings(&own()));
    }
}
