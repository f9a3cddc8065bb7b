//! Between a data directory and OCI layouts, without a server: the registry's own service is
//! asked in this process, so that what comes in is checked as if it had been pushed.

use super::open_existing;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, progress};
use crate::registry as client;
use ::registry::{Options, Registry, Settings};
use oci::{Identifier, Repository, Rules};
use serde_json::json;
use std::path::PathBuf;
use store::auth::Keychain;
use store::remote::{Client, transport};
use store::{CopyOptions, Layout, Remote, Store};

/// The annotation that holds a tag.
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// A layout into a repository.
pub(crate) struct Import {
    pub(crate) directory: PathBuf,
    pub(crate) layout: PathBuf,
    pub(crate) repository: String,
    pub(crate) format: Format,
}

/// A repository into a layout of its own.
pub(crate) struct Export {
    pub(crate) directory: PathBuf,
    pub(crate) repository: String,
    pub(crate) layout: PathBuf,
    pub(crate) format: Format,
}

/// Takes everything in a layout into a repository.
pub(crate) async fn import(request: &Import) -> Outcome {
    let path = &request.layout;
    let failed = |error| client::failed(format!("cannot import {}", path.display()), &error);
    let layout = Layout::open(path).await.map_err(failed)?;
    let registry = super::open(&request.directory, Settings::default())?;
    let sink = repository(&registry, &request.repository)?;
    let mut names = Vec::new();
    for descriptor in layout.manifests().await.map_err(failed)? {
        let from = Identifier::Digest(descriptor.digest.clone());
        let tag = descriptor.annotations.get(REF_NAME).and_then(|name| last_tag(name));
        let to = tag.map_or_else(|| from.clone(), Identifier::Tag);
        copy(&layout, &from, &sink, &to).await.map_err(failed)?;
        names.push(to.to_string());
    }
    registry.flush_views().await;
    tell("imported", &request.repository, &names, request.format)
}

/// Writes a repository as a layout that needs nothing else.
pub(crate) async fn export(request: &Export) -> Outcome {
    let registry = open_existing(&request.directory)?;
    let source = repository(&registry, &request.repository)?;
    let failed = |error| client::failed(format!("cannot export {}", request.repository), &error);
    let tags = source.tags().await.map_err(failed)?;
    let layout = Layout::create(&request.layout).await.map_err(failed)?;
    for tag in &tags {
        let id = Identifier::Tag(tag.clone());
        copy(&source, &id, &layout, &id).await.map_err(failed)?;
    }
    tell("exported", &request.repository, &tags, request.format)
}

/// Some tools write a whole reference where a tag belongs.
fn last_tag(name: &str) -> Option<String> {
    let tag = name.rsplit_once(':').map_or(name, |(_, tag)| tag);
    ::registry::Tag::parse(tag).map(|tag| tag.to_string())
}

async fn copy(
    source: &dyn Store,
    from: &Identifier,
    sink: &dyn Store,
    to: &Identifier,
) -> Result<(), store::Error> {
    let options = CopyOptions { referrers: true, ..CopyOptions::new() };
    store::copy(source, from, sink, to, &options, progress::watcher()).await?;
    Ok(())
}

fn repository(registry: &Registry, name: &str) -> Outcome<Remote> {
    let invalid = || {
        Failure::new(
            format!("`{name}` is not the name of a repository"),
            "a name looks like team/package, in lower case and without a registry",
        )
    };
    ::registry::Name::parse(name).ok_or_else(invalid)?;
    let parsed = Repository::parse(&format!("localhost/{name}"), &Rules::weak());
    let service = ::registry::router(registry.clone(), Options::open());
    let client =
        Client::new(transport(service), Keychain::anonymous(), store::remote::Settings::default());
    Ok(client.repository(parsed.map_err(|_| invalid())?))
}

fn tell(verb: &str, repository: &str, names: &[String], format: Format) -> Outcome {
    if format == Format::Json {
        return output::print_json(&json!({ "repository": repository, "references": names }));
    }
    let count = output::count(names.len(), "manifest");
    output::print(format_args!("{verb} {count} of {}", output::bold(repository)));
    for name in names {
        output::print(format_args!("  {name}"));
    }
    Ok(())
}
