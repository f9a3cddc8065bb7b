//! `inspect`: what is in a package.

mod show;

use super::build::read_files;
use crate::args::registry::RegistryArguments;
use crate::directory::{Directory, Selecting, examples_below};
use crate::failure::Outcome;
use crate::output;
use crate::place::{self, Located, Place};
use crate::settings::Settings;
use api::meta::{Meta, PermissionRequest, TargetKind};
use oci::{Descriptor, Identifier, Manifest, Platform, Raw};
use serde::Serialize;
use std::path::Path;
use xpkg::diagnostic::{Diagnostic, Severity};
use xpkg::lint::DocumentReport;
use xpkg::locate;
use xpkg::source::Sources;

/// What to show, and how.
pub(crate) struct Request {
    pub(crate) package: String,
    pub(crate) format: Format,
    pub(crate) all: bool,
    pub(crate) platform: Option<Platform>,
    pub(crate) registry: RegistryArguments,
}

/// The form of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Format {
    /// Sections of columns
    #[default]
    Table,
    /// The package and what is in it, as branches
    Tree,
    /// JSON for programs
    Json,
    /// The same as YAML
    Yaml,
}

/// Everything there is to say about a package.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inspection {
    /// What was looked at.
    source: String,
    package: Option<PackageFacts>,
    dependencies: Vec<DependencyFacts>,
    objects: Vec<ObjectFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<ImageFacts>,
    /// Bytes of package.yaml.
    stream_size: u64,
    errors: usize,
    warnings: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PackageFacts {
    api_version: String,
    kind: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    crossplane: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maintainer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    license: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    readme: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    controller_image: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    capabilities: Vec<String>,
    /// Rights asked for beyond those on its own resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    permission_requests: Vec<PermissionFacts>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PermissionFacts {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    api_groups: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    non_resource_urls: Vec<String>,
    verbs: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DependencyFacts {
    kind: String,
    package: String,
    version: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectFacts {
    api_version: String,
    kind: String,
    name: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ImageFacts {
    /// What the name stands for.
    digest: String,
    media_type: String,
    /// The image the package was read from, when the name stands for several.
    #[serde(skip_serializing_if = "Option::is_none")]
    image_digest: Option<String>,
    /// The platforms there are, when there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    platforms: Vec<String>,
    /// Bytes of all layers of the image.
    size: u64,
    layers: Vec<LayerFacts>,
    /// Content for other readers beside the package.
    #[serde(skip_serializing_if = "Option::is_none")]
    extensions: Option<ExtensionFacts>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExtensionFacts {
    digest: String,
    layers: Vec<LayerFacts>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LayerFacts {
    digest: String,
    media_type: String,
    size: u64,
    /// What the layer is for, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
}

/// Shows a package.
pub(crate) fn run(request: &Request, settings: &Settings) -> Outcome {
    let place = Place::parse(&request.package, &request.registry)?;
    let inspection = match &place {
        Place::Directory(path) => inspect_directory(path)?,
        other => inspect_image(other, request, settings)?,
    };
    match request.format {
        Format::Json => output::print_json(&inspection),
        Format::Yaml => output::print_yaml(&inspection),
        Format::Table => {
            show::table(&inspection, request.all);
            Ok(())
        }
        Format::Tree => {
            show::tree(&inspection, request.all);
            Ok(())
        }
    }
}

fn inspect_directory(root: &Path) -> Outcome<Inspection> {
    let directory = Directory::walk(root, examples_below(root).as_deref(), &Selecting::default())?;
    let files = read_files(&directory.files, |path| directory.read(path))?;
    let examples = read_files(&directory.examples, |path| directory.read_example(path))?;
    let (plan, findings) = xpkg::build::plan(&Sources {
        files: &files,
        examples: &examples,
        skipped: &directory.skipped,
        metadata: None,
    });
    let documents = files.into_iter().flat_map(|file| file.documents);
    let reports: Vec<DocumentReport> = documents.map(|document| document.report).collect();
    let size = plan.map_or(0, |plan| plan.package.size());
    Ok(Inspection::new(root.display().to_string(), &reports, &findings, size))
}

fn inspect_image(place: &Place, request: &Request, settings: &Settings) -> Outcome<Inspection> {
    let (name, located, extensions) = crate::block_on(async {
        let opened = place::open(place, &request.registry, settings).await?;
        let located = place::locate(&opened, request.platform.as_ref(), settings).await?;
        let extensions = match extension(&located) {
            Some(id) => Some(place::fetch_manifest(&opened, &id).await?),
            None => None,
        };
        Ok((opened.name, located, extensions))
    })?;
    let limits = xpkg::Limits::default();
    let opened = xpkg::open::package_yaml(&located.layers, &limits)
        .and_then(|reader| xpkg::open::read(reader, &limits))
        .map_err(|error| place::unreadable(&name, &error))?;
    let mut inspection = Inspection::new(name, &opened.reports, &opened.diagnostics, opened.size);
    let extensions = extensions.as_ref().map(ExtensionFacts::new);
    inspection.image = Some(ImageFacts { extensions, ..ImageFacts::new(&located) });
    Ok(inspection)
}

/// The child of an index that holds content for other readers.
fn extension(located: &Located) -> Option<Identifier> {
    let children = &located.root.index()?.manifests;
    let child = children.iter().find(|child| locate::is_extension(child))?;
    Some(Identifier::Digest(child.digest.clone()))
}

impl Inspection {
    fn new(
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
            dependencies: meta.map(dependencies).unwrap_or_default(),
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
    fn objects(&self) -> String {
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

fn dependencies(meta: &Meta) -> Vec<DependencyFacts> {
    let facts = |dependency: &api::meta::Dependency| {
        let (kind, package) = match &dependency.target {
            Some(target) => (kind_name(&target.kind), target.package.clone()),
            None => ("?".to_owned(), "?".to_owned()),
        };
        DependencyFacts { kind, package, version: dependency.version.clone() }
    };
    meta.dependencies().iter().map(facts).collect()
}

/// What a dependency on a kind is shown as, whichever way it is written.
const DEFINITION: &str = "CustomResourceDefinition";

fn kind_name(kind: &TargetKind) -> String {
    match kind {
        TargetKind::Explicit { kind, .. } => kind.clone(),
        TargetKind::Key(kind) => kind.as_str().to_owned(),
        TargetKind::Crd => DEFINITION.to_owned(),
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
    fn new(located: &Located) -> Self {
        let platforms = located.root.index().map(|index| {
            let platforms = index.manifests.iter().filter_map(|child| child.platform.as_ref());
            platforms.map(ToString::to_string).collect()
        });
        let several = located.image.digest != located.root.digest;
        let layers: &[Descriptor] =
            located.image.manifest().map_or(&[], |manifest: &Manifest| &manifest.layers);
        Self {
            digest: located.root.digest.to_string(),
            media_type: located.root.media_type.to_string(),
            image_digest: several.then(|| located.image.digest.to_string()),
            platforms: platforms.unwrap_or_default(),
            size: layers.iter().map(|layer| layer.size).sum(),
            layers: layers.iter().map(LayerFacts::new).collect(),
            extensions: None,
        }
    }
}

impl ExtensionFacts {
    fn new(raw: &Raw) -> Self {
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
