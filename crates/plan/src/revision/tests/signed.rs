//! What becomes of a revision whose image must be signed, or is somewhere else.

use super::cluster::Cluster;
use super::{TAG, provider};
use crate::signature::Trust;
use serde_json::json;

fn conditions(cluster: &Cluster, name: &str) -> Vec<String> {
    let status = cluster.revisions[name].status.clone().unwrap_or_default();
    let all = status.conditions.unwrap_or_default().into_iter();
    all.map(|one| {
        let message = one.message.unwrap_or_default();
        format!("{}={} {} ({message})", one.condition_type, one.status, one.reason)
    })
    .collect()
}

fn accepted() -> Trust {
    Trust::Accepted { config: "signed".to_owned(), authority: "a".to_owned() }
}

#[test]
fn nothing_is_written_before_the_image_is_accepted() {
    let (mut cluster, name) = provider(&["buckets"]);
    let verification = json!({"provider": "Cosign", "cosign": {"authorities": []}});
    let verification = serde_json::from_value(verification).unwrap();
    cluster.trust = Trust::Asked { config: "signed".to_owned(), verification };
    let why = "signature verification failed: a: no; do b";
    cluster.judged = Trust::Refused(why.to_owned());
    cluster.settle(&name);
    assert!(cluster.objects.is_empty());
    let refused = [
        format!("Verified=False SignatureVerificationFailed ({why})"),
        format!("RevisionHealthy=False UnhealthyPackageRevision (cannot get package: {why})"),
    ];
    assert_eq!(conditions(&cluster, &name), refused);
    cluster.judged = accepted();
    cluster.settle(&name);
    assert_eq!(cluster.objects.len(), 1);
    let all = conditions(&cluster, &name);
    let by = "is signed by a, as ImageConfig signed asks)";
    assert!(all[0].starts_with("Verified=True SignatureVerificationSucceeded (sha256:"), "{all:?}");
    assert!(all[0].ends_with(by), "{all:?}");
    assert_eq!(all[1], "RevisionHealthy=True HealthyPackageRevision ()");
    // A word that is taken back is told, and what is there stays.
    cluster.judged = Trust::Refused(why.to_owned());
    cluster.settle(&name);
    assert_eq!(conditions(&cluster, &name), refused);
    assert_eq!(cluster.objects.len(), 1);
    // Nobody asks any more.
    cluster.trust = Trust::Unasked;
    cluster.settle(&name);
    assert_eq!(conditions(&cluster, &name), ["RevisionHealthy=True HealthyPackageRevision ()"]);
}

#[test]
fn a_package_comes_from_where_image_configurations_say() {
    let (mut cluster, name) = provider(&["buckets"]);
    cluster.treatment.resolved = "mirror.local/cache/p:v1".to_owned();
    let applied = json!([{"name": "mirror", "reason": "RewriteImage"}]);
    cluster.treatment.applied = serde_json::from_value(applied).unwrap();
    cluster.settle(&name);
    let revision = &cluster.revisions[&name];
    assert_eq!(revision.spec.image, TAG, "what somebody asked for stays");
    let status = revision.status.as_ref().unwrap();
    assert_eq!(status.resolved_image.as_deref(), Some("mirror.local/cache/p:v1"));
    let applied = status.applied_image_config_refs.as_deref().unwrap();
    assert_eq!((applied[0].name.as_str(), applied[0].reason.as_str()), ("mirror", "RewriteImage"));
    let from = cluster.fetched.borrow();
    assert!(!from.is_empty());
    assert!(from.iter().all(|one| one.starts_with("mirror.local/cache/p@sha256:")), "{from:?}");
}
