//! A real control plane: etcd, kube-apiserver and the controllers that matter here.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The token of the administrator of the real control plane.
pub(crate) const TOKEN: &str = "differential-admin";

/// Users of both servers besides the administrator, and their groups.
pub(crate) const USERS: [(&str, &[&str]); 6] = [
    ("alice", &[]),
    ("bob", &["devs"]),
    ("carol", &["devs", "ops"]),
    ("dave", &[]),
    ("erin", &["ops"]),
    ("frank", &[]),
];

/// The token of one of them.
pub(crate) fn token(user: &str) -> String {
    format!("differential-{user}")
}

/// A running control plane; ends with the value.
pub(crate) struct ControlPlane {
    children: Vec<Child>,
    directory: tempfile::TempDir,
    pub(crate) url: String,
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Where a peer's binary is. A missing peer is a failure: it must not go unnoticed that
/// nothing was compared.
fn binary(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(root.join("scripts/peers"))
        .args(["path", name])
        .output()
        .expect("scripts/peers");
    assert!(output.status.success(), "the peer {name} is missing: run scripts/peers");
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}

/// A port nobody listens on now, below those that the system gives to connections.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        // Other processes begin elsewhere.
        let number = std::process::id() * 101 + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + u16::try_from(number % 20_000).unwrap_or_default();
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl ControlPlane {
    /// Starts everything and waits until it is ready.
    pub(crate) async fn start(client: &reqwest::Client) -> Self {
        Self::start_with(client, "").await
    }

    /// The same, with more controllers: `,name` for each.
    pub(crate) async fn start_with(client: &reqwest::Client, controllers: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let (etcd, peer, secure) = (free_port(), free_port(), free_port());
        let url = format!("https://127.0.0.1:{secure}");
        let mut plane = Self { children: Vec::new(), directory, url };
        plane.start_etcd(etcd, peer);
        // The API server gives up on an etcd that is not there in time.
        while tokio::net::TcpStream::connect(("127.0.0.1", etcd)).await.is_err() {
            let ended = plane.children[0].try_wait().expect("a child");
            assert!(ended.is_none(), "etcd ended: {}", plane.said("etcd"));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        plane.start_apiserver(etcd, secure);
        plane.wait(client).await;
        plane.start_controllers(controllers);
        plane
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    fn spawn(&mut self, name: &str, arguments: &[String]) {
        let log = fs_err::File::create(self.path(&format!("{name}.log"))).expect("a log file");
        let child = Command::new(binary(name))
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(log.into_file())
            .spawn()
            .expect("the peer starts");
        self.children.push(child);
    }

    fn start_etcd(&mut self, client: u16, peer: u16) {
        let (client, peer) =
            (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        let arguments = [
            format!("--data-dir={}", self.path("etcd")),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=error".to_owned(),
        ];
        self.spawn("etcd", &arguments);
    }

    fn start_apiserver(&mut self, etcd: u16, port: u16) {
        let key = self.path("sa.key");
        let made = Command::new("openssl").args(["genrsa", "-out", &key, "2048"]).output();
        assert!(made.is_ok_and(|made| made.status.success()), "openssl makes a key");
        let tokens = self.path("tokens.csv");
        let mut lines = format!("{TOKEN},admin,1,system:masters\n");
        for (user, groups) in USERS {
            let groups = groups.join(",");
            let groups = if groups.is_empty() { groups } else { format!(",\"{groups}\"") };
            writeln!(lines, "{},{user},uid-{user}{groups}", token(user)).expect("a line");
        }
        fs_err::write(&tokens, lines).expect("tokens");
        let arguments = [
            format!("--etcd-servers=http://127.0.0.1:{etcd}"),
            format!("--secure-port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={}", self.path("certs")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={key}"),
            format!("--service-account-signing-key-file={key}"),
            format!("--token-auth-file={tokens}"),
            "--authorization-mode=RBAC".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
        ];
        self.spawn("kube-apiserver", &arguments);
    }

    async fn wait(&self, client: &reqwest::Client) {
        // A server that is ready may still be without the namespace that it makes by itself.
        for path in ["readyz", "api/v1/namespaces/default"] {
            self.wait_for(client, &format!("{}/{path}", self.url)).await;
        }
    }

    async fn wait_for(&self, client: &reqwest::Client, url: &str) {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(300) {
            let answer = client.get(url).bearer_auth(TOKEN).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("kube-apiserver does not answer {url}: {}", self.said("kube-apiserver"));
    }

    /// The last that a program said.
    fn said(&self, name: &str) -> String {
        let log = fs_err::read_to_string(self.path(&format!("{name}.log"))).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    fn start_controllers(&mut self, more: &str) {
        let config = self.path("kubeconfig");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters:\n- name: x\n  cluster: \
             {{server: '{}', insecure-skip-tls-verify: true}}\nusers:\n- name: x\n  user: {{token: \
             {TOKEN}}}\ncontexts:\n- name: x\n  context: {{cluster: x, user: x}}\n",
            self.url
        );
        fs_err::write(&config, text).expect("a kubeconfig");
        let arguments = [
            format!("--kubeconfig={config}"),
            format!(
                "--controllers=garbage-collector-controller,namespace-controller,\
                 clusterrole-aggregation-controller{more}"
            ),
            "--leader-elect=false".to_owned(),
            "--use-service-account-credentials=false".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        self.spawn("kube-controller-manager", &arguments);
    }
}
