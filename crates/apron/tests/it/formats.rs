//! Data directories of each release, kept as `tests/formats/VERSION.tar.gz`: this version opens them, refuses
//! what a later one wrote, and says what to do with what it no longer reads.
//!
//! A release whose version has no file yet gets one with `APRON_UPDATE=1`; one that is there is never written
//! again.

use crate::readme::repository;
use crate::registry::Served;
use crate::support::{Scratch, apron, command, patiently, program};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Once;

const BUCKETS: &str = "buckets.storage.harbour.example.org";
/// Installs the example into a control plane, and stops when all of it is healthy.
const UP: &str = "up platform --data-dir plane --exit-when-ready --listen 127.0.0.1:0 --registry-listen 127.0.0.1:0";
/// What is said of a format that is too new, by whichever command.
const LATER: &str = "use the version of apron that wrote it, or a later one";

fn archives() -> PathBuf {
    repository().join("crates/apron/tests/formats")
}

/// Every format there is, with something in it.
fn make_data(scratch: &Scratch) {
    scratch.copy_package_from(&repository().join("examples/platform"), "platform");
    run(scratch, UP);
    run(scratch, "build platform/provider -o provider.xpkg");
    run(scratch, "copy provider.xpkg oci:layout:v0.1.0");
    run(scratch, "registry import layout platform/provider-harbour --data-dir registry");
    let mut add = command(scratch);
    add.args("registry user add ada --data-dir registry".split(' ')).stdin(Stdio::piped());
    let mut add = add.spawn().unwrap();
    add.stdin.take().unwrap().write_all(b"correct horse battery staple\n").unwrap();
    assert!(add.wait().unwrap().success());
    run(scratch, "catalog export carried.jsonl.gz --catalog plane/registry/catalog.db");
    run(scratch, "catalog import carried.jsonl.gz --catalog own.db");
}

fn run(scratch: &Scratch, words: &str) -> String {
    apron(scratch, words.split_whitespace()).ok().all()
}

fn refused(scratch: &Scratch, words: &str) -> String {
    apron(scratch, words.split_whitespace()).failed()
}

/// Writes the archive of this version.
fn write_archive(path: &Path) {
    let scratch = Scratch::new();
    make_data(&scratch);
    fs_err::create_dir_all(archives()).unwrap();
    let words = "--sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --format=gnu -czf";
    let files = ["plane", "registry", "own.db", "carried.jsonl.gz"];
    let words = words.split(' ').chain([path.to_str().unwrap()]).chain(files);
    program(&scratch, "tar", words.collect::<Vec<_>>()).ok();
}

/// The archives of all releases by their versions; this one's is among them.
fn releases() -> BTreeMap<String, PathBuf> {
    /// Tests run side by side, and one of them makes what is missing.
    static MADE: Once = Once::new();
    let own = archives().join(format!("{}.tar.gz", env!("CARGO_PKG_VERSION")));
    MADE.call_once(|| {
        if std::env::var_os("APRON_UPDATE").is_some() && !own.exists() {
            write_archive(&own);
        }
    });
    assert!(
        own.exists(),
        "APRON_UPDATE=1 cargo test -p apron --test it formats:: makes {}",
        own.display()
    );
    let entries = fs_err::read_dir(archives()).unwrap().map(|entry| entry.unwrap().path());
    let version = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name.trim_end_matches(".tar.gz").to_owned(), path)
    };
    entries.map(version).collect()
}

fn unpack(archive: &Path) -> Scratch {
    let scratch = Scratch::new();
    program(&scratch, "tar", ["-xzf", archive.to_str().unwrap()]).ok();
    scratch
}

fn unpack_own() -> Scratch {
    unpack(&releases()[env!("CARGO_PKG_VERSION")])
}

/// When each package of the cache was written.
fn cached(scratch: &Scratch) -> BTreeMap<String, std::time::SystemTime> {
    let entries = fs_err::read_dir(scratch.join("plane/packages")).unwrap();
    // Beside packages there is what tags meant, which is asked again.
    let entries = entries.map(|entry| entry.unwrap());
    entries
        .filter(|entry| entry.path().extension().is_some_and(|it| it == "gz"))
        .map(|entry| {
            let written = entry.metadata().unwrap().modified().unwrap();
            (entry.file_name().into_string().unwrap(), written)
        })
        .collect()
}

#[test]
fn data_directories_of_every_release_are_opened() {
    for (version, archive) in releases() {
        let scratch = unpack(&archive);
        // The API server's log.
        run(&scratch, "apiserver export --data-dir plane/api -o before.yaml");
        let before = fs_err::read_to_string(scratch.join("before.yaml")).unwrap();
        assert!(before.contains(&format!("name: {BUCKETS}")), "{version}");
        // All of a control plane goes on where it was, with the packages that were fetched.
        let packages = cached(&scratch);
        assert!(packages.len() >= 6, "{version}: {packages:?}");
        scratch.copy_package_from(&repository().join("examples/platform"), "platform");
        let said = run(&scratch, UP);
        assert!(said.contains("configuration platform v0.1.0: healthy"), "{version}: {said}");
        let now = cached(&scratch);
        for (name, written) in packages {
            assert_eq!(now.get(&name), Some(&written), "{version}: {name} was fetched again");
        }
        run(&scratch, "apiserver export --data-dir plane/api -o after.yaml");
        // A registry and its users.
        let found = run(&scratch, "registry scrub --data-dir registry");
        assert!(found.contains(", 0 damaged"), "{version}: {found}");
        let users = run(&scratch, "registry user list --data-dir registry");
        assert!(users.contains("ada   yes"), "{version}: {users}");
        let written =
            run(&scratch, "registry export platform/provider-harbour out --data-dir registry");
        assert!(written.contains("v0.1.0"), "{version}: {written}");
        // Catalogs, as they are carried and as they are kept: those are read again if their format is another.
        let found = run(&scratch, "which Bucket --catalog carried.jsonl.gz");
        assert!(found.contains("platform/provider-harbour"), "{version}: {found}");
        run(&scratch, "catalog import carried.jsonl.gz --catalog new.db");
        if format_of(&scratch, "own.db") == format_of(&scratch, "new.db") {
            let found = run(&scratch, "which Bucket --catalog own.db");
            assert!(found.contains("platform/provider-harbour"), "{version}: {found}");
        } else {
            let said = refused(&scratch, "which Bucket --catalog own.db");
            assert!(said.contains("apron catalog sync"), "{version}: {said}");
        }
    }
}

#[test]
fn the_page_about_files_says_the_format_of_catalogs() {
    let scratch = unpack_own();
    run(&scratch, "catalog import carried.jsonl.gz --catalog new.db");
    let now = format_of(&scratch, "new.db");
    let page = fs_err::read_to_string(repository().join("docs/reference/files.md")).unwrap();
    assert_eq!(
        page.matches(&format!("| {now}, its `user_version` | ")).count(),
        2 + usize::from(now == 1)
    );
}

/// Changes a number in a database, as another version of the program would have written it.
fn alter(scratch: &Scratch, database: &str, change: impl FnOnce(&Connection)) {
    let connection = Connection::open(scratch.join(database)).unwrap();
    change(&connection);
}

fn format_of(scratch: &Scratch, database: &str) -> i64 {
    let connection = Connection::open(scratch.join(database)).unwrap();
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

fn set_format(scratch: &Scratch, database: &str, format: i64) {
    alter(scratch, database, |connection| {
        connection.pragma_update(None, "user_version", format).unwrap();
    });
}

#[test]
fn formats_of_later_versions_are_refused_and_left_as_they_are() {
    let scratch = unpack_own();
    alter(&scratch, "plane/api/log.sqlite", |connection| {
        connection.execute("UPDATE mark SET value = 2 WHERE name = 'format'", []).unwrap();
    });
    let said = refused(&scratch, "apiserver --data-dir plane/api --listen 127.0.0.1:0");
    assert!(said.contains("the data has format 2") && said.contains(LATER), "{said}");

    set_format(&scratch, "registry/meta.db", format_of(&scratch, "registry/meta.db") + 1);
    let said = refused(&scratch, "registry scrub --data-dir registry");
    assert!(said.contains(LATER), "{said}");
    // The repositories are there, whatever the database says of them.
    run(&scratch, "registry rebuild --data-dir registry");
    run(&scratch, "registry scrub --data-dir registry");

    let users = fs_err::read_to_string(scratch.join("registry/users.json")).unwrap();
    let later = users.replacen("\"format\": 1", "\"format\": 2", 1);
    assert_ne!(users, later);
    fs_err::write(scratch.join("registry/users.json"), later).unwrap();
    let said = refused(&scratch, "registry user list --data-dir registry");
    assert!(said.contains(LATER), "{said}");

    let later = format_of(&scratch, "own.db") + 1;
    set_format(&scratch, "own.db", later);
    for words in
        ["which Bucket --catalog own.db", "catalog import carried.jsonl.gz --catalog own.db"]
    {
        let said = refused(&scratch, words);
        assert!(said.contains(&format!("format {later}")) && said.contains(LATER), "{said}");
    }
    assert_eq!(format_of(&scratch, "own.db"), later);

    program(&scratch, "sh", ["-c", "gzip -dc carried.jsonl.gz | sed '1s|apron-catalog/1|apron-catalog/2|' | gzip > later.gz"])
        .ok();
    for words in ["which Bucket --catalog later.gz", "catalog import later.gz --catalog new.db"] {
        let said = refused(&scratch, words);
        assert!(said.contains("apron-catalog/2") && said.contains(LATER), "{said}");
    }
}

#[test]
fn catalogs_of_earlier_versions_are_made_anew_from_what_they_are_of() {
    let scratch = unpack_own();
    let earlier = format_of(&scratch, "own.db") - 1;
    set_format(&scratch, "own.db", earlier);
    let said = refused(&scratch, "which Bucket --catalog own.db");
    assert!(said.contains("apron catalog sync"), "{said}");
    run(&scratch, "catalog import carried.jsonl.gz --catalog own.db");
    let found = run(&scratch, "which Bucket --catalog own.db");
    assert!(found.contains("platform/provider-harbour"), "{found}");
    // The catalog of a registry is made from what the registry has, whichever version wrote it.
    fs_err::remove_file(scratch.join("registry/users.json")).unwrap();
    ask_served(&scratch);
    let own = format_of(&scratch, "registry/catalog.db");
    for other in [own - 1, own + 1] {
        set_format(&scratch, "registry/catalog.db", other);
        ask_served(&scratch);
        assert_eq!(format_of(&scratch, "registry/catalog.db"), own);
    }
}

/// Serves the registry until its catalog knows what is in it.
fn ask_served(scratch: &Scratch) {
    let served = Served::start_in(scratch, "registry");
    let address = served.address().to_owned();
    patiently(|| {
        let ran = apron(scratch, ["which", "Bucket", "--registry", &address]);
        let is_found = ran.stdout.contains("platform/provider-harbour");
        is_found.then_some(()).ok_or_else(|| ran.all())
    });
}
