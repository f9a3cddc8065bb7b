//! `explain`: a kind and its fields, as a package describes them.

use super::{Catalog, CatalogChoice, escape};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::place::{self, Place};
use crate::settings::Settings;
use ::catalog::answer::{KindSummary, Page};
use ::catalog::explain::{
    NotExplained, choose_kind, choose_version, draw_explanation, explain_field,
};
use ::catalog::{Definition, Outcome as Found, Package};
use serde_json::{Value as Json, json};

/// Which field, of which package.
pub(crate) struct Request {
    /// A kind, with dots before the names of fields.
    pub(crate) kind: String,
    pub(crate) package: Option<String>,
    pub(crate) api_version: Option<String>,
    pub(crate) recursive: bool,
    pub(crate) asked: CatalogChoice,
    pub(crate) format: Format,
}

/// A kind, its version, the fields that were named, and the schema.
type Explainable = (Definition, String, Vec<String>, Option<Json>);

/// Prints what is said about a field.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let (definition, version, path, schema) = match &request.package {
        Some(package) => find_in_package(package, request, settings).await?,
        None => find_in_catalog(request, settings).await?,
    };
    let schema = schema.ok_or_else(|| {
        let hint = "its package does not say what its objects look like";
        Failure::new(format!("{} {version} has no schema", definition.name), hint)
    })?;
    let explained = explain_field(&definition.kind, &schema, &path, request.recursive);
    let explained = explained.map_err(|reason| not_explained(&reason))?;
    if request.format == Format::Json {
        let (group, kind) = (&definition.group, &definition.kind);
        return output::print_json(&json!({
            "group": group, "kind": kind, "version": version, "path": path.join("."),
            "explained": explained,
        }));
    }
    let lines = draw_explanation(&definition, &version, &explained, &path, request.recursive);
    lines.iter().for_each(output::print);
    Ok(())
}

fn not_explained(reason: &NotExplained) -> Failure {
    let hint = match reason {
        NotExplained::Kind(name) => {
            format!("look for it with `apron search {name}`, or name a package with --package")
        }
        NotExplained::Ambiguous(_, names) => format!("say which one: {}", names.join(", ")),
        NotExplained::Version(_, _, known) | NotExplained::Field(_, known) if known.is_empty() => {
            "there are none".to_owned()
        }
        NotExplained::Version(_, _, known) | NotExplained::Field(_, known) => {
            format!("there are {}", known.join(", "))
        }
    };
    Failure::new(reason.to_string(), hint)
}

async fn find_in_catalog(request: &Request, settings: &Settings) -> Outcome<Explainable> {
    let catalog = Catalog::connect(&request.asked, settings).await?;
    let name = request.kind.split('.').next().unwrap_or_default();
    let address = format!("/api/v1/crds?limit=1000&q={}", escape(name));
    let page: Page<KindSummary> = catalog.ask_all(&address).await?;
    let known = page.items.into_iter().map(|summary| summary.definition).collect();
    let (definition, fields) =
        choose_kind(&request.kind, known).map_err(|reason| not_explained(&reason))?;
    let version = choose_version(&definition, request.api_version.as_deref());
    let version = version.map_err(|reason| not_explained(&reason))?.name.clone();
    let address = format!("/api/v1/crds/{}/versions/{version}/schema", definition.name);
    let schema = catalog.ask(&address).await?;
    Ok((definition, version, fields, schema))
}

async fn find_in_package(
    package: &str,
    request: &Request,
    settings: &Settings,
) -> Outcome<Explainable> {
    let Package { definitions, schemas, .. } = read_package(package, request, settings).await?;
    let (definition, fields) =
        choose_kind(&request.kind, definitions).map_err(|reason| not_explained(&reason))?;
    let version = choose_version(&definition, request.api_version.as_deref());
    let version = version.map_err(|reason| not_explained(&reason))?;
    let packed = schemas.into_iter().find(|it| Some(&it.digest) == version.schema.as_ref());
    let (version, schema) = (version.name.clone(), packed.and_then(|it| it.to_json().ok()));
    Ok((definition, version, fields, schema))
}

async fn read_package(package: &str, request: &Request, settings: &Settings) -> Outcome<Package> {
    let arguments = &request.asked.registry;
    let opened = place::open(&Place::parse(package, arguments)?, arguments, settings).await?;
    let manifest = place::fetch_manifest(&opened, &opened.id).await?;
    let found = ::catalog::read(&*opened.store, &manifest.digest, &settings.temporary).await;
    let (name, hint) = (&opened.name, "see what it is with `apron inspect`");
    match found {
        Ok(Found::Package(package)) => Ok(*package),
        Ok(Found::Broken(reason)) => {
            Err(Failure::new(format!("{name} cannot be read: {reason}"), hint))
        }
        Ok(Found::Other) => Err(Failure::new(format!("{name} is not a package"), hint)),
        Err(error) => Err(Failure::new(format!("cannot read {name}"), hint).because(&error)),
    }
}
