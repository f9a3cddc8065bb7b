//! The black-box suite, pointed at apron's own registry: nothing fails, nothing is left out.

use super::Served;
use crate::support::{Scratch, command};
use conformance_oci::{Selection, Target, run};
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

/// A busy machine is no mistake of the registry's.
fn target(served: &Served) -> Target {
    let mut target = Target::new(format!("http://{}", served.address));
    target.timeout = Duration::from_secs(600);
    target
}

fn check(target: &Target, at_least: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let report = runtime.block_on(run(target, &Selection::default())).unwrap();
    let summary = report.summary();
    assert_eq!(summary.failed, 0, "{}", report.to_text());
    assert!(summary.passed >= at_least, "only {} checks were made", summary.passed);
}

#[test]
fn every_check_passes_where_everybody_may_do_everything() {
    let scratch = Scratch::new();
    let served = Served::start(&scratch);
    check(&target(&served), 468);
}

#[test]
fn every_check_passes_where_users_sign_in() {
    let scratch = Scratch::new();
    let words = ["registry", "user", "add", "ada", "--data-dir", "data"];
    let mut add = command(&scratch).args(words).stdin(Stdio::piped()).spawn().unwrap();
    add.stdin.take().unwrap().write_all(b"correct horse\n").unwrap();
    assert!(add.wait().unwrap().success());
    let served = Served::start_with(&scratch, &["--private"]);
    let mut target = target(&served);
    target.credentials = Some(("ada".to_owned(), "correct horse".to_owned()));
    check(&target, 488);
}
