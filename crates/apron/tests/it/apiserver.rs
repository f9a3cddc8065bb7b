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
        Self::start_with(data, &[])
    }

    fn start_with(data: &Path, words: &[&str]) -> Self {
        let kubeconfig = data.join("kubeconfig");
        let _ = fs_err::remove_file(&kubeconfig);
        let child = command(data).args(words).stdout(Stdio::null()).spawn().expect("apron starts");
        let server = Self { child, kubeconfig };
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(300) {
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

    /// The same server for somebody else: the kubeconfig with other credentials.
    fn kubectl_with(&self, credentials: &str, words: &[&str]) -> (bool, String) {
        let text = fs_err::read_to_string(&self.kubeconfig).expect("a kubeconfig");
        let own =
            |line: &&str| !line.contains("client-certificate") && !line.contains("client-key");
        let kept: Vec<&str> = text.lines().filter(own).collect();
        let text = kept.join("\n").replace("  user:\n", &format!("  user: {credentials}\n"));
        let path = self.kubeconfig.with_extension("other");
        fs_err::write(&path, text).expect("a file");
        let path = path.display().to_string();
        self.kubectl(&[&["--kubeconfig", path.as_str()], words].concat())
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

fn openssl(verb: &str, words: &[&str]) {
    let made = Command::new("openssl").arg(verb).args(words).output().expect("openssl runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
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
    server.must(&[
        "wait",
        "--for=condition=Established",
        "crd/widgets.example.org",
        "--timeout=600s",
    ]);
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
fn deployments_roll_out_without_a_cluster() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(&directory.path().join("data"));
    let rolled_out = || {
        let said = server.must(&["rollout", "status", "deployment/d", "--timeout=600s"]);
        assert!(said.contains("successfully rolled out"), "{said}");
    };
    server.must(&["create", "deployment", "d", "--image=example.org/x:1", "--replicas=2"]);
    rolled_out();
    server.must(&["wait", "--for=condition=Available", "deployment/d", "--timeout=600s"]);
    server.must(&["scale", "deployment/d", "--replicas=5"]);
    rolled_out();
    server.must(&["set", "image", "deployment/d", "x=example.org/x:2"]);
    rolled_out();
    let ready = ["get", "deployment", "d", "-o", "jsonpath={.status.availableReplicas}"];
    assert_eq!(server.must(&ready), "5");
    server.must(&["delete", "deployment", "d", "--cascade=foreground", "--timeout=600s"]);
    let map = ["get", "configmap", "kube-root-ca.crt", "-o", "jsonpath={.data.ca\\.crt}"];
    assert!(server.must(&map).contains("BEGIN CERTIFICATE"));
}

#[test]
fn it_stops_when_told_and_keeps_its_secrets() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let mut server = Server::start(&data);
    let secrets = ["ca.key", "server.key", "admin.key", "admin.token", "service-accounts.key"];
    let secrets = secrets.map(|name| data.join("pki").join(name));
    for path in secrets.into_iter().chain([server.kubeconfig.clone()]) {
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

/// A3: what lies in the write-ahead log of a server that was killed is looked after, too.
#[test]
fn a3_a_stop_leaves_one_whole_file_and_less_than_was_promised_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let (data, copy) = (directory.path().join("data"), directory.path().join("copy"));
    let mut server = Server::start(&data);
    server.must(&["create", "configmap", "kept", "--from-literal=a=b"]);
    let pid = server.child.id().to_string();
    Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs");
    assert!(server.child.wait().expect("an end").success(), "a clean end");
    fs_err::create_dir(&copy).expect("a directory");
    fs_err::copy(data.join("log.sqlite"), copy.join("log.sqlite")).expect("a copy");
    let copied = Server::start(&copy);
    assert!(copied.must(&["get", "configmap", "kept", "-o", "yaml"]).contains("a: b"));

    let server = Server::start(&data);
    server.must(&["create", "configmap", "late", "--from-literal=a=b"]);
    drop(server); // kill -9
    fs_err::remove_file(data.join("log.sqlite-wal")).expect("a log");
    let refused = |expect: &str| {
        let told = command(&data).output().expect("apron runs");
        let said = String::from_utf8_lossy(&told.stderr).into_owned();
        assert!(!told.status.success() && said.contains(expect), "{said}");
        assert!(said.contains("hint: restore the directory from a copy"), "{said}");
    };
    refused("was acknowledged");
    fs_err::write(data.join("log.sqlite"), "").expect("a file");
    refused("shows that it was in use");
}

#[test]
fn everybody_may_what_roles_say() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let tokens = directory.path().join("tokens.csv");
    fs_err::write(&tokens, "jane-secret,jane,7,\"devs,ops\"\n").expect("a file");
    let words = ["--token-auth-file", tokens.to_str().expect("a path")];
    let server = Server::start_with(&data, &words);
    server.must(&["create", "serviceaccount", "robot"]);
    let token = server.must(&["create", "token", "robot", "--duration=20m"]);
    let robot = format!("{{token: {}}}", token.trim());
    let refused = server.kubectl_with(&robot, &["get", "configmaps"]);
    let expect = "User \"system:serviceaccount:default:robot\" cannot list resource \"configmaps\" \
                  in API group \"\" in the namespace \"default\"";
    assert!(!refused.0 && refused.1.contains(expect), "{}", refused.1);
    let binding = ["create", "rolebinding", "robot", "--clusterrole=view"];
    server.must(&[&binding[..], &["--serviceaccount=default:robot"]].concat());
    for (credentials, words, fine, expect) in [
        (&robot, &["get", "configmaps"][..], true, "kube-root-ca.crt"),
        (&robot, &["get", "secrets"], false, "cannot list resource"),
        (&robot, &["auth", "whoami"], true, "system:serviceaccounts:default"),
        (&robot, &["auth", "can-i", "list", "configmaps"], true, "yes"),
        (&robot, &["auth", "can-i", "list", "secrets"], false, "no"),
        (&robot, &["auth", "can-i", "--list"], true, "selfsubjectaccessreviews"),
        (&robot, &["get", "configmaps", "--as=jane"], false, "cannot impersonate-on"),
        (&"{token: jane-secret}".to_owned(), &["auth", "whoami"], true, "[devs ops"),
        (&"{token: jane-secret}".to_owned(), &["get", "pods"], false, "User \"jane\" cannot"),
        (&"{token: wrong}".to_owned(), &["get", "pods"], false, "Unauthorized"),
        (&"{username: a, password: b}".to_owned(), &["get", "--raw", "/readyz"], true, "ok"),
        (
            &"{username: a, password: b}".to_owned(),
            &["get", "--raw", "/api/v1/pods"],
            false,
            "system:anonymous",
        ),
    ] {
        let (done, said) = server.kubectl_with(credentials, words);
        assert!(done == fine && said.contains(expect), "{words:?}: {said}");
    }
    let robots = "--as=system:serviceaccount:default:robot";
    assert!(server.must(&["auth", "can-i", "list", "pods", robots]).contains("yes"));
    let said = server.must(&["auth", "whoami"]);
    assert!(said.contains("system:masters") && said.contains("X509SHA256="), "{said}");

    // The authority is there for whoever owns the directory to sign more clients.
    let path = |name: &str| directory.path().join(name).display().to_string();
    let pki = |name: &str| data.join("pki").join(name).display().to_string();
    let (key, request, signed) = (path("zoe.key"), path("zoe.csr"), path("zoe.crt"));
    let (uses, ca, ca_key) = (path("uses"), pki("ca.crt"), pki("ca.key"));
    fs_err::write(&uses, "extendedKeyUsage=clientAuth\n").expect("a file");
    let subject = ["-subj", "/O=devs/O=ops/CN=zoe", "-newkey", "rsa:2048", "-nodes"];
    openssl("req", &[&subject[..], &["-keyout", &key, "-out", &request]].concat());
    let with = ["-req", "-CA", &ca, "-CAkey", &ca_key, "-extfile", &uses];
    openssl("x509", &[&with[..], &["-in", &request, "-out", &signed]].concat());
    let zoe = format!("{{client-certificate: {signed}, client-key: {key}}}");
    let (fine, said) = server.kubectl_with(&zoe, &["auth", "whoami"]);
    assert!(fine && said.contains("zoe") && said.contains("[devs ops system:auth"), "{said}");

    // Tokens outlive the process, and end with their account.
    drop(server);
    let server = Server::start_with(&data, &words);
    assert!(server.kubectl_with(&robot, &["get", "configmaps"]).0);
    server.must(&["delete", "serviceaccount", "robot"]);
    let (fine, said) = server.kubectl_with(&robot, &["get", "configmaps"]);
    assert!(!fine && said.contains("Unauthorized"), "{said}");
}

/// M12: everything that is written there, also where everybody may look into the directory.
#[test]
fn m12_nobody_else_can_read_what_the_server_keeps() {
    use std::os::unix::fs::PermissionsExt as _;
    fn files(directory: &Path) -> Vec<PathBuf> {
        let entries = fs_err::read_dir(directory).expect("a directory").map(|it| it.expect("one"));
        entries
            .flat_map(|entry| match entry.path() {
                path if path.is_dir() => files(&path),
                path => vec![path],
            })
            .collect()
    }
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    fs_err::create_dir(&data).expect("a directory");
    let open = std::fs::Permissions::from_mode(0o755);
    fs_err::set_permissions(&data, open).expect("a mode");
    let server = Server::start(&data);
    server.must(&["create", "secret", "generic", "s", "--from-literal=a=b"]);
    let all = files(&data);
    for name in ["log.sqlite", "log.sqlite-wal", "pki/ca.key", "pki/admin.token", "kubeconfig"] {
        assert!(all.contains(&data.join(name)), "{name} is missing in {all:?}");
    }
    for path in all.iter().filter(|path| !path.starts_with(data.join(".kube"))) {
        let mode = fs_err::metadata(path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
    }
}
