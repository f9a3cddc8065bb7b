//! Every part of the files damaged in turn: the log is refused, or all that was acknowledged is
//! there; and what a crash leaves is no damage.

use std::path::Path;

use super::*;

const FILES: [&str; 3] = ["log.sqlite", "log.sqlite-wal", "log.acknowledged"];

fn put(key: &str, expect: Expect, value: &str) -> Write {
    Write { key: key.to_owned(), expect, value: Some(Bytes::from(value.to_owned())) }
}

fn open(directory: &Path) -> Result<Log, DiskError> {
    Log::open(Box::new(Sqlite::open(directory)?), Limits::default())
}

fn copy(from: &Path, to: &Path) {
    for name in FILES.into_iter().filter(|name| from.join(name).exists()) {
        fs_err::copy(from.join(name), to.join(name)).unwrap();
    }
}

fn state(log: &Log) -> (u64, Vec<(Arc<str>, Entry)>) {
    (log.version(), log.list("", None).unwrap().entries)
}

/// A home in use: some of it lies in the database, some in its write-ahead log only.
async fn home(directory: &Path) -> Log {
    let mut disk = Sqlite::open(directory).unwrap();
    let record = |version, key: String, previous| Record {
        version,
        key,
        value: Some(Bytes::from(vec![b'v'; 700])),
        previous,
    };
    let old: Vec<Record> =
        (2..42).map(|version| record(version, format!("old/{version}"), 0)).collect();
    disk.commit(&old).unwrap();
    disk.commit(&[record(42, "old/2".to_owned(), 2)]).unwrap();
    disk.compact(42).unwrap();
    disk.close().unwrap();
    drop(disk);
    let log = open(directory).unwrap();
    for n in 0..12 {
        log.write(put(&format!("new/{n}"), Expect::Absent, &"w".repeat(700))).await.unwrap();
    }
    log
}

/// What was damaged, for the words of a failure; and whether what is left may be used.
fn judge(what: &str, image: &Path, expected: &(u64, Vec<(Arc<str>, Entry)>)) -> bool {
    let contents = || FILES.map(|name| fs_err::read(image.join(name)).unwrap_or_default());
    let before = contents();
    match open(image) {
        Ok(log) => {
            assert_eq!(&state(&log), expected, "{what}: started with other data");
            true
        }
        // The database's own header can be such that it says no more than that.
        Err(DiskError::Damaged(_) | DiskError::Sqlite(_)) => {
            assert!(before == contents(), "{what}: refused, and yet something was changed");
            false
        }
        Err(other) => panic!("{what}: {other:?}"),
    }
}

#[tokio::test]
async fn a3_flipped_bits_are_noticed_wherever_they_matter() {
    let directory = tempfile::tempdir().unwrap();
    let log = home(directory.path()).await;
    let expected = state(&log);
    let (mut refused, mut harmless) = (0, 0);
    for (name, step) in [("log.sqlite", 1021), ("log.sqlite-wal", 509), ("log.acknowledged", 37)] {
        let whole = fs_err::read(directory.path().join(name)).unwrap();
        assert!(whole.len() > 1000, "{name} is in use");
        let header = (0..120).step_by(3);
        let tail = whole.len().saturating_sub(4200)..whole.len();
        let places = header.chain((0..whole.len()).step_by(step)).chain(tail.step_by(199));
        for place in places.filter(|place| *place < whole.len()) {
            let image = tempfile::tempdir().unwrap();
            copy(directory.path(), image.path());
            let mut bytes = whole.clone();
            bytes[place] ^= 1 << (place % 8);
            fs_err::write(image.path().join(name), bytes).unwrap();
            if judge(&format!("{name}, byte {place}"), image.path(), &expected) {
                harmless += 1;
            } else {
                refused += 1;
            }
        }
    }
    assert!(refused > 100 && harmless > 10, "{refused} refused, {harmless} harmless");
}

#[tokio::test]
async fn a3_what_is_cut_off_or_gone_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let log = home(directory.path()).await;
    let expected = state(&log);
    for name in FILES {
        let length = fs_err::metadata(directory.path().join(name)).unwrap().len();
        let part = |parts: u64| length * parts / 8;
        for length in [None, Some(0), Some(1), Some(part(1)), Some(part(4)), Some(length - 1)] {
            let image = tempfile::tempdir().unwrap();
            copy(directory.path(), image.path());
            let path = image.path().join(name);
            match length {
                None => fs_err::remove_file(&path).unwrap(),
                Some(length) => {
                    let file = fs_err::OpenOptions::new().write(true).open(&path).unwrap();
                    file.set_len(length).unwrap();
                }
            }
            let used = judge(&format!("{name} cut to {length:?}"), image.path(), &expected);
            // The end of the database may be in its write-ahead log, too.
            assert!(!used || name != "log.sqlite-wal", "{name} cut to {length:?}");
        }
    }
}

/// The words say what is wrong, in a home from before there was a record of it, too.
#[tokio::test]
async fn a3_an_emptied_database_is_not_a_new_one() {
    let found = |directory: &Path| match open(directory) {
        Err(DiskError::Damaged(damage)) => damage.to_string(),
        other => panic!("{other:?}"),
    };
    let directory = tempfile::tempdir().unwrap();
    let log = home(directory.path()).await;
    let image = tempfile::tempdir().unwrap();
    copy(directory.path(), image.path());
    fs_err::remove_file(image.path().join("log.sqlite-wal")).unwrap();
    let version = log.version();
    assert!(found(image.path()).contains(&format!("though version {version} was acknowledged")));
    fs_err::write(image.path().join("log.sqlite"), "").unwrap();
    assert!(found(image.path()).contains("log.acknowledged shows that it was in use"));
    fs_err::remove_file(image.path().join("log.acknowledged")).unwrap();
    fs_err::create_dir(image.path().join("pki")).unwrap();
    assert!(found(image.path()).contains("pki shows that it was in use"));
    fs_err::remove_dir(image.path().join("pki")).unwrap();
    assert_eq!(open(image.path()).unwrap().version(), 1, "a first start that ended early");
}

/// The files as they are at some point of a commit, and nothing synced but what was acknowledged.
#[tokio::test]
async fn a3_a_crash_at_any_point_is_no_damage() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path()).unwrap();
    let wal = directory.path().join("log.sqlite-wal");
    let mut before = fs_err::metadata(&wal).unwrap().len();
    for n in 0..10 {
        let earlier = tempfile::tempdir().unwrap();
        copy(directory.path(), earlier.path());
        log.write(put(&format!("k/{n}"), Expect::Absent, &"v".repeat(900))).await.unwrap();
        let after = fs_err::metadata(&wal).unwrap().len();
        // Between the first byte of the batch and its being acknowledged.
        for length in (before..=after).step_by(1000).chain([after]) {
            let image = tempfile::tempdir().unwrap();
            copy(earlier.path(), image.path());
            fs_err::copy(&wal, image.path().join("log.sqlite-wal")).unwrap();
            let file = fs_err::OpenOptions::new()
                .write(true)
                .open(image.path().join("log.sqlite-wal"))
                .unwrap();
            file.set_len(length).unwrap();
            let found = open(image.path()).unwrap().list("k/", None).unwrap().entries.len();
            assert_eq!(found, n + usize::from(length == after), "cut at {length}");
        }
        before = after;
    }
}

#[tokio::test]
async fn a3_after_a_stop_the_database_alone_is_a_whole_copy() {
    let directory = tempfile::tempdir().unwrap();
    let log = home(directory.path()).await;
    log.close().await.unwrap();
    let expected = state(&log);
    let refused = log.write(put("late", Expect::Absent, "v")).await;
    assert!(matches!(refused, Err(WriteError::Broken(_))), "{refused:?}");
    let image = tempfile::tempdir().unwrap();
    fs_err::copy(directory.path().join("log.sqlite"), image.path().join("log.sqlite")).unwrap();
    assert_eq!(state(&open(image.path()).unwrap()), expected);
    let whole = tempfile::tempdir().unwrap();
    copy(directory.path(), whole.path());
    assert_eq!(state(&open(whole.path()).unwrap()), expected);
}
