//! Single mounts, by what they are for.

use nix::mount::{MsFlags, mount};
use nix::sys::statvfs::{FsFlags, statvfs};
use std::path::Path;

/// No set-user-id programs and no devices.
pub(super) const TAME: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV);

/// A file system that is made here.
pub(super) fn mount_new(
    kind: &str,
    target: &Path,
    flags: MsFlags,
    options: &str,
) -> Result<(), String> {
    mount(Some(kind), target, Some(kind), flags, Some(options))
        .map_err(|error| format!("mount of {kind}: {error}"))
}

/// What is at `source`, seen at `target`, too.
pub(super) fn mount_bind(source: &Path, target: &Path, flags: MsFlags) -> Result<(), String> {
    mount(Some(source), target, None::<&str>, MsFlags::MS_BIND | flags, None::<&str>)
        .map_err(|error| error.to_string())
}

/// Changes what may be done through a mount. What was forbidden before stays so.
pub(super) fn restrict_mount(target: &Path, flags: MsFlags) -> Result<(), String> {
    let before = statvfs(target).map_err(|error| error.to_string())?.flags();
    let mut flags = flags | MsFlags::MS_REMOUNT | MsFlags::MS_BIND;
    for (had, keep) in [
        (FsFlags::ST_RDONLY, MsFlags::MS_RDONLY),
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
    ] {
        if before.contains(had) {
            flags |= keep;
        }
    }
    mount(None::<&str>, target, None::<&str>, flags, None::<&str>)
        .map_err(|error| error.to_string())
}

/// The options of an overlay.
pub(super) fn overlay_options(
    lower: &Path,
    upper: &Path,
    work: &Path,
    of_user: bool,
) -> Result<String, String> {
    let escape = |path: &Path| {
        let text = path.to_str().ok_or_else(|| format!("{} is not UTF-8", path.display()))?;
        Ok::<_, String>(text.replace('\\', "\\\\").replace(',', "\\,").replace(':', "\\:"))
    };
    let attributes = if of_user { ",userxattr" } else { "" };
    Ok(format!(
        "lowerdir={},upperdir={},workdir={}{attributes}",
        escape(lower)?,
        escape(upper)?,
        escape(work)?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_cannot_become_options_of_an_overlay() {
        let options =
            overlay_options(Path::new("/a:b"), Path::new("/c,metacopy=on"), Path::new("/d"), true)
                .unwrap();
        assert_eq!(options, "lowerdir=/a\\:b,upperdir=/c\\,metacopy=on,workdir=/d,userxattr");
    }
}
