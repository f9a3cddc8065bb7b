//! How clusters are reached, the same for every command that talks to one.

use clap::Args;
use std::path::PathBuf;

/// Where package managers run if nobody says otherwise.
pub(crate) const NAMESPACE: &str = api::manager::MANAGER_NAMESPACE;

/// Flags of commands that talk to a cluster.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Cluster options")]
pub(crate) struct ClusterArguments {
    /// Kubeconfig to use [default: those of KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use [default: its current one]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Namespace that the package manager runs in, where the secrets of packages are
    #[arg(long, short, value_name = "NAME", default_value = NAMESPACE)]
    pub(crate) namespace: String,
    /// What the API group of packages ends with, after `pkg.`
    #[arg(long, value_name = "SUFFIX", default_value = api::crd::SUFFIX)]
    pub(crate) group_suffix: String,
    /// On whose behalf, which only upstream's words can say.
    #[arg(skip)]
    pub(crate) impersonation: Impersonation,
}

/// On whose behalf a cluster is asked; the API server decides whether that is allowed.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Impersonation {
    /// Username to impersonate for the operation
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Group to impersonate for the operation; may be repeated
    #[arg(long = "as-group", value_name = "NAME", requires = "user")]
    pub(crate) groups: Vec<String>,
    /// UID to impersonate for the operation
    #[arg(long = "as-uid", value_name = "UID", requires = "user")]
    pub(crate) uid: Option<String>,
}

impl ClusterArguments {
    /// What upstream's flags can say.
    pub(crate) fn upstream(impersonation: Impersonation) -> Self {
        let (namespace, group_suffix) = (NAMESPACE.to_owned(), api::crd::SUFFIX.to_owned());
        Self { kubeconfig: None, context: None, namespace, group_suffix, impersonation }
    }
}
