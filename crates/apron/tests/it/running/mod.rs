//! `apron up --runtime process`: programs of packages that really run on this machine, as a user of kubectl
//! meets them. Run as root; without it the same pods have one user each, which `node` tests.

mod census;
mod faults;
mod logs;
mod platform;
<<<<<<< ours
mod programless;
=======
mod pods;
>>>>>>> theirs
mod stage;
mod upgrade;

use crate::support::{Scratch, patiently, peer_path, until};
use logs::{Follower, logs_of_packages_are_printed};
use serde_json::{Value, json};
use stage::{Image, Running, SYSTEM, is_ready, name, restarts};
use std::path::Path;

/// Whether a process runs the program of the test's image.
fn is_program(id: &str) -> bool {
    let words = fs_err::read(format!("/proc/{id}/cmdline"));
    words.is_ok_and(|words| words.starts_with(b"tenant\0"))
}

/// The process that started another one.
fn parent(id: &str) -> Option<String> {
    let status = fs_err::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    Some(line.trim().to_owned())
}

/// Whether a process was started by another one, or by one that it started.
fn is_below(id: &str, top: &str) -> bool {
    std::iter::successors(Some(id.to_owned()), |id| parent(id)).any(|one| one == top)
}

/// The programs that this control plane runs, and no other one.
fn programs(running: &Running<'_>) -> Vec<String> {
    let top = running.up.id();
    let all = fs_err::read_dir("/proc").unwrap().flatten();
    let ids = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
    ids.filter(|id| is_program(id)).filter(|id| is_below(id, &top)).collect()
}

/// The processes of the node itself, by the verbs of its steps.
fn steps(running: &Running<'_>) -> Vec<String> {
    let top = running.up.id();
    let all = fs_err::read_dir("/proc").unwrap().flatten();
    let ids = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let below = ids.filter(|id| is_below(id, &top));
    let verb = |id: String| {
        let words = fs_err::read_to_string(format!("/proc/{id}/cmdline")).ok()?;
        words.split('\0').nth(1).filter(|word| word.starts_with("__")).map(str::to_owned)
    };
    below.filter_map(verb).collect()
}

fn signal(id: &str, signal: &str) {
    let killed = std::process::Command::new("kill").args([signal, id]).status().unwrap();
    assert!(killed.success());
}

/// Builds a package of the example, a provider or a function, with our own program, and installs it.
fn install_tenant_as(running: &Running<'_>, kind: &str) {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/platform");
    let image = Image {
        name: "tenant",
        program: &peer_path("tenant"),
        at: "usr/bin/tenant",
        directories: &[],
        config: json!({"Entrypoint": ["tenant"], "Cmd": ["serve"], "Env": ["PATH=/usr/bin", "OF=image"]}),
    };
    let reference = format!("registry.example.org/team/{kind}-tenant:v0.1.0");
    running.install(kind, &examples.join(kind), &image, &reference);
}

fn install_tenant(running: &Running<'_>) {
    install_tenant_as(running, "provider");
}

/// One story, because every chapter needs what the one before it made: installing takes longest.
#[test]
fn a_provider_runs_is_looked_at_and_comes_back_whatever_happens_to_it() {
    let scratch = Scratch::new();
    let running = Running::start(&scratch, &[]);
    install_tenant(&running);
    let pod = running.ready_pod("");
    look_at(&running, &pod);
    it_runs_as_the_package_manager_asked(&running, &pod);
    it_reaches_the_api_server_with_its_own_rights(&running, &pod);
    another_pod_finds_it_by_name(&running, &pod);
    what_it_uses_is_told(&running, &pod);
    logs_of_packages_are_printed(&running, &pod);
    let follower = Follower::start(&running, "tenant");
    follower.sees_line(&running, &pod, "first-run");
    let pod = it_comes_back_after_it_was_killed(&running, &pod);
    follower.sees_line(&running, &pod, "second-run");
    let pod = it_is_replaced(&running, &pod);
    follower.sees_line(&running, &pod, "third-pod");
    follower.saw_each_line_once();
    drop(follower);
    it_outlives_apron(&scratch, running, &pod);
    its_log_ends_with_it(&scratch);
}

fn look_at(running: &Running<'_>, pod: &Value) {
    let listed = running.kubectl(&["get", "pods", "-n", SYSTEM]).ok().stdout;
    assert!(listed.contains("1/1") && listed.contains("Running"), "{listed}");
    // A pod without probes is ready before its program has said anything.
    let first = format!("tenant begins on {} with serve", name(pod));
    until("the first line", || {
        let log = running.kubectl(&["logs", "-n", SYSTEM, name(pod)]).ok().stdout;
        log.starts_with(&first).then_some(())
    });
    running.ask(pod, "/print?text=hello");
    until("a line in the log", || {
        let words = ["logs", "-n", SYSTEM, name(pod), "--tail=1", "--timestamps"];
        let line = running.kubectl(&words).ok().stdout;
        line.trim_end().ends_with("Z hello").then_some(())
    });
    until("the events", || {
        let told = running.kubectl(&["describe", "pod", "-n", SYSTEM, name(pod)]).ok().stdout;
        let reasons = ["Pulling", "Pulled", "Created", "Started"];
        reasons.iter().all(|reason| told.contains(reason)).then_some(())
    });
    let node = running.get(&["node", "apron"]);
    assert!(is_ready(&node), "{node:#}");
    // A pod has no process besides its programs.
    until("the node alone", || {
        let mut steps = steps(running);
        steps.sort();
        (steps == ["__node", "__supervise"]).then_some(())
    });
    // Nothing is said to be simulated any more.
    let drawn = running.up.say(&["status"]).ok().stdout;
    assert!(!drawn.contains("simulated"), "{drawn}");
}

fn it_runs_as_the_package_manager_asked(running: &Running<'_>, pod: &Value) {
    assert_eq!(running.ask(pod, "/user").split(' ').take(2).collect::<Vec<_>>(), ["2000", "2000"]);
    let told = running.ask(pod, "/environment");
    for line in ["OF=image", "KUBERNETES_SERVICE_HOST=10.96.0.1", "POD_NAMESPACE=crossplane-system"]
    {
        assert!(told.lines().any(|one| one == line), "{line}: {told}");
    }
}

fn it_reaches_the_api_server_with_its_own_rights(running: &Running<'_>, pod: &Value) {
    let mine = "/api?path=/apis/storage.harbour.example.org/v1alpha1/buckets";
    until("its own kinds", || running.ask(pod, mine).starts_with("200 ").then_some(()));
    let others = running.ask(pod, "/api?path=/api/v1/nodes");
    assert!(others.starts_with("403 ") && others.contains("system:serviceaccount"), "{others}");
}

fn another_pod_finds_it_by_name(running: &Running<'_>, pod: &Value) {
    let labels = &pod["metadata"]["labels"];
    let selector = json!({"pkg.crossplane.io/revision": labels["pkg.crossplane.io/revision"]});
    running.apply(&json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "front", "namespace": SYSTEM},
        "spec": {"selector": selector, "ports": [{"port": 80, "targetPort": 8080}]},
    }));
    let image = &pod["spec"]["containers"][0]["image"];
    running.apply(&json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "second", "namespace": "default"},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "c", "image": image,
                "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 1}}],
        },
    }));
    let second = patiently(|| {
        let pod = running.get(&["pod", "second"]);
        if is_ready(&pod) { Ok(pod) } else { Err(format!("{pod:#}")) }
    });
    let asked = "/get?url=http://front.crossplane-system/";
    let answer = until("an answer through the Service", || {
        Some(running.ask(&second, asked)).filter(|told| told.starts_with("200 "))
    });
    assert!(answer.contains(name(pod)), "{answer}");
    // A pod that says it is not ready is not.
    running.ask(&second, "/set?ready=false");
    until("a pod that is not ready", || {
        (!is_ready(&running.get(&["pod", "second"]))).then_some(())
    });
    running.kubectl(&["delete", "pod", "second", "--timeout=15m"]).ok();
    assert_eq!(running.kubectl(&["get", "pod", "second"]).code, Some(1));
}

/// Its node counts each fifteen seconds.
fn what_it_uses_is_told(running: &Running<'_>, pod: &Value) {
    let line = until("what the pod uses", || {
        let told = running.kubectl(&["top", "pods", "-n", SYSTEM, "--no-headers"]).stdout;
        told.lines().find(|line| line.starts_with(name(pod))).map(str::to_owned)
    });
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, cpu, memory] = words.as_slice() else { panic!("{line}") };
    assert!(cpu.ends_with('m') && memory.ends_with("Mi") && *memory != "0Mi", "{line}");
    let told = running.kubectl(&["top", "pods", "-A", "--containers"]).ok().stdout;
    assert!(told.contains("package-runtime"), "{told}");
    let one = running.get(&["pods.metrics.k8s.io", "-n", SYSTEM, name(pod)]);
    assert_eq!(one["metadata"]["labels"], pod["metadata"]["labels"], "{one:#}");
    let told = until("what the node uses", || {
        let told = running.kubectl(&["top", "nodes", "--no-headers"]).stdout;
        told.starts_with("apron").then_some(told)
    });
    // Cores and memory, each with its share of what the machine has.
    assert!(told.matches('%').count() == 2 && !told.contains(" 0m "), "{told}");
    // Of others, only who may look at a namespace is told of it.
    let words = ["auth", "can-i", "list", "pods.metrics.k8s.io", "-n", SYSTEM, "--as", "somebody"];
    assert_eq!(running.kubectl(&words).stdout.trim(), "no");
}

fn it_comes_back_after_it_was_killed(running: &Running<'_>, pod: &Value) -> Value {
    let before = programs(running);
    assert_eq!(before.len(), 1, "{before:?}");
    signal(&before[0], "-9");
    let again = until("a restart", || {
        let pods = running.pods();
        pods.into_iter().find(|one| restarts(one) == 1 && is_ready(one))
    });
    assert_eq!(name(&again), name(pod));
    let last = &again["status"]["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!((&last["exitCode"], &last["reason"]), (&json!(137), &json!("Error")), "{last:#}");
    assert_eq!(programs(running).len(), 1);
    let words = ["logs", "-n", SYSTEM, name(pod), "--previous"];
    assert!(running.kubectl(&words).ok().stdout.contains("hello"));
    again
}

fn it_is_replaced(running: &Running<'_>, pod: &Value) -> Value {
    running.kubectl(&["delete", "pod", "-n", SYSTEM, name(pod), "--timeout=15m"]).ok();
    let second = running.ready_pod(name(pod));
    let deployments = running.get(&["deployments", "-n", SYSTEM]);
    let deployment = format!("deployment/{}", name(&deployments["items"][0]));
    running.kubectl(&["rollout", "restart", "-n", SYSTEM, &deployment]).ok();
    running.kubectl(&["rollout", "status", "-n", SYSTEM, &deployment, "--timeout=10m"]).ok();
    let third = running.ready_pod(name(&second));
    until("one program", || (programs(running).len() == 1).then_some(()));
    third
}

fn it_outlives_apron(scratch: &Scratch, running: Running<'_>, pod: &Value) {
    // Killed, not stopped: nothing of it stays behind.
    let before = programs(&running);
    assert_eq!(before.len(), 1);
    drop(running);
    until("no program is left", || (!is_program(&before[0])).then_some(()));
    let running = Running::start(scratch, &[]);
    let again = until("the same pod, started again", || {
        let pods = running.pods();
        pods.into_iter().find(|one| restarts(one) > 0 && is_ready(one))
    });
    assert_eq!(name(&again), name(pod));
    let before = programs(&running);
    assert_eq!(before.len(), 1);
    running.up.stop();
    until("no program is left", || (!is_program(&before[0])).then_some(()));
}

fn its_log_ends_with_it(scratch: &Scratch) {
    let running = Running::start(scratch, &[]);
    let pod = running.ready_pod("");
    let follower = Follower::start(&running, "tenant");
    follower.sees_line(&running, &pod, "last-run");
    running.up.say(&["uninstall", "tenant", "--wait", "10m"]).ok();
    follower.ends_well();
    until("no program is left", || programs(&running).is_empty().then_some(()));
    running.up.stop();
}
