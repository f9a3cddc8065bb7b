//! Objects go through the types and come out as they were.

use super::lock::Lock;
use super::revision::Revision;
use super::{ImageConfig, Package};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value as Json, json};

fn survives<T: Serialize + DeserializeOwned>(object: &Json) {
    let typed: T = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(typed).unwrap(), *object);
}

#[test]
fn nothing_of_a_package_is_lost() {
    survives::<Package>(&json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider",
        "metadata": {
            "name": "provider-aws", "creationTimestamp": "2024-01-01T00:00:00Z",
            "managedFields": [{"manager": "kubectl", "operation": "Apply"}],
            "labels": {"team": "a"}, "finalizers": ["x"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"}],
        },
        "spec": {
            "package": "crossplane/provider-aws:v0.15.0", "packagePullPolicy": "IfNotPresent",
            "revisionActivationPolicy": "Automatic", "revisionHistoryLimit": 0,
            "packagePullSecrets": [{"name": "a", "later": true}], "skipDependencyResolution": false,
            "controllerConfigRef": {"name": "aws-config"}, "fieldOfTheFuture": {"a": [1, 2]},
        },
        "status": {
            "currentRevision": "provider-aws-0123", "conditions": [{
                "type": "Healthy", "status": "True", "reason": "HealthyPackageRevision",
                "lastTransitionTime": "2024-01-01T00:00:00Z", "observedGeneration": 3,
            }],
        },
        "alsoNew": 1,
    }));
}

#[test]
fn nothing_of_a_revision_or_lock_is_lost() {
    survives::<Revision>(&json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision",
        "metadata": {"name": "r"},
        "spec": {"desiredState": "", "image": "a/b:v1", "revision": 2, "later": 1},
        "status": {"objectRefs": [{"apiVersion": "v1", "kind": "X", "name": "y"}]},
    }));
    survives::<Lock>(&json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "Lock", "metadata": {"name": "lock"},
        "packages": [{"name": "r", "source": "a/b", "version": "v1", "dependencies": []}],
        "customResourceDefinitions": {"a.b.c": "p"},
    }));
    survives::<ImageConfig>(&json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "ImageConfig", "metadata": {"name": "i"},
        "spec": {"matchImages": [{"type": "Prefix", "prefix": "a"}], "rewriteImage": {"prefix": "b"}},
    }));
}

#[test]
fn null_is_absence() {
    let lock: Lock = serde_json::from_value(json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "Lock", "metadata": {"name": "lock"},
        "packages": [{"name": "r", "type": null, "source": "a", "version": "v1", "dependencies": null}],
    }))
    .unwrap();
    let packages = lock.packages.unwrap();
    assert_eq!((packages[0].package_type.as_ref(), packages[0].dependencies.len()), (None, 0));
}

#[test]
fn a_value_of_the_wrong_type_is_refused() {
    let object = json!({"apiVersion": "a", "kind": "b", "spec": {"package": 3}});
    assert!(serde_json::from_value::<Package>(object).is_err());
}
