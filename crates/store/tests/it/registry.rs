//! The remote store against Debian's docker-registry: plain, with a password, with TLS.

use crate::{chain, hold, repository, tag};
use oci::Repository;
use std::fmt::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use store::auth::{Credential, Keychain};
use store::remote::{Client, HttpSettings, Proxies, Settings, http_client};
use store::{Advice, Store};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// `user` with password `secret`, as bcrypt writes it.
const HTPASSWD: &str = "user:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n";

/// A registry of its own, gone when dropped.
pub(crate) struct Registry {
    child: Child,
    pub(crate) directory: tempfile::TempDir,
    pub(crate) port: u16,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port nobody listens on now, below those that the system gives to connections.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        // Other processes begin elsewhere.
        let number = std::process::id() * 101 + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + u16::try_from(number % 20_000).unwrap_or_default();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl Registry {
    pub(crate) async fn start(kind: Kind) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = free_port();
        let config = directory.path().join("config.yml");
        fs_err::write(&config, kind.config(directory.path(), port)).unwrap();
        let log = fs_err::File::create(directory.path().join("log")).unwrap();
        let spawned = Command::new("docker-registry")
            .args(["serve".as_ref(), config.as_os_str()])
            .stdout(Stdio::null())
            .stderr(log.into_parts().0)
            .spawn();
        let child = spawned.expect(
            "docker-registry is needed for this test: run scripts/setup, or apt-get install docker-registry",
        );
        let registry = Self { child, directory, port };
        registry.wait().await;
        registry
    }

    async fn wait(&self) {
        for _ in 0..4500 {
            if tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let log = fs_err::read_to_string(self.directory.path().join("log")).unwrap();
        panic!("docker-registry does not listen: {log}");
    }

    pub(crate) fn repository(&self, path: &str) -> Repository {
        repository(&format!("127.0.0.1:{}/{path}", self.port))
    }

    fn certificate(&self) -> Vec<u8> {
        fs_err::read(self.directory.path().join("cert.pem")).unwrap()
    }
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Plain,
    Password,
    Tls,
    /// TLS, and the client must show a certificate too.
    Mutual,
}

impl Kind {
    fn config(self, directory: &Path, port: u16) -> String {
        let root = directory.display();
        let mut text = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {root}/data}}}}\nhttp:\n  addr: 127.0.0.1:{port}\n"
        );
        if matches!(self, Self::Tls | Self::Mutual) {
            make_certificate(directory);
            let authorities = match self {
                Self::Mutual => format!(", clientcas: [{root}/cert.pem]"),
                _ => String::new(),
            };
            let files = format!("certificate: {root}/cert.pem, key: {root}/key.pem{authorities}");
            writeln!(text, "  tls: {{{files}}}").unwrap();
        }
        if self != Self::Plain {
            fs_err::write(directory.join("htpasswd"), HTPASSWD).unwrap();
            writeln!(text, "auth: {{htpasswd: {{realm: test, path: {root}/htpasswd}}}}").unwrap();
        }
        text
    }
}

fn make_certificate(directory: &Path) {
    let made = Command::new("openssl")
        .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2".split(' '))
        .args("-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1".split(' '))
        .args("-addext basicConstraints=critical,CA:FALSE".split(' '))
        .arg("-keyout")
        .arg(directory.join("key.pem"))
        .arg("-out")
        .arg(directory.join("cert.pem"))
        .output()
        .expect("openssl is needed for this test: run scripts/setup");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

pub(crate) fn quick() -> Settings {
    Settings { backoff: Duration::from_millis(5), ..Settings::default() }
}

pub(crate) fn client(keychain: Keychain) -> Client {
    Client::new(http_client(&HttpSettings::default()).unwrap(), keychain, quick())
}

fn password(password: &str) -> Keychain {
    Keychain::fixed(Credential::Basic { user: "user".into(), password: password.into() })
}

#[tokio::test]
async fn a_registry_obeys_the_laws() {
    let registry = Registry::start(Kind::Plain).await;
    let remote = client(Keychain::anonymous()).repository(registry.repository("a/b"));
    hold(store::suite::run(&remote).await);
}

#[tokio::test]
async fn a_registry_with_a_password_obeys_the_laws() {
    let registry = Registry::start(Kind::Password).await;
    let remote = client(password("secret")).repository(registry.repository("a/b"));
    hold(store::suite::run(&remote).await);
}

#[tokio::test]
async fn a_wrong_password_is_unauthorized() {
    let registry = Registry::start(Kind::Password).await;
    for keychain in [password("wrong"), Keychain::anonymous()] {
        let client = client(keychain);
        let remote = client.repository(registry.repository("a"));
        let error = remote.tags().await.unwrap_err();
        let expected = format!("127.0.0.1:{}", registry.port);
        assert_eq!(
            error.advice(),
            Advice::Unauthorized { registry: expected },
            "{}",
            chain(&error)
        );
        assert!(client.check_login(&registry.repository("a")).await.is_err());
    }
    client(password("secret")).check_login(&registry.repository("a")).await.unwrap();
}

#[tokio::test]
async fn a_registry_with_tls_obeys_the_laws_once_its_certificate_is_trusted() {
    let registry = Registry::start(Kind::Tls).await;
    let settings =
        HttpSettings { ca_bundle: Some(registry.certificate()), ..HttpSettings::default() };
    let client = Client::new(http_client(&settings).unwrap(), password("secret"), quick());
    hold(store::suite::run(&client.repository(registry.repository("a"))).await);
}

#[tokio::test]
async fn an_unknown_certificate_is_an_error_about_tls_unless_told_otherwise() {
    let registry = Registry::start(Kind::Tls).await;
    let remote = client(password("secret")).repository(registry.repository("a"));
    let error = remote.tags().await.unwrap_err();
    assert_eq!(error.advice(), Advice::Tls, "{}", chain(&error));
    let settings = HttpSettings { insecure: true, ..HttpSettings::default() };
    let client = Client::new(http_client(&settings).unwrap(), password("secret"), quick());
    assert!(client.repository(registry.repository("a")).tags().await.unwrap().is_empty());
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let place = repository(&format!("127.0.0.1:{port}/a"));
    let remote = client(Keychain::anonymous()).repository(place);
    let error = remote.head(&tag("v1")).await.unwrap_err();
    let expected = Advice::Unreachable { host: format!("127.0.0.1:{port}") };
    assert_eq!(error.advice(), expected, "{}", chain(&error));
}

#[tokio::test]
async fn a_bundle_without_certificates_is_refused() {
    let settings = HttpSettings { ca_bundle: Some(b"hello".to_vec()), ..HttpSettings::default() };
    assert!(http_client(&settings).is_err());
}

#[tokio::test]
async fn a_registry_that_asks_for_a_certificate_gets_ours() {
    let registry = Registry::start(Kind::Mutual).await;
    let mut settings =
        HttpSettings { ca_bundle: Some(registry.certificate()), ..HttpSettings::default() };
    let remote = |settings: &HttpSettings| {
        let client = Client::new(http_client(settings).unwrap(), password("secret"), quick());
        client.repository(registry.repository("a"))
    };
    assert!(remote(&settings).tags().await.is_err());
    let mut identity = registry.certificate();
    identity.extend(fs_err::read(registry.directory.path().join("key.pem")).unwrap());
    settings.identity = Some(identity);
    assert!(remote(&settings).tags().await.unwrap().is_empty());
}

/// A server that notes the first line it is sent and answers every request the same way.
async fn listener(answer: &'static str) -> (u16, tokio::sync::mpsc::Receiver<String>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = tokio::sync::mpsc::channel(16);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let sender = sender.clone();
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut line = String::new();
                stream.read_line(&mut line).await.unwrap();
                let _ = sender.send(line).await;
                if !answer.is_empty() {
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
                tokio::time::sleep(Duration::from_secs(60)).await;
            });
        }
    });
    (port, receiver)
}

const TAGS: &str = "HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{\"tags\":[\"v1\"]}";

#[tokio::test]
async fn requests_go_through_the_proxy_unless_excepted() {
    let (proxy, mut asked) = listener(TAGS).await;
    let (direct, mut reached) = listener(TAGS).await;
    let settings = HttpSettings {
        proxies: Proxies {
            http: Some(format!("http://127.0.0.1:{proxy}")),
            none: Some("192.0.2.0/24,.internal".to_owned()),
            ..Proxies::default()
        },
        ..HttpSettings::default()
    };
    let plain = Settings { plain_http: true, ..quick() };
    let client = Client::new(http_client(&settings).unwrap(), Keychain::anonymous(), plain);
    let remote = client.repository(repository("registry.example/a"));
    assert_eq!(remote.tags().await.unwrap(), ["v1"]);
    let line = asked.recv().await.unwrap();
    assert!(line.starts_with("GET http://registry.example/v2/a/tags/list?n=1000 "), "{line}");
    let remote = client.repository(repository(&format!("127.0.0.1:{direct}/a")));
    assert_eq!(remote.tags().await.unwrap(), ["v1"]);
    assert!(reached.recv().await.unwrap().starts_with("GET /v2/a/tags/list"));
}

#[tokio::test]
async fn a_server_that_falls_silent_is_given_up_in_time() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{\"tags\"";
    for answer in ["", half] {
        let (port, _asked) = listener(answer).await;
        let settings = Settings {
            plain_http: true,
            tries: 2,
            idle_timeout: Duration::from_millis(300),
            ..quick()
        };
        let transport = http_client(&HttpSettings::default()).unwrap();
        let client = Client::new(transport, Keychain::anonymous(), settings);
        let remote = client.repository(repository(&format!("127.0.0.1:{port}/a")));
        let error = remote.tags().await.unwrap_err();
        assert_eq!(error.advice(), Advice::Timeout, "{}", chain(&error));
    }
}
