//! Install objects of the first package system: what each asks for, how it is, and what it brought.

mod found;
#[cfg(test)]
mod tests;
mod wish;

pub use found::FoundObject;
pub use wish::InstallWish;

use crate::cluster::{Cluster, Resource};
use crate::installed::{Installed, Inventory, Which, version};
use crate::state::State;
use api::condition::{self, Condition, types};
use api::stacks::{CLUSTER_INSTALL, NAMESPACE_INSTALL, PackageInstall, RECORD, STACKS_VERSION};
use controller::stacks::{ANNOTATION_INSTALLS, install_image};
use ground::failure::{Failure, Outcome};
use serde::Serialize;
use serde_json::Value as Json;

/// The condition that says whether a package is there and does what it should.
const READY: &str = "Ready";
/// The label of what a package brings that says of which kind its install object is.
const PARENT_KIND: &str = "core.crossplane.io/parent-kind";
/// The registry of references that name none, as far as this room knows: only tags are read of them.
const ANY_REGISTRY: &str = "index.docker.io";

/// An install object.
#[derive(Clone, Debug)]
pub struct InstallObject {
    /// `ClusterPackageInstall` or `PackageInstall`.
    pub kind: &'static str,
    /// What is asked for, and what the manager says of it.
    pub install: PackageInstall,
    /// The object as the server has it.
    pub json: Json,
    /// The record of its package.
    pub record: Option<Json>,
}

/// An install object for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstallShown<'a> {
    id: String,
    name: &'a str,
    namespace: &'a str,
    kind: &'static str,
    version: String,
    package: String,
    state: &'static str,
    is_well: bool,
    messages: Vec<String>,
    /// The Provider that it became.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<RecordShown<'a>>,
    conditions: &'a [Condition],
}

/// What the record of a package says first.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RecordShown<'a> {
    kind: &'static str,
    name: &'a str,
    title: &'a str,
    version: &'a str,
}

/// The kind of install object that a word names: `packageinstall`, `ClusterPackageInstalls`.
pub fn install_kind_named(word: &str) -> Option<&'static str> {
    let first = word.split('.').next().unwrap_or(word).to_lowercase();
    let one = first.strip_suffix('s').unwrap_or(&first);
    [CLUSTER_INSTALL, NAMESPACE_INSTALL].into_iter().find(|kind| kind.to_lowercase() == one)
}

/// Every install object of a cluster. A user may read packages and not these, and is told of packages;
/// a cluster that does not answer is told of where those are read.
pub(crate) async fn gather_installs(cluster: &Cluster) -> Outcome<Vec<InstallObject>> {
    let list = |kind: &str| cluster.all_installs(kind);
    let (everywhere, within, records) =
        (list(CLUSTER_INSTALL), list(NAMESPACE_INSTALL), list(RECORD));
    let (everywhere, within, records) = futures::join!(
        cluster.list::<Json>(&everywhere),
        cluster.list::<Json>(&within),
        cluster.list::<Json>(&records),
    );
    let known = |found: Outcome<Option<Vec<Json>>>| found.ok().flatten().unwrap_or_default();
    let records = known(records);
    let mut all = Vec::new();
    for (kind, found) in [(CLUSTER_INSTALL, known(everywhere)), (NAMESPACE_INSTALL, known(within))]
    {
        for json in found {
            all.push(InstallObject::read(kind, json, &records)?);
        }
    }
    Ok(all)
}

impl Cluster {
    /// The API group of install objects.
    pub fn stacks_group(&self) -> String {
        api::stacks::stacks_group(self.group.strip_prefix("pkg.").unwrap_or(&self.group))
    }

    /// Objects of a kind of the first package system, in a namespace.
    pub fn installs(&self, kind: &str, namespace: &str) -> Resource {
        let plural = format!("{}s", kind.to_lowercase());
        Resource::in_namespace(&self.stacks_group(), STACKS_VERSION, namespace, &plural)
    }

    /// The same in all namespaces.
    fn all_installs(&self, kind: &str) -> Resource {
        let plural = format!("{}s", kind.to_lowercase());
        Resource::of_group(&self.stacks_group(), STACKS_VERSION, &plural)
    }
}

impl InstallObject {
    /// The object with its record, if that is among these.
    pub(crate) fn read(kind: &'static str, mut json: Json, records: &[Json]) -> Outcome<Self> {
        // Lists need not say the kind of each object again.
        json["kind"] = kind.into();
        let install: PackageInstall = serde_json::from_value(json.clone()).map_err(|error| {
            let message = format!("cannot understand a {} of the cluster", kind.to_lowercase());
            let hint = "its definition may be of a much older or newer version than apron knows";
            Failure::new(message, hint).because(&error)
        })?;
        let is_its = |one: &&Json| {
            let owners = one["metadata"]["ownerReferences"].as_array();
            let mut owners = owners.into_iter().flatten();
            owners.any(|owner| owner["uid"].is_string() && owner["uid"] == json["metadata"]["uid"])
        };
        let record = records.iter().find(is_its).cloned();
        Ok(Self { kind, install: install.with_chosen_image(), json, record })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.install.metadata.name
    }

    /// Its namespace.
    pub fn namespace(&self) -> &str {
        let namespace = self.install.metadata.rest.get("namespace");
        namespace.and_then(Json::as_str).unwrap_or_default()
    }

    /// What it is called among those of its kind.
    pub fn key(&self) -> String {
        format!("{}/{}", self.namespace(), self.name())
    }

    /// What commands call it.
    pub fn id(&self) -> String {
        format!("{}/{}", self.kind.to_lowercase(), self.key())
    }

    /// What names exactly this one.
    pub fn which(&self) -> Which {
        Which { kind: None, name: self.id() }
    }

    /// What a user would have asked for to get just this image.
    pub fn wish(&self) -> InstallWish {
        InstallWish {
            kind: self.kind,
            namespace: self.namespace().to_owned(),
            name: self.name().to_owned(),
            package: self.package(),
            ..InstallWish::default()
        }
    }

    /// The image it asks for, or the definition.
    pub fn package(&self) -> String {
        match install_image(&self.install.spec, ANY_REGISTRY) {
            Ok(image) => image.as_written().to_owned(),
            Err(_) => self.install.spec.crd.clone().unwrap_or_default(),
        }
    }

    /// The tag or digest of what is there, or is to be.
    pub fn version(&self, inventory: &Inventory) -> String {
        let asked = install_image(&self.install.spec, ANY_REGISTRY);
        match (self.provider(inventory), asked) {
            (Some(provider), _) => provider.version(),
            (None, Ok(image)) => version(image.as_written()),
            (None, Err(_)) => "-".to_owned(),
        }
    }

    /// The Provider that it became.
    pub fn provider<'a>(&self, inventory: &'a Inventory) -> Option<&'a Installed> {
        inventory.packages.iter().find(|one| self.is_made_into(one))
    }

    /// Whether a package was made for it. Objects of both kinds may have one name.
    fn is_made_into(&self, one: &Installed) -> bool {
        let kind = one.json["spec"]["commonLabels"][PARENT_KIND].as_str();
        let key = self.key();
        kind.is_none_or(|kind| kind == self.kind) && named_installs(one).any(|named| named == key)
    }

    fn conditions(&self) -> &[Condition] {
        let status = self.install.status.as_ref();
        status.and_then(|status| status.conditions.as_deref()).unwrap_or_default()
    }

    /// How it is.
    pub fn state(&self, inventory: &Inventory) -> State {
        let metadata = &self.install.metadata;
        if metadata.deletion_timestamp.is_some() {
            return State::Deleting;
        }
        if metadata.is_paused() {
            return State::Paused;
        }
        let all = self.conditions();
        let Some(synced) = condition::find(all, types::SYNCED) else { return State::New };
        let ready = condition::find(all, READY);
        let is_past = |one: &Condition| one.is_past(metadata.generation);
        if is_past(synced) || ready.is_some_and(is_past) {
            return State::Installing;
        }
        let is_stuck = || self.provider(inventory).map(Installed::state) == Some(State::Unhealthy);
        match ready {
            _ if synced.status == "False" => State::Unhealthy,
            Some(ready) if ready.status == "True" => State::Healthy,
            _ if is_stuck() => State::Unhealthy,
            _ => State::Installing,
        }
    }

    /// What is in the way of it, in sentences. What its Provider complains of, that one says.
    pub fn complaints(&self, inventory: &Inventory) -> Vec<String> {
        if self.state(inventory) == State::New {
            return vec!["no package manager has looked at it yet".to_owned()];
        }
        let told: Vec<String> =
            self.provider(inventory).map(Installed::complaints).unwrap_or_default();
        let mut all: Vec<String> = Vec::new();
        for of in [types::SYNCED, READY] {
            let said = condition::find(self.conditions(), of).filter(|one| one.status == "False");
            let Some(message) = said.and_then(|one| one.message.as_deref()) else { continue };
            let is_told = |one: &String| one.contains(message);
            if !message.is_empty() && !all.iter().chain(&told).any(is_told) {
                all.push(message.to_owned());
            }
        }
        all
    }

    /// One line on how it comes along.
    pub fn progress(&self, inventory: &Inventory) -> String {
        let word = self.state(inventory).word();
        let complaints = self.complaints(inventory);
        let provider = || Some(self.provider(inventory)?.progress(inventory));
        match complaints.into_iter().next().or_else(provider) {
            Some(told) if !self.state(inventory).is_well() && told != word => {
                format!("{word}: {told}")
            }
            _ => word.to_owned(),
        }
    }

    /// The object for programs.
    pub fn shown<'a>(&'a self, inventory: &'a Inventory) -> InstallShown<'a> {
        let state = self.state(inventory);
        InstallShown {
            id: self.id(),
            name: self.name(),
            namespace: self.namespace(),
            kind: self.kind,
            version: self.version(inventory),
            package: self.package(),
            state: state.word(),
            is_well: state.is_well(),
            messages: self.complaints(inventory),
            provider: self.provider(inventory).map(Installed::name),
            record: self.shown_record(),
            conditions: self.conditions(),
        }
    }

    fn shown_record(&self) -> Option<RecordShown<'_>> {
        let record = self.record.as_ref()?;
        Some(RecordShown {
            kind: RECORD,
            name: record["metadata"]["name"].as_str().unwrap_or_default(),
            title: record["spec"]["title"].as_str().unwrap_or_default(),
            version: record["spec"]["version"].as_str().unwrap_or_default(),
        })
    }

    /// What its record says first, in a line; none before there is one.
    pub fn record_line(&self) -> Option<String> {
        let RecordShown { name, title, version, .. } = self.shown_record()?;
        Some(format!("record package {}/{name}: {title} {version}", self.namespace()))
    }
}

/// The install objects that a package was made for, by their keys.
pub(crate) fn named_installs(one: &Installed) -> impl Iterator<Item = &str> {
    let named = one.package.metadata.annotations.get(ANNOTATION_INSTALLS);
    named.into_iter().flat_map(|named| named.split(',')).filter(|key| !key.is_empty())
}

impl Inventory {
    /// The install objects that a package was made for.
    pub fn installs_of(&self, one: &Installed) -> Vec<&InstallObject> {
        self.installs.iter().filter(|install| install.is_made_into(one)).collect()
    }
}

impl Installed {
    /// Whether it was made for install objects, and follows them.
    pub fn is_for_installs(&self) -> bool {
        named_installs(self).next().is_some()
    }
}
