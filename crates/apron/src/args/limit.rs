//! The words about what `apron registry serve` lets one client do.

use ::registry::budget::{Budgets, Rate, Settings};
use clap::Args;

#[derive(Args)]
#[command(next_help_heading = "Limit options")]
pub(super) struct LimitArguments {
    /// Requests a second one client (a user at an address) may read with; ten times as many at
    /// once; 0 means any number. Nobody on this machine is counted
    #[arg(long, value_name = "N", default_value_t = 500)]
    pull_rate: u32,
    /// The same for requests that write or delete
    #[arg(long, value_name = "N", default_value_t = 100)]
    push_rate: u32,
    /// The same for requests for tokens
    #[arg(long, value_name = "N", default_value_t = 20)]
    token_rate: u32,
    /// Uploads one client may have under way at the same moment; 0 means any number
    #[arg(long, value_name = "N", default_value_t = 64)]
    max_uploads: usize,
    /// Bytes a second an upload must bring in the long run
    #[arg(long, value_name = "BYTES", default_value_t = 1024)]
    min_upload_rate: u64,
    /// Connections at once; more wait
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: u32,
    /// Connections at once from one address; more are closed
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    max_connections_per_client: u32,
    /// Largest blob that is taken, in megabytes
    #[arg(long, value_name = "MB")]
    max_blob_size: Option<u64>,
    /// Megabytes one repository may hold
    #[arg(long, value_name = "MB")]
    repository_quota: Option<u64>,
}

/// What one client may do, and how much may be kept.
pub(crate) struct Limits {
    pub(crate) budgets: Budgets,
    pub(crate) connections: usize,
    pub(crate) connections_per_client: usize,
    pub(crate) blob_size_max: Option<u64>,
    pub(crate) quota: Option<u64>,
}

impl Limits {
    /// For a registry that only this machine can reach, where nobody is counted.
    pub(crate) fn local() -> Self {
        Self {
            budgets: Budgets::default(),
            connections: 4096,
            connections_per_client: 4096,
            blob_size_max: None,
            quota: None,
        }
    }
}

impl LimitArguments {
    pub(super) fn into_limits(self) -> Limits {
        let bytes = |megabytes: u64| megabytes.saturating_mul(1_000_000);
        let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let settings = Settings {
            pulls: Rate::per_second(self.pull_rate),
            pushes: Rate::per_second(self.push_rate),
            tokens: Rate::per_second(self.token_rate),
            uploads_at_once: self.max_uploads,
            upload_rate_min: self.min_upload_rate,
        };
        Limits {
            budgets: Budgets::new(settings),
            connections: count(self.max_connections),
            connections_per_client: count(self.max_connections_per_client),
            blob_size_max: self.max_blob_size.map(bytes),
            quota: self.repository_quota.map(bytes),
        }
    }
}
