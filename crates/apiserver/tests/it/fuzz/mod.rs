//! Server-side apply and every other write, at random, on both servers: the objects and who
//! owns their fields must be the same after each.
//!
//! A *seed* is one made-up kind with objects that live through random histories. A difference
//! is narrowed down to the shortest history that shows it, and printed with its seed.
//! `APRON_SSA_SEED=n` starts at that seed, `APRON_SSA_SEEDS=n` runs that many,
//! `APRON_SSA_OBJECTS=n` gives each that many objects.

mod dice;
mod run;
mod schema;
mod shrink;
mod step;

use std::sync::Arc;
use std::time::{Duration, Instant};

use dice::Dice;
use run::{Both, Tally};
use step::Step;

const SEEDS: usize = 20;
const OBJECTS: usize = 19;
const STEPS: usize = 55;
/// Histories that run at the same time.
const WIDTH: usize = 24;

#[expect(clippy::disallowed_methods, reason = "what a test run is asked for has no other way in")]
fn setting(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_writes_end_alike_on_both_servers() {
    let both = Arc::new(Both::start().await);
    let first = setting("APRON_SSA_SEED", 1);
    let (seeds, objects) =
        (setting("APRON_SSA_SEEDS", SEEDS), setting("APRON_SSA_OBJECTS", OBJECTS));
    println!("seeds {first} to {} with {objects} objects each", first + seeds - 1);
    let start = Instant::now();
    let mut kinds = Vec::new();
    for seed in first..first + seeds {
        let made = schema::made(u64::try_from(seed).unwrap_or_default(), seed);
        both.define(&made).await;
        kinds.push(Arc::new(made));
    }
    // Upstream holds back writes to a kind that is younger than this.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let permits = Arc::new(tokio::sync::Semaphore::new(WIDTH));
    let mut running = tokio::task::JoinSet::new();
    for object in 0..objects {
        for made in &kinds {
            let mut dice = Dice::new(made.seed.wrapping_mul(1_000_003) + object as u64);
            let steps: Vec<Step> = (0..STEPS).map(|_| step::random(&mut dice, made)).collect();
            let (both, made) = (Arc::clone(&both), Arc::clone(made));
            let permit = Arc::clone(&permits).acquire_owned().await.expect("a permit");
            running.spawn(async move {
                let _permit = permit;
                both.judge(&made, object, steps).await
            });
        }
    }
    let mut tally = Tally::default();
    while let Some(done) = running.join_next().await {
        tally.add(done.expect("a history runs to its end"));
    }
    let Tally { writes, accepted, undecided, failures } = tally;
    println!(
        "{writes} writes compared ({accepted} accepted) in {:.0?}, {undecided} where upstream \
         answers one way or another, {} differences",
        start.elapsed(),
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(accepted * 2 > writes, "most writes must be taken, or little is compared");
}
