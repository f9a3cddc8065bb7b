//! More objects of another version than are remembered: lists, pages, deletions and watches end,
//! and the webhook is asked about each object once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::log::Log;
use crate::outbound::{Call, CallError, Outbound, Reply};
use crate::testing::{ask, send};
use crate::world::SystemWorld;
use crate::{Options, Server};

const MANY: usize = 10_000;
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const V1: &str = "/apis/example.org/v1/namespaces/default/smalls";
const V2: &str = "/apis/example.org/v2/namespaces/default/smalls";

/// A webhook in this process that counts what it is asked, and hangs if it is told to.
#[derive(Default)]
struct Hook {
    calls: AtomicUsize,
    objects: AtomicUsize,
    hangs: AtomicBool,
}

impl Outbound for Hook {
    fn post(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        Box::pin(async move {
            if self.hangs.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            let question: Value = serde_json::from_slice(&call.body).unwrap();
            let request = &question["request"];
            let mut objects = request["objects"].as_array().unwrap().clone();
            self.calls.fetch_add(1, Ordering::SeqCst);
            self.objects.fetch_add(objects.len(), Ordering::SeqCst);
            for object in &mut objects {
                object["apiVersion"] = request["desiredAPIVersion"].clone();
            }
            let answer = json!({
                "apiVersion": question["apiVersion"], "kind": "ConversionReview",
                "response": {"uid": request["uid"], "convertedObjects": objects,
                    "result": {"status": "Success"}},
            });
            let body = Bytes::from(answer.to_string());
            Ok(Reply { code: 200, media: "application/json".to_owned(), body })
        })
    }
}

/// A server with many objects in the version they are stored in.
async fn with_smalls(count: usize) -> (Arc<Server>, Arc<Hook>) {
    let hook = Arc::new(Hook::default());
    let world = SystemWorld::with(Arc::clone(&hook) as _);
    let server = Server::new(Log::in_memory(), Options::default(), Arc::new(world));
    server.furnish().await.unwrap();
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let webhook = json!({
        "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://hook.example.org/"},
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "smalls.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced",
            "versions": [version("v1", true), version("v2", false)],
            "conversion": {"strategy": "Webhook", "webhook": webhook},
            "names": {"plural": "smalls", "kind": "Small", "listKind": "SmallList"}},
    });
    let made = ask(&server, "POST", DEFINITIONS, definition).await;
    assert_eq!(made["kind"], "CustomResourceDefinition", "{made}");
    let kind = server.kinds.find("example.org", "v1", "smalls").unwrap();
    for n in 0..count {
        let name = format!("s{n:05}");
        let label = if n % 1000 == 7 { "rare" } else { "common" };
        let object = json!({"kind": "Small", "apiVersion": "example.org/v1", "metadata": {
            "name": name, "namespace": "default", "uid": name, "labels": {"is": label}}});
        let key = kind.key(Some("default"), &name);
        let value = Some(Bytes::from(object.to_string()));
        let expect = crate::log::Expect::Absent;
        server.log.write(crate::log::Write { key, expect, value }).await.unwrap();
    }
    (server, hook)
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap_or_else(|| panic!("{list}"));
    let all = items.iter().map(|item| {
        assert!(item["apiVersion"] == "example.org/v2" || item.get("apiVersion").is_none());
        item["metadata"]["name"].as_str().unwrap().to_owned()
    });
    all.collect()
}

#[tokio::test]
async fn a2_lists_and_pages_of_ten_thousand_converted_objects_end() {
    let (server, hook) = with_smalls(MANY).await;
    let get = async |query: &str| ask(&server, "GET", &format!("{V2}{query}"), Value::Null).await;
    assert_eq!(names(&get("").await).len(), MANY);
    let asked = hook.objects.load(Ordering::SeqCst);
    assert_eq!(asked, MANY, "each object once");
    assert!(hook.calls.load(Ordering::SeqCst) <= MANY / 100, "and not one by one");
    assert_eq!(names(&get("?resourceVersion=0").await).len(), MANY);
    assert_eq!(names(&get("?labelSelector=is%3Drare").await).len(), MANY / 1000);
    assert_eq!(names(&get("?labelSelector=x%3Dy").await).len(), 0);
    // A page costs a page.
    let before = hook.objects.load(Ordering::SeqCst);
    let page = get("?limit=500").await;
    assert_eq!(names(&page).len(), 500);
    assert!(hook.objects.load(Ordering::SeqCst) <= before + 501);
    let mut seen: BTreeSet<String> = names(&page).into_iter().collect();
    let mut token = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
    while !token.is_empty() {
        let page = get(&format!("?limit=3000&continue={token}")).await;
        seen.extend(names(&page));
        token = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!(seen.len(), MANY);
}

#[tokio::test]
async fn a2_a_collection_of_ten_thousand_converted_objects_can_be_deleted() {
    let (server, _) = with_smalls(MANY).await;
    let gone = ask(&server, "DELETE", V2, Value::Null).await;
    assert_eq!(names(&gone).len(), MANY);
    assert_eq!(names(&ask(&server, "GET", V2, Value::Null).await).len(), 0);
}

#[tokio::test]
async fn a2_a_watch_of_converted_objects_asks_for_many_at_once() {
    let (server, hook) = with_smalls(MANY).await;
    let body = send(&server, "GET", &format!("{V2}?watch=1"), Value::Null).await;
    let mut lines = body.into_data_stream();
    for n in 0..MANY {
        let line: Value = serde_json::from_slice(&lines.next().await.unwrap().unwrap()).unwrap();
        assert_eq!(line["type"], "ADDED", "{n}: {line}");
        assert_eq!(line["object"]["apiVersion"], "example.org/v2");
    }
    assert_eq!(hook.objects.load(Ordering::SeqCst), MANY);
    assert!(hook.calls.load(Ordering::SeqCst) <= MANY / 20);
    // What happens later comes converted, too.
    ask(&server, "DELETE", &format!("{V1}/s00003"), Value::Null).await;
    let line: Value = serde_json::from_slice(&lines.next().await.unwrap().unwrap()).unwrap();
    assert_eq!(
        (&line["type"], &line["object"]["metadata"]["name"]),
        (&json!("DELETED"), &json!("s00003"))
    );
}

#[tokio::test(start_paused = true)]
async fn a2_a_watch_ends_in_time_whatever_its_webhook_does() {
    let (server, hook) = with_smalls(100).await;
    hook.hangs.store(true, Ordering::SeqCst);
    let began = tokio::time::Instant::now();
    let path = format!("{V2}?watch=1&timeoutSeconds=5");
    let mut lines = send(&server, "GET", &path, Value::Null).await.into_data_stream();
    assert!(lines.next().await.is_none());
    // The clock is one that only waiting moves.
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
}
