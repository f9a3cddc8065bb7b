//! `metrics.k8s.io`: what pods and nodes use, from whatever counts it. An answer has those of the pods and
//! nodes there are that something is known of.

use serde_json::{Value, json};

use super::list::Selection;
use super::{Answer, Request, present, store};
use crate::Server;
use crate::heavy;
use crate::http::negotiate::Form;
use crate::http::status::Failure;
use crate::kind::Kind;
use schema::object::meta_text;
use workload::usage;

/// Answers a GET, of one or of many.
pub(super) fn read_usage(server: &Server, request: &Request) -> Result<Answer, Failure> {
    if request.query.flag("watch") && request.target.name.is_none() {
        return Err(Failure::method_not_allowed());
    }
    // As a metrics server, it knows no tables; kubectl prints what it is given.
    let form = if request.form == Form::Table { Form::Object } else { request.form };
    let request = &Request { form, ..request.clone() };
    // Readings have the names of what they are of: pods are counted as pods.
    let objects = server
        .kinds
        .find("", "v1", &request.kind.plural)
        .ok_or_else(|| Failure::not_found(&request.kind, request.name()))?;
    if request.target.name.is_some() {
        return read_single(server, request, &objects);
    }
    let selection = Selection::parse(request)?;
    let snapshot = server.log.list(&objects.prefix(request.namespace()), None);
    let snapshot = snapshot.map_err(|_| Failure::internal("the present state is too old"))?;
    let weight = snapshot.entries.iter().map(|(_, entry)| entry.value.len()).sum();
    heavy::do_aside(weight, || {
        let opened = snapshot.entries.iter().filter_map(|(_, one)| store::open(&objects, one).ok());
        let wanted = opened.filter(|object| selection.wants(object));
        let items =
            wanted.filter_map(|object| describe_usage(server, &request.kind, &object)).collect();
        Ok(Answer::ok(present::many(server, request, items, &json!({}))))
    })
}

fn read_single(server: &Server, request: &Request, objects: &Kind) -> Result<Answer, Failure> {
    let entry = server.log.get(&objects.key(request.namespace(), request.name()));
    let entry = entry.ok_or_else(|| Failure::not_found(objects, request.name()))?;
    let object = store::open(objects, &entry)?;
    let reading = describe_usage(server, &request.kind, &object).ok_or_else(|| {
        let plural = request.kind.kind.to_lowercase();
        let name = request.namespace().map(|namespace| format!("{namespace}/{}", request.name()));
        let name = name.unwrap_or_else(|| request.name().to_owned());
        Failure::not_found(&Kind { plural, ..(*request.kind).clone() }, &name)
    })?;
    Ok(Answer::ok(present::one(server, request, reading)))
}

/// The reading of a pod or a node, if there is one.
fn describe_usage(server: &Server, kind: &Kind, object: &Value) -> Option<Value> {
    let (meter, now) = (server.options.usage.as_ref()?, server.world.now());
    if kind.namespaced {
        Some(usage::pod_metrics(object, &meter.read_pod(meta_text(object, "uid"))?, now))
    } else {
        Some(usage::node_metrics(object, &meter.read_node(meta_text(object, "name"))?, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::log::Log;
    use crate::runtime::{MeasuredUsage, UsageMeter, UsageReading};
    use crate::testing::{ask, server, server_with};
    use std::sync::Arc;
    use std::time::Duration;

    const GROUP: &str = "/apis/metrics.k8s.io/v1beta1";

    /// Readings of a node called `apron`, and of the pods with these uids.
    #[derive(Debug, Default)]
    struct KnownPods(std::sync::Mutex<Vec<String>>);

    impl UsageMeter for KnownPods {
        fn read_pod(&self, uid: &str) -> Option<UsageReading> {
            let used = MeasuredUsage { cpu_nano: 1_234_567, memory: 13 << 20 };
            let parts = vec![("c".to_owned(), used)];
            let window = Duration::from_millis(15_003);
            let is_known = self.0.lock().unwrap().iter().any(|known| known == uid);
            is_known.then_some(UsageReading { at: 1_700_000_000, window, parts })
        }

        fn read_node(&self, name: &str) -> Option<UsageReading> {
            let used = MeasuredUsage { cpu_nano: 250_000_000, memory: 4_097 };
            let parts = vec![(String::new(), used)];
            let window = Duration::from_secs(60);
            (name == "apron").then_some(UsageReading { at: 1_700_000_000, window, parts })
        }
    }

    async fn metered() -> (Arc<Server>, Arc<KnownPods>) {
        let meter = Arc::new(KnownPods::default());
        let options = Options { usage: Some(Arc::clone(&meter) as _), ..Options::default() };
        (server_with(Log::in_memory(), options).await, meter)
    }

    async fn get(server: &Arc<Server>, path: &str) -> Value {
        ask(server, "GET", path, Value::Null).await
    }

    async fn make_pod(server: &Arc<Server>, name: &str, labels: Value) -> String {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        let made = ask(server, "POST", "/api/v1/namespaces/default/pods", pod).await;
        made["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn the_group_is_what_a_metrics_server_lists_or_is_not_there() {
        let (metered, _) = metered().await;
        let resource = |name: &str, namespaced: bool, kind: &str| {
            json!({"name": name, "singularName": "", "namespaced": namespaced, "kind": kind,
                "verbs": ["get", "list"]})
        };
        // As release 0.8.0 of the metrics server answers.
        let expected = json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "metrics.k8s.io/v1beta1",
            "resources": [resource("nodes", false, "NodeMetrics"), resource("pods", true, "PodMetrics")],
        });
        assert_eq!(get(&metered, GROUP).await, expected);
        let is_listed = |groups: &Value| {
            let groups = groups["groups"].as_array().unwrap();
            groups.iter().any(|group| group["name"] == "metrics.k8s.io")
        };
        assert!(is_listed(&get(&metered, "/apis").await));
        let described = get(&metered, "/openapi/v3/apis/metrics.k8s.io/v1beta1").await;
        let path = "/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods/{name}";
        assert_eq!(described["paths"][path].as_object().unwrap().len(), 1, "{described:#}");
        let bare = server(Log::in_memory()).await;
        assert!(!is_listed(&get(&bare, "/apis").await));
        assert!(bare.kinds.find("metrics.k8s.io", "v1beta1", "pods").is_none());
    }

    #[tokio::test]
    async fn readings_are_those_of_the_pods_there_are_and_that_are_asked_for() {
        let (server, meter) = metered().await;
        let known = make_pod(&server, "known", json!({"app": "a"})).await;
        make_pod(&server, "fresh", json!({"app": "a"})).await;
        let other = make_pod(&server, "other", json!({"app": "b"})).await;
        meter.0.lock().unwrap().extend([known, other, "of a pod that is gone".to_owned()]);
        let names = |list: &Value| -> Vec<String> {
            let items = list["items"].as_array().unwrap().iter();
            items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
        };
        let all = get(&server, &format!("{GROUP}/pods")).await;
        assert_eq!(all["kind"], "PodMetricsList");
        assert_eq!(names(&all), ["known", "other"]);
        let within = format!("{GROUP}/namespaces/default/pods");
        let chosen = get(&server, &format!("{within}?labelSelector=app%3Da")).await;
        assert_eq!(names(&chosen), ["known"]);
        let single = get(&server, &format!("{within}?fieldSelector=metadata.name%3Dother")).await;
        assert_eq!(names(&single), ["other"]);
        assert!(names(&get(&server, &format!("{GROUP}/namespaces/other/pods")).await).is_empty());
        let one = get(&server, &format!("{within}/known")).await;
        assert_eq!(
            one,
            json!({
                "kind": "PodMetrics", "apiVersion": "metrics.k8s.io/v1beta1",
                "metadata": {"name": "known", "namespace": "default",
                    "creationTimestamp": "1970-01-01T00:00:00Z", "labels": {"app": "a"}},
                "timestamp": "2023-11-14T22:13:20Z", "window": "15.003s",
                "containers": [{"name": "c", "usage": {"cpu": "1234567n", "memory": "13Mi"}}],
            })
        );
    }

    #[tokio::test]
    async fn what_is_not_known_is_not_found_and_nothing_can_be_written() {
        let (server, _) = metered().await;
        make_pod(&server, "fresh", json!({})).await;
        let within = format!("{GROUP}/namespaces/default/pods");
        for (path, expected) in [
            (format!("{within}/fresh"), r#"podmetrics.metrics.k8s.io "default/fresh" not found"#),
            (format!("{within}/none"), r#"pods "none" not found"#),
            (format!("{GROUP}/nodes/none"), r#"nodes "none" not found"#),
        ] {
            let answer = get(&server, &path).await;
            assert_eq!((&answer["code"], &answer["message"]), (&json!(404), &json!(expected)));
        }
        assert_eq!(get(&server, &format!("{within}?watch=1")).await["code"], 405);
        assert_eq!(get(&server, &format!("{GROUP}/pods/fresh")).await["code"], 405);
        for method in ["POST", "DELETE"] {
            assert_eq!(ask(&server, method, &within, json!({})).await["code"], 405, "{method}");
        }
    }

    #[tokio::test]
    async fn a_node_is_read_as_a_whole() {
        let (server, _) = metered().await;
        for name in ["apron", "other"] {
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
            ask(&server, "POST", "/api/v1/nodes", node).await;
        }
        let list = get(&server, &format!("{GROUP}/nodes")).await;
        let [node] = list["items"].as_array().unwrap().as_slice() else { panic!("{list:#}") };
        assert_eq!(node["usage"], json!({"cpu": "250m", "memory": "4097"}));
        assert_eq!((&node["window"], &node["metadata"]["name"]), (&json!("1m0s"), &json!("apron")));
        assert_eq!(get(&server, &format!("{GROUP}/nodes/apron")).await["kind"], "NodeMetrics");
    }
}
