//! # Room `oci`: what OCI bytes mean
//!
//! Images are bytes with addresses: layers (archives of files), a config that describes them, a
//! manifest that lists them by digest, an index that lists manifests by platform. This room
//! knows how to read and write those bytes and nothing else:
//!
//! ```text
//!   Reference ──names──► Raw (Manifest | Index) ──Descriptor──► config, layers
//!                                                    │
//!                                                    └─ Digest, MediaType, Platform
//! ```
//!
//! It refuses to know where bytes lie (that is `store`), what a Crossplane package is (that is
//! `xpkg`), and everything about this machine: no files, sockets, clock or environment.
//!
//! Strings with a grammar are parsed once, at the door, into [`Digest`], [`Reference`],
//! [`MediaType`] and [`Platform`]. Bytes that came from elsewhere are kept as they came
//! ([`Raw`]), because their digest is their name.
//!
//! Start with [`reference`] and [`manifest`]; [`layer`] is where archives are made and taken
//! apart, within limits.

pub mod config;
pub mod digest;
mod json;
pub mod layer;
pub mod manifest;
pub mod media_type;
pub mod platform;
pub mod reference;

pub use config::ImageConfig;
pub use digest::{Algorithm, Digest, DigestError, Hasher};
pub use manifest::{Descriptor, Document, Index, Manifest, ManifestError, Raw};
pub use media_type::MediaType;
pub use platform::Platform;
pub use reference::{
    GitReferenceError, GitSource, Identifier, Reference, ReferenceError, Repository, Rules,
    is_commit,
};
