//! What every chapter needs: the binary in a clean environment, scratch directories, a real
//! registry, the peers, the shared corpus. Whatever is missing is a failure that says how to get
//! it; nothing is skipped.

use std::ffi::OsStr;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long anything may take, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(900);

/// Waits for something that comes by itself.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    patiently(|| look().ok_or_else(|| format!("{what}: that did not come")))
}

/// The same, with what is in the way for as long as it is.
#[track_caller]
pub(crate) fn patiently<T>(mut look: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(why) => assert!(start.elapsed() < PATIENCE, "{why}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A scratch directory that is gone when the test is.
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// One that every user of this machine can enter.
    pub(crate) fn for_everybody() -> Self {
        use std::os::unix::fs::PermissionsExt;
        // Elsewhere other users may not be let in.
        let directory = tempfile::tempdir_in("/tmp").unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        fs_err::set_permissions(directory.path(), mode).unwrap();
        Self(directory)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file, making its directories.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, content).unwrap();
        path
    }

    /// Copies one of the repository's packages here.
    pub(crate) fn copy_package(&self, name: &str) -> PathBuf {
        self.copy_package_from(&own_packages().join(name), name)
    }

    /// Copies a package from somewhere else here.
    pub(crate) fn copy_package_from(&self, source: &Path, name: &str) -> PathBuf {
        let target = self.join(name);
        let _ = fs_err::remove_dir_all(&target);
        copy_tree(source, &target);
        target
    }
}

fn copy_tree(from: &Path, to: &Path) {
    fs_err::create_dir_all(to).unwrap();
    for entry in fs_err::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs_err::copy(entry.path(), target).unwrap();
        }
    }
}

/// What a program said and how it ended.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The run, which must have ended well.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Everything said by a run that must have failed with code 1.
    #[track_caller]
    pub(crate) fn failed(self) -> String {
        assert_eq!(self.code, Some(1), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self.all()
    }

    /// Both streams, results first.
    pub(crate) fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// The binary under test, in an environment of its own: no proxies, no credentials, no colours.
pub(crate) fn command(scratch: &Scratch) -> Command {
    command_at(scratch, Path::new(env!("CARGO_BIN_EXE_apron")))
}

/// The same for a program at another path, such as a link to the binary.
pub(crate) fn command_at(scratch: &Scratch, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(scratch.path()).env_clear().stdin(Stdio::null());
    command.env("HOME", scratch.path()).env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command
}

/// Says that something was not tried because this machine does not allow it, past what captures the output of tests,
/// and counts it for the end of the run (`scripts/tests untried`).
pub(crate) fn note_untried(what: &str, why: &str) {
    use std::io::Write;
    let line = format!("{what}: {why}\n");
    let _ = write!(std::io::stderr(), "tests: not tried: {line}");
    if let Some(list) = std::env::var_os("APRON_UNTRIED") {
        let file = fs_err::OpenOptions::new().create(true).append(true).open(PathBuf::from(list));
        file.unwrap().write_all(line.as_bytes()).unwrap();
    }
}

/// Runs apron in a scratch directory.
pub(crate) fn apron<A: AsRef<OsStr>>(
    scratch: &Scratch,
    arguments: impl IntoIterator<Item = A>,
) -> Ran {
    command(scratch).args(arguments).output().unwrap().into()
}

/// Runs apron under another name, through a link as an installation would have it.
pub(crate) fn apron_as<A: AsRef<OsStr>>(
    scratch: &Scratch,
    name: &str,
    arguments: impl IntoIterator<Item = A>,
) -> Ran {
    command_at(scratch, &linked(scratch, name)).args(arguments).output().unwrap().into()
}

/// A link to apron under another name, beside all others in `.bin`.
pub(crate) fn linked(scratch: &Scratch, name: &str) -> PathBuf {
    let link = scratch.join(".bin").join(name);
    fs_err::create_dir_all(link.parent().unwrap()).unwrap();
    // Somebody else may have made it.
    let _ = fs_err::os::unix::fs::symlink(env!("CARGO_BIN_EXE_apron"), &link);
    assert!(link.exists(), "{}", link.display());
    link
}

/// Runs a peer; `scripts/peers` builds them.
pub(crate) fn peer<A: AsRef<OsStr>>(
    scratch: &Scratch,
    name: &str,
    arguments: impl IntoIterator<Item = A>,
) -> Ran {
    command_at(scratch, &peer_path(name)).args(arguments).output().unwrap().into()
}

/// Where a peer's binary is.
pub(crate) fn peer_path(name: &str) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/peers");
    let found = Command::new(script).args(["path", name]).output().unwrap();
    assert!(found.status.success(), "peer {name} is not built: run scripts/peers");
    PathBuf::from(String::from_utf8(found.stdout).unwrap().trim())
}

/// Runs a program of the system; `scripts/setup test` installs them.
pub(crate) fn program<A: AsRef<OsStr>>(
    scratch: &Scratch,
    name: &str,
    arguments: impl IntoIterator<Item = A>,
) -> Ran {
    let ran = command_at(scratch, Path::new(name)).args(arguments).output();
    ran.unwrap_or_else(|error| panic!("{name}: {error}; run `scripts/setup test`")).into()
}

/// A file or directory of the real packages and documents that may lie beside a checkout.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let root = match std::env::var_os("APRON_SHARED") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
    };
    let path = root.join(path);
    let is_asked_for = std::env::var_os("APRON_SHARED").is_some();
    assert!(path.exists() || !is_asked_for, "APRON_SHARED is set, and has no {}", path.display());
    path.exists().then_some(path)
}

/// The packages of the repository.
fn own_packages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus/packages")
}

/// Where a small package lies: the repository's own, and the real one if it is there.
pub(crate) fn package_sources(name: &str) -> Vec<PathBuf> {
    let real = shared(&format!("corpus/packages/{name}"));
    std::iter::once(own_packages().join(name)).chain(real).collect()
}

/// A directory of the user's cache, filled once by `fill`.
fn cached(name: &str, fill: impl Fn(&Path)) -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache =
        cache.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"));
    let target = cache.join("apron").join(name);
    if !target.exists() {
        fs_err::create_dir_all(target.parent().unwrap()).unwrap();
        let work = tempfile::tempdir_in(target.parent().unwrap()).unwrap();
        fill(work.path());
        // Another test may have been faster; its result is the same.
        let _ = fs_err::rename(work.path().join("package"), &target);
    }
    target
}

/// 2,065 generated CRDs, in `crds`. Another generator has another name in the cache.
pub(crate) fn generated_corpus() -> PathBuf {
    let last = corpus::definition::Definition::generate(corpus::measured::COUNT, corpus::SEED);
    let text = last.to_yaml();
    let mark = text.bytes().fold(0_u32, |sum, byte| sum.rotate_left(5) ^ u32::from(byte));
    cached(&format!("generated-2065-{mark:08x}"), |work| {
        let crds = work.join("package/crds");
        corpus::write_definitions(&crds, corpus::measured::COUNT, corpus::SEED).unwrap();
    })
}

/// The 2,065 generated CRDs, and the real ones if they are there.
pub(crate) fn corpora() -> Vec<PathBuf> {
    let real = shared("corpus/provider-upjet-aws-crds.tar.xz").map(|archive| {
        cached("corpus-2065", |work| {
            let mut unpacked = Command::new("tar");
            unpacked.arg("-xf").arg(&archive).arg("-C").arg(work);
            assert!(unpacked.status().unwrap().success(), "cannot unpack the corpus");
        })
    });
    std::iter::once(generated_corpus()).chain(real).collect()
}

/// Debian's registry on a port of its own, with storage of its own.
pub(crate) struct Registry {
    child: Child,
    pub(crate) address: String,
    _storage: Scratch,
}

impl Registry {
    /// Starts a registry anyone may use.
    pub(crate) fn start() -> Self {
        Self::start_with("")
    }

    /// Starts a registry for user `ada` with password `secret`.
    pub(crate) fn with_password() -> Self {
        // bcrypt of `secret`, made once: making one takes a program that is not needed otherwise.
        Self::start_with("auth:\n  htpasswd:\n    realm: test\n    path: STORAGE/htpasswd\n")
    }

    fn start_with(extra: &str) -> Self {
        let storage = Scratch::new();
        let port = free_port();
        let place = storage.path().display().to_string();
        let config = format!(
            "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {place}/data\n  delete:\n    enabled: true\nhttp:\n  addr: 127.0.0.1:{port}\n{}",
            extra.replace("STORAGE", &place)
        );
        let config = storage.write("config.yml", config);
        storage.write("htpasswd", format!("ada:{BCRYPT_OF_SECRET}\n"));
        let child = Command::new("docker-registry")
            .arg("serve")
            .arg(config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("docker-registry: {error}; run `scripts/setup test`"));
        let registry = Self { child, address: format!("127.0.0.1:{port}"), _storage: storage };
        wait_for(&registry.address);
        registry
    }

    /// A reference in this registry.
    pub(crate) fn reference(&self, path: &str) -> String {
        format!("{}/{path}", self.address)
    }

    /// Asks the registry itself, past all clients.
    pub(crate) fn get(&self, path: &str, accept: &str) -> String {
        use std::io::Write;
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let host = &self.address;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {host}\r\nAccept: {accept}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const BCRYPT_OF_SECRET: &str = "$2b$05$KHepF81Mvtu6THnVqQKxfuxhuq9Dm8TY7F.GAgVgxpNYDDkWrohFO";

/// A port nobody listens on now. The system gives ports above these to connections and to whoever
/// asks for any, so nobody is given this one before it is used.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        // Other processes begin elsewhere.
        let number = std::process::id() * 101 + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + u16::try_from(number % 20_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// What a program has started, and not waited for.
pub(crate) fn children(parent: &Child) -> Vec<String> {
    let id = parent.id();
    let children = fs_err::read_to_string(format!("/proc/{id}/task/{id}/children"));
    children.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// Waits until a process that was killed, and is not a child of ours, has let go of its files.
/// They are open, and locks on them held, until its last thread is gone: the first, by whose
/// state one knows a process, can be gone long before.
pub(crate) fn wait_for_end(process: &str) {
    let runs = |thread: std::io::Result<fs_err::DirEntry>| {
        let stat = thread.and_then(|thread| fs_err::read_to_string(thread.path().join("stat")));
        stat.is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
    };
    let threads = || fs_err::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    while threads().any(runs) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until somebody listens.
pub(crate) fn wait_for(address: &str) {
    let deadline = Instant::now() + Duration::from_secs(300);
    while TcpStream::connect(address).is_err() {
        assert!(Instant::now() < deadline, "nothing listens on {address}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
