//! Packages that the manager builds from Git itself, where it was told to.

use super::stage::{Backend, Stage, condition};
use crate::git_sources::{GitServer, composition};
use crate::support::until;
use serde_json::json;

const METADATA: &str =
    "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: from-git\n";
const KIND: &str = "Configuration";

fn composed(name: &str) -> String {
    format!("/apis/apiextensions.crossplane.io/v1/compositions/{name}")
}

/// What keeps a package from being installed, once it says this.
#[track_caller]
fn says(stage: &Stage, name: &str, expected: &str) {
    until(&format!("{name} says {expected:?}"), || {
        let told = condition(&stage.package(KIND, name), "Installed")?;
        told["message"].as_str().unwrap_or_default().contains(expected).then_some(())
    });
}

#[test]
fn the_manager_builds_from_git_where_it_was_told_to() {
    let server = GitServer::start();
    let one = composition("git-one");
    let files = [("app/crossplane.yaml", METADATA), ("app/one.yaml", one.as_str())];
    let first = server.make("team/app", &files);
    server.make("other/app", &files);
    let mut stage = Stage::open(Backend::Embedded);
    let source = |at: &str| server.source(&format!("team/app.git//app@{at}"));
    stage.install(KIND, "from-git", &json!({"package": source("main")}));
    says(&stage, "from-git", "--allow-git-source");
    let allowed = format!("http://{}/team/", server.address);
    stage.restart(&["--allow-git-source", &allowed]);
    stage.installed(KIND, "from-git");
    assert!(stage.ask(&composed("git-one")).is_some());
    let lock = stage.ask("/apis/pkg.crossplane.io/v1beta1/locks/lock").unwrap();
    assert!(lock.to_string().contains(&server.source("team/app.git//app")), "{lock}");
    // Other places stay closed.
    let other = server.source("other/app.git//app@main");
    stage.install(KIND, "other-git", &json!({"package": other}));
    says(&stage, "other-git", "none that --allow-git-source allows");
    // The command writes the commit; the next commit is another revision.
    let two = composition("git-two");
    let second = server.commit("team/app", &[("app/two.yaml", &two)]);
    let said = stage.apron(&["install", &source("main"), "by-command"]).ok();
    assert!(said.all().contains(&second), "{}", said.all());
    let written = stage.package(KIND, "by-command")["spec"]["package"].clone();
    assert_eq!(written, source(&second));
    let delete = "/apis/pkg.crossplane.io/v1/configurations/by-command";
    stage.change("DELETE", delete, "application/json", &json!({}));
    stage.merge(KIND, "from-git", &json!({"spec": {"package": source(&second)}}));
    stage.states(KIND, "from-git", &[(1, "Inactive"), (2, "Active")]);
    stage.installed(KIND, "from-git");
    assert!(stage.ask(&composed("git-two")).is_some());
    stage.merge(KIND, "from-git", &json!({"spec": {"package": source(&first)}}));
    stage.states(KIND, "from-git", &[(2, "Inactive"), (3, "Active")]);
    stage.installed(KIND, "from-git");
}
