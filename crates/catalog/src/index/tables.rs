//! The tables, and opening a database that has them.
//!
//! ```text
//!   repository ─┬─ version ──► package (what a manifest is: by digest, wherever it lies)
//!               ├─ tag             ├─ provides ──► offer (a kind as some versions define it), brief
//!               ├─ word, facet     └─ needs          ├─ kind
//!               ├─ home ──► offer                    ├─ document (once by digest)
//!               └─ kind_word                         └─ schema_use ──► schema (once by digest)
//!                                                                   └► field (names of fields, by kind)
//! ```
//!
//! A version without a package was not read yet. Everything at the right end of an arrow is there
//! as long as something leads to it.
//!
//! Versions of a package mostly define a kind in the same way: that is an `offer`, which is kept, and
//! read for an answer, once. `provides` lies in the order of kinds, `version` and `tag` in the order of
//! repositories: a lookup reads three short runs of rows, however large the tables are. `home` says in
//! which repositories a kind is found, and `kind_word` by which words, so that what an asker may read
//! is known before anything is read.

use fs_err::os::unix::fs::OpenOptionsExt as _;
use rusqlite::{Connection, OpenFlags};
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

/// The format of the tables and of what is read from packages: one more, and all are read again.
pub(super) const FORMAT: i64 = 6;
/// What says in a file's header that it is a catalog.
const APPLICATION: i32 = 0x6170_726e;
/// Where that stands, after what every `SQLite` file begins with.
const APPLICATION_AT: usize = 68;
/// How long a connection waits for another; only checkpoints can make one wait.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Pages a connection keeps, in KiB (negative, as `SQLite` wants it).
const PAGE_CACHE: i64 = -4096;

const TABLES: &str = "
CREATE TABLE repository (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    newest TEXT,
    type TEXT,
    category TEXT,
    versions INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE package (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    kinds INTEGER NOT NULL DEFAULT 0,
    brief INTEGER,
    reason TEXT,
    facts TEXT,
    metadata TEXT,
    objects BLOB,
    readme TEXT,
    icon TEXT
);
CREATE INDEX package_brief ON package (brief);
CREATE TABLE brief (id INTEGER PRIMARY KEY, facts TEXT NOT NULL UNIQUE);
CREATE TABLE version (
    repository INTEGER NOT NULL,
    digest TEXT NOT NULL,
    package INTEGER,
    reason TEXT,
    PRIMARY KEY (repository, digest)
) WITHOUT ROWID;
CREATE INDEX version_package ON version (package);
CREATE INDEX version_digest ON version (digest);
CREATE TABLE tag (
    repository INTEGER NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (repository, name)
) WITHOUT ROWID;
CREATE INDEX tag_digest ON tag (repository, digest);
CREATE TABLE provides (
    name TEXT NOT NULL,
    package INTEGER NOT NULL,
    offer INTEGER NOT NULL,
    brief INTEGER NOT NULL,
    PRIMARY KEY (name, package)
) WITHOUT ROWID;
CREATE INDEX provides_package ON provides (package);
CREATE TABLE offer (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    facts TEXT NOT NULL,
    document TEXT
);
CREATE INDEX offer_name ON offer (name);
CREATE INDEX offer_document ON offer (document);
CREATE TABLE document (digest TEXT PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE home (
    name TEXT NOT NULL,
    repository INTEGER NOT NULL,
    offer INTEGER NOT NULL,
    uses INTEGER NOT NULL,
    PRIMARY KEY (name, repository, offer)
) WITHOUT ROWID;
CREATE TABLE kind (name TEXT PRIMARY KEY, family TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX kind_family ON kind (family, name);
CREATE TABLE kind_word (
    word TEXT NOT NULL,
    rank INTEGER NOT NULL,
    name TEXT NOT NULL,
    repository INTEGER NOT NULL,
    uses INTEGER NOT NULL,
    PRIMARY KEY (word, rank, name, repository)
) WITHOUT ROWID;
CREATE INDEX kind_word_name ON kind_word (name, word);
CREATE TABLE word (
    rank INTEGER NOT NULL,
    word TEXT NOT NULL,
    repository INTEGER NOT NULL,
    PRIMARY KEY (rank, word, repository)
) WITHOUT ROWID;
CREATE INDEX word_repository ON word (repository, word);
CREATE TABLE facet (
    facet TEXT NOT NULL,
    value TEXT NOT NULL,
    repository INTEGER NOT NULL,
    PRIMARY KEY (facet, value, repository)
) WITHOUT ROWID;
CREATE INDEX facet_repository ON facet (repository);
CREATE TABLE needs (
    path TEXT NOT NULL,
    package INTEGER NOT NULL,
    PRIMARY KEY (path, package)
) WITHOUT ROWID;
CREATE INDEX needs_package ON needs (package);
CREATE TABLE schema (digest TEXT PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE schema_use (
    digest TEXT NOT NULL,
    offer INTEGER NOT NULL,
    PRIMARY KEY (digest, offer)
) WITHOUT ROWID;
CREATE INDEX schema_use_offer ON schema_use (offer);
CREATE TABLE field_name (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE field (
    field INTEGER NOT NULL,
    name TEXT NOT NULL,
    uses INTEGER NOT NULL,
    PRIMARY KEY (field, name)
) WITHOUT ROWID;
";

/// Opens the one connection that writes; an old or damaged database is made anew, for all of it
/// can be read again.
pub(super) fn open_writer(path: &Path) -> Result<Connection, super::IndexError> {
    match try_open_writer(path) {
        Ok(Some(connection)) => return Ok(connection),
        Ok(None) => {}
        Err(error) if is_damage(&error) => {}
        Err(error) => return Err(error.into()),
    }
    remove(path)?;
    let made = try_open_writer(path)?;
    made.ok_or(super::IndexError::Format)
}

/// Whether a failure says that the file cannot be read.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}

/// Whether a file is a catalog of any format; an empty one can become one.
pub(super) fn is_catalog(path: &Path) -> std::io::Result<bool> {
    let mut header = Vec::new();
    fs_err::File::open(path)?.take(100).read_to_end(&mut header)?;
    let mark = header.get(APPLICATION_AT..APPLICATION_AT + 4);
    Ok(header.is_empty() || mark == Some(APPLICATION.to_be_bytes().as_slice()))
}

/// The format of a catalog's database; none if it has none yet, or cannot be read.
pub(super) fn stored_format(path: &Path) -> Option<i64> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).ok()?;
    let found = connection.pragma_query_value(None, "user_version", |row| row.get(0));
    found.ok().filter(|format| *format != 0)
}

/// Removes a database with its log.
pub(super) fn remove(path: &Path) -> std::io::Result<()> {
    for end in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(end);
        match fs_err::remove_file(Path::new(&file)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Opens a database; none if it has another format.
fn try_open_writer(path: &Path) -> rusqlite::Result<Option<Connection>> {
    // It tells of private repositories, and its log gets the permissions that it has.
    let options = fs_err::OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    drop(options);
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // Into the file itself, before there is a log that a crash could leave it in.
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    if pages == 0 {
        connection.pragma_update(None, "application_id", APPLICATION)?;
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // A crash may lose the last changes, and never mixes them: the next look brings them back.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "cache_size", PAGE_CACHE)?;
    connection.set_prepared_statement_cache_capacity(64);
    let transaction = connection.transaction()?;
    let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match found {
        0 => {
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "user_version", FORMAT)?;
        }
        FORMAT => {}
        _ => return Ok(None),
    }
    transaction.commit()?;
    Ok(Some(connection))
}

/// Opens a connection that only reads.
pub(super) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "cache_size", PAGE_CACHE)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}
