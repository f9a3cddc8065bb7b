//! What is kept of a document once it has been looked at: small, owned, and enough for the rest.

use super::calls::Calls;
use super::kinds::ObjectKind;
use crate::diagnostic::Diagnostic;
use api::kind_reference::KindReference;
use api::meta::{Meta, PackageKind};
use std::collections::BTreeSet;
use yaml::Position;

/// The outcome of looking at one document.
#[derive(Clone, Debug, PartialEq)]
pub struct DocumentReport {
    /// The file it came from.
    pub file: String,
    /// Where it starts.
    pub position: Position,
    /// Who it is.
    pub identity: Identity,
    /// Whether it claims to be package metadata, valid or not.
    pub is_metadata: bool,
    /// The type of package it makes this, when it is registered metadata.
    pub package_kind: Option<PackageKind>,
    /// The metadata, when it is readable; wrongly typed fields were reported and left out.
    pub meta: Option<Meta>,
    /// Which of the kinds that packages may contain it is.
    pub object: Option<ObjectKind>,
    /// What other documents may want to know about it.
    pub facts: Facts,
    /// What in it makes the API server call somebody.
    pub calls: Calls,
    /// What is wrong with it on its own.
    pub diagnostics: Vec<Diagnostic>,
}

/// How an object is told from others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The `apiVersion`; empty when missing.
    pub api_version: String,
    /// The `kind`; empty when missing.
    pub kind: String,
    /// The `metadata.name`; empty when missing.
    pub name: String,
}

impl Identity {
    /// Its kind and its name, if it has one.
    pub(super) fn called(&self) -> String {
        let Self { kind, name, .. } = self;
        if name.is_empty() { kind.clone() } else { format!("{kind} {name:?}") }
    }
}

/// Facts about an object that matter to other objects of the package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Facts {
    /// Nobody else cares.
    #[default]
    None,
    /// It defines a custom resource.
    Crd(Resource),
    /// It defines a managed resource.
    Mrd(Resource),
    /// It defines a composite resource.
    Xrd(Resource),
    /// It composes.
    Composition(Composition),
}

/// A resource that a definition brings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// Its group.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its plural name.
    pub plural: String,
    /// Its singular name; empty where that is left to the API server.
    pub singular: String,
    /// The plural name of its claims, if it offers them.
    pub claim: Option<String>,
    /// The kind of its claims, if it offers them.
    pub claim_kind: Option<String>,
    /// Its versions, in the order written.
    pub versions: Vec<String>,
    /// Those of them that are served.
    pub served: Vec<String>,
}

impl Resource {
    /// Whether a reference to a kind means what this definition brings, its claims among it, in
    /// whatever version.
    pub fn is_meant_by(&self, kind: &KindReference) -> bool {
        let Self { group, plural, singular, .. } = self;
        let claim = self.claim.as_deref().zip(self.claim_kind.as_deref());
        kind.names_definition(group, plural, singular, &self.kind)
            || claim.is_some_and(|(plural, claim)| kind.names_definition(group, plural, "", claim))
    }
}

/// What a Composition refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Composition {
    /// The composite type it is for.
    pub composite_type: Option<TypeReference>,
    /// The functions of its pipeline, by the names of their objects.
    pub functions: Vec<(String, Position)>,
}

/// A type that is referred to by version and kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeReference {
    /// For example `example.org/v1`.
    pub api_version: String,
    /// For example `XCluster`.
    pub kind: String,
    /// Where the reference stands.
    pub position: Position,
}

impl DocumentReport {
    /// A report that says nothing yet.
    pub(super) fn new(file: &str, position: Position, identity: Identity) -> Self {
        Self {
            file: file.to_owned(),
            position,
            identity,
            is_metadata: false,
            package_kind: None,
            meta: None,
            object: None,
            facts: Facts::None,
            calls: Calls::None,
            diagnostics: Vec::new(),
        }
    }

    /// About how much memory it takes, if the document's text was so long: what is kept of metadata
    /// and webhooks is about what was written.
    pub(crate) fn size(&self, text: usize) -> usize {
        let Identity { api_version, kind, name } = &self.identity;
        let facts = match &self.facts {
            Facts::None => 0,
            Facts::Crd(resource) | Facts::Mrd(resource) | Facts::Xrd(resource) => {
                let versions = resource.versions.iter().map(|one| one.len() + size_of::<String>());
                let claim = resource.claim.as_ref().map_or(0, String::len);
                let names = resource.group.len() + resource.kind.len() + resource.plural.len();
                names + claim + versions.sum::<usize>()
            }
            Facts::Composition(composition) => {
                let functions = composition.functions.iter();
                let functions = functions.map(|(name, _)| name.len() + size_of::<String>());
                let wanted = composition.composite_type.as_ref();
                let wanted =
                    wanted.map_or(0, |wanted| wanted.api_version.len() + wanted.kind.len());
                wanted + functions.sum::<usize>()
            }
        };
        let is_copied = self.meta.is_some() || !matches!(self.calls, Calls::None);
        let copied = if is_copied { 4 * text } else { 0 };
        let findings: usize = self.diagnostics.iter().map(Diagnostic::size).sum();
        let identity = api_version.len() + kind.len() + name.len();
        size_of::<Self>() + self.file.len() + identity + facts + copied + findings
    }

    /// The resource it defines, as far as it says so.
    pub fn defined(&self) -> Option<&Resource> {
        match &self.facts {
            Facts::Crd(resource) | Facts::Mrd(resource) | Facts::Xrd(resource) => Some(resource),
            Facts::None | Facts::Composition(_) => None,
        }
    }

    /// The groups it defines kinds in: what its spec says, and what its name says.
    pub fn groups(&self) -> BTreeSet<&str> {
        if !self.object.is_some_and(ObjectKind::is_definition) {
            return BTreeSet::new();
        }
        let named = self.identity.name.split_once('.').map_or("", |(_, group)| group);
        let said = self.defined().map(|resource| resource.group.as_str());
        // Where there is none, every API server says so.
        said.into_iter().chain([named]).filter(|group| !group.is_empty()).collect()
    }

    /// The kind it brings by group and plural, if its name and its spec say the same.
    pub fn brought(&self) -> Option<(String, String)> {
        let Resource { group, plural, .. } = self.defined()?;
        let is_named = self.identity.name == format!("{plural}.{group}");
        (is_named && !group.is_empty()).then(|| (group.clone(), plural.clone()))
    }

    /// Where the document starts, as people write it.
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.file, self.position.line)
    }
}

impl Identity {
    /// The API group; empty for Kubernetes' core.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}
