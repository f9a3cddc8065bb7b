//! Fifty times something is killed with -9, at random moments, while pods come and go: apron itself, a process of
//! its node, a program. Each time everything comes back, and nothing is left behind.
//!
//! `APRON_FAULT_SEED` plays the same dice again, and `APRON_FAULTS` is how many faults there are.

use super::census::{Census, Member, find_members, open_files};
use super::stage::{Running, SYSTEM, Who, is_ready, name, restarts};
use super::{install_tenant, programs, signal};
use crate::control_plane::Asked;
use crate::support::{Scratch, note_untried, patiently, until, wait_for_end};
use serde_json::{Value, json};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// How many faults there are, if nobody says otherwise.
const FAULTS: usize = 50;
/// The longest time in milliseconds between the beginning of something and a fault.
const MOMENT: usize = 600;
/// Descriptors that apron may have at rest beyond those that it had first: connections are kept for a while.
const SPARE: usize = 40;

#[test]
fn whatever_is_killed_comes_back_and_leaves_nothing() {
    kill_fifty_times(Who::Own);
}

#[test]
fn whatever_is_killed_comes_back_and_leaves_nothing_to_a_user_without_rights() {
    kill_fifty_times(Who::User);
}

/// Numbers that a seed tells.
struct Dice(u64);

impl Dice {
    fn throw() -> Self {
        let said = std::env::var("APRON_FAULT_SEED").ok();
        let now = || UNIX_EPOCH.elapsed().unwrap().subsec_nanos().into();
        let seed = said.map_or_else(now, |text| text.parse().unwrap());
        println!("the seed is {seed}");
        Self(seed)
    }

    /// A number below another one.
    fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let end = u64::try_from(end).unwrap();
        usize::try_from((mixed ^ (mixed >> 31)) % end).unwrap()
    }

    fn choose<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Apron,
    /// The process that apron spawns, which waits for the next.
    Node,
    /// The first process in the node's namespaces.
    Supervisor,
    Program,
}

/// What is going on when it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bustle {
    Rest,
    /// The pod is deleted.
    Deletion,
    /// Another pod takes its place.
    Rollout,
    /// A pod beside it begins.
    Arrival,
}

/// Victims in an order that dice give, apron and its node among each five: a node that ends again and again is started
/// more and more slowly, until apron is.
fn order_victims(dice: &mut Dice, count: usize) -> Vec<Victim> {
    let mut all = Vec::new();
    while all.len() < count {
        let of_node = dice.choose(&[Victim::Node, Victim::Supervisor]);
        let [program, apron] = [Victim::Program, Victim::Apron];
        let mut five = vec![apron, of_node, program, program, program];
        while !five.is_empty() {
            all.push(five.remove(dice.below(five.len())));
        }
    }
    all.truncate(count);
    all
}

fn kill_fifty_times(who: Who) {
    let scratch = Scratch::for_everybody();
    if let Some(why) = who.refusal(&scratch) {
        note_untried(&format!("programs of packages as {who:?}"), &why);
        return;
    }
    let said = std::env::var("APRON_FAULTS").ok();
    let count = said.map_or(FAULTS, |text| text.parse().unwrap());
    let mut dice = Dice::throw();
    let mut plane = FaultyPlane::start(who, &scratch);
    let first = plane.rest(None);
    for (number, victim) in order_victims(&mut dice, count).into_iter().enumerate() {
        let began = Instant::now();
        let told = plane.suffer(&mut dice, victim);
        plane.rest(Some(&first));
        println!("{number}: {told}: all is back after {:?}", began.elapsed());
    }
    plane.asks_and_answers();
    let data = plane.running.data.clone();
    plane.running.up.stop();
    patiently(|| {
        let last = Census::default().find_growth(&Census::take(&data));
        let kinds = ["process", "namespace", "mount", "link", "layer", "connected", "listening"];
        let is_left = |line: &&str| kinds.iter().any(|kind| line.starts_with(kind));
        let left: Vec<&str> = last.lines().filter(is_left).collect();
        if left.is_empty() { Ok(()) } else { Err(left.join("\n")) }
    });
}

/// A control plane with one provider, and things that happen to it.
struct FaultyPlane<'a> {
    who: Who,
    running: Running<'a>,
    asked: Asked,
    /// Descriptors that this apron had first at rest.
    open: Option<usize>,
}

impl<'a> FaultyPlane<'a> {
    fn start(who: Who, scratch: &'a Scratch) -> Self {
        let running = Running::start_as(who, scratch, &[]);
        install_tenant(&running);
        let asked = Asked::new(&running.up.kubeconfig);
        Self { who, running, asked, open: None }
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let kind =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        self.asked.send(method, path, kind, body).map_err(|error| format!("{path}: {error}"))
    }

    fn list(&self, path: &str) -> Result<Vec<Value>, String> {
        let listed = self.send("GET", path, &Value::Null)?;
        Ok(listed["items"].as_array().cloned().unwrap_or_default())
    }

    fn pods(&self) -> Result<Vec<Value>, String> {
        self.list("/api/v1/pods")
    }

    fn processes(&self, name: &str) -> Vec<Member> {
        let all = find_members(&self.running.data);
        all.into_iter().filter(|one| one.name == name).collect()
    }

    /// Waits until everything is as it should be, and counts what there is then.
    fn rest(&mut self, first: Option<&Census>) -> Census {
        let census = patiently(|| {
            self.try_resting(first).map_err(|why| {
                let complaints = fs_err::read_to_string(self.running.scratch.join("complaints"));
                format!("{why}\nit said:\n{}", complaints.unwrap_or_default())
            })
        });
        let listed = self.running.kubectl(&["get", "pods", "-n", SYSTEM]).ok().stdout;
        assert!(listed.contains("1/1") && listed.contains("Running"), "{listed}");
        let open = open_files(&self.running.up.id());
        let before = *self.open.get_or_insert(open);
        assert!(open <= before + SPARE, "apron had {before} descriptors, and has {open}");
        census
    }

    fn try_resting(&self, first: Option<&Census>) -> Result<Census, String> {
        let deployments = self.list(&format!("/apis/apps/v1/namespaces/{SYSTEM}/deployments"))?;
        let [deployment] = deployments.as_slice() else {
            return Err(format!("there are {} Deployments", deployments.len()));
        };
        let status = &deployment["status"];
        let is_complete = status["observedGeneration"] == deployment["metadata"]["generation"]
            && ["replicas", "updatedReplicas", "availableReplicas"]
                .iter()
                .all(|count| status[*count] == 1);
        if !is_complete {
            return Err(format!("{deployment:#}"));
        }
        let pods = self.pods()?;
        let [pod] = pods.as_slice() else {
            return Err(format!("there are {} pods: {pods:#?}", pods.len()));
        };
        let is_running = pod["status"]["containerStatuses"][0]["state"]["running"].is_object();
        if !is_ready(pod) || !is_running || !pod["metadata"]["deletionTimestamp"].is_null() {
            return Err(format!("{pod:#}"));
        }
        // The socket to pods is for the node's own user.
        if self.who == Who::Own {
            let told = self.running.try_asking(pod, "/").ok_or("the program does not answer")?;
            if !told.starts_with(name(pod)) {
                return Err(format!("another program answers: {told}"));
            }
        }
        let census = Census::take(&self.running.data);
        for one in ["up", "__node", "__supervise", "tenant"] {
            let count = census.count(&format!("process {one}"));
            if count != 1 {
                return Err(format!("there are {count} of {one}"));
            }
        }
        let growth = first.map(|first| first.find_growth(&census)).unwrap_or_default();
        if growth.is_empty() { Ok(census) } else { Err(growth) }
    }

    /// Kills something while something else goes on, and says what.
    fn suffer(&mut self, dice: &mut Dice, victim: Victim) -> String {
        let pods = self.pods().unwrap();
        // A program that ends a second time is not started at once.
        let is_fresh = restarts(&pods[0]) == 0;
        let bustle = if victim == Victim::Program && !is_fresh {
            dice.choose(&[Bustle::Deletion, Bustle::Rollout])
        } else {
            let all = [Bustle::Rest, Bustle::Deletion, Bustle::Rollout, Bustle::Arrival];
            dice.choose(&all)
        };
        self.begin(bustle, &pods[0]);
        let moment = dice.below(MOMENT);
        std::thread::sleep(Duration::from_millis(moment.try_into().unwrap()));
        self.kill(victim, dice);
        if bustle == Bustle::Arrival {
            self.end_arrival();
        }
        format!("{victim:?} after {moment} ms of {bustle:?}")
    }

    fn begin(&self, bustle: Bustle, pod: &Value) {
        let pods = format!("/api/v1/namespaces/{SYSTEM}/pods");
        match bustle {
            Bustle::Rest => {}
            Bustle::Deletion => {
                self.send("DELETE", &format!("{pods}/{}", name(pod)), &Value::Null).unwrap();
            }
            Bustle::Rollout => {
                let deployments = format!("/apis/apps/v1/namespaces/{SYSTEM}/deployments");
                let all = self.list(&deployments).unwrap();
                let now = UNIX_EPOCH.elapsed().unwrap().as_nanos().to_string();
                let marks = json!({"kubectl.kubernetes.io/restartedAt": now});
                let change = json!({"spec": {"template": {"metadata": {"annotations": marks}}}});
                let path = format!("{deployments}/{}", name(&all[0]));
                self.send("PATCH", &path, &change).unwrap();
            }
            Bustle::Arrival => drop(self.send("POST", &pods, &beside(pod, &json!({}))).unwrap()),
        }
    }

    fn kill(&mut self, victim: Victim, dice: &mut Dice) {
        let verb = match victim {
            Victim::Apron => return self.start_again(dice),
            Victim::Node => "__node",
            Victim::Supervisor => "__supervise",
            Victim::Program => {
                let all = until("a program", || {
                    Some(programs(&self.running)).filter(|all| !all.is_empty())
                });
                kill_if_there(&all[dice.below(all.len())]);
                return;
            }
        };
        let all = until(verb, || Some(self.processes(verb)).filter(|all| !all.is_empty()));
        kill_if_there(&all[dice.below(all.len())].id);
    }

    /// Kills apron, and starts it where it was; sometimes it is killed again while it starts.
    fn start_again(&mut self, dice: &mut Dice) {
        let id = self.running.up.id();
        signal(&id, "-9");
        wait_for_end(&id);
        if dice.below(2) == 0 {
            let after = Duration::from_millis(dice.below(MOMENT).try_into().unwrap());
            Running::start_and_kill(self.who, self.running.scratch, after);
        }
        self.running = Running::start_as(self.who, self.running.scratch, &[]);
        self.asked = Asked::new(&self.running.up.kubeconfig);
        self.open = None;
    }

    fn end_arrival(&self) {
        let path = format!("/api/v1/namespaces/{SYSTEM}/pods/beside");
        patiently(|| match self.asked.send("DELETE", &path, "", &Value::Null) {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(refusal)) if refusal.code == 404 => Ok(()),
            Err(error) => Err(error.to_string()),
        });
    }

    /// The network of pods works: a program is asked over it.
    fn asks_and_answers(&self) {
        let pod = &self.pods().unwrap()[0];
        let probe = json!({"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 1});
        let path = format!("/api/v1/namespaces/{SYSTEM}/pods");
        self.send("POST", &path, &beside(pod, &json!({"readinessProbe": probe}))).unwrap();
        patiently(|| {
            let pod = self.send("GET", &format!("{path}/beside"), &Value::Null)?;
            if is_ready(&pod) { Ok(()) } else { Err(format!("{pod:#}")) }
        });
        self.end_arrival();
    }
}

/// A pod with the same program.
fn beside(pod: &Value, more: &Value) -> Value {
    let mut container = json!({"name": "c", "image": pod["spec"]["containers"][0]["image"]});
    container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "beside", "namespace": SYSTEM},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
    })
}

/// Kills a process that may be about to end by itself, and waits until it has: until then everything is as before.
fn kill_if_there(id: &str) {
    let _ = std::process::Command::new("kill").args(["-9", id]).output().unwrap();
    wait_for_end(id);
}
