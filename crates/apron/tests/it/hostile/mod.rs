//! Files, directories and registries made to do harm. Each is refused: exit code 1, a reason, a
//! hint, within an address space of 1 GiB and within a minute.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking, their helpers too")]

mod craft;
mod directories;
mod files;
mod registries;

use crate::support::{Ran, Scratch, command_at};
use std::ffi::OsStr;
use std::path::Path;

/// What a command may have, in KiB of address space and in seconds.
const ADDRESS_SPACE: &str = "1048576";
const SECONDS: &str = "1800";

/// Runs apron where memory and time are short: more of either and it dies.
fn bounded<A: AsRef<OsStr>>(scratch: &Scratch, arguments: impl IntoIterator<Item = A>) -> Ran {
    let mut command = command_at(scratch, Path::new("timeout"));
    command.args(["-s", "KILL", SECONDS, "sh", "-c", r#"ulimit -v "$0"; exec "$@""#]);
    command.args([ADDRESS_SPACE, env!("CARGO_BIN_EXE_apron")]).args(arguments);
    // Otherwise every thread reserves 64 MiB it never touches.
    command.env("MALLOC_ARENA_MAX", "2");
    command.output().unwrap().into()
}

/// Runs apron, which must refuse with all of these words and end with a hint.
#[track_caller]
fn refused<A: AsRef<OsStr>>(
    scratch: &Scratch,
    arguments: impl IntoIterator<Item = A>,
    words: &[&str],
) -> String {
    let ran = bounded(scratch, arguments);
    let said = ran.clone().failed();
    assert!(!said.contains("panicked"), "{said}");
    for word in words {
        assert!(said.contains(word), "`{word}` is not said:\n{said}");
    }
    let last = ran.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("hint: ") && last.len() > 10, "no hint at the end:\n{said}");
    assert!(said.len() < 20_000, "{} bytes are too many to read", said.len());
    said
}

#[test]
fn honest_packages_are_read_within_the_same_bounds() {
    let scratch = Scratch::new();
    let good = craft::Image::good();
    for path in [good.xpkg(&scratch, "good.xpkg"), good.layout(&scratch, "good")] {
        let shown = bounded(&scratch, ["inspect".as_ref(), path.as_os_str()]).ok();
        assert!(shown.stdout.contains("small"), "{}", shown.stdout);
    }
}
