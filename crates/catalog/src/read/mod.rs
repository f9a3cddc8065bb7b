//! From the bytes of an image to what its package says.
//!
//! Everything comes through a [`Store`] whose blobs are verified, and is read within the limits
//! that hold wherever packages are read. What is wrong with the bytes is an [`Outcome::Broken`]
//! and stays so; what is wrong with the place they lie in is an error.

mod definition;
mod metadata;
mod schema;

pub(crate) use schema::{field_names, pack_kind};

use crate::json::canonical;
use crate::record::{
    Definition, ImageLayer, KindDocument, Origin, Outcome, Package, PlainObject, Schema,
};
use definition::Defined;
use oci::layer::LayerSource;
use oci::manifest::Annotations;
use oci::{Descriptor, Digest, Identifier, ImageConfig, Manifest, Raw};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::Path;
use store::{Advice, Store, VerifiedBlob};
use xpkg::diagnostic::Severity;
use xpkg::locate::{self, Contents};
use xpkg::open::OpenError;

/// How deep indexes may be nested.
const NESTING_MAX: usize = 4;
/// No image config needs more.
const CONFIG_SIZE_MAX: u64 = 4 << 20;
/// Layers of an image that does not say which one holds a package are read up to so many bytes:
/// a registry holds ordinary images, too, and those are large.
const UNMARKED_SIZE_MAX: u64 = 64 << 20;
/// Bytes of all schemas of a package, compressed.
const SCHEMAS_SIZE_MAX: usize = 64 << 20;

/// Layers of an image that are told of.
const LAYERS_MAX: usize = 64;
/// Annotations that are told of an image, or of a layer.
const ANNOTATIONS_MAX: usize = 16;
/// The largest annotation that is told, with its name.
const ANNOTATION_SIZE_MAX: usize = 1 << 10;
/// Objects of a package that are kept for comparisons, beside definitions.
const OBJECTS_MAX: usize = 10_000;
/// The longest name of an object, or of its kind, that an API server takes.
const OBJECT_NAME_SIZE_MAX: usize = 253;

/// Why it cannot be told yet what a manifest is.
#[derive(Debug, thiserror::Error)]
pub enum Incomplete {
    /// A part of it is not there; it may come.
    #[error("a part of it is not here yet: {0}")]
    Missing(String),
    /// The place has other bytes under its digest.
    #[error("the place it lies in has other bytes under its digest: {0}")]
    DigestMismatch(String),
    /// The place cannot be read at the moment.
    #[error("it cannot be read at the moment")]
    Store(#[source] Box<store::Error>),
}

/// Either what it is for good, or why that cannot be told.
enum Stop {
    Outcome(Outcome),
    Incomplete(Incomplete),
}

/// Tells what a manifest of a repository is. Layers are spooled into nameless files in `temporary`.
pub async fn read(
    store: &dyn Store,
    digest: &Digest,
    temporary: &Path,
) -> Result<Outcome, Incomplete> {
    match read_package(store, digest, temporary).await {
        Ok(package) => Ok(Outcome::Package(Box::new(package))),
        Err(Stop::Outcome(outcome)) => Ok(outcome),
        Err(Stop::Incomplete(incomplete)) => Err(incomplete),
    }
}

async fn read_package(
    store: &dyn Store,
    digest: &Digest,
    temporary: &Path,
) -> Result<Package, Stop> {
    let root = fetch_manifest(store, digest).await?;
    let image = choose_image(store, &root).await?;
    let Some(manifest) = image.manifest() else { return Err(broken("it lists no image")) };
    if manifest.subject.is_some() {
        return Err(Stop::Outcome(Outcome::Other));
    }
    let contents = locate::locate(manifest).map_err(|error| match error {
        locate::LocateError::BaseDuplicate(_) => broken(error.to_string()),
        _ => Stop::Outcome(Outcome::Other),
    })?;
    let (wanted, is_marked) = match contents {
        Contents::Base(layer) => (vec![layer], true),
        Contents::Flattened(layers) => (layers, false),
    };
    let size = wanted.iter().fold(0_u64, |sum, layer| sum.saturating_add(layer.size));
    if !is_marked && size > UNMARKED_SIZE_MAX {
        return Err(Stop::Outcome(Outcome::Other));
    }
    let limits = xpkg::Limits::default();
    let mut layers = Vec::new();
    for layer in &wanted {
        let limit = limits.layer.compressed_bytes_max;
        let blob = store::fetch_to_file(store, layer, limit, temporary).await;
        layers.push(blob.map_err(|error| judge(error, is_marked))?);
    }
    let config = fetch_config(store, manifest).await?;
    let opened = tokio::task::spawn_blocking(move || open(&Layers(layers), &limits, is_marked));
    let mut package = opened
        .await
        .map_err(|error| Stop::Outcome(Outcome::Broken(format!("reading it broke: {error}"))))??;
    package.platforms = platforms(&root, &config);
    package.layers = manifest.layers.iter().take(LAYERS_MAX).map(describe_layer).collect();
    package.annotations = keep_annotations(&manifest.annotations);
    package.size = manifest.layers.iter().fold(0, |sum, it| sum.saturating_add(it.size));
    package.created = config.created.filter(|text| text.len() < 64 && text != oci::config::EPOCH);
    Ok(package)
}

async fn fetch_manifest(store: &dyn Store, digest: &Digest) -> Result<Raw, Stop> {
    let found = store.manifest(&Identifier::Digest(digest.clone())).await;
    let found = found.map_err(|error| judge(error, true))?;
    found.ok_or_else(|| Stop::Incomplete(Incomplete::Missing(format!("manifest {digest}"))))
}

/// The image that a package is read from, however deep it lies.
async fn choose_image(store: &dyn Store, root: &Raw) -> Result<Raw, Stop> {
    let mut image = root.clone();
    for _ in 0..=NESTING_MAX {
        let Some(index) = image.index() else { return Ok(image) };
        let Ok(child) = locate::choose(index, None) else {
            return Err(Stop::Outcome(Outcome::Other));
        };
        image = fetch_manifest(store, &child.digest).await?;
    }
    Err(broken("its index is nested too deeply"))
}

/// What the config says of the image; one that cannot be read says nothing.
async fn fetch_config(store: &dyn Store, manifest: &Manifest) -> Result<ImageConfig, Stop> {
    match store::fetch_bytes(store, &manifest.config, CONFIG_SIZE_MAX).await {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
        Err(error) => match judge(error, true) {
            Stop::Outcome(_) => Ok(ImageConfig::default()),
            incomplete @ Stop::Incomplete(_) => Err(incomplete),
        },
    }
}

fn describe_layer(layer: &Descriptor) -> ImageLayer {
    ImageLayer {
        digest: layer.digest.to_string(),
        size: layer.size,
        media_type: layer.media_type.to_string(),
        annotations: keep_annotations(&layer.annotations),
    }
}

/// Annotations of an image or a layer as far as people read them.
fn keep_annotations(all: &Annotations) -> BTreeMap<String, String> {
    let is_short =
        |(key, value): &(&String, &String)| key.len() + value.len() <= ANNOTATION_SIZE_MAX;
    let kept = all.iter().filter(is_short).take(ANNOTATIONS_MAX);
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn platforms(root: &Raw, config: &ImageConfig) -> Vec<String> {
    let children = root.index().map(|index| index.manifests.as_slice()).unwrap_or_default();
    let listed = children.iter().filter(|child| locate::is_image(child));
    let mut all: Vec<String> =
        listed.filter_map(|child| child.platform.as_ref()).map(ToString::to_string).collect();
    if all.is_empty() && !config.os.is_empty() {
        all.push(format!("{}/{}", config.os, config.architecture));
    }
    all.sort();
    all.dedup();
    all
}

/// What a failure of a store means: bytes that are wrong are so for good, unless they are not the bytes
/// that were asked for. Those say nothing of the digest, which others may have.
fn judge(error: store::Error, is_marked: bool) -> Stop {
    match (&error, error.advice()) {
        _ if is_digest_mismatch(&error) => {
            Stop::Incomplete(Incomplete::DigestMismatch(chain(&error)))
        }
        (store::Error::Missing { what, .. }, _) => {
            Stop::Incomplete(Incomplete::Missing(what.clone()))
        }
        (_, Advice::Corrupt | Advice::TooLarge) if is_marked => broken(chain(&error)),
        (_, Advice::Corrupt | Advice::TooLarge) => Stop::Outcome(Outcome::Other),
        _ => Stop::Incomplete(Incomplete::Store(Box::new(error))),
    }
}

/// Whether a place sent something else than the digest stands for.
fn is_digest_mismatch(error: &store::Error) -> bool {
    let first: &(dyn std::error::Error + 'static) = error;
    let causes = std::iter::successors(Some(first), |cause| cause.source());
    let mut causes = causes.filter_map(|cause| cause.downcast_ref::<store::Cause>());
    causes.any(|cause| matches!(cause, store::Cause::Digest { .. }))
}

fn broken(reason: impl Into<String>) -> Stop {
    Stop::Outcome(Outcome::Broken(reason.into()))
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(": ");
        text.push_str(&next.to_string());
        cause = next.source();
    }
    text
}

/// Verified layers, as the pure rooms want them.
struct Layers(Vec<VerifiedBlob>);

impl LayerSource for Layers {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn open(&self, layer: usize) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.0[layer].open()))
    }
}

/// Reads the package in some layers.
fn open(layers: &Layers, limits: &xpkg::Limits, is_marked: bool) -> Result<Package, Stop> {
    let mut gathered = Gathered::default();
    let (stream, is_stack) = match xpkg::open::package_yaml(layers, limits) {
        // What is no package of today may be one of the first format.
        Err(OpenError::NotAPackage) if !is_marked => (Ok(read_stack(layers)?), true),
        stream => (stream, false),
    };
    let opened = stream.and_then(|reader| {
        let make = |_: &yaml::RawDocument, node: Option<&yaml::Node<'_>>| {
            node.map(MadeDocument::of).unwrap_or_default()
        };
        xpkg::open::read_with(reader, limits, make, |made| gathered.take(made), &|| false)
    });
    let opened = opened.map_err(|error| match error {
        // Layers that do not say that they are a package may be anything.
        OpenError::NotAPackage | OpenError::Layer(_) if !is_marked => Stop::Outcome(Outcome::Other),
        error => broken(chain(&error)),
    })?;
    let errors = opened.diagnostics.iter().filter(|it| it.severity == Severity::Error);
    let problem = errors.map(|finding| finding.message.clone()).next();
    let Some(meta) = opened.meta() else {
        return Err(broken(problem.unwrap_or_else(|| "it has no metadata".to_owned())));
    };
    let is_function = meta.kind() == api::meta::PackageKind::Function;
    let mut package = Package { problem, ..metadata::describe(meta) };
    if is_stack {
        stack::STACK_API_VERSION.clone_into(&mut package.dialect);
        package.permission_scope = meta.annotation(stack::SCOPE_ANNOTATION).map(str::to_owned);
    }
    Ok(gathered.finish(is_function, package))
}

/// The stream of a package of the first format.
fn read_stack<'s>(layers: &Layers) -> Result<Box<dyn Read + 's>, Stop> {
    match stack::read_described(layers) {
        Ok(Some(text)) => Ok(Box::new(io::Cursor::new(text))),
        Ok(None) | Err(stack::StreamError::Layer(_)) => Err(Stop::Outcome(Outcome::Other)),
        Err(error) => Err(broken(error.to_string())),
    }
}

/// What one document turned out to be.
#[derive(Default)]
struct MadeDocument {
    defined: Vec<Defined>,
    object: Option<PlainObject>,
}

impl MadeDocument {
    fn of(document: &yaml::Node<'_>) -> Self {
        let defined = definition::defined(document);
        let object = if defined.is_empty() { plain_object(document) } else { None };
        Self { defined, object }
    }
}

/// An object that defines nothing; metadata is none.
fn plain_object(document: &yaml::Node<'_>) -> Option<PlainObject> {
    let text = |path: &[&str]| {
        let text = document.at(path).and_then(yaml::Node::as_str).unwrap_or_default();
        (text.len() <= OBJECT_NAME_SIZE_MAX).then(|| text.to_owned())
    };
    let api_version = text(&["apiVersion"])?;
    if api::meta::is_meta_group(&api_version) {
        return None;
    }
    let group = api_version.split_once('/').map_or("", |(group, _)| group).to_owned();
    let digest = Digest::of(&canonical(document.to_json())).to_string();
    Some(PlainObject { group, kind: text(&["kind"])?, name: text(&["metadata", "name"])?, digest })
}

/// What the documents of a package define.
#[derive(Default)]
struct Gathered {
    definitions: BTreeMap<String, Definition>,
    documents: BTreeMap<String, KindDocument>,
    schemas: BTreeMap<String, Schema>,
    objects: BTreeSet<PlainObject>,
    size: usize,
}

impl Gathered {
    fn take(&mut self, made: MadeDocument) -> Result<(), OpenError> {
        for Defined { definition, schemas, document } in made.defined {
            for schema in schemas {
                self.size += schema.compressed.len();
                self.schemas.insert(schema.digest.clone(), schema);
            }
            // Of two documents with one name the first counts; lint tells of the other.
            if let Entry::Vacant(place) = self.definitions.entry(definition.name.clone()) {
                self.size += document.compressed.len();
                self.documents.insert(definition.name.clone(), document);
                place.insert(definition);
            }
        }
        if self.objects.len() < OBJECTS_MAX {
            self.objects.extend(made.object);
        }
        if self.size > SCHEMAS_SIZE_MAX {
            let (limit, name) = (SCHEMAS_SIZE_MAX as u64, "schemas_size_max");
            return Err(OpenError::TooMuch { what: "bytes of schemas", limit, name });
        }
        Ok(())
    }

    fn finish(self, is_function: bool, package: Package) -> Package {
        let named = |mut definition: Definition| {
            if is_function && definition.origin == Origin::Crd {
                definition.origin = Origin::FunctionInput;
            }
            definition
        };
        Package {
            definitions: self.definitions.into_values().map(named).collect(),
            schemas: self.schemas.into_values().collect(),
            documents: self.documents,
            objects: self.objects.into_iter().collect(),
            ..package
        }
    }
}
