//! `why`: who needs a package and in which versions, what is in the way of it, and what the
//! package manager has to say about all packages together.

use crate::args::cluster::ClusterArguments;
use crate::cluster::Cluster;
use crate::failure::Outcome;
use crate::output::tree::{self, Branch};
use crate::output::{self, Format, bold, dim};
use crate::settings::Settings;
use inventory::{Explanation, Inventory};

/// About which package.
pub(crate) struct Request {
    /// The name of a package object, or a repository that something needs.
    pub(crate) name: String,
    pub(crate) format: Format,
    pub(crate) cluster: ClusterArguments,
}

/// Says why.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    let inventory = Inventory::gather(&cluster).await?;
    let why = inventory.explain(&request.name)?;
    if request.format == Format::Json {
        return output::print_json(&why);
    }
    tree::lines(&draw(&request.name, &why)).into_iter().for_each(output::print);
    Ok(())
}

fn draw(name: &str, why: &Explanation) -> Branch {
    let line = match (&why.id, &why.version, why.state) {
        (Some(id), Some(version), Some(state)) => format!("{} {version}: {state}", bold(id)),
        _ => format!("{} is not installed", bold(name)),
    };
    let mut below: Vec<Branch> =
        why.messages.iter().map(|message| Branch::leaf(format!("! {message}"))).collect();
    for need in &why.needed_by {
        let constraints = dim(format_args!("({})", need.constraints));
        below.push(Branch::leaf(format!("{} {} needs it {constraints}", need.id, need.version)));
    }
    let brought = why.made_for.iter().map(|id| format!("{id} asks for it"));
    let became = why.became.iter().map(|id| format!("it became {id}"));
    below.extend(brought.chain(became).map(Branch::leaf));
    let note = match (why.is_automatic, why.needed_by.is_empty()) {
        _ if !why.made_for.is_empty() => None,
        (Some(true), true) => {
            Some("nothing needs it any more: the package manager brought it for others")
        }
        (Some(true), false) => Some("the package manager brought it for them"),
        (Some(false), true) => Some("nothing needs it: somebody installed it"),
        (Some(false), false) => Some("somebody installed it by name, too"),
        (None, _) => None,
    };
    below.extend(note.map(Branch::leaf));
    Branch { line, below }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::meta::PackageKind;
    use api::pkg::ANNOTATION_AUTOMATIC;
    use inventory::NeedReason;
    use serde_json::json;

    /// A configuration that needs a provider which is there, and one which is not.
    fn inventory() -> Inventory {
        let package = |kind: &str, name: &str| {
            json!({
                "apiVersion": "pkg.crossplane.io/v1", "kind": kind, "metadata": {"name": name},
                "spec": {"package": format!("example.org/team/{name}:v1.0.0")},
            })
        };
        let revision = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "ConfigurationRevision",
            "metadata": {"name": "top-1", "labels": {"pkg.crossplane.io/package": "top"}},
            "spec": {"desiredState": "Active", "image": "example.org/team/top:v1.0.0", "revision": 1},
        });
        let lock = json!({
            "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "Lock", "metadata": {"name": "lock"},
            "packages": [{
                "name": "top-1", "source": "example.org/team/top", "version": "v1.0.0",
                "dependencies": [
                    {"package": "example.org/team/low", "constraints": ">=v1.0.0"},
                    {"package": "example.org/team/far", "constraints": "v3"},
                ],
            }],
            "status": {"conditions": [{
                "type": "Resolved", "status": "False", "reason": "DependencyResolutionFailed",
                "lastTransitionTime": "2026-01-01T00:00:00Z", "message": "there is no far v3",
            }]},
        });
        let mut left = package("Provider", "left");
        left["metadata"]["annotations"] = json!({ANNOTATION_AUTOMATIC: "true"});
        let packages = vec![
            (PackageKind::Configuration, package("Configuration", "top"), vec![revision]),
            (PackageKind::Provider, package("Provider", "low"), Vec::new()),
            (PackageKind::Provider, left, Vec::new()),
        ];
        Inventory::of(packages, lock).unwrap()
    }

    fn told(name: &str) -> Vec<String> {
        let inventory = inventory();
        let why = inventory.explain(name).unwrap();
        tree::lines(&draw(name, &why)).iter().map(|line| plain(line)).collect()
    }

    /// Without styles.
    fn plain(line: &str) -> String {
        anstream::adapter::strip_str(line).to_string()
    }

    #[test]
    fn what_is_needed_says_by_whom() {
        let expected = [
            "provider/low v1.0.0: new",
            "├─ ! no package manager has looked at it yet",
            "├─ ! there is no far v3",
            "├─ configuration/top v1.0.0 needs it (>=v1.0.0)",
            "└─ somebody installed it by name, too",
        ];
        assert_eq!(told("low"), expected);
    }

    /// M4: a package that was brought for others is told from one that a user installed.
    #[test]
    fn m4_what_was_brought_for_others_says_so() {
        let brought = |needed_by| Explanation {
            id: Some("provider/low".to_owned()),
            version: Some("v1.0.0".to_owned()),
            state: Some("healthy"),
            is_automatic: Some(true),
            needed_by,
            ..Explanation::default()
        };
        let (id, version) = ("configuration/top".to_owned(), "v1.0.0".to_owned());
        let need = NeedReason { id, version, constraints: ">=v1.0.0".to_owned() };
        let last = |why: &Explanation| tree::lines(&draw("low", why)).pop().unwrap();
        assert_eq!(last(&brought(vec![need])), "└─ the package manager brought it for them");
        let left = "└─ nothing needs it any more: the package manager brought it for others";
        assert_eq!(last(&brought(Vec::new())), left);
        assert_eq!(told("left").last().unwrap(), left);
    }

    /// M4: dependencies name repositories, and so may people.
    #[test]
    fn what_is_installed_is_found_by_its_repository() {
        let inventory = inventory();
        for name in ["example.org/team/low", "example.org/team/low:v9"] {
            assert_eq!(inventory.explain(name).unwrap().id.as_deref(), Some("provider/low"));
        }
        assert!(inventory.explain("example.org/team/none").is_err());
    }

    #[test]
    fn what_is_missing_says_who_waits_for_it() {
        let expected = [
            "far is not installed",
            "├─ ! there is no far v3",
            "└─ configuration/top v1.0.0 needs it (v3)",
        ];
        assert_eq!(told("far"), expected);
        let inventory = inventory();
        assert_eq!(inventory.explain("example.org/team/far").unwrap().needed_by.len(), 1);
        assert!(inventory.explain("nobody").is_err());
    }

    #[test]
    fn what_nobody_needs_was_installed_by_somebody() {
        assert_eq!(told("top").last().unwrap(), "└─ nothing needs it: somebody installed it");
    }
}
