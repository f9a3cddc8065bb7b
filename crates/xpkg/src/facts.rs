//! What a package is, as programs and people are told.
//!
//! Everything is a plain value with a name for each fact; the shell prints it as a table, a tree,
//! JSON or YAML.

use crate::diagnostic::{Diagnostic, Severity};
use crate::lint::DocumentReport;
use crate::locate;
use api::meta::{Meta, PermissionRequest, TargetKind};
use oci::{Descriptor, Manifest, Raw};
use serde::Serialize;

/// Everything there is to say about a package.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// What was looked at.
    pub source: String,
    /// What its metadata says, if that can be read; or which package is meant.
    pub package: Option<PackageFacts>,
    /// What it depends on.
    pub dependencies: Vec<DependencyFacts>,
    /// Its objects.
    pub objects: Vec<ObjectFacts>,
    /// The image, if it is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageFacts>,
    /// Bytes of package.yaml.
    pub stream_size: u64,
    /// Errors that the check found.
    pub errors: usize,
    /// Warnings that the check found.
    pub warnings: usize,
}

/// What its metadata says.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageFacts {
    /// The version of its format.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The constraint on Crossplane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crossplane: Option<String>,
    /// A short description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The person or team behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintainer: Option<String>,
    /// Where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Its licence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// A long description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readme: Option<String>,
    /// The image that runs it, if it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller_image: Option<String>,
    /// What it says it can do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// Rights asked for beyond those on its own resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permission_requests: Vec<PermissionFacts>,
}

/// One right that it asks for.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionFacts {
    /// API groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// Resources of those groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// The only objects meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Paths that are no resources.
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
    /// What may be done.
    pub verbs: Vec<String>,
}

/// One package that it depends on.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DependencyFacts {
    /// Its kind.
    pub kind: String,
    /// What its metadata says, if that can be read; or which package is meant.
    pub package: String,
    /// The versions that will do.
    pub version: String,
}

/// One object in it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectFacts {
    /// The version of its format.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// The image it is in.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageFacts {
    /// What the name stands for.
    pub digest: String,
    /// The media type.
    pub media_type: String,
    /// The image the package was read from, when the name stands for several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_digest: Option<String>,
    /// The platforms there are, when there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<String>,
    /// Bytes of all layers of the image.
    pub size: u64,
    /// The layers, lowest first.
    pub layers: Vec<LayerFacts>,
    /// Content for other readers beside the package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<ExtensionFacts>,
}

/// Content for other readers.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionFacts {
    /// The digest.
    pub digest: String,
    /// The layers, lowest first.
    pub layers: Vec<LayerFacts>,
}

/// One layer of an image.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LayerFacts {
    /// The digest.
    pub digest: String,
    /// The media type.
    pub media_type: String,
    /// Bytes.
    pub size: u64,
    /// What the layer is for, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

impl Inspection {
    /// What can be said of a package that was read.
    pub fn new(
        source: String,
        reports: &[DocumentReport],
        findings: &[Diagnostic],
        stream_size: u64,
    ) -> Self {
        let meta = reports.iter().find_map(|report| report.meta.as_ref());
        let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
        let objects = reports.iter().filter(|report| !report.is_metadata);
        Self {
            source,
            package: meta.map(PackageFacts::new),
            dependencies: meta.map(list_dependencies).unwrap_or_default(),
            objects: objects.map(ObjectFacts::new).collect(),
            image: None,
            stream_size,
            errors,
            warnings: findings.len() - errors,
        }
    }
}

impl PackageFacts {
    fn new(meta: &Meta) -> Self {
        let text = |value: Option<&str>| value.map(|value| value.trim().to_owned());
        Self {
            api_version: meta.dialect().api_version().to_owned(),
            kind: meta.kind().as_str().to_owned(),
            name: meta.name().to_owned(),
            crossplane: text(meta.crossplane()),
            description: text(meta.description()),
            maintainer: text(meta.maintainer()),
            source: text(meta.source()),
            license: text(meta.license()),
            readme: text(meta.readme()),
            controller_image: text(meta.image()),
            capabilities: meta.capabilities().unwrap_or_default().to_vec(),
            permission_requests: meta
                .permission_requests()
                .iter()
                .map(PermissionFacts::new)
                .collect(),
        }
    }
}

impl PermissionFacts {
    fn new(request: &PermissionRequest) -> Self {
        let PermissionRequest { api_groups, resources, resource_names, non_resource_urls, verbs } =
            request.clone();
        Self { api_groups, resources, resource_names, non_resource_urls, verbs }
    }

    /// On what, as people write it: `pods.apps`, or a path.
    pub fn name_objects(&self) -> String {
        let group = |group: &String| match group.as_str() {
            "" => String::new(),
            group => format!(".{group}"),
        };
        let of_groups = self.resources.iter().flat_map(|resource| {
            self.api_groups.iter().map(move |name| format!("{resource}{}", group(name)))
        });
        let all: Vec<String> = of_groups.chain(self.non_resource_urls.iter().cloned()).collect();
        let names = match self.resource_names.as_slice() {
            [] => String::new(),
            names => format!(" ({})", names.join(", ")),
        };
        format!("{}{names}", all.join(", "))
    }
}

fn list_dependencies(meta: &Meta) -> Vec<DependencyFacts> {
    let facts = |dependency: &api::meta::Dependency| {
        let (kind, package) = match &dependency.target {
            Some(target) => (kind_name(&target.kind), target.package.clone()),
            None => ("?".to_owned(), "?".to_owned()),
        };
        DependencyFacts { kind, package, version: dependency.version.clone() }
    };
    meta.dependencies().iter().map(facts).collect()
}

fn kind_name(kind: &TargetKind) -> String {
    match kind {
        TargetKind::Explicit { kind, .. } => kind.clone(),
        TargetKind::Key(kind) => kind.as_str().to_owned(),
        TargetKind::Crd => "CustomResourceDefinition".to_owned(),
    }
}

impl ObjectFacts {
    fn new(report: &DocumentReport) -> Self {
        Self {
            api_version: report.identity.api_version.clone(),
            kind: report.identity.kind.clone(),
            name: report.identity.name.clone(),
        }
    }
}

impl ImageFacts {
    /// The image that a package was read from, and what its name stands for.
    pub fn new(root: &Raw, image: &Raw) -> Self {
        let platforms = root.index().map(|index| {
            let platforms = index.manifests.iter().filter_map(|child| child.platform.as_ref());
            platforms.map(ToString::to_string).collect()
        });
        let several = image.digest != root.digest;
        let layers: &[Descriptor] =
            image.manifest().map_or(&[], |manifest: &Manifest| &manifest.layers);
        Self {
            digest: root.digest.to_string(),
            media_type: root.media_type.to_string(),
            image_digest: several.then(|| image.digest.to_string()),
            platforms: platforms.unwrap_or_default(),
            size: layers.iter().map(|layer| layer.size).sum(),
            layers: layers.iter().map(LayerFacts::new).collect(),
            extensions: None,
        }
    }
}

impl ExtensionFacts {
    /// What lies beside a package.
    pub fn new(raw: &Raw) -> Self {
        let layers = raw.manifest().map_or(&[][..], |manifest| &manifest.layers);
        Self {
            digest: raw.digest.to_string(),
            layers: layers.iter().map(LayerFacts::new).collect(),
        }
    }
}

impl LayerFacts {
    fn new(layer: &Descriptor) -> Self {
        Self {
            digest: layer.digest.to_string(),
            media_type: layer.media_type.to_string(),
            size: layer.size,
            role: layer.annotations.get(locate::ANNOTATION).cloned(),
        }
    }
}
