//! # Room `stack`: the first package format
//!
//! Before there were Providers and Configurations, a package was an image with a directory
//! `/.registry/` in it: `app.yaml` says what it is, `install.yaml` what runs it, and below
//! `resources/` lie its definitions with titles, icons and hints for user interfaces beside them.
//! Upstream deleted that format; such packages are still around. This room reads one and says what
//! it comes to:
//!
//! ```text
//!   directory ─┐                                   ┌─► definitions: v1, labelled, annotated
//!              ├─► files ─► read ─► Stack, findings ┼─► Package or StackDefinition   (record)
//!   image ─────┘     by base name  typed, positioned └─► a package of today           (convert)
//!   (layers)
//! ```
//!
//! * [`files`] knows which files count where, and bounds how much of them is held.
//! * [`mod@read`] brings the files together: all findings at once, each with file, line, rule and hint.
//! * `definition` reads definitions, and carries those of `v1beta1`, which no API server takes any
//!   more, over to `v1` without changing what objects they accept.
//! * `annotate` finds the metadata that reaches a definition and writes it on it.
//! * [`mod@convert`] makes a Provider package of it, and says what has no place there.
//! * [`record`] is the object that a cluster keeps about an installed package.
//! * `stream` is what installs a package: the documents of one of today, and its record among them.
//!
//! The room refuses to know files, registries and clusters, as all pure rooms do, and how a package
//! gets installed: an install object becomes a Provider (`plan::stacks`). YAML, layers, schemas and
//! findings are those of the rooms `yaml`, `oci`, `schema` and `xpkg`. What the format leaves open
//! is decided in `docs/specifications.md`. Start with [`read::read_stack`].

mod annotate;
mod app;
mod behavior;
pub mod convert;
mod definition;
mod dependency;
mod document;
pub mod files;
mod findings;
mod icon;
mod ignored;
mod install;
mod layers;
mod limits;
mod metadata;
pub mod read;
pub mod record;
mod rights;
pub mod rules;
mod stream;
mod summary;
#[cfg(test)]
mod tests;

pub use annotate::InstallOwner;
pub use app::{AppMetadata, PermissionScope, VersionTag};
pub use definition::OwnedDefinition;
pub use definition::beta::{BetaDefinition, convert_definition};
pub use dependency::CrdRequirement;
pub use icon::StackIcon;
pub use ignored::{find_ignored, report_ignored};
pub use layers::read_layers;
pub use limits::StackLimits;
pub use read::{Stack, read_stack};
pub use rights::name_plurals;
pub use stream::{RECORD_FIELD, SCOPE_ANNOTATION, StreamError, read_described, read_stream};
pub use summary::inspect_stack;

/// The group of everything that this format brings into a cluster.
pub const STACK_GROUP: &str = "packages.crossplane.io";
/// The group and version of its objects.
pub const STACK_API_VERSION: &str = "packages.crossplane.io/v1alpha1";
/// The directory that makes an image a package of this format.
pub const REGISTRY_DIRECTORY: &str = ".registry";
