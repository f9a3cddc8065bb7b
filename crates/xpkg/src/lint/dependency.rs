//! The entries of `dependsOn`.

use super::findings::Findings;
use super::rules;
use crate::constraint::Constraint;
use crate::reserved::{Reserved, reserved};
use crate::version::Version;
use api::kind_reference::{GrammarError, KindReference};
use api::meta::{Dependency, Dialect, Meta, PackageKind, Target, TargetKind};
use oci::{Algorithm, Digest, Repository, Rules};
use std::collections::HashMap;
use yaml::{Node, Position};

/// Checks every dependency, then looks for repetitions.
pub(super) fn check(node: &Node<'_>, meta: &Meta, findings: &mut Findings<'_>) {
    let entries = node.at(&["spec", "dependsOn"]).map(Node::items).unwrap_or_default();
    let mut seen = HashMap::new();
    for (entry, dependency) in entries.iter().zip(meta.dependencies()) {
        check_target(entry, dependency, findings);
        let by_kind = dependency.target.as_ref().is_some_and(|target| target.crd().is_some());
        let is_complete = is_by_key(dependency) || (by_kind && dependency.version.is_empty());
        if !is_complete {
            check_version(entry, dependency, meta.dialect(), findings);
        }
        let Some(target) = dependency.target.as_ref().filter(|one| !one.package.is_empty()) else {
            continue;
        };
        if let Some(first) = seen.insert(target.package.as_str(), entry.position.line) {
            let message = format!("{} is depended on twice; first in line {first}", target.package);
            let hint = "merge both into one entry; a constraint may have several parts";
            findings.advise(&rules::DEPENDENCY_DUPLICATE, entry.position, message, hint);
        }
    }
}

fn check_target(entry: &Node<'_>, dependency: &Dependency, findings: &mut Findings<'_>) {
    let missing = dependency.missing_keys();
    if !missing.is_empty() {
        let message = format!("dependency lacks {} of its explicit type", missing.join(" and "));
        let hint = "set apiVersion, kind and package together";
        findings.advise(&rules::DEPENDENCY_TARGET, entry.position, message, hint);
    }
    let Some(target) = &dependency.target else {
        if missing.is_empty() {
            let message = "dependency names no package";
            let hint = "set apiVersion, kind and package";
            findings.advise(&rules::DEPENDENCY_TARGET, entry.position, message, hint);
        }
        return;
    };
    let key = dependency
        .keys
        .iter()
        .find(|key| entry.get(key).and_then(Node::as_str) == Some(target.package.as_str()));
    let named = key.and_then(|key| entry.get(key)).unwrap_or(entry);
    if let [first, ..] = dependency.ignored_keys() {
        let at = entry.entry(first).map_or(entry.position, |one| one.position);
        let ignored = dependency.ignored_keys().join(" and ");
        let message = format!("dependency names several packages; {ignored} will be ignored");
        let refused = dependency.ignored_keys().contains(&"crd");
        let rule = if refused { &rules::DEPENDENCY_CRD } else { &rules::DEPENDENCY_AMBIGUOUS };
        findings.advise(rule, at, message, "keep one of them");
    }
    if let Some(kind) = target.crd() {
        check_crd(kind, named.position, findings);
        if is_by_key(dependency) && !dependency.version.is_empty() {
            let at = entry.get("version").map_or(entry.position, |node| node.position);
            let version = &dependency.version;
            let message = format!("dependency on a kind has a version of a package, {version:?}");
            let hint = "remove it; the version of the kind stands behind its name, after a slash";
            findings.advise(&rules::DEPENDENCY_CRD, at, message, hint);
        }
        return;
    }
    check_reference(&target.package, named.position, findings);
    check_kind(target, named.position, findings);
}

/// Whether the key `crd` says what is needed: which versions of which package will do follows.
fn is_by_key(dependency: &Dependency) -> bool {
    dependency.target.as_ref().is_some_and(|target| target.kind == TargetKind::Crd)
}

/// A kind is named with its group, and perhaps a version.
fn check_crd(kind: Result<KindReference, GrammarError>, at: Position, findings: &mut Findings<'_>) {
    let rule = &rules::DEPENDENCY_CRD;
    match kind {
        Err(error) => {
            let hint = "write it like buckets.s3.example.org/v1beta1, or *.s3.example.org";
            findings.advise(rule, at, format!("dependency on a kind: {error}"), hint);
        }
        Ok(kind) => {
            let closed = [Some(Reserved::Kubernetes), Some(Reserved::Manager)];
            if closed.contains(&reserved(&kind.group)) {
                let message = format!("no package may bring {kind}: its group is reserved");
                findings.advise(rule, at, message, "remove the dependency; the kind is there");
            }
        }
    }
}

/// Packages are mostly called after what they are, and upstream's manager believes the key.
fn check_kind(target: &Target, at: Position, findings: &mut Findings<'_>) {
    let TargetKind::Key(said) = target.kind else { return };
    let name = target.package.rsplit('/').next().unwrap_or(&target.package);
    let is_named = |kind: &PackageKind| {
        let rest = name.strip_prefix(&kind.as_str().to_ascii_lowercase());
        rest.is_some_and(|rest| rest.starts_with('-'))
    };
    let Some(kind) = PackageKind::ALL.into_iter().find(is_named).filter(|kind| *kind != said)
    else {
        return;
    };
    let key = said.as_str().to_ascii_lowercase();
    let message =
        format!("{} is a {} by its name, and its key says {key}", target.package, kind.as_str());
    let hint = format!(
        "write {}: instead; apron looks what it is, other package managers go by the key",
        kind.as_str().to_ascii_lowercase()
    );
    findings.advise(&rules::DEPENDENCY_KIND, at, message, hint);
}

fn check_reference(package: &str, at: Position, findings: &mut Findings<'_>) {
    match package_reference_problem(package) {
        None => {}
        Some(ReferenceProblem::Pinned { repository }) => {
            let message = format!("package {package:?} carries a tag or digest");
            let hint = format!("write {repository:?}, and the tag or digest as version");
            findings.advise(&rules::DEPENDENCY_PINNED, at, message, hint);
        }
        Some(ReferenceProblem::Malformed { reason }) => {
            let message = format!("package {package:?} is not a repository: {reason}");
            let hint = "write it like registry.example.org/organisation/package";
            findings.advise(&rules::DEPENDENCY_REFERENCE, at, message, hint);
        }
    }
}

fn check_version(
    entry: &Node<'_>,
    dependency: &Dependency,
    dialect: Dialect,
    findings: &mut Findings<'_>,
) {
    let text = dependency.version.as_str();
    let at = entry.get("version").map_or(entry.position, |node| node.position);
    let mistyped = |node: &Node<'_>| !node.is_null() && node.as_str().is_none();
    if entry.get("version").is_some_and(mistyped) {
        return; // Reported as such when the metadata was read.
    }
    if text.is_empty() {
        let hint = r#"write a constraint such as ">=v1.2.0", or a digest"#;
        let message = "dependency has no version";
        findings.advise(&rules::DEPENDENCY_VERSION, at, message, hint);
        return;
    }
    // The first dialect meant an exact tag, whatever it looks like.
    if is_digest(text) || (dialect == Dialect::First && is_tag(text)) {
        return;
    }
    match Constraint::parse(text) {
        Ok(constraint) => check_constraint(&constraint, at, findings),
        Err(error) => {
            let message = format!("version {text:?} is neither a constraint nor a digest: {error}");
            let hint = "tags that are no versions, such as latest, cannot be depended on";
            findings.advise(&rules::DEPENDENCY_VERSION, at, message, hint);
        }
    }
}

/// Points out constraints that mean something else than they seem to.
pub(super) fn check_constraint(constraint: &Constraint, at: Position, findings: &mut Findings<'_>) {
    let text = constraint.original().trim();
    let bare = text.trim_start_matches(['=', ' ']);
    if constraint.is_partial_version() {
        let message = format!("version {text:?} is not exact: it means the range {bare}.x");
        let hint = format!("write {:?}, or all three numbers", format!("~{bare}"));
        findings.advise(&rules::VERSION_PARTIAL, at, message, hint);
    }
    if let Some(bound) = constraint.leaky_upper_bound() {
        let full = Version::parse(bound).map_or_else(|_| bound.to_owned(), |v| v.to_string());
        let message = format!("range {text:?} also admits pre-releases of {bound}");
        let hint = format!("write <{full}-0 to exclude them");
        findings.advise(&rules::VERSION_PRERELEASE, at, message, hint);
    }
}

/// What is wrong with a dependency's package.
#[derive(Debug, PartialEq, Eq)]
enum ReferenceProblem<'p> {
    Pinned { repository: &'p str },
    Malformed { reason: String },
}

fn package_reference_problem(package: &str) -> Option<ReferenceProblem<'_>> {
    if package.contains("://") {
        return Some(ReferenceProblem::Malformed { reason: "it has a URL scheme".to_owned() });
    }
    if let Some((repository, _)) = package.split_once('@') {
        return Some(ReferenceProblem::Pinned { repository });
    }
    let last = package.rsplit('/').next().unwrap_or(package);
    if let Some((_, tag)) = last.split_once(':') {
        let repository = &package[..package.len() - tag.len() - 1];
        return Some(ReferenceProblem::Pinned { repository });
    }
    let problem = Repository::parse(package, &Rules::weak()).err()?;
    Some(ReferenceProblem::Malformed { reason: problem.to_string() })
}

/// Splits a repository into registry, if it names one, and path.
pub(super) fn split_registry(package: &str) -> (&str, &str) {
    match package.split_once('/') {
        Some((host, path)) if host == "localhost" || host.contains(['.', ':']) => (host, path),
        _ => ("", package),
    }
}

fn is_digest(text: &str) -> bool {
    text.parse::<Digest>().is_ok_and(|digest| digest.algorithm() == Algorithm::Sha256)
}

fn is_tag(text: &str) -> bool {
    Repository::parse("any/thing", &Rules::weak()).is_ok_and(|any| any.tag(text).is_ok())
}
