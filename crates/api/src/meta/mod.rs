//! Package metadata: what a `crossplane.yaml` says, whichever dialect it was written in.
//!
//! [`Meta`] is a checked view over the document: reading it verifies every known field's type
//! once, so the accessors cannot fail; the document itself stays inside, so nothing is lost.
//! A `Meta` is immutable; to change metadata, change the document and read it again.
//!
//! - [`dialect`]: which `apiVersion` and `kind` pairs exist, and what they are called here.
//! - [`dependency`]: the entries of `dependsOn` and the precedence between their keys.
//! - [`fields`]: the fields each dialect knows, so that misspelt ones can be pointed out.
//! - `convert`: any dialect to `meta.pkg.crossplane.io/v1`.

pub mod capability;
mod convert;
mod cursor;
pub mod dependency;
pub mod dialect;
pub mod fields;
pub mod path;
#[cfg(test)]
mod tests;

pub use dependency::{Dependency, Target, TargetKind};
pub use dialect::{Dialect, PackageKind, is_meta_group, registered};
pub use path::FieldPath;

use cursor::Cursor;
use serde_json::Value as Json;

/// A package's metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta {
    kind: PackageKind,
    dialect: Dialect,
    name: String,
    annotations: Vec<(String, String)>,
    labels: Vec<(String, String)>,
    crossplane: Option<String>,
    dependencies: Vec<Dependency>,
    capabilities: Option<Vec<String>>,
    image: Option<String>,
    permission_requests: Vec<PermissionRequest>,
    document: Json,
}

/// Rights a provider asks for beyond those on its own resources: one RBAC rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PermissionRequest {
    /// API groups the rule is about.
    pub api_groups: Vec<String>,
    /// Resources of those groups.
    pub resources: Vec<String>,
    /// The only object names the rule is about; any when empty.
    pub resource_names: Vec<String>,
    /// URL paths that are no resources.
    pub non_resource_urls: Vec<String>,
    /// What may be done.
    pub verbs: Vec<String>,
}

/// Why a document cannot be read as package metadata.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetaError {
    /// A field has a type it cannot have.
    #[error("{path} must be {expected}, not {found}")]
    WrongType {
        /// The field, e.g. `spec.dependsOn[2].version`.
        path: FieldPath,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// The `apiVersion` and `kind` name no metadata dialect.
    #[error("{kind} in {api_version} is not a kind of package metadata")]
    Unregistered {
        /// The version asked for.
        api_version: String,
        /// The kind asked for.
        kind: String,
    },
}

impl Meta {
    /// Reads metadata from a document.
    pub fn from_json(document: &Json) -> Result<Self, MetaError> {
        let root = Cursor::root(document)?;
        let api_version = root.field("apiVersion")?.text()?.unwrap_or_default();
        let kind = root.field("kind")?.text()?.unwrap_or_default();
        let Some((dialect, kind)) = registered(api_version, kind) else {
            let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
            return Err(MetaError::Unregistered { api_version, kind });
        };
        let metadata = root.field("metadata")?;
        let spec = root.field("spec")?;
        let dependencies = spec.field("dependsOn")?.items()?;
        Ok(Self {
            kind,
            dialect,
            name: metadata.field("name")?.text()?.unwrap_or_default().to_owned(),
            annotations: metadata.field("annotations")?.text_entries()?,
            labels: metadata.field("labels")?.text_entries()?,
            crossplane: crossplane(&spec, dialect)?,
            dependencies: dependencies
                .iter()
                .map(|entry| Dependency::read(entry, dialect))
                .collect::<Result<_, _>>()?,
            capabilities: spec.field("capabilities")?.texts()?,
            image: image(&spec, kind)?,
            permission_requests: permission_requests(&spec, dialect)?,
            document: document.clone(),
        })
    }

    /// The document, exactly as it came in.
    pub fn to_json(&self) -> Json {
        self.document.clone()
    }

    /// The same metadata in `meta.pkg.crossplane.io/v1`, with nothing lost.
    pub fn to_v1(&self) -> Json {
        convert::to_v1(&self.document, self.dialect)
    }

    /// What kind of package this is.
    pub fn kind(&self) -> PackageKind {
        self.kind
    }

    /// The dialect it is written in.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The package's name; empty when missing.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The annotations, in the order written.
    pub fn annotations(&self) -> &[(String, String)] {
        &self.annotations
    }

    /// The labels, in the order written.
    pub fn labels(&self) -> &[(String, String)] {
        &self.labels
    }

    /// The constraint on Crossplane's own version, as text, when there is one.
    ///
    /// An empty text means the field was there and said nothing, which is a fault; `None` means
    /// that any version will do.
    pub fn crossplane(&self) -> Option<&str> {
        self.crossplane.as_deref()
    }

    /// The packages this one depends on.
    pub fn dependencies(&self) -> &[Dependency] {
        &self.dependencies
    }

    /// The declared capabilities; `None` when the field is missing, which is not the same as an
    /// empty list.
    pub fn capabilities(&self) -> Option<&[String]> {
        self.capabilities.as_deref()
    }

    /// Whether the package has a capability, compared loosely; a function that declares none is
    /// taken to compose.
    pub fn has_capability(&self, wanted: &str) -> bool {
        match &self.capabilities {
            Some(declared) => declared.iter().any(|one| capability::matches(one, wanted)),
            None if self.kind == PackageKind::Function => {
                capability::matches(capability::COMPOSITION, wanted)
            }
            None => false,
        }
    }

    /// The controller or function image that older packages name apart from the package itself.
    pub fn image(&self) -> Option<&str> {
        self.image.as_deref()
    }

    /// The extra rights the package asks for, from whichever place its dialect keeps them.
    pub fn permission_requests(&self) -> &[PermissionRequest] {
        &self.permission_requests
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        let found = self.annotations.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    }

    /// The maintainers.
    pub fn maintainer(&self) -> Option<&str> {
        self.described("meta.crossplane.io/maintainer", "maintainer")
    }

    /// Where the source is.
    pub fn source(&self) -> Option<&str> {
        self.described("meta.crossplane.io/source", "source")
    }

    /// The licence, by its SPDX identifier.
    pub fn license(&self) -> Option<&str> {
        self.described("meta.crossplane.io/license", "license")
    }

    /// One sentence about the package.
    pub fn description(&self) -> Option<&str> {
        self.described("meta.crossplane.io/description", "description")
    }

    /// A longer text about the package.
    pub fn readme(&self) -> Option<&str> {
        self.described("meta.crossplane.io/readme", "readme")
    }

    /// The specified annotation is honoured over the bare one of the first format.
    fn described(&self, specified: &str, bare: &str) -> Option<&str> {
        self.annotation(specified).or_else(|| self.annotation(bare))
    }
}

/// The first dialect wrote the constraint as a string; all others nest it.
fn crossplane(spec: &Cursor<'_>, dialect: Dialect) -> Result<Option<String>, MetaError> {
    let field = spec.field("crossplane")?;
    if dialect == Dialect::First && field.is_text() {
        return Ok(field.text()?.map(str::to_owned));
    }
    if field.is_absent() {
        return Ok(None);
    }
    let version = field.field("version")?.text()?;
    Ok(Some(version.unwrap_or_default().to_owned()))
}

fn image(spec: &Cursor<'_>, kind: PackageKind) -> Result<Option<String>, MetaError> {
    let holder = match kind {
        PackageKind::Provider => spec.field("controller")?.field("image")?,
        PackageKind::Function => spec.field("image")?,
        PackageKind::Configuration => return Ok(None),
    };
    Ok(holder.text()?.map(str::to_owned))
}

fn permission_requests(
    spec: &Cursor<'_>,
    dialect: Dialect,
) -> Result<Vec<PermissionRequest>, MetaError> {
    let mut rules = spec.field("controller")?.field("permissionRequests")?.items()?;
    if dialect == Dialect::First {
        rules.extend(spec.field("permissionRequests")?.items()?);
    }
    rules.iter().map(PermissionRequest::read).collect()
}

impl PermissionRequest {
    /// Everything that can be asked for.
    pub fn everything() -> Self {
        let all = || vec!["*".to_owned()];
        Self {
            api_groups: all(),
            resources: all(),
            resource_names: Vec::new(),
            non_resource_urls: all(),
            verbs: all(),
        }
    }

    /// Reads a rule as roles write it.
    pub fn from_json(rule: &Json) -> Result<Self, MetaError> {
        Self::read(&Cursor::root(rule)?)
    }

    fn read(rule: &Cursor<'_>) -> Result<Self, MetaError> {
        let list =
            |key| -> Result<_, MetaError> { Ok(rule.field(key)?.texts()?.unwrap_or_default()) };
        Ok(Self {
            api_groups: list("apiGroups")?,
            resources: list("resources")?,
            resource_names: list("resourceNames")?,
            non_resource_urls: list("nonResourceURLs")?,
            verbs: list("verbs")?,
        })
    }
}
