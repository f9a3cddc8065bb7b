//! A reader at a terminal who has this machine and no network, and types what a page says into a
//! shell. Servers that a page starts run on until the page is over; ports are any that are free.

use super::page::{PageStep, page_steps};
use crate::readme::typed::Server;
use crate::readme::{Shown, assert_shown, repository};
use crate::support::{Scratch, linked, peer_path};
use regex::Regex;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What begins a line that starts a server, and the last thing that it says before it serves.
const SERVERS: [(&str, &str); 2] =
    [("apron up", "stop with Ctrl-C"), ("apron registry serve", "  stop  Ctrl-C")];

/// The reader, where they are, and what runs.
pub(super) struct Typist {
    scratch: Scratch,
    place: PathBuf,
    variables: Vec<(String, String)>,
    servers: Vec<Server>,
    /// What pages call an address, and what it is here.
    addresses: Vec<(String, String)>,
    kubectl: PathBuf,
    typed: usize,
}

impl Typist {
    pub(super) fn new() -> Self {
        let scratch = Scratch::new();
        linked(&scratch, "apron");
        scratch.copy_package_from(&repository().join("examples"), "examples");
        let place = scratch.path().to_owned();
        let kubectl = peer_path("kubectl");
        let (variables, servers, addresses) = (Vec::new(), Vec::new(), Vec::new());
        Self { scratch, place, variables, servers, addresses, kubectl, typed: 0 }
    }

    /// Follows a page from top to bottom, and says how many lines were typed. With `is_updating`
    /// the page is answered as it should be.
    pub(super) fn follow_page(&mut self, page: &str, is_updating: bool) -> (usize, String) {
        let mut filled = Vec::new();
        for step in page_steps(page) {
            match step {
                PageStep::Write { path, text } => {
                    self.scratch.write(&path, text);
                }
                PageStep::Type { shown, after } => {
                    let printed = self.type_line(&shown);
                    if is_updating && is_unanswered(&shown) {
                        filled.push((after, steady_text(&printed)));
                    } else {
                        assert_shown(&shown, &printed);
                    }
                }
            }
        }
        let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
        for (at, text) in filled.into_iter().rev() {
            lines.splice(at..=at, text.lines().map(str::to_owned));
        }
        (self.typed, lines.join("\n") + "\n")
    }

    /// Types one line, and gives what it printed, with the names that pages have for things here.
    fn type_line(&mut self, shown: &Shown) -> String {
        self.typed += 1;
        let line = self.with_real_names(&shown.command);
        let server = SERVERS.iter().find(|(start, _)| {
            line.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        });
        let is_ended = line.contains("--exit-when-ready") || line.contains("--help");
        if let Some((_, sign)) = server.filter(|_| !is_ended) {
            return self.start_server(&line, sign);
        }
        if let Some((name, value)) = line.strip_prefix("export ").and_then(|it| it.split_once('='))
        {
            let home = self.scratch.path().display().to_string();
            self.variables.push((name.to_owned(), value.replace('~', &home)));
            return String::new();
        }
        self.run_line(&line, shown)
    }

    fn run_line(&mut self, line: &str, shown: &Shown) -> String {
        let note = self.scratch.join(".place");
        let script = format!("{line}\ncode=$?; pwd > '{}'; exit $code", note.display());
        let output = self.shell().args(["-c", &format!("exec 2>&1\n{script}")]).output().unwrap();
        let printed = self.with_page_names(&String::from_utf8_lossy(&output.stdout));
        let is_failure = shown.lines.iter().any(|it| it.contains("error:"));
        let code = output.status.code();
        assert_eq!(code == Some(0), !is_failure, "`{line}` ended with {code:?}:\n{printed}");
        if let Ok(place) = fs_err::read_to_string(&note) {
            self.place = PathBuf::from(place.trim());
        }
        printed
    }

    /// A shell where the reader is, with nothing of this machine's user.
    fn shell(&self) -> Command {
        let mut shell = Command::new("sh");
        let kubectl = self.kubectl.parent().unwrap().display();
        let own = self.scratch.join(".bin");
        let path = format!("{}:{kubectl}:/usr/local/bin:/usr/bin:/bin", own.display());
        shell.current_dir(&self.place).env_clear().stdin(Stdio::null());
        shell.env("HOME", self.scratch.path()).env("PATH", path);
        shell.envs(self.variables.iter().map(|(name, value)| (name, value)));
        shell
    }

    fn start_server(&mut self, line: &str, sign: &str) -> String {
        let is_plane = line.starts_with("apron up");
        let asked = line.split(" --listen ").nth(1).and_then(|rest| rest.split(' ').next());
        let asked = asked.unwrap_or(if is_plane { "127.0.0.1:6443" } else { "127.0.0.1:5000" });
        let line = line.replace(&format!(" --listen {asked}"), "");
        let more = if is_plane { " --registry-listen 127.0.0.1:0" } else { "" };
        let mut shell = self.shell();
        shell.args(["-c", &format!("exec {line} --listen 127.0.0.1:0{more}")]);
        let said = self.scratch.join(format!("said-{}", self.servers.len()));
        let server = Server::start(shell, said, sign);
        let real = |start: &str| server.rest(start).split(' ').next().unwrap().to_owned();
        if is_plane {
            self.addresses.push((asked.to_owned(), real("  API       https://")));
            self.addresses.push(("127.0.0.1:5000".to_owned(), real("  registry  http://")));
        } else {
            self.addresses.push((asked.to_owned(), real("serving http://")));
        }
        let printed = self.with_page_names(&server.text());
        self.servers.push(server);
        printed
    }

    fn with_real_names(&self, text: &str) -> String {
        // Through a mark: what is an address here may be what a page calls another one.
        let marked = self.addresses.iter().enumerate().rev().fold(text.to_owned(), |text, one| {
            let (position, (shown, _)) = one;
            text.replace(shown, &format!("\u{1}{position}\u{1}"))
        });
        self.addresses.iter().enumerate().fold(marked, |text, (position, (_, real))| {
            text.replace(&format!("\u{1}{position}\u{1}"), real)
        })
    }

    fn with_page_names(&self, text: &str) -> String {
        let named = self
            .addresses
            .iter()
            .fold(text.to_owned(), |text, (shown, real)| text.replace(real, shown));
        named.replace(&self.scratch.path().display().to_string(), "~")
    }
}

/// Whether a page says only how a command ends, and not what it prints.
fn is_unanswered(shown: &Shown) -> bool {
    shown.lines == ["?"] || shown.lines == ["error: ?"]
}

/// What was printed, with `…` for what differs from one run to the next.
fn steady_text(printed: &str) -> String {
    let unsteady = [
        (r"\b[0-9a-f]{12,64}\b…?", "…"),
        (r"pass=\S+", "pass=…"),
        (r"apr_\S+", "apr_…"),
        (r"after [0-9.]+ s", "after … s"),
    ];
    unsteady.iter().fold(printed.to_owned(), |text, (pattern, by)| {
        Regex::new(pattern).unwrap().replace_all(&text, *by).into_owned()
    })
}

#[test]
fn what_differs_from_run_to_run_is_left_out() {
    let digest = "0f5e78d3bd34".repeat(5);
    let printed = format!("digest sha256:{digest} after 2.5 s\nlast");
    assert_eq!(steady_text(&printed), "digest sha256:… after … s\nlast");
}

/// A page that shows what is not so fails, whichever line of it that is.
#[test]
fn a_falsified_page_is_noticed() {
    let page = "```yaml title=\"p/crossplane.yaml\"\nkind: Configuration\n```\n\n```console\n\
                $ cd p && cat crossplane.yaml\nkind: Configuration\n$ ls\ncrossplane.yaml\n```\n";
    let (typed, same) = Typist::new().follow_page(page, false);
    assert_eq!((typed, same.as_str()), (2, page));
    for (right, wrong) in [
        ("cat crossplane.yaml\nkind: C", "cat crossplane.yaml\nkind: D"),
        ("$ ls\nc", "$ ls\nd"),
        ("$ ls", "$ ls .."),
        ("$ ls", "$ false"),
    ] {
        let wrong = page.replace(right, wrong);
        let followed = std::panic::catch_unwind(|| Typist::new().follow_page(&wrong, false));
        assert!(followed.is_err(), "{wrong}");
    }
    let unanswered = page.replace("$ ls\ncrossplane.yaml", "$ ls\n?");
    assert_eq!(Typist::new().follow_page(&unanswered, true).1, page);
}
