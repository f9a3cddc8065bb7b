//! The manager in bad weather.
//!
//! `APRON_SIM=install:call-17-crash-after` plays one schedule of one scenario and tells everything
//! about it; `APRON_SIM=install` those of one scenario. Of the essential schedules a part is played,
//! spread over all; `APRON_SIM_MOST=100` plays fewer, `APRON_SIM_MOST=99999` all of them, and
//! `APRON_SIM_ALL=1` every call with every fault. `APRON_SIM_WALK=17` takes one walk and tells
//! everything about it; `APRON_SIM_WALKS=5000` takes more of them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "helpers of tests fail the test that called them, and tests have no settings and tell how far they are"
)]

mod bugs;
mod schedules;
mod walks;
mod weather;

use sim::explore::{Prepared, furnished, prepare};
use sim::scenarios::{ALL, Scenario};
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Every scenario, made ready once for all tests.
fn prepared() -> &'static [Prepared<'static>] {
    static PREPARED: OnceLock<Vec<Prepared<'static>>> = OnceLock::new();
    PREPARED.get_or_init(|| {
        let only = setting("APRON_SIM").unwrap_or_default();
        let only = only.split(':').next().unwrap_or_default();
        let base = furnished().unwrap();
        let meant: Vec<&'static Scenario> =
            ALL.iter().filter(|one| only.is_empty() || only == one.name).collect();
        on_all_cores(&meant, |scenario| {
            let ready = prepare(&base, scenario);
            println!("{} is ready", scenario.name);
            ready.unwrap_or_else(|error| panic!("{} cannot be played: {error}", scenario.name))
        })
    })
}

/// Does something to each of these; the answers are in the same order.
fn on_all_cores<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, Into::into) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    let Some(item) = items.get(at) else { break };
                    let answer = work(item);
                    done.lock().unwrap().push((at, answer));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, answer)| answer).collect()
}
