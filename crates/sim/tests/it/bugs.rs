//! Bugs that the manager could have are found.

use crate::{on_all_cores, prepared, setting};
use sim::explore::{Prepared, play};
use sim::mutants::{ALL, Mutant};

#[test]
fn every_bug_that_was_put_in_is_found() {
    if setting("APRON_SIM").or(setting("APRON_SIM_WALK")).is_some() {
        return;
    }
    let mutants: Vec<&Mutant> = ALL.iter().collect();
    let found = on_all_cores(&mutants, |mutant| {
        let found = find(mutant);
        println!("{}: {}", mutant.name, found.as_deref().unwrap_or("not found"));
        found.is_some()
    });
    let all = mutants.iter().zip(found);
    let missed: Vec<&str> = all.filter(|(_, found)| !found).map(|(one, _)| one.name).collect();
    println!("{} of {} bugs are found", mutants.len() - missed.len(), mutants.len());
    assert_eq!(missed, Vec::<&str>::new());
}

/// How a bug shows: by itself, or when something happens.
fn find(mutant: &Mutant) -> Option<String> {
    let one = prepared().iter().find(|one| one.scenario.name == mutant.scenario).unwrap();
    let plain = judge(one, mutant, None).map(|what| format!("{}: {what}", mutant.scenario));
    plain.or_else(|| {
        one.about_writes().into_iter().find_map(|schedule| {
            let what = judge(one, mutant, Some(schedule))?;
            Some(format!("{}:{schedule}: {what}", mutant.scenario))
        })
    })
}

fn judge(
    one: &Prepared<'_>,
    mutant: &Mutant,
    schedule: Option<sim::fault::Schedule>,
) -> Option<String> {
    match play(&one.from, one.scenario, schedule, Some((mutant.bend)())) {
        Err(failure) => Some(failure.to_string()),
        Ok(outcome) => one.compare(&outcome).into_iter().next(),
    }
}
