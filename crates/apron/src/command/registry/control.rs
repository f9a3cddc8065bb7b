//! The control socket of a registry: commands on the same machine ask the process that serves a
//! directory to collect garbage.
//!
//! The socket's name is made from the directory: there is no file to be left
//! behind, and nothing to be written on a disk that is full. Both ends check the peer's user: the
//! directory's owner, or root.

use super::keep;
use crate::failure::{Failure, Outcome};
use crate::output;
use ::registry::{Collect, Collected, Registry};
use oci::Digest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{SocketAddr, UnixListener as StdListener, UnixStream as StdStream};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

/// The longest message either side takes.
const MESSAGE_LENGTH_MAX: u64 = 4096;
/// How long a message may take, but for the time of a collection.
const MESSAGE_TIME_MAX: Duration = Duration::from_secs(10);

/// What was collected, or why nothing was.
type Answer = Result<Collected, String>;

/// The socket of a directory, and the user that it belongs to.
fn address(directory: &Path) -> io::Result<(SocketAddr, u32)> {
    let path = directory.canonicalize()?;
    let owner = std::fs::metadata(&path)?.uid();
    let name = format!("apron-registry-{}", Digest::of(path.as_os_str().as_bytes()).hex());
    Ok((socket(&name)?, owner))
}

/// A socket without a file.
#[cfg(target_os = "linux")]
fn socket(name: &str) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt as _;
    SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn socket(_name: &str) -> io::Result<SocketAddr> {
    Err(io::ErrorKind::Unsupported.into())
}

fn check_peer(stream: &UnixStream, owner: u32) -> io::Result<()> {
    match stream.peer_cred()?.uid() {
        0 => Ok(()),
        user if user == owner => Ok(()),
        _ => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Serves the socket for as long as the registry serves.
pub(super) fn listen(directory: &Path, registry: Registry) {
    let bound = address(directory).and_then(|(address, owner)| {
        let listener = StdListener::bind_addr(&address)?;
        listener.set_nonblocking(true)?;
        Ok((UnixListener::from_std(listener)?, owner))
    });
    match bound {
        Ok((listener, owner)) => {
            tokio::spawn(accept_requests(listener, owner, registry));
        }
        Err(error) => output::warn(format_args!(
            "`apron registry gc` will not reach this registry while it serves: {error}"
        )),
    }
}

async fn accept_requests(listener: UnixListener, owner: u32, registry: Registry) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // One after the other: two collections at once do no more than one.
        if check_peer(&stream, owner).is_ok() {
            let _ = handle_request(stream, &registry).await;
        }
    }
}

/// Reads one request, collects, and answers.
async fn handle_request(mut stream: UnixStream, registry: &Registry) -> io::Result<()> {
    let what: Collect = timeout(MESSAGE_TIME_MAX, read_message(&mut stream)).await??;
    let answer: Answer = registry.collect(&what).await.map_err(|error| error.to_string());
    if let Ok(done) = &answer
        && !what.dry_run
        && *done != Collected::default()
    {
        output::say(format_args!("collected {}", keep::summary(done)));
    }
    timeout(MESSAGE_TIME_MAX, write_message(&mut stream, &answer)).await?
}

/// Has the registry that serves a directory collect garbage; nothing if none says that it does.
pub(super) async fn collect(directory: &Path, what: &Collect) -> Outcome<Option<Collected>> {
    let Ok(stream) = connect(directory) else { return Ok(None) };
    let hint = "look at what the registry says, then try again";
    match request(stream, what).await {
        Ok(Ok(collected)) => Ok(Some(collected)),
        Ok(Err(why)) => {
            let mut failure = Failure::new("the registry cannot collect garbage", hint);
            failure.causes.push(why);
            Err(failure)
        }
        Err(error) => {
            Err(Failure::new("the registry that serves the directory does not answer", hint)
                .because(&error))
        }
    }
}

fn connect(directory: &Path) -> io::Result<UnixStream> {
    let (address, owner) = address(directory)?;
    let stream = StdStream::connect_addr(&address)?;
    stream.set_nonblocking(true)?;
    let stream = UnixStream::from_std(stream)?;
    check_peer(&stream, owner)?;
    Ok(stream)
}

/// A collection takes as long as it takes, so the answer is waited for.
async fn request(mut stream: UnixStream, what: &Collect) -> io::Result<Answer> {
    write_message(&mut stream, what).await?;
    read_message(&mut stream).await
}

async fn write_message(stream: &mut UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string(message)?;
    text.push('\n');
    stream.write_all(text.as_bytes()).await
}

async fn read_message<T: DeserializeOwned>(stream: &mut UnixStream) -> io::Result<T> {
    let mut line = String::new();
    BufReader::new(stream.take(MESSAGE_LENGTH_MAX)).read_line(&mut line).await?;
    Ok(serde_json::from_str(&line)?)
}
