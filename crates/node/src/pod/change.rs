//! Changes of a pod's spec, of which a node takes on what Kubernetes lets change and nothing else.
//!
//! A pod is judged when it begins. An API server that lets more change, or a user who has found a way around it, would
//! otherwise have containers started that were never looked at.

use k8s_openapi::api::core::v1::{Container, PodSpec};

/// The spec a pod began with, with what may have changed since: images, tolerations, a deadline that is new or
/// sooner, and a time to end where there was a negative one.
pub fn follow_spec(first: &PodSpec, told: &PodSpec) -> PodSpec {
    let mut spec = first.clone();
    follow_images(&mut spec.containers, &told.containers);
    if let (Some(own), Some(told)) = (&mut spec.init_containers, &told.init_containers) {
        follow_images(own, told);
    }
    spec.tolerations.clone_from(&told.tolerations);
    let is_sooner = match (first.active_deadline_seconds, told.active_deadline_seconds) {
        (None, Some(_)) => true,
        (Some(before), Some(now)) => now < before,
        (_, None) => false,
    };
    if is_sooner {
        spec.active_deadline_seconds = told.active_deadline_seconds;
    }
    if first.termination_grace_period_seconds.is_some_and(i64::is_negative)
        && told.termination_grace_period_seconds == Some(1)
    {
        spec.termination_grace_period_seconds = Some(1);
    }
    spec
}

fn follow_images(own: &mut [Container], told: &[Container]) {
    for container in own {
        if let Some(now) = told.iter().find(|one| one.name == container.name) {
            container.image.clone_from(&now.image);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn spec(value: Value) -> PodSpec {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_pod_takes_on_new_images_and_no_new_rights() {
        let first = spec(json!({
            "activeDeadlineSeconds": 100, "terminationGracePeriodSeconds": 30,
            "initContainers": [{"name": "i", "image": "i:1"}],
            "containers": [{"name": "c", "image": "c:1", "command": ["/c"]}],
            "volumes": [{"name": "v", "emptyDir": {}}],
        }));
        let told = spec(json!({
            "activeDeadlineSeconds": 50, "terminationGracePeriodSeconds": 1, "hostNetwork": true,
            "initContainers": [{"name": "i", "image": "i:2"}, {"name": "/etc/x", "image": "x"}],
            "containers": [{"name": "c", "image": "c:2", "command": ["/other"],
                "securityContext": {"privileged": true},
                "volumeMounts": [{"name": "v", "mountPath": "/machine"}]}],
            "volumes": [{"name": "v", "hostPath": {"path": "/"}}],
            "tolerations": [{"key": "k"}],
        }));
        let mut expected = first.clone();
        expected.active_deadline_seconds = Some(50);
        expected.containers[0].image = Some("c:2".to_owned());
        expected.init_containers.as_mut().unwrap()[0].image = Some("i:2".to_owned());
        expected.tolerations.clone_from(&told.tolerations);
        assert_eq!(follow_spec(&first, &told), expected);
    }

    #[test]
    fn a_deadline_comes_sooner_only_and_a_negative_time_to_end_becomes_a_second() {
        let of = |deadline: Value, grace: i64| {
            spec(json!({"containers": [], "activeDeadlineSeconds": deadline,
                "terminationGracePeriodSeconds": grace}))
        };
        let deadline = |first: Value, told: Value| {
            follow_spec(&of(first, 30), &of(told, 30)).active_deadline_seconds
        };
        assert_eq!(deadline(Value::Null, json!(7)), Some(7));
        assert_eq!(deadline(json!(7), json!(8)), Some(7));
        assert_eq!(deadline(json!(7), Value::Null), Some(7));
        let grace = |first, told| {
            follow_spec(&of(Value::Null, first), &of(Value::Null, told))
                .termination_grace_period_seconds
        };
        assert_eq!((grace(-5, 1), grace(-5, 60), grace(30, 1)), (Some(1), Some(-5), Some(30)));
    }
}
