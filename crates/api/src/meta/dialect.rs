//! Which kinds of package metadata exist, under which versions.
//!
//! The table is closed: upstream refuses a pair that is not registered, even one that looks
//! plausible (`Function` in `v1alpha1`, `Provider` in `v1beta1`), and so do we.

use std::fmt;

/// The group everyone uses today.
const GROUP: &str = "meta.pkg.crossplane.io";
/// The group of the first published format.
const GROUP_FIRST: &str = "meta.pkg.ibm.crossplane.io";

/// What kind of package metadata describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PackageKind {
    /// Brings managed resources and the controller behind them.
    Provider,
    /// Brings composite resource definitions and compositions.
    Configuration,
    /// Brings a composition or operation function.
    Function,
}

/// The way metadata is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// `meta.pkg.crossplane.io/v1`.
    V1,
    /// `meta.pkg.crossplane.io/v1beta1`.
    V1Beta1,
    /// `meta.pkg.crossplane.io/v1alpha1`.
    V1Alpha1,
    /// `meta.pkg.ibm.crossplane.io/v1alpha1`, the first published format.
    First,
}

impl PackageKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Provider, Self::Configuration, Self::Function];

    /// The kind's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "Provider",
            Self::Configuration => "Configuration",
            Self::Function => "Function",
        }
    }
}

impl fmt::Display for PackageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Dialect {
    /// All dialects, the preferred one first.
    pub const ALL: [Self; 4] = [Self::V1, Self::V1Beta1, Self::V1Alpha1, Self::First];

    /// The dialect's `apiVersion`.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.pkg.crossplane.io/v1",
            Self::V1Beta1 => "meta.pkg.crossplane.io/v1beta1",
            Self::V1Alpha1 => "meta.pkg.crossplane.io/v1alpha1",
            Self::First => "meta.pkg.ibm.crossplane.io/v1alpha1",
        }
    }

    /// The kinds the dialect has.
    pub fn kinds(self) -> &'static [PackageKind] {
        match self {
            Self::V1 => &PackageKind::ALL,
            Self::V1Beta1 => &[PackageKind::Function],
            Self::V1Alpha1 | Self::First => &[PackageKind::Provider, PackageKind::Configuration],
        }
    }
}

/// Whether an `apiVersion` belongs to a group of package metadata, registered or not.
pub fn is_meta_group(api_version: &str) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    group == GROUP || group == GROUP_FIRST
}

/// The dialect and kind that an `apiVersion` and `kind` name, when they are registered.
pub fn registered(api_version: &str, kind: &str) -> Option<(Dialect, PackageKind)> {
    let dialect = Dialect::ALL.into_iter().find(|one| one.api_version() == api_version)?;
    let kind = dialect.kinds().iter().find(|one| one.as_str() == kind)?;
    Some((dialect, *kind))
}
