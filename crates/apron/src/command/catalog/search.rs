//! `search`: packages and kinds by words.

use super::{Catalog, CatalogChoice, escape};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, table};
use crate::settings::Settings;
use ::catalog::answer::{FieldMatch, Found, KindSummary, PackageSummary};

/// The longest sentence about a package in a table.
const DESCRIPTION_LENGTH_MAX: usize = 60;

/// What to look for, and where.
pub(crate) struct Request {
    pub(crate) words: String,
    pub(crate) asked: CatalogChoice,
    pub(crate) format: Format,
}

/// Prints what is found.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let catalog = Catalog::connect(&request.asked, settings).await?;
    let address = format!("/api/v1/search?q={}", escape(&request.words));
    let found: Found = catalog.ask_all(&address).await?;
    if request.format == Format::Json {
        return output::print_json(&found);
    }
    if found.packages.is_empty() && found.crds.is_empty() && found.fields.is_empty() {
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
    let field = |it: &FieldMatch| {
        vec![it.path.clone(), it.kind_of_value.clone(), format!("{}/{}", it.crd, it.version)]
    };
    let header = &["PACKAGE", "TYPE", "NEWEST", "KINDS", "DESCRIPTION"];
    let tables: [(&[&str], Vec<Vec<String>>); 3] = [
        (header, found.packages.iter().map(package_row).collect()),
        (&["KIND", "NAME", "PACKAGES"], found.crds.iter().map(kind_row).collect()),
        (&["FIELD", "TYPE", "KIND"], found.fields.iter().map(field).collect()),
    ];
    let tables = tables.iter().filter(|(_, rows)| !rows.is_empty());
    let drawn = tables.map(|(header, rows)| table::table(header, rows).join("\n"));
    drawn.collect::<Vec<_>>().join("\n\n").lines().for_each(output::print);
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
