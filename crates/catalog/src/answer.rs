//! Answers, as they go over the wire.

use crate::record::{Definition, Dependency, Origin, Package, ServedVersion};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    /// What is on this page.
    pub items: Vec<T>,
    /// What to ask for the next one with; nothing if this is the last.
    pub next: Option<String>,
}

/// A kind, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KindSummary {
    /// What the newest package says of it.
    #[serde(flatten)]
    pub definition: Definition,
    /// Whether installing a package brings it.
    pub installs: bool,
    /// The repositories whose packages bring it.
    pub packages: Vec<String>,
}

/// Which packages bring a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definers {
    /// `plural.group`, or what was asked for if no package defines it.
    pub crd: String,
    /// The group.
    pub group: String,
    /// The kind, if it is defined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The scope, if it is defined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The version that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Repositories whose packages bring it, by name.
    pub packages: Vec<Definer>,
    /// Whether several of them would, once installed: a person has to choose.
    pub ambiguous: bool,
    /// Kinds that may be meant, if no package defines this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
    /// What to ask for more with.
    pub next: Option<String>,
}

/// A repository whose packages bring a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definer {
    /// The repository.
    pub repository: String,
    /// The type of package.
    #[serde(rename = "type")]
    pub kind: String,
    /// The `apiVersion` of its metadata: that of the first format is not installed as its type says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dialect: String,
    /// How far its rights reach, if it is a package of the first format and says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_scope: Option<String>,
    /// What kind of document brings it.
    pub origin: Origin,
    /// Whether installing it brings the kind.
    pub installs: bool,
    /// The versions that do, newest first.
    pub versions: Vec<DefiningVersion>,
}

/// A version of a package that brings a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DefiningVersion {
    /// Its tags, newest version first.
    pub tags: Vec<String>,
    /// Its address.
    pub digest: String,
    /// The versions of the kind that it has.
    pub versions: Vec<ServedVersion>,
    /// Whether the kind has to be activated after the installation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_activation: bool,
}

/// A package, as lists show it: its newest version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageSummary {
    /// The repository.
    pub repository: String,
    /// The newest version.
    pub newest: VersionSummary,
    /// How many versions there are.
    pub versions: usize,
}

/// How far a version is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is a package, and was read.
    Read,
    /// It will be read in a moment.
    Waiting,
    /// A part of it is not there.
    Incomplete,
    /// It cannot be read.
    Broken,
}

/// A version of a package, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionSummary {
    /// Its address.
    pub digest: String,
    /// Its tags, newest version first.
    pub tags: Vec<String>,
    /// How far it is known.
    pub state: State,
    /// Why it is not a package that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it says; empty if it was not read.
    #[serde(flatten)]
    pub package: Package,
    /// How many kinds it brings.
    pub kinds: usize,
}

/// Everything about a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionDetail {
    /// The repository.
    pub repository: String,
    /// What lists show.
    #[serde(flatten)]
    pub summary: VersionSummary,
    /// A longer text, in Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readme: Option<String>,
    /// A picture, as an address with the data in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
}

/// A package that needs another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependent {
    /// The repository of the one that needs it.
    pub repository: String,
    /// That version's address.
    pub digest: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// How it says so.
    pub dependency: Dependency,
}

/// Something that is kept beside a version, as cosign does: a signature, an attestation, an SBOM. That it
/// is there says nothing of what it is worth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionSeal {
    /// `signature`, `attestation` or `sbom`.
    pub kind: String,
    /// The tag it is under.
    pub tag: String,
    /// Its address.
    pub digest: String,
}

/// What is found by some words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// Packages, best first.
    pub packages: Vec<PackageSummary>,
    /// Kinds, best first.
    pub crds: Vec<KindSummary>,
    /// Fields whose path ends with what was looked for, by kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldMatch>,
    /// Kinds that may be meant, if there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
}

/// Which packages a kind, or all kinds of a group, can be had from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resolution {
    /// What was asked for; the name of a single kind is its CRD's.
    pub crd: String,
    /// How it ended.
    pub verdict: ResolutionVerdict,
    /// The CRDs that are meant, by name.
    pub kinds: Vec<String>,
    /// Packages to install, by repository: with [`ResolutionVerdict::Resolved`] all of them, with
    /// [`ResolutionVerdict::Ambiguous`] those that a person has to choose from.
    pub candidates: Vec<Candidate>,
    /// The CRDs that several candidates bring.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contested: Vec<String>,
    /// Versions that were not considered, and why; a few of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<RejectedVersion>,
    /// Kinds that may be meant, if no package defines this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
}

/// How the search for packages that bring a kind ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResolutionVerdict {
    /// One package brings it; or, of a group, each kind is brought by one package.
    Resolved,
    /// Several packages bring the same kind.
    Ambiguous,
    /// It is defined, and no version of a package that could be installed serves it.
    Unserved,
    /// No package defines it.
    Undefined,
}

/// A package that brings what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// The repository, without the registry.
    pub repository: String,
    /// The type of package.
    #[serde(rename = "type")]
    pub kind: String,
    /// The CRDs that its newest version brings.
    pub kinds: Vec<String>,
    /// The versions that bring all of those, newest first.
    pub versions: Vec<CandidateVersion>,
}

/// A version of a package that may be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CandidateVersion {
    /// The tag, which is a version.
    pub tag: String,
    /// What it means.
    pub digest: String,
    /// The constraint on Crossplane's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crossplane: Option<String>,
    /// Whether a kind has to be activated after the installation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_activation: bool,
    /// The digests of the schemas of the version that was asked for, by CRD.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub schemas: BTreeMap<String, String>,
}

/// A version of a package that defines a kind and may not be chosen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RejectedVersion {
    /// The repository.
    pub repository: String,
    /// Its best tag, or its digest.
    pub version: String,
    /// Why it may not be chosen.
    pub reason: String,
}

/// A field of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldMatch {
    /// `plural.group`.
    pub crd: String,
    /// The kind.
    pub kind: String,
    /// The version whose schema has it.
    pub version: String,
    /// Where it is: `spec.forProvider.region`.
    pub path: String,
    /// The type of its value.
    #[serde(rename = "type")]
    pub kind_of_value: String,
    /// What it says about itself, shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Something that packages have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Facet {
    /// `type`, `group`, `category`, `keyword`, `license` or `capability`.
    pub name: String,
    /// What there is of it, most packages first.
    pub values: Vec<FacetValue>,
}

/// One value of a facet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FacetValue {
    /// The value.
    pub value: String,
    /// How many packages have it.
    pub packages: usize,
}

/// An API group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupSummary {
    /// The group.
    pub group: String,
    /// How many kinds it has.
    pub kinds: usize,
    /// The repositories whose packages bring some of them, by name.
    pub packages: Vec<String>,
}

/// Packages, and which of them need which.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DependencyGraph {
    /// The repository it begins with.
    pub root: String,
    /// The packages, by repository.
    pub nodes: Vec<GraphNode>,
    /// What they need.
    pub edges: Vec<GraphEdge>,
}

/// A package in a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphNode {
    /// The repository; as written in the dependency if this catalog does not have it. For a kind that is
    /// needed, `crd:` and its name.
    pub repository: String,
    /// The type of package; empty if it is not known. `CustomResourceDefinition` for a kind.
    #[serde(rename = "type")]
    pub kind: String,
    /// The best tag of the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The address of the version; nothing if this catalog has none that will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// A dependency in a graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphEdge {
    /// The repository of the package that needs the other.
    pub from: String,
    /// The other.
    pub to: String,
    /// The versions that will do, as written; from a kind, the newest that brings it.
    pub constraint: String,
}
