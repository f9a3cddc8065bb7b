//! How people are told what packages ask for and do not get.

use super::rules::{self, Right};
use super::{Allowed, Closed, INTERCEPT, Place};
use api::meta::{PackageKind, PermissionRequest};
use std::collections::{BTreeMap, BTreeSet};
use xpkg::reserved::Reserved;

/// Lines of refused permissions in one sentence; `apron permissions show` has all.
const LINES_MAX: usize = 12;
/// Refused resources in one of these lines.
const THINGS_MAX: usize = 12;

/// Permissions in lines: all things with which the same may be done in one.
pub fn in_lines(requests: &[PermissionRequest]) -> Vec<String> {
    if let Some(why) = rules::excess(requests) {
        return vec![why];
    }
    let mut by_thing: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for Right { thing, verb } in rules::rights(requests) {
        by_thing.entry(thing).or_default().insert(verb);
    }
    let mut by_verbs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (thing, verbs) in by_thing {
        let verbs: Vec<String> = verbs.into_iter().collect();
        by_verbs.entry(verbs.join(", ")).or_default().push(thing);
    }
    by_verbs.into_iter().map(|(verbs, things)| format!("{verbs} {}", few(&things))).collect()
}

fn few(things: &[String]) -> String {
    let shown = things.iter().take(THINGS_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    match things.len().saturating_sub(THINGS_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// What is refused to a package, and the one thing that allows exactly that, in a sentence.
pub fn refusal(
    refused: &[PermissionRequest],
    allowed: &Allowed,
    kind: PackageKind,
    package: &str,
) -> String {
    let lines = in_lines(refused);
    let mut told = lines.iter().take(LINES_MAX).map(String::as_str).collect::<Vec<_>>().join("; ");
    if lines.len() > LINES_MAX {
        told = format!("{told}; and {} more", lines.len() - LINES_MAX);
    }
    let is_intercepted = refused.iter().any(|one| one.verbs.iter().any(|verb| verb == INTERCEPT));
    let meaning = if is_intercepted {
        " (to intercept is to see every write of these, and to change or refuse it)"
    } else {
        ""
    };
    let how = how_to_allow(&allowed.place, &format!("{}/{package}", kind.as_str().to_lowercase()));
    format!("the package asks for permissions that nobody allowed: {told}{meaning}; {how}")
}

fn how_to_allow(place: &Place, package: &str) -> String {
    let missing = |role: &str, is_there: bool| {
        if is_there {
            String::new()
        } else {
            format!("nothing is allowed, because there is no ClusterRole {role}; ")
        }
    };
    match place {
        Place::Flags => "an administrator allows them where the manager is started, with \
                         --provider-clusterrole or --allow-any-permissions"
            .to_owned(),
        Place::Gathered { is_there } => format!(
            "{}an administrator allows exactly these with `apron permissions allow {package}`",
            missing(super::ALLOWED_ROLE, *is_there)
        ),
        Place::Named { role, is_there } => format!(
            "{}an administrator allows them in the ClusterRole {role}, which this manager goes by",
            missing(role, *is_there)
        ),
    }
}

/// That a definition is in a group of somebody else.
pub(super) fn closed(what: &str, group: &str, whose: Closed) -> String {
    match whose {
        Closed::Reserved(Reserved::Kubernetes) => {
            format!("{what} defines a kind in the group {group}, which is Kubernetes' own")
        }
        Closed::Reserved(Reserved::Manager) => {
            format!(
                "{what} defines a kind in the group {group}, which is the package manager's own"
            )
        }
        Closed::Reserved(Reserved::Community) => format!(
            "{what} defines a kind in the group {group}, which is kept for Kubernetes' community \
             (an administrator opens it with `apron manager --allow-group {group}`)"
        ),
        Closed::Aggregated => format!(
            "{what} defines a kind in the group {group}, which another API server serves in this \
             cluster (an administrator opens it with `apron manager --allow-group {group}`)"
        ),
    }
}

/// That a webhook is called at an address.
pub(super) fn address(what: &str, address: &str) -> String {
    format!("{what} has the API server call {address}, and not the Service of the package")
}

/// That a definition has the name of another kind.
pub(super) fn misnamed(what: &str) -> String {
    format!("{what} is not named after the plural and group of the kind it defines")
}

/// That a definition calls a kind what none can be called.
pub(super) fn no_plural(what: &str, field: &str, plural: &str) -> String {
    format!(
        "{what} has {plural:?} in {field}, which is no name of a kind (write at most 63 lower case \
         letters, digits and `-`, beginning and ending with a letter or digit)"
    )
}

/// That a definition is in a group that is none.
pub(super) fn no_group(what: &str, group: &str) -> String {
    format!(
        "{what} has {group:?} in spec.group, which is no name of a group (write a domain in lower \
         case)"
    )
}

/// What no administrator can allow, in a sentence.
pub(crate) fn prohibition(forbidden: &[String]) -> String {
    const SHOWN_MAX: usize = 3;
    let shown = forbidden.iter().take(SHOWN_MAX).map(String::as_str).collect::<Vec<_>>();
    let more = match forbidden.len().saturating_sub(SHOWN_MAX) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!(
        "the package brings what no package may: {}{more}; install a version of the package \
         without it",
        shown.join("; ")
    )
}
