//! `oci-conformance URL`: asks a registry everything, and says where it falls short.

use clap::{Parser, ValueEnum};
use conformance_oci::{KnownFailures, Level, Report, Selection, Target, run};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Checks a registry against the OCI distribution specification 1.1.1 and its later additions.
///
/// Ends with 0 if every check passed (with --expect-failures: if exactly the listed ones
/// failed), with 1 if not, and with 2 if no check could be made.
#[derive(Debug, Parser)]
#[command(name = "oci-conformance", version)]
struct Arguments {
    /// The registry: http://HOST:PORT or https://HOST:PORT
    #[arg(required_unless_present = "list")]
    url: Option<String>,
    /// A user that may pull, push and delete
    #[arg(long, requires = "password")]
    user: Option<String>,
    /// The password of the user
    #[arg(long, requires = "user")]
    password: Option<String>,
    /// The last level to run; each includes those before it
    #[arg(long, value_enum, default_value = "dev")]
    level: LevelName,
    /// Only checks whose id contains this
    #[arg(long)]
    filter: Option<String>,
    /// How to report
    #[arg(long, value_enum, default_value = "text")]
    output: Output,
    /// A file that lists the checks known to fail, with reasons
    #[arg(long, value_name = "FILE")]
    expect_failures: Option<PathBuf>,
    /// The first component of the repositories that are made
    #[arg(long, default_value = "conformance")]
    prefix: String,
    /// Decides names and bytes; taken from the clock if not given
    #[arg(long)]
    seed: Option<u64>,
    /// Seconds that one check may take
    #[arg(long, default_value_t = 30)]
    timeout: u64,
    /// Checks at the same time
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Trust any certificate
    #[arg(long)]
    insecure: bool,
    /// A PEM file with certificates to trust
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// List the checks and stop
    #[arg(long)]
    list: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LevelName {
    Must,
    Should,
    Dev,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum Output {
    Text,
    Json,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match act(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "oci-conformance: error: {error}");
            ExitCode::from(2)
        }
    }
}

fn act(arguments: Arguments) -> Result<bool, String> {
    if arguments.list {
        for check in conformance_oci::checks() {
            say(&format!(
                "{} ({}, {}) {}",
                check.id,
                check.level.name(),
                check.endpoint,
                check.spec
            ));
        }
        return Ok(true);
    }
    let known = arguments.expect_failures.as_ref().map(|path| {
        let text = fs_err::read_to_string(path).map_err(|error| error.to_string())?;
        KnownFailures::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    });
    let known = known.transpose()?;
    let output = arguments.output;
    let selection = Selection {
        level: match arguments.level {
            LevelName::Must => Level::Must,
            LevelName::Should => Level::Should,
            LevelName::Dev => Level::Dev,
        },
        filter: arguments.filter.clone(),
    };
    let target = target(arguments)?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let report = runtime.block_on(run(&target, &selection))?;
    if report.findings.is_empty() {
        return Err("no check was selected".to_owned());
    }
    Ok(tell(&report, known.as_ref(), output))
}

fn target(arguments: Arguments) -> Result<Target, String> {
    let mut target = Target::new(arguments.url.unwrap_or_default());
    target.credentials = arguments.user.zip(arguments.password);
    target.repository_prefix = arguments.prefix;
    target.insecure = arguments.insecure;
    let authorities = arguments.ca.map(|path| fs_err::read(path).map_err(|e| e.to_string()));
    target.authorities = authorities.transpose()?;
    target.timeout = Duration::from_secs(arguments.timeout);
    target.jobs = arguments.jobs;
    target.seed = match arguments.seed {
        Some(seed) => seed,
        None => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
    };
    Ok(target)
}

/// Prints the report; whether all is as it should be.
fn tell(report: &Report, known: Option<&KnownFailures>, output: Output) -> bool {
    if output == Output::Json {
        say(&format!("{:#}", report.to_json()));
    } else if known.is_none() {
        say(&report.to_text());
    }
    let Some(known) = known else {
        return report.summary().failed == 0;
    };
    let surprises = known.surprises(report);
    if output == Output::Text {
        for surprise in &surprises {
            say(surprise);
        }
        let total = report.summary();
        let (passed, failed, known) = (total.passed, total.failed, known.len());
        let count = surprises.len();
        say(&format!(
            "{passed} passed, {failed} failed, {known} known failures, {count} surprises"
        ));
    }
    surprises.is_empty()
}

fn say(text: &str) {
    // A closed pipe is no reason to die.
    let _ = writeln!(std::io::stdout(), "{text}");
}
