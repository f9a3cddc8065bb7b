//! `apron logs`: what a program writes, each line once, whatever becomes of the program, its pod and its package.

use super::stage::{Running, name};
use crate::support::{command, until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::process::Child;
use std::time::{Duration, Instant};

/// A line that does not come within this time is written again.
const LINE_WAIT: Duration = Duration::from_secs(60);

/// `apron logs NAME --follow`, which writes into a file.
pub(super) struct Follower {
    child: Child,
    file: std::path::PathBuf,
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Follower {
    pub(super) fn start(running: &Running<'_>, package: &str) -> Self {
        let file = running.scratch.join(format!("{package}.log"));
        let mut following = command(running.scratch);
        following.env("KUBECONFIG", &running.up.kubeconfig).args(["logs", package, "--follow"]);
        following.stdout(File::create(&file).unwrap());
        let child = following.stderr(std::process::Stdio::null()).spawn().unwrap();
        Self { child, file }
    }

    fn text(&self) -> String {
        fs_err::read_to_string(&self.file).unwrap()
    }

    /// Has the program of a pod write a line, and waits until it was followed. Each try writes a line of its own: an
    /// answer that is lost is no line that is.
    pub(super) fn sees_line(&self, running: &Running<'_>, pod: &Value, line: &str) {
        let mut tries = 0;
        until(&format!("the line {line}"), || {
            tries += 1;
            let line = format!("<{line}-{tries}>");
            running.ask(pod, &format!("/print?text={line}"));
            let end = Instant::now() + LINE_WAIT;
            while Instant::now() < end && !self.text().contains(&line) {
                std::thread::sleep(Duration::from_millis(50));
            }
            self.text().contains(&line).then_some(())
        });
    }

    /// Lines came from however many pods, and each of them once.
    pub(super) fn saw_each_line_once(&self) {
        let text = self.text();
        let marked: Vec<&str> = text.lines().filter(|line| line.contains('<')).collect();
        let distinct: BTreeSet<&&str> = marked.iter().collect();
        assert!(marked.len() >= 3 && distinct.len() == marked.len(), "{text}");
    }

    /// Waits until there is nothing to be followed any more.
    pub(super) fn ends_well(mut self) {
        let ended = until("the end of the log", || self.child.try_wait().unwrap());
        assert!(ended.success(), "{ended:?}");
    }
}

pub(super) fn logs_of_packages_are_printed(running: &Running<'_>, pod: &Value) {
    let logs = |words: &[&str]| running.up.say(&[&["logs", "tenant"], words].concat()).ok().stdout;
    let begin = format!("tenant begins on {} with serve", name(pod));
    assert!(logs(&[]).starts_with(&begin), "{}", logs(&[]));
    assert!(!logs(&["--tail", "0"]).contains(&begin));
    let timed = logs(&["--timestamps", "--since", "1h"]);
    let first = timed.lines().next().unwrap();
    assert!(first.ends_with(&begin) && first.contains("Z "), "{first}");
    let refused = running.up.say(&["logs", "tenant", "--previous"]).failed();
    assert!(refused.contains("has ended"), "{refused}");
    let refused = running.up.say(&["logs", "tenant", "-c", "other"]).failed();
    assert!(refused.contains("--container: package-runtime"), "{refused}");
}
