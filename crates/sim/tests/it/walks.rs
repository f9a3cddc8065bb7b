//! Whatever users do, and in whichever order, the laws hold where it ends.

use crate::{on_all_cores, setting};
use sim::explore::furnished;
use sim::mutants::{ALL, Mutant};
use sim::stage::Snapshot;
use sim::walk::{foretell, ground, shorten, steps, walk};
use std::sync::OnceLock;
use std::time::Instant;

/// So many walks are taken if nobody says otherwise.
const WALKS: u64 = 200;
/// So many plans are made and carried out if nobody says otherwise.
const PLANS: u64 = 100;
/// So many that break a law are made shorter and told.
const TOLD: usize = 3;
/// A bug shows in one of the first so many walks.
const BUG_WALKS: u64 = 100;
/// Those that do not: no law says in which order owners come, a Deployment must be removed at the
/// very call that something happens to, no walk leaves a kind behind that has objects, and in none
/// does a provider fail to start, or have pods.
const UNSEEN: [&str; 5] = [
    "takes pods that end for gone",
    "does not let a provider come back",
    "turns the order of owners around",
    "removes a Deployment at the first attempt or never",
    "lets definitions go with their objects",
];

/// The ground that all walks begin from.
fn begin() -> &'static Snapshot {
    static GROUND: OnceLock<Snapshot> = OnceLock::new();
    GROUND.get_or_init(|| ground(&furnished().unwrap()).unwrap())
}

/// The one seed that was asked for, or as many as were asked for.
fn seeds(usually: u64) -> Vec<u64> {
    let count = setting("APRON_SIM_WALKS").map_or(usually, |text| text.parse().unwrap());
    match setting("APRON_SIM_WALK") {
        Some(only) => vec![only.parse().unwrap()],
        None => (0..count).collect(),
    }
}

#[test]
fn wherever_users_go_the_laws_hold_at_the_end() {
    if setting("APRON_SIM").is_some() {
        return;
    }
    let start = Instant::now();
    let seeds = seeds(WALKS);
    if let [only] = seeds[..] {
        for step in steps(only) {
            println!("  {step}");
        }
    }
    let all = on_all_cores(&seeds, |seed| (*seed, walk(begin(), &steps(*seed), None).0));
    let bad: Vec<(u64, Vec<String>)> =
        all.into_iter().filter(|(_, broken)| !broken.is_empty()).collect();
    println!("{} walks, {} broke a law, {:?}", seeds.len(), bad.len(), start.elapsed());
    for (seed, broken) in &bad {
        println!("APRON_SIM_WALK={seed}: {}", broken.join("; "));
    }
    let told = bad.iter().take(TOLD).map(|(seed, _)| *seed);
    let told: Vec<String> = told.map(|seed| tell(seed, seeds.len() == 1)).collect();
    assert!(bad.is_empty(), "{} walks broke a law, among them\n{}", bad.len(), told.join("\n"));
}

/// The shortest way to break a law that is in a walk; and what managers say on it.
fn tell(seed: u64, says_all: bool) -> String {
    let short = shorten(begin(), steps(seed));
    let (broken, diary) = walk(begin(), &short, None);
    let mut lines = vec![format!("APRON_SIM_WALK={seed}")];
    lines.extend(short.iter().map(|step| format!("  {step}")));
    if says_all {
        lines.extend(diary);
    }
    lines.extend(broken.iter().map(|law| format!("=> {law}")));
    lines.join("\n")
}

#[test]
fn what_is_planned_is_what_happens() {
    if setting("APRON_SIM").is_some() {
        return;
    }
    let start = Instant::now();
    let seeds = seeds(PLANS);
    let all = on_all_cores(&seeds, |seed| foretell(begin(), *seed));
    let said: usize = all.iter().map(|one| one.said).sum();
    let bad = seeds.iter().zip(all).filter(|(_, one)| !one.otherwise.is_empty());
    let bad: Vec<String> =
        bad.map(|(seed, one)| format!("{seed}: {}", one.otherwise.join("; "))).collect();
    let time = start.elapsed();
    let (plans, wrong) = (seeds.len(), bad.len());
    println!("{plans} plans of {said} objects, {wrong} came otherwise, {time:?}");
    assert!(said > plans || plans == 1, "plans that say nothing show nothing");
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn bugs_that_were_put_in_break_laws() {
    if setting("APRON_SIM").or(setting("APRON_SIM_WALK")).is_some() {
        return;
    }
    let mutants: Vec<&Mutant> = ALL.iter().filter(|one| !UNSEEN.contains(&one.name)).collect();
    let found = on_all_cores(&mutants, |mutant| {
        let bent = |seed: &u64| walk(begin(), &steps(*seed), Some((mutant.bend)())).0;
        let found = (0..BUG_WALKS).find_map(|seed| Some((seed, bent(&seed).into_iter().next()?)));
        println!("{}: {found:?}", mutant.name);
        found.is_some()
    });
    let all = mutants.iter().zip(found);
    let missed: Vec<&str> = all.filter(|(_, found)| !found).map(|(one, _)| one.name).collect();
    println!("walks find {} of {} bugs", mutants.len() - missed.len(), mutants.len());
    assert_eq!(missed, Vec::<&str>::new());
}
