//! The program `git`, told to touch nothing of the user's.

use crate::{GitAccess, GitError};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a fetch may take.
const FETCH_TIME_MAX: Duration = Duration::from_secs(300);
/// A server that sends fewer bytes a second for a minute is given up.
const PACE_MIN: &str = "http.lowSpeedLimit=1000";
const PACE_TIME: &str = "http.lowSpeedTime=60";
/// Between two looks at whether a fetch has ended.
const PAUSE: Duration = Duration::from_millis(20);
/// The largest file `git` may write, in blocks of 512 bytes: what it fetches is one file.
const FILE_BLOCKS_MAX: &str = "ulimit -f 1048576 && exec \"$0\" \"$@\"";
/// Of what `git` said, so much is told.
const SAID_MAX: usize = 400;

/// Git with a home of its own.
pub(crate) struct GitProgram {
    program: PathBuf,
    home: PathBuf,
    environment: Vec<(&'static str, OsString)>,
    configuration: Vec<String>,
    interruption: fn() -> Option<String>,
}

impl GitProgram {
    /// Finds the program, and shuts its doors but the one to a server.
    pub(crate) fn find_program(
        access: &GitAccess,
        home: &Path,
        address: &str,
    ) -> Result<Self, GitError> {
        let found =
            std::env::split_paths(&access.path).map(|one| one.join("git")).find(|it| it.is_file());
        let program = found.ok_or_else(|| GitError {
            message: "there is no `git` on the PATH".to_owned(),
            why: None,
            hint: "install git, or build from a directory",
        })?;
        let protocol = if address.starts_with("https:") { "https" } else { "http" };
        let mut configuration = vec![
            "protocol.allow=never".to_owned(),
            format!("protocol.{protocol}.allow=always"),
            "http.followRedirects=false".to_owned(),
            "credential.helper=".to_owned(),
            "core.hooksPath=/dev/null".to_owned(),
            "core.fsmonitor=false".to_owned(),
            "transfer.fsckObjects=true".to_owned(),
            "transfer.bundleURI=false".to_owned(),
            "submodule.recurse=false".to_owned(),
            "core.bigFileThreshold=16m".to_owned(),
            "gc.auto=0".to_owned(),
            "maintenance.auto=false".to_owned(),
            PACE_MIN.to_owned(),
            PACE_TIME.to_owned(),
        ];
        if let Some(file) = &access.ca_file {
            configuration.push(format!("http.sslCAInfo={}", file.display()));
        }
        let environment = git_environment(access, home, protocol);
        let interruption = access.interruption;
        Ok(Self { program, home: home.to_owned(), environment, configuration, interruption })
    }

    fn git_directory(&self) -> PathBuf {
        self.home.join("repository.git")
    }

    /// Everything of a call but its own words.
    fn common_words(&self) -> Vec<OsString> {
        let each = self.configuration.iter();
        let mut words: Vec<OsString> =
            each.flat_map(|one| [OsString::from("-c"), OsString::from(one)]).collect();
        words.extend([OsString::from("--git-dir"), self.git_directory().into_os_string()]);
        words
    }

    /// A call, limited in what it may write to the disk.
    fn prepare_call(&self, words: &[&str]) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", FILE_BLOCKS_MAX])
            .arg(&self.program)
            .args(self.common_words())
            .args(words);
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.home).stdin(Stdio::null());
        command
    }

    /// Makes the repository that things are fetched into.
    pub(crate) fn create_repository(&self) -> Result<(), GitError> {
        let hint = "check that git works here and the disk has room";
        let made = self.read_line(&["init", "--quiet", "--bare", "--template="]);
        let cannot =
            |why| GitError::because("cannot prepare a repository to fetch into", hint, why);
        made.map(drop).map_err(cannot)
    }

    /// Fetches one ref without its past, its tags and its submodules.
    pub(crate) fn fetch_ref(&self, address: &str, wanted: &str) -> Result<(), String> {
        let said = self.home.join("said");
        let log = fs_err::File::create(&said).map_err(|error| error.to_string())?;
        let words = ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules"];
        let words = [&words[..], &["--no-write-commit-graph", "--", address, wanted]].concat();
        let mut command = self.prepare_call(&words);
        let mut child =
            start_git(command.stdout(Stdio::null()).stderr(Stdio::from(log.into_file())))?;
        let deadline = Instant::now() + FETCH_TIME_MAX;
        let ended = wait_until(&mut child, deadline, self.interruption)?;
        if ended { Ok(()) } else { Err(describe_output(&fs_err::read(&said).unwrap_or_default())) }
    }

    /// The only line that a call prints.
    pub(crate) fn read_line(&self, words: &[&str]) -> Result<String, String> {
        let ran = self.prepare_call(words).output().map_err(|error| not_started(&error))?;
        if ran.status.success() {
            return Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned());
        }
        Err(describe_output(&ran.stderr))
    }

    /// A call that is talked to while it runs.
    pub(crate) fn start_talk(&self, words: &[&str]) -> Result<Child, String> {
        let mut command = self.prepare_call(words);
        start_git(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()))
    }
}

fn git_environment(
    access: &GitAccess,
    home: &Path,
    protocol: &str,
) -> Vec<(&'static str, OsString)> {
    let mut all: Vec<(&'static str, OsString)> = vec![
        ("PATH", access.path.clone()),
        ("HOME", home.as_os_str().to_owned()),
        ("LC_ALL", "C".into()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
        ("GIT_ATTR_NOSYSTEM", "1".into()),
        ("GIT_TERMINAL_PROMPT", "0".into()),
        ("GIT_ASKPASS", "/bin/false".into()),
        ("GIT_PROTOCOL_FROM_USER", "0".into()),
        ("GIT_ALLOW_PROTOCOL", protocol.into()),
        ("GIT_NO_REPLACE_OBJECTS", "1".into()),
        ("GIT_NO_LAZY_FETCH", "1".into()),
    ];
    all.extend(access.proxies.iter().map(|(name, value)| (*name, value.into())));
    all
}

fn start_git(command: &mut Command) -> Result<Child, String> {
    command.spawn().map_err(|error| not_started(&error))
}

fn not_started(error: &std::io::Error) -> String {
    format!("git cannot be started: {error}")
}

/// Whether a call ended well. One that takes too long, or that the user interrupts, is ended.
fn wait_until(
    child: &mut Child,
    deadline: Instant,
    interruption: fn() -> Option<String>,
) -> Result<bool, String> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) => {}
            Err(error) => return Err(error.to_string()),
        }
        let is_late = Instant::now() > deadline;
        let late = is_late.then(|| format!("it took longer than {} s", FETCH_TIME_MAX.as_secs()));
        let stop = interruption().or(late);
        if let Some(why) = stop {
            let _ = child.kill();
            let _ = child.wait();
            return Err(why);
        }
        thread::sleep(PAUSE);
    }
}

/// What git said, in one line without control characters.
fn describe_output(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let words: Vec<&str> = lines.collect();
    let clean = |letter: &char| !letter.is_control();
    let text: String = words.join("; ").chars().filter(clean).take(SAID_MAX).collect();
    if text.is_empty() {
        "git failed without a word".to_owned()
    } else {
        format!("git says: {text}")
    }
}
