//! What a command did to an object of a cluster, told in the words of whoever asked.

use crate::cluster::{Cluster, lower};
use crate::failure::Outcome;
use crate::output::{self, ObjectFormat};
use api::meta::PackageKind;
use serde_json::Value as Json;

/// Who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    /// A user of apron, in a form.
    Apron(ObjectFormat),
    /// A user of upstream's CLI.
    Crossplane,
    /// A user of the guide's plugin.
    Kubectl,
}

/// One change.
pub(crate) struct Change {
    /// What the older tools call it: `created`, `updated`.
    pub(crate) word: &'static str,
    /// What we call it.
    pub(crate) said: &'static str,
    pub(crate) kind: PackageKind,
    pub(crate) name: String,
    /// What comes after our word for it.
    pub(crate) detail: String,
    /// The object as it is now.
    pub(crate) object: Json,
}

impl Change {
    /// Tells it.
    pub(crate) fn tell(&self, voice: Voice, cluster: &Cluster) -> Outcome {
        let (kind, name, word) = (lower(self.kind), &self.name, self.word);
        match voice {
            Voice::Crossplane => output::print(format_args!("{kind}/{name} {word}")),
            Voice::Kubectl => {
                output::print(format_args!("{kind}.{}/{name} {word}", cluster.group));
            }
            Voice::Apron(ObjectFormat::Text | ObjectFormat::Wide) => {
                output::print(format_args!("{} {}", self.said, self.detail));
            }
            Voice::Apron(ObjectFormat::Name) => {
                output::print(format_args!("{kind}.{}/{name}", cluster.group));
            }
            Voice::Apron(ObjectFormat::Json) => return output::print_json(&self.object),
            Voice::Apron(ObjectFormat::Yaml) => return output::print_yaml(&self.object),
        }
        Ok(())
    }
}
