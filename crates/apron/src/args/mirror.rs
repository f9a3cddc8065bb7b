//! The words about registries that `apron registry serve` mirrors.

use crate::command::registry::mirror::Request;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
#[command(next_help_heading = "Mirror options")]
pub(super) struct MirrorArguments {
    /// Serve repositories below PREFIX from another registry: fetched when first pulled, and kept
    /// (docker.io=https://registry-1.docker.io); may be repeated
    #[arg(long, value_name = "PREFIX=URL")]
    mirror: Vec<String>,
    /// Seconds a mirrored tag is served before the other registry is asked again
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    mirror_fresh: u64,
    /// Credentials for mirrored registries, in the form of Docker's config.json
    #[arg(long, value_name = "FILE")]
    mirror_auth_file: Option<PathBuf>,
    /// Also trust the certificate authorities in this PEM file when mirroring
    #[arg(long, value_name = "FILE")]
    mirror_ca_file: Option<PathBuf>,
    /// Give up when a mirrored registry says nothing for this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    mirror_timeout: u64,
}

impl MirrorArguments {
    pub(super) fn into_request(self) -> Request {
        Request {
            sources: self.mirror,
            fresh: Duration::from_secs(self.mirror_fresh),
            auth_file: self.mirror_auth_file,
            ca_file: self.mirror_ca_file,
            silence: Duration::from_secs(self.mirror_timeout),
        }
    }
}
