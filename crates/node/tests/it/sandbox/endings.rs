//! How programs, pods and nodes end, and that nothing of them is left.

use super::stage::{
    Stage, Who, empty, everybody, files, mount_of, pod_sandbox, volume_file, wait_until,
};
use fs_err as fs;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use node::protocol::{LastWords, Message};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[tokio::test]
async fn what_a_program_writes_before_its_end_is_told_with_it() {
    for who in everybody() {
        let stage = Stage::new(who);
        let mut node = stage.spawn().await;
        node.create_pod("p", 2).await;
        for (attempt, path, or_log, script) in [
            (
                0,
                "/dev/termination-log",
                false,
                "echo printed; echo written > /dev/termination-log; exit 1",
            ),
            (1, "/made/here", true, "echo printed; exit 1"),
            (2, "/dev/termination-log", false, "echo printed; exit 1"),
            (3, "/dev/termination-log", true, "echo printed; exit 0"),
        ] {
            let mut start = node.container("p", "c", &["sh", "-c", script]);
            start.container.attempt = attempt;
            start.read_only_root = attempt == 0;
            start.last_words = Some(LastWords { path: path.to_owned(), or_log });
            node.handle.start_container(start).await.unwrap();
            let exit = node.exit_of("p", "c").await;
            assert_eq!(exit, (Some(i32::from(attempt != 3)), None), "{who:?}");
        }
        assert_eq!(node.last_words, ["written\n", "printed\n"], "{who:?}");
    }
}

#[tokio::test]
async fn ends_are_told_with_their_code_or_signal() {
    for who in everybody() {
        let stage = Stage::new(who);
        let mut node = stage.spawn().await;
        node.create_pod("p", 2).await;
        for (number, (script, exit)) in [
            ("exit 0", (Some(0), None)),
            ("exit 42", (Some(42), None)),
            ("echo last words; echo more >&2; exit 255", (Some(255), None)),
            ("sleep 100000 & exit 1", (Some(1), None)),
        ]
        .into_iter()
        .enumerate()
        {
            let name = format!("c{number}");
            node.handle
                .start_container(node.container("p", &name, &["sh", "-c", script]))
                .await
                .unwrap();
            assert_eq!(node.exit_of("p", &name).await, exit, "{who:?}: {script}");
        }
        let mut printed = node.printed("p", "c2");
        printed.sort();
        assert_eq!(printed, ["last words", "more"]);
        for (script, signal, exit) in [
            (
                "trap 'exit 7' TERM; echo ready; while :; do sleep 1 & wait; done",
                15,
                (Some(7), None),
            ),
            ("echo ready; while :; do sleep 1 & wait; done", 9, (None, Some(9))),
        ] {
            let name = format!("signalled-{signal}");
            let start = node.container("p", &name, &["sh", "-c", script]);
            let container = start.container.clone();
            node.handle.start_container(start).await.unwrap();
            node.wait_for_line("p", &name, "ready").await;
            node.handle.send_signal(&container, signal).await.unwrap();
            assert_eq!(node.exit_of("p", &name).await, exit, "{who:?}: {signal}");
            node.handle.send_signal(&container, signal).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_run_that_apron_gave_up_ends_before_the_next_one_begins() {
    for who in everybody() {
        let stage = Stage::new(who);
        let mut node = stage.spawn().await;
        node.create_pod("p", 2).await;
        let first = node.container("p", "c", &["sh", "-c", "echo x > /tmp/x; exec sleep 100000"]);
        node.handle.start_container(first.clone()).await.unwrap();
        let refusal = node.handle.start_container(first).await.unwrap_err().to_string();
        assert_eq!(refusal, "container c is running already", "{who:?}");
        // The answer to the first start may have come too late: apron starts the next run then.
        let mut next = node.container("p", "c", &["sh", "-c", "test ! -e /tmp/x && echo anew"]);
        next.container.attempt = 1;
        node.handle.start_container(next).await.unwrap();
        assert_eq!(node.exit_of("p", "c").await, (None, Some(9)), "{who:?}: the first run");
        assert_eq!(node.exit_of("p", "c").await, (Some(0), None), "{who:?}: the second run");
        let log = fs::read_to_string(node.logs("p", "c").join("1.log")).unwrap();
        assert!(log.contains(" F anew"), "{who:?}: {log}");
        // A late request for an earlier run does not end a later one.
        let mut late = node.container("p", "d", &["sleep", "100000"]);
        late.container.attempt = 1;
        node.handle.start_container(late.clone()).await.unwrap();
        late.container.attempt = 0;
        assert!(node.handle.start_container(late).await.is_err(), "{who:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_is_being_made_is_removed_as_soon_as_it_is() {
    for who in everybody() {
        let stage = Stage::new(who);
        let node = stage.spawn().await;
        for _ in 0..5 {
            let handle = node.handle.clone();
            let creation =
                tokio::spawn(async move { handle.create_pod(pod_sandbox("p", 2)).await });
            wait_until("the pod begins", || layers(&stage.state()) == 1);
            node.handle.remove_pod("p").await.unwrap();
            creation.await.unwrap().unwrap();
            assert_eq!(layers(&stage.state()), 0, "{who:?}: the pod is there");
        }
        node.create_pod("p", 2).await;
        // Two at once are one.
        let (first, second) =
            tokio::join!(node.handle.remove_pod("p"), node.handle.remove_pod("p"));
        assert_eq!((first, second), (Ok(()), Ok(())), "{who:?}");
        node.create_pod("p", 2).await;
    }
}

#[tokio::test]
async fn the_end_of_a_node_is_waited_for_whoever_has_a_handle() {
    for who in everybody() {
        let stage = Stage::new(who);
        let node = stage.spawn().await;
        begin_pod(&node).await;
        let kept = node.handle.clone();
        assert!(node.handle.end_and_wait(super::stage::PATIENCE).await, "{who:?}");
        let word = name_of(stage.directory.path());
        assert_eq!(processes_with(&word), [0; 0], "{who:?}");
        assert_eq!(layers(&stage.state()), 0, "{who:?}");
        assert!(kept.remove_pod("p").await.is_err(), "{who:?}");
    }
}

/// The processes on this machine with a word in their arguments.
fn processes_with(word: &str) -> Vec<i32> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(word))
        })
        .collect()
}

/// The namespaces of all processes.
fn namespaces_of(pids: &[i32]) -> BTreeSet<PathBuf> {
    let kinds = ["net", "mnt", "pid", "uts", "ipc", "user"];
    pids.iter()
        .flat_map(|pid| kinds.map(|kind| fs::read_link(format!("/proc/{pid}/ns/{kind}"))))
        .flatten()
        .collect()
}

fn all_processes() -> Vec<i32> {
    processes_with("")
}

/// Links that a node would have made in this network: its bridge, and one for each pod. Others come and go.
fn links() -> BTreeSet<String> {
    fs::read_dir("/sys/class/net")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| {
            name == "pods"
                || name.strip_prefix("pod").is_some_and(|rest| rest.parse::<u8>().is_ok())
        })
        .collect()
}

/// A word that only processes of this stage have.
fn name_of(stage: &Path) -> String {
    stage.file_name().unwrap().to_string_lossy().into_owned()
}

/// What a node with a pod is made of, seen from outside.
struct Traces {
    path: String,
    namespaces: BTreeSet<PathBuf>,
    /// The processes in these namespaces. The numbers of the namespaces are given to others soon after.
    members: Vec<(i32, String)>,
    links: BTreeSet<String>,
}

/// When a process was started, which tells it from a later one with its number.
fn start_time(pid: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(19).map(str::to_owned)
}

impl Traces {
    fn take(stage: &Stage, links: BTreeSet<String>) -> Self {
        let directory = stage.directory.path();
        let own = namespaces_of(&[i32::try_from(std::process::id()).unwrap()]);
        let namespaces = namespaces_of(&processes_with(&name_of(directory)));
        let namespaces: BTreeSet<PathBuf> = namespaces.difference(&own).cloned().collect();
        let is_member = |pid: &i32| !namespaces_of(&[*pid]).is_disjoint(&namespaces);
        let members = all_processes().into_iter().filter(is_member);
        let members = members.filter_map(|pid| Some((pid, start_time(pid)?))).collect();
        Self { path: directory.to_string_lossy().into_owned(), namespaces, members, links }
    }

    fn assert_gone(&self, stage: &Stage) {
        assert!(self.namespaces.len() >= 6, "the pod was not found: {:?}", self.namespaces);
        let word = name_of(stage.directory.path());
        wait_until("its processes are gone", || processes_with(&word).is_empty());
        wait_until("the processes in its namespaces are gone", || {
            self.members.iter().all(|(pid, start)| start_time(*pid).as_ref() != Some(start))
        });
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(&self.path), "{mounts}");
        assert!(links().is_subset(&self.links), "{:?}", links());
        let on_disk = fs::read_dir(stage.state().join("memory")).unwrap().count();
        assert_eq!(on_disk, 0, "secrets are on the disk");
    }
}

/// A pod whose program has the stage's name in its arguments, and which wrote here and there.
async fn begin_pod(node: &super::stage::Running<'_>) {
    node.create_pod("p", 2).await;
    node.handle.write_volume("p", "v", None, vec![volume_file("key", "value")]).await.unwrap();
    let word = name_of(node.stage.directory.path());
    let script = "echo x > /tmp/x; echo x > /e/x; echo x > /m/x; echo ready; sleep 100000 & sleep 100000; true";
    let mut start = node.container("p", "c", &["sh", "-c", script, &word]);
    start.mounts = vec![
        mount_of(files("v"), "/v"),
        mount_of(empty("e", false), "/e"),
        mount_of(empty("m", true), "/m"),
    ];
    node.handle.start_container(start).await.unwrap();
    node.wait_for_line("p", "c", "ready").await;
}

fn layers(state: &Path) -> usize {
    fs::read_dir(state.join("pods")).map_or(0, Iterator::count)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_node_that_apron_ends() {
    for who in everybody() {
        let stage = Stage::new(who);
        let before = links();
        let node = stage.spawn().await;
        begin_pod(&node).await;
        let traces = Traces::take(&stage, before);
        let super::stage::Running { handle, mut messages, .. } = node;
        drop(handle);
        while messages.recv().await.is_some() {}
        traces.assert_gone(&stage);
        assert_eq!(layers(&stage.state()), 0, "{who:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_node_that_is_killed() {
    for who in everybody() {
        for is_supervisor in [false, true] {
            let stage = Stage::new(who);
            let before = links();
            let mut node = stage.spawn().await;
            begin_pod(&node).await;
            let traces = Traces::take(&stage, before);
            let pid = if is_supervisor {
                let supervisors = processes_with("__supervise");
                let ours = stage.state().to_string_lossy().into_owned();
                let found = supervisors.into_iter().find(|pid| processes_with(&ours).contains(pid));
                found.expect("there is no supervisor")
            } else {
                i32::try_from(node.handle.pid()).unwrap()
            };
            kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
            while let Some(message) = node.messages.recv().await {
                assert!(!matches!(message, Message::Answer { .. }));
            }
            assert!(
                node.handle
                    .remove_pod("p")
                    .await
                    .unwrap_err()
                    .to_string()
                    .starts_with("the node has ended")
            );
            traces.assert_gone(&stage);
            let again = stage.spawn().await;
            assert_eq!(layers(&stage.state()), 0, "{who:?}: the next start left files");
            begin_pod(&again).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "is killed by another test"]
async fn holds_a_node_until_it_is_killed() {
    let Ok(text) = fs::read_to_string("who") else { return };
    let who = if text == "root" { Who::Root } else { Who::User };
    let stage = Stage::new(who);
    let node = stage.spawn().await;
    begin_pod(&node).await;
    fs::write("ready.tmp", stage.directory.path().to_str().unwrap()).unwrap();
    fs::rename("ready.tmp", "ready").unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_node_whose_apron_is_killed() {
    for who in everybody() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("who"), if who == Who::Root { "root" } else { "user" })
            .unwrap();
        let before = links();
        let mut apron = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "sandbox::endings::holds_a_node_until_it_is_killed"])
            .current_dir(directory.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let ready = directory.path().join("ready");
        wait_until("the other program has a pod", || ready.exists());
        let path = PathBuf::from(fs::read_to_string(&ready).unwrap());
        let stage = Stage::adopt(&path, who);
        let traces = Traces::take(&stage, before);
        apron.kill().unwrap();
        apron.wait().unwrap();
        // A start at once waits for the end of what is there.
        let again = stage.spawn().await;
        let word = name_of(&path);
        let mut programs = processes_with(&word);
        programs.retain(|pid| processes_with("echo x > /m/x").contains(pid));
        assert!(programs.is_empty(), "{who:?}: programs still run: {programs:?}");
        assert_eq!(layers(&stage.state()), 0, "{who:?}");
        drop(again);
        traces.assert_gone(&stage);
    }
}
