//! What every namespace has: a service account for those who ask for none, and the
//! certificates by which the server is known. Made again when someone takes them away.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Outcome;
use crate::Server;
use crate::rest::Own;
use schema::object::{is_deleting, meta_text};

/// The service account of those who ask for none.
const ACCOUNT: &str = "default";
/// Where the certificates are.
const CERTIFICATES: &str = "kube-root-ca.crt";

/// Whether an object is one of those that every namespace has.
pub(super) fn is_part(resource: &str, name: &str) -> bool {
    matches!((resource, name), ("serviceaccounts.", ACCOUNT) | ("configmaps.", CERTIFICATES))
}

/// Makes what is missing in a namespace.
pub(crate) async fn settle(server: &Arc<Server>, namespace: &str) -> Outcome {
    let Some(bundle) = &server.options.root_ca else { return Outcome::Done };
    let find = |plural: &str| server.kinds.find("", "v1", plural);
    let (Some(namespaces), Some(accounts), Some(maps)) =
        (find("namespaces"), find("serviceaccounts"), find("configmaps"))
    else {
        return Outcome::Done;
    };
    let there = Own::new(&namespaces, None, namespace).get(server);
    if there.is_none_or(|object| is_deleting(&object)) {
        return Outcome::Done;
    }
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}});
    let made = [
        Own::new(&accounts, Some(namespace), ACCOUNT).found(server, account).await,
        certificates(server, &Own::new(&maps, Some(namespace), CERTIFICATES), bundle).await,
    ];
    if made.iter().all(Result::is_ok) { Outcome::Done } else { Outcome::Later }
}

async fn certificates(
    server: &Arc<Server>,
    own: &Own,
    bundle: &str,
) -> Result<(), crate::http::status::Failure> {
    let data = json!({"ca.crt": bundle});
    match own.get(server) {
        Some(object) if object.get("data") == Some(&data) => Ok(()),
        Some(object) => {
            let uid = meta_text(&object, "uid");
            own.amend(server, uid, |object| object["data"] = data.clone()).await
        }
        None => own.found(server, map(&data)).await,
    }
}

fn map(data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": CERTIFICATES,
            "annotations": {
                "kubernetes.io/description": "Contains a CA bundle that can be used to verify \
                    the kube-apiserver when using internal endpoints such as the internal service \
                    IP or kubernetes.default.svc. No other usage is guaranteed across \
                    distributions of Kubernetes clusters.",
            },
        },
        "data": data,
    })
}
