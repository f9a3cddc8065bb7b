//! The black-box suite, pointed at apron's own registry: nothing fails, nothing is left out.

use super::Served;
use crate::support::Scratch;
use conformance_oci::{Selection, Target, run};

#[test]
fn every_check_of_the_suite_passes() {
    let scratch = Scratch::new();
    let served = Served::start(&scratch);
    let target = Target::new(format!("http://{}", served.address));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let report = runtime.block_on(run(&target, &Selection::default())).unwrap();
    let summary = report.summary();
    assert_eq!(summary.failed, 0, "{}", report.to_text());
    assert!(summary.passed > 450, "only {} checks were made", summary.passed);
}
