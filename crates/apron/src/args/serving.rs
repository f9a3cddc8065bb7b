//! The words of `apron registry`.

use crate::command::registry::{Request, exchange, keep, serve, tls};
use crate::output::Format;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// What can be done with a registry of one's own.
#[derive(Subcommand)]
pub(super) enum RegistryWords {
    /// Serve a directory as a registry
    Serve(ServeArguments),
    /// Remove what no tag or manifest refers to (a running registry does this by itself)
    Gc(GcArguments),
    /// Read every blob again, and take damaged ones out of service
    Scrub(KeepArguments),
    /// Make the database again from the repositories on the disk
    Rebuild(KeepArguments),
    /// Take an OCI layout directory into a repository
    Import {
        /// OCI layout directory
        layout: PathBuf,
        /// Repository to take it into, without a registry
        repository: String,
        #[command(flatten)]
        keep: KeepArguments,
    },
    /// Write a repository as an OCI layout directory that needs nothing else
    Export {
        /// Repository to write, without a registry
        repository: String,
        /// OCI layout directory to write
        layout: PathBuf,
        #[command(flatten)]
        keep: KeepArguments,
    },
}

#[derive(Args)]
struct DataArguments {
    /// Directory that holds the registry
    #[arg(long, env = "APRON_REGISTRY_DATA", value_name = "DIR", default_value = "apron-registry")]
    data_dir: PathBuf,
}

#[derive(Args)]
pub(super) struct KeepArguments {
    #[command(flatten)]
    data: DataArguments,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

#[derive(Args)]
pub(super) struct ServeArguments {
    #[command(flatten)]
    data: DataArguments,
    /// Address and port to listen on; port 0 means any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5000")]
    listen: String,
    /// Let anybody who can reach it push and delete, also from other machines
    #[arg(long)]
    insecure_open: bool,
    /// Certificate with its chain in PEM form; read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key of the certificate in PEM form
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Let tags that are versions (v1.2.3) be pushed again with other content
    #[arg(long)]
    mutable_versions: bool,
    /// Accept manifests that name blobs which are not there, as partial mirrors need
    #[arg(long)]
    allow_missing: bool,
    /// Megabytes of the disk that pushes must leave free
    #[arg(long, value_name = "MB", default_value_t = 256)]
    reserve: u64,
    /// Seconds a blob that nothing refers to is safe after a client has seen it
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    lease: u64,
    /// Seconds between two garbage collections; 0 means never
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    gc_interval: u64,
}

#[derive(Args)]
pub(super) struct GcArguments {
    #[command(flatten)]
    keep: KeepArguments,
    /// Also remove manifests that have had no tag for this many days
    #[arg(long, value_name = "DAYS")]
    untagged_after: Option<u64>,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
}

impl RegistryWords {
    /// What was asked for.
    pub(super) fn into_request(self) -> Request {
        match self {
            Self::Serve(words) => Request::Serve(words.into_request()),
            Self::Gc(words) => Request::Collect(keep::Collect {
                directory: words.keep.data.data_dir,
                untagged_after: words
                    .untagged_after
                    .map(|days| Duration::from_secs(days.saturating_mul(86_400))),
                dry_run: words.dry_run,
                format: words.keep.output,
            }),
            Self::Scrub(words) => {
                Request::Scrub(keep::Scrub { directory: words.data.data_dir, format: words.output })
            }
            Self::Rebuild(words) => Request::Rebuild(keep::Rebuild {
                directory: words.data.data_dir,
                format: words.output,
            }),
            Self::Import { layout, repository, keep } => Request::Import(exchange::Import {
                directory: keep.data.data_dir,
                layout,
                repository,
                format: keep.output,
            }),
            Self::Export { repository, layout, keep } => Request::Export(exchange::Export {
                directory: keep.data.data_dir,
                repository,
                layout,
                format: keep.output,
            }),
        }
    }
}

impl ServeArguments {
    fn into_request(self) -> serve::Request {
        let files = |(certificate, key)| tls::Files { certificate, key };
        serve::Request {
            directory: self.data.data_dir,
            listen: self.listen,
            insecure_open: self.insecure_open,
            tls: self.tls_cert.zip(self.tls_key).map(files),
            mutable_versions: self.mutable_versions,
            allow_missing: self.allow_missing,
            space_reserve: self.reserve.saturating_mul(1_000_000),
            lease: Duration::from_secs(self.lease),
            gc_interval: Duration::from_secs(self.gc_interval),
        }
    }
}
