//! `search`: packages and kinds by words.

use super::{Catalog, escape};
use crate::args::registry::RegistryArguments;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, table};
use crate::settings::Settings;
use ::catalog::answer::{Found, KindSummary, PackageSummary};

/// The longest sentence about a package in a table.
const DESCRIPTION_LENGTH_MAX: usize = 60;

/// What to look for, and where.
pub(crate) struct Request {
    pub(crate) words: String,
    pub(crate) host: Option<String>,
    pub(crate) format: Format,
    pub(crate) registry: RegistryArguments,
}

/// Prints what is found.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let catalog = Catalog::connect(request.host.as_deref(), &request.registry, settings).await?;
    let address = format!("/api/v1/search?q={}", escape(&request.words));
    let found: Found = catalog.ask_all(&address).await?;
    if request.format == Format::Json {
        return output::print_json(&found);
    }
    if found.packages.is_empty() && found.crds.is_empty() {
        return Err(nothing(&request.words, &found.suggestions));
    }
    show(&found);
    Ok(())
}

fn nothing(words: &str, suggestions: &[String]) -> Failure {
    let hint = match suggestions {
        [] => "try fewer words, or log in with `apron login`: only what you may pull is searched"
            .to_owned(),
        some => format!("did you mean {}?", some.join(", ")),
    };
    Failure::new(format!("nothing is found for `{words}`"), hint)
}

fn show(found: &Found) {
    if !found.packages.is_empty() {
        let rows: Vec<Vec<String>> = found.packages.iter().map(package_row).collect();
        let header = ["PACKAGE", "TYPE", "NEWEST", "KINDS", "DESCRIPTION"];
        table::table(&header, &rows).iter().for_each(output::print);
    }
    if !found.packages.is_empty() && !found.crds.is_empty() {
        output::print("");
    }
    if !found.crds.is_empty() {
        let rows: Vec<Vec<String>> = found.crds.iter().map(kind_row).collect();
        table::table(&["KIND", "NAME", "PACKAGES"], &rows).iter().for_each(output::print);
    }
}

fn package_row(package: &PackageSummary) -> Vec<String> {
    let newest = &package.newest;
    let said = newest.package.description.as_deref().unwrap_or_default();
    let first = said.lines().next().unwrap_or_default();
    let mut description: String = first.chars().take(DESCRIPTION_LENGTH_MAX).collect();
    if first.chars().count() > DESCRIPTION_LENGTH_MAX {
        description.push('…');
    }
    let kind = match newest.package.kind.as_str() {
        "" => "?",
        kind => kind,
    };
    let tag = newest.tags.first().map_or(output::short(&newest.digest), String::as_str);
    vec![
        package.repository.clone(),
        kind.to_owned(),
        tag.to_owned(),
        newest.kinds.to_string(),
        description,
    ]
}

fn kind_row(kind: &KindSummary) -> Vec<String> {
    vec![kind.definition.kind.clone(), kind.definition.name.clone(), kind.packages.join(", ")]
}
