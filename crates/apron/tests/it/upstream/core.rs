//! Upstream's core as a process beside a real API server.

use super::until;
use crate::kubectl::plane::peer;
use crate::support::Ran;
use base64::Engine as _;
use serde_json::Value as Json;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running core, and beside it who gives providers their rights.
pub(super) struct Core {
    children: [Child; 2],
    log: PathBuf,
}

impl Drop for Core {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Core {
    /// Installs its definitions and starts it; pods are nobody's business there.
    pub(super) fn start(directory: &Path, kubeconfig: &Path) -> Self {
        for name in ["client", "server", "cache"] {
            fs_err::create_dir_all(directory.join(name)).unwrap();
        }
        let kubectl = |words: &[&str]| {
            let run = Command::new(peer("kubectl"))
                .args(words)
                .env("KUBECONFIG", kubeconfig)
                .env("HOME", directory)
                .output();
            Ran::from(run.unwrap())
        };
        kubectl(&["create", "namespace", "crossplane-system"]).ok();
        // Whose pull secrets runtimes get, too.
        kubectl(&["create", "serviceaccount", "crossplane", "-n", "crossplane-system"]).ok();
        // It does not wait for its own definitions: what it needs of them is there the next time.
        until("upstream's core is initialised", || {
            let run = core(directory, kubeconfig).args(["core", "init"]).output().unwrap();
            run.status.success().then_some(())
        });
        let words =
            ["get", "secret", "crossplane-tls-client", "-n", "crossplane-system", "-o", "json"];
        let secret: Json = serde_json::from_str(&kubectl(&words).ok().stdout).unwrap();
        for key in ["tls.crt", "tls.key", "ca.crt"] {
            let text = secret["data"][key].as_str().unwrap();
            let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
            fs_err::write(directory.join("client").join(key), bytes).unwrap();
        }
        let log = directory.join("core.log");
        let children = ["core", "rbac"].map(|part| {
            let file = fs_err::File::create(directory.join(format!("{part}.log"))).unwrap();
            let mut command = core(directory, kubeconfig);
            let command = command.args([part, "start"]).stdout(Stdio::null());
            command.stderr(file.into_file()).spawn().unwrap()
        });
        Self { children, log }
    }

    /// What it said.
    pub(super) fn log(&self) -> String {
        fs_err::read_to_string(&self.log).unwrap_or_default()
    }
}

fn core(directory: &Path, kubeconfig: &Path) -> Command {
    let program = peer("core");
    let at = |name: &str| directory.join(name);
    let mut command = Command::new(&program);
    // As its image calls it: API servers record under that name what it wrote.
    command
        .arg0("crossplane")
        .env("KUBECONFIG", kubeconfig)
        .env("HOME", directory)
        .env("CRDS_PATH", program.with_file_name("crds"))
        .env("XPKG_CACHE_DIR", at("cache"))
        .env("TLS_CLIENT_CERTS_DIR", at("client"))
        .env("TLS_SERVER_CERTS_DIR", at("server"))
        .envs([
            ("POD_NAMESPACE", "crossplane-system"),
            ("POD_SERVICE_ACCOUNT", "crossplane"),
            ("ENABLE_WEBHOOKS", "false"),
            ("TLS_CA_SECRET_NAME", "crossplane-root-ca"),
            ("TLS_SERVER_SECRET_NAME", "crossplane-tls-server"),
            ("TLS_CLIENT_SECRET_NAME", "crossplane-tls-client"),
            // Any free port.
            ("METRICS_PORT", "0"),
            ("HEALTH_PROBE_PORT", "0"),
        ]);
    command
}
