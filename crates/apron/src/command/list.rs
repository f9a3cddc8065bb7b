//! `list`: what is installed, and how it is.

use crate::args::cluster::ClusterArguments;
use crate::cluster::Cluster;
use crate::failure::Outcome;
use crate::output::{self, ObjectFormat, table};
use crate::settings::Settings;
use api::meta::PackageKind;
use inventory::lower;
use inventory::{Installed, Inventory, version};
use serde::Serialize;

/// What to list.
pub(crate) struct Request {
    pub(crate) kind: Option<PackageKind>,
    pub(crate) format: ObjectFormat,
    pub(crate) cluster: ClusterArguments,
}

/// What is said of a package.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    name: &'a str,
    kind: &'static str,
    version: String,
    state: &'static str,
    /// The version that waits to be activated instead of that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<String>,
    package: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<String>,
}

/// Lists packages.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    let inventory = Inventory::gather(&cluster).await?;
    let is_asked = |one: &&Installed| request.kind.is_none_or(|kind| kind == one.kind);
    let found: Vec<&Installed> = inventory.packages.iter().filter(is_asked).collect();
    let listed: Vec<Listed<'_>> = found.iter().map(|one| Listed::new(one)).collect();
    match request.format {
        ObjectFormat::Json => output::print_json(&listed),
        ObjectFormat::Yaml => output::print_yaml(&listed),
        ObjectFormat::Name => {
            for one in &found {
                let kind = lower(one.kind);
                output::print(format_args!("{kind}.{}/{}", cluster.group, one.name()));
            }
            Ok(())
        }
        ObjectFormat::Text | ObjectFormat::Wide => {
            if listed.is_empty() {
                output::say(nothing_installed(request.kind));
            } else {
                columns(&listed, request.format == ObjectFormat::Wide);
            }
            Ok(())
        }
    }
}

impl<'a> Listed<'a> {
    fn new(one: &'a Installed) -> Self {
        Self {
            name: one.name(),
            kind: one.kind.as_str(),
            version: one.version(),
            state: one.state().word(),
            waiting: one.waiting().map(|it| version(&it.spec.image)),
            package: &one.package.spec.package,
            revision: one.current().map(|it| it.metadata.name.as_str()),
            messages: one.complaints(),
        }
    }
}

/// That there is none, of a kind if only that was asked for.
fn nothing_installed(kind: Option<PackageKind>) -> String {
    let what = kind.map_or_else(|| "nothing".to_owned(), |kind| format!("no {}", lower(kind)));
    format!("{what} is installed; `apron install REFERENCE` installs a package")
}

fn columns(listed: &[Listed<'_>], is_wide: bool) {
    let row = |one: &Listed<'_>| {
        let mut row = vec![
            one.name.to_owned(),
            one.kind.to_owned(),
            one.version.clone(),
            match &one.waiting {
                Some(version) => format!("{}; {version} waits to be activated", one.state),
                None => one.state.to_owned(),
            },
        ];
        if is_wide {
            row.push(one.revision.unwrap_or("-").to_owned());
            row.push(one.package.to_owned());
            row.push(one.messages.first().cloned().unwrap_or_default());
        }
        row
    };
    let rows: Vec<Vec<String>> = listed.iter().map(row).collect();
    let header: &[&str] = if is_wide {
        &["NAME", "KIND", "VERSION", "STATE", "REVISION", "PACKAGE", "MESSAGE"]
    } else {
        &["NAME", "KIND", "VERSION", "STATE"]
    };
    table::table(header, &rows).into_iter().for_each(output::print);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_by_its_kind() {
        assert!(nothing_installed(None).starts_with("nothing is installed; "));
        assert!(
            nothing_installed(Some(PackageKind::Function))
                .starts_with("no function is installed; ")
        );
    }
}
