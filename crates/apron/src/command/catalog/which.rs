//! `which`: the packages that bring a kind.

use super::{Catalog, CatalogChoice, escape};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, table};
use crate::settings::Settings;
use ::catalog::KindReference;
use ::catalog::answer::{Definer, Definers, Found, KindSummary, Page};

/// Versions of a package that a table shows.
const VERSIONS_SHOWN: usize = 3;

/// Which kind, and whom to ask.
pub(crate) struct Request {
    pub(crate) kind: String,
    pub(crate) asked: CatalogChoice,
    pub(crate) format: Format,
}

/// Prints which packages bring a kind.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let catalog = Catalog::connect(&request.asked, settings).await?;
    let (text, version) = match request.kind.split_once('/') {
        Some((text, version)) if !text.contains('.') => (text, Some(version)),
        _ => (request.kind.as_str(), None),
    };
    if text.contains('.') {
        let kind = KindReference::parse(text).map_err(|error| {
            let hint = "write it as Bucket, buckets.s3.example.org or buckets.s3.example.org/v1";
            Failure::new(format!("`{text}` is not a kind"), hint).because(&error)
        })?;
        if kind.name.is_none() {
            return tell_group(&catalog, &kind, request.format).await;
        }
        return tell(&catalog, &kind, request.format).await;
    }
    let kind = find(&catalog, text, version).await?;
    tell(&catalog, &kind, request.format).await
}

/// The one kind that is called so.
async fn find(catalog: &Catalog, name: &str, version: Option<&str>) -> Outcome<KindReference> {
    let address = format!("/api/v1/crds?limit=1000&q={}", escape(name));
    let page: Page<KindSummary> = catalog.ask_all(&address).await?;
    let called: Vec<&KindSummary> =
        page.items.iter().filter(|summary| summary.definition.is_called(name)).collect();
    match called.as_slice() {
        [only] => Ok(KindReference {
            name: Some(only.definition.plural.clone()),
            group: only.definition.group.clone(),
            version: version.map(str::to_owned),
        }),
        [] => Err(nobody(name, &suggestions(catalog, name).await)),
        several => {
            let names: Vec<&str> =
                several.iter().map(|summary| summary.definition.name.as_str()).collect();
            let hint = format!("say which one: {}", names.join(", "));
            Err(Failure::new(format!("several kinds are called `{name}`"), hint))
        }
    }
}

/// Kinds that may be meant; a hint is not worth a failure.
async fn suggestions(catalog: &Catalog, name: &str) -> Vec<String> {
    let address = format!("/api/v1/search?q={}", escape(name));
    let found = catalog.ask::<Found>(&address).await.ok().flatten();
    found.map(|found| found.suggestions).unwrap_or_default()
}

fn nobody(kind: &str, suggestions: &[String]) -> Failure {
    let hint = match suggestions {
        [] => "check the name, push a package that brings it, or log in with `apron login`: only \
               what you may pull is looked at"
            .to_owned(),
        some => format!("did you mean {}?", some.join(", ")),
    };
    Failure::new(format!("no package brings {kind}"), hint)
}

async fn tell(catalog: &Catalog, kind: &KindReference, format: Format) -> Outcome {
    let version = kind.version.as_deref().map(|it| format!("?version={}", escape(it)));
    let address = format!("/api/v1/crds/{}/packages{}", kind.bare(), version.unwrap_or_default());
    let found: Definers = catalog.ask_all(&address).await?;
    if format == Format::Json {
        return output::print_json(&found);
    }
    if found.packages.is_empty() {
        return Err(nobody(&kind.to_string(), &found.suggestions));
    }
    let (name, scope) = (found.kind.as_deref().unwrap_or("?"), found.scope.as_deref());
    let scope = scope.unwrap_or("?");
    output::print(format_args!("{} ({name}, {scope})", output::bold(&found.crd)));
    let rows: Vec<Vec<String>> = found.packages.iter().map(|it| row(it, catalog)).collect();
    let header = ["PACKAGE", "TYPE", "VERSIONS", "SERVES"];
    table::table(&header, &rows).iter().for_each(output::print);
    advise(&found, catalog);
    Ok(())
}

fn row(definer: &Definer, catalog: &Catalog) -> Vec<String> {
    let newest = definer.versions.first();
    let tags = definer.versions.iter().filter_map(|version| version.tags.first());
    let mut versions: Vec<&str> = tags.map(String::as_str).take(VERSIONS_SHOWN).collect();
    if definer.versions.len() > VERSIONS_SHOWN {
        versions.push("…");
    }
    let kinds = newest.map(|version| version.versions.as_slice()).unwrap_or_default();
    let served = kinds.iter().filter(|version| version.served);
    let served: Vec<&str> = served.map(|version| version.name.as_str()).collect();
    let note = if definer.installs { "" } else { " (input of a function)" };
    vec![
        catalog.full_name(&definer.repository),
        definer.installing_kind().to_owned(),
        versions.join(", "),
        format!("{}{note}", served.join(", ")),
    ]
}

/// Says what to type next.
fn advise(found: &Definers, catalog: &Catalog) {
    let mut installing = found.packages.iter().filter(|definer| definer.installs);
    match (installing.next(), installing.next()) {
        (Some(_), Some(_)) => {
            output::say("several packages bring it: install one of them, not all");
        }
        (Some(definer), None) => {
            let (newest, name) = (definer.versions.first(), catalog.full_name(&definer.repository));
            let reference = newest.map(|version| match version.tags.first() {
                Some(tag) => format!("{name}:{tag}"),
                None => format!("{name}@{}", version.digest),
            });
            if let Some(reference) = reference {
                output::say(definer.advise_install(&reference));
            }
        }
        (None, _) => output::say("no package installs it: it is the input of a function"),
    }
}

/// Every kind of a group.
async fn tell_group(catalog: &Catalog, kind: &KindReference, format: Format) -> Outcome {
    let address = format!("/api/v1/crds?limit=1000&group={}", escape(&kind.group));
    let page: Page<KindSummary> = catalog.ask_all(&address).await?;
    if format == Format::Json {
        return output::print_json(&page);
    }
    if page.items.is_empty() {
        return Err(nobody(&kind.to_string(), &[]));
    }
    let row = |it: &KindSummary| {
        vec![it.definition.kind.clone(), it.definition.name.clone(), it.packages.join(", ")]
    };
    let rows: Vec<Vec<String>> = page.items.iter().map(row).collect();
    table::table(&["KIND", "NAME", "PACKAGES"], &rows).iter().for_each(output::print);
    Ok(())
}
