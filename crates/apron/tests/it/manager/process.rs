//! Managers as processes: how they are started, asked, and started again with other words.

use super::stage::{PATIENT, Stage};
use crate::registry::ask;
use crate::support::{Ran, Scratch, command, command_at, linked, peer_path, until};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A manager, which does not outlive the test.
pub(crate) struct Running(Option<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Running {
    /// The process, which is somebody else's to end from here on.
    pub(super) fn take(mut self) -> Child {
        self.0.take().unwrap()
    }
}

/// Starts a manager that elects a leader and says how it is.
pub(crate) fn start(
    scratch: &Scratch,
    kubeconfig: &Path,
    cache: &Path,
    log: &Path,
    words: &[&str],
) -> Running {
    let child = command(scratch)
        .args(["manager", "--kubeconfig"])
        .arg(kubeconfig)
        .arg("--cache-dir")
        .arg(cache)
        .args(["--provider-clusterrole", "allowed-permissions"])
        .args(["--leader-election", "--listen", "127.0.0.1:0"])
        .args(words)
        .stdout(Stdio::null())
        .stderr(fs_err::File::create(log).unwrap().into_file())
        .spawn()
        .unwrap();
    Running(Some(child))
}

/// Asks a manager to stop, which it does cleanly.
pub(super) fn stop(manager: &mut Child) {
    let id = manager.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(manager.wait().unwrap().success());
}

/// What the manager with this log says about itself.
pub(super) fn metrics(log: &Path) -> String {
    let address = until("the manager listens", || {
        let said = fs_err::read_to_string(log).unwrap();
        let (address, _) = said.split_once("serving http://")?.1.split_once("/metrics")?;
        Some(address.to_owned())
    });
    let (status, text) = ask(&address, "GET /metrics HTTP/1.0\r\n\r\n", b"").unwrap();
    assert_eq!(status, 200, "{text}");
    text
}

/// Whether the manager with this log is the one that works.
pub(super) fn leads(log: &Path) -> bool {
    metrics(log).lines().any(|line| line == "apron_is_leader 1")
}

impl Stage {
    /// Another manager, which has its own cache and its own log.
    pub(super) fn another(&self, name: &str, words: &[&str]) -> (Running, PathBuf) {
        let (cache, log) =
            (self.scratch.join(format!("{name}-cache")), self.scratch.join(format!("{name}.log")));
        (start(&self.scratch, self.kubeconfig(), &cache, &log, words), log)
    }

    /// Stops the manager, and starts it again with these words.
    pub(super) fn restart(&mut self, words: &[&str]) {
        self.restart_after(words, |_| {});
    }

    /// The same, and meanwhile something happens.
    pub(super) fn restart_after(&mut self, words: &[&str], meanwhile: impl FnOnce(&Self)) {
        stop(&mut self.manager);
        meanwhile(self);
        self.log = self.log.with_extension("again.log");
        // Nothing runs on a real server.
        let waits: &[&str] =
            if self.is_real() { &["--wait-for-dependencies", "installed"] } else { &[] };
        let words = [&PATIENT, waits, words].concat();
        let again = start(&self.scratch, self.kubeconfig(), &self.cache, &self.log, &words);
        self.manager = again.take();
        until("it works again", || leads(&self.log).then_some(()));
    }

    /// What kubectl says in a directory of the scratch, with apron as the plugin of the guide.
    pub(super) fn kubectl(&self, directory: &str, words: &[&str]) -> Ran {
        let plugins = linked(&self.scratch, "kubectl-crossplane");
        let plugins = plugins.parent().unwrap().display();
        let mut command = command_at(&self.scratch, &peer_path("kubectl"));
        command.current_dir(self.scratch.join(directory)).args(words);
        command.env("PATH", format!("{plugins}:/usr/bin:/bin"));
        Ran::from(command.env("KUBECONFIG", self.kubeconfig()).output().unwrap())
    }

    /// What `apron` says about this cluster.
    pub(super) fn apron(&self, words: &[&str]) -> Ran {
        let mut command = command(&self.scratch);
        Ran::from(command.env("KUBECONFIG", self.kubeconfig()).args(words).output().unwrap())
    }
}
