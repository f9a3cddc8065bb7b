//! Image configurations: which one counts for an image, and where the image really is.
//!
//! A configuration matches by prefix of the image's name, letter by letter: `example.org/a` also
//! matches `example.org/ab`, as upstream has it; people who mean a path end it with a slash. For
//! each [`Purpose`] the longest prefix counts, of equally long ones the configuration whose name
//! comes first. A rewrite looks at the name as it was asked for, everything else at the name that
//! rewriting led to.
//!
//! How somebody spelled the image, or the prefix, does not matter: both are made canonical first
//! ([`oci::reference`]). An image of Docker Hub, or of the registry that goes without saying, has
//! more than one canonical name; a prefix of any of them matches.
//!
//! An empty prefix matches every image, after all others, where signatures are asked for: a host
//! can have another name that no spelling tells. For other purposes it matches none, as upstream
//! has it.
//!
//! [`Names`] makes one name out of the many that a package goes by.

mod names;
mod spelling;
#[cfg(test)]
mod tests;

pub use names::{Name, Names};

use api::pkg::{ImageConfig, ImageConfigRef, ImageConfigSpec, RuntimeConfigRef, Verification};
use oci::{Reference, Rules};

/// What a configuration can be applied for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// To fetch the image from somewhere else.
    Rewrite,
    /// To have credentials for it.
    PullSecret,
    /// To know which signatures it must have.
    Verify,
    /// To know how to run it.
    Runtime,
}

impl Purpose {
    /// What a status says it was applied for.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Rewrite => "RewriteImage",
            Self::PullSecret => "SetImagePullSecret",
            Self::Verify => "VerifyImage",
            Self::Runtime => "ConfigureRuntime",
        }
    }

    fn is_served_by(self, spec: &ImageConfigSpec) -> bool {
        match self {
            Self::Rewrite => spec.rewrite_image.is_some(),
            Self::PullSecret => pull_secret(spec).is_some(),
            Self::Verify => spec.verification.is_some(),
            Self::Runtime => spec.runtime.is_some(),
        }
    }
}

/// A configuration that counts, and by which of its prefixes it does.
#[derive(Clone, Debug, PartialEq)]
pub struct Selected<'a> {
    /// The configuration.
    pub config: &'a ImageConfig,
    /// The prefix that matches, as it is written there.
    pub prefix: &'a str,
    /// What follows the prefix in the name of the image.
    rest: String,
}

/// The configuration that counts for an image, among those that serve a purpose.
pub fn select<'a>(
    configs: &'a [ImageConfig],
    purpose: Purpose,
    image: &str,
    default_registry: &str,
) -> Option<Selected<'a>> {
    let rules = Rules::weak().any_digest().default_registry(default_registry).git_sources();
    let Ok(reference) = Reference::parse(image, &rules) else {
        return spelling::choose(configs, purpose, &[image.to_owned()]);
    };
    let names = spelling::spellings(reference.repository(), &reference.name(), default_registry);
    let mut found = spelling::choose(configs, purpose, &names)?;
    // A name without a tag stays one.
    let is_bare = reference.identifier().as_tag() == Some("latest") && !image.ends_with(":latest");
    if let Some(rest) = found.rest.strip_suffix(":latest").filter(|_| is_bare) {
        found.rest = rest.to_owned();
    }
    Some(found)
}

fn pull_secret(spec: &ImageConfigSpec) -> Option<&str> {
    let authentication = spec.registry.as_ref()?.authentication.as_ref()?;
    authentication.pull_secret_ref.name.as_deref().filter(|name| !name.is_empty())
}

/// Why image configurations cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageConfigError {
    /// A rewrite to nothing.
    RewritePrefixMissing {
        /// The configuration.
        config: String,
    },
    /// Signatures are asked for, and not which.
    CosignMissing {
        /// The configuration.
        config: String,
    },
}

impl std::fmt::Display for ImageConfigError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::RewritePrefixMissing { config } => write!(
                formatter,
                "rewrite prefix is missing in ImageConfig {config}; set spec.rewriteImage.prefix"
            ),
            Self::CosignMissing { config } => write!(
                formatter,
                "cosign verification config is missing in ImageConfig {config}; set \
                 spec.verification.cosign"
            ),
        }
    }
}

impl std::error::Error for ImageConfigError {}

/// What image configurations come to for one image.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Treatment {
    /// The name under which it is fetched; the one it was asked for under, if it is empty.
    pub resolved: String,
    /// The Secret with credentials for it.
    pub pull_secret: Option<String>,
    /// The signatures it must have, and the configuration that says so.
    pub verification: Option<(String, Verification)>,
    /// How it is run.
    pub runtime: Option<RuntimeConfigRef>,
    /// Which configurations these were, in the order of purposes.
    pub applied: Vec<ImageConfigRef>,
}

impl Treatment {
    /// Whether the image is fetched under another name than it was asked for.
    pub fn is_rewritten(&self) -> bool {
        self.applied.iter().any(|one| one.reason == Purpose::Rewrite.reason())
    }

    /// The name under which an image is fetched that was asked for under this one.
    pub fn name<'a>(&'a self, asked: &'a str) -> &'a str {
        if self.resolved.is_empty() { asked } else { &self.resolved }
    }

    fn note(&mut self, config: &ImageConfig, purpose: Purpose) {
        let (name, reason) = (config.metadata.name.clone(), purpose.reason().to_owned());
        self.applied.push(ImageConfigRef { name, reason, ..ImageConfigRef::default() });
    }
}

/// What to do with an image.
pub fn treat(
    configs: &[ImageConfig],
    image: &str,
    default_registry: &str,
) -> Result<Treatment, ImageConfigError> {
    let mut treatment = Treatment { resolved: image.to_owned(), ..Treatment::default() };
    if let Some(found) = select(configs, Purpose::Rewrite, image, default_registry) {
        treatment.resolved = rewritten(&found)?;
        treatment.note(found.config, Purpose::Rewrite);
    }
    for purpose in [Purpose::PullSecret, Purpose::Verify, Purpose::Runtime] {
        let found = select(configs, purpose, &treatment.resolved, default_registry);
        let Some((found, spec)) = found.and_then(|it| Some((it.config, it.config.spec.as_ref()?)))
        else {
            continue;
        };
        let config = found.metadata.name.clone();
        match (purpose, &spec.verification) {
            (Purpose::PullSecret, _) => {
                treatment.pull_secret = pull_secret(spec).map(str::to_owned);
            }
            (Purpose::Verify, Some(one)) if one.cosign.is_none() => {
                return Err(ImageConfigError::CosignMissing { config });
            }
            (Purpose::Verify, one) => {
                treatment.verification = one.clone().map(|one| (config, one));
            }
            (Purpose::Runtime, _) => {
                let runtime = spec.runtime.as_ref();
                treatment.runtime = runtime.and_then(|runtime| runtime.config_ref.clone());
            }
            (Purpose::Rewrite, _) => {}
        }
        treatment.note(found, purpose);
    }
    Ok(treatment)
}

fn rewritten(found: &Selected<'_>) -> Result<String, ImageConfigError> {
    let rewrite = found.config.spec.as_ref().and_then(|spec| spec.rewrite_image.as_ref());
    let prefix = rewrite.map(|rewrite| rewrite.prefix.as_str()).filter(|it| !it.is_empty());
    let Some(prefix) = prefix else {
        let config = found.config.metadata.name.clone();
        return Err(ImageConfigError::RewritePrefixMissing { config });
    };
    // One rewrite and no more: where it leads is where the image is.
    Ok(format!("{prefix}{}", found.rest))
}

/// Records which configuration was applied for a purpose, or that none was.
pub fn record(refs: &mut Option<Vec<ImageConfigRef>>, purpose: Purpose, name: Option<&str>) {
    let reason = purpose.reason();
    let mut list = refs.take().unwrap_or_default();
    let place = list.iter().position(|one| one.reason == reason);
    match (place, name) {
        (Some(at), Some(name)) => name.clone_into(&mut list[at].name),
        (Some(at), None) => drop(list.remove(at)),
        (None, Some(name)) => {
            let (name, reason) = (name.to_owned(), reason.to_owned());
            list.push(ImageConfigRef { name, reason, ..ImageConfigRef::default() });
        }
        (None, None) => {}
    }
    *refs = (!list.is_empty()).then_some(list);
}
