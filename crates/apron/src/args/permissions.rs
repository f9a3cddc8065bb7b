//! The words of `apron permissions`.

use super::cluster::ClusterArguments;
use crate::command::permissions::{Deed, Request};
use crate::output::Format;
use clap::{Args, Subcommand};
use inventory::Which;

/// What to do with the permissions of packages.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct PermissionsArguments {
    #[command(subcommand)]
    words: Option<PermissionWords>,
    #[command(flatten)]
    list: CommonArguments,
}

#[derive(Subcommand)]
enum PermissionWords {
    /// List packages that ask for permissions, and whether they have them
    List(CommonArguments),
    /// Show what a package asks for, and what of it is allowed
    Show(PackageArguments),
    /// Allow exactly what a package asks for now
    ///
    /// That is written into a cluster role named after the package, with the label that has it
    /// gathered into crossplane:allowed-provider-permissions. The list is one for all packages:
    /// whoever else asks for the same may have it. A version that asks for more is refused again.
    Allow(PackageArguments),
    /// Take back what was allowed for a package
    Revoke(PackageArguments),
}

#[derive(Args)]
struct CommonArguments {
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Args)]
struct PackageArguments {
    /// Name of the package: NAME or KIND/NAME
    #[arg(value_name = "PACKAGE")]
    package: String,
    #[command(flatten)]
    common: CommonArguments,
}

impl PermissionsArguments {
    /// What was asked for.
    pub(super) fn into_request(self) -> Request {
        let (deed, common) = match self.words {
            None => (Deed::List, self.list),
            Some(PermissionWords::List(common)) => (Deed::List, common),
            Some(PermissionWords::Show(of)) => (Deed::Show(Which::parse(&of.package)), of.common),
            Some(PermissionWords::Allow(of)) => (Deed::Allow(Which::parse(&of.package)), of.common),
            Some(PermissionWords::Revoke(of)) => {
                (Deed::Revoke(Which::parse(&of.package)), of.common)
            }
        };
        Request { deed, format: common.output, cluster: common.cluster }
    }
}
