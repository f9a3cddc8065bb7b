//! Namespaces, mounts, ids and processes: what a pod is made of on this machine.
//!
//! apron spawns its node ([`NodeHandle::spawn`]), which is the same program with a hidden verb ([`run_hidden_verb`]).
//! Threads and forks do not go together, so that every step is a program that is executed anew, does one thing
//! while it has a single thread, and either ends or becomes the next:
//!
//! ```text
//!   apron ── __node             takes namespaces of its own (without root: a user namespace before them)
//!             └─ __supervise    PID 1 in there: orders in, messages out; owns and reaps everything below
//!                 ├─ __pod        makes the network, names and IPC of a pod, which the supervisor keeps, and ends
//!                 ├─ __container  joins those, takes a mount and a PID namespace, spawns the next and ends
//!                 │   └─ __init     builds the root, takes a user namespace, becomes the program
//!                 └─ __exec       joins the namespaces of a container, spawns the next and ends
//!                     └─ __enter    becomes the program
//! ```
//!
//! The supervisor ends with its standard input, and as its end is the end of its PID namespace, nothing outlives
//! apron, however that ends. Mounts are in namespaces that end with their last process. What is on disk,
//! the writable layers of containers, is removed with their pod, or by the next start in the same directory.

mod blueprint;
mod calls;
mod children;
mod container;
mod enter;
mod groups;
mod handle;
mod ids;
mod mounts;
mod namespaces;
mod output;
mod pod;
mod program;
mod root;
mod supervisor;
mod support;
mod usage;
mod visit;
mod volumes;
mod within;
mod words;

pub use handle::{NodeError, NodeHandle, NodeMessages, NodeSpawn};
pub use ids::{FIRST_SHIFTED_ID, SHIFTED_IDS, has_shifted_ids};
pub use support::probe_support;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};

const NODE: &str = "__node";
const SUPERVISE: &str = "__supervise";
const POD: &str = "__pod";
const CONTAINER: &str = "__container";
const INIT: &str = "__init";
const EXEC: &str = "__exec";
const ENTER: &str = "__enter";
const PROBE: &str = "--probe";

/// What [`NodeHandle::spawn`] runs, with its arguments, or nothing if they are no hidden verb. It has to come before
/// all else in `main`: before threads, and before anything is read from standard input.
pub fn run_hidden_verb(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    let verb = arguments.next()?.into_string().ok()?;
    let rest: Vec<OsString> = arguments.take(2).collect();
    let (first, second) = (rest.first(), rest.get(1));
    let outcome = match verb.as_str() {
        NODE if first.is_some_and(|word| word == PROBE) => support::run_probe(),
        NODE => enter::run_node(first),
        SUPERVISE => supervisor::run_supervisor(first, second),
        POD => namespaces::run_pod_stage(),
        CONTAINER => container::run_container_stage(first, second),
        INIT if first.is_some_and(|word| word == PROBE) => support::probe_mounts(),
        INIT => container::run_container_init(),
        EXEC => visit::run_exec_stage(first),
        ENTER => visit::run_exec_in_container(first),
        _ => return None,
    };
    Some(outcome.unwrap_or_else(|why| {
        // Standard error of a node is a pipe to apron, which tells its lines as notices.
        let _ = writeln!(std::io::stderr(), "{why}");
        ExitCode::FAILURE
    }))
}

/// This program again, as the next step.
fn next_stage(verb: &str) -> Command {
    stage_of(Path::new("/proc/self/exe"), verb)
}

/// A step. Nothing of the environment is passed on, but what keeps the allocator from a thread of its own: a process
/// with two threads cannot take or join a user namespace.
fn stage_of(program: &Path, verb: &str) -> Command {
    let mut command = Command::new(program);
    command.arg(verb).env_clear().env(ALLOCATOR.0, ALLOCATOR.1);
    command
}

/// What tells jemalloc to have no thread.
const ALLOCATOR: (&str, &str) = ("_RJEM_MALLOC_CONF", "background_thread:false");

/// `cannot do that because of this`, as a sentence.
fn because<E: Display>(what: impl Display) -> impl FnOnce(E) -> String {
    move |error| format!("cannot {what}: {error}")
}
