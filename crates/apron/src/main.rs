//! The apron binary: words become a request, a request becomes one call, the result is printed.
//!
//! This is the shell of the house, and the only room that prints, reads the environment, walks
//! directories and exits. `args` turns words into requests, `settings` reads the environment
//! once, `command/<verb>` does one thing each, `output` is the voice.

mod args;
mod cluster;
mod command;
mod git;
mod listen;
mod nearby;
mod output;
mod panics;
mod place;
mod registry;
mod runtime_image;
mod settings;
mod stacks;

use args::Command;
use failure::{Failure, Outcome};
use ground::{directory, failure, interrupt, private};
use settings::Settings;
use std::process::ExitCode;
use tokio::runtime::Builder;

/// What a large package needed for a minute is given back when it is done (`.cargo/config.toml`
/// says how soon).
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // What pods run in is this program again: before there are threads.
    if let Some(code) = node::sandbox::run_hidden_verb(std::env::args_os()) {
        return code;
    }
    panics::tell_of_each();
    let words: Vec<_> = std::env::args_os().collect();
    let (usage, in_json) = (args::usage_code(&words), args::asks_for_json(&words));
    let tell_failure = if in_json { output::fail_in_json } else { output::fail };
    let args::Understood { command, is_quiet } = match args::parse(words) {
        Ok(understood) => understood,
        Err(error) if error.exit_code() == 0 || !in_json => {
            let _ = error.print();
            return if error.exit_code() == 0 { ExitCode::SUCCESS } else { ExitCode::from(usage) };
        }
        Err(error) => {
            output::fail_in_json(&args::misunderstood(&error));
            return ExitCode::from(usage);
        }
    };
    if is_quiet {
        output::keep_quiet();
    }
    if writes(&command) {
        interrupt::watch();
    }
    match end(&command, &Settings::from_environment()) {
        Ok(code) => code,
        Err(failure) => {
            let (failure, code) = interrupt::outcome().unwrap_or((failure, 1));
            tell_failure(&failure);
            ExitCode::from(code)
        }
    }
}

/// Whether there is something to clean up when the command is interrupted.
fn writes(command: &Command) -> bool {
    matches!(
        command,
        Command::Build(_)
            | Command::Push(_)
            | Command::Pull(_)
            | Command::Extract(_)
            | Command::Copy(_)
            | Command::Convert(_)
            | Command::Image(_)
    )
}

/// Runs a command, and says how it ended well: plans and comparisons have several ways.
fn end(command: &Command, settings: &Settings) -> Outcome<ExitCode> {
    match command {
        Command::Plan(request) => block_on(command::plan::run(request, settings)),
        Command::Diff(request) => command::diff::run(request, settings),
        other => run(other, settings).map(|()| ExitCode::SUCCESS),
    }
}

fn run(command: &Command, settings: &Settings) -> Outcome {
    match command {
        Command::Init(request) => command::init::run(request),
        Command::Build(request) => command::build::run(request, settings),
        Command::Lint(request) => command::lint::run(request, settings),
        Command::Push(request) => block_on(command::push::run(request, settings)),
        Command::Pull(request) => block_on(command::pull::run(request, settings)),
        Command::Extract(request) => command::extract::run(request, settings),
        Command::Inspect(request) => command::inspect::run(request, settings),
        Command::Copy(request) => block_on(command::copy::run(request, settings)),
        Command::Unpack(request) => command::unpack::run(request, settings),
        Command::Convert(request) => command::convert::run(request, settings),
        Command::Search(request) => block_on(command::catalog::search::run(request, settings)),
        Command::Which(request) => block_on(command::catalog::which::run(request, settings)),
        Command::Explain(request) => block_on(command::catalog::explain::run(request, settings)),
        Command::Catalog(request) => block_on(command::catalog::keep::run(request, settings)),
        Command::Login(request) => block_on(command::login::login(request, settings)),
        Command::Logout(request) => block_on(command::login::logout(request, settings)),
        Command::Install(request) => block_on(command::install::run(request, settings)),
        Command::Update(request) => block_on(command::update::run(request, settings)),
        Command::Uninstall(request) => block_on(command::uninstall::run(request, settings)),
        Command::List(request) => block_on(command::list::run(request, settings)),
        Command::Status(request) => block_on(command::status::run(request, settings)),
        Command::Logs(request) => block_on(command::logs::run(request, settings)),
        Command::Activate(request) => block_on(command::activate::run(request, settings)),
        Command::Adopt(request) => block_on(command::adopt::run(request, settings)),
        Command::Prune(request) => block_on(command::prune::run(request, settings)),
        Command::Pin(request) => block_on(command::pin::run(request, settings)),
        Command::Render(request) => block_on(command::render::run(request, settings)),
        Command::Wait(request) => block_on(command::wait::run(request, settings)),
        Command::Why(request) => block_on(command::why::run(request, settings)),
        Command::Permissions(request) => block_on(command::permissions::run(request, settings)),
        Command::Plan(_) | Command::Diff(_) => end(command, settings).map(|_| ()),
        Command::Up(request) => block_on(command::up::run(request, settings)),
        Command::Explorer(request) => block_on(command::explorer::run(request, settings)),
        Command::Registry(request) => block_on(command::registry::run(request, settings)),
        Command::Export(request) => command::apiserver::export::run(request),
        Command::Apiserver(request) => block_on(command::apiserver::run(request)),
        Command::Deploy(request) => block_on(command::deploy::run(request, settings)),
        Command::Manager(request) => sparingly(command::manager::run(request, settings)),
        Command::Image(request) => command::image::run(request),
        Command::Crds(request) => command::crds::run(request),
        Command::Doctor(request) => block_on(command::doctor::run(request, settings)),
        Command::ExplainCondition(request) => command::explain_condition::run(request),
        Command::Help(request) => command::help::run(request),
        Command::Version(request) => command::version::run(request),
        Command::Completion(shell) => {
            command::completion::print_script(*shell);
            Ok(())
        }
        Command::ManPages(directory) => command::completion::write_pages(directory),
    }
}

/// Runs something that waits for files or registries.
fn block_on<T>(future: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    run_on(Builder::new_multi_thread().worker_threads(2), future)
}

/// Runs something that waits most of its life, on one thread: more would keep memory for themselves.
fn sparingly<T>(future: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    run_on(&mut Builder::new_current_thread(), future)
}

fn run_on<T>(runtime: &mut Builder, future: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let runtime = runtime.enable_all().build().map_err(|error| {
        Failure::new("cannot start", "check the limits on threads and open files").because(&error)
    })?;
    runtime.block_on(interrupt::or_interrupted(future))
}
