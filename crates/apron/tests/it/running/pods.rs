//! Pods that no package brings, as users of kubectl write them.

use super::stage::{Image, Running};
use crate::support::{Scratch, patiently};
use serde_json::{Value, json};
use std::path::Path;

const IMAGE: &str = "registry.example.org/team/box:v1";

/// An image with a shell.
fn push_shell(running: &Running<'_>) {
    let image = Image {
        name: "box",
        program: Path::new("/bin/busybox"),
        at: "bin/busybox",
        directories: &[],
        config: json!({"Entrypoint": ["/bin/busybox"], "Env": ["PATH=/bin"]}),
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/platform/provider");
    running.push(&source, &image, IMAGE);
}

fn shell(name: &str, script: &str) -> Value {
    json!({"name": name, "image": IMAGE, "args": ["sh", "-c", script]})
}

fn apply_pod(running: &Running<'_>, name: &str, spec: &Value) {
    running.apply(&json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }));
}

/// A pod once it is over.
fn wait_for_end(running: &Running<'_>, name: &str, phase: &str) -> Value {
    patiently(|| {
        let pod = running.get(&["pod", name]);
        if pod["status"]["phase"] == phase { Ok(pod) } else { Err(format!("{:#}", pod["status"])) }
    })
}

#[test]
fn pods_end_and_say_how_as_in_a_cluster() {
    let scratch = Scratch::new();
    let running = Running::start(&scratch, &[]);
    push_shell(&running);
    a_program_has_a_home_and_last_words(&running);
    a_program_that_cannot_be_executed_is_not_tried_again_against_its_pods_wish(&running);
    sidecars_end_one_after_the_other(&running);
}

fn a_program_has_a_home_and_last_words(running: &Running<'_>) {
    let script = "echo at home in $HOME; echo because > /dev/termination-log; exit 3";
    let spec = json!({"restartPolicy": "Never", "containers": [shell("c", script)]});
    apply_pod(running, "words", &spec);
    let pod = wait_for_end(running, "words", "Failed");
    let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&ended["exitCode"], &ended["reason"]), (&json!(3), &json!("Error")), "{ended}");
    assert_eq!(ended["message"], "because\n");
    assert_eq!(running.kubectl(&["logs", "words"]).ok().stdout, "at home in /\n");
}

fn a_program_that_cannot_be_executed_is_not_tried_again_against_its_pods_wish(
    running: &Running<'_>,
) {
    let container = json!({"name": "c", "image": IMAGE, "command": ["/nothing"]});
    apply_pod(running, "never", &json!({"restartPolicy": "Never", "containers": [container]}));
    let pod = wait_for_end(running, "never", "Failed");
    let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&ended["exitCode"], &ended["reason"]), (&json!(128), &json!("StartError")));
    assert!(ended["message"].as_str().unwrap().contains("stat /nothing"), "{ended}");
}

fn sidecars_end_one_after_the_other(running: &Running<'_>) {
    // The one that is asked first takes its time: asked together, the other would be first.
    let waits =
        |trap: &str| format!("trap '{trap}; exit 0' TERM; while :; do busybox sleep 0.1; done");
    let sidecar = |name: &str, trap: &str| {
        let mut container = shell(name, &waits(trap));
        container["restartPolicy"] = json!("Always");
        container
    };
    let sidecars =
        [sidecar("one", "echo one ends"), sidecar("two", "busybox sleep 3; echo two ends")];
    let spec = json!({"restartPolicy": "Never", "initContainers": sidecars,
        "containers": [shell("c", "echo done")]});
    apply_pod(running, "sidecars", &spec);
    wait_for_end(running, "sidecars", "Succeeded");
    let end_of = |name: &str| {
        let said = running.kubectl(&["logs", "sidecars", "-c", name, "--timestamps"]).ok().stdout;
        let (time, text) = said
            .trim_end()
            .split_once(' ')
            .map(|(time, text)| (time.to_owned(), text.to_owned()))
            .unwrap();
        assert_eq!(text, format!("{name} ends"), "{said}");
        time
    };
    assert!(end_of("two") < end_of("one"));
}
