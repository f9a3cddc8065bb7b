//! The words of `apron explorer`.

use super::Command;
use super::cluster::ClusterArguments;
use crate::command::explorer::Request;
use clap::Args;
use std::net::SocketAddr;

/// Reads with the rights of the kubeconfig and changes nothing. The address that is printed ends with
/// a pass, which becomes a cookie of the browser; others on this machine do not see the pages.
#[derive(Args)]
pub(super) struct ExplorerArguments {
    /// Address to listen on; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Show the pages to everybody on this machine
    #[arg(long)]
    without_pass: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

impl ExplorerArguments {
    pub(super) fn into_command(self) -> Command {
        let Self { listen, without_pass, cluster } = self;
        Command::Explorer(Request { listen, without_pass, cluster })
    }
}
