//! The words of `apron up`.

use super::authority::OpenArguments;
use super::duration;
use crate::command::up::{EgressChoice, PodRequest, Request, RuntimeChoice};
use clap::Args;
use clap::builder::ArgPredicate;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// With a directory, the packages in it are built, put into the registry and installed with what
/// they need; packages from elsewhere come from where they are. Everything is still there after
/// a restart. One process at a time may use the data.
#[derive(Args)]
pub(super) struct UpArguments {
    /// Directory with packages to build and install
    #[arg(value_name = "DIR")]
    packages: Option<PathBuf>,
    /// Where everything is kept [default: apron in the user's data directory]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Keep everything in memory only; it is gone when the process stops
    #[arg(long)]
    in_memory: bool,
    /// Address of the API server [default: 127.0.0.1:6443, or any port that is free]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Address of the registry [default: 127.0.0.1:5000, or any port that is free]
    #[arg(long, value_name = "ADDRESS")]
    registry_listen: Option<SocketAddr>,
    /// Also trust the certificate authorities in this PEM file, when packages come from elsewhere
    #[arg(long, visible_alias = "ca-file", env = "APRON_CA_FILE", value_name = "FILE")]
    ca_bundle_path: Option<PathBuf>,
    /// Registry whose catalog is asked, after the own one, which package brings a kind that another
    /// needs; may be repeated
    #[arg(long, value_name = "URL", value_parser = controller::CatalogAddress::parse)]
    catalog: Vec<controller::CatalogAddress>,
    /// Credentials file for other registries, before those of Docker and Podman
    #[arg(long, value_name = "FILE")]
    auth_file: Option<PathBuf>,
    #[command(flatten)]
    pods: PodArguments,
    /// Also run Crossplane's core, from this image, so that composite resources are composed; packages
    /// stay apron's. Programs then run as with --runtime process, if nothing else is said
    #[arg(long, value_name = "IMAGE")]
    with_crossplane: Option<String>,
    /// Stop as soon as everything is healthy; fail if it does not become so
    #[arg(long)]
    exit_when_ready: bool,
    /// How long packages may take to become healthy, such as 30s or 5m
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    timeout: Duration,
    #[command(flatten)]
    open: OpenArguments,
    /// Tell what the package manager does
    #[arg(long, short)]
    verbose: bool,
}

/// What becomes of pods.
#[derive(Args)]
struct PodArguments {
    /// How providers and functions run; see "Run packages without a cluster" in the manual
    #[arg(long, value_name = "HOW", default_value = "auto")]
    #[arg(default_value_if("with_crossplane", ArgPredicate::IsPresent, "process"))]
    runtime: RuntimeChoice,
    /// Where programs of packages may connect to, beside the control plane and each other
    #[arg(long, value_name = "WHERE", default_value = "public")]
    pod_egress: EgressChoice,
    /// Let pods mount paths of this machine
    #[arg(long)]
    allow_host_path: bool,
}

impl PodArguments {
    fn into_request(self) -> PodRequest {
        PodRequest {
            runtime: self.runtime,
            egress: self.pod_egress,
            allow_host_path: self.allow_host_path,
        }
    }
}

impl UpArguments {
    /// What was asked for.
    pub(super) fn into_request(self) -> Request {
        Request {
            packages: self.packages,
            data_dir: self.data_dir,
            in_memory: self.in_memory,
            listen: self.listen,
            registry_listen: self.registry_listen,
            ca_bundle: self.ca_bundle_path,
            catalogs: self.catalog,
            auth_file: self.auth_file,
            pods: self.pods.into_request(),
            crossplane: self.with_crossplane,
            exit_when_ready: self.exit_when_ready,
            timeout: self.timeout,
            open: self.open,
            verbose: self.verbose,
        }
    }
}
