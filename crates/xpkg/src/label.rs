//! Names that Crossplane derives from other names: object names, revision names, file names.
//!
//! These are exact copies of upstream's behaviour, odd corners included, because two tools that
//! derive different names for one package would install it twice. The corners: characters that
//! do not fit are dropped rather than replaced (so `Provider_AWS` becomes `rovider`), separators
//! are not collapsed, and positions are counted in bytes. Repository paths are ASCII, so a label
//! made from one always fits 63 bytes; text beyond ASCII may yield more, upstream too.

use oci::Reference;

/// Longest DNS label, in bytes.
const LABEL_SIZE_MAX: usize = 63;
/// Bytes of a package's name that go into a revision's name.
const FRIENDLY_NAME_SIZE_MAX: usize = 50;
/// Bytes of a hash that go into a revision's name.
const FRIENDLY_HASH_SIZE_MAX: usize = 12;

/// The DNS label that stands for any text, such as a repository path; may come out empty.
pub fn to_dns_label(text: &str) -> String {
    // Upstream stops when it meets a character that starts at the last place of a label. Where a
    // wider character straddles that place it reads on, and so must we.
    let stops = text.is_char_boundary(LABEL_SIZE_MAX - 1);
    label_of(text.as_bytes(), if stops { LABEL_SIZE_MAX } else { text.len() })
}

/// The name of a package's revision: the start of its name, then the start of a hash.
pub fn friendly_id(name: &str, hash: &str) -> String {
    // Cut in bytes, like upstream, even inside a character: the torn half is dropped below.
    let name = name.as_bytes();
    let hash = hash.as_bytes();
    let name = &name[..name.len().min(FRIENDLY_NAME_SIZE_MAX)];
    let hash = &hash[..hash.len().min(FRIENDLY_HASH_SIZE_MAX)];
    label_of(&[name, b"-", hash].concat(), LABEL_SIZE_MAX)
}

/// Whether a revision of this name was made of the bytes with this hash. Its package may have another
/// name by now.
pub fn is_made_of(revision: &str, hash: &str) -> bool {
    let package = revision.rsplit_once('-').map_or("", |(package, _)| package);
    friendly_id(package, hash) == revision
}

/// The path of a package file: `name` in `directory` with its extension replaced.
///
/// Whatever follows the last dot of the name counts as its extension, so `v1.2` loses its `2`;
/// `extension` is given with its dot.
pub fn build_path(directory: &str, name: &str, extension: &str) -> String {
    let base = name.rsplit('/').next().unwrap_or(name);
    let kept = base.rfind('.').map_or(name, |dot| &name[..name.len() - base.len() + dot]);
    match directory.trim_end_matches('/') {
        "" if directory.is_empty() => format!("{kept}{extension}"),
        parent => format!("{parent}/{kept}{extension}"),
    }
}

/// What identifies a package whatever its version: the reference as written, less its tag or
/// digest. With both a tag and a digest the tag stays, as upstream has it.
pub fn source(reference: &Reference) -> &str {
    let identifier = reference.identifier().to_string();
    let written = reference.as_written();
    written.strip_suffix(&identifier).unwrap_or(written).trim_end_matches([':', '@'])
}

/// The name of the object that installs a package: its repository without the registry.
pub fn object_name(reference: &Reference) -> String {
    to_dns_label(reference.repository().path())
}

fn label_of(text: &[u8], end: usize) -> String {
    let last = text.len().saturating_sub(1);
    // A label may not begin or end with a dash.
    let inner = |index: usize| index != 0 && index != LABEL_SIZE_MAX - 1 && index != last;
    let mut label = String::with_capacity(LABEL_SIZE_MAX);
    for (index, byte) in text.iter().copied().enumerate().take(end) {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => label.push(char::from(byte)),
            b'.' | b'/' | b':' | b'-' if inner(index) => label.push('-'),
            _ => {}
        }
    }
    label.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::tests::vectors;
    use oci::Rules;
    use proptest::prelude::*;

    #[test]
    fn every_upstream_name_is_derived_alike() {
        for row in vectors("names.json").as_array().unwrap() {
            let (name, hash) = (row["name"].as_str().unwrap(), row["hash"].as_str().unwrap());
            assert_eq!(friendly_id(name, hash), row["friendly_id"], "{row}");
            assert_eq!(to_dns_label(name), row["dns_label_of_name"], "{row}");
        }
    }

    #[test]
    fn every_upstream_reference_is_read_alike() {
        let empty = Rules::weak().default_registry("");
        let rules = [
            ("weak", Rules::weak()),
            ("strict", Rules::strict()),
            ("default_registry_empty", empty),
        ];
        for row in vectors("references.json").as_array().unwrap() {
            for (name, rules) in &rules {
                let expected = &row[name];
                let parsed = Reference::parse(row["input"].as_str().unwrap(), rules);
                assert_eq!(expected["ok"], parsed.is_ok(), "{name}: {row}");
                let Ok(reference) = parsed else { continue };
                let repository = reference.repository();
                let kind = if reference.identifier().as_tag().is_some() { "tag" } else { "digest" };
                let text = |key: &str| expected[key].as_str().unwrap_or_default();
                assert_eq!(kind, text("kind"), "{name}: {row}");
                assert_eq!(reference.identifier().to_string(), text("identifier"), "{name}: {row}");
                assert_eq!(reference.name(), text("name"), "{name}: {row}");
                assert_eq!(reference.as_written(), text("string"), "{name}: {row}");
                assert_eq!(repository.to_string(), text("context"), "{name}: {row}");
                assert_eq!(repository.registry(), text("registry"), "{name}: {row}");
                assert_eq!(repository.path(), text("repository"), "{name}: {row}");
                assert_eq!(repository.scheme(), text("scheme"), "{name}: {row}");
                assert_eq!(source(&reference), text("xpkg_source"), "{name}: {row}");
                assert_eq!(object_name(&reference), text("object_name"), "{name}: {row}");
            }
        }
    }

    #[test]
    fn build_path_replaces_what_follows_the_last_dot() {
        let check = |directory, name, expect: &str| {
            assert_eq!(build_path(directory, name, ".xpkg"), expect);
        };
        check("", "provider-nop", "provider-nop.xpkg");
        check("out", "provider-nop", "out/provider-nop.xpkg");
        check("out/", "provider-nop.xpkg", "out/provider-nop.xpkg");
        check("/", "nop", "/nop.xpkg");
        check("out", "nop-v1.2", "out/nop-v1.xpkg");
        check("a.b", "nop", "a.b/nop.xpkg");
    }

    proptest! {
        #[test]
        fn a_label_is_a_dns_label_or_empty(text in "[ -~]{0,90}", hash in "\\PC{0,20}") {
            for label in [to_dns_label(&text), friendly_id(&text, &hash)] {
                prop_assert!(label.len() <= LABEL_SIZE_MAX);
                prop_assert!(!label.starts_with('-') && !label.ends_with('-'));
                let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
                prop_assert!(label.chars().all(plain));
            }
        }

        #[test]
        fn a_label_stands_for_itself(text in "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?") {
            prop_assert_eq!(to_dns_label(&text), text);
        }
    }
}
