//! A container's file system, built by its first process in a mount namespace of its own.

use super::because;
use super::blueprint::{Blueprint, BlueprintMount, StepLine, StepReport};
use super::mounts::{TAME, mount_bind, mount_new, overlay_options, restrict_mount};
use super::within::{InsideRoot, MadeDirectory, descriptor_path};
use nix::mount::{MntFlags, MsFlags, umount2};
use nix::unistd::pivot_root;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Devices that containers share with the machine: they hold nothing of it.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// What of /proc tells of the machine, or of others on it.
const MASKED: [&str; 9] = [
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
];

/// What of /proc can only be read.
const READ_ONLY: [&str; 5] =
    ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// Where an image that cannot have a writable layer can be written to.
const SCRATCH: [&str; 3] = ["/tmp", "/run", "/var/run"];

/// Opens a directory to look things up in.
pub(super) fn open_directory(path: &Path) -> Result<OwnedFd, String> {
    rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(because(format!("open {}", path.display())))
}

/// Builds the root, and makes it the root.
pub(super) fn build_root(blueprint: &Blueprint, line: &mut StepLine) -> Result<(), String> {
    let root = blueprint.directory.join("root");
    if let Err(why) = mount_overlay(blueprint, &root) {
        line.report(&StepReport::Remark(format!(
            "containers cannot write to their file systems, except below /tmp and /run, because overlays cannot be mounted: {why}"
        )))?;
        mount_bind(&blueprint.rootfs, &root, MsFlags::empty())
            .map_err(because("mount the image"))?;
        restrict_mount(&root, TAME | MsFlags::MS_RDONLY).map_err(because("protect the image"))?;
        mount_scratch(&root)?;
    }
    let build =
        RootBuild { inside: InsideRoot::open(&root).map_err(because("open the root"))?, blueprint };
    build.mount_kernel_files()?;
    build.mount_devices()?;
    for name in ["hosts", "hostname", "resolv.conf"] {
        let target = format!("/etc/{name}");
        build
            .bind_file(&blueprint.names.join(name), &target, MsFlags::MS_RDONLY)
            .map_err(because(format!("mount {target}")))?;
    }
    for mount in &blueprint.mounts {
        build.mount_volume(mount).map_err(because(format!("mount {}", mount.target)))?;
    }
    if let Some((file, target)) = &blueprint.last_words {
        build
            .bind_file(file, target, MsFlags::empty())
            .map_err(because(format!("mount {target}")))?;
    }
    build.hide_kernel_files()?;
    build.make_working_directory()?;
    drop(build);
    if blueprint.read_only_root {
        restrict_mount(&root, MsFlags::MS_RDONLY).map_err(because("make the root read-only"))?;
    }
    enter_root(&root)
}

fn mount_overlay(blueprint: &Blueprint, root: &Path) -> Result<(), String> {
    let (upper, work) = (blueprint.directory.join("upper"), blueprint.directory.join("work"));
    let options = overlay_options(&blueprint.rootfs, &upper, &work, blueprint.overlay_of_user)?;
    mount_new("overlay", root, TAME, &options)
}

fn mount_scratch(root: &Path) -> Result<(), String> {
    let inside = InsideRoot::open(root).map_err(because("open the root"))?;
    for path in SCRATCH {
        if let Ok(target) = inside.find(Path::new(path)) {
            mount_new("tmpfs", &descriptor_path(&target), TAME, "mode=1777,size=64m")?;
        }
    }
    Ok(())
}

/// The old root is under the new one for a moment, and then gone with all that was mounted in it.
fn enter_root(root: &Path) -> Result<(), String> {
    nix::unistd::chdir(root).map_err(because("enter the root"))?;
    pivot_root(".", ".").map_err(because("change the root"))?;
    umount2(".", MntFlags::MNT_DETACH).map_err(because("leave the old root"))?;
    nix::unistd::chdir("/").map_err(because("enter the root"))
}

struct RootBuild<'a> {
    inside: InsideRoot,
    blueprint: &'a Blueprint,
}

impl RootBuild<'_> {
    fn of_root(&self) -> MadeDirectory {
        let root = self.blueprint.ids.outside(0);
        MadeDirectory { uid: root, gid: root, mode: 0o755 }
    }

    fn directory(&self, path: &str) -> Result<OwnedFd, String> {
        self.inside
            .make_directory(Path::new(path), self.of_root())
            .map_err(because(format!("make {path}")))
    }

    /// What is mounted there now; what was opened before leads below it.
    fn find(&self, path: &str) -> Result<OwnedFd, String> {
        self.inside.find(Path::new(path)).map_err(because(format!("find {path}")))
    }

    fn mount_kernel_files(&self) -> Result<(), String> {
        let target = self.directory("/proc")?;
        mount_new("proc", &descriptor_path(&target), TAME | MsFlags::MS_NOEXEC, "")?;
        let target = self.directory("/sys")?;
        let flags = TAME | MsFlags::MS_NOEXEC | MsFlags::MS_RDONLY;
        // Programs do without it where a kernel does not permit it.
        let _ = mount_new("sysfs", &descriptor_path(&target), flags, "");
        Ok(())
    }

    fn mount_devices(&self) -> Result<(), String> {
        let target = self.directory("/dev")?;
        mount_new("tmpfs", &descriptor_path(&target), MsFlags::MS_NOSUID, "mode=755,size=64k")?;
        for name in DEVICES {
            let (source, target) = (Path::new("/dev").join(name), format!("/dev/{name}"));
            let file = self
                .inside
                .make_file(Path::new(&target), self.of_root())
                .map_err(because(format!("make {target}")))?;
            mount_bind(&source, &descriptor_path(&file), MsFlags::empty())
                .map_err(because(format!("mount {target}")))?;
        }
        let target = self.directory("/dev/pts")?;
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
        mount_new(
            "devpts",
            &descriptor_path(&target),
            flags,
            "newinstance,ptmxmode=0666,mode=0620",
        )?;
        let target = self.directory("/dev/shm")?;
        mount_new(
            "tmpfs",
            &descriptor_path(&target),
            TAME | MsFlags::MS_NOEXEC,
            "mode=1777,size=64m",
        )?;
        let devices = self.find("/dev")?;
        let devices = descriptor_path(&devices);
        for (to, name) in [
            ("/proc/self/fd", "fd"),
            ("/proc/self/fd/0", "stdin"),
            ("/proc/self/fd/1", "stdout"),
            ("/proc/self/fd/2", "stderr"),
            ("pts/ptmx", "ptmx"),
        ] {
            symlink(to, devices.join(name)).map_err(because(format!("make /dev/{name}")))?;
        }
        Ok(())
    }

    /// Hides what programs have no business with, after all else is mounted.
    fn hide_kernel_files(&self) -> Result<(), String> {
        for path in MASKED {
            let Ok(target) = self.inside.find(Path::new(path)) else { continue };
            let kind =
                rustix::fs::fstat(&target).map_err(because(format!("look at {path}")))?.st_mode;
            let target = descriptor_path(&target);
            if rustix::fs::FileType::from_raw_mode(kind).is_dir() {
                mount_new("tmpfs", &target, TAME | MsFlags::MS_RDONLY, "size=4k")?;
            } else {
                mount_bind(Path::new("/dev/null"), &target, MsFlags::empty())
                    .map_err(because(format!("hide {path}")))?;
            }
        }
        for path in READ_ONLY {
            let Ok(target) = self.inside.find(Path::new(path)) else { continue };
            let target = descriptor_path(&target);
            mount_bind(&target, &target, MsFlags::empty())
                .map_err(because(format!("protect {path}")))?;
            let mounted = self.find(path)?;
            restrict_mount(&descriptor_path(&mounted), MsFlags::MS_RDONLY)
                .map_err(because(format!("protect {path}")))?;
        }
        Ok(())
    }

    fn bind_file(&self, source: &Path, target: &str, flags: MsFlags) -> Result<(), String> {
        let file = self
            .inside
            .make_file(Path::new(target), self.of_root())
            .map_err(|error| error.to_string())?;
        mount_bind(source, &descriptor_path(&file), MsFlags::empty())?;
        drop(file);
        let mounted = self.find(target)?;
        restrict_mount(&descriptor_path(&mounted), TAME | flags)
    }

    fn mount_volume(&self, mount: &BlueprintMount) -> Result<(), String> {
        let source = open_source(mount)?;
        let kind = rustix::fs::fstat(&source).map_err(|error| error.to_string())?.st_mode;
        let target = Path::new(&mount.target);
        let below = if rustix::fs::FileType::from_raw_mode(kind).is_dir() {
            self.inside.make_directory(target, self.of_root())
        } else {
            self.inside.make_file(target, self.of_root())
        };
        let below = below.map_err(|error| match error {
            Errno::ROFS => "it is not in the image, which cannot be written to".to_owned(),
            other => other.to_string(),
        })?;
        let recursive = if mount.recursive { MsFlags::MS_REC } else { MsFlags::empty() };
        mount_bind(&descriptor_path(&source), &descriptor_path(&below), recursive)?;
        let mounted = self.find(&mount.target)?;
        let flags = if mount.read_only { TAME | MsFlags::MS_RDONLY } else { TAME };
        restrict_mount(&descriptor_path(&mounted), flags)
    }

    fn make_working_directory(&self) -> Result<(), String> {
        let (path, user) =
            (Path::new(&self.blueprint.process.directory), &self.blueprint.process.user);
        let ids = self.blueprint.ids;
        let made =
            MadeDirectory { uid: ids.outside(user.uid), gid: ids.outside(user.gid), mode: 0o755 };
        match self.inside.make_directory(path, made) {
            // What is there and is no directory, or cannot be made, is told by the program's `chdir`.
            Ok(_) | Err(Errno::ROFS | Errno::NOTDIR | Errno::EXIST) => Ok(()),
            Err(error) => {
                Err(format!("cannot make the working directory {}: {error}", path.display()))
            }
        }
    }
}

/// The volume, or what is at a path in it; links in a volume, which programs can make, do not lead out of it.
fn open_source(mount: &BlueprintMount) -> Result<OwnedFd, String> {
    let Some(sub_path) = mount.sub_path.as_deref().filter(|path| !path.is_empty()) else {
        return rustix::fs::open(&mount.source, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .map_err(because(format!("find {}", mount.source.display())));
    };
    let volume = InsideRoot::open(&mount.source).map_err(because("open the volume"))?;
    match volume.find_beneath(Path::new(sub_path)) {
        Err(Errno::NOENT) if mount.makes_sub_path => {
            // As open as the volume is.
            let like = rustix::fs::stat(&mount.source).map_err(|error| error.to_string())?;
            let made =
                MadeDirectory { uid: like.st_uid, gid: like.st_gid, mode: like.st_mode & 0o7777 };
            volume
                .make_directory(Path::new(sub_path), made)
                .map(drop)
                .map_err(|error| error.to_string())?;
            volume.find_beneath(Path::new(sub_path)).map_err(|error| error.to_string())
        }
        Err(Errno::XDEV) => Err(format!("subPath {sub_path:?} leads out of the volume")),
        Err(error) => Err(format!("subPath {sub_path:?} of the volume cannot be found: {error}")),
        Ok(found) => Ok(found),
    }
}
