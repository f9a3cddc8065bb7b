//! `apron up --runtime process`: programs of packages that really run on this machine, as somebody with kubectl
//! meets them. Run as root; without it the same pods have one user each, which `node` tests.

use crate::support::{Ran, Scratch, command_at, patiently, peer_path, program, until};
use crate::up::Up;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

const SYSTEM: &str = "crossplane-system";
/// What the package is called in the world.
const PACKAGE: &str = "registry.example.org/team/provider-tenant:v0.1.0";

/// An archive as `docker save` makes it, with one program in it.
fn runtime_archive(scratch: &Scratch) -> PathBuf {
    fs_err::create_dir_all(scratch.join("root/usr/bin")).unwrap();
    fs_err::create_dir_all(scratch.join("root/tmp")).unwrap();
    fs_err::copy(peer_path("tenant"), scratch.join("root/usr/bin/tenant")).unwrap();
    scratch.write("root/etc/passwd", "root:x:0:0::/:\nnonroot:x:65532:65532::/home:\n");
    let words = ["--owner=0", "--group=0", "--mode=a+rX", "-C", "root", "-cf", "layer.tar", "."];
    program(scratch, "tar", words).ok();
    let sum = program(scratch, "sha256sum", ["layer.tar"]).ok().stdout;
    let digest = sum.split(' ').next().unwrap();
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let config = json!({
        "architecture": machine, "os": "linux",
        "config": {"Entrypoint": ["tenant"], "Cmd": ["serve"], "Env": ["PATH=/usr/bin", "OF=image"]},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{digest}")]},
    });
    scratch.write("config.json", config.to_string());
    let manifest =
        json!([{"Config": "config.json", "RepoTags": ["tenant:v1"], "Layers": ["layer.tar"]}]);
    scratch.write("manifest.json", manifest.to_string());
    let words = ["-cf", "tenant.tar", "manifest.json", "config.json", "layer.tar"];
    program(scratch, "tar", words).ok();
    scratch.join("tenant.tar")
}

/// A control plane with a provider that runs.
struct Running<'a> {
    scratch: &'a Scratch,
    data: PathBuf,
    up: Up<'a>,
}

impl<'a> Running<'a> {
    fn start(scratch: &'a Scratch) -> Self {
        let data = scratch.join("data");
        let words = ["--runtime", "process", "--data-dir", data.to_str().unwrap()];
        let mut up = Up::start(scratch, &words);
        let told = up.told("  runtime   ");
        assert!(told.starts_with("process: "), "{told}");
        Self { scratch, data, up }
    }

    /// Builds the provider with its program, and installs it.
    fn install(&self) {
        let archive = runtime_archive(self.scratch);
        let example =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/platform/provider");
        self.scratch.copy_package_from(&example, "provider");
        let archive = archive.display().to_string();
        let words =
            ["build", "provider", "-o", "p.xpkg", "--embed-runtime-image-tarball", &archive];
        self.up.say(&words).ok();
        let there = format!("{}/{PACKAGE}", self.up.registry);
        self.up.say(&["push", "-f", "p.xpkg", &there]).ok();
        self.up.say(&["install", "provider", PACKAGE, "tenant", "--wait", "10m"]).ok();
    }

    fn kubectl(&self, words: &[&str]) -> Ran {
        let mut command = command_at(self.scratch, &peer_path("kubectl"));
        command.env("KUBECONFIG", &self.up.kubeconfig).args(words).output().unwrap().into()
    }

    fn apply(&self, object: &Value) {
        let path = self.scratch.write("object.json", object.to_string());
        self.kubectl(&["apply", "-f", path.to_str().unwrap()]).ok();
    }

    fn get(&self, words: &[&str]) -> Value {
        let words: Vec<&str> = ["get", "-o", "json"].iter().chain(words).copied().collect();
        serde_json::from_str(&self.kubectl(&words).ok().stdout).unwrap()
    }

    /// The provider's pods that are not about to go.
    fn pods(&self) -> Vec<Value> {
        let listed = self.get(&["pods", "-n", SYSTEM]);
        let all = listed["items"].as_array().unwrap().iter();
        all.filter(|one| one["metadata"]["deletionTimestamp"].is_null()).cloned().collect()
    }

    /// The provider's pod, once there is one that is ready and none that is not `not`.
    fn ready_pod(&self, not: &str) -> Value {
        patiently(|| {
            let pods = self.pods();
            let [pod] = pods.as_slice() else {
                return Err(format!("there are {} pods: {pods:#?}", pods.len()));
            };
            let is_other = pod["metadata"]["name"] != not;
            if is_ready(pod) && is_other { Ok(pod.clone()) } else { Err(format!("{pod:#}")) }
        })
    }

    /// What a program in a pod answers.
    fn ask(&self, pod: &Value, path: &str) -> String {
        let address = pod["status"]["podIP"].as_str().unwrap();
        until(&format!("an answer of {address} to {path}"), || {
            let mut stream = UnixStream::connect(self.data.join("node/state/node.sock")).ok()?;
            stream.write_all(format!("tcp {address}:8080\n").as_bytes()).ok()?;
            let mut reader = BufReader::new(stream.try_clone().ok()?);
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            if line != "ok\n" {
                return None;
            }
            let head = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
            stream.write_all(head.as_bytes()).ok()?;
            let mut told = String::new();
            reader.read_to_string(&mut told).ok()?;
            told.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
        })
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

fn restarts(pod: &Value) -> i64 {
    pod["status"]["containerStatuses"][0]["restartCount"].as_i64().unwrap()
}

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

/// The programs that this control plane runs, and no other one.
fn programs(running: &Running<'_>) -> Vec<String> {
    let top = running.up.id();
    let is_below = |id: &String| {
        std::iter::successors(Some(id.clone()), |id| parent(id)).any(|one| one == top)
    };
    let all = fs_err::read_dir("/proc").unwrap().flatten();
    let ids = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
    ids.filter(|id| is_program(id)).filter(is_below).collect()
}

fn signal(id: &str, signal: &str) {
    let killed = std::process::Command::new("kill").args([signal, id]).status().unwrap();
    assert!(killed.success());
}

/// One story, because every chapter needs what the one before it made: installing takes longest.
#[test]
fn a_provider_runs_is_looked_at_and_comes_back_whatever_happens_to_it() {
    let scratch = Scratch::new();
    let running = Running::start(&scratch);
    running.install();
    let pod = running.ready_pod("");
    look_at(&running, &pod);
    it_runs_as_the_package_manager_asked(&running, &pod);
    it_reaches_the_api_server_with_its_own_rights(&running, &pod);
    another_pod_finds_it_by_name(&running, &pod);
    let pod = it_comes_back_after_it_was_killed(&running, &pod);
    let pod = it_is_replaced(&running, &pod);
    it_outlives_apron(&scratch, running, &pod);
}

fn look_at(running: &Running<'_>, pod: &Value) {
    let listed = running.kubectl(&["get", "pods", "-n", SYSTEM]).ok().stdout;
    assert!(listed.contains("1/1") && listed.contains("Running"), "{listed}");
    let log = running.kubectl(&["logs", "-n", SYSTEM, name(pod)]).ok().stdout;
    assert!(log.starts_with(&format!("tenant begins on {} with serve", name(pod))), "{log}");
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
    running.kubectl(&["delete", "pod", "second"]).ok();
    assert_eq!(running.kubectl(&["get", "pod", "second"]).code, Some(1));
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
    running.kubectl(&["delete", "pod", "-n", SYSTEM, name(pod)]).ok();
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
    let running = Running::start(scratch);
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
