//! A session with kubectl, on a real control plane and on ours: the same commands must say
//! the same, on both streams, and end alike.
//!
//! `session.txt` has one command a line. `~` is repeated until both agree, for what
//! controllers do later; `each line of ours:` compares lists of which the real plane has
//! more; `settled: NAME` gives a Deployment of the real plane the status that our simulated
//! runtime gives ours, because nothing runs there either; `! reason -- command` is a
//! difference that is known, and fails when it is gone.

mod normal;
pub(crate) mod plane;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::Scratch;
use normal::normal;
use plane::{Ours, Real, peer};

/// One side: where its configuration and its own home are.
struct Side {
    kubeconfig: PathBuf,
    home: PathBuf,
}

/// How a line of the session is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Same,
    Eventually,
    Part,
    Known,
    Settled,
}

#[test]
fn the_same_commands_say_the_same_on_both_servers() {
    let scratch = Scratch::new();
    let ours = Ours::start(&scratch.join("ours"));
    let real = Real::start(&scratch.join("real"), &ours);
    let side = |kubeconfig: &Path, name: &str| {
        let home = scratch.join(format!("home-{name}"));
        fs_err::create_dir_all(&home).unwrap();
        Side { kubeconfig: kubeconfig.to_owned(), home }
    };
    let (real, ours) = (side(&real.kubeconfig, "real"), side(&ours.kubeconfig, "ours"));
    let (mut compared, mut known, mut wrong) = (0, 0, Vec::new());
    for line in include_str!("session.txt").lines() {
        let Some((mode, command)) = parse(line) else { continue };
        if mode == Mode::Settled {
            settle(&real, &command[0]);
            continue;
        }
        compared += 1;
        let difference = compare(&real, &ours, mode, &command);
        match (mode, difference) {
            (Mode::Known, None) => wrong.push(format!("{line}\n  there is no difference any more")),
            (Mode::Known, Some(_)) => known += 1,
            (_, Some(difference)) => wrong.push(format!("{line}\n{difference}")),
            (_, None) => {}
        }
    }
    println!("{compared} commands compared, {known} known differences, {} others", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= 180, "{compared} commands");
}

fn parse(line: &str) -> Option<(Mode, Vec<String>)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let (mode, command) = if let Some(rest) = line.strip_prefix("settled: ") {
        (Mode::Settled, rest)
    } else if let Some(rest) = line.strip_prefix("~ ") {
        (Mode::Eventually, rest)
    } else if let Some(rest) = line.strip_prefix("each line of ours: ") {
        (Mode::Part, rest)
    } else if let Some(rest) = line.strip_prefix("! ") {
        (Mode::Known, rest.split_once(" -- ").expect("! reason -- command").1)
    } else {
        (Mode::Same, line)
    };
    Some((mode, words(command)))
}

/// Words of a command line; single quotes hold them together.
fn words(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => out.push(String::new()),
            c => out.last_mut().unwrap().push(c),
        }
    }
    out.retain(|word| !word.is_empty());
    out
}

fn compare(real: &Side, ours: &Side, mode: Mode, command: &[String]) -> Option<String> {
    let tries = if mode == Mode::Eventually { 360 } else { 1 };
    for attempt in 1.. {
        let (one, other) = std::thread::scope(|scope| {
            let one = scope.spawn(|| real.run(command));
            let other = ours.run(command);
            (one.join().unwrap(), other)
        });
        let difference = match mode {
            Mode::Part => missing(&one, &other),
            _ => differing(&one, &other),
        };
        if difference.is_none() || attempt >= tries {
            return difference;
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    None
}

/// The lines in which two texts differ.
fn differing(real: &str, ours: &str) -> Option<String> {
    if real == ours {
        return None;
    }
    let (real, ours): (Vec<&str>, Vec<&str>) = (real.lines().collect(), ours.lines().collect());
    let show = |mark: &str, lines: &[&str], others: &[&str]| {
        let left = lines.iter().filter(|line| !others.contains(line)).take(30);
        left.map(|line| format!("  {mark} {line}")).collect::<Vec<_>>()
    };
    Some([show("real", &real, &ours), show("ours", &ours, &real)].concat().join("\n"))
}

/// Lines of ours that the real plane does not have, in this order.
fn missing(real: &str, ours: &str) -> Option<String> {
    let mut left = real.lines();
    let lost: Vec<&str> =
        ours.lines().filter(|line| !left.any(|other| other == *line)).take(1).collect();
    lost.first().map(|line| format!("  only ours {line}"))
}

/// Gives a Deployment the status of one whose pods are all there.
fn settle(real: &Side, name: &str) {
    let output = real.output(&words(&format!("kubectl get deploy {name} -o json")));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = &object["spec"]["replicas"];
    let condition = |kind: &str, reason: &str, message: String| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": message,
            "lastUpdateTime": "2024-01-02T03:04:05Z", "lastTransitionTime": "2024-01-02T03:04:05Z",
        })
    };
    let remark = "nothing runs here: pods are only simulated";
    let minimum = format!("Deployment has minimum availability; {remark}.");
    let progressed = format!("Deployment {name:?} has successfully progressed.");
    let status = json!({"status": {
        "observedGeneration": object["metadata"]["generation"], "replicas": count,
        "updatedReplicas": count, "readyReplicas": count, "availableReplicas": count,
        "conditions": [
            condition("Available", "MinimumReplicasAvailable", minimum),
            condition("Progressing", "NewReplicaSetAvailable", progressed),
            condition("Simulated", "NothingRuns", remark.to_owned()),
        ],
    }});
    let mut command = words(&format!("kubectl patch deploy {name} --subresource=status"));
    command.extend(["--type=merge".to_owned(), "-p".to_owned(), status.to_string()]);
    let said = real.run(&command);
    assert!(said.starts_with("exit 0"), "{said}");
}

impl Side {
    fn output(&self, words: &[String]) -> Output {
        let (name, rest) = words.split_first().unwrap();
        let program = if name == "kubectl" { peer("kubectl") } else { PathBuf::from(name) };
        Command::new(program)
            .args(rest)
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/kubectl"))
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &self.home)
            .env("TMPDIR", &self.home)
            .env("TZ", "UTC")
            .env("KUBE_EDITOR", "sed -i 's/size: 4/size: 5/'")
            .output()
            .expect("kubectl runs")
    }

    fn run(&self, words: &[String]) -> String {
        let output = self.output(words);
        let text = |bytes: &[u8]| normal(&String::from_utf8_lossy(bytes));
        format!(
            "exit {}\n{}--- stderr\n{}",
            output.status.code().unwrap_or(-1),
            text(&output.stdout),
            text(&output.stderr)
        )
    }
}
