//! Questions, asked by people who may read everything and by those who may not.

use crate::support::{Kept, definition, head, needing, provider, read};
use catalog::{KindReference, Outcome, Package, Question, Rights};

/// A registry with two providers of one kind, one of them private, and a configuration.
pub(crate) fn catalog() -> Kept {
    let kept = Kept::new();
    let buckets = |versions: &[&str]| definition("buckets", "Bucket", "s3.example.org", versions);
    let queues = definition("queues", "Queue", "sqs.example.org", &["v1"]);
    let secret = definition("vaults", "SecretVault", "secret.example.org", &["v1"]);
    let described =
        |package: Package, text: &str| Package { description: Some(text.to_owned()), ..package };
    let contents = move |digest: &str| -> Outcome {
        read(match digest {
            "d1" => described(provider("aws", vec![buckets(&["v1beta1"])]), "clouds of all sorts"),
            "d2" => described(
                provider("aws", vec![buckets(&["v1", "v1beta1"]), queues.clone()]),
                "clouds of all sorts",
            ),
            "d3" => provider("hidden", vec![buckets(&["v1"]), secret.clone()]),
            "d4" => needing(provider("platform", vec![]), "registry.example.org/team/aws", ">=v1"),
            _ => needing(provider("hidden-platform", vec![]), "team/aws", "v1.0.0"),
        })
    };
    kept.follow(
        "team/aws",
        &[head("d1", &["v1.0.0"]), head("d2", &["v1.1.0", "latest"])],
        &contents,
    );
    kept.follow("private/aws", &[head("d3", &["v9.0.0"]), head("d5", &["v8.0.0"])], &contents);
    kept.follow("team/platform", &[head("d4", &["v0.1.0"])], &contents);
    kept
}

fn kind(text: &str) -> KindReference {
    KindReference::parse(text).unwrap()
}

fn anybody() -> Rights {
    Rights::when(|name| !name.starts_with("private/"))
}

/// Definers in short: `repository tag,tag; …`.
fn definers(kept: &Kept, text: &str, rights: &Rights) -> String {
    let found = kept.index.definers(&kind(text), None, rights).unwrap();
    let versions = |it: &catalog::answer::Definer| {
        let all = it.versions.iter().map(|version| version.tags.join(","));
        format!("{} {}", it.repository, all.collect::<Vec<_>>().join(" "))
    };
    let all: Vec<String> = found.packages.iter().map(versions).collect();
    let mark = if found.ambiguous { " ambiguous" } else { "" };
    format!("{}{mark}: {}", found.crd, all.join("; "))
}

#[test]
fn a_kind_leads_to_the_packages_that_bring_it() {
    let kept = catalog();
    let all = Rights::all();
    for (asked, told) in [
        ("buckets.s3.example.org", "team/aws v1.1.0,latest v1.0.0"),
        ("bucket.s3.example.org", "team/aws v1.1.0,latest v1.0.0"),
        ("s3.example.org/v1, Kind=Bucket", "team/aws v1.1.0,latest"),
        ("buckets.s3.example.org/v1beta1", "team/aws v1.1.0,latest v1.0.0"),
        ("buckets.s3.example.org/v7", ""),
    ] {
        let told = format!("buckets.s3.example.org: {told}");
        assert_eq!(definers(&kept, asked, &anybody()), told, "{asked}");
    }
    assert_eq!(
        definers(&kept, "buckets.s3.example.org/v1", &all),
        "buckets.s3.example.org ambiguous: private/aws v9.0.0; team/aws v1.1.0,latest"
    );
}

#[test]
fn who_mistypes_is_told_what_may_be_meant_and_nothing_private() {
    let kept = catalog();
    let suggested = |text: &str, rights: &Rights| {
        kept.index.definers(&kind(text), None, rights).unwrap().suggestions
    };
    assert_eq!(suggested("bukcets.s3.example.org", &anybody()), ["buckets.s3.example.org"]);
    assert_eq!(suggested("buckets.s4.example.org", &anybody()), ["buckets.s3.example.org"]);
    assert_eq!(
        suggested("vault.secret.example.com", &Rights::all()),
        ["vaults.secret.example.org"]
    );
    assert_eq!(suggested("vault.secret.example.com", &anybody()), Vec::<String>::new());
    assert_eq!(suggested("nothing.like.it", &Rights::all()), Vec::<String>::new());
}

#[test]
fn the_very_name_comes_before_what_begins_with_it_and_what_has_the_words() {
    let kept = Kept::new();
    let contents = |_: &str| {
        read(provider(
            "p",
            vec![
                definition("nets", "Net", "a.example.org", &["v1"]),
                definition("netpolicies", "NetPolicy", "a.example.org", &["v1"]),
                definition("zones", "Zone", "net.example.org", &["v1"]),
            ],
        ))
    };
    kept.follow("team/p", &[head("d", &["v1.0.0"])], contents);
    let names = |words: &str| -> Vec<String> {
        let page = kept.index.kinds(&Question::about(words), &Rights::all()).unwrap();
        page.items.into_iter().map(|it| it.definition.name).collect()
    };
    let all = ["nets.a.example.org", "netpolicies.a.example.org", "zones.net.example.org"];
    assert_eq!(names("Net"), all);
    assert_eq!(names("zone net"), ["zones.net.example.org"]);
    assert_eq!(names("nothing"), Vec::<String>::new());
}

#[test]
fn packages_are_found_by_name_and_words_page_by_page() {
    let kept = catalog();
    let names = |words: &str, rights: &Rights| -> Vec<String> {
        let page = kept.index.packages(&Question::about(words), rights).unwrap();
        page.items.into_iter().map(|it| it.repository).collect()
    };
    assert_eq!(names("aws", &anybody()), ["team/aws"]);
    assert_eq!(names("aws", &Rights::all()), ["private/aws", "team/aws"]);
    assert_eq!(names("CLOUD", &anybody()), ["team/aws"]);
    assert_eq!(names("hidden", &anybody()), Vec::<String>::new());
    assert_eq!(names("", &anybody()), ["team/aws", "team/platform"]);
    let mut question = Question { limit: 1, ..Question::default() };
    let mut seen = Vec::new();
    loop {
        let page = kept.index.packages(&question, &Rights::all()).unwrap();
        seen.extend(page.items.into_iter().map(|it| it.repository));
        question.cursor = page.next;
        if question.cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["private/aws", "team/aws", "team/platform"]);
}

#[test]
fn versions_are_meant_by_tag_digest_or_constraint() {
    let kept = catalog();
    let digest = |reference: &str| {
        let found = kept.index.version("team/aws", reference, &anybody()).unwrap();
        found.map(|it| it.summary.digest)
    };
    for (reference, meant) in [
        ("v1.0.0", Some("d1")),
        ("latest", Some("d2")),
        ("d1", Some("d1")),
        (">=v1.0.0", Some("d2")),
        ("<v1.1.0", Some("d1")),
        (">=v2.0.0", None),
        ("nonsense!", None),
    ] {
        assert_eq!(digest(reference).as_deref(), meant, "{reference}");
    }
    assert!(kept.index.version("private/aws", "v9.0.0", &anybody()).unwrap().is_none());
}

#[test]
fn what_needs_a_package_is_known_and_only_told_to_those_who_may_read_it() {
    let kept = catalog();
    let names = |rights: &Rights| -> Vec<String> {
        let all = kept.index.dependents("team/aws", rights).unwrap().unwrap();
        all.into_iter().map(|it| format!("{} {}", it.repository, it.dependency.version)).collect()
    };
    assert_eq!(names(&anybody()), ["team/platform >=v1"]);
    assert_eq!(names(&Rights::all()), ["private/aws v1.0.0", "team/platform >=v1"]);
    assert!(kept.index.dependents("private/aws", &anybody()).unwrap().is_none());
}
