//! What the supervisor and the steps below it tell each other: JSON after its length, on the socket that is a step's
//! standard input, until the step becomes a program, which closes it.

use super::ids::ContainerIds;
use crate::protocol::ContainerProcess;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{ErrorKind, Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The longest frame between steps: a process's arguments and environment, which the kernel limits to 2 MiB itself.
const FRAME_MAX: u32 = 16 << 20;

fn encode_frame(value: &impl Serialize) -> Result<Vec<u8>, String> {
    let json = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    let length = u32::try_from(json.len()).map_err(|error| error.to_string())?;
    check_length(length)?;
    Ok([&length.to_be_bytes()[..], &json].concat())
}

fn check_length(length: u32) -> Result<usize, String> {
    if length > FRAME_MAX {
        return Err(format!(
            "a process with {length} bytes of arguments and environment is too much for this machine"
        ));
    }
    usize::try_from(length).map_err(|error| error.to_string())
}

/// What a step says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum StepReport {
    /// It has spawned the next, and ends.
    Spawned(i32),
    /// It goes on when it is told to.
    Waits,
    /// It could not do its part.
    Failed(String),
    /// Something an administrator should know.
    Remark(String),
}

/// What the step that makes a pod's namespaces is told, one after the other.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum PodOrder {
    /// Takes namespaces.
    Take { hostname: String },
    /// Configures the network, which is attached now.
    Connect { address: Ipv4Addr, gateway: Ipv4Addr },
}

/// A container as its first process builds it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Blueprint {
    pub(super) rootfs: PathBuf,
    /// The directory with `upper`, `work` and `root`.
    pub(super) directory: PathBuf,
    /// The directory with `hosts`, `hostname` and `resolv.conf`.
    pub(super) names: PathBuf,
    /// Whether overlays are mounted in a user namespace.
    pub(super) overlay_of_user: bool,
    pub(super) read_only_root: bool,
    pub(super) mounts: Vec<BlueprintMount>,
    /// The file for last words, and where the container sees it.
    pub(super) last_words: Option<(PathBuf, String)>,
    pub(super) ids: ContainerIds,
    pub(super) process: ContainerProcess,
}

/// Something mounted from outside.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BlueprintMount {
    pub(super) source: PathBuf,
    pub(super) target: String,
    pub(super) sub_path: Option<String>,
    /// Whether a `sub_path` that is not there is made, as a directory.
    pub(super) makes_sub_path: bool,
    /// Whether mounts below the source are seen, too.
    pub(super) recursive: bool,
    pub(super) read_only: bool,
}

/// A program that joins a container.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Visit {
    pub(super) ids: ContainerIds,
    pub(super) process: ContainerProcess,
}

/// A step's end of the socket.
pub(super) struct StepLine {
    stream: UnixStream,
}

impl StepLine {
    /// Standard input, as a socket that ends with the execution of a program.
    pub(super) fn from_standard_input() -> Result<Self, String> {
        let descriptor = nix::unistd::dup(std::io::stdin()).map_err(|error| error.to_string())?;
        nix::fcntl::fcntl(
            &descriptor,
            nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC),
        )
        .map_err(|error| error.to_string())?;
        Ok(Self { stream: UnixStream::from(descriptor) })
    }

    /// Says something.
    pub(super) fn report(&mut self, report: &StepReport) -> Result<(), String> {
        let frame = encode_frame(report)?;
        self.stream.write_all(&frame).map_err(|error| error.to_string())
    }

    /// The next order; nothing at the end. What follows it, which may be for the next step, is not read.
    pub(super) fn read_order<T: DeserializeOwned>(&mut self) -> Result<Option<T>, String> {
        let mut length = [0; 4];
        match self.stream.read_exact(&mut length) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            outcome => outcome.map_err(|error| error.to_string())?,
        }
        let mut frame = vec![0; check_length(u32::from_be_bytes(length))?];
        self.stream.read_exact(&mut frame).map_err(|error| error.to_string())?;
        serde_json::from_slice(&frame).map(Some).map_err(|error| error.to_string())
    }

    /// The next order, which has to come.
    pub(super) fn expect_order<T: DeserializeOwned>(&mut self) -> Result<T, String> {
        self.read_order()?.ok_or_else(|| "the supervisor has gone".to_owned())
    }

    /// Does a step's work, and reports why it failed, if it did. Standard error is the program's.
    pub(super) fn run_step(
        mut self,
        step: impl FnOnce(&mut Self) -> Result<ExitCode, String>,
    ) -> Result<ExitCode, String> {
        match step(&mut self) {
            Ok(code) => Ok(code),
            Err(why) => self.report(&StepReport::Failed(why)).map(|()| ExitCode::FAILURE),
        }
    }
}

/// The supervisor's end.
pub(super) struct SupervisorLine {
    reader: tokio::net::unix::OwnedReadHalf,
    writer: tokio::net::unix::OwnedWriteHalf,
}

impl SupervisorLine {
    /// Both ends; the second one is a step's standard input.
    pub(super) fn pair() -> Result<(Self, UnixStream), String> {
        let (ours, theirs) = UnixStream::pair().map_err(|error| error.to_string())?;
        ours.set_nonblocking(true).map_err(|error| error.to_string())?;
        let (reader, writer) =
            tokio::net::UnixStream::from_std(ours).map_err(|error| error.to_string())?.into_split();
        Ok((Self { reader, writer }, theirs))
    }

    /// Says something.
    pub(super) async fn send(&mut self, order: &impl Serialize) -> Result<(), String> {
        self.writer.write_all(&encode_frame(order)?).await.map_err(|error| error.to_string())
    }

    /// What a step says next; nothing when it ended, or became a program.
    pub(super) async fn next_report(&mut self) -> Result<Option<StepReport>, String> {
        let mut frame = match self.reader.read_u32().await {
            Ok(length) => vec![0; check_length(length)?],
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        self.reader.read_exact(&mut frame).await.map_err(|error| error.to_string())?;
        serde_json::from_slice(&frame).map(Some).map_err(|error| error.to_string())
    }

    /// The number of the process that a step has spawned.
    pub(super) async fn next_spawned(&mut self) -> Result<i32, String> {
        match self.next_report().await? {
            Some(StepReport::Spawned(pid)) => Ok(pid),
            Some(StepReport::Failed(why)) => Err(why),
            other => Err(format!("a step of the node ended early ({other:?})")),
        }
    }

    /// A step's word that it waits.
    pub(super) async fn next_wait(&mut self) -> Result<(), String> {
        match self.next_report().await? {
            Some(StepReport::Waits) => Ok(()),
            Some(StepReport::Failed(why)) => Err(why),
            other => Err(format!("a step of the node ended early ({other:?})")),
        }
    }
}
