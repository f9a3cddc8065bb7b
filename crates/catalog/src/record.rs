//! What a manifest turned out to be, as plain values.

use crate::grammar::KindReference;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// What was found where a manifest led.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A package.
    Package(Box<Package>),
    /// A package that cannot be read, or should not be, and why.
    Broken(String),
    /// Something else: an ordinary image, a signature.
    Other,
}

/// What a package says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Package {
    /// `Provider`, `Configuration` or `Function`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The `apiVersion` of its metadata.
    pub dialect: String,
    /// The name in its metadata.
    pub name: String,
    /// The constraint on Crossplane's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crossplane: Option<String>,
    /// One sentence about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The licence, by its SPDX identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// Where the source is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The maintainers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintainer: Option<String>,
    /// A category, as its author calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// The capabilities it declares.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// How far its rights reach, if it is a package of the first format and says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_scope: Option<String>,
    /// What it needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Dependency>,
    /// Rights it asks for beyond those on its own kinds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<Permission>,
    /// What its images run on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<String>,
    /// Bytes of all layers of the image it was read from.
    pub size: u64,
    /// Those layers, in their order; of very many only the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<ImageLayer>,
    /// What the manifest of that image says beside.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// When that image was made, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The first thing that keeps it from being installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// A longer text, in Markdown.
    #[serde(skip)]
    pub readme: Option<String>,
    /// A picture, as an address with the data in it.
    #[serde(skip)]
    pub icon: Option<String>,
    /// The kinds it brings, in order of their names.
    #[serde(skip)]
    pub definitions: Vec<Definition>,
    /// The schemas of those, each once.
    #[serde(skip)]
    pub schemas: Vec<Schema>,
    /// The documents that define those, by the name of the kind.
    #[serde(skip)]
    pub documents: BTreeMap<String, KindDocument>,
    /// Objects that define nothing.
    #[serde(skip)]
    pub objects: Vec<PlainObject>,
    /// The metadata, as JSON without the readme and the icon.
    #[serde(skip)]
    pub metadata: Option<Json>,
}

/// A layer of the image that a package is read from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageLayer {
    /// The address of its bytes.
    pub digest: String,
    /// How many those are.
    pub size: u64,
    /// What they are said to be.
    pub media_type: String,
    /// What the manifest says of it beside.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// Something a package needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependency {
    /// The type of package; empty if it does not say. `CustomResourceDefinition` where a kind is needed.
    #[serde(rename = "type")]
    pub kind: String,
    /// The repository, or the kind, as written.
    pub package: String,
    /// The versions that will do, as written.
    pub version: String,
}

/// One rule of rights that are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Permission {
    /// API groups.
    pub api_groups: Vec<String>,
    /// Resources of those.
    pub resources: Vec<String>,
    /// The only names meant; any when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Paths that are no resources.
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
    /// What may be done.
    pub verbs: Vec<String>,
}

/// A kind that a package brings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// `plural.group`.
    pub name: String,
    /// The group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// Its plural.
    pub plural: String,
    /// Its singular.
    pub singular: String,
    /// Shorter names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub short_names: Vec<String>,
    /// `Cluster` or `Namespaced`.
    pub scope: String,
    /// What kind of document brings it.
    pub origin: Origin,
    /// Its versions, in the order written.
    pub versions: Vec<ServedVersion>,
}

/// The document that brings a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A `CustomResourceDefinition`.
    Crd,
    /// A `CompositeResourceDefinition`.
    Xrd,
    /// The claim of one.
    XrdClaim,
    /// A `ManagedResourceDefinition`, which has to be activated.
    Mrd,
    /// A definition in a function: the form of its input, which is never installed.
    FunctionInput,
}

/// A version of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServedVersion {
    /// For example `v1beta1`.
    pub name: String,
    /// Whether it is served.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// Whether its author advises against it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deprecated: bool,
    /// The digest of its schema, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
}

/// A schema by the digest of its canonical JSON, compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The digest.
    pub digest: String,
    /// The canonical JSON in a zlib stream.
    pub compressed: Vec<u8>,
    /// Names of all fields, in lower case, each once.
    pub fields: Vec<String>,
}

/// A document that defines a kind, by the digest of its canonical JSON. Schemas that are kept for
/// themselves are named there by their digests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindDocument {
    /// The digest.
    pub digest: String,
    /// The canonical JSON in a zlib stream.
    pub compressed: Vec<u8>,
}

/// An object of a package that defines no kind: a composition, a webhook.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlainObject {
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The digest of its canonical JSON.
    pub digest: String,
}

impl Schema {
    /// The schema itself.
    pub fn to_json(&self) -> std::io::Result<Json> {
        let bytes = crate::json::decompress(&self.compressed)?;
        serde_json::from_slice(&bytes).map_err(std::io::Error::other)
    }
}

impl Dependency {
    /// The kind that is needed, from any package; nothing where a package is named.
    pub fn needed_kind(&self) -> Option<KindReference> {
        let is_kind = self.kind == "CustomResourceDefinition";
        is_kind.then(|| KindReference::parse(&self.package).ok()).flatten()
    }
}

impl Origin {
    /// Whether installing the package brings the kind into a cluster.
    pub fn installs(self) -> bool {
        self != Self::FunctionInput
    }

    /// Whether the kind has to be activated before it is there.
    pub fn needs_activation(self) -> bool {
        self == Self::Mrd
    }
}

impl Definition {
    /// Whether its kind, plural, singular or a short name is this.
    pub fn is_called(&self, name: &str) -> bool {
        let Self { kind, plural, singular, short_names, .. } = self;
        let mut names = [kind, plural, singular].into_iter().chain(short_names);
        names.any(|known| known.eq_ignore_ascii_case(name))
    }

    /// A version by its name.
    pub fn version(&self, name: &str) -> Option<&ServedVersion> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// Whether some version is served; with a name, whether that one is.
    pub fn serves(&self, wanted: Option<&str>) -> bool {
        let fits = |version: &&ServedVersion| wanted.is_none_or(|name| version.name == name);
        self.versions.iter().filter(fits).any(|version| version.served)
    }
}
