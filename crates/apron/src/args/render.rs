//! The words of `apron render`.

use super::authority::AuthorityArguments;
use super::cluster::ClusterArguments;
use super::registry::RegistryArguments;
use crate::command::install_object::ObjectOptions;
use crate::command::plan;
use crate::command::render::Request;
use crate::output::Format;
use clap::Args;
use controller::Pinning;

/// What is to be in git.
#[derive(Args)]
pub(super) struct RenderArguments {
    /// Packages that are to be there, too, or in that version
    #[arg(value_name = "REFERENCE")]
    references: Vec<String>,
    /// Pin all by digest, beside their version
    #[arg(long)]
    digests: bool,
    /// Form of the objects: YAML documents, or a List in JSON
    #[arg(long, short, value_parser = ["yaml", "json"], default_value = "yaml")]
    output: String,
    #[command(flatten)]
    cluster: ClusterArguments,
    #[command(flatten)]
    registry: RegistryArguments,
}

impl RenderArguments {
    /// What was asked for.
    pub(super) fn into_request(self) -> Request {
        let plan = plan::Request {
            kind: None,
            object: ObjectOptions::default(),
            first: String::new(),
            second: None,
            is_detailed: false,
            checks: false,
            may_downgrade: false,
            catalogs: Vec::new(),
            authority: AuthorityArguments::default(),
            format: Format::Text,
            cluster: self.cluster,
            registry: self.registry,
        };
        let pinning = if self.digests { Pinning::Digests } else { Pinning::Versions };
        Request { references: self.references, pinning, is_json: self.output == "json", plan }
    }
}
