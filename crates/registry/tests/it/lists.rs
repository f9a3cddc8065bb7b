//! Lists and their pages; what the registry says about itself.

use crate::support::{World, artifact};
use serde_json::json;

#[tokio::test]
async fn tags_are_listed_in_pages() {
    let world = World::new();
    world.get("/v2/a/tags/list").await.refuses(404, "NAME_UNKNOWN");
    let raw = world.push("a", "b", "x").await;
    for tag in ["c", "a", "B", "d", "_"] {
        world.put("a", tag, &raw).await.is(201);
    }
    let all = world.get("/v2/a/tags/list").await.is(200);
    assert_eq!(all.json(), json!({ "name": "a", "tags": ["B", "_", "a", "b", "c", "d"] }));
    assert!(all.headers.get("link").is_none());
    let mut path = "/v2/a/tags/list?n=2".to_owned();
    let mut pages = Vec::new();
    loop {
        let page = world.get(&path).await.is(200);
        pages.push(page.json()["tags"].clone());
        let Some(link) = page.headers.get("link") else { break };
        let link = link.to_str().unwrap();
        path = link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap().to_owned();
    }
    assert_eq!(pages, [json!(["B", "_"]), json!(["a", "b"]), json!(["c", "d"])]);
    let check = async |query: &str, expected: serde_json::Value| {
        let page = world.get(&format!("/v2/a/tags/list?{query}")).await.is(200);
        assert_eq!(page.json()["tags"], expected, "{query}");
        page
    };
    let none = check("n=0", json!([])).await;
    assert!(none.headers.get("link").is_none());
    check("last=b", json!(["c", "d"])).await;
    check("last=bb&n=1", json!(["c"])).await;
    check("n=100", json!(["B", "_", "a", "b", "c", "d"])).await;
    world.get("/v2/a/tags/list?n=x").await.is(400);
}

#[tokio::test]
async fn repositories_are_listed_in_pages() {
    let world = World::new();
    assert_eq!(world.get("/v2/_catalog").await.is(200).json(), json!({ "repositories": [] }));
    for name in ["b/c", "a", "b"] {
        world.push(name, "v1", "x").await;
    }
    world.blob("only-blobs", b"x").await;
    let all = world.get("/v2/_catalog").await.is(200).json();
    assert_eq!(all, json!({ "repositories": ["a", "b", "b/c"] }));
    let page = world.get("/v2/_catalog?n=2").await.is(200);
    assert_eq!(page.json()["repositories"], json!(["a", "b"]));
    assert_eq!(page.header("link"), "</v2/_catalog?n=2&last=b>; rel=\"next\"");
    let rest = world.get("/v2/_catalog?n=2&last=b").await.is(200);
    assert_eq!(rest.json()["repositories"], json!(["b/c"]));
}

#[tokio::test]
async fn referrers_are_listed_filtered_and_paged() {
    let world = World::new();
    let subject = world.push("a", "v1", "subject").await;
    let path = format!("/v2/a/referrers/{}", subject.digest);
    let none = world.get(&path).await.is(200);
    assert_eq!(none.header("content-type"), "application/vnd.oci.image.index.v1+json");
    assert_eq!(none.json()["manifests"], json!([]));
    world.get(&path.replace("/a/", "/unknown/")).await.is(200);
    world.get("/v2/a/referrers/sha256:bad").await.refuses(400, "DIGEST_INVALID");
    let config = world.blob("a", b"{}").await;
    for (kind, note) in
        [("application/x.sig", "1"), ("application/x.sig", "2"), ("application/x+y", "3")]
    {
        let raw = artifact(config.clone(), &subject, kind, note);
        world.put("a", &raw.digest.to_string(), &raw).await.is(201);
    }
    let all = world.get(&path).await.is(200);
    assert_eq!(all.json()["manifests"].as_array().unwrap().len(), 3);
    assert!(all.headers.get("oci-filters-applied").is_none());
    let one = world.get(&format!("{path}?artifactType=application/x%2By")).await.is(200);
    assert_eq!(one.header("oci-filters-applied"), "artifactType");
    let list = one.json()["manifests"].clone();
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(list[0]["artifactType"], "application/x+y");
    assert_eq!(list[0]["annotations"], json!({ "note": "3" }));
    let page = world.get(&format!("{path}?n=1&artifactType=application/x.sig")).await.is(200);
    let link = page.header("link").to_owned();
    let next = link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap();
    let second = world.get(next).await.is(200);
    assert_ne!(second.json()["manifests"][0], page.json()["manifests"][0]);
    assert!(second.headers.get("link").is_none());
    let gone = all.json()["manifests"][0]["digest"].as_str().unwrap().to_owned();
    world.delete(&format!("/v2/a/manifests/{gone}")).await.is(202);
    assert_eq!(world.get(&path).await.json()["manifests"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn the_registry_speaks_of_itself() {
    let world = World::new();
    for path in ["/v2/", "/v2"] {
        let answer = world.get(path).await.is(200);
        assert_eq!(answer.header("docker-distribution-api-version"), "registry/2.0");
    }
    // Nothing is claimed that is not there: every endpoint that is named answers.
    let found = world.get("/v2/_oci/ext/discover").await.is(200).json();
    assert_eq!(found["extensions"].as_array().map(Vec::len), Some(1));
    assert_eq!(found["extensions"][0]["name"], "_oci");
    let endpoint = found["extensions"][0]["endpoints"][0].as_str().unwrap();
    world.get(&format!("/v2/{endpoint}")).await.is(200);
    world.get("/healthz").await.is(200);
    world.get("/readyz").await.is(200);
    let text = String::from_utf8(world.get("/metrics").await.is(200).body.to_vec()).unwrap();
    assert!(
        text.contains("apron_registry_requests_total{method=\"GET\",status=\"2xx\"} 6"),
        "{text}"
    );
    world.get("/nothing").await.is(404);
    world.call("POST", "/v2/", &[], "").await.refuses(405, "UNSUPPORTED");
    world.get("/v2/UPPER/tags/list").await.refuses(400, "NAME_INVALID");
}
