//! What metadata says about a package.

use crate::record::{Dependency, Package, Permission};
use api::meta::{Meta, PermissionRequest, TargetKind};
use serde_json::Value as Json;

/// The longest text about a package that is kept.
const README_SIZE_MAX: usize = 1 << 20;
/// The largest picture that is kept.
const ICON_SIZE_MAX: usize = 256 << 10;
/// The longest of all other texts.
const TEXT_SIZE_MAX: usize = 4 << 10;
/// The most words to find a package by.
const KEYWORDS_MAX: usize = 64;

/// What is kept of metadata.
pub(super) fn describe(meta: &Meta) -> Package {
    let text = |value: Option<&str>| short(value, TEXT_SIZE_MAX);
    let description = meta.annotation("descriptionShort").or_else(|| meta.description());
    Package {
        kind: meta.kind().as_str().to_owned(),
        dialect: meta.dialect().api_version().to_owned(),
        name: meta.name().to_owned(),
        crossplane: text(meta.crossplane()),
        description: text(description),
        license: text(meta.license()),
        source: text(meta.source()),
        maintainer: text(meta.maintainer()),
        category: text(said(meta, "category")),
        keywords: keywords(meta),
        capabilities: meta.capabilities().unwrap_or_default().to_vec(),
        dependencies: meta.dependencies().iter().filter_map(dependency).collect(),
        permissions: meta.permission_requests().iter().map(permission).collect(),
        readme: short(meta.readme(), README_SIZE_MAX),
        icon: icon(meta),
        metadata: Some(plain_metadata(meta)),
        ..Package::default()
    }
}

/// An annotation with the specified prefix, or without.
fn said<'meta>(meta: &'meta Meta, name: &str) -> Option<&'meta str> {
    meta.annotation(&format!("meta.crossplane.io/{name}")).or_else(|| meta.annotation(name))
}

/// The metadata without texts and pictures, which are kept for themselves or are too large to be.
fn plain_metadata(meta: &Meta) -> Json {
    let mut json = meta.to_json();
    let annotations = json.pointer_mut("/metadata/annotations").and_then(Json::as_object_mut);
    if let Some(annotations) = annotations {
        annotations.retain(|_, value| value.as_str().is_some_and(|it| it.len() <= TEXT_SIZE_MAX));
    }
    json
}

/// A text without space around it, cut where it gets too long.
fn short(text: Option<&str>, limit: usize) -> Option<String> {
    let text = text.map(str::trim).filter(|text| !text.is_empty())?;
    let end = (0..=limit.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    Some(text[..end.unwrap_or_default()].to_owned())
}

fn keywords(meta: &Meta) -> Vec<String> {
    let words = said(meta, "keywords").unwrap_or_default().split(',').map(str::trim);
    let words = words.filter(|word| !word.is_empty() && word.len() <= 64);
    words.take(KEYWORDS_MAX).map(str::to_owned).collect()
}

/// A picture that comes with the package; an address elsewhere would learn of each reader.
fn icon(meta: &Meta) -> Option<String> {
    let icon = ["iconURI", "iconData", "icon"].into_iter().find_map(|name| said(meta, name))?;
    let icon = icon.trim();
    let is_picture = icon.starts_with("data:image/") && icon.len() <= ICON_SIZE_MAX;
    is_picture.then(|| icon.to_owned())
}

fn dependency(dependency: &api::meta::Dependency) -> Option<Dependency> {
    let target = dependency.target.as_ref()?;
    let kind = match &target.kind {
        TargetKind::Key(kind) => kind.as_str().to_owned(),
        TargetKind::Crd => "CustomResourceDefinition".to_owned(),
        TargetKind::Explicit { kind, .. } => kind.clone(),
    };
    Some(Dependency { kind, package: target.package.clone(), version: dependency.version.clone() })
}

fn permission(request: &PermissionRequest) -> Permission {
    let PermissionRequest { api_groups, resources, resource_names, non_resource_urls, verbs } =
        request.clone();
    Permission { api_groups, resources, resource_names, non_resource_urls, verbs }
}
