//! Whatever happens, the cluster comes to the same.

use crate::{on_all_cores, prepared, setting};
use sim::explore::{Finding, Outcome, Prepared, play};
use sim::fault::{At, Fault, Schedule};
use sim::gate::Call;
use std::time::Instant;

/// So many of the essential schedules are played if nobody says otherwise.
const PLAYED: usize = 5_100;
/// And so many of those of scenarios whose Deployments become pods: of what happens to the node, and of
/// what happens to the manager.
const PLAYED_HOSTED: [usize; 2] = [220, 100];
/// What once went wrong, and is not among the essential: it is played each time.
const ONCE_WRONG: [(&str, &str, Fault); 1] =
    [("start", "/apis/pkg.crossplane.io/v1beta1", Fault::Answer(404))];
/// Findings that are shown.
const SHOWN: usize = 60;

#[test]
fn whatever_happens_to_a_call_the_cluster_comes_to_the_same() {
    if setting("APRON_SIM_WALK").is_some() {
        return;
    }
    let start = Instant::now();
    let only = setting("APRON_SIM").unwrap_or_default();
    let only: Option<Schedule> =
        only.split_once(':').map(|(_, schedule)| schedule.parse().unwrap());
    let is_all = setting("APRON_SIM_ALL").is_some();
    let most = |usually: usize| {
        let most = if is_all { usize::MAX } else { usually };
        setting("APRON_SIM_MOST").map_or(most, |text| text.parse().unwrap())
    };
    let prepared = prepared();
    println!("{} scenarios ready after {:?}", prepared.len(), start.elapsed());
    let mut all = Vec::new();
    for one in prepared {
        let schedules = match only {
            Some(only) => vec![only],
            None if is_all => one.schedules(),
            None => one.essential(),
        };
        let (calls, possible) = (one.reference.calls.len(), one.schedules().len());
        let (name, watches) = (one.scenario.name, one.reference.watches.len());
        println!(
            "{name}: {calls} calls, {watches} watches, {} of {possible} schedules",
            schedules.len()
        );
        all.extend(schedules.into_iter().map(|schedule| (one, schedule)));
    }
    if only.is_some() {
        for one in prepared {
            tell(&one.reference.calls);
            tell(&one.reference.node[0]);
        }
    }
    let is_hosted = |(one, _): &(&Prepared<'_>, Schedule)| one.scenario.is_hosted;
    let (hosted, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_hosted);
    let mut all = spread(others, most(PLAYED));
    let (of_node, of_manager): (Vec<_>, Vec<_>) =
        hosted.into_iter().partition(|(_, schedule)| schedule.at.is_of_node());
    all.extend(spread(of_node, most(PLAYED_HOSTED[0])));
    all.extend(spread(of_manager, most(PLAYED_HOSTED[1])));
    if only.is_none() {
        all.extend(prepared.iter().flat_map(|one| once_wrong(one).map(move |it| (one, it))));
    }
    let findings = on_all_cores(&all, |(one, schedule)| one.attempt(*schedule));
    let findings: Vec<Finding> = findings.into_iter().flatten().collect();
    println!("{} schedules, {} findings, {:?}", all.len(), findings.len(), start.elapsed());
    if only.is_some() {
        for one in &findings {
            println!("{}", one.diary.join("\n"));
        }
    }
    let shown: Vec<String> = findings.iter().take(SHOWN).map(Finding::to_string).collect();
    assert!(findings.is_empty(), "{} findings, among them\n{}", findings.len(), shown.join("\n"));
}

/// What once went wrong in a scenario.
fn once_wrong<'a>(one: &'a Prepared<'_>) -> impl Iterator<Item = Schedule> + 'a {
    let calls = one.reference.calls.iter().enumerate();
    calls.flat_map(|(number, call)| {
        let meant = ONCE_WRONG
            .iter()
            .filter(|(name, path, _)| *name == one.scenario.name && *path == call.path);
        meant.map(move |(_, _, fault)| Schedule { at: At::Call(number), fault: *fault })
    })
}

/// So many of them, as far apart from each other as they can be.
fn spread<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let (count, most) = (all.len(), most.min(all.len()));
    let is_meant = |at: usize| at * most / count != (at + 1) * most / count;
    all.into_iter().enumerate().filter(|(at, _)| is_meant(*at)).map(|(_, one)| one).collect()
}

fn tell(calls: &[Call]) {
    for (number, call) in calls.iter().enumerate() {
        println!("{number} {:?} {} {}?{}", call.moment, call.method, call.path, call.query);
    }
}

#[test]
fn a_part_is_spread_over_all() {
    assert_eq!(spread((0..10).collect(), 5), [1, 3, 5, 7, 9]);
    assert_eq!(spread((0..7).collect(), 5).len(), 5);
    assert_eq!(spread((0..7).collect(), 99).len(), 7);
    assert!(spread(Vec::<usize>::new(), 5).is_empty());
}

#[test]
fn the_same_scenario_makes_the_same_calls_each_time() {
    if setting("APRON_SIM_WALK").is_some() {
        return;
    }
    let said = |call: &Call| format!("{} {}?{}", call.method, call.plain_path(), call.query);
    for one in prepared() {
        let all = |outcome: &Outcome| -> Vec<String> {
            outcome.calls.iter().chain(&outcome.node[0]).map(said).collect()
        };
        let wanted = all(&one.reference);
        let again = play(&one.from, one.scenario, None, None).unwrap();
        let calls = all(&again);
        let name = one.scenario.name;
        for (number, (wanted, found)) in wanted.iter().zip(&calls).enumerate() {
            assert_eq!(wanted, found, "{name}: call {number}");
        }
        assert_eq!(wanted.len(), calls.len(), "{name}");
        assert_eq!(one.compare(&again), Vec::<String>::new(), "{name}");
    }
}
