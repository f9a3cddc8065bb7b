//! `pin`: an administrator's choice of packages for kinds that several packages bring.
//!
//! Choices are a `ConfigMap` in the manager's namespace, one line each: the kind, and the repository.
//! Keys of a `ConfigMap` have no `*`, so the kinds of a whole group are written `_.GROUP`.

use crate::args::cluster::ClusterArguments;
use crate::cluster::Cluster;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, table};
use crate::settings::Settings;
use api::kind_reference::KindReference;
use api::manager::PINS;
use inventory::Resource;
use oci::{Repository, Rules};
use serde::Serialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

/// What to do with choices.
pub(crate) struct Request {
    pub(crate) verb: PinVerb,
    pub(crate) format: Format,
    pub(crate) cluster: ClusterArguments,
}

/// What can be done with choices.
pub(crate) enum PinVerb {
    /// Show them all, or that of a kind.
    List {
        kind: Option<String>,
    },
    Set {
        kind: String,
        repository: String,
    },
    Remove {
        kind: String,
    },
}

/// A choice.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct PinnedKind {
    kind: String,
    package: String,
}

/// Shows choices, or changes one.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    let pins = PinStore { cluster, namespace: &request.cluster.namespace };
    match &request.verb {
        PinVerb::List { kind } => {
            let wanted = kind.as_deref().map(key_of).transpose()?;
            let mut all = pins.read().await?.unwrap_or_default();
            all.retain(|key, _| wanted.as_ref().is_none_or(|wanted| wanted == key));
            show_pins(&all, request.format)
        }
        PinVerb::Set { kind, repository } => {
            let key = key_of(kind)?;
            check_repository(repository)?;
            pins.write(&key, Some(repository)).await?;
            show_pins(&BTreeMap::from([(key, repository.clone())]), request.format)
        }
        PinVerb::Remove { kind } => {
            let key = key_of(kind)?;
            let mut all = pins.read().await?.unwrap_or_default();
            if all.remove(&key).is_none() {
                let hint = "`apron pin` lists those that are";
                return Err(Failure::new(format!("no package is pinned for {kind}"), hint));
            }
            pins.write(&key, None).await?;
            show_pins(&all, request.format)
        }
    }
}

/// Where choices stand.
pub(crate) struct PinStore<'a> {
    pub(crate) cluster: Cluster,
    pub(crate) namespace: &'a str,
}

impl PinStore<'_> {
    fn resource(&self) -> Resource {
        Resource::core(self.namespace, "configmaps")
    }

    /// What was chosen; nothing if there is no place for choices yet.
    pub(crate) async fn read(&self) -> Outcome<Option<BTreeMap<String, String>>> {
        let found: Option<Json> = self.cluster.get(&self.resource(), PINS).await?;
        let read = |mut one: Json| serde_json::from_value(one["data"].take()).unwrap_or_default();
        Ok(found.map(read))
    }

    async fn write(&self, key: &str, repository: Option<&str>) -> Outcome {
        let data = json!({"data": {key: repository}});
        if self.read().await?.is_some() {
            return self.cluster.merge(&self.resource(), PINS, &data).await.map(|_| ());
        }
        let mut object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": PINS, "namespace": self.namespace},
        });
        object["data"] = data["data"].clone();
        self.cluster.create(&self.resource(), PINS, &object).await.map(|_| ())
    }
}

/// A kind, or all kinds of a group.
pub(crate) fn read_kind(text: &str) -> Outcome<KindReference> {
    KindReference::parse(text).map_err(|error| {
        let hint = "write it as buckets.s3.example.org, or *.s3.example.org for all of a group";
        Failure::new(format!("`{text}` is not a kind"), hint).because(&error)
    })
}

/// A kind as the key of a choice.
fn key_of(kind: &str) -> Outcome<String> {
    let kind = read_kind(kind)?;
    if let Some(version) = &kind.version {
        let hint = format!("leave out /{version}: a package is chosen for all versions of a kind");
        return Err(Failure::new(format!("a choice for {kind} has a version"), hint));
    }
    Ok(kind.pin_key())
}

fn check_repository(text: &str) -> Outcome {
    let bad = |why: &str| {
        let hint = "write it like registry.example.org/organisation/package, without a tag";
        Failure::new(format!("`{text}` is not a repository: {why}"), hint)
    };
    if text.contains('@') || text.rsplit('/').next().is_some_and(|last| last.contains(':')) {
        return Err(bad("it has a tag or digest"));
    }
    Repository::parse(text, &Rules::weak()).map(|_| ()).map_err(|error| bad(&error.to_string()))
}

fn show_pins(pins: &BTreeMap<String, String>, format: Format) -> Outcome {
    let shown = |(key, package): (&String, &String)| PinnedKind {
        kind: key.strip_prefix("_.").map_or_else(|| key.clone(), |group| format!("*.{group}")),
        package: package.clone(),
    };
    let pins: Vec<PinnedKind> = pins.iter().map(shown).collect();
    if format == Format::Json {
        return output::print_json(&json!({ "items": pins }));
    }
    if pins.is_empty() {
        output::say("no package is pinned for a kind");
        return Ok(());
    }
    let rows: Vec<Vec<String>> = pins.into_iter().map(|one| vec![one.kind, one.package]).collect();
    table::table(&["KIND", "PACKAGE"], &rows).iter().for_each(output::print);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_become_keys_that_a_config_map_takes() {
        let key = |kind: &str| key_of(kind).ok();
        assert_eq!(key("buckets.s3.example.org").as_deref(), Some("buckets.s3.example.org"));
        assert_eq!(key("*.s3.example.org").as_deref(), Some("_.s3.example.org"));
        assert_eq!(key("buckets.s3.example.org/v1"), None);
        assert_eq!(key("buckets"), None);
    }

    #[test]
    fn a_choice_names_a_repository() {
        assert!(check_repository("registry.example.org/team/p").is_ok());
        assert!(check_repository("127.0.0.1:5000/team/p").is_ok());
        for text in ["registry.example.org/team/p:v1", "registry.example.org/p@sha256:00", "A B"] {
            assert!(check_repository(text).is_err(), "{text}");
        }
    }
}
