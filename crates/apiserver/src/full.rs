//! A disk that is full for a while: it is told, nothing is lost, and it is over when it is over.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::log::{Disk, DiskError, Expect, Limits, Log, Record, Recovered, Sqlite, Write};
use crate::testing::{answer_as, ask, server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A disk that has no space while it is told so.
struct Scarce {
    inner: Sqlite,
    full: Arc<AtomicBool>,
}

impl Scarce {
    fn refuse(&self) -> Result<(), DiskError> {
        if self.full.load(Ordering::SeqCst) {
            return Err(DiskError::Directory(std::io::ErrorKind::StorageFull.into()));
        }
        Ok(())
    }
}

impl Disk for Scarce {
    fn recover(&mut self) -> Result<Recovered, DiskError> {
        self.inner.recover()
    }

    fn commit(&mut self, batch: &[Record]) -> Result<(), DiskError> {
        self.refuse()?;
        self.inner.commit(batch)
    }

    fn compact(&mut self, version: u64) -> Result<(), DiskError> {
        self.refuse()?;
        self.inner.compact(version)
    }

    fn holds(&mut self, version: u64) -> Result<bool, DiskError> {
        self.inner.holds(version)
    }

    fn probe(&mut self) -> Result<(), DiskError> {
        self.refuse()?;
        self.inner.probe()
    }

    fn close(&mut self) -> Result<(), DiskError> {
        self.inner.close()
    }
}

fn scarce(directory: &Path) -> (Log, Arc<AtomicBool>) {
    let full = Arc::new(AtomicBool::new(false));
    let disk = Scarce { inner: Sqlite::open(directory).unwrap(), full: Arc::clone(&full) };
    (Log::open(Box::new(disk), Limits::default()).unwrap(), full)
}

async fn health(server: &Arc<crate::Server>, path: &str) -> (u16, String) {
    use http_body_util::BodyExt as _;
    let answer = answer_as(server, "GET", path, "", Value::Null).await;
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn a4_a_full_disk_is_told_and_is_over_when_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    let (log, full) = scarce(directory.path());
    let mut trouble = log.trouble();
    let server = server(log.clone()).await;
    let map = |name: &str| json!({"metadata": {"name": name}});
    ask(&server, "POST", MAPS, map("before")).await;
    assert_eq!(health(&server, "/readyz").await, (200, "ok".to_owned()));
    full.store(true, Ordering::SeqCst);
    for name in ["one", "two"] {
        let refused = ask(&server, "POST", MAPS, map(name)).await;
        assert_eq!(refused["code"], 500, "{refused}");
    }
    assert!(trouble.has_changed().unwrap(), "it is told");
    assert!(trouble.borrow_and_update().is_some());
    let (code, said) = health(&server, "/readyz").await;
    assert!(code == 500 && said.contains("nothing can be written"), "{said}");
    assert_eq!(health(&server, "/healthz").await.0, 500);
    assert_eq!(health(&server, "/livez").await, (200, "ok".to_owned()));
    assert!(!trouble.has_changed().unwrap(), "once");
    let found = ask(&server, "GET", &format!("{MAPS}/before"), Value::Null).await;
    assert_eq!(found["metadata"]["name"], "before", "reads go on");

    full.store(false, Ordering::SeqCst);
    assert_eq!(health(&server, "/readyz").await.0, 200, "without anybody having written");
    assert!(trouble.has_changed().unwrap() && trouble.borrow_and_update().is_none());
    full.store(true, Ordering::SeqCst);
    assert_eq!(ask(&server, "POST", MAPS, map("three")).await["code"], 500);
    full.store(false, Ordering::SeqCst);
    let made = ask(&server, "POST", MAPS, map("after")).await;
    assert_eq!(made["metadata"]["name"], "after", "without a probe: {made}");
    let names = log.list("configmaps./default/", None).unwrap();
    let names: Vec<&str> = names.entries.iter().map(|(key, _)| &**key).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    drop(server);
    let version = log.version();
    log.close().await.unwrap();
    let image = tempfile::tempdir().unwrap();
    fs_err::copy(directory.path().join("log.sqlite"), image.path().join("log.sqlite")).unwrap();
    let again = Log::open(Box::new(Sqlite::open(image.path()).unwrap()), Limits::default());
    assert_eq!(again.unwrap().version(), version);
}

/// A small file system, where this process may mount one.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(size: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(directory.path());
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then_some(Self(directory))
    }

    fn resize(&self, size: &str) {
        let mut mount = Command::new("mount");
        mount.args(["-o", &format!("remount,size={size}")]).arg(self.0.path());
        assert!(mount.status().unwrap().success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[tokio::test]
async fn a4_a_small_file_system_that_is_full_can_be_emptied_and_enlarged() {
    let Some(mounted) = Mounted::new("24m") else {
        println!("no file system can be mounted here: the injected disk has to do");
        return;
    };
    let directory = mounted.0.path().join("data");
    let log = Log::open(Box::new(Sqlite::open(&directory).unwrap()), Limits::default()).unwrap();
    let write = |n: usize| Write {
        key: format!("k/{n:05}"),
        expect: Expect::Absent,
        value: Some(Bytes::from(vec![b'v'; 20_000])),
    };
    let mut written = Vec::new();
    let refused = loop {
        match log.write(write(written.len())).await {
            Ok(version) => written.push(version),
            Err(refused) => break refused,
        }
        assert!(written.len() < 2000, "24 MB hold less");
    };
    assert!(refused.to_string().contains("full"), "{refused}");
    assert!(written.len() > 300, "{} were written", written.len());
    // Deleting makes room for something new.
    for (n, version) in written.iter().enumerate().take(60) {
        let key = format!("k/{n:05}");
        let gone = Write { key, expect: Expect::Version(*version), value: None };
        log.write(gone).await.unwrap_or_else(|refused| panic!("deleting {n}: {refused}"));
    }
    for n in 0..20 {
        let made = log.write(write(10_000 + n)).await;
        made.unwrap_or_else(|refused| panic!("after deleting, {n}: {refused}"));
    }
    // And so does a bigger disk.
    let mut n = 20_000;
    while log.write(write(n)).await.is_ok() {
        n += 1;
    }
    assert!(log.trouble().borrow().is_some());
    mounted.resize("80m");
    log.probe().await;
    assert!(log.trouble().borrow().is_none());
    log.write(write(30_000)).await.unwrap();
    let there = log.list("k/", None).unwrap().entries.len();
    assert_eq!(there, written.len() - 60 + 20 + (n - 20_000) + 1);
    log.close().await.unwrap();
}
