//! `apron apiserver` as a process that tests kill, and kube's client to it.

#![expect(clippy::expect_used, reason = "a test that cannot go on must stop")]

use crate::support::{children, free_port, patiently, wait_for_end};
use axum::http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use serde_json::{Value as Json, json};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A runtime for tests that are clients.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

/// A server, asked in JSON by the user of a kubeconfig.
pub(crate) struct Asked {
    runtime: tokio::runtime::Runtime,
    client: Client,
}

impl Asked {
    pub(crate) fn new(kubeconfig: &Path) -> Self {
        let runtime = runtime();
        let client = runtime.block_on(async {
            let file = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
            let options = KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(file, &options).await;
            Client::try_from(config.expect("a cluster")).expect("a client")
        });
        Self { runtime, client }
    }

    /// The answer, if there is one.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: &Json,
    ) -> Result<Json, kube::Error> {
        let request = Request::builder().method(method).uri(path).header("content-type", kind);
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = request.body(body).expect("a request");
        self.runtime.block_on(self.client.request(request))
    }

    /// The answer, unless nothing is there. Who is too busy to answer is asked again.
    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: &Json) -> Option<Json> {
        patiently(|| match self.send(method, path, "application/json", body) {
            Ok(answer) => Ok(Some(answer)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(format!("{method} {path}: {error}")),
        })
    }

    /// An object or a list, if it is there.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Option<Json> {
        self.ask("GET", path, &Json::Null)
    }

    /// Whether somebody may do something, as the server sees it: verb, group and resource.
    pub(crate) fn may(&self, user: &str, what: [&str; 3]) -> bool {
        let [verb, group, resource] = what;
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": user,
                "resourceAttributes": {"group": group, "resource": resource, "verb": verb},
            },
        });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        self.ask("POST", path, &review).expect("reviews")["status"]["allowed"] == true
    }
}

/// The server as a process that can be killed and started again where it was.
pub(crate) struct Server {
    child: Child,
    data: PathBuf,
    port: u16,
    keep: Option<usize>,
}

impl Server {
    /// Starts it on a port that was free; `keep` is how many past events it keeps.
    pub(crate) async fn start(data: &Path, keep: Option<usize>) -> Self {
        let port = free_port();
        let child = command(data, port, keep).spawn().expect("apron starts");
        let mut server = Self { child, data: data.to_owned(), port, keep };
        assert!(server.ready().await, "the server did not become ready");
        server
    }

    /// Starts it under another program; nothing if it ends before it is ready.
    pub(crate) async fn start_under(mut wrapper: Command, data: &Path) -> Option<Self> {
        let port = free_port();
        let own = command(data, port, None);
        wrapper.arg(own.get_program()).args(own.get_args());
        // A group of its own, so that both can be ended.
        wrapper.process_group(0);
        let child = wrapper.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a start");
        let mut server = Self { child, data: data.to_owned(), port, keep: None };
        server.ready().await.then_some(server)
    }

    /// Waits until it answers, or has ended.
    async fn ready(&mut self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(300);
        while Instant::now() < deadline {
            if let Some(client) = self.try_client().await
                && client.apiserver_version().await.is_ok()
            {
                return true;
            }
            if self.child.try_wait().expect("a child").is_some() {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    /// kill -9, and a new start on the same data and port.
    pub(crate) async fn restart(&mut self) {
        self.child.kill().expect("kill -9");
        self.child.wait().expect("an end");
        self.child = command(&self.data, self.port, self.keep).spawn().expect("apron starts");
        assert!(self.ready().await, "the server did not become ready again");
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its address for clients.
    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address())
    }

    /// The most memory it had so far, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let status = fs_err::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        kilobytes.and_then(|text| text.trim().parse::<usize>().ok()).expect("a number") * 1024
    }

    /// The file that lets clients in.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.data.join("kubeconfig")
    }

    async fn try_client(&self) -> Option<Client> {
        let mut file = Kubeconfig::read_from(self.kubeconfig()).ok()?;
        // An old file may name the port of an earlier start.
        for cluster in &mut file.clusters {
            cluster.cluster.as_mut()?.server = Some(format!("https://127.0.0.1:{}", self.port));
        }
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(file, &options).await.ok()?;
        Client::try_from(config).ok()
    }

    /// Config maps in the default namespace.
    pub(crate) async fn api(&self) -> Api<ConfigMap> {
        Api::namespaced(self.try_client().await.expect("a client"), "default")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let started = children(&self.child);
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.kill();
        let _ = self.child.wait();
        // What it started is nobody's child now, and may still have the data open.
        for process in &started {
            wait_for_end(process);
        }
    }
}

fn command(data: &Path, port: u16, keep: Option<usize>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apron"));
    command.args(["apiserver", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"]).arg(data);
    if let Some(keep) = keep {
        command.args(["--keep-events", &keep.to_string()]);
    }
    command.process_group(0).stdout(Stdio::null());
    command
}
