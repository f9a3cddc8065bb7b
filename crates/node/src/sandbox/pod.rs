//! Pods and their containers, as the supervisor keeps them.

use super::because;
use super::blueprint::{Blueprint, BlueprintMount, PodOrder, StepReport, SupervisorLine, Visit};
use super::children::{Ending, EndingReceiver};
use super::groups::ContainerGroup;
use super::mounts::{TAME, mount_new};
use super::namespaces::PodNamespaces;
use super::output::{CapturedOutput, LoggedOutput};
use super::supervisor::Supervisor;
use super::volumes;
use super::words::{FoundWords, make_last_words};
use super::{CONTAINER, EXEC, POD};
use crate::protocol::{
    ContainerMount, ContainerName, ContainerProcess, ContainerStart, ExecResult, Message,
    MountSource, NodeConfig, PodSandbox, VolumeFile,
};
use crate::removal::remove_tree;
use fs_err as fs;
use nix::mount::{MntFlags, umount2};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Component, Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long the steps before a program may take. They wait for nothing but the disk.
const STEPS_WAIT: Duration = Duration::from_secs(300);

/// A pod that was created.
pub(super) struct PodRecord {
    /// Its writable layers and directories.
    disk: PathBuf,
    /// Its files that are never on disk.
    memory: PathBuf,
    /// One change at a time.
    pub(super) change: tokio::sync::Mutex<PodChange>,
    containers: Mutex<HashMap<ContainerName, ContainerRecord>>,
}

/// What changes hand on to each other.
#[derive(Default)]
pub(super) struct PodChange {
    is_removed: bool,
    /// Whether nothing is left of it.
    is_gone: bool,
    memory_mounts: Vec<PathBuf>,
    /// What its containers share, as long as it is there.
    namespaces: Option<PodNamespaces>,
}

struct ContainerRecord {
    pid: i32,
    process: ContainerProcess,
    /// Its control group, which goes with it.
    group: Option<Arc<ContainerGroup>>,
    ended: watch::Receiver<bool>,
}

/// Names become directories.
fn check_name(name: &str) -> Result<&str, String> {
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(only)), None) if only == name => Ok(name),
        _ => Err(format!("{name:?} cannot be a name")),
    }
}

/// Where the writable files of a pod are.
pub(super) fn disk_of(config: &NodeConfig, pod: &str) -> Result<PathBuf, String> {
    Ok(config.state.join("pods").join(check_name(pod)?))
}

/// Where a pod's files in memory are.
pub(super) fn memory_of(config: &NodeConfig, pod: &str) -> Result<PathBuf, String> {
    Ok(config.state.join("memory/pods").join(check_name(pod)?))
}

impl PodRecord {
    /// Makes the namespaces and the network of a pod.
    pub(super) async fn create(node: &Supervisor, sandbox: &PodSandbox) -> Result<Self, String> {
        let (disk, memory) =
            (disk_of(&node.config, &sandbox.pod)?, memory_of(&node.config, &sandbox.pod)?);
        fs::create_dir_all(&disk).map_err(|error| error.to_string())?;
        write_names(&memory.join("names"), &node.config, sandbox)?;
        let (mut line, theirs) = SupervisorLine::pair()?;
        let mut command = node.stage(POD);
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
        let (_, stage, ending) =
            node.children.spawn(&mut command).map_err(because("start a pod"))?;
        drop(command);
        let connected = async {
            line.send(&PodOrder::Take { hostname: sandbox.hostname.clone() }).await?;
            line.next_wait().await?;
            node.attach_pod(sandbox, stage).await?;
            let (address, gateway) = (sandbox.address, node.config.gateway);
            line.send(&PodOrder::Connect { address, gateway }).await?;
            line.next_wait().await?;
            PodNamespaces::open(stage)
        };
        let connected = timeout(STEPS_WAIT, connected)
            .await
            .unwrap_or_else(|_| Err("the pod does not begin".to_owned()));
        // This ends the step: the namespaces are held here from now on.
        drop(line);
        let record = |namespaces| {
            let change = PodChange { namespaces, ..PodChange::default() };
            Self { disk, memory, change: change.into(), containers: Mutex::default() }
        };
        match connected {
            Ok(namespaces) => Ok(record(Some(namespaces))),
            Err(why) => {
                node.children.kill(stage);
                let _ = ending.await;
                let _ = record(None).remove(node, &sandbox.pod).await;
                Err(why)
            }
        }
    }

    fn containers(&self) -> MutexGuard<'_, HashMap<ContainerName, ContainerRecord>> {
        self.containers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its containers that run, and their first processes.
    pub(super) fn list_running(&self) -> Vec<(ContainerName, i32)> {
        self.containers().iter().map(|(name, record)| (name.clone(), record.pid)).collect()
    }

    /// Kills what is left, and removes everything.
    pub(super) async fn remove(&self, node: &Supervisor, pod: &str) -> Result<(), String> {
        let mut change = self.change.lock().await;
        if change.is_gone {
            return Ok(());
        }
        change.is_removed = true;
        self.end_runs(node, |_| true).await;
        let detached = node.detach_pod(pod).await;
        drop(change.namespaces.take());
        for mount in change.memory_mounts.drain(..) {
            umount2(&mount, MntFlags::MNT_DETACH).map_err(because("unmount a volume"))?;
        }
        let directories = [self.memory.clone(), self.disk.clone()];
        run_blocking(move || {
            directories.iter().try_for_each(|directory| remove_directory(directory))
        })
        .await?;
        change.is_gone = detached.is_ok();
        detached
    }

    /// Kills the chosen containers, and waits for their end. All are killed first: one may hold the output of another.
    async fn end_runs(&self, node: &Supervisor, is_chosen: impl Fn(&ContainerName) -> bool) {
        let chosen: Vec<_> = self
            .containers()
            .iter()
            .filter(|(name, _)| is_chosen(name))
            .map(|(_, record)| (record.pid, record.ended.clone()))
            .collect();
        for (pid, _) in &chosen {
            node.children.kill(*pid);
        }
        for (_, mut ended) in chosen {
            let _ = ended.wait_for(|ended| *ended).await;
        }
    }

    /// Makes way for a run: an earlier one of the same container, whose start apron gave up waiting for, is ended, and
    /// what it wrote is removed.
    async fn clear_way(&self, node: &Supervisor, next: &ContainerName) -> Result<(), String> {
        check_name(&next.name)?;
        self.end_runs(node, |own| own.name == next.name && own.attempt < next.attempt).await;
        if self.containers().keys().any(|own| own.name == next.name) {
            return Err(format!("container {} is running already", next.name));
        }
        let (layers, next) = (self.layers(), next.clone());
        // A program may have left more files than can be removed in a moment.
        run_blocking(move || remove_earlier_layers(&layers, &next)).await
    }

    fn layers(&self) -> PathBuf {
        self.disk.join("containers")
    }

    /// Replaces the files of a volume.
    pub(super) async fn write_volume(
        &self,
        node: &Supervisor,
        volume: &str,
        group: Option<u32>,
        files: Vec<VolumeFile>,
    ) -> Result<(), String> {
        let _change = self.begin_change().await?;
        let directory = self.files_of(volume)?;
        let owner = (node.ids.outside(0), node.ids.outside(group.unwrap_or(0)));
        run_blocking(move || volumes::write_files(&directory, owner, &files)).await
    }

    async fn begin_change(&self) -> Result<tokio::sync::MutexGuard<'_, PodChange>, String> {
        let change = self.change.lock().await;
        if change.is_removed { Err("the pod has been removed".to_owned()) } else { Ok(change) }
    }

    fn files_of(&self, volume: &str) -> Result<PathBuf, String> {
        Ok(self.memory.join("files").join(check_name(volume)?))
    }

    /// Signals a container's first process.
    pub(super) fn signal(
        &self,
        node: &Supervisor,
        container: &ContainerName,
        signal: i32,
    ) -> Result<(), String> {
        match self.containers().get(container) {
            Some(record) => node.children.signal(record.pid, signal),
            None => Ok(()),
        }
    }

    /// Starts a container, and answers when its program runs.
    pub(super) async fn start(
        self: &Arc<Self>,
        node: &Arc<Supervisor>,
        start: ContainerStart,
    ) -> Result<(), String> {
        let mut change = self.begin_change().await?;
        let name = start.container.clone();
        self.clear_way(node, &name).await?;
        let group = node.make_group(&name, &start.limits).map(Arc::new);
        let maps = [
            node.ids.map_line(start.process.user.uid)?,
            node.ids.map_line(start.process.user.gid)?,
        ];
        let blueprint = self.draw_blueprint(node, &start, &mut change)?;
        let namespaces = change.namespaces.as_ref().ok_or("the pod has no namespaces")?.describe();
        let (mut line, theirs) = SupervisorLine::pair()?;
        let mut command = node.stage(CONTAINER);
        command
            .arg(namespaces)
            .args(group.as_ref().map(|group| group.entrance()))
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let (mut child, stage, stage_ending) =
            node.children.spawn(&mut command).map_err(because("start a container"))?;
        drop(command);
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err("a container has no pipes".to_owned());
        };
        let output = LoggedOutput::begin(&start.logs, name.attempt, stdout.into(), stderr.into())?;
        let spawned = timeout(STEPS_WAIT, line.next_spawned()).await;
        let spawned = spawned.unwrap_or_else(|_| Err("the container does not begin".to_owned()));
        // What a late step has spawned meanwhile finds its line closed, and ends.
        let pid = spawned.inspect_err(|_| node.children.kill(stage))?;
        let ending = node.children.adopt(pid).map_err(because("take on a container"))?;
        let _ = stage_ending.await;
        let executed =
            timeout(STEPS_WAIT, accompany(node, &mut line, pid, &blueprint, &maps)).await;
        if let Err(why) =
            executed.unwrap_or_else(|_| Err("the container does not begin".to_owned()))
        {
            node.children.kill(pid);
            let _ = ending.await;
            output.finish().await;
            return Err(why);
        }
        let (tell_end, ended) = watch::channel(false);
        self.containers()
            .insert(name.clone(), ContainerRecord { pid, process: start.process, group, ended });
        let words = FoundWords {
            file: blueprint.last_words.map(|(file, _)| file),
            log: start.last_words.filter(|words| words.or_log).map(|_| start.logs),
        };
        let end = RunEnd { name, ending, output, words, tell: tell_end };
        tokio::spawn(end.tell_exit(node.clone(), self.clone()));
        Ok(())
    }

    fn draw_blueprint(
        &self,
        node: &Supervisor,
        start: &ContainerStart,
        change: &mut PodChange,
    ) -> Result<Blueprint, String> {
        let directory = self.layers().join(format!(
            "{}.{}",
            check_name(&start.container.name)?,
            start.container.attempt
        ));
        for part in ["upper", "work", "root"] {
            fs::create_dir_all(directory.join(part)).map_err(|error| error.to_string())?;
        }
        let upper = directory.join("upper");
        let image = fs::metadata(&start.rootfs).map_err(|error| error.to_string())?;
        // The uppermost directory is the root that programs see.
        chown(&upper, Some(image.uid()), Some(image.gid())).map_err(because("own a layer"))?;
        fs::set_permissions(&upper, PermissionsExt::from_mode(0o755))
            .map_err(|error| error.to_string())?;
        let mut mounts = Vec::new();
        for mount in &start.mounts {
            let source = self
                .prepare_source(node, mount, change)
                .map_err(because(format!("mount {}", mount.target)))?;
            mounts.push(BlueprintMount {
                source,
                target: mount.target.clone(),
                sub_path: mount.sub_path.clone(),
                makes_sub_path: matches!(mount.source, MountSource::Empty { .. }),
                recursive: matches!(mount.source, MountSource::Host { .. }),
                read_only: mount.read_only || matches!(mount.source, MountSource::Files { .. }),
            });
        }
        let last_words = match &start.last_words {
            Some(words) => Some((make_last_words(node, &directory)?, words.path.clone())),
            None => None,
        };
        Ok(Blueprint {
            rootfs: start.rootfs.clone(),
            last_words,
            directory,
            names: self.memory.join("names"),
            overlay_of_user: node.overlay_of_user,
            read_only_root: start.read_only_root,
            mounts,
            ids: node.ids,
            process: start.process.clone(),
        })
    }

    fn prepare_source(
        &self,
        node: &Supervisor,
        mount: &ContainerMount,
        change: &mut PodChange,
    ) -> Result<PathBuf, String> {
        match &mount.source {
            MountSource::Files { volume } => self.files_of(volume),
            MountSource::Host { path } => Ok(path.clone()),
            MountSource::Empty { volume, in_memory, size_max, group } => {
                let parent = if *in_memory { &self.memory } else { &self.disk };
                let directory = parent.join("empty").join(check_name(volume)?);
                if directory.is_dir() {
                    return Ok(directory);
                }
                fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
                if *in_memory {
                    let size = size_max.map(|bytes| format!(",size={bytes}")).unwrap_or_default();
                    // Without the mount, the directory would be taken for the volume the next time.
                    mount_new("tmpfs", &directory, TAME, &format!("mode=0777{size}"))
                        .inspect_err(|_| drop(fs::remove_dir(&directory)))?;
                    change.memory_mounts.push(directory.clone());
                }
                let (root, owner) = (node.ids.outside(0), node.ids.outside(group.unwrap_or(0)));
                chown(&directory, Some(root), Some(owner)).map_err(because("own a volume"))?;
                // What is made in a directory that belongs to a group like this is the group's, too.
                let mode = if group.is_some() { 0o2777 } else { 0o777 };
                fs::set_permissions(&directory, PermissionsExt::from_mode(mode))
                    .map_err(|error| error.to_string())?;
                Ok(directory)
            }
        }
    }

    /// Runs a program in a container.
    pub(super) async fn exec(
        &self,
        node: &Supervisor,
        container: &ContainerName,
        arguments: Vec<String>,
        limit: Duration,
    ) -> Result<ExecResult, String> {
        let (target, process, group) = match self.containers().get(container) {
            Some(record) => {
                let process = ContainerProcess { arguments, ..record.process.clone() };
                (record.pid, process, record.group.clone())
            }
            None => return Err(format!("container {} is not running", container.name)),
        };
        let (pipe, writer) = std::io::pipe().map_err(|error| error.to_string())?;
        let (mut line, theirs) = SupervisorLine::pair()?;
        let mut command = node.stage(EXEC);
        let errors = writer.try_clone().map_err(|error| error.to_string())?;
        command.arg(target.to_string()).stdin(OwnedFd::from(theirs)).stdout(writer).stderr(errors);
        let (_, _, stage_ending) =
            node.children.spawn(&mut command).map_err(because("start a program"))?;
        drop(command);
        let output = CapturedOutput::begin(pipe.into())?;
        let deadline = tokio::time::Instant::now() + limit;
        let spawned = timeout(STEPS_WAIT, line.next_spawned()).await;
        let pid = spawned.unwrap_or_else(|_| Err("the program does not begin".to_owned()))?;
        let mut ending = node.children.adopt(pid).map_err(because("take on a program"))?;
        if let Some(group) = group {
            group.add_process(pid);
        }
        let _ = stage_ending.await;
        let executed = timeout(STEPS_WAIT, async {
            line.send(&Visit { ids: node.ids, process }).await?;
            wait_for_program(node, &mut line).await
        });
        if let Err(why) =
            executed.await.unwrap_or_else(|_| Err("the program does not begin".to_owned()))
        {
            node.children.kill(pid);
            let _ = ending.await;
            return Err(why);
        }
        let code = match tokio::time::timeout_at(deadline, &mut ending).await {
            Ok(Ok(Ending::Code(code))) => Some(code),
            Ok(_) => None,
            Err(_) => {
                node.children.kill_group(pid);
                let _ = ending.await;
                None
            }
        };
        Ok(ExecResult { code, output: output.finish().await })
    }
}

/// What a container's first process needs on its way to the program.
async fn accompany(
    node: &Supervisor,
    line: &mut SupervisorLine,
    pid: i32,
    blueprint: &Blueprint,
    [uids, gids]: &[String; 2],
) -> Result<(), String> {
    line.send(blueprint).await?;
    loop {
        match line.next_report().await? {
            Some(StepReport::Remark(text)) => node.notice_once(text),
            Some(StepReport::Waits) => break,
            Some(StepReport::Failed(why)) => return Err(why),
            other => return Err(format!("a container ended before its program began ({other:?})")),
        }
    }
    for (map, text) in [("uid_map", uids), ("gid_map", gids)] {
        // In one write, as the kernel wants it.
        fs::write(format!("/proc/{pid}/{map}"), text).map_err(|error| error.to_string())?;
    }
    line.send(&()).await?;
    wait_for_program(node, line).await
}

/// The socket is closed as the program is executed.
async fn wait_for_program(node: &Supervisor, line: &mut SupervisorLine) -> Result<(), String> {
    loop {
        match line.next_report().await? {
            None => return Ok(()),
            Some(StepReport::Remark(text)) => node.notice_once(text),
            Some(StepReport::Failed(why)) => return Err(why),
            Some(other) => {
                return Err(format!("a step of the node says something odd ({other:?})"));
            }
        }
    }
}

/// What is done when a run of a container ends.
struct RunEnd {
    name: ContainerName,
    ending: EndingReceiver,
    output: LoggedOutput,
    words: FoundWords,
    tell: watch::Sender<bool>,
}

impl RunEnd {
    async fn tell_exit(self, node: Arc<Supervisor>, pod: Arc<PodRecord>) {
        let (code, signal) = match self.ending.await {
            Ok(Ending::Code(code)) => (Some(code), None),
            Ok(Ending::Signal(signal)) => (None, Some(signal)),
            Err(_) => (None, None),
        };
        self.output.finish().await;
        let (words, attempt, has_failed) = (self.words, self.name.attempt, code != Some(0));
        let message = run_blocking(move || Ok(words.read_words(attempt, has_failed))).await;
        let container = self.name;
        let record = pod.containers().remove(&container);
        let group = record.and_then(|record| record.group);
        let out_of_memory = group.as_ref().is_some_and(|group| group.ran_out_of_memory());
        drop(group);
        let message = message.ok().flatten();
        node.tell(Message::Exited { container, code, signal, out_of_memory, message });
        let _ = self.tell.send(true);
    }
}

/// `/etc/hosts`, `/etc/hostname` and `/etc/resolv.conf`.
fn write_names(directory: &Path, config: &NodeConfig, sandbox: &PodSandbox) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| error.to_string())?;
    let PodSandbox { namespace, hostname, address, hosts, .. } = sandbox;
    let mut more = hosts.join("\n");
    if !more.is_empty() {
        more.push('\n');
    }
    let names = format!(
        "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n{address}\t{hostname}\n{more}"
    );
    let NodeConfig { dns, domain, .. } = config;
    let resolver = format!(
        "search {namespace}.svc.{domain} svc.{domain} {domain}\nnameserver {dns}\noptions ndots:5\n"
    );
    for (name, text) in
        [("hosts", names), ("hostname", format!("{hostname}\n")), ("resolv.conf", resolver)]
    {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| error.to_string())?;
        fs::set_permissions(&path, PermissionsExt::from_mode(0o644))
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// A container begins with an empty layer; those of its earlier runs are of no use any more.
fn remove_earlier_layers(containers: &Path, container: &ContainerName) -> Result<(), String> {
    let Ok(entries) = fs::read_dir(containers) else { return Ok(()) };
    for entry in entries {
        let entry = entry.map_err(|error| error.to_string())?;
        let name = entry.file_name();
        if name
            .to_str()
            .and_then(|name| name.rsplit_once('.'))
            .is_some_and(|(name, _)| name == container.name)
        {
            remove_directory(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes a directory, if it is there.
pub(super) fn remove_directory(directory: &Path) -> Result<(), String> {
    remove_tree(directory).map_err(|error| error.to_string())
}

/// Does what may wait for the disk, beside everything else.
pub(super) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())?
}
