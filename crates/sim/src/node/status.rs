//! What a kubelet says of a pod. Every time in it is the machine's, so a kubelet that is started again
//! says the same.

use super::machine::{PodProgram, ProgramState};
use serde_json::{Value as Json, json};

fn moment(seconds: u64) -> String {
    plan::step::timestamp(i64::try_from(seconds).unwrap_or_default())
}

/// The status of a pod by what runs of it.
pub(super) fn describe_status(program: &PodProgram) -> Json {
    let (name, image) = &program.container;
    let ended = |since: u64, code: u64| json!({"exitCode": code, "startedAt": moment(program.begun), "finishedAt": moment(since)});
    let (phase, state, last) = match program.state {
        ProgramState::Running(since) => {
            ("Running", json!({"running": {"startedAt": moment(since)}}), Json::Null)
        }
        ProgramState::Crashed(since, _) => {
            let waiting = json!({"waiting": {"reason": "CrashLoopBackOff"}});
            ("Running", waiting, json!({"terminated": ended(since, 1)}))
        }
        ProgramState::Ended(since) => {
            ("Succeeded", json!({"terminated": ended(since, 0)}), Json::Null)
        }
    };
    let is_ready = if program.is_ready { "True" } else { "False" };
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": is_ready, "lastProbeTime": null,
            "lastTransitionTime": moment(program.turned),
        })
    };
    let address = format!("10.244.0.{}", program.number);
    json!({
        "phase": phase, "podIP": address, "startTime": moment(program.begun),
        "conditions": [condition("ContainersReady"), condition("Ready")],
        "containerStatuses": [{
            "name": name, "image": image, "imageID": "", "ready": program.is_ready,
            "restartCount": program.restarts, "state": state, "lastState": last,
        }],
    })
}
