//! `list`: what is installed, and how it is.

use crate::args::cluster::ClusterArguments;
use crate::cluster::Cluster;
use crate::failure::Outcome;
use crate::output::{self, ObjectFormat, table};
use crate::settings::Settings;
use api::meta::PackageKind;
use inventory::lower;
use inventory::{FoundObject, Installed, Inventory, version};
use serde::Serialize;

/// What to list.
pub(crate) struct Request {
    pub(crate) kind: Option<ListedKind>,
    pub(crate) format: ObjectFormat,
    pub(crate) cluster: ClusterArguments,
}

/// A kind of what can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListedKind {
    Package(PackageKind),
    /// Of install objects.
    Install(&'static str),
}

/// What is said of a package, or of an install object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    kind: &'static str,
    version: String,
    state: &'static str,
    /// The version that waits to be activated instead of that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<String>,
    package: String,
    /// The Provider that an install object became.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<String>,
}

/// Lists packages.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    let inventory = Inventory::gather(&cluster).await?;
    let is_asked = |kind| request.kind.is_none_or(|asked| asked == kind);
    let installs = inventory.installs.iter().map(FoundObject::Install);
    let all = installs.chain(inventory.packages.iter().map(FoundObject::Package));
    let found = all.filter(|one| {
        is_asked(match one {
            FoundObject::Package(one) => ListedKind::Package(one.kind),
            FoundObject::Install(one) => ListedKind::Install(one.kind),
        })
    });
    let found: Vec<FoundObject<'_>> = found.collect();
    let listed: Vec<Listed<'_>> = found.iter().map(|one| Listed::new(*one, &inventory)).collect();
    match request.format {
        ObjectFormat::Json => output::print_json(&listed),
        ObjectFormat::Yaml => output::print_yaml(&listed),
        ObjectFormat::Name => {
            for one in &found {
                output::print(one.full_name(&cluster));
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
    fn new(found: FoundObject<'a>, inventory: &'a Inventory) -> Self {
        match found {
            FoundObject::Package(one) => Self {
                name: one.name(),
                namespace: None,
                kind: one.kind.as_str(),
                version: one.version(),
                state: one.state().word(),
                waiting: one.waiting().map(|it| version(&it.spec.image)),
                package: one.package.spec.package.clone(),
                provider: None,
                revision: one.current().map(|it| it.metadata.name.as_str()),
                messages: one.complaints(),
            },
            FoundObject::Install(one) => Self {
                name: one.name(),
                namespace: Some(one.namespace()),
                kind: one.kind,
                version: one.version(inventory),
                state: one.state(inventory).word(),
                waiting: None,
                package: one.package(),
                provider: one.provider(inventory).map(Installed::name),
                revision: None,
                messages: one.complaints(inventory),
            },
        }
    }

    /// Its name behind its namespace, if it has one.
    fn place(&self) -> String {
        let namespace = self.namespace.map(|namespace| format!("{namespace}/"));
        format!("{}{}", namespace.unwrap_or_default(), self.name)
    }
}

/// That there is none, of a kind if only that was asked for.
fn nothing_installed(kind: Option<ListedKind>) -> String {
    let what = match kind {
        None => "nothing".to_owned(),
        Some(ListedKind::Package(kind)) => format!("no {}", lower(kind)),
        Some(ListedKind::Install(kind)) => format!("no {}", kind.to_lowercase()),
    };
    format!("{what} is installed; `apron install REFERENCE` installs a package")
}

fn columns(listed: &[Listed<'_>], is_wide: bool) {
    let row = |one: &Listed<'_>| {
        let mut row = vec![
            one.place(),
            one.kind.to_owned(),
            one.version.clone(),
            match &one.waiting {
                Some(version) => format!("{}; {version} waits to be activated", one.state),
                None => one.state.to_owned(),
            },
        ];
        if is_wide {
            row.push(one.revision.or(one.provider).unwrap_or("-").to_owned());
            row.push(one.package.clone());
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
            nothing_installed(Some(ListedKind::Package(PackageKind::Function)))
                .starts_with("no function is installed; ")
        );
    }
}
