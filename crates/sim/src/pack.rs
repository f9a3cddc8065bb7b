//! Packages made for a simulation, and put into its registry.

use bytes::Bytes;
use oci::layer::LayerWriter;
use oci::{Digest, Identifier, Reference, Rules};
use serde_json::{Value as Json, json};
use std::io::Write;
use store::remote::{Client, Settings, transport};
use store::{Store, auth::Keychain};
use xpkg::image::{PackageLayer, assemble};
use xpkg::locate::PACKAGE_FILE;

/// Any error: nothing here is expected to fail.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A package: its metadata, and what it brings; or the files of one of the first format.
#[derive(Clone, Debug)]
pub struct Package {
    documents: Vec<Json>,
    /// Files below `.registry/`, with their contents.
    registry_files: Vec<(String, Json)>,
}

impl Package {
    /// A package of a kind, with nothing in it.
    pub fn new(kind: &str, name: &str) -> Self {
        let meta = json!({
            "apiVersion": "meta.pkg.crossplane.io/v1", "kind": kind,
            "metadata": {"name": name}, "spec": {},
        });
        Self { documents: vec![meta], registry_files: Vec::new() }
    }

    /// A package of the first format: what its `.registry/` holds.
    pub fn of_registry_files(files: Vec<(String, Json)>) -> Self {
        Self { documents: Vec::new(), registry_files: files }
    }

    /// With an object in it.
    #[must_use]
    pub fn with(mut self, object: Json) -> Self {
        self.documents.push(object);
        self
    }

    /// With a definition of a kind in it, whose schema has this field.
    #[must_use]
    pub fn with_crd(self, plural: &str, group: &str, field: &str) -> Self {
        let kind = plural.trim_end_matches('s');
        let schema = json!({"type": "object", "properties": {"spec": {
            "type": "object", "properties": {field: {"type": "string"}},
        }}});
        self.with(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group, "scope": "Cluster",
                "names": {"plural": plural, "singular": kind, "kind": kind, "listKind": format!("{kind}List")},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema},
                }],
            },
        }))
    }

    /// With a dependency.
    #[must_use]
    pub fn needing(self, kind: &str, package: &str, version: &str) -> Self {
        self.depending_on(json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": kind,
            "package": package, "version": version,
        }))
    }

    /// With a dependency on a kind, whoever brings it.
    #[must_use]
    pub fn needing_kind(self, kind: &str) -> Self {
        self.depending_on(json!({"crd": kind}))
    }

    fn depending_on(mut self, wanted: Json) -> Self {
        let spec = &mut self.documents[0]["spec"];
        match spec["dependsOn"].as_array_mut() {
            Some(all) => all.push(wanted),
            None => spec["dependsOn"] = json!([wanted]),
        }
        self
    }

    /// The stream.
    fn text(&self) -> Vec<u8> {
        let documents = self.documents.iter();
        documents.flat_map(|one| format!("---\n{one}\n").into_bytes()).collect()
    }

    /// What is in its layer.
    fn layer_files(&self) -> Vec<(String, Vec<u8>)> {
        if self.registry_files.is_empty() {
            return vec![(PACKAGE_FILE.to_owned(), self.text())];
        }
        let files = self.registry_files.iter();
        let file = |(path, content): &(String, Json)| {
            (format!(".registry/{path}"), content.to_string().into_bytes())
        };
        files.map(file).collect()
    }

    /// Pushes it into a registry.
    pub async fn push(&self, registry: &axum::Router, reference: &str) -> Result<Digest, Failure> {
        let mut writer = LayerWriter::new(Vec::new())?;
        for (path, text) in self.layer_files() {
            writer.start_file(&path, text.len() as u64)?;
            writer.write_all(&text)?;
        }
        let (bytes, layer) = writer.finish()?;
        let descriptor = layer.descriptor.clone();
        // A package of the first format is found by its files alone.
        let role = if self.registry_files.is_empty() { "base" } else { "" };
        let image = assemble(None, &[PackageLayer { layer, role: role.to_owned() }])?;
        let reference = Reference::parse(reference, &Rules::weak())?;
        let settings = Settings { plain_http: true, ..Settings::default() };
        let client = Client::new(transport(registry.clone()), Keychain::anonymous(), settings);
        let remote = client.repository(reference.repository().clone());
        let config = oci::Descriptor::of(oci::MediaType::DOCKER_CONFIG, &image.config);
        remote.put_blob(&descriptor, &Bytes::from(bytes)).await?;
        remote.put_blob(&config, &Bytes::from(image.config)).await?;
        let tag: &Identifier = reference.identifier();
        remote.put_manifest(tag, &image.annotated).await?;
        Ok(image.annotated.descriptor().digest)
    }
}
