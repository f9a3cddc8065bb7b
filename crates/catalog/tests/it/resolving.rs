//! From constraints on kinds to packages.

use crate::support::{Kept, definition, head, provider, read};
use catalog::answer::{Resolution, ResolutionVerdict};
use catalog::resolve::ResolveTerms;
use catalog::{Definition, KindReference, Origin, Outcome, Package, Rights};
use xpkg::constraint::Constraint;

const GROUP: &str = "s3.example.org";

fn bucket(versions: &[&str]) -> Definition {
    definition("buckets", "Bucket", GROUP, versions)
}

fn policy() -> Definition {
    definition("policies", "Policy", GROUP, &["v1"])
}

/// A repository with versions of a package: tag, and what it is.
fn publish(kept: &Kept, repository: &str, versions: &[(&str, Package)]) {
    let digest = |tag: &str| format!("{repository}-{tag}");
    let heads: Vec<_> = versions.iter().map(|(tag, _)| head(&digest(tag), &[tag])).collect();
    let contents = |wanted: &str| -> Outcome {
        let found = versions.iter().find(|(tag, _)| digest(tag) == wanted);
        read(found.unwrap().1.clone())
    };
    kept.follow(repository, &heads, contents);
}

fn resolve(kept: &Kept, kind: &str, terms: &ResolveTerms) -> Resolution {
    let kind = KindReference::parse(kind).unwrap();
    kept.index.resolve(&kind, terms, &Rights::all()).unwrap()
}

/// A resolution in short: `verdict: repository (kinds) tag tag; …`.
fn told(kept: &Kept, kind: &str, terms: &ResolveTerms) -> String {
    let found = resolve(kept, kind, terms);
    let candidates = found.candidates.iter().map(|it| {
        let tags: Vec<&str> = it.versions.iter().map(|version| version.tag.as_str()).collect();
        let plural = |name: &String| name.split_once('.').unwrap().0.to_owned();
        let kinds: Vec<String> = it.kinds.iter().map(plural).collect();
        format!("{} ({}) {}", it.repository, kinds.join(" "), tags.join(" "))
    });
    let rejected = found.rejected.iter().map(|it| format!("\n  {} {}", it.version, it.reason));
    let candidates: Vec<String> = candidates.collect();
    format!("{:?}: {}{}", found.verdict, candidates.join("; "), rejected.collect::<String>())
}

#[test]
fn a_kind_of_one_package_is_resolved_to_the_versions_that_serve_it() {
    let kept = Kept::new();
    let provider = |versions: &[&str]| provider("p", vec![bucket(versions)]);
    let broken = Package { problem: Some("no licence".to_owned()), ..provider(&["v1", "v1beta1"]) };
    publish(
        &kept,
        "team/s3",
        &[
            ("v1.0.0", provider(&["v1beta1"])),
            ("v1.1.0", provider(&["v1", "v1beta1"])),
            ("v2.0.0", provider(&["v1"])),
            ("v2.1.0", broken),
            ("v3.0.0-rc.1", provider(&["v1"])),
            ("latest", provider(&["v1", "v1beta1"])),
        ],
    );
    let plain = ResolveTerms::default();
    insta::assert_snapshot!(told(&kept, "bucket.s3.example.org/v1beta1", &plain), @r"
    Resolved: team/s3 (buckets) v1.1.0 v1.0.0
      latest it has no tag that is a version
      v2.0.0 it does not serve buckets.s3.example.org in v1beta1
      v2.1.0 it cannot be installed: no licence
      v3.0.0-rc.1 it does not serve buckets.s3.example.org in v1beta1
    ");
    let any = told(&kept, "s3.example.org/*, Kind=Bucket", &plain);
    assert!(any.starts_with("Resolved: team/s3 (buckets) v2.0.0 v1.1.0 v1.0.0\n"), "{any}");
    let early = ResolveTerms { has_prereleases: true, ..ResolveTerms::default() };
    let told_early = told(&kept, "buckets.s3.example.org/v1", &early);
    assert!(told_early.starts_with("Resolved: team/s3 (buckets) v2.0.0 v1.1.0 v3.0.0-rc.1\n"));
    let bounded = ResolveTerms {
        constraint: Some(Constraint::parse("<v2.0.0").unwrap()),
        ..ResolveTerms::default()
    };
    let told_bounded = told(&kept, "buckets.s3.example.org/v1", &bounded);
    assert!(told_bounded.starts_with("Resolved: team/s3 (buckets) v1.1.0\n"), "{told_bounded}");
    let found = resolve(&kept, "Bucket.s3.example.org/v1", &plain);
    assert_eq!(found.crd, "buckets.s3.example.org/v1", "the name is the CRD's");
    assert_eq!(found.candidates[0].versions[0].digest, "team/s3-v2.0.0");
    let none = resolve(&kept, "buckets.s3.example.org/v9", &plain);
    assert_eq!((none.verdict, none.candidates.len()), (ResolutionVerdict::Unserved, 0));
    let typed = ResolveTerms { kind: Some("Function".to_owned()), ..ResolveTerms::default() };
    assert_eq!(
        resolve(&kept, "buckets.s3.example.org", &typed).verdict,
        ResolutionVerdict::Unserved
    );
}

#[test]
fn a_kind_of_several_packages_is_for_a_person_to_decide() {
    let kept = Kept::new();
    publish(&kept, "old/s3", &[("v9.0.0", provider("p", vec![bucket(&["v1"])]))]);
    publish(&kept, "team/s3", &[("v1.0.0", provider("p", vec![bucket(&["v1"])]))]);
    let function = Definition { origin: Origin::FunctionInput, ..bucket(&["v1"]) };
    publish(&kept, "team/function", &[("v1.0.0", provider("f", vec![function]))]);
    let asked = "buckets.s3.example.org/v1";
    let found = resolve(&kept, asked, &ResolveTerms::default());
    assert_eq!(found.verdict, ResolutionVerdict::Ambiguous);
    assert_eq!(found.contested, ["buckets.s3.example.org"]);
    let names: Vec<&str> = found.candidates.iter().map(|it| it.repository.as_str()).collect();
    assert_eq!(names, ["old/s3", "team/s3"]);
    let chosen = ResolveTerms { repository: Some("team/s3".to_owned()), ..ResolveTerms::default() };
    let told_chosen = told(&kept, asked, &chosen);
    assert!(told_chosen.starts_with("Resolved: team/s3 (buckets) v1.0.0\n"), "{told_chosen}");
    let kind = KindReference::parse(asked).unwrap();
    let few = Rights::when(|name| name != "old/s3");
    let found = kept.index.resolve(&kind, &ResolveTerms::default(), &few).unwrap();
    assert_eq!(found.verdict, ResolutionVerdict::Resolved, "what may not be pulled is no choice");
}

#[test]
fn a_group_is_resolved_to_all_packages_that_share_none_of_its_kinds() {
    let kept = Kept::new();
    publish(
        &kept,
        "team/buckets",
        &[
            ("v1.0.0", provider("p", vec![])),
            ("v1.1.0", provider("p", vec![bucket(&["v1"])])),
            ("v1.2.0", provider("p", vec![bucket(&["v1"])])),
        ],
    );
    publish(&kept, "team/policies", &[("v1.0.0", provider("p", vec![policy()]))]);
    let asked = "*.s3.example.org/v1";
    insta::assert_snapshot!(
        told(&kept, asked, &ResolveTerms::default()),
        @"Resolved: team/buckets (buckets) v1.2.0 v1.1.0; team/policies (policies) v1.0.0"
    );
    let both = provider("p", vec![bucket(&["v1"]), policy()]);
    publish(&kept, "team/monolith", &[("v1.0.0", both)]);
    let found = resolve(&kept, asked, &ResolveTerms::default());
    assert_eq!(found.verdict, ResolutionVerdict::Ambiguous);
    assert_eq!(found.contested, ["buckets.s3.example.org", "policies.s3.example.org"]);
    assert_eq!(
        resolve(&kept, "*.absent.example.org", &ResolveTerms::default()).verdict,
        ResolutionVerdict::Undefined
    );
    let missing = resolve(&kept, "bukcets.s3.example.org", &ResolveTerms::default());
    assert_eq!(
        (missing.verdict, missing.suggestions),
        (ResolutionVerdict::Undefined, vec!["buckets.s3.example.org".to_owned()])
    );
}
