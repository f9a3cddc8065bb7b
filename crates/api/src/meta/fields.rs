//! The fields each dialect knows.
//!
//! Unknown fields are kept but do nothing, upstream as here; listing the known ones lets a linter
//! notice `dependson`. Fields that newer versions dropped still count as known: old packages
//! carry them and nobody is misled.

use super::{Dialect, PackageKind};

/// A place in metadata whose fields are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The document itself.
    Root,
    /// `spec`.
    Spec,
    /// `spec.crossplane`, where it is a mapping.
    Crossplane,
    /// An entry of `spec.dependsOn`.
    Dependency,
    /// `spec.controller`.
    Controller,
}

/// The fields known at a place.
pub fn known(dialect: Dialect, kind: PackageKind, place: Place) -> &'static [&'static str] {
    match place {
        Place::Root => &["apiVersion", "kind", "metadata", "spec"],
        Place::Spec => spec(dialect, kind),
        Place::Crossplane => &["version"],
        Place::Dependency if dialect == Dialect::First => {
            &["provider", "configuration", "version", "crd"]
        }
        Place::Dependency => &[
            "apiVersion",
            "kind",
            "package",
            "provider",
            "configuration",
            "function",
            "version",
            "crd",
        ],
        Place::Controller if dialect == Dialect::First => &["image"],
        Place::Controller => &["image", "permissionRequests"],
    }
}

fn spec(dialect: Dialect, kind: PackageKind) -> &'static [&'static str] {
    match (dialect, kind) {
        (Dialect::First, PackageKind::Provider) => {
            &["controller", "crossplane", "dependsOn", "permissionRequests"]
        }
        (Dialect::First, _) => &["crossplane", "dependsOn"],
        (_, PackageKind::Provider) => &["controller", "crossplane", "dependsOn", "capabilities"],
        (_, PackageKind::Configuration) => &["crossplane", "dependsOn", "capabilities"],
        (_, PackageKind::Function) => &["image", "crossplane", "dependsOn", "capabilities"],
    }
}
