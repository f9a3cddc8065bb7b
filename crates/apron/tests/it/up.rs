//! `apron up`: a whole control plane in one process, as somebody at a terminal meets it.

use crate::control_plane::Asked;
use crate::support::{Ran, Scratch, command, until};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(900);

/// A control plane that runs.
pub(crate) struct Up<'a> {
    scratch: &'a Scratch,
    child: Child,
    said: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) registry: String,
}

impl Drop for Up<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl<'a> Up<'a> {
    /// Starts one, and waits until it says where it is.
    pub(crate) fn start(scratch: &'a Scratch, words: &[&str]) -> Self {
        Self::start_by(command(scratch), scratch, words)
    }

    /// The same with a command that becomes apron.
    pub(crate) fn start_by(command: Command, scratch: &'a Scratch, words: &[&str]) -> Self {
        let mut up = Self::begin(command, scratch, words);
        up.registry = up.told("  registry  http://");
        up.kubeconfig = PathBuf::from(up.told("  kubectl   export KUBECONFIG="));
        up
    }

    /// The same without waiting for anything.
    pub(crate) fn begin(mut command: Command, scratch: &'a Scratch, words: &[&str]) -> Self {
        let said = scratch.join("said");
        let file = |path: &Path| Stdio::from(fs_err::File::create(path).unwrap().into_file());
        command.args(["up", "--listen", "127.0.0.1:0", "--registry-listen", "127.0.0.1:0"]);
        command.args(words).stdout(file(&said)).stderr(file(&scratch.join("complaints")));
        let child = command.spawn().unwrap();
        let (kubeconfig, registry) = (PathBuf::new(), String::new());
        Self { scratch, child, said, kubeconfig, registry }
    }

    /// The rest of the line that begins so, once it was said.
    pub(crate) fn told(&mut self, start: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = fs_err::read_to_string(&self.said).unwrap();
            // A line is whole when its end is there.
            let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            if let Some(rest) = lines.find_map(|line| line.strip_prefix(start)) {
                return rest.trim_end().to_owned();
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended with {ended:?} after it said:\n{text}");
            assert!(Instant::now() < deadline, "it did not say `{start}` but:\n{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Its process.
    pub(crate) fn id(&self) -> String {
        self.child.id().to_string()
    }

    /// Says something to apron about this plane.
    pub(crate) fn say(&self, words: &[&str]) -> Ran {
        let mut command = command(self.scratch);
        command.env("KUBECONFIG", &self.kubeconfig).args(words).output().unwrap().into()
    }

    /// The top package and everything it needs: none is left waiting.
    fn all_healthy(&self) {
        let listed = self.say(&["list", "-o", "json"]).ok().stdout;
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        let all = listed.as_array().unwrap();
        let kinds: Vec<&str> = all.iter().filter_map(|one| one["kind"].as_str()).collect();
        assert_eq!(kinds.len(), 3, "{listed:#}");
        assert!(all.iter().all(|one| one["state"] == "healthy"), "{listed:#}");
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(mut self) {
        let id = self.child.id().to_string();
        assert!(std::process::Command::new("kill").arg(&id).status().unwrap().success());
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(ended) = self.child.try_wait().unwrap() {
                assert!(ended.success(), "{ended:?}");
                return;
            }
            assert!(Instant::now() < deadline, "it did not stop");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

pub(crate) fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/platform");
    path.canonicalize().unwrap().display().to_string()
}

#[test]
fn a_control_plane_installs_the_packages_of_a_directory_and_keeps_them() {
    let scratch = Scratch::new();
    let data = scratch.join("data").display().to_string();
    let top = "registry.example.org/platform/platform:v0.1.0";
    {
        let mut up = Up::start(&scratch, &[&example(), "--data-dir", &data]);
        let ready = up.told("ready after ");
        assert!(ready.ends_with('s'), "{ready}");
        up.all_healthy();
        let listed = up.say(&["list", "configuration", "-o", "json"]).ok().stdout;
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed[0]["package"], top);
        // What was built is in the registry, for everybody.
        let inside = format!("{}/{top}", up.registry);
        assert!(up.say(&["inspect", &inside]).ok().stdout.contains("platform"));
        // Whoever asks about the plane's packages finds them under their names, as the plane does.
        let next = inside.replace(":v0.1.0", ":v0.2.0");
        up.say(&["copy", &inside, &next]).ok();
        let planned = up.say(&["plan", "platform", "v0.2.0"]).ok().stdout;
        assert!(planned.contains("v0.2.0"), "{planned}");
        let again = up.say(&["install", top, "platform"]).ok().stderr;
        assert!(again.contains("configuration platform is installed already"), "{again}");
        up.stop();
    }
    // Without the directory: everything is still there.
    let up = Up::start(&scratch, &["--data-dir", &data]);
    // C1: nothing is allowed until somebody allows it.
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/\
                crossplane%3Aallowed-provider-permissions";
    let role = Asked::new(&up.kubeconfig).get(path).unwrap();
    assert!(role["aggregationRule"].is_object() && role["rules"].is_null(), "{role}");
    // D02: whoever is bound to one of these may do so much with what packages bring.
    for (who, verb) in [("admin", "*"), ("edit", "*"), ("view", "get"), ("browse", "get")] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/crossplane-{who}");
        let is_gathered = |role: &serde_json::Value| role["rules"].to_string().contains(verb);
        let asked = Asked::new(&up.kubeconfig);
        until(&format!("{who} are gathered"), || asked.get(&path).filter(is_gathered));
    }
    let listed = up.say(&["list", "configuration", "-o", "name"]).ok().stdout;
    assert_eq!(listed, "configuration.pkg.crossplane.io/platform\n");
    let inside = format!("{}/{top}", up.registry);
    up.say(&["inspect", &inside]).ok();
    up.say(&["wait", "platform", "--timeout", "15m"]).ok();
    up.stop();
}

/// Programs of packages are healthy for their dependents, and every view says that nothing
/// of them runs.
#[test]
fn what_is_only_simulated_says_so_wherever_it_is_looked_at() {
    const REMARK: &str = "nothing runs here: pods are only simulated";
    let scratch = Scratch::new();
    let data = scratch.join("data").display().to_string();
    let words = [&example(), "--data-dir", &data, "--runtime", "simulated"];
    let mut up = Up::start(&scratch, &words);
    let told = up.told("  runtime   ");
    assert!(told.starts_with("simulated: ") && told.contains("do not run"), "{told}");
    up.told("ready after ");
    let drawn = up.say(&["status"]).ok().stdout;
    assert_eq!(drawn.matches(REMARK).count(), 2, "{drawn}");
    assert!(!drawn.contains('!'), "nothing is in the way: {drawn}");
    let listed = up.say(&["status", "-o", "json"]).ok().stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    for one in listed.as_array().unwrap() {
        let runs_nothing = one["kind"] == "Configuration";
        let expected = if runs_nothing { serde_json::Value::Null } else { REMARK.into() };
        assert_eq!((&one["remark"], &one["state"]), (&expected, &"healthy".into()), "{listed:#}");
    }
    let asked = Asked::new(&up.kubeconfig);
    let said = |object: &serde_json::Value, of: &str| -> (String, String) {
        let all = object["status"]["conditions"].as_array().unwrap().iter();
        let one = all.filter(|one| one["type"] == of).collect::<Vec<_>>()[0];
        let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
        (text("status"), text("message"))
    };
    let path = "/apis/apps/v1/namespaces/crossplane-system/deployments";
    let deployments = asked.get(path).unwrap()["items"].as_array().unwrap().clone();
    assert_eq!(deployments.len(), 2);
    for one in &deployments {
        assert_eq!(said(one, "Simulated"), ("True".to_owned(), REMARK.to_owned()), "{one:#}");
        let (status, message) = said(one, "Available");
        assert!(status == "True" && message.contains(REMARK), "{one:#}");
    }
    for kind in ["providerrevisions", "functionrevisions"] {
        let found = asked.get(&format!("/apis/pkg.crossplane.io/v1/{kind}")).unwrap();
        let one = &found["items"][0];
        assert_eq!(said(one, "RuntimeHealthy"), ("True".to_owned(), REMARK.to_owned()), "{one:#}");
    }
    up.stop();
}

/// The status of a request to a registry.
fn status(address: &str, head: &str) -> u16 {
    crate::registry::ask(address, &format!("{head}\r\n\r\n"), b"").unwrap().0
}

#[test]
fn m5_the_registry_of_a_control_plane_asks_for_the_credential_of_its_kubeconfig() {
    use std::os::unix::fs::PermissionsExt as _;
    let scratch = Scratch::new();
    let data = scratch.join("data").display().to_string();
    let up = Up::start(&scratch, &["--data-dir", &data]);
    let mode = fs_err::metadata(&up.kubeconfig).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(status(&up.registry, "GET /v2/ HTTP/1.0"), 401);
    assert_eq!(status(&up.registry, "POST /v2/p/blobs/uploads/ HTTP/1.0"), 401);
    assert_eq!(status(&up.registry, "GET /v2/ HTTP/1.0\r\nHost: evil.example.org"), 421);
    // Whoever has the kubeconfig needs nothing more; everybody else needs what it says.
    let file = crate::registry::package(&scratch);
    let there = format!("{}/team/nop:v1.0.0", up.registry);
    let (port, local) = (up.registry.rsplit_once(':').unwrap().1, "localhost");
    up.say(&["push", "-f", file, &there]).ok();
    up.say(&["inspect", &format!("{local}:{port}/team/nop:v1.0.0")]).ok();
    crate::support::apron(&scratch, ["push", "-f", file, &there]).failed();
    let said = fs_err::read_to_string(&up.said).unwrap();
    let password = up.say(&["registry", "password"]).ok().stdout.trim().to_owned();
    assert!(password.starts_with("apr_") && !said.contains(&password), "{said}");
    assert!(said.contains("apron registry password | docker login --username apron"), "{said}");
    let credentials = format!("apron:{password}");
    let skopeo = |credentials: &str| {
        let (archive, there) = (format!("docker-archive:{file}"), format!("docker://{there}2"));
        let flags = ["--insecure-policy", "copy", "--dest-tls-verify=false", "--dest-creds"];
        let words = [&flags[..], &[credentials, &archive, &there]].concat();
        crate::support::program(&scratch, "skopeo", words)
    };
    skopeo(&credentials).ok();
    assert_ne!(skopeo("apron:apr_wrong").code, Some(0));
    // It is the same after a restart, so that whoever logged in stays so.
    up.stop();
    let up = Up::start(&scratch, &["--data-dir", &data]);
    assert_eq!(up.say(&["registry", "password"]).ok().stdout.trim(), password);
    up.stop();
}

#[test]
fn m5_only_what_was_pushed_with_the_credential_stands_in_for_the_world() {
    let scratch = Scratch::new();
    let file = crate::registry::package(&scratch);
    // What anybody pushed when nobody was asked; nobody listens at this name.
    let name = "localhost/team/nop";
    {
        let served = crate::registry::Served::start(&scratch);
        let there = served.reference(&format!("{name}:v1.0.0"));
        crate::support::apron(&scratch, ["push", "-f", file, &there]).ok();
    }
    fs_err::create_dir_all(scratch.join("plane")).unwrap();
    fs_err::rename(scratch.join("data"), scratch.join("plane/registry")).unwrap();
    let data = scratch.join("plane").display().to_string();
    let up = Up::start(&scratch, &["--data-dir", &data]);
    let inside = |tag: &str| format!("{}/{name}:{tag}", up.registry);
    up.say(&["inspect", &inside("v1.0.0")]).ok();
    up.say(&["install", &format!("{name}:v1.0.0")]).failed();
    // The same bytes, pushed by whoever has the credential.
    up.say(&["push", "-f", file, &inside("v1.0.1")]).ok();
    up.say(&["install", &format!("{name}:v1.0.1")]).ok();
    up.stop();
}

#[test]
fn m5_other_machines_do_not_reach_a_registry_without_users() {
    let scratch = Scratch::new();
    let mut command = command(&scratch);
    command.args(["up", "--data-dir", "data", "--exit-when-ready"]);
    command.args(["--listen", "127.0.0.1:0", "--registry-listen", "0.0.0.0:0"]);
    let ran: Ran = command.output().unwrap().into();
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("this registry has no users"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--data-dir data/registry"), "{}", ran.stderr);
}

#[test]
fn a_control_plane_in_memory_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let temporary = scratch.join("tmp");
    fs_err::create_dir_all(&temporary).unwrap();
    let place = temporary.display().to_string();
    let said = scratch.join("said");
    let file = fs_err::File::create(&said).unwrap();
    let mut command = command(&scratch);
    command.args(["up", "--in-memory", "--exit-when-ready"]);
    command.args(["--listen", "127.0.0.1:0", "--registry-listen", "127.0.0.1:0"]);
    command.env("TMPDIR", &place).stdout(Stdio::from(file.into_file()));
    assert!(command.status().unwrap().success());
    let said = fs_err::read_to_string(said).unwrap();
    assert!(said.contains("data: memory only"), "{said}");
    assert_eq!(fs_err::read_dir(temporary).unwrap().count(), 0);
    assert!(!scratch.join(".local").exists());
}

/// M6: what holds the data is a control plane, and it can be used.
#[test]
fn mistake_a_control_plane_that_is_up_already() {
    let scratch = Scratch::new();
    let plane = Up::start(&scratch, &["--data-dir", "data"]);
    let mut again = command(&scratch);
    again.args(["up", "--data-dir", "data"]);
    again.args(["--listen", "127.0.0.1:0", "--registry-listen", "127.0.0.1:0"]);
    let ran: Ran = again.output().unwrap().into();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    insta::assert_snapshot!(ran.stderr, @r"
    error: a control plane is up already with the data in data
    hint: use it: `export KUBECONFIG=data/kubeconfig`; or bring up another one beside it with --data-dir or --in-memory
    ");
    plane.stop();
}

/// M6: registries elsewhere may have authorities of their own; a file without any ends it.
#[test]
fn mistake_certificates_that_are_none() {
    let scratch = Scratch::new();
    scratch.write("ca.pem", "not a certificate");
    let mut command = command(&scratch);
    command.args(["up", "--in-memory", "--ca-bundle-path", "ca.pem"]);
    command.args(["--listen", "127.0.0.1:0", "--registry-listen", "127.0.0.1:0"]);
    let ran: Ran = command.output().unwrap().into();
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("hint: check --ca-bundle-path"), "{}", ran.stderr);
}

/// A bare system has none until `ca-certificates` is installed; what is here needs none of them.
#[test]
fn a_machine_that_trusts_no_authority_brings_a_control_plane_up() {
    let scratch = Scratch::new();
    fs_err::create_dir_all(scratch.join("empty")).unwrap();
    scratch.write("none.pem", "");
    let untrusting = || {
        let mut command = command(&scratch);
        command.env("SSL_CERT_FILE", scratch.join("none.pem"));
        command.env("SSL_CERT_DIR", scratch.join("empty"));
        command
    };
    let mut up = untrusting();
    up.args(["up", &example(), "--in-memory", "--exit-when-ready"]);
    up.args(["--listen", "127.0.0.1:0", "--registry-listen", "127.0.0.1:0"]);
    let ran: Ran = up.output().unwrap().into();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);

    // A server with TLS is not trusted, and the advice says what to do.
    let plane = Up::start(&scratch, &["--data-dir", "data"]);
    let api = fs_err::read_to_string(scratch.join(&plane.kubeconfig)).unwrap();
    let address = api.split("https://").nth(1).unwrap().lines().next().unwrap();
    let mut inspect = untrusting();
    inspect.args(["inspect", &format!("{address}/team/p:v1")]);
    let ran: Ran = inspect.output().unwrap().into();
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("--ca-file"), "{}", ran.stderr);
    assert!(ran.stderr.contains("certificate"), "{}", ran.stderr);
    plane.stop();
}

#[test]
fn mistake_a_directory_without_packages() {
    let scratch = Scratch::new();
    fs_err::create_dir_all(scratch.join("empty")).unwrap();
    let mut command = command(&scratch);
    command.args(["up", "empty", "--in-memory", "--exit-when-ready"]);
    command.args(["--listen", "127.0.0.1:0", "--registry-listen", "127.0.0.1:0"]);
    let ran: Ran = command.output().unwrap().into();
    assert_eq!(ran.code, Some(1));
    insta::assert_snapshot!(ran.stderr, @r"
    error: there is no package in empty
    hint: a package is a directory with a crossplane.yaml; `apron init` makes one
    ");
}

#[test]
fn mistake_a_directory_that_is_not_there() {
    let scratch = Scratch::new();
    let mut command = command(&scratch);
    // It would serve until it is stopped.
    command.args(["up", "missing", "--data-dir", "data"]);
    command.args(["--listen", "127.0.0.1:0", "--registry-listen", "127.0.0.1:0"]);
    let ran: Ran = command.output().unwrap().into();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.ends_with("hint: check the path\n"), "{}", ran.stderr);
    assert!(!scratch.join("data").exists());
}
