//! A webhook that both servers call: what it does is in the path.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use base64::Engine as _;
use http_body_util::BodyExt as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A webhook that listens.
pub(crate) struct Hook {
    address: SocketAddr,
    certificate: String,
}

impl Hook {
    /// Starts one, on a port of its own, with a certificate of its own.
    pub(crate) async fn start() -> Self {
        let key = rcgen::KeyPair::generate().expect("a key");
        let params =
            rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
        let signed = params.self_signed(&key).expect("a certificate");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let private = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![signed.der().clone()], private)
            .expect("a usable certificate");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let router = Router::new().fallback(answer);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, router) = (acceptor.clone(), router.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = TowerToHyperService::new(router);
                    let builder = auto::Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { address, certificate: signed.pem() }
    }

    /// Where it is and how to know it, for probes to put into configurations.
    pub(crate) fn place(&self) -> Value {
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut params =
            rcgen::CertificateParams::new(vec!["other".to_owned()]).expect("parameters");
        params.distinguished_name.push(rcgen::DnType::CommonName, "somebody else");
        let other = params.self_signed(&key);
        json!({
            "url": format!("https://{}", self.address),
            "ca": encode(&self.certificate),
            "other": encode(&other.expect("a certificate").pem()),
        })
    }
}

async fn answer(request: http::Request<Body>) -> http::Response<Body> {
    let path = request.uri().path().to_owned();
    let bytes = request.into_body().collect().await.expect("a body").to_bytes();
    let review: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let asked = &review["request"];
    let (code, body) = match path.as_str() {
        "/missing" => (404, json!("not here")),
        "/broken" => (500, json!("broken")),
        "/garbage" => (200, json!("garbage")),
        "/slow" => {
            tokio::time::sleep(Duration::from_secs(3)).await;
            (200, admission(asked, json!({"allowed": true})))
        }
        _ if path.starts_with("/convert") => (200, crate::hook::convert::answer(&path, &review)),
        _ => (200, admission(asked, said(&path, asked))),
    };
    http::Response::builder()
        .status(code)
        .header("Content-Type", "application/json")
        .body(Body::from(body.to_string()))
        .expect("an answer")
}

fn admission(asked: &Value, mut response: Value) -> Value {
    if response.get("uid").is_none() {
        response["uid"] = asked["uid"].clone();
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

fn said(path: &str, asked: &Value) -> Value {
    match path {
        "/deny" => json!({"allowed": false, "status": {
            "message": "no, thank you", "reason": "Forbidden", "code": 403,
            "details": {"causes": [{"field": "spec.a", "message": "look here", "reason": "FieldValueInvalid"}]}}}),
        "/deny-bare" => json!({"allowed": false}),
        "/deny-reason" => json!({"allowed": false, "status": {"reason": "Invalid", "code": 422}}),
        "/deny-warning" => {
            json!({"allowed": false, "warnings": ["be careful"], "status": {"message": "no"}})
        }
        "/warn" => json!({"allowed": true, "warnings": ["first \"thing\"", "second"]}),
        "/echo" => json!({"allowed": false, "status": {"message": echo(asked).to_string()}}),
        "/wrong-uid" => json!({"allowed": true, "uid": "another"}),
        "/patch-without-type" => json!({"allowed": true, "patch": encode(&json!([]))}),
        "/patch-misfit" => patch(&json!([{"op": "remove", "path": "/spec/nowhere"}])),
        "/seven" => patch(&json!([{"op": "replace", "path": "/spec/replicas", "value": 7}])),
        "/default-field" => {
            patch(&json!([{"op": "add", "path": "/data/added", "value": "by the webhook"}]))
        }
        _ => match path.strip_prefix("/mark/") {
            Some(mark) => patch(&marked(asked, mark)),
            None => json!({"allowed": true}),
        },
    }
}

fn encode(patch: &Value) -> String {
    base64::engine::general_purpose::STANDARD.encode(patch.to_string())
}

fn patch(patch: &Value) -> Value {
    json!({"allowed": true, "patchType": "JSONPatch", "patch": encode(patch)})
}

/// Appends a mark to an annotation, unless it is there already.
fn marked(asked: &Value, mark: &str) -> Value {
    let annotations = asked.pointer("/object/metadata/annotations");
    let before = annotations.and_then(|all| all.get("marks")).and_then(Value::as_str);
    let before = before.unwrap_or_default();
    // The first one to mark looks at what came after it, once.
    let value = format!("{before}{mark}");
    match annotations {
        None => json!([{"op": "add", "path": "/metadata/annotations", "value": {"marks": value}}]),
        Some(_) => json!([{"op": "add", "path": "/metadata/annotations/marks", "value": value}]),
    }
}

/// What was asked, without what must differ between two servers.
fn echo(asked: &Value) -> Value {
    let mut asked = asked.clone();
    asked.as_object_mut().expect("an object").remove("uid");
    for field in ["object", "oldObject"] {
        let metadata = asked.get_mut(field).and_then(|object| object.get_mut("metadata"));
        let Some(metadata) = metadata.and_then(Value::as_object_mut) else { continue };
        for field in ["uid", "creationTimestamp", "resourceVersion"] {
            if metadata.get(field).is_some_and(|value| !value.is_null()) {
                metadata.insert(field.to_owned(), json!("set"));
            }
        }
        for entry in
            metadata.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten()
        {
            entry["time"] = json!("TIME");
        }
    }
    sorted(&asked)
}

/// The same with the fields of all objects in order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().map(|(k, v)| (k.clone(), sorted(v))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// Conversion between versions of a definition.
mod convert {
    use serde_json::{Value, json};

    /// The objects in the version asked for: `spec.host` and `spec.port` in one are
    /// `spec.address` in the other.
    pub(super) fn answer(path: &str, review: &Value) -> Value {
        let asked = &review["request"];
        let wanted = asked["desiredAPIVersion"].as_str().unwrap_or_default();
        let objects = asked["objects"].as_array().cloned().unwrap_or_default();
        let mut converted: Vec<Value> =
            objects.iter().map(|object| self::object(object, wanted)).collect();
        let mut response = json!({"uid": asked["uid"], "result": {"status": "Success"}});
        match path {
            "/convert-failed" => {
                response["result"] = json!({"status": "Failed", "message": "cannot convert that"});
            }
            "/convert-few" => converted.clear(),
            "/convert-uid" => response["uid"] = json!("another"),
            "/convert-name" => {
                for object in &mut converted {
                    object["metadata"]["name"] = json!("renamed");
                }
            }
            "/convert-labels" => {
                for object in &mut converted {
                    object["metadata"]["labels"] = json!({"converted": "yes"});
                    object["metadata"]["finalizers"] = json!(["ignored.example.org/x"]);
                }
            }
            "/convert-version" => {
                for object in &mut converted {
                    object["apiVersion"] = json!("other.example.org/v1");
                }
            }
            _ => {}
        }
        response["convertedObjects"] = json!(converted);
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response})
    }

    fn object(object: &Value, wanted: &str) -> Value {
        let mut object = object.clone();
        object["apiVersion"] = json!(wanted);
        let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
            return object;
        };
        if wanted.ends_with("/v2") {
            let host = spec.remove("host").and_then(|host| host.as_str().map(str::to_owned));
            let port = spec.remove("port").and_then(|port| port.as_i64());
            if let Some(host) = host {
                let port = port.map(|port| format!(":{port}")).unwrap_or_default();
                spec.insert("address".to_owned(), json!(format!("{host}{port}")));
            }
        } else if let Some(Value::String(address)) = spec.remove("address") {
            let (host, port) = address.split_once(':').unwrap_or((&address, ""));
            spec.insert("host".to_owned(), json!(host));
            if let Ok(port) = port.parse::<i64>() {
                spec.insert("port".to_owned(), json!(port));
            }
        }
        object
    }
}
