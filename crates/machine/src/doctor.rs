//! What of a machine is there for apron, what is missing, and for what that is needed.
//!
//! Each check looks at the machine as the command would that needs it: a directory is written to, a port is
//! listened on, pods are tried. Nothing stays behind.

use crate::engine::ENGINES;
use crate::program::trusted_bundle;
use crate::programs::find_program;
use node::sandbox::probe_support;
use serde::Serialize;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

/// The least space on a disk with which a control plane goes on taking writes for a while.
const FREE_SPACE_MIN: u64 = 256 << 20;
/// The ports of `apron up`, unless it is told others.
const PORTS: [(u16, &str); 2] = [(6443, "API server"), (5000, "registry")];
/// The program that runs, whatever its file is now.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Where a command would look on this machine.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// Where programs are looked for: the variable `PATH`.
    pub search: OsString,
    /// Where `apron up` keeps what it has.
    pub data_directory: Option<PathBuf>,
    /// Where temporary files are put.
    pub temporary: PathBuf,
    /// Files that say which clusters there are.
    pub kubeconfigs: Vec<PathBuf>,
}

/// How one thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckVerdict {
    /// It is there.
    Ready,
    /// It is not there, and only what is named needs it.
    Missing,
    /// It is not there, and nothing goes well without it.
    Broken,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub struct MachineCheck {
    /// What it is.
    pub name: &'static str,
    /// How it is.
    pub verdict: CheckVerdict,
    /// What was found, or why it is not there.
    pub found: String,
    /// What needs it.
    #[serde(rename = "neededFor")]
    pub needed_for: &'static str,
    /// What to do, where it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl MachineCheck {
    fn of(name: &'static str, needed_for: &'static str, found: Sighting) -> Self {
        let (verdict, found, hint) = match found {
            Sighting::Ready(found) => (CheckVerdict::Ready, found, None),
            Sighting::Missing(why, hint) => (CheckVerdict::Missing, why, Some(hint)),
            Sighting::Broken(why, hint) => (CheckVerdict::Broken, why, Some(hint)),
        };
        Self { name, verdict, found, needed_for, hint }
    }
}

/// What a look came to: what is there, or why it is not and what to do.
enum Sighting {
    Ready(String),
    Missing(String, String),
    Broken(String, String),
}

/// Looks at everything, in the order in which commands come to need it.
pub async fn examine_machine(surroundings: &Surroundings) -> Vec<MachineCheck> {
    let program = |name| find_named_program(name, surroundings);
    vec![
        MachineCheck::of(
            "data directory",
            "apron up, and catalogs in a file",
            examine_data(surroundings.data_directory.as_deref()),
        ),
        MachineCheck::of(
            "temporary files",
            "every command that reads packages",
            examine_directory(&surroundings.temporary, "set TMPDIR to a directory on a disk"),
        ),
        MachineCheck::of(
            "certificates",
            "registries and clusters with TLS",
            examine_certificates(),
        ),
        MachineCheck::of(
            "ports",
            "apron up without --listen and --registry-listen",
            examine_ports(),
        ),
        MachineCheck::of("pods", "apron up --runtime process", examine_pods().await),
        MachineCheck::of(
            "kubeconfig",
            "commands about a cluster",
            examine_kubeconfigs(&surroundings.kubeconfigs),
        ),
        MachineCheck::of(
            "kubectl",
            "looking at objects; apron itself does not call it",
            program("kubectl"),
        ),
        MachineCheck::of("git", "packages in Git (git+https://…)", program("git")),
        MachineCheck::of(
            "container engine",
            "apron build --embed-runtime-image",
            find_engine(surroundings),
        ),
    ]
}

/// The directory of control planes: it need not be there yet, and is not made.
fn examine_data(directory: Option<&Path>) -> Sighting {
    let Some(directory) = directory else {
        let why = "neither XDG_DATA_HOME nor HOME is set".to_owned();
        return Sighting::Broken(why, "set HOME, or name a directory with --data-dir".to_owned());
    };
    examine_directory(directory, "make it writable, or name another one with --data-dir")
}

/// Whether files can be made in a directory, or in the one that it would be made in.
fn examine_directory(directory: &Path, remedy: &str) -> Sighting {
    let there = directory.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    if let Err(error) = tempfile::tempfile_in(there) {
        let why = format!("{}: {}", there.display(), plain_reason(&error));
        return Sighting::Broken(why, remedy.to_owned());
    }
    let disk = rustix::fs::statvfs(there);
    let free = disk.map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    if free < FREE_SPACE_MIN {
        let why = format!("{}: less than 256 MiB is free", directory.display());
        return Sighting::Broken(why, "free some space, or use another disk".to_owned());
    }
    Sighting::Ready(directory.display().to_string())
}

/// What the system says of an error, without the path that stands before it.
fn plain_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::NotADirectory => "not a directory".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        io::ErrorKind::StorageFull => "no space is left".to_owned(),
        _ => error.to_string(),
    }
}

fn examine_certificates() -> Sighting {
    match trusted_bundle() {
        Some(bundle) => Sighting::Ready(bundle.display().to_string()),
        None => Sighting::Missing(
            "no authority is trusted".to_owned(),
            "install ca-certificates, or name your own with --ca-file".to_owned(),
        ),
    }
}

/// Whether the usual addresses are free. A control plane that runs has them, which is no fault.
fn examine_ports() -> Sighting {
    let is_taken =
        |port: u16| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).is_err();
    let taken: Vec<String> = PORTS
        .iter()
        .filter(|(port, _)| is_taken(*port))
        .map(|(port, purpose)| format!("127.0.0.1:{port} ({purpose})"))
        .collect();
    if taken.is_empty() {
        return Sighting::Ready("127.0.0.1:6443 and 127.0.0.1:5000 are free".to_owned());
    }
    Sighting::Missing(
        format!("{} cannot be listened on", taken.join(" and ")),
        "if that is no `apron up` of yours, give it others: `apron up --listen 127.0.0.1:0 --registry-listen 127.0.0.1:0`"
            .to_owned(),
    )
}

/// Whether pods can run: it is tried, with namespaces and mounts as a pod has them.
async fn examine_pods() -> Sighting {
    let hint = "without, use --runtime simulated: packages are tried, and nothing of them runs";
    match probe_support(Path::new(OWN_PROGRAM)).await {
        Ok(()) => Sighting::Ready("namespaces and mounts can be had".to_owned()),
        Err(why) => Sighting::Missing(why, hint.to_owned()),
    }
}

fn examine_kubeconfigs(files: &[PathBuf]) -> Sighting {
    let there: Vec<String> =
        files.iter().filter(|path| path.is_file()).map(|path| path.display().to_string()).collect();
    if there.is_empty() {
        let hint =
            "`apron up` makes one and prints where it is; or set KUBECONFIG, or give --kubeconfig";
        return Sighting::Missing("there is none".to_owned(), hint.to_owned());
    }
    Sighting::Ready(there.join(", "))
}

fn find_named_program(name: &str, surroundings: &Surroundings) -> Sighting {
    match find_program(name, &surroundings.search) {
        Some(path) => Sighting::Ready(path.display().to_string()),
        None => Sighting::Missing("not on the PATH".to_owned(), format!("install {name}")),
    }
}

fn find_engine(surroundings: &Surroundings) -> Sighting {
    let mut found = ENGINES.iter().filter_map(|name| find_program(name, &surroundings.search));
    match found.next() {
        Some(path) => Sighting::Ready(path.display().to_string()),
        None => Sighting::Missing(
            "neither docker nor podman is on the PATH".to_owned(),
            "install one; archives need none (--embed-runtime-image-tarball)".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(found: Sighting) -> (CheckVerdict, String, Option<String>) {
        let check = MachineCheck::of("it", "that", found);
        (check.verdict, check.found, check.hint)
    }

    #[test]
    fn a_directory_that_would_be_made_is_ready_and_is_not_made() {
        let scratch = tempfile::tempdir().unwrap();
        let wanted = scratch.path().join("share/apron");
        let (found, said, _) = verdict(examine_data(Some(&wanted)));
        assert_eq!((found, said), (CheckVerdict::Ready, wanted.display().to_string()));
        assert!(!scratch.path().join("share").exists());
    }

    #[test]
    fn a_place_where_nothing_can_be_written_is_broken_and_says_what_to_do() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("file");
        fs_err::write(&file, "").unwrap();
        let (found, said, hint) = verdict(examine_data(Some(&file.join("apron"))));
        assert_eq!(found, CheckVerdict::Broken);
        assert_eq!(said, format!("{}: not a directory", file.display()));
        assert!(hint.unwrap().contains("--data-dir"));
        assert_eq!(verdict(examine_data(None)).0, CheckVerdict::Broken);
    }

    #[test]
    fn programs_and_files_that_are_not_there_are_named_with_what_they_are_for() {
        let scratch = tempfile::tempdir().unwrap();
        let mut surroundings = Surroundings { search: scratch.path().into(), ..Default::default() };
        assert_eq!(verdict(find_named_program("git", &surroundings)).0, CheckVerdict::Missing);
        assert_eq!(verdict(find_engine(&surroundings)).0, CheckVerdict::Missing);
        let config = scratch.path().join("config");
        surroundings.kubeconfigs = vec![config.clone()];
        assert_eq!(
            verdict(examine_kubeconfigs(&surroundings.kubeconfigs)).0,
            CheckVerdict::Missing
        );
        for name in ["git", "podman", "config"] {
            fs_err::write(scratch.path().join(name), "").unwrap();
        }
        assert_eq!(verdict(find_named_program("git", &surroundings)).0, CheckVerdict::Ready);
        let (found, said, _) = verdict(find_engine(&surroundings));
        assert_eq!((found, said.ends_with("/podman")), (CheckVerdict::Ready, true));
        let (found, said, _) = verdict(examine_kubeconfigs(&surroundings.kubeconfigs));
        assert_eq!((found, said), (CheckVerdict::Ready, config.display().to_string()));
    }

    #[test]
    fn a_port_that_another_program_has_is_told_with_its_purpose() {
        // Whether the ports are free here is not this test's to say.
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, PORTS[1].0));
        let (found, said, _) = verdict(examine_ports());
        assert_eq!(found, CheckVerdict::Missing, "{said}");
        assert!(said.contains("127.0.0.1:5000 (registry)"), "{said}");
        drop(held);
    }
}
