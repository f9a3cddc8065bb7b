//! # Room `xpkg`: the package format
//!
//! A Crossplane package is a YAML stream, `package.yaml`, in a layer of an OCI image. This room
//! knows what such a stream may say, how a directory becomes one, and where it is in an image:
//!
//! ```text
//!   files ─► source ─► lint ─► build ─► layers ─► image          (a directory becomes a package)
//!                       │
//!   image ─► locate ─► open ─► lint ─► reports                   (and back)
//!                       │
//!                yaml: documents, positions, Kubernetes' scalars
//! ```
//!
//! It refuses to know where bytes come from and where they go: no files, registries, clusters,
//! clocks or environment. Everything is a function of what is handed in. Packages are read as
//! streams, a batch of documents at a time, so that size costs time and not memory; hostile
//! ones meet a limit with a name ([`Limits`]).
//!
//! Start with [`build`] for the way in and [`open`] for the way back. [`lint`] is everything
//! that can be said about a package without installing it, one [`diagnostic::Diagnostic`] per
//! finding. Room `yaml` reads YAML the way the cluster will; [`constraint`] and [`version`] do the
//! same for versions; [`label`] derives names.

pub mod build;
pub mod compare;
pub mod constraint;
pub mod diagnostic;
pub mod facts;
pub mod glob;
pub mod image;
pub mod label;
mod limits;
pub mod lint;
pub mod locate;
pub mod open;
pub mod reserved;
pub mod sarif;
pub mod source;
pub mod version;

pub use limits::Limits;
