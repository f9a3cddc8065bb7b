//! References: no text makes reading panic, and a full name means what it was made from.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oci::{Reference, Rules};

fuzz_target!(|text: &str| {
    for rules in
        [Rules::weak(), Rules::strict(), Rules::weak().default_registry("xpkg.example.org")]
    {
        let rules = rules.any_digest();
        let Ok(reference) = Reference::parse(text, &rules) else { continue };
        assert_eq!(reference.as_written(), text);
        let _ = (reference.repository().scheme(), reference.repository().is_loopback());
        // An implied `library/` does not count towards the longest name, here and upstream.
        if reference.repository().path().len() > 255 {
            continue;
        }
        let name = reference.name();
        let again = Reference::parse(&name, &Rules::strict().any_digest());
        let again = again.unwrap_or_else(|error| panic!("{text:?} is {name:?}, and that: {error}"));
        assert_eq!(again.repository(), reference.repository());
        assert_eq!(again.identifier(), reference.identifier());
    }
});
