//! A container of a pod as it is started: what the image says and what the pod says, put together.

use super::environment::pod_variables;
use super::expansion::expand_references;
use super::identity::{Allowances, choose_user, is_read_only, refuse_rights};
use super::quantity::{parse_milli, parse_whole};
use super::volume::list_mounts;
use super::{PodSources, PodSurroundings, is_label};
use crate::protocol::{
    ContainerLimits, ContainerName, ContainerProcess, ContainerStart, LastWords, PodSandbox,
    ProcessUser,
};
use k8s_openapi::api::core::v1::{Container, Pod};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What an image says of the program in it.
#[derive(Clone, Debug, Default)]
pub struct RunnableImage {
    /// Its file system.
    pub rootfs: PathBuf,
    /// Program and first arguments.
    pub entrypoint: Vec<String>,
    /// Further arguments, or the program.
    pub command: Vec<String>,
    /// Its environment.
    pub environment: BTreeMap<String, String>,
    /// Its working directory.
    pub directory: String,
    /// Its user, as it is written there.
    pub user: String,
}

/// What is said of a container without a program.
pub const NO_PROGRAM: &str = "no command specified: the image has no entrypoint; a package gets one with \
                              apron build --embed-runtime-image-tarball";

/// Why a container is not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartRefusal {
    /// What the pod says cannot be done or is not there (`CreateContainerConfigError`).
    Config(String),
    /// The image has no program, and the pod names none (`CreateContainerError`).
    NoProgram,
}

/// Where programs are looked for, if neither image nor pod says.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the containers of a pod have in common when they are started.
pub struct StartContext<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// What it refers to.
    pub sources: &'a PodSources,
    /// Where it is.
    pub place: &'a PodSurroundings,
    /// Below it each container has a directory for its output.
    pub logs: &'a Path,
    /// What the pod may have beyond its own files.
    pub allowances: Allowances,
}

/// How a container is started. `resolve` finds numbers and groups of a user in the image.
pub fn plan_start(
    context: &StartContext<'_>,
    container: &Container,
    attempt: u32,
    image: &RunnableImage,
    resolve: &dyn Fn(&str) -> Result<ProcessUser, String>,
) -> Result<ContainerStart, StartRefusal> {
    let StartContext { pod, sources, place, logs, allowances } = *context;
    let refused = StartRefusal::Config;
    let spec = pod.spec.as_ref().ok_or_else(|| refused("the pod has no spec".to_owned()))?;
    // Names become directories of this machine.
    if !is_label(&container.name) {
        return Err(refused(format!("{:?} cannot be the name of a container", container.name)));
    }
    if let Some(why) = refuse_rights(spec, container) {
        return Err(refused(why));
    }
    let said = pod_variables(pod, container, sources, place).map_err(refused)?;
    let arguments = choose_arguments(container, image, &said);
    if arguments.first().is_none_or(String::is_empty) {
        return Err(StartRefusal::NoProgram);
    }
    let mounts = list_mounts(spec, container, &said, allowances).map_err(refused)?;
    let user = choose_user(pod, container, &image.user, resolve).map_err(refused)?;
    let mut environment = BTreeMap::from([
        ("PATH".to_owned(), PATH.to_owned()),
        ("HOSTNAME".to_owned(), pod_hostname(pod)),
    ]);
    environment.extend(image.environment.clone());
    environment.extend(said);
    let directory = container.working_dir.clone().filter(|directory| !directory.is_empty());
    let directory = directory.unwrap_or_else(|| image.directory.clone());
    let directory = if directory.is_empty() { "/".to_owned() } else { directory };
    Ok(ContainerStart {
        container: ContainerName {
            pod: pod.metadata.uid.clone().unwrap_or_default(),
            name: container.name.clone(),
            attempt,
        },
        rootfs: image.rootfs.clone(),
        process: ContainerProcess { arguments, environment, directory, user },
        mounts,
        read_only_root: is_read_only(spec, &container.name),
        logs: logs.join(&container.name),
        limits: container_limits(container),
        last_words: last_words(container),
    })
}

fn last_words(container: &Container) -> Option<LastWords> {
    let path = container.termination_message_path.clone().filter(|path| !path.is_empty())?;
    let policy = container.termination_message_policy.as_deref();
    Some(LastWords { path, or_log: policy == Some("FallbackToLogsOnError") })
}

/// A command of the pod replaces entrypoint and command of the image, its arguments the command alone.
fn choose_arguments(
    container: &Container,
    image: &RunnableImage,
    environment: &BTreeMap<String, String>,
) -> Vec<String> {
    let lookup = |name: &str| environment.get(name).map(String::as_str);
    let expand = |texts: &Option<Vec<String>>| -> Vec<String> {
        texts.iter().flatten().map(|text| expand_references(text, lookup)).collect()
    };
    let (command, arguments) = (expand(&container.command), expand(&container.args));
    match (command.is_empty(), arguments.is_empty()) {
        (true, true) => [image.entrypoint.clone(), image.command.clone()].concat(),
        (true, false) => [image.entrypoint.clone(), arguments].concat(),
        (false, _) => [command, arguments].concat(),
    }
}

fn container_limits(container: &Container) -> ContainerLimits {
    let limits = container.resources.as_ref().and_then(|all| all.limits.as_ref());
    let said = |name: &str| limits.and_then(|all| all.get(name));
    ContainerLimits {
        memory_max: said("memory").and_then(|amount| parse_whole(&amount.0)),
        cpu_milli_max: said("cpu").and_then(|amount| u64::try_from(parse_milli(&amount.0)?).ok()),
    }
}

/// The longest name a machine has.
const HOSTNAME_MAX: usize = 63;

/// What a pod's programs call the machine they are on.
pub fn pod_hostname(pod: &Pod) -> String {
    let said = pod.spec.as_ref().and_then(|spec| spec.hostname.clone());
    let name = said.filter(|name| !name.is_empty()).or(pod.metadata.name.clone());
    let mut name = name.unwrap_or_default();
    if name.len() > HOSTNAME_MAX {
        name = name.chars().take(HOSTNAME_MAX).collect();
    }
    name.trim_end_matches(['-', '.']).to_owned()
}

/// A pod before anything runs in it.
pub fn plan_sandbox(pod: &Pod, address: std::net::Ipv4Addr) -> PodSandbox {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let aliases = pod.spec.iter().flat_map(|spec| spec.host_aliases.iter().flatten());
    let line = |ip: &str, names: &[String]| format!("{ip}\t{}", names.join("\t"));
    PodSandbox {
        pod: text(&pod.metadata.uid),
        namespace: text(&pod.metadata.namespace),
        hostname: pod_hostname(pod),
        address,
        hosts: aliases
            .map(|one| line(&one.ip, one.hostnames.as_deref().unwrap_or_default()))
            .filter(|line| !line.contains(['\n', '\r']))
            .collect(),
    }
}
