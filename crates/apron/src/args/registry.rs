//! How registries are reached, the same for every command that talks to one.

use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of commands that talk to registries.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Registry options")]
pub(crate) struct RegistryArguments {
    /// Registry that is meant when a reference names none
    #[arg(
        long,
        env = "APRON_DEFAULT_REGISTRY",
        default_value = "index.docker.io",
        value_name = "HOST"
    )]
    pub(crate) default_registry: String,
    /// Accept any TLS certificate (unsafe: anyone on the way can read and change what you send)
    #[arg(long, visible_alias = "insecure-skip-tls-verify")]
    pub(crate) insecure: bool,
    /// Speak plain HTTP (loopback and private addresses do so anyway)
    #[arg(long)]
    pub(crate) plain_http: bool,
    /// Also trust the certificate authorities in this PEM file
    #[arg(long, env = "APRON_CA_FILE", value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Client certificate in PEM form, for registries that ask for one
    #[arg(long, value_name = "FILE", requires = "client_key")]
    pub(crate) client_cert: Option<PathBuf>,
    /// Key of the client certificate in PEM form
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    pub(crate) client_key: Option<PathBuf>,
    /// Credentials file, before those of Docker and Podman
    #[arg(long, value_name = "FILE")]
    pub(crate) auth_file: Option<PathBuf>,
    /// Give up when a registry says nothing for this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,
    /// Whether retries are kept quiet, as upstream does.
    #[arg(skip)]
    pub(crate) quiet: bool,
}

impl RegistryArguments {
    /// The time a registry may be silent.
    pub(crate) fn silence(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    /// What upstream's flags can say.
    pub(crate) fn upstream(insecure: bool) -> Self {
        Self {
            default_registry: oci::reference::DOCKER_HUB.to_owned(),
            insecure,
            plain_http: false,
            ca_file: None,
            client_cert: None,
            client_key: None,
            auth_file: None,
            timeout: 30,
            quiet: true,
        }
    }
}
