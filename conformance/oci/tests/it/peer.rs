//! Registries of others, started for a test and gone after it.

use conformance_oci::Target;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// `ada` with the password `secret`, as bcrypt writes it.
const HTPASSWD: &str = "ada:$2b$05$KHepF81Mvtu6THnVqQKxfuxhuq9Dm8TY7F.GAgVgxpNYDDkWrohFO\n";

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Debian's package, 2.8.2.
    DockerRegistry,
    /// The same, with a certificate of its own.
    DockerRegistryTls,
    /// distribution 3.1.1.
    Distribution,
}

impl Kind {
    fn program(self) -> PathBuf {
        if self != Self::Distribution {
            return PathBuf::from("docker-registry");
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/peers");
        let asked = Command::new(script).args(["path", "registry"]).output().unwrap();
        let path = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
        let reason = String::from_utf8_lossy(&asked.stderr);
        assert!(
            asked.status.success(),
            "distribution 3.1.1 is needed; run scripts/peers\n{reason}"
        );
        PathBuf::from(path)
    }
}

/// A port nobody listens on now, below those that the system gives to connections.
fn free_port() -> u16 {
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

/// A registry, gone when dropped.
pub(crate) struct Peer {
    child: Child,
    directory: tempfile::TempDir,
    port: u16,
    tls: bool,
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Peer {
    pub(crate) async fn start(kind: Kind, password: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = free_port();
        let config = directory.path().join("config.yml");
        let tls = kind == Kind::DockerRegistryTls;
        fs_err::write(&config, configuration(directory.path(), port, password, tls)).unwrap();
        let log = fs_err::File::create(directory.path().join("log")).unwrap();
        let program = kind.program();
        let spawned = Command::new(&program)
            .args(["serve".as_ref(), config.as_os_str()])
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdout(Stdio::null())
            .stderr(log.into_parts().0)
            .spawn();
        let child = spawned.unwrap_or_else(|error| {
            panic!("{}: {error}; run scripts/setup test", program.display())
        });
        let mut peer = Self { child, directory, port, tls };
        peer.wait().await;
        peer
    }

    async fn wait(&mut self) {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(300) && self.child.try_wait().unwrap().is_none()
        {
            if tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let log = fs_err::read_to_string(self.directory.path().join("log")).unwrap();
        panic!("the registry does not listen: {log}");
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http{}://127.0.0.1:{}", if self.tls { "s" } else { "" }, self.port)
    }

    /// A target with more patience than usual: test machines are busy.
    pub(crate) fn target(&self) -> Target {
        let mut target = Target::new(self.base_url());
        target.timeout = Duration::from_secs(120);
        target
    }

    pub(crate) fn certificate(&self) -> Vec<u8> {
        fs_err::read(self.directory.path().join("cert.pem")).unwrap()
    }
}

fn configuration(directory: &Path, port: u16, password: bool, tls: bool) -> String {
    let root = directory.display();
    let mut text = format!(
        "version: 0.1\nlog: {{level: error}}\nstorage:\n  \
         filesystem: {{rootdirectory: {root}/data}}\n  delete: {{enabled: true}}\n\
         http:\n  addr: 127.0.0.1:{port}\n"
    );
    if tls {
        certificate(directory);
        writeln!(text, "  tls: {{certificate: {root}/cert.pem, key: {root}/key.pem}}").unwrap();
    }
    if password {
        fs_err::write(directory.join("htpasswd"), HTPASSWD).unwrap();
        writeln!(text, "auth: {{htpasswd: {{realm: test, path: {root}/htpasswd}}}}").unwrap();
    }
    text
}

fn certificate(directory: &Path) {
    let made = Command::new("openssl")
        .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2".split(' '))
        .args("-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1".split(' '))
        .args("-addext basicConstraints=critical,CA:FALSE".split(' '))
        .arg("-keyout")
        .arg(directory.join("key.pem"))
        .arg("-out")
        .arg(directory.join("cert.pem"))
        .output()
        .expect("openssl is needed for this test: run scripts/setup test");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}
