//! The laws of metadata, and every kind of it held to them.
//!
//! Some laws are said one by one. The rest is said by the kind that is easy to read: whatever is
//! done to metadata in memory and to a database, in any order, has the same answers.

use super::memory::Memory;
use super::sqlite::Sqlite;
use super::{
    Arrived, Entry, Found, Kept, Metadata, Missing, Mount, NewManifest, Restored, Row, Versions,
};
use crate::error::Error;
use crate::name::{Name, Selector, Tag};
use oci::{Algorithm, Descriptor, Digest, Hasher, Index, Manifest, MediaType, Raw};
use proptest::prelude::*;

/// Runs a law over every kind.
fn hold(law: fn(&dyn Metadata)) {
    law(&Memory::default());
    let directory = tempfile::tempdir().unwrap();
    law(&Sqlite::open(&directory.path().join("meta.db")).unwrap());
}

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn tag(text: &str) -> Tag {
    Tag::parse(text).unwrap()
}

fn content(number: u8) -> Vec<u8> {
    vec![number; usize::from(number) + 1]
}

fn blob(number: u8) -> Digest {
    Digest::of(&content(number))
}

/// A manifest that names a blob and perhaps refers to another manifest.
fn manifest(number: u8, subject: Option<&Raw>) -> Raw {
    let config = Descriptor::of(MediaType::OCI_CONFIG, &content(number));
    let mut manifest = Manifest::docker(config, Vec::new());
    manifest.media_type = MediaType::OCI_MANIFEST;
    manifest.subject = subject.map(Raw::descriptor);
    manifest.annotations.insert("of".to_owned(), number.to_string());
    Raw::from_manifest(&manifest).unwrap()
}

/// Manifests that lead to one another in all ways there are.
fn manifests() -> Vec<Raw> {
    let plain = manifest(0, None);
    let index = Raw::from_index(&Index::oci(vec![plain.descriptor()])).unwrap();
    vec![plain.clone(), manifest(1, Some(&plain)), index, manifest(2, None)]
}

fn row(raw: &Raw) -> Row {
    Row::of(raw, raw.digest.clone()).unwrap()
}

fn arrived(repository: &str, number: u8, lease: i64) -> Arrived {
    Arrived {
        repository: name(repository),
        digest: blob(number),
        size: u64::from(number) + 1,
        lease,
        quota: None,
        upload: None,
    }
}

fn pushed(repository: &str, raw: &Raw, tags: &[&str], at: i64) -> NewManifest {
    NewManifest {
        repository: name(repository),
        row: row(raw),
        tags: tags.iter().map(|it| tag(it)).collect(),
        missing: Missing::Refuse,
        versions: Versions::Stay,
        quota: None,
        at,
    }
}

#[test]
fn an_upload_goes_on_where_it_was_kept_and_ends_as_a_blob() {
    hold(|it| {
        let mut hasher = Hasher::new(Algorithm::Sha512);
        hasher.update(b"begun");
        let (id, principal) = ("0-1".to_owned(), "me".to_owned());
        let repository = name("a/b");
        let kept = Kept { id, repository, principal, offset: 5, hasher, updated: 10 };
        it.keep_upload(kept.clone()).unwrap();
        it.keep_upload(Kept { updated: 20, ..kept }).unwrap();
        let found = it.kept_upload("0-1").unwrap().unwrap();
        let mut whole = found.hasher.clone();
        whole.update(b" and done");
        let mut expected = Hasher::new(Algorithm::Sha512);
        expected.update(b"begun and done");
        assert_eq!(whole.finish(), expected.finish());
        assert_eq!((found.offset, found.principal.as_str(), found.updated), (5, "me", 20));
        assert_eq!(found.repository, name("a/b"));
        assert_eq!(it.uploads_before(20).unwrap(), Vec::<String>::new());
        assert_eq!(it.uploads_before(21).unwrap(), ["0-1"]);
        let end = Arrived { upload: Some("0-1".to_owned()), ..arrived("a/b", 3, 7) };
        it.finish_upload(end).unwrap();
        assert!(it.kept_upload("0-1").unwrap().is_none());
        let blob = it.blob(&name("a/b"), &blob(3)).unwrap();
        assert_eq!(blob, Found { size: 4, lease: 7, used: false });
    });
}

#[test]
fn a_change_that_is_refused_leaves_nothing_behind() {
    hold(|it| {
        let too_much = Arrived { quota: Some(1), ..arrived("a", 1, 0) };
        assert!(matches!(it.finish_upload(too_much), Err(Error::QuotaExceeded { limit: 1 })));
        let childless = it.push(pushed("a", &manifest(1, None), &["t"], 0));
        assert!(
            matches!(childless, Err(Error::ManifestBlobUnknown(missing)) if missing == [blob(1)])
        );
        assert!(matches!(it.tags(&name("a"), "", 9), Err(Error::NameUnknown(_))));
        assert_eq!(it.counts().unwrap(), super::Counts::default());

        it.finish_upload(arrived("a", 0, 0)).unwrap();
        it.finish_upload(arrived("a", 1, 0)).unwrap();
        it.push(pushed("a", &manifest(0, None), &["v1.0.0"], 0)).unwrap();
        // The first tag would be new and fine.
        let moved = it.push(pushed("a", &manifest(1, None), &["fresh", "v1.0.0"], 0));
        assert!(matches!(moved, Err(Error::TagImmutable { .. })));
        assert_eq!(it.tags(&name("a"), "", 9).unwrap(), ["v1.0.0"]);
        assert_eq!(it.counts().unwrap().manifests, 1);
        assert_eq!(it.behind().unwrap()[0].generation, 2);
    });
}

#[test]
fn a_collection_takes_only_what_is_still_garbage() {
    hold(|it| {
        it.finish_upload(arrived("a", 0, 10)).unwrap();
        let raw = manifest(0, None);
        it.push(pushed("a", &raw, &[], 5)).unwrap();
        let old = it.untagged(6).unwrap();
        assert_eq!(old, [Entry { repository: name("a"), digest: raw.digest.clone() }]);
        it.push(pushed("a", &raw, &[], 8)).unwrap();
        assert!(!it.collect_manifest(&old[0], 6, 100).unwrap(), "it was pushed again");
        assert_eq!(it.loose(50).unwrap(), [], "a manifest names it");
        assert!(it.collect_manifest(&old[0], 9, 30).unwrap());
        assert_eq!(it.loose(30).unwrap(), [], "what it named has a new lease");
        let loose = it.loose(31).unwrap();
        assert_eq!(loose.len(), 1);
        it.renew_lease(&name("a"), &blob(0), 40).unwrap();
        assert_eq!(it.unlink(loose.clone(), 31).unwrap(), 0, "somebody saw it meanwhile");
        assert_eq!(it.unlink(loose, 41).unwrap(), 1);
        let unused = it.unused().unwrap();
        assert_eq!(unused.len(), 2, "the blob and the manifest's bytes");
        it.finish_upload(arrived("b", 0, 50)).unwrap();
        let gone: Vec<bool> =
            unused.iter().map(|(digest, _)| it.collect_blob(digest).unwrap()).collect();
        assert_eq!(gone.iter().filter(|gone| **gone).count(), 1, "the other was pushed again");
        assert!(it.is_orphan(&raw.digest).unwrap() && !it.is_orphan(&blob(0)).unwrap());
        assert_eq!(it.unknown(vec![blob(0), raw.digest.clone()]).unwrap(), [raw.digest]);
    });
}

#[test]
fn a_held_digest_is_held_by_one() {
    hold(|it| {
        let turns = std::sync::Mutex::new(Vec::new());
        let held = it.hold(&blob(0)).unwrap();
        std::thread::scope(|scope| {
            let turns = &turns;
            scope.spawn(move || {
                let held = it.hold(&blob(0)).unwrap();
                turns.lock().unwrap().push("second");
                drop(held);
            });
            turns.lock().unwrap().push("first");
            drop(held);
        });
        assert_eq!(*turns.lock().unwrap(), ["first", "second"]);
    });
}

/// Something done to metadata; what it answers, as text.
fn step(it: &dyn Metadata, kind: u8, (here, there): (&str, &str), number: u8, at: i64) -> String {
    let raws = manifests();
    let raw = &raws[usize::from(number) % raws.len()];
    let (digest, number) = (&raw.digest, number % 3);
    let (here, other) = (&name(here), name(there));
    let quota = Some(500).filter(|_| at % 5 == 0);
    let tags: &[&str] = [&["t"] as &[&str], &["v1.0.0", "u"], &[]][usize::from(number)];
    let entry = Entry { repository: here.clone(), digest: digest.clone() };
    let text = |result: Result<String, Error>| result.unwrap_or_else(|error| error.to_string());
    let show = |value: &dyn std::fmt::Debug| format!("{value:?}");
    text(match kind {
        0..=2 => {
            let upload = Arrived { quota, ..arrived(here.as_str(), number, at) };
            it.finish_upload(upload).map(|it| show(&it))
        }
        3..=6 => {
            let missing = if at % 3 == 0 { Missing::Accept } else { Missing::Refuse };
            let versions = if at % 2 == 0 { Versions::Move } else { Versions::Stay };
            let new = pushed(here.as_str(), raw, tags, at);
            it.push(NewManifest { missing, versions, quota, ..new }).map(|it| show(&it))
        }
        7 => {
            let mount =
                Mount { from: other, to: here.clone(), digest: blob(number), lease: at, quota };
            it.mount(mount).map(|it| show(&it))
        }
        8 => it.delete_blob(here, &blob(number)).map(|it| show(&it)),
        9 => it.delete_tag(here, &tag("t")).map(|it| show(&it)),
        10 => it.delete_manifest(here, digest, at).map(|it| show(&it)),
        11 => it.renew_lease(here, &blob(number), at).map(|it| show(&it)),
        12 => it.untagged(at).and_then(|found| {
            let found: Result<Vec<bool>, Error> =
                found.iter().map(|entry| it.collect_manifest(entry, at, at + 3)).collect();
            found.map(|mut it| {
                it.sort_unstable();
                show(&it)
            })
        }),
        13 => it.unlink(it.loose(at).unwrap_or_default(), at - 1).map(|it| show(&it)),
        14 => it.collect_blob(&blob(number)).map(|it| show(&it)),
        15 if at % 2 == 0 => it.condemn(&blob(number)).map(|it| show(&it)),
        15 => it.condemn(digest).map(|it| show(&it)),
        16 => {
            let restored = Restored {
                repository: here.clone(),
                manifests: vec![(row(raw), Some(tag("back")))],
                blobs: vec![(blob(number), (at % 2 == 0).then_some(u64::from(number) + 1))],
                at,
            };
            it.restore(restored).map(|it| show(&it))
        }
        17 => it.behind().and_then(|all| {
            all.first().map_or(Ok(()), |view| it.note_view(view)).map(|it| show(&it))
        }),
        _ => it.collect_manifest(&entry, at, at).map(|it| show(&it)),
    })
}

/// Everything metadata can be asked, as text.
fn everything(it: &dyn Metadata) -> Vec<String> {
    let mut all = vec![
        format!("{:?}", it.counts().unwrap()),
        format!("{:?}", it.behind().unwrap()),
        format!("{:?}", it.repositories("", 9).unwrap()),
        format!("{:?}", it.repositories("a", 1).unwrap()),
        format!("{:?}", it.changes("", 9).unwrap()),
        format!("{:?}", it.changes("a", 1).unwrap()),
        format!("{:?}", it.blobs("", 99).unwrap()),
        format!("{:?}", it.blobs(&blob(0).to_string(), 1).unwrap()),
        format!("{:?}", it.unused().unwrap()),
        format!("{:?}", sorted(it.untagged(30).unwrap())),
        format!("{:?}", sorted(it.loose(30).unwrap())),
    ];
    for repository in [name("a"), name("b")] {
        all.push(format!("{:?}", it.used(&repository).unwrap()));
        all.push(format!("{:?}", it.tags(&repository, "", 9).map_err(|it| it.to_string())));
        all.push(format!("{:?}", it.tags(&repository, "t", 1).map_err(|it| it.to_string())));
        all.push(format!("{:?}", it.manifests(&repository, "", 9).map_err(|it| it.to_string())));
        all.push(format!("{:?}", it.shown(&repository).map_err(|it| it.to_string())));
        all.push(format!("{:?}", it.heads(&repository).map_err(|it| it.to_string())));
        all.push(format!("{:?}", it.damaged(&repository).map_err(|it| it.to_string())));
        for raw in manifests() {
            let selector = Selector::Digest(raw.digest.clone());
            let found = it.manifest(&repository, &selector).map_err(|it| it.to_string());
            all.push(format!("{found:?}"));
            for kind in [None, Some(MediaType::OCI_CONFIG.as_str()), Some("other")] {
                let referrers = it.referrers(&repository, &raw.digest, kind, "", 9).unwrap();
                all.push(format!("{referrers:?}"));
            }
        }
        for text in ["t", "u", "v1.0.0", "back"] {
            let found = it.manifest(&repository, &Selector::Tag(tag(text)));
            all.push(format!("{:?}", found.map_err(|it| it.to_string())));
        }
        for number in 0..3 {
            let found = it.blob(&repository, &blob(number)).map_err(|it| it.to_string());
            all.push(format!("{found:?} {:?}", it.holders(&blob(number), 1).unwrap().len()));
        }
    }
    all
}

fn sorted(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by_key(|it| (it.repository.clone(), it.digest.clone()));
    entries
}

#[test]
fn heads_are_what_is_there_for_itself_and_each_change_has_a_number() {
    hold(|it| {
        let [plain, signature, index, other] = manifests().try_into().unwrap();
        for number in 0..3 {
            it.finish_upload(arrived("a", number, 99)).unwrap();
        }
        let number = || it.changes("", 9).unwrap();
        assert_eq!(number(), []);
        it.push(pushed("a", &plain, &[], 1)).unwrap();
        let first = number();
        let heads = |wanted: &[(&Raw, Option<&str>)]| {
            let mut wanted: Vec<_> = wanted
                .iter()
                .map(|(raw, tag)| (raw.digest.clone(), tag.map(str::to_owned)))
                .collect();
            wanted.sort_by_key(|(digest, tag)| (digest.to_string(), tag.clone()));
            assert_eq!(it.heads(&name("a")).unwrap(), wanted);
        };
        heads(&[(&plain, None)]);
        it.push(pushed("a", &signature, &[], 2)).unwrap();
        it.push(pushed("a", &other, &["t", "u"], 2)).unwrap();
        heads(&[(&plain, None), (&other, Some("t")), (&other, Some("u"))]);
        assert!(number()[0].1 > first[0].1);
        it.push(pushed("a", &index, &["v1.0.0"], 3)).unwrap();
        heads(&[(&index, Some("v1.0.0")), (&other, Some("t")), (&other, Some("u"))]);
        let before = number();
        it.delete_tag(&name("a"), &tag("u")).unwrap();
        it.delete_manifest(&name("a"), &index.digest, 9).unwrap();
        heads(&[(&plain, None), (&other, Some("t"))]);
        assert!(number()[0].1 > before[0].1);
        assert!(matches!(it.heads(&name("b")), Err(Error::NameUnknown(_))));
    });
}

#[test]
fn what_is_condemned_is_a_change_to_all_that_had_it_and_so_is_its_return() {
    hold(|it| {
        let [plain, _, index, other] = manifests().try_into().unwrap();
        for repository in ["a", "b"] {
            for number in [0, 2] {
                it.finish_upload(arrived(repository, number, 99)).unwrap();
            }
            it.push(pushed(repository, &plain, &[], 1)).unwrap();
        }
        it.push(pushed("a", &index, &["v1.0.0"], 1)).unwrap();
        it.push(pushed("b", &other, &["t"], 1)).unwrap();
        // Nothing in this repository names the blob that it has.
        it.finish_upload(arrived("c", 0, 99)).unwrap();
        let damaged = |repository: &str, wanted: &[&Raw]| {
            let mut wanted: Vec<Digest> = wanted.iter().map(|raw| raw.digest.clone()).collect();
            wanted.sort_by_key(ToString::to_string);
            assert_eq!(it.damaged(&name(repository)).unwrap(), wanted, "{repository}");
        };
        let grow = |before: &[(Name, i64)]| {
            let now = it.changes("", 9).unwrap();
            let pairs = now.iter().zip(before);
            pairs
                .filter(|(now, before)| now.1 > before.1)
                .map(|(now, _)| now.0.clone())
                .collect::<Vec<Name>>()
        };
        let both = vec![name("a"), name("b")];
        let before = it.changes("", 9).unwrap();
        assert_eq!(it.condemn(&blob(0)).unwrap(), Some(both.clone()));
        assert_eq!(grow(&before), both);
        damaged("a", &[&plain, &index]);
        damaged("b", &[&plain]);
        assert_eq!(it.condemn(&blob(0)).unwrap(), None, "it is not known any more");
        let before = it.changes("", 9).unwrap();
        assert_eq!(it.finish_upload(arrived("c", 0, 99)).unwrap(), both);
        assert_eq!(grow(&before), both);
        damaged("a", &[]);
        assert_eq!(it.finish_upload(arrived("c", 0, 99)).unwrap(), [], "it was there");
        // A manifest, and what leads to it.
        assert_eq!(it.condemn(&plain.digest).unwrap(), Some(both));
        damaged("a", &[&plain, &index]);
        let healed = it.push(pushed("a", &plain, &[], 2)).unwrap().healed;
        assert_eq!(healed, [name("b")]);
        damaged("a", &[]);
        damaged("b", &[]);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn memory_and_the_database_answer_alike_whatever_is_done(
        steps in prop::collection::vec((0..19_u8, any::<bool>(), 0..12_u8, 0..30_i64), 1..60),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let database = Sqlite::open(&directory.path().join("meta.db")).unwrap();
        let memory = Memory::default();
        for (kind, swap, number, at) in steps {
            let places = if swap { ("b", "a") } else { ("a", "b") };
            let expected = step(&memory, kind, places, number, at);
            prop_assert_eq!(step(&database, kind, places, number, at), expected);
            prop_assert_eq!(everything(&database), everything(&memory));
        }
    }
}
