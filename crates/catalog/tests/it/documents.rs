//! What packages bring, kept whole: documents, fields, comparisons, and the catalog in one file.

use crate::support::{Kept, head, image, look};
use catalog::{KindReference, Outcome, Question, Rights};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value as Json, json};

fn package(version: u32, definitions: &[Json]) -> String {
    let meta = json!({
        "apiVersion": "meta.pkg.crossplane.io/v1",
        "kind": "Provider",
        "metadata": {"name": "aws", "annotations": {
            "meta.crossplane.io/license": "Apache-2.0",
            "meta.crossplane.io/category": "Storage",
            "meta.crossplane.io/keywords": format!("cloud,v{version}"),
        }},
        "spec": {"controller": {"image": format!("example.org/aws:v{version}")}},
    });
    let all: Vec<String> = [meta].iter().chain(definitions).map(ToString::to_string).collect();
    all.join("\n---\n")
}

fn bucket(fields: &Json) -> Json {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "buckets.s3.example.org"},
        "spec": {
            "group": "s3.example.org",
            "names": {"kind": "Bucket", "plural": "buckets"},
            "scope": "Cluster",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object",
                    "properties": {"forProvider": {"type": "object", "properties": fields}},
                }}},
            }}],
        },
    })
}

fn old_fields() -> Json {
    json!({
        "region": {"type": "string", "description": "Where it is."},
        "size": {"type": "integer"},
    })
}

fn network() -> Json {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xnets.example.org"},
        "spec": {
            "group": "example.org",
            "names": {"kind": "XNet", "plural": "xnets"},
            "claimNames": {"kind": "Net", "plural": "nets"},
            "versions": [{"name": "v1", "served": true, "referenceable": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object", "properties": {"cidr": {"type": "string"}}}}}}}],
        },
    })
}

/// Two versions of a package: one loses a field, another kind comes.
async fn catalog() -> Kept {
    let kept = Kept::new();
    let fields = json!({"region": {"type": "string", "description": "Where it is."}});
    let texts = [package(1, &[bucket(&old_fields())]), package(2, &[bucket(&fields), network()])];
    let mut found = Vec::new();
    for text in &texts {
        let (memory, raw) = image("package.yaml", text.as_bytes(), true).await;
        found.push(look(&memory, &raw.digest).await.unwrap());
    }
    let known = |digest: &str| found[usize::from(digest != "d1")].clone();
    let heads = [head("d1", &["v1.0.0"]), head("d2", &["v2.0.0"])];
    kept.follow("team/aws", &heads, known);
    kept
}

#[tokio::test]
async fn documents_are_kept_as_they_were_written() {
    let kept = catalog().await;
    let document = |kind: &str| {
        let kind = KindReference::parse(kind).unwrap();
        kept.index.document(&kind, None, &Rights::all()).unwrap()
    };
    assert_eq!(document("xnets.example.org/v1"), Some(network()));
    assert_eq!(document("nets.example.org"), Some(network()), "a claim comes with its definition");
    let found = document("buckets.s3.example.org").unwrap();
    let fields = &found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(fields["properties"]["forProvider"]["properties"]["size"], Json::Null);
    assert_eq!(document("buckets.s3.example.org/v7"), None);
}

#[tokio::test]
async fn two_versions_are_compared_by_what_the_catalog_knows() {
    let kept = catalog().await;
    let compared = |from, to| {
        let found = kept.index.compare("team/aws", from, to, &Rights::all()).unwrap().unwrap();
        let told = found.comparison.changes.iter().map(|it| {
            let object = it.object.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{} {object} {} {}", it.severity, it.path, it.message)
        });
        told.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(compared("v1.0.0", "v2.0.0"), @r"
    breaking buckets.s3.example.org spec.forProvider.size removed
    note   controller image example.org/aws:v1 becomes example.org/aws:v2
    note xnets.example.org  added
    ");
    assert_eq!(compared("v2.0.0", "v2.0.0"), "");
    let strangers = Rights::when(|_| false);
    assert!(kept.index.compare("team/aws", "v1.0.0", "v2.0.0", &strangers).unwrap().is_none());
    assert!(kept.index.compare("team/aws", "v1.0.0", "v7", &Rights::all()).unwrap().is_none());
}

#[tokio::test]
async fn fields_are_found_by_the_end_of_their_path() {
    let kept = catalog().await;
    let found = |path: &str| -> Vec<String> {
        let all = kept.index.fields(path, 10, &Rights::all()).unwrap();
        all.into_iter().map(|it| format!("{} {} {}", it.crd, it.version, it.path)).collect()
    };
    let region = ["buckets.s3.example.org v1 spec.forProvider.region"];
    assert_eq!(found("forProvider.region"), region);
    assert_eq!(found("REGION"), region);
    assert_eq!(found("forprovider.reg"), region, "the last part may be its beginning");
    assert_eq!(found("cidr"), ["nets.example.org v1 spec.cidr", "xnets.example.org v1 spec.cidr"]);
    assert_eq!(found("status.region"), Vec::<String>::new());
    assert_eq!(found("size"), Vec::<String>::new(), "what is shown of a kind is what counts");
    assert!(kept.index.fields("region", 10, &Rights::when(|_| false)).unwrap().is_empty());
    let all = kept.index.search("forProvider.region", &Rights::all()).unwrap();
    assert_eq!(all.fields[0].description.as_deref(), Some("Where it is."));
}

#[tokio::test]
async fn packages_are_chosen_by_what_they_have_in_common() {
    let kept = catalog().await;
    let all = Rights::all();
    let facets = kept.index.facets(&Question::about(""), &all).unwrap();
    let told: Vec<String> = facets
        .iter()
        .flat_map(|facet| {
            facet.values.iter().map(|it| format!("{} {} {}", facet.name, it.value, it.packages))
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    category Storage 1
    group example.org 1
    group s3.example.org 1
    keyword cloud 1
    keyword v2 1
    license Apache-2.0 1
    type Provider 1
    ");
    for (facet, value, count) in
        [("category", "storage", 1), ("keyword", "v1", 0), ("license", "Apache-2.0", 1)]
    {
        let facets = vec![(facet.to_owned(), value.to_owned())];
        let question = Question { facets, limit: 10, ..Question::default() };
        assert_eq!(kept.index.packages(&question, &all).unwrap().items.len(), count, "{facet}");
    }
    assert!(kept.index.facets(&Question::about(""), &Rights::when(|_| false)).unwrap().is_empty());
}

fn exported(kept: &Kept, rights: &Rights) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    kept.index.export(rights, &mut encoder).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_catalog_goes_through_one_file_and_answers_the_same() {
    let kept = catalog().await;
    let file = exported(&kept, &Rights::all());
    let copy = Kept::new();
    assert_eq!(copy.index.import(&mut &file[..]).unwrap(), 1);
    assert_eq!(exported(&copy, &Rights::all()), file);
    let asked = |kept: &Kept| {
        let kind = KindReference::parse("buckets.s3.example.org/v1").unwrap();
        let all = Rights::all();
        let definers = kept.index.definers(&kind, None, &all).unwrap();
        let schema = kept.index.schema(&kind, "v1", None, &all).unwrap().unwrap();
        let fields = kept.index.fields("region", 10, &all).unwrap();
        let compared = kept.index.compare("team/aws", "v1.0.0", "v2.0.0", &all).unwrap().unwrap();
        json!([definers, String::from_utf8(schema).unwrap(), fields, compared.comparison.changes])
    };
    assert_eq!(asked(&copy), asked(&kept));
    // Once more changes nothing; what is hidden is not in the file.
    copy.index.import(&mut &file[..]).unwrap();
    assert_eq!(exported(&copy, &Rights::all()), file);
    let empty = Kept::new();
    assert_eq!(empty.index.import(&mut &exported(&kept, &Rights::when(|_| false))[..]).unwrap(), 0);
    for damaged in [&b""[..], b"nonsense", &file[..file.len() / 2]] {
        assert!(Kept::new().index.import(&mut &*damaged).is_err());
    }
}

#[tokio::test]
async fn texts_and_schemas_that_never_end_are_kept_short_or_not_at_all() {
    let with_readme = |length: usize| {
        let readme = "word ".repeat(length / 5);
        let mut fields = serde_json::Map::new();
        for number in 0..8000 {
            fields.insert(format!("field{number}"), json!({"type": "string"}));
        }
        package(1, &[bucket(&Json::Object(fields))])
            .replace("\"meta.crossplane.io/license\"", &format!("\"readme\":\"{readme}\",\"x\""))
    };
    let (memory, raw) = image("package.yaml", with_readme(2 << 20).as_bytes(), true).await;
    let outcome = look(&memory, &raw.digest).await.unwrap();
    let Outcome::Package(package) = &outcome else { panic!("{outcome:?}") };
    assert!(package.readme.as_ref().unwrap().len() <= 1 << 20);
    assert!(package.metadata.as_ref().unwrap().to_string().len() < 10_000);
    assert!(package.schemas[0].fields.len() <= 4000);
    let kept = Kept::new();
    kept.follow("team/huge", &[head("d1", &["v1.0.0"])], |_| outcome.clone());
    let found = kept.index.search("field1999", &Rights::all()).unwrap();
    assert!(found.packages.is_empty() && found.fields.len() <= 20);
    let (memory, raw) = image("package.yaml", with_readme(100 << 20).as_bytes(), true).await;
    let outcome = look(&memory, &raw.digest).await.unwrap();
    let Outcome::Broken(reason) = &outcome else { panic!("{outcome:?}") };
    assert!(reason.contains("document_bytes_max"), "{reason}");
    kept.follow("team/broken", &[head("d2", &["v1.0.0"])], |_| outcome.clone());
    let version = kept.index.version("team/broken", "v1.0.0", &Rights::all()).unwrap().unwrap();
    assert_eq!(version.summary.reason.as_ref(), Some(reason), "it is listed with the reason");
}
