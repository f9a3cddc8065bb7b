//! What containers and the machine used so far, from `/proc`: a node has no control groups that would count it.
//!
//! What a container uses is what the processes of its PID namespace use, with those that they waited for. Of memory
//! that is what is resident; pages that several of them share are counted for each. A program that was run in
//! a container from outside (`exec` probes) counts as long as it runs.

use super::because;
use crate::protocol::{ContainerName, ContainerUsage, UsageCount, UsageSample};
use fs_err as fs;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The kernel counts time in hundredths of a second, whatever its own clock is.
const TICK_MS: u64 = 10;

/// Counts what the machine used, and the containers that these processes are the first of.
pub(super) fn count_usage(first: Vec<(ContainerName, i32)>) -> Result<UsageSample, String> {
    let read = |path: &str| fs::read_to_string(path).map_err(because("count what is used"));
    let odd = |path: &str| format!("cannot count what is used: {path} is not as expected");
    let uptime_ms = parse_uptime(&read("/proc/uptime")?).ok_or_else(|| odd("/proc/uptime"))?;
    let cpu_ms = parse_machine_time(&read("/proc/stat")?).ok_or_else(|| odd("/proc/stat"))?;
    let memory =
        parse_machine_memory(&read("/proc/meminfo")?).ok_or_else(|| odd("/proc/meminfo"))?;
    let mut found: HashMap<PathBuf, ContainerUsage> = HashMap::new();
    for (container, pid) in first {
        let directory = Path::new("/proc").join(pid.to_string());
        // One that has ended meanwhile uses nothing.
        let (Some(namespace), Some(process)) = (find_namespace(&directory), read_stat(&directory))
        else {
            continue;
        };
        let started_ms = process.started_ticks.saturating_mul(TICK_MS);
        let count = UsageCount::default();
        found.insert(namespace, ContainerUsage { container, started_ms, count });
    }
    for entry in fs::read_dir("/proc").map_err(because("count what is used"))?.flatten() {
        let is_process = entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok());
        let namespace = if is_process { find_namespace(&entry.path()) } else { None };
        let Some(own) = namespace.and_then(|namespace| found.get_mut(&namespace)) else { continue };
        let Some(process) = read_stat(&entry.path()) else { continue };
        own.count.memory = own.count.memory.saturating_add(read_resident(&entry.path()));
        own.count.cpu_ms =
            own.count.cpu_ms.saturating_add(process.cpu_ticks.saturating_mul(TICK_MS));
    }
    let containers = found.into_values().collect();
    Ok(UsageSample { uptime_ms, machine: UsageCount { cpu_ms, memory }, containers })
}

/// What names the PID namespace of a process.
fn find_namespace(process: &Path) -> Option<PathBuf> {
    fs::read_link(process.join("ns/pid")).ok()
}

fn read_stat(process: &Path) -> Option<ProcessStat> {
    parse_process(&fs::read_to_string(process.join("stat")).ok()?)
}

/// The memory that a process has, which is none after its end.
fn read_resident(process: &Path) -> u64 {
    let status = fs::read_to_string(process.join("status")).ok();
    status.and_then(|status| find_amount(&status, "VmRSS")).unwrap_or_default()
}

/// What the kernel says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcessStat {
    /// Its own time, and that of children that it waited for.
    cpu_ticks: u64,
    started_ticks: u64,
}

/// Reads `/proc/PID/stat`. The name in parentheses is the program's own choice, and may have any letter in it.
fn parse_process(text: &str) -> Option<ProcessStat> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    // The third field, as `proc(5)` counts, is the first after the name.
    let field = |number: usize| fields.get(number.checked_sub(3)?)?.parse::<i64>().ok();
    let amount = |number: usize| field(number).map(|value| u64::try_from(value).unwrap_or(0));
    let mut cpu_ticks = 0_u64;
    for number in 14..=17 {
        cpu_ticks = cpu_ticks.saturating_add(amount(number)?);
    }
    Some(ProcessStat { cpu_ticks, started_ticks: amount(22)? })
}

/// Reads `/proc/uptime`: seconds with two places.
fn parse_uptime(text: &str) -> Option<u64> {
    let (seconds, part) = text.split_ascii_whitespace().next()?.split_once('.')?;
    let part = part.parse::<u64>().ok().filter(|_| part.len() == 2)?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000)?.checked_add(part.checked_mul(10)?)
}

/// Reads the time of all processors from `/proc/stat`, without that in which they had nothing to do. Guests are in
/// the time of users already.
fn parse_machine_time(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> =
        line.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, _idle, _waits, interrupts, soft_interrupts, ..] = fields.as_slice()
    else {
        return None;
    };
    let ticks = [user, nice, system, interrupts, soft_interrupts].into_iter();
    Some(ticks.fold(0_u64, |sum, one| sum.saturating_add(*one)).saturating_mul(TICK_MS))
}

/// Reads what of the memory is in use from `/proc/meminfo`, as a kubelet does: all that is not free, without
/// what was read of files and not looked at again.
fn parse_machine_memory(text: &str) -> Option<u64> {
    let used = find_amount(text, "MemTotal")?.saturating_sub(find_amount(text, "MemFree")?);
    Some(used.saturating_sub(find_amount(text, "Inactive(file)")?))
}

/// The bytes that a line `NAME: 12 kB` tells of.
fn find_amount(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_it_is_called() {
        let rest = "S 1 7 7 0 -1 4194560 900 80 1 0 12 34 5 6 20 0 9 0 4711 1265664 250 18446744073709551615 1";
        let expected = Some(ProcessStat { cpu_ticks: 57, started_ticks: 4711 });
        for name in ["tenant", "a b", ") S 9 9 (", ""] {
            assert_eq!(parse_process(&format!("42 ({name}) {rest}\n")), expected, "{name}");
        }
        for text in ["", "42 (x)", "42 (x) S 1 2 3"] {
            assert_eq!(parse_process(text), None, "{text}");
        }
    }

    #[test]
    fn the_machine_is_read_from_its_totals() {
        assert_eq!(parse_uptime("1234.56 2000.00\n"), Some(1_234_560));
        assert_eq!(parse_uptime("soon"), None);
        let stat = "cpu  100 2 30 9000 40 5 6 7 8 9\ncpu0 100 2 30 9000 40 5 6 7 8 9\n";
        assert_eq!(parse_machine_time(stat), Some(1_430));
        assert_eq!(parse_machine_time("cpu0 1 2 3"), None);
        let memory =
            "MemTotal:  1000 kB\nMemFree:  300 kB\nInactive:  999 kB\nInactive(file):  200 kB\n";
        assert_eq!(parse_machine_memory(memory), Some(500 * 1_024));
        assert_eq!(parse_machine_memory("MemTotal:  1000 kB\n"), None);
        assert_eq!(find_amount("VmHWM:\t 20 kB\nVmRSS:\t 12 kB\n", "VmRSS"), Some(12 << 10));
    }

    #[test]
    fn this_process_is_counted_as_the_first_of_its_namespace() {
        let container = ContainerName { pod: "p".to_owned(), name: "c".to_owned(), attempt: 0 };
        let own = i32::try_from(std::process::id()).unwrap();
        let gone = ContainerName { name: "gone".to_owned(), ..container.clone() };
        let sample = count_usage(vec![(container.clone(), own), (gone, i32::MAX)]).unwrap();
        let [one] = sample.containers.as_slice() else { panic!("{sample:?}") };
        assert_eq!(one.container, container);
        assert!(one.count.memory > 0 && one.started_ms <= sample.uptime_ms, "{sample:?}");
        assert!(sample.machine.memory > 0 && sample.machine.cpu_ms > 0, "{sample:?}");
    }
}
