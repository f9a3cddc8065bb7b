//! Versions and constraints: no text makes reading or matching panic, and what is printed means
//! what was read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xpkg::constraint::Constraint;
use xpkg::version::Version;

const VERSIONS: [&str; 12] = [
    "0.0.0",
    "0.0.1",
    "0.1.0",
    "0.9.9-rc.1",
    "1.0.0-0",
    "1.0.0",
    "v1.2.3",
    "1.2.3-alpha.1",
    "1.3.0+build",
    "2.0.0-rc.1",
    "2.0.0",
    "18446744073709551615.0.0",
];

fuzz_target!(|text: &str| {
    // The text is a constraint and, behind a line break, a version to try it on.
    let (constraint, version) = text.split_once('\n').unwrap_or((text, text));
    let version = Version::parse(version);
    if let Ok(version) = &version {
        let again = Version::parse(&version.to_string()).unwrap();
        assert_eq!(&again, version);
        assert_eq!(again.to_string(), version.to_string());
        assert!(again.is_installable());
    }
    let Ok(constraint) = Constraint::parse(constraint) else {
        return;
    };
    let printed = constraint.to_string();
    let again = Constraint::parse(&printed);
    let again = again.unwrap_or_else(|error| panic!("{text:?} prints as {printed:?}: {error}"));
    let known = VERSIONS.iter().map(|text| Version::parse(text).unwrap());
    for version in known.chain(version).chain(constraint.exact().cloned()) {
        let answers = (constraint.matches(&version), again.matches(&version));
        assert_eq!(answers.0, answers.1, "{text:?} prints as {printed:?}: {version}");
    }
    assert_eq!(constraint.admits_prereleases(), again.admits_prereleases());
    assert_eq!(constraint.is_open_ended(), again.is_open_ended());
    assert_eq!(constraint.leaky_upper_bound(), again.leaky_upper_bound());
    let _ = constraint.is_partial_version();
});
