//! Which packages bring a kind: the API server is asked first, then catalogs of registries.
//!
//! What a catalog answers is a proposal. Nothing is installed for it before its contents were read,
//! and they, not the catalog, say what a package brings.

use crate::access::access;
use crate::cluster;
use crate::fetch::{FetchError, Fetcher};
use crate::heard::PATIENCE;
use crate::{Entry, Hands};
use api::kind_reference::KindReference;
use api::manager::{MANAGER_NAMESPACE, PINS};
use oci::{Repository, Rules};
use plan::lock::{KindCandidate, KindPins, KindSources, Offered};
use plan::step::Target;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use store::auth::Keychain;

/// The largest answer of a catalog that is read.
const ANSWER_SIZE_MAX: u64 = 16 << 20;
/// Kinds of one group that are asked about.
const KINDS_MAX: usize = 200;
/// Pages of one answer that are read.
const PAGES_MAX: usize = 20;

/// Where a catalog is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogAddress {
    /// The registry whose catalog it is, as references name it.
    pub registry: String,
    /// Whether repositories whose names begin with a host are those of that host, as in a registry
    /// that stands in for others.
    pub stands_in: bool,
}

impl CatalogAddress {
    /// The catalog of a registry, by its host or its URL.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let bare = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let registry = bare.unwrap_or(text).trim_end_matches('/');
        let place = Repository::parse(&format!("{registry}/catalog"), &Rules::strict());
        match place {
            Ok(place) if place.registry() == registry => {
                Ok(Self { registry: registry.to_owned(), stands_in: false })
            }
            _ => Err(format!("`{text}` is not the address of a registry")),
        }
    }

    /// A repository of the registry as the world calls it.
    pub fn full_name(&self, repository: &str) -> String {
        let first = repository.split('/').next().unwrap_or_default();
        if self.stands_in && first.contains('.') && first.len() < repository.len() {
            return repository.to_owned();
        }
        format!("{}/{repository}", self.registry)
    }
}

/// An administrator's choices; none if they cannot be read.
pub(crate) async fn read_pins(hands: &Hands) -> Result<KindPins, cluster::Error> {
    let namespace = &hands.settings.namespace;
    let target = Target {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        namespace: Some(namespace.clone()),
        name: PINS.to_owned(),
    };
    let found = match hands.cluster.get(&target).await {
        Ok(found) => found,
        Err(cluster::Error::Refused(why)) => {
            let message = format!("the pins in the ConfigMap {PINS} cannot be read: {why}");
            hands.say(Entry::trouble("lock", "", &message));
            None
        }
        Err(error) => return Err(error),
    };
    let data = found.map(|mut one| one["data"].take()).unwrap_or_default();
    let repositories: BTreeMap<String, String> = serde_json::from_value(data).unwrap_or_default();
    let elsewhere = if namespace == MANAGER_NAMESPACE {
        String::new()
    } else {
        format!(" --namespace {namespace}")
    };
    Ok(KindPins { repositories, command: format!("apron pin{elsewhere}") })
}

/// What the API server serves of what is meant, by the names of definitions.
pub(crate) async fn served_kinds(
    hands: &Hands,
    kind: &KindReference,
) -> Result<BTreeMap<String, Offered>, cluster::Error> {
    let mut found: BTreeMap<String, Offered> = BTreeMap::new();
    for (version, resource) in hands.cluster.resources_of_group(&kind.group).await? {
        let names = (&resource.name, &resource.singular_name, &resource.kind);
        if kind.names_definition(&kind.group, names.0, names.1, names.2) {
            let offered = found.entry(format!("{}.{}", resource.name, kind.group)).or_default();
            if kind.accepts_version(&version) {
                offered.is_served = true;
            } else {
                offered.other_versions.insert(version);
            }
        }
    }
    Ok(found)
}

/// What is known of a kind that a package object asks for, and an administrator's choices. Catalogs
/// that do not answer in time count as away. With a source, only packages from there count.
pub(crate) async fn find_packages(
    hands: &Hands,
    kind: &KindReference,
    source: Option<&str>,
) -> Result<(KindPins, Option<KindSources>), cluster::Error> {
    let pins = read_pins(hands).await?;
    let served = served_kinds(hands, kind).await?;
    if served.values().any(|one| one.is_served) {
        return Ok((pins, Some(KindSources { kinds: served, ..KindSources::default() })));
    }
    let keychain = access(hands, &[]).await?.keychain;
    let catalogs = choose_catalogs(&hands.settings.catalogs, source);
    let asked = ask_catalogs(&hands.fetch, &keychain, &catalogs, kind, served.clone());
    let mut found = tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| {
        let silent = Some("it has not answered yet".to_owned());
        KindSources { kinds: served, silent, ..KindSources::default() }
    });
    if let Some(source) = source {
        let begin = format!("{source}/");
        for offered in found.kinds.values_mut() {
            offered.candidates.retain(|one| one.repository.starts_with(&begin));
        }
    }
    Ok((pins, Some(found)))
}

/// The catalogs that know packages of a source: that of its registry, and those that stand in for others.
fn choose_catalogs(known: &[CatalogAddress], source: Option<&str>) -> Vec<CatalogAddress> {
    let Some(source) = source else { return known.to_vec() };
    let registry = source.split('/').next().unwrap_or(source);
    let may_know = |one: &&CatalogAddress| one.stands_in || one.registry == registry;
    let mut chosen: Vec<CatalogAddress> = known.iter().filter(may_know).cloned().collect();
    let is_known = chosen.iter().any(|one| one.registry == registry);
    chosen.extend(CatalogAddress::parse(registry).ok().filter(|_| !is_known));
    chosen
}

/// Asks catalogs in their order, until one knows packages that bring what is meant. One that cannot
/// be asked ends it: those after it have no say while it may have one.
pub(crate) async fn ask_catalogs(
    fetch: &Fetcher,
    keychain: &Keychain,
    catalogs: &[CatalogAddress],
    kind: &KindReference,
    served: BTreeMap<String, Offered>,
) -> KindSources {
    let names = catalogs.iter().map(|catalog| catalog.registry.clone()).collect();
    let mut sources = KindSources { kinds: served, catalogs: names, ..KindSources::default() };
    for catalog in catalogs {
        let asker = CatalogAsker { fetch, keychain, catalog };
        match asker.ask_for(kind, &mut sources).await {
            Ok(()) => {}
            Err(why) => {
                sources.silent = Some(format!("{}: {why}", catalog.registry));
                break;
            }
        }
        if sources.kinds.values().any(|offered| !offered.candidates.is_empty()) {
            break;
        }
    }
    sources
}

struct CatalogAsker<'a> {
    fetch: &'a Fetcher,
    keychain: &'a Keychain,
    catalog: &'a CatalogAddress,
}

/// A part of a list of kinds.
#[derive(Deserialize)]
struct KindPage {
    items: Vec<KindItem>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct KindItem {
    name: String,
    #[serde(default)]
    installs: bool,
}

/// The packages that bring a kind.
#[derive(Deserialize)]
struct ProposedKind {
    crd: String,
    packages: Vec<ProposedRepository>,
    #[serde(default)]
    suggestions: Vec<String>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct ProposedRepository {
    repository: String,
    #[serde(default)]
    installs: bool,
    versions: Vec<ProposedVersion>,
}

#[derive(Deserialize)]
struct ProposedVersion {
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    versions: Vec<ProposedServing>,
}

#[derive(Deserialize)]
struct ProposedServing {
    name: String,
    #[serde(default)]
    served: bool,
}

impl CatalogAsker<'_> {
    async fn ask_for(&self, kind: &KindReference, sources: &mut KindSources) -> Result<(), String> {
        if kind.name.is_some() {
            return self.read_definers(&kind.bare(), kind, sources).await;
        }
        for crd in self.kinds_of(&kind.group).await? {
            self.read_definers(&crd, kind, sources).await?;
        }
        Ok(())
    }

    /// The kinds of a group that packages install.
    async fn kinds_of(&self, group: &str) -> Result<Vec<String>, String> {
        let first = format!("/api/v1/crds?limit=1000&group={group}");
        let (mut kinds, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..PAGES_MAX {
            let address = match &cursor {
                Some(cursor) => format!("{first}&cursor={}", escape_query(cursor)),
                None => first.clone(),
            };
            let page: KindPage = self.read_answer(&address).await?;
            let own = page.items.into_iter().filter(|item| item.installs).map(|item| item.name);
            kinds.extend(own.filter(|name| is_of_group(name, group)));
            if kinds.len() > KINDS_MAX {
                let advice = "name the kinds that are needed instead of all";
                return Err(format!("there are more than {KINDS_MAX} kinds in {group}; {advice}"));
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        Ok(kinds)
    }

    /// The packages that bring a kind, in the versions that are meant and in others.
    async fn read_definers(
        &self,
        crd: &str,
        kind: &KindReference,
        sources: &mut KindSources,
    ) -> Result<(), String> {
        let mut cursor = None::<String>;
        for _ in 0..PAGES_MAX {
            let more = cursor.as_ref().map(|cursor| format!("?cursor={}", escape_query(cursor)));
            let address = format!("/api/v1/crds/{crd}/packages{}", more.unwrap_or_default());
            let found: ProposedKind = self.read_answer(&address).await?;
            if !is_of_group(&found.crd, &kind.group) {
                return Err(format!("it answers with {:?} to {crd}", found.crd));
            }
            sources.suggestions.extend(found.suggestions);
            for definer in found.packages.into_iter().filter(|definer| definer.installs) {
                let offered = sources.kinds.entry(found.crd.clone()).or_default();
                self.add_candidate(definer, kind, offered);
            }
            cursor = found.next;
            if cursor.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn add_candidate(
        &self,
        definer: ProposedRepository,
        kind: &KindReference,
        offered: &mut Offered,
    ) {
        let mut tags = Vec::new();
        let mut others = BTreeSet::new();
        for version in definer.versions {
            let served = version.versions.iter().filter(|one| one.served);
            if served.clone().any(|one| kind.accepts_version(&one.name)) {
                tags.extend(version.tags);
            } else {
                others.extend(served.map(|one| one.name.clone()));
            }
        }
        offered.other_versions.extend(others);
        // What has no tag is nobody's release.
        if !tags.is_empty() {
            let repository = self.catalog.full_name(&definer.repository);
            let catalog = self.catalog.registry.clone();
            offered.candidates.push(KindCandidate { repository, tags, catalog });
        }
    }

    async fn read_answer<T: DeserializeOwned>(&self, address: &str) -> Result<T, String> {
        let place = format!("{}/catalog", self.catalog.registry);
        let place = Repository::parse(&place, &Rules::strict()).map_err(|it| it.to_string())?;
        let client = self.fetch.client(self.keychain.clone());
        let read = client.read_beside(&place, address, ANSWER_SIZE_MAX).await;
        let read = read.map_err(|error| FetchError::from(error).text())?;
        let bytes = read.ok_or_else(|| {
            "it has no catalog of its packages; name a registry that `apron registry serve` serves"
                .to_owned()
        })?;
        serde_json::from_slice(&bytes)
            .map_err(|error| format!("its answer cannot be read: {error}"))
    }
}

fn is_of_group(crd: &str, group: &str) -> bool {
    crd.split_once('.').is_some_and(|(_, it)| it == group)
}

/// A text as part of a query.
fn escape_query(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escaped = |byte: u8| match byte {
        byte if is_plain(byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalog_is_named_by_its_registry_or_its_url() {
        for text in ["r.example.org", "https://r.example.org/", "http://r.example.org"] {
            assert_eq!(CatalogAddress::parse(text).unwrap().registry, "r.example.org", "{text}");
        }
        assert_eq!(CatalogAddress::parse("127.0.0.1:5000").unwrap().registry, "127.0.0.1:5000");
        for text in ["", "https://", "r.example.org/path", "catalog", "ftp://r.example.org"] {
            assert!(CatalogAddress::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn packages_of_a_source_are_asked_for_in_its_registry() {
        let of = |text: &str| CatalogAddress::parse(text).unwrap();
        let near = CatalogAddress { stands_in: true, ..of("127.0.0.1:5000") };
        let known = [near.clone(), of("r.example.org")];
        assert_eq!(choose_catalogs(&known, None), known);
        assert_eq!(choose_catalogs(&known, Some("r.example.org/team")), known);
        let other = of("other.example.org");
        assert_eq!(choose_catalogs(&known, Some("other.example.org")), [near, other]);
    }

    #[test]
    fn repositories_are_those_of_the_registry_unless_it_stands_in_for_others() {
        let mut catalog = CatalogAddress::parse("127.0.0.1:5000").unwrap();
        let names = ["team/p", "r.example.org/team/p", "dotted.name"];
        let told = |catalog: &CatalogAddress| names.map(|name| catalog.full_name(name));
        assert_eq!(told(&catalog), names.map(|name| format!("127.0.0.1:5000/{name}")),);
        catalog.stands_in = true;
        let own = |name: &str| format!("127.0.0.1:5000/{name}");
        assert_eq!(told(&catalog), [own(names[0]), names[1].to_owned(), own(names[2])]);
    }
}
