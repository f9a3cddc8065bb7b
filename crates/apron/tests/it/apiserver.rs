//! `apron apiserver` with a real kubectl: what a user does first, and what a crash leaves.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on must stop")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

struct Server {
    child: Child,
    kubeconfig: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(data: &Path) -> Self {
        let kubeconfig = data.join("kubeconfig");
        let _ = fs_err::remove_file(&kubeconfig);
        let child = command(data).stdout(Stdio::null()).spawn().expect("apron starts");
        let server = Self { child, kubeconfig };
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(20) {
            if server.kubeconfig.exists() && server.kubectl(&["get", "--raw", "/readyz"]).0 {
                return server;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the server did not become ready");
    }

    fn kubectl(&self, words: &[&str]) -> (bool, String) {
        let output = Command::new(kubectl())
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", self.kubeconfig.parent().expect("a directory"))
            .args(words)
            .output()
            .expect("kubectl runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    fn must(&self, words: &[&str]) -> String {
        let (fine, text) = self.kubectl(words);
        assert!(fine, "kubectl {words:?}: {text}");
        text
    }
}

fn command(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apron"));
    command.args(["apiserver", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data);
    command
}

fn kubectl() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let found = Command::new(root.join("scripts/peers")).args(["path", "kubectl"]).output();
    let found = found.expect("scripts/peers runs");
    assert!(found.status.success(), "the peer kubectl is missing: run scripts/peers");
    PathBuf::from(String::from_utf8_lossy(&found.stdout).trim())
}

const DEFINITION: &str = r#"{"apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.org"},
    "spec": {"group": "example.org", "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "shortNames": ["wg"]},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
            "openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object",
                "properties": {"size": {"type": "integer", "minimum": 1}}}}}}}]}}"#;
const WIDGET: &str = r#"{"apiVersion": "example.org/v1", "kind": "Widget",
    "metadata": {"name": "w", "namespace": "default"}, "spec": {"size": 3}}"#;

#[test]
fn kubectl_works_and_a_crash_loses_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs_err::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let (definition, widget) = (file("crd.json", DEFINITION), file("widget.json", WIDGET));
    let server = Server::start(&data);
    assert!(server.must(&["get", "namespaces"]).contains("kube-system"));
    // These go as protobuf.
    server.must(&["create", "namespace", "demo"]);
    server.must(&["create", "configmap", "c", "-n", "demo", "--from-literal=a=b"]);
    server.must(&["create", "secret", "generic", "s", "-n", "demo", "--from-literal=a=b"]);
    assert!(server.must(&["get", "configmap", "c", "-n", "demo", "-o", "yaml"]).contains("a: b"));
    server.must(&["delete", "namespace", "demo"]);
    server.must(&["apply", "--server-side", "-f", &definition]);
    server.must(&["wait", "--for=condition=Established", "crd/widgets.example.org"]);
    server.must(&["apply", "--server-side", "-f", &widget]);
    server.must(&["apply", "-f", &widget]);
    assert!(server.must(&["get", "wg"]).contains("AGE"));
    let before = server.must(&["get", "widget", "w", "-o", "yaml"]);

    // A second server on the same data is refused and says what to do.
    let second = command(&data).output().expect("apron runs");
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && said.contains("hint:"), "{said}");

    drop(server); // kill -9
    let server = Server::start(&data);
    assert_eq!(server.must(&["get", "widget", "w", "-o", "yaml"]), before);
    server.must(&["delete", "widget", "w"]);
    assert!(!server.kubectl(&["get", "widget", "w"]).0);
}

#[test]
fn it_stops_when_told_and_keeps_its_secrets() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let mut server = Server::start(&data);
    for path in [server.kubeconfig.clone(), data.join("pki/admin.key")] {
        let mode = fs_err::metadata(path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let mode = fs_err::metadata(&data).expect("a directory").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let (fine, said) =
        server.kubectl(&["get", "configmaps", "--client-certificate=/dev/null", "--token=wrong"]);
    assert!(!fine, "{said}");
    let pid = server.child.id().to_string();
    let told = Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs");
    assert!(told.success());
    assert!(server.child.wait().expect("an end").success(), "a clean end");
}
