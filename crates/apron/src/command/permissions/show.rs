//! How permissions are told.

use super::{asked, refuse_unseen, roles};
use crate::cluster::Cluster;
use crate::failure::Outcome;
use crate::output::{self, Format, bold, table};
use api::meta::PermissionRequest;
use controller::authority::in_lines;
use controller::authority::rules::{beyond, to_json};
use inventory::Installed;
use serde::Serialize;
use serde_json::Value as Json;

/// What a package asks for, and what of it is allowed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    id: String,
    /// The role that `allow` writes.
    role: String,
    asked: Vec<Json>,
    allowed: Vec<Json>,
    refused: Vec<Json>,
    #[serde(skip)]
    lines: [Vec<String>; 2],
}

impl Shown {
    /// What a package asks for, held against these rules.
    pub(super) fn of(
        one: &Installed,
        cluster: &Cluster,
        rules: &[PermissionRequest],
    ) -> Outcome<Self> {
        refuse_unseen(one)?;
        let asked = asked(one);
        let refused = beyond(&asked, rules);
        let allowed = beyond(&asked, &refused);
        let json = |all: &[PermissionRequest]| all.iter().map(to_json).collect();
        Ok(Self {
            id: one.id(),
            role: roles::name(cluster, one.kind, one.name()),
            lines: [in_lines(&allowed), in_lines(&refused)],
            asked: json(&asked),
            allowed: json(&allowed),
            refused: json(&refused),
        })
    }

    fn state(&self) -> &'static str {
        match (self.allowed.is_empty(), self.refused.is_empty()) {
            (_, true) => "allowed",
            (true, false) => "not allowed",
            (false, false) => "allowed in part",
        }
    }
}

/// Tells about one package.
pub(super) fn package(format: Format, shown: &Shown) -> Outcome {
    if format == Format::Json {
        return output::print_json(shown);
    }
    let id = &shown.id;
    if shown.asked.is_empty() {
        output::print(format_args!("{} asks for nothing beyond its own kinds", bold(id)));
        return Ok(());
    }
    output::print(format_args!("{} asks for permissions:", bold(id)));
    let [allowed, refused] = &shown.lines;
    for (lines, state) in [(allowed, "allowed"), (refused, "not allowed")] {
        for line in lines {
            output::print(format_args!("  {line}: {state}"));
        }
    }
    if !refused.is_empty() {
        output::say(format_args!("allow exactly these with `apron permissions allow {id}`"));
    }
    Ok(())
}

/// Tells about all packages that ask for something, and of those that are gone.
pub(super) fn all(format: Format, shown: &[Shown], left: &[String]) -> Outcome {
    if format == Format::Json {
        return output::print_json(&shown);
    }
    if shown.is_empty() {
        output::say("no package asks for anything beyond its own kinds");
    } else {
        let row = |one: &Shown| {
            let lines = one.lines.concat().join("; ");
            vec![one.id.clone(), one.state().to_owned(), lines]
        };
        let rows: Vec<Vec<String>> = shown.iter().map(row).collect();
        table::table(&["PACKAGE", "STATE", "ASKS TO"], &rows).into_iter().for_each(output::print);
    }
    for id in left {
        output::warn(format_args!(
            "permissions are allowed for {id}, which is not installed; take them back with \
             `apron permissions revoke {id}`"
        ));
    }
    Ok(())
}
