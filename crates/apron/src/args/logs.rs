//! The words of `apron logs`, which are those of `kubectl logs`.

use super::cluster::ClusterArguments;
use super::duration;
use crate::command::logs::Request;
use clap::Args;
use inventory::Which;
use std::time::Duration;

/// Which log, and how much of it.
#[derive(Args)]
pub(super) struct LogsArguments {
    /// Name of the package: NAME or KIND/NAME
    name: String,
    /// Go on with what is written from now on, also by pods that take the place of others
    #[arg(long, short, conflicts_with = "previous")]
    follow: bool,
    /// The run before the present one, such as one that crashed
    #[arg(long, short)]
    previous: bool,
    /// Only so many of the last lines of each pod; -1 for all
    #[arg(long, value_name = "LINES", default_value_t = -1, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(i64).range(-1..))]
    tail: i64,
    /// Only what was written within a time, such as 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    since: Option<Duration>,
    /// Begin each line with the time at which it was written
    #[arg(long)]
    timestamps: bool,
    /// Container of the pods [default: the one that runs the package]
    #[arg(long, short, value_name = "NAME")]
    container: Option<String>,
    /// Name, number or version of the revision [default: the active one]
    #[arg(long, value_name = "NAME")]
    revision: Option<String>,
    #[command(flatten)]
    cluster: ClusterArguments,
}

impl LogsArguments {
    /// What was asked for.
    pub(super) fn into_request(self) -> Request {
        Request {
            which: Which::parse(&self.name),
            follow: self.follow,
            previous: self.previous,
            tail: Some(self.tail).filter(|lines| *lines >= 0),
            since: self.since.filter(|since| !since.is_zero()),
            timestamps: self.timestamps,
            container: self.container,
            revision: self.revision,
            cluster: self.cluster,
        }
    }
}
