//! What a package takes to itself: groups that are somebody else's, and calls about kinds that it
//! does not bring. Whoever installs it may refuse that, so its author hears of it beforehand.

use super::calls::Kinds;
use super::findings::finding;
use super::report::DocumentReport;
use super::rules;
use crate::diagnostic::Diagnostic;
use crate::reserved::{Reserved, reserved};
use api::meta::PackageKind;

/// Kinds that are named one by one; of more it is told how many they are.
const NAMED_MAX: usize = 5;

/// Looks at what a package of this type takes to itself.
pub(super) fn check(reports: &[DocumentReport], kind: PackageKind, found: &mut Vec<Diagnostic>) {
    // A function's definitions only describe its input: they never become objects.
    if kind == PackageKind::Function {
        return;
    }
    let brought: Kinds = reports.iter().filter_map(DocumentReport::brought).collect();
    for report in reports {
        if !report.object.is_some_and(|object| object.packages().contains(&kind)) {
            continue;
        }
        found.extend(check_groups(report));
        found.extend(check_addresses(report));
        found.extend(check_scope(report, &brought));
    }
}

fn check_groups(report: &DocumentReport) -> Option<Diagnostic> {
    let (group, whose) =
        report.groups().into_iter().find_map(|group| Some((group, reserved(group)?)))?;
    let at = report.position;
    let kind = &report.identity.kind;
    let (rule, whose, hint) = match whose {
        Reserved::Kubernetes => (
            &rules::GROUP_RESERVED,
            "which is Kubernetes' own",
            "choose a group under a domain of yours; no cluster installs this one",
        ),
        Reserved::Manager => (
            &rules::GROUP_RESERVED,
            "which is the package manager's own",
            "choose a group under a domain of yours; no cluster installs this one",
        ),
        Reserved::Community => (
            &rules::GROUP_COMMUNITY,
            "which is kept for Kubernetes' community",
            "it is installed only where an administrator opens the group to packages: \
             apron manager --allow-group GROUP",
        ),
    };
    let message = format!("{kind} defines a kind in the group {group:?}, {whose}");
    Some(finding(rule, &report.file, at, message).hint(hint))
}

fn check_addresses(report: &DocumentReport) -> Vec<Diagnostic> {
    let kind = &report.identity.kind;
    let tell = |address: String| {
        let message = format!("{kind} has the API server call {address}");
        let hint = "remove clientConfig.url: the package manager leads the call to the Service of \
                    the package";
        finding(&rules::WEBHOOK_ADDRESS, &report.file, report.position, message).hint(hint)
    };
    report.calls.addresses().into_iter().map(tell).collect()
}

fn check_scope(report: &DocumentReport, brought: &Kinds) -> Option<Diagnostic> {
    let beyond = report.calls.intercepted(brought);
    if beyond.is_empty() {
        return None;
    }
    let named = beyond.iter().take(NAMED_MAX).map(|(group, resource)| match group.as_str() {
        "" => resource.clone(),
        group => format!("{resource}.{group}"),
    });
    let mut named = named.collect::<Vec<_>>().join(", ");
    if beyond.len() > NAMED_MAX {
        named = format!("{named} and {} more", beyond.len() - NAMED_MAX);
    }
    let kind = &report.identity.kind;
    let message = format!("{kind} is called about kinds that the package does not bring: {named}");
    let hint = "name only kinds of the package in its rules, or tell those who install it to run \
                `apron permissions allow`";
    Some(finding(&rules::WEBHOOK_SCOPE, &report.file, report.position, message).hint(hint))
}
