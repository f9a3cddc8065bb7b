//! Schedules by name.

use sim::fault::{At, CRASHES, NODE_FAULTS, READ_FAULTS, Schedule, WATCH_FAULTS};

#[test]
fn a_schedule_is_read_as_it_is_written() {
    let faults = CRASHES.into_iter().chain(READ_FAULTS).chain(WATCH_FAULTS).chain(NODE_FAULTS);
    for fault in faults {
        for at in [At::Call(17), At::Watch(0), At::Node(3), At::News(1)] {
            let schedule = Schedule { at, fault };
            assert_eq!(schedule.to_string().parse(), Ok(schedule));
        }
    }
    assert!("call-17-nothing".parse::<Schedule>().is_err());
    assert!("call-x-late".parse::<Schedule>().is_err());
}
