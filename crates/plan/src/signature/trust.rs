//! What packages and revisions know of the signatures of their image.

use crate::image_config::{ImageConfigError, Treatment};
use api::pkg::Verification;
use oci::Reference;

/// Whether an image may be used.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Trust {
    /// Nobody asks for signatures.
    #[default]
    Unasked,
    /// Signatures are asked for, and were not looked at yet.
    Asked {
        /// The image configuration that asks.
        config: String,
        /// What it asks for.
        verification: Verification,
    },
    /// It is signed as it should be.
    Accepted {
        /// The image configuration that asked.
        config: String,
        /// Who signed.
        authority: String,
    },
    /// It must not be used, for this reason, which says what to do about it.
    Refused(String),
}

impl Trust {
    /// What to begin with. Configurations that cannot be applied are no permission.
    pub fn of(treatment: &Result<Treatment, ImageConfigError>) -> Self {
        match treatment {
            Err(error) => Self::Refused(error.to_string()),
            Ok(treatment) => treatment.verification.clone().map_or(Self::Unasked, |asked| {
                let (config, verification) = asked;
                Self::Asked { config, verification }
            }),
        }
    }

    /// What was found out: who signed, or why nobody did whom the configuration names.
    pub fn judged(config: &str, image: &Reference, judged: Result<String, String>) -> Self {
        let config = config.to_owned();
        match judged {
            Ok(authority) => Self::Accepted { config, authority },
            Err(why) => Self::Refused(format!(
                "{why}; sign {image} with a key that ImageConfig {config} names, or change what \
                 ImageConfig {config} asks for"
            )),
        }
    }
}
