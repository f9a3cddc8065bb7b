//! The remote store against Debian's docker-registry: plain, with a password, with TLS.

use crate::{chain, hold, repository, tag};
use oci::Repository;
use std::fmt::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use store::auth::{Credential, Keychain};
use store::remote::{Client, HttpSettings, Settings, http_client};
use store::{Advice, Store};

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

impl Registry {
    pub(crate) async fn start(kind: Kind) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
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
        let registry = Self {
            child,
            directory,
            port,
        };
        registry.wait().await;
        registry
    }

    async fn wait(&self) {
        for _ in 0..500 {
            if tokio::net::TcpStream::connect(("127.0.0.1", self.port))
                .await
                .is_ok()
            {
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
}

impl Kind {
    fn config(self, directory: &Path, port: u16) -> String {
        let root = directory.display();
        let mut text = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {root}/data}}}}\nhttp:\n  addr: 127.0.0.1:{port}\n"
        );
        if self == Self::Tls {
            make_certificate(directory);
            writeln!(
                text,
                "  tls: {{certificate: {root}/cert.pem, key: {root}/key.pem}}"
            )
            .unwrap();
        }
        if self != Self::Plain {
            fs_err::write(directory.join("htpasswd"), HTPASSWD).unwrap();
            writeln!(
                text,
                "auth: {{htpasswd: {{realm: test, path: {root}/htpasswd}}}}"
            )
            .unwrap();
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
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
}

pub(crate) fn quick() -> Settings {
    Settings {
        backoff: Duration::from_millis(5),
        ..Settings::default()
    }
}

pub(crate) fn client(keychain: Keychain) -> Client {
    Client::new(
        http_client(&HttpSettings::default()).unwrap(),
        keychain,
        quick(),
    )
}

fn password(password: &str) -> Keychain {
    Keychain::fixed(Credential::Basic {
        user: "user".into(),
        password: password.into(),
    })
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
    client(password("secret"))
        .check_login(&registry.repository("a"))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_registry_with_tls_obeys_the_laws_once_its_certificate_is_trusted() {
    let registry = Registry::start(Kind::Tls).await;
    let settings = HttpSettings {
        ca_bundle: Some(registry.certificate()),
        ..HttpSettings::default()
    };
    let client = Client::new(http_client(&settings).unwrap(), password("secret"), quick());
    hold(store::suite::run(&client.repository(registry.repository("a"))).await);
}

#[tokio::test]
async fn an_unknown_certificate_is_an_error_about_tls_unless_told_otherwise() {
    let registry = Registry::start(Kind::Tls).await;
    let remote = client(password("secret")).repository(registry.repository("a"));
    let error = remote.tags().await.unwrap_err();
    assert_eq!(error.advice(), Advice::Tls, "{}", chain(&error));
    let settings = HttpSettings {
        insecure: true,
        ..HttpSettings::default()
    };
    let client = Client::new(http_client(&settings).unwrap(), password("secret"), quick());
    assert!(
        client
            .repository(registry.repository("a"))
            .tags()
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let place = repository(&format!("127.0.0.1:{port}/a"));
    let remote = client(Keychain::anonymous()).repository(place);
    let error = remote.head(&tag("v1")).await.unwrap_err();
    let expected = Advice::Unreachable {
        host: format!("127.0.0.1:{port}"),
    };
    assert_eq!(error.advice(), expected, "{}", chain(&error));
}

#[tokio::test]
async fn a_bundle_without_certificates_is_refused() {
    let settings = HttpSettings {
        ca_bundle: Some(b"hello".to_vec()),
        ..HttpSettings::default()
    };
    assert!(http_client(&settings).is_err());
}
