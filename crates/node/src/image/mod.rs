//! Images: pulled, checked, and laid down as file systems.
//!
//! ```text
//!   Store ─► manifest ─► child for this machine ─► config (platform, diff_ids, what is run)
//!                                                └► layers ─► diff_id and limits ─► whiteouts, entries ─► rootfs
//! ```
//!
//! An image has one directory, whose file system is what all of its layers come to. It is made beside the others,
//! flushed, and only then named, so that a crash leaves it whole or not at all. Layers are strangers' bytes:
//! everything in them is counted against [`ImageLimits`], and no path of theirs is ever followed out of the
//! directory. What could matter to the machine is left out: devices, pipes, setuid and setgid bits, extended
//! attributes.
//!
//! - [`ImageCache`] pulls, keeps and removes images.
//! - [`resolve_user`] tells in numbers whom an image's program runs as.

mod account;
mod cache;
mod defaults;
mod error;
mod fence;
mod places;
mod plan;
mod platform;
mod tree;
mod unpack;

pub use account::{UserError, find_home, resolve_user};
pub use cache::{ImageCache, PulledImage};
pub use defaults::ImageDefaults;
pub use error::{EntryError, PullError};
pub use platform::machine_platform;

use oci::Platform;
use oci::layer::Limits;

/// How images are pulled to this machine.
#[derive(Clone, Debug)]
pub struct ImageOptions {
    /// What this machine is.
    pub machine: Platform,
    /// To whom the files belong.
    pub owners: FileOwners,
    /// How much of an image is taken.
    pub limits: ImageLimits,
    /// Layers with one of these annotations are not part of the file system.
    pub skipped_annotations: Vec<String>,
}

/// To whom an image's files belong on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOwners {
    /// To so much more than the image says. Only an administrator may do that.
    Shifted {
        /// The machine's number of the image's root.
        base: u32,
    },
    /// To the user that apron runs as, all of them. Directories can be changed by their owner always.
    Ignored,
}

/// How much of an image is taken before it is called hostile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageLimits {
    /// Of its layers: of one compressed, of all together expanded. Directories that no entry names, but that are made
    /// for others, count as entries.
    pub layers: Limits,
    /// How many layers there are.
    pub layers_max: u64,
    /// How many directories a file is in, one in the other.
    pub depth_max: u64,
    /// Bytes of all compressed layers.
    pub fetched_bytes_max: u64,
    /// Bytes of the config.
    pub config_bytes_max: u64,
}

impl Default for ImageLimits {
    fn default() -> Self {
        Self {
            layers: Limits::default(),
            layers_max: 512,
            depth_max: 256,
            fetched_bytes_max: 4 << 30,
            config_bytes_max: 4 << 20,
        }
    }
}

/// How far a pull is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullProgress {
    /// Bytes of layers that were fetched.
    pub fetched: u64,
    /// Bytes of all layers.
    pub total: u64,
}

#[cfg(test)]
mod tests;
