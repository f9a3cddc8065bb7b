//! Unix sockets in the node's state directory, for one user only, whatever the length of the directory's path.

use rustix::fs::{Mode, OFlags};
use std::fs::Permissions;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};

/// Longer paths do not fit into a socket's address (`sun_path`).
const SOCKET_PATH_MAX: usize = 100;

/// A socket's path, or, if that is too long, one through a descriptor of its directory, which is to stay open.
fn shorten_path(directory: &Path, name: &str) -> io::Result<(Option<OwnedFd>, PathBuf)> {
    let path = directory.join(name);
    if path.as_os_str().len() <= SOCKET_PATH_MAX {
        return Ok((None, path));
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let descriptor = rustix::fs::open(directory, flags, Mode::empty())?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd())).join(name);
    Ok((Some(descriptor), path))
}

/// Listens in a directory, which from then on only its owner can enter. A socket that is left over is replaced.
pub(super) fn listen_in_directory(directory: &Path, name: &str) -> io::Result<UnixListener> {
    fs_err::set_permissions(directory, Permissions::from_mode(0o700))?;
    let (_descriptor, path) = shorten_path(directory, name)?;
    match fs_err::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    fs_err::set_permissions(&path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Connects to a socket in a directory.
pub(super) async fn connect_in_directory(directory: &Path, name: &str) -> io::Result<UnixStream> {
    let (_descriptor, path) = shorten_path(directory, name)?;
    UnixStream::connect(&path).await
}

/// Whether the other side runs as the same user.
pub(super) fn is_same_user(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}
