//! What scenarios play on: a cluster, a registry, a manager, and means to watch them.

use super::revisions::crd;
use crate::control_plane::Asked;
use crate::kubectl::plane::{Ours, Real};
use crate::registry::Served;
use crate::support::{
    Ran, Scratch, apron, children, command, command_at, package_sources, patiently, peer, program,
    until,
};
use base64::Engine as _;
use kube::config::Kubeconfig;
use serde_json::{Value as Json, json};
use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Who serves the API.
#[derive(Clone, Copy)]
pub(super) enum Backend {
    Embedded,
    Real,
}

/// A manager that nobody competes with keeps its lease however busy the machine is.
pub(super) const PATIENT: [&str; 4] =
    ["--leader-election-lease-duration", "1h", "--leader-election-renew-deadline", "50m"];

/// What the manager makes the API server know.
const SERVED: [&str; 10] = [
    "v1/providers",
    "v1/configurations",
    "v1/functions",
    "v1/providerrevisions",
    "v1/configurationrevisions",
    "v1/functionrevisions",
    "v1beta1/locks",
    "v1beta1/imageconfigs",
    "v1beta1/deploymentruntimeconfigs",
    "v1alpha1/controllerconfigs",
];

pub(super) struct Stage {
    pub(super) asked: Asked,
    pub(super) manager: Child,
    /// The manager itself, if it was started by way of somebody who can make its disk fail.
    traced: Option<String>,
    /// The manager's way to the API server, if it can be closed.
    pub(super) gate: Option<Gate>,
    pub(super) registry: Served,
    pub(super) cache: PathBuf,
    pub(super) log: PathBuf,
    real: Option<Real>,
    ours: Ours,
    pub(super) scratch: Scratch,
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.manager.kill();
        let _ = self.manager.wait();
        if let Some(process) = &self.traced {
            let _ = Command::new("kill").args(["-KILL", process]).status();
        }
        if std::thread::panicking() {
            let said = fs_err::read_to_string(&self.log).unwrap_or_default();
            let _ = writeln!(io::stderr(), "the manager said:\n{said}");
        }
    }
}

/// What is special about a manager.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Nothing: it stands for election, as in a cluster.
    Plain,
    /// It is told nothing about permissions, and more about the rest.
    Guarded(&'static [&'static str]),
    /// It is told more.
    Told(&'static [&'static str]),
    /// It asks the catalog of the stage's registry.
    Cataloged,
    /// Its way to the API server can be closed.
    Gated,
    /// Its disk can be made to fail.
    Fragile,
}

/// Starts a program, and once it is told how, becomes strace: whoever traces must be an ancestor,
/// on some systems.
const TRACED: &str = r#""$@" & read -r words; exec strace $words -p $!"#;

impl Stage {
    pub(super) fn open(backend: Backend) -> Self {
        Self::open_with(backend, Manner::Plain)
    }

    pub(super) fn open_with(backend: Backend, manner: Manner) -> Self {
        let scratch = Scratch::new();
        let ours = Ours::start(&scratch.join("ours"));
        let real = match backend {
            Backend::Embedded => None,
            Backend::Real => Some(Real::start(&scratch.join("real"), &ours)),
        };
        let kubeconfig = real.as_ref().map_or(&ours.kubeconfig, |real| &real.kubeconfig);
        let asked = Asked::new(kubeconfig);
        let registry = Served::start_with(&scratch, &["--mutable-versions"]);
        let (cache, log) = (scratch.join("cache"), scratch.join("manager.log"));
        let (trusted, _) = certificate(&scratch, "trusted");
        let gate = (manner == Manner::Gated).then(|| {
            let gate = Gate::to(server(kubeconfig));
            gate.open();
            gate
        });
        let manager_config = gate.as_ref().map_or_else(
            || kubeconfig.clone(),
            |gate| {
                let text = fs_err::read_to_string(kubeconfig).unwrap();
                scratch.write("gated", text.replace(&server(kubeconfig), &gate.address))
            },
        );
        let mut manager = if manner == Manner::Fragile {
            let mut shell = command_at(&scratch, Path::new("sh"));
            shell.args(["-c", TRACED, "sh", env!("CARGO_BIN_EXE_apron")]);
            shell
        } else {
            command(&scratch)
        };
        manager.args(["manager", "--kubeconfig"]).arg(manager_config);
        manager.arg("--cache-dir").arg(&cache).arg("--ca-bundle-path").arg(trusted);
        if !matches!(manner, Manner::Guarded(_)) {
            manager.args(["--provider-clusterrole", "allowed-permissions"]);
        }
        if real.is_some() {
            // Nothing runs there until a scenario says so, and others wait for more than that.
            manager.args(["--wait-for-dependencies", "installed"]);
        }
        if !matches!(manner, Manner::Told(_)) {
            // Scenarios write packages by themselves, and want to see them moved.
            manager.arg("--enable-dependency-version-upgrades=true");
        }
        match manner {
            Manner::Guarded(words) => {
                manager.arg("--leader-election").args(PATIENT).args(words);
            }
            Manner::Plain => {
                manager.arg("--leader-election").args(PATIENT);
            }
            Manner::Told(words) => {
                manager.arg("--leader-election").args(words);
            }
            Manner::Cataloged => {
                let host = registry.reference("");
                let catalog = format!("http://{host}");
                manager.arg("--leader-election").args(PATIENT).args(["--catalog", &catalog]);
            }
            Manner::Gated | Manner::Fragile => {}
        }
        let manager = manager
            .args(["--listen", "127.0.0.1:0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(fs_err::File::create(&log).unwrap().into_file())
            .spawn()
            .unwrap();
        let traced = (manner == Manner::Fragile).then(|| child_of(&manager));
        let stage =
            Self { asked, manager, traced, gate, registry, cache, log, real, ours, scratch };
        // Definitions are served one after the other.
        for kind in SERVED {
            let path = format!("/apis/pkg.crossplane.io/{kind}");
            until(&format!("{path} is served"), || stage.ask(&path));
        }
        let namespace = "/api/v1/namespaces/crossplane-system";
        until("the manager's namespace is there", || stage.ask(namespace));
        stage
    }

    /// From now on calls of this name fail like that.
    pub(super) fn break_disk(&mut self, call: &str, error: &str) {
        let words = format!("-f -o /dev/null -e trace={call} -e inject={call}:error={error}\n");
        self.manager.stdin.take().unwrap().write_all(words.as_bytes()).unwrap();
        // strace says so where the manager says everything.
        until("strace comes", || self.said().contains(" attached").then_some(()));
    }

    /// From now on nothing fails.
    pub(super) fn heal_disk(&mut self) {
        let strace = self.manager.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &strace]).status().unwrap().success());
        self.manager.wait().unwrap();
    }

    /// What the manager said so far.
    pub(super) fn said(&self) -> String {
        fs_err::read_to_string(&self.log).unwrap()
    }

    /// What the manager says about itself.
    pub(super) fn metrics(&self) -> String {
        super::process::metrics(&self.log)
    }

    /// Asks the manager to stop, which it does cleanly, and gives its lease up.
    pub(super) fn stops(&mut self) {
        let id = self.manager.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status().unwrap();
        assert!(asked.success());
        assert!(self.manager.wait().unwrap().success());
        let path = "/apis/coordination.k8s.io/v1/namespaces/crossplane-system/leases/\
                    apron-manager.pkg.crossplane.io";
        assert_eq!(self.ask(path).unwrap()["spec"]["holderIdentity"].as_str(), Some(""));
    }

    /// An object or a list, if it is there.
    pub(super) fn ask(&self, path: &str) -> Option<Json> {
        self.asked.get(path)
    }

    /// A change, which must be accepted; one that others got ahead of is tried again.
    #[track_caller]
    pub(super) fn change(&self, method: &str, path: &str, kind: &str, body: &Json) -> Json {
        until(&format!("{method} {path}"), || match self.asked.send(method, path, kind, body) {
            Ok(object) => Some(object),
            Err(kube::Error::Api(status)) if matches!(status.code, 409 | 429 | 500..) => None,
            Err(error @ kube::Error::Api(_)) => panic!("{method} {path}: {error}"),
            // A server closes connections that nobody used for a while.
            Err(_) => None,
        })
    }

    /// Makes a package object.
    #[track_caller]
    pub(super) fn install(&self, kind: &str, name: &str, spec: &Json) {
        let object = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": kind,
            "metadata": {"name": name}, "spec": spec,
        });
        self.change("POST", &packages(kind), "application/json", &object);
    }

    /// Makes an object of a list.
    #[track_caller]
    pub(super) fn make(&self, path: &str, object: &Json) {
        self.change("POST", path, "application/json", object);
    }

    /// Makes an image configuration.
    #[track_caller]
    pub(super) fn image_config(&self, name: &str, spec: &Json) {
        let (api_version, kind) = ("pkg.crossplane.io/v1beta1", "ImageConfig");
        let metadata = json!({"name": name});
        let object =
            json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec});
        self.make("/apis/pkg.crossplane.io/v1beta1/imageconfigs", &object);
    }

    /// Makes a Secret where the manager looks for them.
    #[track_caller]
    pub(super) fn secret(&self, name: &str, key: &str, text: &str) {
        let kind = match key {
            ".dockerconfigjson" => "kubernetes.io/dockerconfigjson",
            _ => "Opaque",
        };
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "type": kind,
            "metadata": {"name": name}, "stringData": {key: text},
        });
        self.make("/api/v1/namespaces/crossplane-system/secrets", &object);
    }

    /// Waits until a condition says exactly this.
    #[track_caller]
    pub(super) fn says(&self, kind: &str, name: &str, of: &str, expected: &str) {
        patiently(|| {
            let last = condition(&self.package(kind, name), of).unwrap_or_default();
            let why = || format!("{kind} {name} says {last} instead of {expected}");
            if last["message"] == expected { Ok(()) } else { Err(why()) }
        });
    }

    /// Changes part of a package object.
    #[track_caller]
    pub(super) fn merge(&self, kind: &str, name: &str, change: &Json) -> Json {
        let path = format!("{}/{name}", packages(kind));
        self.change("PATCH", &path, "application/merge-patch+json", change)
    }

    /// Why the API server will not have a change of a package.
    #[track_caller]
    pub(super) fn refusal(&self, kind: &str, name: &str, change: &Json) -> String {
        let (path, how) = (format!("{}/{name}", packages(kind)), "application/merge-patch+json");
        until(&format!("{path} is refused"), || {
            match self.asked.send("PATCH", &path, how, change) {
                Err(kube::Error::Api(status)) if status.code == 422 => Some(status.message.clone()),
                Ok(object) => panic!("{path} is taken: {object}"),
                Err(_) => None,
            }
        })
    }

    /// A package object.
    pub(super) fn package(&self, kind: &str, name: &str) -> Json {
        self.ask(&format!("{}/{name}", packages(kind))).unwrap_or_default()
    }

    /// Waits until a condition of a package says this, and gives its message.
    #[track_caller]
    pub(super) fn condition(
        &self,
        kind: &str,
        name: &str,
        of: &str,
        status: &str,
        reason: &str,
    ) -> String {
        until(&format!("{kind} {name} is {of}={status}/{reason}"), || {
            let package = self.package(kind, name);
            let found = condition(&package, of)?;
            let says = found["status"] == status && found["reason"] == reason;
            says.then(|| found["message"].as_str().unwrap_or_default().to_owned())
        })
    }

    /// The revisions of a package: number, state and name, by number.
    pub(super) fn revisions(&self, kind: &str, name: &str) -> Vec<(i64, String, String)> {
        let path = format!(
            "{}?labelSelector=pkg.crossplane.io/package%3D{name}",
            packages(&format!("{kind}Revision"))
        );
        let list = self.ask(&path).unwrap_or_default();
        let mut all: Vec<_> = list["items"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|one| one["metadata"]["deletionTimestamp"].is_null())
            .map(|one| {
                let state = one["spec"]["desiredState"].as_str().unwrap_or_default().to_owned();
                let name = one["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                (one["spec"]["revision"].as_i64().unwrap_or_default(), state, name)
            })
            .collect();
        all.sort();
        all
    }

    /// Waits until the revisions of a package have these numbers and states.
    #[track_caller]
    pub(super) fn states(&self, kind: &str, name: &str, expected: &[(i64, &str)]) {
        patiently(|| {
            let last = self.revisions(kind, name);
            let found: Vec<_> = last.iter().map(|one| (one.0, one.1.as_str())).collect();
            let why = || format!("{kind} {name} has the revisions {last:?}, not {expected:?}");
            if found == expected { Ok(()) } else { Err(why()) }
        });
    }

    /// Whether pods are nobody's business here: a real API server has nobody who runs them.
    pub(super) fn is_real(&self) -> bool {
        self.real.is_some()
    }

    /// Says that a Deployment's pods are there, where nobody else does.
    pub(super) fn make_available(&self, deployment: &str) {
        if self.is_real() {
            let now = "2026-01-01T00:00:00Z";
            let available = json!({
                "type": "Available", "status": "True", "reason": "MinimumReplicasAvailable",
                "message": "", "lastTransitionTime": now, "lastUpdateTime": now,
            });
            let status = json!({"status": {"conditions": [available]}});
            let (path, kind) = (format!("{deployment}/status"), "application/merge-patch+json");
            until(&format!("{deployment} is available"), || {
                match self.asked.send("PATCH", &path, kind, &status) {
                    // It may be collected, and made anew, at any time.
                    Ok(_) | Err(kube::Error::Api(_)) => Some(()),
                    Err(_) => None,
                }
            });
        }
    }

    /// Whether an object is not there.
    pub(super) fn is_absent(&self, path: &str) -> bool {
        self.ask(path).is_none()
    }

    /// Holds a certificate against those to trust, both as Secrets have them.
    pub(super) fn verify(&self, certificate: &str, trusted: &str) {
        let file = |name: &str, text: &str| {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
            self.scratch.write(name, String::from_utf8(bytes).unwrap());
            self.scratch.join(name)
        };
        let (certificate, trusted) = (file("one.crt", certificate), file("ca.crt", trusted));
        let verify = std::process::Command::new("openssl")
            .args(["verify", "-purpose", "sslserver", "-CAfile"])
            .args([&trusted, &certificate])
            .output()
            .unwrap();
        assert!(verify.status.success(), "{}", String::from_utf8_lossy(&verify.stderr));
    }

    /// Builds and pushes a provider that brings a kind and says this, and gives its reference.
    pub(super) fn push_provider(&self, name: &str, version: &str, spec: &Json) -> String {
        let kind = crd(&format!("{name}.example.org"), "things", &["a"]);
        self.push_package("Provider", name, version, spec, &[kind])
    }

    /// Builds a package whose content is its version, and gives the file.
    pub(super) fn build(&self, kind: &str, name: &str, version: &str) -> PathBuf {
        self.build_with(kind, name, version, &json!({}), &[])
    }

    /// The same, with a spec and with objects.
    fn build_with(
        &self,
        kind: &str,
        name: &str,
        version: &str,
        spec: &Json,
        objects: &[Json],
    ) -> PathBuf {
        let (root, file) = self.write_package(kind, name, version, spec, objects);
        let path = file.to_str().unwrap();
        apron(&self.scratch, ["build", &root, "--package-file", path]).ok();
        file
    }

    /// Writes the files of a package; gives their directory, and where the package is to be.
    fn write_package(
        &self,
        kind: &str,
        name: &str,
        version: &str,
        spec: &Json,
        objects: &[Json],
    ) -> (String, PathBuf) {
        let place = format!("{name}-{version}");
        let root = format!("packages/{place}");
        let about = format!("version {version} of a package");
        let metadata = json!({
            "apiVersion": "meta.pkg.crossplane.io/v1", "kind": kind, "spec": spec,
            "metadata": {"name": name, "annotations": {"meta.crossplane.io/description": about}},
        });
        self.scratch.write(&format!("{root}/crossplane.yaml"), metadata.to_string());
        for (number, object) in objects.iter().enumerate() {
            let file = format!("{root}/object-{number}.yaml");
            self.scratch.write(&file, object.to_string());
        }
        let file = self.scratch.join(format!("packages/{place}.xpkg"));
        (root, file)
    }

    /// Pushes a package that `apron build` refuses, built by upstream's tool, which does not look so
    /// closely.
    pub(super) fn push_unsound(
        &self,
        kind: &str,
        name: &str,
        version: &str,
        objects: &[Json],
    ) -> String {
        let (root, file) = self.write_package(kind, name, version, &json!({}), objects);
        apron(&self.scratch, ["lint", &root]).failed();
        let path = file.to_str().unwrap();
        peer(&self.scratch, "crossplane", ["xpkg", "build", "-f", &root, "-o", path]).ok();
        self.push_file(name, version, &file)
    }

    /// Builds and pushes a package with these objects, and gives its reference.
    pub(super) fn push_objects(
        &self,
        kind: &str,
        name: &str,
        version: &str,
        objects: &[Json],
    ) -> String {
        self.push_file(name, version, &self.build_with(kind, name, version, &json!({}), objects))
    }

    /// Builds and pushes a package whose metadata has this spec, and gives its reference.
    pub(super) fn push_spec(&self, kind: &str, name: &str, version: &str, spec: &Json) -> String {
        self.push_file(name, version, &self.build_with(kind, name, version, spec, &[]))
    }

    fn push_file(&self, name: &str, version: &str, file: &Path) -> String {
        let reference = self.registry.reference(&format!("{name}:{version}"));
        apron(&self.scratch, ["push", &reference, "-f", file.to_str().unwrap()]).ok();
        reference
    }

    /// Builds and pushes a package with this spec and these objects, and gives its reference.
    pub(super) fn push_package(
        &self,
        kind: &str,
        name: &str,
        version: &str,
        spec: &Json,
        objects: &[Json],
    ) -> String {
        self.push_file(name, version, &self.build_with(kind, name, version, spec, objects))
    }

    /// Waits until a package is as it should be, and says that it runs where nobody else does.
    #[track_caller]
    pub(super) fn installed(&self, kind: &str, name: &str) {
        let what = format!("{kind} {name} is healthy");
        until(&what, || {
            let active = self.revisions(kind, name).into_iter().find(|one| one.1 == "Active")?;
            let path =
                format!("/apis/apps/v1/namespaces/crossplane-system/deployments/{}", active.2);
            if self.is_real() && self.ask(&path).is_some() {
                self.make_available(&path);
            }
            let package = self.package(kind, name);
            let is = |of: &str| condition(&package, of).is_some_and(|it| it["status"] == "True");
            // The condition may be of what was there before.
            let current = package["status"]["currentRevision"] == *active.2;
            (current && is("Installed") && is("Healthy")).then_some(())
        });
    }

    /// What `apron` says to somebody who may look at everything and change nothing.
    pub(super) fn read_only(&self, words: &[&str]) -> Ran {
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let rules = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]);
        let role = json!({"kind": "ClusterRole", "name": "reads", "apiGroup": "rbac.authorization.k8s.io"});
        let subject =
            json!({"kind": "User", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"});
        for (plural, kind, content) in [
            ("clusterroles", "ClusterRole", json!({"rules": rules})),
            (
                "clusterrolebindings",
                "ClusterRoleBinding",
                json!({"roleRef": role, "subjects": [subject]}),
            ),
        ] {
            let mut object = content;
            object["apiVersion"] = json!("rbac.authorization.k8s.io/v1");
            object["kind"] = json!(kind);
            object["metadata"] = json!({"name": "reads"});
            let path = format!("{rbac}/{plural}/reads?fieldManager=test&force=true");
            self.change("PATCH", &path, "application/apply-patch+yaml", &object);
        }
        // Servers hear of roles after a while.
        until("the reader may read", || {
            self.asked.may("reader", ["list", "", "secrets"]).then_some(())
        });
        let mut kubeconfig = Kubeconfig::read_from(self.kubeconfig()).unwrap();
        for user in &mut kubeconfig.auth_infos {
            user.auth_info.get_or_insert_default().impersonate = Some("reader".to_owned());
        }
        let text = serde_json::to_string(&kubeconfig).unwrap();
        let path = self
            .scratch
            .write(&format!("reader-{:?}.kubeconfig", std::thread::current().id()), text);
        let mut command = command(&self.scratch);
        Ran::from(command.env("KUBECONFIG", path).args(words).output().unwrap())
    }

    /// Lets upstream's own tools build and push a package (the real one if it is there, else the
    /// repository's), and gives its reference.
    pub(super) fn push_by_upstream(&self, name: &str, version: &str) -> String {
        if let Some(source) = package_sources(name).last() {
            self.scratch.copy_package_from(source, name);
        }
        self.push_built_by_upstream(name, version)
    }

    /// The same with a package that is there.
    pub(super) fn push_built_by_upstream(&self, name: &str, version: &str) -> String {
        let (file, reference) =
            (format!("{name}.xpkg"), self.registry.reference(&format!("{name}:{version}")));
        peer(&self.scratch, "crossplane", ["xpkg", "build", "-f", name, "-o", &file]).ok();
        peer(&self.scratch, "crossplane", ["xpkg", "push", "-f", &file, &reference]).ok();
        reference
    }

    /// The kubeconfig of the administrator.
    pub(super) fn kubeconfig(&self) -> &Path {
        self.real.as_ref().map_or(&self.ours.kubeconfig, |real| &real.kubeconfig)
    }

    /// Builds and pushes a package, and gives its reference.
    pub(super) fn push(&self, kind: &str, name: &str, version: &str) -> String {
        let reference = self.registry.reference(&format!("{name}:{version}"));
        self.push_as(kind, name, version, &reference);
        reference
    }

    /// The same, under another reference.
    pub(super) fn push_as(&self, kind: &str, name: &str, version: &str, reference: &str) {
        let file = self.build(kind, name, version);
        apron(&self.scratch, ["push", reference, "-f", file.to_str().unwrap()]).ok();
    }
}

/// Where the API server of a kubeconfig is.
fn server(kubeconfig: &Path) -> String {
    let text = fs_err::read_to_string(kubeconfig).unwrap();
    let (_, rest) = text.split_once("https://").unwrap();
    let end = rest.find(|one: char| !one.is_ascii_digit() && one != '.' && one != ':').unwrap();
    rest[..end].to_owned()
}

/// The only process that another one started.
fn child_of(parent: &Child) -> String {
    until("the shell starts the manager", || children(parent).pop())
}

/// A certificate of a server on this machine, which vouches for itself, and its key.
pub(super) fn certificate(scratch: &Scratch, name: &str) -> (PathBuf, PathBuf) {
    let (certificate, key) = (format!("{name}.crt"), format!("{name}.key"));
    let begin = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
    let files = ["-nodes", "-keyout", &key, "-out", &certificate, "-days", "2"];
    let names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"];
    let end = ["-addext", "basicConstraints=CA:FALSE"];
    let words = begin.iter().chain(&files).chain(&names).chain(&end);
    program(scratch, "openssl", words).ok();
    (scratch.join(certificate), scratch.join(key))
}

/// Where objects of a kind are.
pub(super) fn packages(kind: &str) -> String {
    format!("/apis/pkg.crossplane.io/v1/{}s", kind.to_lowercase())
}

/// A condition of an object.
pub(super) fn condition(object: &Json, of: &str) -> Option<Json> {
    let all = object["status"]["conditions"].as_array()?;
    all.iter().find(|one| one["type"] == of).cloned()
}

/// A way to a server that can be closed: whoever comes then is turned away, and whoever is there
/// is cut off. The address is the test's for as long as it lasts, so that nobody else can be there.
pub(super) struct Gate {
    pub(super) address: String,
    is_open: Arc<AtomicBool>,
    guests: Arc<Mutex<Vec<TcpStream>>>,
}

impl Gate {
    pub(super) fn before(registry: &Served) -> Self {
        Self::to(registry.address().to_owned())
    }

    fn to(behind: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let gate = Self { address, is_open: Arc::default(), guests: Arc::default() };
        let (is_open, guests) = (Arc::clone(&gate.is_open), Arc::clone(&gate.guests));
        // It ends with the process; a listener cannot be told to.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut guests = guests.lock().unwrap();
                if is_open.load(Ordering::SeqCst) {
                    guests.extend(stream.try_clone());
                    pass(stream, &behind);
                }
            }
        });
        gate
    }

    pub(super) fn open(&self) {
        self.is_open.store(true, Ordering::SeqCst);
    }

    pub(super) fn close(&self) {
        let mut guests = self.guests.lock().unwrap();
        self.is_open.store(false, Ordering::SeqCst);
        for guest in guests.drain(..) {
            let _ = guest.shutdown(std::net::Shutdown::Both);
        }
    }
}

/// Passes bytes on, both ways.
fn pass(client: TcpStream, behind: &str) {
    let Ok(server) = TcpStream::connect(behind) else { return };
    let (Ok(from), Ok(to)) = (client.try_clone(), server.try_clone()) else { return };
    for (mut from, mut to) in [(from, to), (server, client)] {
        std::thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Both);
        });
    }
}
