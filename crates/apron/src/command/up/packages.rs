//! Packages that lie in a directory: found, built, given names and versions, and put into the own
//! registry.

use super::vouched::Vouched;
use crate::command::build::{self, Examples, File, Report};
use crate::command::push;
use crate::directory::Selecting;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::registry as client;
use crate::settings::Settings;
use api::meta::{Meta, PackageKind};
use oci::{Identifier, Reference, Repository, Rules};
use std::path::{Path, PathBuf};
use store::remote::Client;
use store::{Remote, Store as _};
use xpkg::version::Version;

/// How deep packages may lie below the directory that is named.
const DEPTH_MAX: usize = 3;
/// The first version of something that has none.
const FIRST: &str = "v0.1.0";
/// The registry of packages that nobody refers to; no such host exists.
const NOWHERE: &str = "packages.local";

/// A package of the directory, in the own registry.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) kind: PackageKind,
    /// What it calls itself.
    pub(super) name: String,
    pub(super) reference: Reference,
    /// Whether another package of the directory needs it.
    pub(super) is_needed: bool,
}

/// The own registry, and what stands in for packages of the world.
pub(super) struct Packages {
    pub(super) client: Client,
    pub(super) vouched: Vouched,
}

/// A package that was built.
struct Built {
    meta: Meta,
    file: PathBuf,
}

/// Builds all packages below a directory and puts them into the own registry.
pub(super) async fn bring(
    directory: &Path,
    registry: &Packages,
    settings: &Settings,
) -> Outcome<Vec<Local>> {
    let work = tempfile::tempdir_in(&settings.temporary).map_err(|error| Failure::file(&error))?;
    let mut built = Vec::new();
    for (number, root) in find(directory)?.into_iter().enumerate() {
        let file = work.path().join(format!("{number}.xpkg"));
        let meta = build::build(&request(root, &file), settings)?;
        built.push(Built { meta, file });
    }
    let metas: Vec<&Meta> = built.iter().map(|one| &one.meta).collect();
    let names = names(&metas)?;
    let mut local = Vec::new();
    for (one, (repository, is_needed)) in built.iter().zip(names) {
        let reference = put(one, &repository, registry).await?;
        let (kind, name) = (one.meta.kind(), one.meta.name().to_owned());
        output::say(format_args!(
            "built {} {} as {reference}",
            kind.as_str().to_lowercase(),
            output::bold(&name)
        ));
        local.push(Local { kind, name, reference, is_needed });
    }
    Ok(local)
}

fn request(root: PathBuf, file: &Path) -> build::Request {
    build::Request {
        root,
        examples: Examples::Below,
        selecting: Selecting::default(),
        file: File::At(file.to_owned()),
        runtime: None,
        layers: Vec::new(),
        kind: None,
        strict: false,
        report: Report::Quiet,
        ca_file: None,
    }
}

/// Directories with a crossplane.yaml, in order; what is inside one belongs to it.
pub(super) fn find(directory: &Path) -> Outcome<Vec<PathBuf>> {
    let mut found = Vec::new();
    descend(directory, DEPTH_MAX, &mut found)?;
    if !found.is_empty() {
        return Ok(found);
    }
    Err(Failure::new(
        format!("there is no package in {}", directory.display()),
        "a package is a directory with a crossplane.yaml; `apron init` makes one",
    ))
}

fn descend(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Outcome {
    if directory.join("crossplane.yaml").is_file() {
        found.push(directory.to_owned());
        return Ok(());
    }
    let entries = fs_err::read_dir(directory).map_err(|error| Failure::file(&error))?;
    let mut below: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    below.sort();
    for path in below.into_iter().filter(|_| depth > 0) {
        descend(&path, depth - 1, found)?;
    }
    Ok(())
}

/// The repository of each package, and whether another of them needs it. Whoever depends on a
/// package says where it will be; others are beside those, or nowhere in particular.
fn names(metas: &[&Meta]) -> Outcome<Vec<(Repository, bool)>> {
    let named = |text: &str| Repository::parse(text, &Rules::weak()).ok();
    let wanted: Vec<(Repository, String)> = metas
        .iter()
        .flat_map(|meta| meta.dependencies())
        .filter_map(|dependency| dependency.target.as_ref())
        .filter(|target| target.crd().is_none())
        .filter_map(|target| {
            let repository = named(&target.package)?;
            let last = repository.path().rsplit('/').next()?.to_owned();
            Some((repository, last))
        })
        .collect();
    let is_local = |last: &String| metas.iter().any(|meta| meta.name() == last);
    let beside = wanted.iter().find(|(_, last)| is_local(last)).map(|(repository, _)| {
        let path = repository.path().rsplit_once('/').map(|(parent, _)| format!("/{parent}"));
        format!("{}{}", repository.registry(), path.unwrap_or_default())
    });
    let parent = beside.unwrap_or_else(|| NOWHERE.to_owned());
    let name = |meta: &&Meta| {
        if let Some((repository, _)) = wanted.iter().find(|(_, last)| last == meta.name()) {
            return Ok((repository.clone(), true));
        }
        let text = format!("{parent}/{}", meta.name());
        let repository = named(&text).ok_or_else(|| {
            let hint = "a package is called with lower-case letters, digits and dashes";
            Failure::new(format!("`{text}` cannot be a repository"), hint)
        })?;
        Ok((repository, false))
    };
    metas.iter().map(name).collect()
}

/// Puts a package into the own registry under the version it has there already, or the next.
async fn put(one: &Built, repository: &Repository, registry: &Packages) -> Outcome<Reference> {
    let name = format!("{}/{}", repository.registry(), repository.path());
    let inside =
        Repository::parse(&format!("localhost/{name}"), &Rules::weak()).map_err(|error| {
            let hint = "registries with a port cannot be stood in for; leave the port out";
            Failure::new(format!("{repository} cannot be kept here"), hint).because(&error)
        })?;
    let sink = registry.client.repository(inside.clone());
    let package = push::open(&one.file, &oci::manifest::Annotations::default()).await?;
    let failed = |error| client::failed(format!("cannot keep {repository}"), &error);
    let tag = match known(&sink, &package.raw.digest).await.map_err(failed)? {
        Known::Same(tag) => tag,
        Known::Next(tag) => {
            push::push_one(
                &package,
                &sink,
                &Identifier::Tag(tag.clone()),
                &output::progress::nobody(),
            )
            .await
            .map_err(failed)?;
            tag
        }
    };
    registry.vouched.add(&name, &package.raw.digest.to_string())?;
    let invalid = |error: oci::ReferenceError| {
        Failure::new(format!("`{tag}` cannot be a tag"), "please report this").because(&error)
    };
    repository.tag(&tag).map_err(invalid)
}

/// What the own registry knows of a package's content.
enum Known {
    /// It has it under this tag.
    Same(String),
    /// It has not; this is the next version.
    Next(String),
}

async fn known(sink: &Remote, digest: &oci::Digest) -> Result<Known, store::Error> {
    // A repository that is not there has no tags, and that is all there is to say.
    let tags = sink.tags().await.unwrap_or_default();
    let versions = tags.into_iter().filter_map(|tag| Some((Version::parse(&tag).ok()?, tag)));
    let Some((last, tag)) = versions.max() else { return Ok(Known::Next(FIRST.to_owned())) };
    let there = sink.manifest(&Identifier::Tag(tag.clone())).await?;
    let is_same = there.is_some_and(|there| there.digest == *digest);
    Ok(if is_same { Known::Same(tag) } else { Known::Next(next(&last)) })
}

fn next(last: &Version) -> String {
    format!("v{}.{}.{}", last.major(), last.minor(), last.patch() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(kind: &str, name: &str, needs: &[&str]) -> Meta {
        let depends: Vec<serde_json::Value> = needs
            .iter()
            .map(|package| serde_json::json!({"provider": package, "version": "*"}))
            .collect();
        Meta::from_json(&serde_json::json!({
            "apiVersion": "meta.pkg.crossplane.io/v1", "kind": kind,
            "metadata": {"name": name}, "spec": {"dependsOn": depends},
        }))
        .unwrap()
    }

    #[test]
    fn packages_are_called_what_those_who_need_them_call_them() {
        let top = meta("Configuration", "top", &["example.org/team/low", "far.org/other"]);
        let low = meta("Provider", "low", &[]);
        let found = names(&[&top, &low]).unwrap();
        let told: Vec<(String, bool)> =
            found.into_iter().map(|(name, needed)| (name.to_string(), needed)).collect();
        let expected =
            [("example.org/team/top".to_owned(), false), ("example.org/team/low".to_owned(), true)];
        assert_eq!(told, expected);
        let alone = names(&[&low]).unwrap();
        assert_eq!(alone[0].0.to_string(), "packages.local/low");
    }

    #[test]
    fn changed_content_is_the_next_version() {
        assert_eq!(next(&Version::parse("v0.1.9").unwrap()), "v0.1.10");
    }
}
