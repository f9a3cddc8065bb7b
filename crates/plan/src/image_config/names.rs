//! One name for a package that goes by many.

use super::{Purpose, rewritten, spelling};
use api::pkg::ImageConfig;
use oci::{Reference, ReferenceError, Repository, Rules};
use solver::Source;

/// How packages are told apart.
///
/// Two names are the same package when they are fetched from the same repository: after adding the
/// registry that goes without saying, after rewriting, and with one spelling of Docker Hub.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The image configurations.
    pub configs: &'a [ImageConfig],
    /// The registry of names that have none.
    pub default_registry: &'a str,
}

/// A package as somebody calls it, and as what it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The repository as somebody wrote it.
    pub written: String,
    /// The repository they mean.
    pub repository: Repository,
    /// What makes it that package.
    pub source: Source,
}

impl Names<'_> {
    fn rules(&self) -> Rules {
        Rules::weak().any_digest().default_registry(self.default_registry).git_sources()
    }

    /// Reads an image: which package, and what of it.
    pub fn image(&self, text: &str) -> Result<(Name, Reference), ReferenceError> {
        let reference = Reference::parse(text, &self.rules())?;
        let (written, _) = text.split_once('@').unwrap_or((text, ""));
        // A tag before a digest is a comment, so it is no part of the name either.
        let tag = written.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'));
        let written = tag.map_or(written, |(repository, _)| repository);
        Ok((self.of(written, reference.repository().clone()), reference))
    }

    /// Reads a repository.
    pub fn repository(&self, text: &str) -> Result<Name, ReferenceError> {
        Ok(self.of(text, Repository::parse(text, &self.rules())?))
    }

    fn of(&self, written: &str, repository: Repository) -> Name {
        let full = repository.to_string();
        let names = spelling::spellings(&repository, &full, self.default_registry);
        let rewrite = spelling::choose(self.configs, Purpose::Rewrite, &names);
        let elsewhere = rewrite.and_then(|found| rewritten(&found).ok());
        let elsewhere = elsewhere.and_then(|text| Repository::parse(&text, &self.rules()).ok());
        let source = Source::new(elsewhere.as_ref().unwrap_or(&repository).to_string());
        Name { written: written.to_owned(), repository, source }
    }
}
