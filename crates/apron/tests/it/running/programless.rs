//! `apron up` as it is without flags: packages with a program run, and those without say that nothing of them does.

use super::stage::{Running, SYSTEM, Who, is_ready, name};
use super::{install_tenant_as, programs};
use crate::support::{Scratch, note_untried, patiently, until};
use crate::up::{Up, example};
use serde_json::{Value, json};

const REMARK: &str = "nothing runs here: the image has no program";

/// The pods of a package, by the names of its Deployments.
fn pods_of(running: &Running<'_>, package: &str) -> Vec<Value> {
    running.pods().into_iter().filter(|pod| name(pod).contains(package)).collect()
}

fn ready_pod_of(running: &Running<'_>, package: &str, not: &str) -> Value {
    patiently(|| {
        let pods = pods_of(running, package);
        let [pod] = pods.as_slice() else { return Err(format!("not one pod: {pods:#?}")) };
        let is_meant = is_ready(pod) && name(pod) != not;
        if is_meant { Ok(pod.clone()) } else { Err(format!("{pod:#}")) }
    })
}

fn remark_of(object: &Value) -> Option<(&Value, &Value)> {
    let all = object["status"]["conditions"].as_array()?;
    let one = all.iter().find(|one| one["type"] == "Simulated")?;
    Some((&one["status"], &one["message"]))
}

#[test]
fn what_has_a_program_runs_and_what_has_none_says_so() {
    let scratch = Scratch::new();
    if let Some(why) = Who::Own.refusal(&scratch) {
        note_untried("apron up without flags", &why);
        return;
    }
    let data = scratch.join("data");
    // The node has directories of its own, whatever is said relative to this one.
    let words = [&example(), "--data-dir", "data"];
    let mut up = Up::start(&scratch, &words);
    assert!(up.told("  runtime   ").starts_with("process: "));
    up.told("ready after ");
    let running = Running { scratch: &scratch, data, up };
    it_is_told_wherever_it_is_looked_at(&running);
    let moor = it_ends_at_once_and_comes_back(&running);
    install_tenant_as(&running, "function");
    let tenant = ready_pod_of(&running, "tenant", "");
    assert_eq!(remark_of(&tenant), None, "{tenant:#}");
    assert_eq!(programs(&running).len(), 1);
    let drawn = running.up.say(&["status", "tenant"]).ok().stdout;
    assert!(!drawn.contains("nothing runs here"), "{drawn}");
    it_is_so_after_a_restart(&scratch, running, &moor);
}

fn it_is_told_wherever_it_is_looked_at(running: &Running<'_>) {
    let drawn = running.up.say(&["status"]).ok().stdout;
    assert_eq!(drawn.matches(REMARK).count(), 2, "{drawn}");
    assert!(!drawn.contains('!'), "nothing is in the way: {drawn}");
    let told = (&json!("True"), &json!(REMARK));
    let pods = running.pods();
    assert_eq!(pods.len(), 2, "{pods:#?}");
    assert!(pods.iter().all(|pod| is_ready(pod) && remark_of(pod) == Some(told)), "{pods:#?}");
    let deployments = running.get(&["deployments", "-n", SYSTEM]);
    let mut all = deployments["items"].as_array().unwrap().iter();
    assert!(all.all(|one| remark_of(one) == Some(told)), "{deployments:#}");
    let refused = running.kubectl(&["logs", "-n", SYSTEM, name(&pods[0])]).failed();
    assert!(refused.contains("its image has no program"), "{refused}");
    until("the event", || {
        let told = running.kubectl(&["describe", "pod", "-n", SYSTEM, name(&pods[0])]).ok().stdout;
        told.contains("NoProgram").then_some(())
    });
}

/// There is nothing to wait for when it is deleted.
fn it_ends_at_once_and_comes_back(running: &Running<'_>) -> String {
    let pod = ready_pod_of(running, "moor", "");
    running.kubectl(&["delete", "pod", "-n", SYSTEM, name(&pod), "--timeout=15m"]).ok();
    name(&ready_pod_of(running, "moor", name(&pod))).to_owned()
}

fn it_is_so_after_a_restart(scratch: &Scratch, running: Running<'_>, moor: &str) {
    let data = running.data.clone();
    drop(running);
    let up = Up::start(scratch, &["--data-dir", data.to_str().unwrap()]);
    let running = Running { scratch, data, up };
    let again = until("the same pod, ready again", || {
        let pods = pods_of(&running, "moor");
        pods.into_iter().find(|one| name(one) == moor && is_ready(one) && restarted(one))
    });
    assert_eq!(remark_of(&again), Some((&json!("True"), &json!(REMARK))));
    until("the program", || (programs(&running).len() == 1).then_some(()));
    // Without anything that runs pods it is the older remark.
    running.up.stop();
    let data = scratch.join("data");
    let words = ["--data-dir", data.to_str().unwrap(), "--runtime", "simulated"];
    let up = Up::start(scratch, &words);
    patiently(|| {
        let drawn = up.say(&["status"]).ok().stdout;
        let all = drawn.matches("nothing runs here: pods are only simulated").count();
        if all == 3 { Ok(()) } else { Err(drawn) }
    });
    up.stop();
}

fn restarted(pod: &Value) -> bool {
    super::restarts(pod) > 0
}
