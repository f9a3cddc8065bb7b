//! One suite for every log, and what a crash leaves behind.

use std::path::Path;

use super::*;

fn put(key: &str, expect: Expect, value: &str) -> Write {
    Write { key: key.to_owned(), expect, value: Some(Bytes::from(value.to_owned())) }
}

fn remove(key: &str, version: u64) -> Write {
    Write { key: key.to_owned(), expect: Expect::Version(version), value: None }
}

fn texts(snapshot: &Snapshot) -> Vec<String> {
    let text = |(key, entry): &(Arc<str>, Entry)| {
        format!("{key}={}@{}", String::from_utf8_lossy(&entry.value), entry.version)
    };
    snapshot.entries.iter().map(text).collect()
}

/// What every log must do, whatever lies beneath it.
async fn suite(log: Log) {
    let start = log.version();
    let a = log.write(put("x/a", Expect::Absent, "1")).await.unwrap();
    assert_eq!(a, start + 1, "each write gets the next version");
    let again = log.write(put("x/a", Expect::Absent, "2")).await;
    assert!(matches!(again, Err(WriteError::Conflict(Some(entry))) if entry.version == a));
    let b = log.write(put("x/b", Expect::Absent, "1")).await.unwrap();
    let a2 = log.write(put("x/a", Expect::Version(a), "2")).await.unwrap();
    assert!(log.write(put("x/a", Expect::Version(a), "3")).await.is_err(), "stale");
    let gone = log.write(remove("x/b", b)).await.unwrap();
    assert!(log.write(remove("x/b", b)).await.is_err(), "removed twice");
    let other = log.write(put("y/a", Expect::Absent, "z")).await.unwrap();

    assert_eq!(texts(&log.list("x/", None).unwrap()), [format!("x/a=2@{a2}")]);
    assert_eq!(
        texts(&log.list("x/", Some(b)).unwrap()),
        [format!("x/a=1@{a}"), format!("x/b=1@{b}")],
        "the past can be read"
    );
    let (events, upto) = log.after(start, "x/", 100).unwrap();
    let versions: Vec<u64> = events.iter().map(|event| event.version).collect();
    assert_eq!((versions, upto), (vec![a, b, a2, gone], other));
    assert_eq!(events[3].previous.as_ref().map(|entry| entry.version), Some(b));
    let (first, upto) = log.after(start, "x/", 1).unwrap();
    assert_eq!((first.len(), upto), (1, a), "a bounded read says where it stopped");

    log.forget(a2);
    assert!(matches!(log.list("x/", Some(a)), Err(Expired { .. })));
    assert!(matches!(log.after(a, "x/", 1), Err(Expired { .. })));
    assert_eq!(log.after(a2, "x/", 9).unwrap().0.len(), 1);
}

#[tokio::test]
async fn a_fork_has_the_same_past_and_another_future() {
    let log = Log::in_memory();
    let a = log.write(put("x/a", Expect::Absent, "1")).await.unwrap();
    let fork = log.fork();
    let ours = log.write(put("x/a", Expect::Version(a), "2")).await.unwrap();
    let theirs = fork.write(put("x/b", Expect::Absent, "3")).await.unwrap();
    assert_eq!(ours, theirs, "both count on from where they parted");
    assert_eq!(texts(&log.list("x/", None).unwrap()), [format!("x/a=2@{ours}")]);
    assert_eq!(
        texts(&fork.list("x/", None).unwrap()),
        [format!("x/a=1@{a}"), format!("x/b=3@{theirs}")]
    );
    assert_eq!(fork.after(1, "x/", 9).unwrap().0.len(), 2, "what happened before is known");
}

#[tokio::test]
async fn memory_is_a_log() {
    suite(Log::in_memory()).await;
}

#[tokio::test]
async fn sqlite_is_a_log() {
    let directory = tempfile::tempdir().unwrap();
    suite(open(directory.path()).unwrap()).await;
}

fn open(directory: &Path) -> Result<Log, DiskError> {
    Log::open(Box::new(Sqlite::open(directory)?), Limits::default())
}

/// Waits until the writer thread of a dropped log has let go of the files.
fn reopen(directory: &Path) -> Log {
    for _ in 0..60_000 {
        match open(directory) {
            Err(DiskError::InUse(_)) => std::thread::sleep(std::time::Duration::from_millis(1)),
            other => return other.unwrap(),
        }
    }
    panic!("the log was never released");
}

#[tokio::test]
async fn a_second_process_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let _log = open(directory.path()).unwrap();
    assert!(matches!(open(directory.path()), Err(DiskError::InUse(_))));
}

#[tokio::test]
async fn reopening_brings_back_present_and_past() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path()).unwrap();
    let a = log.write(put("k/a", Expect::Absent, "1")).await.unwrap();
    let b = log.write(put("k/a", Expect::Version(a), "2")).await.unwrap();
    let c = log.write(remove("k/a", b)).await.unwrap();
    drop(log);
    let log = reopen(directory.path());
    assert_eq!(log.version(), c, "no version is used twice");
    assert!(log.list("k/", None).unwrap().entries.is_empty());
    assert_eq!(texts(&log.list("k/", Some(a)).unwrap()), [format!("k/a=1@{a}")]);
    assert_eq!(log.after(a, "k/", 9).unwrap().0.len(), 2, "watches resume");
}

#[tokio::test]
async fn compaction_keeps_what_the_window_needs() {
    let directory = tempfile::tempdir().unwrap();
    let mut disk = Sqlite::open(directory.path()).unwrap();
    let record = |version, key: &str, value: Option<&str>, previous| Record {
        version,
        key: key.to_owned(),
        value: value.map(|text| Bytes::from(text.to_owned())),
        previous,
    };
    let history = [
        record(2, "a", Some("1"), 0),
        record(3, "b", Some("1"), 0),
        record(4, "a", Some("2"), 2),
        record(5, "b", None, 3),
        record(6, "a", Some("3"), 4),
    ];
    disk.commit(&history).unwrap();
    disk.compact(5).unwrap();
    let recovered = disk.recover().unwrap();
    let versions: Vec<u64> = recovered.records.iter().map(|record| record.version).collect();
    assert_eq!((versions, recovered.compacted, recovered.version), (vec![4, 6], 5, 6));
    let state = State::recover(recovered, Limits::default()).unwrap();
    assert_eq!(texts(&state.list("", Some(5)).unwrap()), ["a=2@4"]);
}

#[tokio::test]
async fn damage_is_reported_not_guessed() {
    let directory = tempfile::tempdir().unwrap();
    let mut disk = Sqlite::open(directory.path()).unwrap();
    let record =
        Record { version: 2, key: "a".into(), value: Some(Bytes::from_static(b"1")), previous: 0 };
    disk.commit(&[record]).unwrap();
    drop(disk);
    let connection = rusqlite::Connection::open(directory.path().join("log.sqlite")).unwrap();
    connection.execute("UPDATE log SET value = x'32'", []).unwrap();
    drop(connection);
    assert!(matches!(open(directory.path()), Err(DiskError::Damaged(Damage::Checksum(2)))));
    let connection = rusqlite::Connection::open(directory.path().join("log.sqlite")).unwrap();
    connection.execute("DELETE FROM log", []).unwrap();
    connection.execute("INSERT INTO log VALUES (9, 'a', NULL, 8, 0)", []).unwrap();
    drop(connection);
    assert!(matches!(open(directory.path()), Err(DiskError::Damaged(_))));
}

/// A disk that fails at one commit, before or after the batch is really there.
struct Faulty {
    inner: Sqlite,
    commits: usize,
    fail_at: usize,
    written: bool,
}

impl Disk for Faulty {
    fn recover(&mut self) -> Result<Recovered, DiskError> {
        self.inner.recover()
    }

    fn commit(&mut self, batch: &[Record]) -> Result<(), DiskError> {
        self.commits += 1;
        if self.commits - 1 == self.fail_at {
            if self.written {
                self.inner.commit(batch)?;
            }
            return Err(DiskError::Directory(std::io::Error::other("power lost")));
        }
        self.inner.commit(batch)
    }

    fn compact(&mut self, version: u64) -> Result<(), DiskError> {
        self.inner.compact(version)
    }

    fn holds(&mut self, version: u64) -> Result<bool, DiskError> {
        self.inner.holds(version)
    }
}

#[tokio::test]
async fn a_failing_disk_never_loses_an_acknowledged_write() {
    for fail_at in 0..12 {
        for written in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let inner = Sqlite::open(directory.path()).unwrap();
            let disk = Faulty { inner, commits: 0, fail_at, written };
            let log = Log::open(Box::new(disk), Limits::default()).unwrap();
            let mut acknowledged = Vec::new();
            for n in 0..12 {
                let key = format!("k/{n:02}");
                if let Ok(version) = log.write(put(&key, Expect::Absent, "v")).await {
                    acknowledged.push(format!("{key}=v@{version}"));
                }
            }
            assert_eq!(acknowledged.len(), 11, "one failure costs one batch");
            let promised = |found: &[String]| acknowledged.iter().all(|one| found.contains(one));
            let shown = texts(&log.list("k/", None).unwrap());
            assert!(promised(&shown));
            // What the disk had of the failed batch is known from the next write on.
            assert_eq!(shown.len(), 11 + usize::from(written && fail_at < 11));
            drop(log);
            let found = texts(&reopen(directory.path()).list("k/", None).unwrap());
            assert!(promised(&found));
            assert_eq!(found.len(), 11 + usize::from(written), "no version is used twice");
        }
    }
}

/// A disk that panics at one commit, before it is written or after.
struct Brittle {
    inner: Sqlite,
    commits: usize,
    written: bool,
}

impl Disk for Brittle {
    fn recover(&mut self) -> Result<Recovered, DiskError> {
        self.inner.recover()
    }

    fn commit(&mut self, batch: &[Record]) -> Result<(), DiskError> {
        self.commits += 1;
        if self.commits == 3 {
            if self.written {
                self.inner.commit(batch)?;
            }
            panic!("it broke");
        }
        self.inner.commit(batch)
    }

    fn compact(&mut self, version: u64) -> Result<(), DiskError> {
        self.inner.compact(version)
    }
}

/// H2, the second half: a writer that ends takes every later write with it.
#[tokio::test]
async fn h2_a_panic_of_the_writer_costs_one_batch_and_the_disk_says_what_became_of_it() {
    for written in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let inner = Sqlite::open(directory.path()).unwrap();
        let disk = Brittle { inner, commits: 0, written };
        let log = Log::open(Box::new(disk), Limits::default()).unwrap();
        let start = log.version();
        let mut refused = Vec::new();
        for n in 0..6 {
            if log.write(put(&format!("k/{n}"), Expect::Absent, "v")).await.is_err() {
                refused.push(n);
            }
        }
        assert_eq!(refused, [2]);
        let there = texts(&log.list("k/", None).unwrap());
        assert_eq!(there.len(), 5 + usize::from(written));
        let (events, _) = log.after(start, "k/", 100).unwrap();
        assert_eq!(events.len(), there.len(), "watches miss nothing");
        drop(log);
        assert_eq!(texts(&reopen(directory.path()).list("k/", None).unwrap()), there);
    }
}

/// Copies the files as a crash would leave them, with the write-ahead log cut at `length`.
fn crash_image(from: &Path, to: &Path, length: u64) {
    for name in ["log.sqlite", "log.sqlite-wal"] {
        if from.join(name).exists() {
            fs_err::copy(from.join(name), to.join(name)).unwrap();
        }
    }
    let wal = fs_err::OpenOptions::new().write(true).open(to.join("log.sqlite-wal")).unwrap();
    wal.set_len(length).unwrap();
}

#[tokio::test]
async fn a_crash_at_any_byte_leaves_a_whole_prefix() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path()).unwrap();
    let wal = directory.path().join("log.sqlite-wal");
    // The length of the write-ahead log after each acknowledged write.
    let mut lengths = Vec::new();
    for n in 0..10 {
        log.write(put(&format!("k/{n}"), Expect::Absent, &"v".repeat(900))).await.unwrap();
        lengths.push(fs_err::metadata(&wal).unwrap().len());
    }
    let full = *lengths.last().unwrap();
    let mut images = 0;
    for length in (0..=full).step_by(512) {
        let image = tempfile::tempdir().unwrap();
        crash_image(directory.path(), image.path(), length);
        let found = open(image.path()).unwrap().list("k/", None).unwrap().entries.len();
        let promised = lengths.iter().filter(|&&written| written <= length).count();
        assert!(found == promised, "cut at {length}: {found} found, {promised} promised");
        images += 1;
    }
    assert!(images > 50, "{images} images");
}

/// M12: the directory may be there already, and open to everybody.
#[tokio::test]
async fn m12_nobody_else_can_read_the_files_wherever_they_lie() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let set = |path: &Path, mode: u32| {
        fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let modes = |directory: &Path| -> Vec<(String, u32)> {
        let entries = fs_err::read_dir(directory).unwrap().map(Result::unwrap);
        let mode = |entry: fs_err::DirEntry| {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            (entry.file_name().into_string().unwrap(), mode)
        };
        let mut modes: Vec<_> = entries.map(mode).collect();
        modes.sort();
        modes
    };
    let private = ["log.acknowledged", "log.sqlite", "log.sqlite-wal"];
    let private = private.map(|name| (name.to_owned(), 0o600));
    set(directory.path(), 0o755);
    let log = open(directory.path()).unwrap();
    log.write(put("secret", Expect::Absent, "s")).await.unwrap();
    assert_eq!(modes(directory.path()), private);
    // As an earlier version left them after a crash.
    let image = tempfile::tempdir().unwrap();
    for (name, _) in &private {
        fs_err::copy(directory.path().join(name), image.path().join(name)).unwrap();
        set(&image.path().join(name), 0o644);
    }
    let found = open(image.path()).unwrap();
    assert_eq!(modes(image.path()), private);
    assert!(found.get("secret").is_some());
}
