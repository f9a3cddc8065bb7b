//! Everything that may happen to a scenario, one thing at a time.

use crate::fault::{ANSWERS, At, CRASHES, Fault, NODE_FAULTS, READ_FAULTS, Schedule, WATCH_FAULTS};
use crate::gate::{Bend, Call};
use crate::history::{self, History};
use crate::pack::Failure;
use crate::picture::{self, Picture};
use crate::scenarios::Scenario;
use crate::stage::{ManagedKinds, Setting, Snapshot, Stage};
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// Calls this long after the last write are those of a manager at rest.
const REST: Duration = Duration::from_secs(10);

/// For so many seconds longer than without a fault nothing may run of a provider: as long as a manager
/// waits before it looks again, twice.
const IDLE_MORE: u64 = 130;
/// And where nobody hears of anything for so long.
const IDLE_SILENT: u64 = 700;

/// Differences of a finding that are told.
const DIFFERENCES_SHOWN: usize = 8;

/// How a scenario went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What there is in the end.
    pub picture: Picture,
    /// What happened on the way.
    pub history: History,
    /// Which calls the manager made in its first life, once the user had done something.
    pub calls: Vec<Call>,
    /// Which watches it had.
    pub watches: Vec<Call>,
    /// Which calls and watches its node had, if there is one.
    pub node: [Vec<Call>; 2],
    /// The most seconds for which nothing ran of a provider in between.
    pub longest_idle: u64,
    /// Which call met the fault.
    pub met: Option<Call>,
    /// What it said.
    pub diary: Vec<String>,
}

/// A scenario that is ready to be played again and again.
pub struct Prepared<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// What it begins with.
    pub from: Snapshot,
    /// How it goes if nothing happens.
    pub reference: Outcome,
}

/// Something that did not come to the same.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Which scenario.
    pub scenario: &'static str,
    /// What happened.
    pub schedule: Option<Schedule>,
    /// To which call.
    pub call: Option<Call>,
    /// What is different.
    pub differences: Vec<String>,
    /// What the managers said.
    pub diary: Vec<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.scenario)?;
        if let Some(schedule) = &self.schedule {
            write!(formatter, ": {schedule}")?;
            if let Some(call) = &self.call {
                write!(formatter, " ({} {})", call.method, call.path)?;
            }
            write!(formatter, "\n  play it again with APRON_SIM='{}:{schedule}'", self.scenario)?;
        }
        for line in self.differences.iter().take(DIFFERENCES_SHOWN) {
            write!(formatter, "\n  {line}")?;
        }
        match self.differences.len().saturating_sub(DIFFERENCES_SHOWN) {
            0 => Ok(()),
            more => write!(formatter, "\n  and {more} more"),
        }
    }
}

/// A cluster in which a manager has been at work: it has made its kinds known, and there is an
/// authority for certificates.
pub fn furnished() -> Result<Snapshot, Failure> {
    let first = Setting { installs_definitions: true, pushes: true, ..Setting::default() };
    on_a_clock(async {
        let mut stage = Stage::open(&Snapshot::empty()?, first).await?;
        stage.settle().await?;
        crate::scenarios::come_and_go(&mut stage).await?;
        Ok(stage.close())
    })
}

/// Plays what comes before a scenario, and then the scenario as it should be.
pub fn prepare<'a>(base: &Snapshot, scenario: &'a Scenario) -> Result<Prepared<'a>, Failure> {
    let base = if scenario.is_start { &Snapshot::empty()? } else { base };
    let from = on_a_clock(async {
        if scenario.is_start {
            return Ok(base.clone());
        }
        let (is_hosted, kinds) = (scenario.is_hosted, scenario.kinds);
        // Definitions of install objects are not among those that every simulation begins with.
        let installs_definitions = kinds != ManagedKinds::Packages;
        let setting =
            Setting { installs_definitions, pushes: true, is_hosted, kinds, ..Setting::default() };
        let mut stage = Stage::open(base, setting).await?;
        (scenario.before)(&mut stage).await?;
        stage.settle().await?;
        Ok(stage.close())
    })?;
    let reference = play(&from, scenario, None, None)?;
    if !reference.history.wrongs.is_empty() {
        return Err(reference.history.wrongs.join("; ").into());
    }
    Ok(Prepared { scenario, from, reference })
}

/// Plays a scenario.
pub fn play(
    from: &Snapshot,
    scenario: &Scenario,
    schedule: Option<Schedule>,
    bend: Option<Bend>,
) -> Result<Outcome, Failure> {
    let (installs_definitions, pushes) = (scenario.is_start, scenario.pushes);
    let (is_hosted, kinds) = (scenario.is_hosted, scenario.kinds);
    let setting = Setting { installs_definitions, pushes, is_hosted, kinds, schedule, bend };
    on_a_clock(async {
        let mut stage = Stage::open(from, setting).await?;
        if scenario.is_start {
            stage.arm();
        } else {
            stage.wake().await?;
            stage.arm();
        }
        (scenario.act)(&mut stage).await?;
        stage.settle().await?;
        let picture = picture::take(&stage.place().log);
        let mut history = history::after(&stage.place().log, from.log.version());
        let machine = stage.machine();
        if let Some(machine) = &machine {
            history.wrongs.extend(machine.wrongs().iter().cloned());
            history.wrongs.extend(machine.misfits(&picture::objects(&stage.place().log)));
        }
        let longest_idle = machine.map_or(0, |machine| machine.longest_idle());
        let (met, diary) = (stage.met(), stage.diary());
        let (calls, watches) = (stage.calls(), stage.watches());
        let node = [stage.node_calls(), stage.node_watches()];
        let _ = stage.close();
        Ok(Outcome { picture, history, calls, watches, node, longest_idle, met, diary })
    })
}

/// Runs something on a runtime of its own, whose clock jumps when everybody waits.
pub(crate) fn on_a_clock<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build()?;
    runtime.block_on(work)
}

/// The calls that somebody made until everything came to rest.
fn until_rest(calls: &[Call]) -> &[Call] {
    let is_change = |call: &&Call| call.is_change() && !call.is_heartbeat();
    let last = calls.iter().rfind(is_change).map(|call| call.time + REST);
    let busy = calls.iter().take_while(|call| last.is_some_and(|last| call.time < last));
    &calls[..busy.count()]
}

impl Prepared<'_> {
    /// The calls that the manager made until it came to rest.
    fn busy(&self) -> &[Call] {
        until_rest(&self.reference.calls)
    }

    /// Everything that may happen to the node: all of it while it is at work, and to its first watch.
    pub fn about_node(&self) -> Vec<Schedule> {
        let [calls, watches] = &self.reference.node;
        let mut all = Vec::new();
        for (number, call) in until_rest(calls).iter().enumerate() {
            // What is answered to a sign of life changes nothing for pods.
            let is_meant =
                |fault: &Fault| !call.is_heartbeat() || !matches!(fault, Fault::Answer(_));
            let faults = NODE_FAULTS.into_iter().filter(is_meant);
            all.extend(faults.map(|fault| Schedule { at: At::Node(number), fault }));
        }
        for number in 0..watches.len() {
            all.extend(WATCH_FAULTS.map(|fault| Schedule { at: At::News(number), fault }));
        }
        all
    }

    /// Everything that may happen.
    pub fn schedules(&self) -> Vec<Schedule> {
        let mut all = Vec::new();
        for (number, call) in self.busy().iter().enumerate() {
            let mut add = |fault| all.push(Schedule { at: At::Call(number), fault });
            CRASHES.into_iter().chain(ANSWERS).for_each(&mut add);
            if call.is_read() {
                add(Fault::Past);
            }
        }
        for number in 0..self.reference.watches.len() {
            let at = At::Watch(number);
            all.extend(WATCH_FAULTS.map(|fault| Schedule { at, fault }));
        }
        all.extend(self.about_node());
        all
    }

    /// Everything that may happen to writes.
    pub fn about_writes(&self) -> Vec<Schedule> {
        let calls = &self.reference.calls;
        let is_write = |at: At| match at {
            At::Call(number) => calls.get(number).is_some_and(Call::is_write),
            _ => false,
        };
        self.schedules().into_iter().filter(|one| is_write(one.at)).collect()
    }

    /// Less than everything: a crash at every moment, but once at each; everything that may happen
    /// to a write; and to each read and each watch one of the things that may happen to it, each
    /// in its turn.
    pub fn essential(&self) -> Vec<Schedule> {
        let busy = self.busy();
        let mut all = Vec::new();
        let mut moments = BTreeSet::new();
        for (number, call) in busy.iter().enumerate() {
            let mut add = |fault| all.push(Schedule { at: At::Call(number), fault });
            if moments.insert(call.moment) {
                add(Fault::CrashBefore);
            }
            let next = busy.get(number + 1).map(|next| next.moment);
            if call.is_write() && next.is_none_or(|next| moments.insert(next)) {
                add(Fault::CrashAfter);
            }
            if call.is_write() {
                ANSWERS.into_iter().for_each(add);
            } else if call.is_watch() {
                add(ANSWERS[number % ANSWERS.len()]);
            } else {
                add(READ_FAULTS[number % READ_FAULTS.len()]);
            }
        }
        for number in 0..self.reference.watches.len() {
            let (at, fault) = (At::Watch(number), WATCH_FAULTS[number % WATCH_FAULTS.len()]);
            all.push(Schedule { at, fault });
        }
        all.extend(self.about_node());
        all
    }

    /// Plays the scenario with a fault and compares.
    pub fn attempt(&self, schedule: Schedule) -> Option<Finding> {
        let call = match schedule.at {
            At::Call(at) => self.reference.calls.get(at),
            At::Watch(at) => self.reference.watches.get(at),
            At::Node(at) => self.reference.node[0].get(at),
            At::News(at) => self.reference.node[1].get(at),
        };
        let found = |differences, diary| Finding {
            scenario: self.scenario.name,
            schedule: Some(schedule),
            call: call.cloned(),
            differences,
            diary,
        };
        let outcome = match play(&self.from, self.scenario, Some(schedule), None) {
            Err(failure) => return Some(found(vec![failure.to_string()], Vec::new())),
            Ok(outcome) => outcome,
        };
        let is_met = match (&outcome.met, call) {
            (Some(met), Some(call)) => met.is_like(call),
            _ => false,
        };
        if !is_met {
            let why = format!("it goes another way each time: the call was {:?}", outcome.met);
            return Some(found(vec![why], outcome.diary));
        }
        let mut differences = match schedule.fault {
            Fault::Past => picture::difference(
                &picture::without_numbers(&self.reference.picture),
                &picture::without_numbers(&outcome.picture),
            ),
            _ => self.compare(&outcome),
        };
        differences.extend(self.idles_too_long(&outcome, schedule.fault));
        (!differences.is_empty()).then(|| found(differences, outcome.diary))
    }

    /// A provider of which nothing ran for longer than the fault explains.
    fn idles_too_long(&self, outcome: &Outcome, fault: Fault) -> Option<String> {
        let is_silent = matches!(fault, Fault::Deaf | Fault::Unreachable | Fault::PowerLoss);
        let more = if is_silent { IDLE_SILENT } else { IDLE_MORE };
        let (idle, usual) = (outcome.longest_idle, self.reference.longest_idle);
        (idle > usual + more).then(|| format!("nothing ran for {idle} s, and not for {usual} s"))
    }

    /// What is not as it should be.
    pub fn compare(&self, outcome: &Outcome) -> Vec<String> {
        let mut differences = picture::difference(&self.reference.picture, &outcome.picture);
        differences.extend(outcome.history.difference(&self.reference.history));
        differences
    }
}
