//! One version of a provider after another, watched by what runs: never two at once, because most elect no leader,
//! and none only between them.

use super::is_below;
use super::stage::{Image, Running, SYSTEM, Who, is_ready};
use crate::support::{Scratch, note_untried, patiently, peer_path};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it is looked what runs.
const PAUSE: Duration = Duration::from_millis(3);
/// How long a version that fails may take, in seconds, before the one before runs again.
const DEADLINE: u64 = 15;
/// The longest that nothing may run between two versions that work, on a machine that has other things to do: the old
/// one ends, the new one is told of it, its image is fetched, and it starts. It takes a third of a second on one that has not.
const LONGEST_GAP: Duration = Duration::from_secs(60);

/// What ran, from one moment to the next.
#[derive(Clone, Debug)]
struct Period {
    /// Since the beginning.
    from: Duration,
    /// The versions of the programs.
    versions: Vec<String>,
}

/// Looks at what runs all the time.
struct Observer {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Period>>,
}

impl Observer {
    /// Looks for programs below this process.
    fn start(top: String) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let told = is_over.clone();
        let thread = std::thread::spawn(move || {
            let (begin, mut periods) = (Instant::now(), Vec::<Period>::new());
            while !told.load(Ordering::Relaxed) {
                let versions = running_versions(&top);
                if periods.last().is_none_or(|last| last.versions != versions) {
                    periods.push(Period { from: begin.elapsed(), versions });
                }
                std::thread::sleep(PAUSE);
            }
            periods
        });
        Self { is_over, thread }
    }

    fn finish(self) -> Vec<Period> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }

    /// The same, if never two programs ran at once.
    fn finish_with_one(self) -> Vec<Period> {
        let periods = self.finish();
        let most = periods.iter().map(|one| one.versions.len()).max();
        assert!(most <= Some(1), "two ran at once: {periods:#?}");
        periods
    }
}

/// The versions of the programs below a process; they have them in their arguments.
fn running_versions(top: &str) -> Vec<String> {
    let mut versions = Vec::new();
    for entry in fs_err::read_dir("/proc").unwrap().flatten() {
        let id = entry.file_name().to_string_lossy().into_owned();
        let Ok(words) = fs_err::read(format!("/proc/{id}/cmdline")) else { continue };
        if !words.starts_with(b"tenant\0") || !is_below(&id, top) {
            continue;
        }
        let words = String::from_utf8_lossy(&words).into_owned();
        versions.push(words.split('\0').nth(2).unwrap_or_default().to_owned());
    }
    versions.sort();
    versions
}

fn reference(version: &str) -> String {
    format!("registry.example.org/team/provider-tenant:{version}")
}

/// Builds a version whose program gets these arguments, and pushes it.
fn push_version(running: &Running<'_>, version: &str, verb: &str) {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/platform/provider");
    let image = Image {
        name: "tenant",
        program: &peer_path("tenant"),
        at: "usr/bin/tenant",
        directories: &[],
        config: json!({"Entrypoint": ["tenant"], "Cmd": [verb, version], "Env": ["PATH=/usr/bin"]}),
    };
    running.push(&example, &image, &reference(version));
}

/// Waits until nothing but this version runs, and its pod is ready.
fn wait_for_version(running: &Running<'_>, version: &str) {
    let top = running.up.id();
    patiently(|| {
        let pods = running.pods();
        let [pod] = pods.as_slice() else {
            return Err(format!("there are {} pods: {pods:#?}", pods.len()));
        };
        let versions = running_versions(&top);
        let is_it = versions == [version] && is_ready(pod);
        if is_it { Ok(()) } else { Err(format!("{versions:?} run: {pod:#}")) }
    });
}

/// What happens while one version gives way to another; both work.
fn watch_change(running: &Running<'_>, words: &[&str], [before, after]: [&str; 2]) {
    wait_for_version(running, before);
    let observer = Observer::start(running.up.id());
    running.up.say(words).ok();
    wait_for_version(running, after);
    let periods = observer.finish_with_one();
    let versions: Vec<&[String]> = periods.iter().map(|one| one.versions.as_slice()).collect();
    let [first, none, last] = versions.as_slice() else {
        panic!("more than one change: {periods:#?}");
    };
    assert_eq!((*first, none.len(), *last), (&[before.to_owned()][..], 0, &[after.to_owned()][..]));
    let gap = periods[2].from.checked_sub(periods[1].from).unwrap();
    println!("from {before} to {after}: nothing ran for {gap:?}");
    assert!(gap < LONGEST_GAP, "nothing ran for {gap:?}");
}

/// A version whose program ends at once: the one before comes back, and stays.
fn watch_failure(running: &Running<'_>, version: &str, before: &str) {
    wait_for_version(running, before);
    let observer = Observer::start(running.up.id());
    running.up.say(&["update", "tenant", version]).ok();
    // It has begun once the one before has ended.
    patiently(|| {
        let versions = running_versions(&running.up.id());
        if versions == [before] { Err(format!("{before} runs on")) } else { Ok(()) }
    });
    wait_for_version(running, before);
    let told = patiently(|| {
        let revisions = running.get(&["providerrevisions"]).to_string();
        if revisions.contains("runs again") { Ok(revisions) } else { Err(revisions) }
    });
    let periods = observer.finish_with_one();
    let (first, last) = (&periods[0], periods.last().unwrap());
    assert_eq!(
        (&first.versions, &last.versions),
        (&vec![before.to_owned()], &vec![before.to_owned()]),
        "{told}"
    );
    // It came back once: whatever ran in between was the one that failed.
    let between = &periods[1..periods.len() - 1];
    let is_other = |one: &Period| !one.versions.contains(&before.to_owned());
    assert!(between.iter().all(is_other), "{periods:#?}");
    let gap = last.from.checked_sub(between[0].from).unwrap();
    println!("{version} failed: {before} did not run for {gap:?}");
    assert!(gap < Duration::from_secs(DEADLINE) + LONGEST_GAP, "it did not run for {gap:?}");
}

fn follow_versions(who: Who) {
    let scratch = Scratch::for_everybody();
    if let Some(why) = who.refusal(&scratch) {
        note_untried(&format!("upgrades of programs as {who:?}"), &why);
        return;
    }
    let running = Running::start_as(who, &scratch, &[]);
    for (version, verb) in [("v0.1.0", "serve"), ("v0.2.0", "serve"), ("v0.3.0", "once")] {
        push_version(&running, version, verb);
    }
    running.up.say(&["install", "provider", &reference("v0.1.0"), "tenant", "--wait", "10m"]).ok();
    let to = |version| ["update", "tenant", version, "--wait", "10m"];
    watch_change(&running, &to("v0.2.0"), ["v0.1.0", "v0.2.0"]);
    watch_change(&running, &["rollback", "tenant", "--wait", "10m"], ["v0.2.0", "v0.1.0"]);
    running.apply(&json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig",
        "metadata": {"name": "default"},
        "spec": {"deploymentTemplate": {"spec": {
            "progressDeadlineSeconds": DEADLINE, "selector": {}, "template": {},
        }}},
    }));
    watch_failure(&running, "v0.3.0", "v0.1.0");
    // It runs already. It gets a certificate with its own name again, for which its pod is replaced.
    let observer = Observer::start(running.up.id());
    running.up.say(&["rollback", "tenant", "--wait", "10m"]).ok();
    wait_for_version(&running, "v0.1.0");
    let periods = observer.finish();
    let is_it =
        |one: &Period| !one.versions.is_empty() && one.versions.iter().all(|it| it == "v0.1.0");
    assert!(periods.iter().all(is_it), "{periods:#?}");
    patiently(|| {
        let deployments = running.get(&["deployments", "-n", SYSTEM]);
        let count = deployments["items"].as_array().unwrap().len();
        if count == 1 { Ok(()) } else { Err(format!("{deployments:#}")) }
    });
    running.up.stop();
}

#[test]
fn versions_of_a_provider_never_run_at_once_and_what_works_comes_back() {
    follow_versions(Who::Own);
}

#[test]
fn versions_of_a_provider_follow_each_other_for_a_user_without_rights_too() {
    follow_versions(Who::User);
}
