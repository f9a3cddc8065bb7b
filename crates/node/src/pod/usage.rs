//! What is used on average, from two samples of what was used so far.

use crate::protocol::{ContainerName, ContainerUsage, UsageCount, UsageSample};
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a container has used is known at its start, too: nothing. An average from then on is one of so many milliseconds at
/// least, as a metrics server has it; that of a moment says little.
const YOUNG_MS: u64 = 10_000;

/// What something uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageRate {
    /// Billionths of a core, on average.
    pub cpu_nano: u64,
    /// Bytes of memory, in the end.
    pub memory: u64,
}

/// What all parts of something use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRates {
    /// The end of the time that was looked at.
    pub at: Timestamp,
    /// How long that time was.
    pub window: Duration,
    /// Its parts by name.
    pub parts: BTreeMap<String, UsageRate>,
}

/// What pods and the machine use, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageTable {
    /// The machine, as one part without a name.
    pub machine: Option<UsageRates>,
    /// Pods by uid, those of which each container that runs is known.
    pub pods: BTreeMap<String, UsageRates>,
}

/// What was used from one moment to another.
struct UsageSpan {
    window_ms: u64,
    rate: UsageRate,
}

/// What is used according to a sample that was taken now, and the one before it.
pub fn compare_samples(
    before: Option<&UsageSample>,
    sample: &UsageSample,
    now: Timestamp,
) -> UsageTable {
    let since_boot = sample.uptime_ms;
    let machine = before.and_then(|before| {
        average_over((before.uptime_ms, before.machine.cpu_ms), (since_boot, sample.machine))
    });
    let known: BTreeMap<&ContainerName, (u64, &ContainerUsage)> = before
        .into_iter()
        .flat_map(|before| before.containers.iter().map(|one| (before.uptime_ms, one)))
        .map(|(moment, one)| (&one.container, (moment, one)))
        .collect();
    let mut pods: BTreeMap<String, Option<UsageRates>> = BTreeMap::new();
    for one in &sample.containers {
        let earlier = known.get(&one.container).filter(|(_, it)| it.started_ms == one.started_ms);
        let age = since_boot.saturating_sub(one.started_ms);
        let from = match earlier {
            Some((moment, it)) => Some((*moment, it.count.cpu_ms)),
            None => (age >= YOUNG_MS).then_some((one.started_ms, 0)),
        };
        let rates = pods.entry(one.container.pod.clone()).or_insert_with(|| {
            Some(UsageRates { at: now, window: Duration::ZERO, parts: BTreeMap::new() })
        });
        match from.and_then(|from| average_over(from, (since_boot, one.count))) {
            Some(UsageSpan { window_ms, rate }) => {
                if let Some(rates) = rates {
                    rates.window = rates.window.max(Duration::from_millis(window_ms));
                    rates.parts.insert(one.container.name.clone(), rate);
                }
            }
            // A pod is told of as a whole, or not at all.
            None => *rates = None,
        }
    }
    UsageTable {
        machine: machine.map(|UsageSpan { window_ms, rate }| UsageRates {
            at: now,
            window: Duration::from_millis(window_ms),
            parts: BTreeMap::from([(String::new(), rate)]),
        }),
        pods: pods.into_iter().filter_map(|(pod, rates)| Some((pod, rates?))).collect(),
    }
}

/// The average between a moment, with what was used until then, and a later one. What was used by a process that nobody
/// waited for is not counted any more after its end, so that it may have become less.
fn average_over((from, used): (u64, u64), (to, count): (u64, UsageCount)) -> Option<UsageSpan> {
    let window_ms = to.checked_sub(from).filter(|window| *window > 0)?;
    let used_ms = count.cpu_ms.saturating_sub(used);
    let cpu_nano = u128::from(used_ms) * 1_000_000_000 / u128::from(window_ms);
    let cpu_nano = u64::try_from(cpu_nano).unwrap_or(u64::MAX);
    Some(UsageSpan { window_ms, rate: UsageRate { cpu_nano, memory: count.memory } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(pod: &str, name: &str, attempt: u32) -> ContainerName {
        ContainerName { pod: pod.to_owned(), name: name.to_owned(), attempt }
    }

    fn sample(uptime_ms: u64, used: &[(ContainerName, u64, u64)]) -> UsageSample {
        let containers = used.iter().map(|(container, started_ms, cpu_ms)| ContainerUsage {
            container: container.clone(),
            started_ms: *started_ms,
            count: UsageCount { cpu_ms: *cpu_ms, memory: 7 << 20 },
        });
        let machine = UsageCount { cpu_ms: uptime_ms / 4, memory: 1 << 30 };
        UsageSample { uptime_ms, machine, containers: containers.collect() }
    }

    fn cpu(table: &UsageTable, pod: &str) -> Option<Vec<u64>> {
        Some(table.pods.get(pod)?.parts.values().map(|one| one.cpu_nano).collect())
    }

    #[test]
    fn what_is_used_is_what_came_to_it_between_two_samples() {
        let one = container("p", "c", 0);
        let first = sample(100_000, &[(one.clone(), 5_000, 40_000)]);
        let second = sample(115_000, &[(one, 5_000, 43_000)]);
        let table = compare_samples(Some(&first), &second, Timestamp::UNIX_EPOCH);
        let rates = &table.pods["p"];
        assert_eq!((rates.at, rates.window), (Timestamp::UNIX_EPOCH, Duration::from_secs(15)));
        assert_eq!(rates.parts["c"], UsageRate { cpu_nano: 200_000_000, memory: 7 << 20 });
        let machine = table.machine.unwrap();
        assert_eq!(machine.parts[""], UsageRate { cpu_nano: 250_000_000, memory: 1 << 30 });
    }

    #[test]
    fn a_container_is_known_from_its_start_once_that_is_ten_seconds_ago() {
        let young = |age: u64| {
            let used = [(container("p", "c", 0), 100_000, 500)];
            cpu(&compare_samples(None, &sample(100_000 + age, &used), Timestamp::UNIX_EPOCH), "p")
        };
        assert_eq!(young(9_990), None);
        assert_eq!(young(10_000), Some(vec![50_000_000]));
        // The machine's time is known from two samples only.
        let table = compare_samples(None, &sample(10_000, &[]), Timestamp::UNIX_EPOCH);
        assert_eq!(table, UsageTable::default());
    }

    #[test]
    fn another_run_of_a_container_is_another_one() {
        let first = sample(100_000, &[(container("p", "c", 0), 5_000, 40_000)]);
        let again = [(container("p", "c", 1), 104_000, 100)];
        let table = compare_samples(Some(&first), &sample(115_000, &again), Timestamp::UNIX_EPOCH);
        assert_eq!(cpu(&table, "p"), Some(vec![9_090_909]));
        let fresh = [(container("p", "c", 1), 114_000, 100)];
        let table = compare_samples(Some(&first), &sample(115_000, &fresh), Timestamp::UNIX_EPOCH);
        assert_eq!(cpu(&table, "p"), None);
    }

    #[test]
    fn a_pod_is_told_of_once_each_container_is_known() {
        let used = [(container("p", "a", 0), 5_000, 10), (container("p", "b", 0), 99_000, 10)];
        let other = [(container("q", "a", 0), 5_000, 10)];
        let all = sample(100_000, &[used.to_vec(), other.to_vec()].concat());
        let table = compare_samples(None, &all, Timestamp::UNIX_EPOCH);
        assert_eq!((cpu(&table, "p"), table.pods.len()), (None, 1));
    }

    #[test]
    fn time_that_is_not_counted_any_more_is_no_time() {
        let one = container("p", "c", 0);
        let first = sample(100_000, &[(one.clone(), 5_000, 40_000)]);
        let second = sample(115_000, &[(one, 5_000, 39_000)]);
        let table = compare_samples(Some(&first), &second, Timestamp::UNIX_EPOCH);
        assert_eq!(cpu(&table, "p"), Some(vec![0]));
        // Nothing is known of no time at all.
        let table = compare_samples(Some(&second), &second, Timestamp::UNIX_EPOCH);
        assert_eq!(table, UsageTable::default());
    }
}
