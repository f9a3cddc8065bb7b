//! Packages: no stream makes reading and checking it panic, and every finding has a place in it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xpkg::{Limits, open};

fuzz_target!(|bytes: &[u8]| {
    let Ok(opened) = open::read(bytes, &Limits::default()) else {
        return;
    };
    assert_eq!(opened.size, bytes.len() as u64);
    // A lone carriage return ends a line of YAML too.
    let lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r')).count();
    for finding in &opened.diagnostics {
        assert!(finding.line as usize <= lines, "{finding:?}");
    }
    let _ = opened.meta().is_some();
});
