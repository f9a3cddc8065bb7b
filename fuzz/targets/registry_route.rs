//! The registry's door: whatever a request's target, range or scope says, reading it ends, and
//! nothing that gets through can climb out of a directory.
//!
//! The rooms' sources are read here as they stand, without the server around them, which would
//! take minutes to build with the fuzzer's flags.

#![no_main]
#![expect(dead_code, reason = "only what reads requests is used here")]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/registry/src/limits.rs"]
mod limits;
#[path = "../../crates/registry/src/name.rs"]
mod name;
#[path = "../../crates/registry/src/query.rs"]
mod query;
#[path = "../../crates/registry/src/v2/range.rs"]
mod range;
#[path = "../../crates/registry/src/route.rs"]
mod route;

use name::{Name, Selector};
use query::{Query, encode};
use range::Wanted;
use route::Route;

/// A name that becomes directories.
fn check_name(name: &Name) {
    let text = name.as_str();
    assert!(!text.is_empty() && text.len() <= name::NAME_LENGTH_MAX);
    for part in text.split('/') {
        assert!(!part.is_empty() && !part.starts_with(['.', '_', '-']), "{text}");
        assert!(
            part.bytes()
                .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || b"._-".contains(&it))
        );
        assert!(!part.contains(".."), "{text}");
    }
    assert_eq!(Name::parse(text).as_ref(), Some(name));
}

fn check_digest(digest: &oci::Digest) {
    assert!(digest.hex().bytes().all(|it| it.is_ascii_hexdigit() && !it.is_ascii_uppercase()));
    assert_eq!(digest.to_string().parse().as_ref(), Ok(digest));
}

fn check_path(path: &str) {
    let Ok(route) = Route::parse(path) else { return };
    assert!(path.len() <= limits::TARGET_LENGTH_MAX);
    if let Some(name) = route.repository() {
        check_name(name);
    }
    match &route {
        Route::Blob(name, digest) => {
            check_digest(digest);
            assert_eq!(Route::parse(&format!("/v2/{name}/blobs/{digest}")).as_ref(), Ok(&route));
        }
        Route::Referrers(_, digest) => check_digest(digest),
        Route::Manifest(name, selector) => {
            match selector {
                Selector::Digest(digest) => check_digest(digest),
                Selector::Tag(tag) => assert!(!tag.as_str().contains(['/', '%', ':', '\0'])),
            }
            let _ = matches!(selector, Selector::Tag(tag) if tag.is_version());
            let again = format!("/v2/{name}/manifests/{selector}");
            assert_eq!(Route::parse(&again).as_ref(), Ok(&route));
        }
        _ => {}
    }
}

fn check_query(text: &str) {
    let query = Query::parse(Some(text));
    for key in ["n", "last", "digest", "mount", "from", "tag", "artifactType"] {
        for value in query.all(key) {
            let again = format!("{key}={}", encode(value));
            assert_eq!(Query::parse(Some(&again)).get(key), Some(value));
        }
    }
}

fn check_range(text: &str) {
    for size in [0, 1, 100, u64::MAX] {
        if let Wanted::Part(first, last) = range::wanted(text, size) {
            assert!(first <= last && last < size, "{text} of {size}");
        }
    }
    if let Some((first, length)) = range::chunk(text) {
        assert!(length > 0 && first.checked_add(length - 1).is_some(), "{text}");
    }
}

fuzz_target!(|text: &str| {
    let (path, query) = text.split_once('?').unwrap_or((text, text));
    check_path(path);
    check_path(&format!("/v2/{path}"));
    check_query(query);
    check_range(text);
    check_range(&format!("bytes={text}"));
});
