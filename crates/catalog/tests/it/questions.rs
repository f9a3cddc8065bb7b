//! Questions, asked by people who may read everything and by those who may not.

use crate::support::{Kept, definition, head, needing, provider, read};
use catalog::{Dependency, KindReference, Outcome, Package, Question, Rights};

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

/// A package that needs a kind, in the words of its author.
fn wanting(name: &str, kind: &str) -> Package {
    let dependency = Dependency {
        kind: "CustomResourceDefinition".to_owned(),
        package: kind.to_owned(),
        version: String::new(),
    };
    Package { dependencies: vec![dependency], ..provider(name, vec![]) }
}

/// A graph in short: `from -> to`, in order.
fn edges(kept: &Kept, repository: &str, depth: usize, rights: &Rights) -> String {
    let graph = kept.index.graph(repository, "v1.0.0", depth, rights).unwrap().unwrap();
    let told = graph.edges.iter().map(|it| format!("{} -> {}", it.from, it.to));
    told.collect::<Vec<_>>().join("; ")
}

#[test]
fn a_need_of_a_kind_leads_to_the_kind_and_on_to_those_that_bring_it() {
    let kept = catalog();
    let needs = [
        ("want/queue", "queues.sqs.example.org/v1"),
        ("want/bucket", "bucket.s3.example.org"),
        ("want/secret", "vaults.secret.example.org/v1"),
        ("want/all", "*.sqs.example.org"),
        // By its looks a repository of the package "v1"; it is none.
        ("want/nobody", "plums.fruit.example.org/v1"),
        ("v1", "queues.sqs.example.org"),
    ];
    for (name, kind) in needs {
        kept.follow(name, &[head(name, &["v1.0.0"])], |_| read(wanting(name, kind)));
    }
    let (all, few) = (Rights::all(), anybody());
    let told = |name: &str, rights: &Rights| edges(&kept, name, 4, rights);
    let queue =
        "crd:queues.sqs.example.org/v1 -> team/aws; want/queue -> crd:queues.sqs.example.org/v1";
    assert_eq!(told("want/queue", &all), queue);
    assert_eq!(
        told("want/bucket", &all),
        "crd:bucket.s3.example.org -> private/aws; crd:bucket.s3.example.org -> team/aws; \
         want/bucket -> crd:bucket.s3.example.org"
    );
    assert_eq!(
        told("want/bucket", &few),
        "crd:bucket.s3.example.org -> team/aws; want/bucket -> crd:bucket.s3.example.org"
    );
    assert_eq!(told("want/secret", &few), "want/secret -> crd:vaults.secret.example.org/v1");
    assert!(told("want/all", &few).contains("crd:*.sqs.example.org -> team/aws"));
    assert_eq!(told("want/nobody", &all), "want/nobody -> crd:plums.fruit.example.org/v1");
    let graph = kept.index.graph("want/queue", "v1.0.0", 4, &all).unwrap().unwrap();
    let kind = graph.nodes.iter().find(|it| it.repository.starts_with("crd:")).unwrap();
    assert_eq!((kind.kind.as_str(), &kind.digest), ("CustomResourceDefinition", &None));
    let brings = graph.nodes.iter().find(|it| it.repository == "team/aws").unwrap();
    assert_eq!(brings.tag.as_deref(), Some("v1.1.0"));
    assert_eq!(edges(&kept, "want/queue", 0, &all), "");
    assert_eq!(kept.index.dependents("v1", &all).unwrap().unwrap(), []);
}

#[test]
fn packages_are_found_by_what_they_need() {
    let kept = catalog();
    for (name, kind) in [
        ("want/plural", "buckets.s3.example.org/v1"),
        ("want/singular", "bucket.s3.example.org"),
        ("want/all", "*.s3.example.org/v1beta1"),
        ("private/want", "buckets.s3.example.org"),
    ] {
        kept.follow(name, &[head(name, &["v1.0.0"])], |_| read(wanting(name, kind)));
    }
    let found = |required: &str, words: &str| {
        let question = Question { requires: Some(required.to_owned()), ..Question::about(words) };
        let page = kept.index.packages(&question, &anybody()).unwrap();
        page.items.into_iter().map(|it| it.repository).collect::<Vec<_>>().join(" ")
    };
    let all = "want/all want/plural want/singular";
    for asked in ["buckets.s3.example.org", "bucket.s3.example.org/v1", "Bucket.s3.example.org"] {
        assert_eq!(found(asked, ""), all, "{asked}");
    }
    assert_eq!(found("buckets.s3.example.org", "plural"), "want/plural");
    assert_eq!(found("queues.sqs.example.org", ""), "");
    assert_eq!(found("registry.example.org/team/aws", ""), "team/platform");
    assert_eq!(found("team/aws", ""), "team/platform");
    // What may not be read gives no names away.
    assert_eq!(found("vaults.secret.example.org", ""), "");
}
