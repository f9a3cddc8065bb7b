//! Both planes. The real one trusts the certificates of ours, so that one user comes to both.

use crate::support::{free_port, wait_for};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running `apron apiserver`.
pub(crate) struct Ours {
    child: Child,
    pub(crate) kubeconfig: PathBuf,
    pki: PathBuf,
}

/// A running etcd, kube-apiserver and kube-controller-manager.
pub(crate) struct Real {
    children: Vec<Child>,
    directory: PathBuf,
    pub(crate) kubeconfig: PathBuf,
}

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A peer's binary. A missing one is a failure, never a skip.
pub(crate) fn peer(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let found = Command::new(root.join("scripts/peers")).args(["path", name]).output().unwrap();
    assert!(found.status.success(), "the peer {name} is missing: run scripts/peers");
    PathBuf::from(String::from_utf8_lossy(&found.stdout).trim())
}

/// Waits until kubectl finds the server ready. The real one may be, and still be without the
/// namespace that it makes by itself.
fn wait(kubeconfig: &Path) {
    for path in ["/readyz", "/api/v1/namespaces/default"] {
        wait_for_answer(kubeconfig, path);
    }
}

fn wait_for_answer(kubeconfig: &Path, path: &str) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(300) {
        let asked = Command::new(peer("kubectl"))
            .args(["get", "--raw", path])
            .env("KUBECONFIG", kubeconfig)
            .env("HOME", kubeconfig.parent().unwrap())
            .output();
        if asked.is_ok_and(|asked| asked.status.success()) {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{} did not become ready", kubeconfig.display());
}

impl Ours {
    pub(crate) fn start(directory: &Path) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_apron"))
            .args(["apiserver", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(directory)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let (kubeconfig, pki) = (directory.join("kubeconfig"), directory.join("pki"));
        let ours = Self { child, kubeconfig, pki };
        let start = Instant::now();
        while !ours.kubeconfig.exists() && start.elapsed() < Duration::from_secs(300) {
            std::thread::sleep(Duration::from_millis(20));
        }
        wait(&ours.kubeconfig);
        ours
    }
}

impl Real {
    pub(crate) fn start(directory: &Path, ours: &Ours) -> Self {
        fs_err::create_dir_all(directory).unwrap();
        let kubeconfig = directory.join("kubeconfig");
        let mut real = Self { children: Vec::new(), directory: directory.to_owned(), kubeconfig };
        let (etcd, peers, secure) = (free_port(), free_port(), free_port());
        real.write_kubeconfig(secure, ours);
        real.start_etcd(etcd, peers);
        // The API server gives up on an etcd that is not there in time.
        wait_for(&format!("127.0.0.1:{etcd}"));
        real.start_apiserver(etcd, secure, ours);
        wait(&real.kubeconfig);
        real.start_controllers(ours);
        real
    }

    fn at(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    fn spawn(&mut self, name: &str, arguments: &[String]) {
        let log = fs_err::File::create(self.directory.join(format!("{name}.log"))).unwrap();
        let mut command = Command::new(peer(name));
        command.args(arguments).stdout(Stdio::null()).stderr(log.into_file());
        self.children.push(command.spawn().unwrap());
    }

    fn write_kubeconfig(&self, port: u16, ours: &Ours) {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: x\n\
             clusters: [{{name: x, cluster: {{server: 'https://127.0.0.1:{port}', \
             insecure-skip-tls-verify: true}}}}]\n\
             users: [{{name: x, user: {{client-certificate: '{0}/admin.crt', \
             client-key: '{0}/admin.key'}}}}]\n\
             contexts: [{{name: x, context: {{cluster: x, user: x}}}}]\n",
            ours.pki.display()
        );
        fs_err::write(&self.kubeconfig, text).unwrap();
    }

    fn start_etcd(&mut self, client: u16, peers: u16) {
        let (client, peers) =
            (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peers}"));
        let arguments = [
            format!("--data-dir={}", self.at("etcd")),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=default={peers}"),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=error".to_owned(),
        ];
        self.spawn("etcd", &arguments);
    }

    fn start_apiserver(&mut self, etcd: u16, port: u16, ours: &Ours) {
        let key = self.at("sa.key");
        let made = Command::new("openssl").args(["genrsa", "-out", &key, "2048"]).output();
        assert!(made.is_ok_and(|made| made.status.success()), "openssl makes a key");
        let arguments = [
            format!("--etcd-servers=http://127.0.0.1:{etcd}"),
            format!("--secure-port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={}", self.at("certs")),
            format!("--client-ca-file={}/ca.crt", ours.pki.display()),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={key}"),
            format!("--service-account-signing-key-file={key}"),
            "--authorization-mode=RBAC".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
        ];
        self.spawn("kube-apiserver", &arguments);
    }

    fn start_controllers(&mut self, ours: &Ours) {
        let arguments = [
            format!("--kubeconfig={}", self.kubeconfig.display()),
            "--controllers=garbage-collector-controller,namespace-controller,\
             clusterrole-aggregation-controller,serviceaccount-controller,\
             root-ca-certificate-publisher-controller"
                .to_owned(),
            format!("--root-ca-file={}/ca.crt", ours.pki.display()),
            "--leader-elect=false".to_owned(),
            "--use-service-account-credentials=false".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        self.spawn("kube-controller-manager", &arguments);
    }
}
