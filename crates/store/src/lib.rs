//! # Room `store`: where OCI bytes lie
//!
//! A package is a handful of blobs and a manifest that names them by digest. They may lie in
//! memory, in a directory, in a tarball or in a registry at the other end of the world; the rest
//! of the house should not care. This room has one trait, [`Store`], and one value of it stands
//! for one repository.
//!
//! ```text
//!                      copy(source, id) ─────────────► (sink, to)
//!                               │                          │
//!            ┌──────────┬───────┴────┬──────────────┐      │   the same four,
//!         Memory     Layout       Tarball        Remote ◄──┘   as sinks
//!        (a map)  (a directory)  (docker-save,  (a registry:
//!                                 oci-archive)   auth, retries, resume)
//!            └──────────┴─────┬──────┴──────────────┘
//!                          verify: no stream ends well with wrong bytes
//! ```
//!
//! Laws that hold for every store, and that [`suite`] checks for each of them:
//!
//! - What is not there is an answer (`None`, `false`, an empty list), not an error.
//! - Bytes are digested when they come in and again when they go out. A blob that disagrees with
//!   its descriptor is never visible, and a stream of wrong bytes ends in an error, never in a
//!   clean end of file.
//! - Everything has a limit: manifests, error bodies, pages, tries, redirects, archive entries.
//! - A crash leaves either the old state or the new one.
//!
//! The room refuses to know what a package is, which command is running, and everything about
//! the machine it was not told: no environment, no printing, no default paths. Credentials,
//! proxies and certificates come in as values ([`auth::Keychain`], [`remote::HttpSettings`]).
//!
//! Start with [`Store`], then [`copy()`]; [`remote`] is the largest wing, and
//! [`Error::advice`] tells a shell what to suggest when something went wrong.

pub mod auth;
mod blob;
pub mod copy;
pub mod error;
pub mod fetch;
mod files;
pub mod layout;
pub mod memory;
mod names;
pub mod remote;
pub mod suite;
pub mod tarball;
mod traits;
pub mod verify;

pub use blob::{Blob, ByteStream, FileSource, Source};
pub use copy::{Copied, CopyOptions, How, Progress, copy, copy_as};
pub use error::{Advice, Cause, Error};
pub use fetch::{VerifiedBlob, fetch_bytes, fetch_to_file};
pub use files::nameless;
pub use layout::Layout;
pub use memory::Memory;
pub use remote::Remote;
pub use tarball::{OciArchive, Tarball, TarballSink};
pub use traits::Store;
