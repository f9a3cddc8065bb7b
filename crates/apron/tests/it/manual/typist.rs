//! A reader at a terminal who has this machine and no network, and types what a page says into a
//! shell. Servers that a page starts run on until the page is over; ports are any that are free.

use super::page::{PageStep, page_steps};
use super::server::Server;
use crate::readme::{Shown, assert_shown, missing_line, repository};
use crate::support::{Scratch, linked, patiently, peer_path};
use conformance_oci::{Selection, Target};
use regex::Regex;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What begins a line that starts a server, the last thing that it says before it serves, and where it
/// listens if it is not told.
const SERVERS: [(&str, &str, &str); 3] = [
    ("apron up", "stop with Ctrl-C", "127.0.0.1:6443"),
    ("apron apiserver", "Runtime: ", "127.0.0.1:6443"),
    ("apron registry serve", "  stop  Ctrl-C", "127.0.0.1:5000"),
];
/// Commands that are too large to be run within a test: these are looked at.
const LOOKED_AT: [&str; 2] = ["make install", "make dist"];
/// What begins lines about a catalog, which reads what is pushed in its own time.
const FOLLOWERS: [&str; 3] = ["apron which ", "apron explain ", "curl --fail "];
/// What asks a registry everything that its specification says.
const CONFORMANCE: &str = "cargo run -p apron-conformance-oci -- ";

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
        let server = SERVERS.iter().find(|(start, ..)| {
            line.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        });
        let ends = ["--exit-when-ready", "--help", " export "];
        let is_ended = ends.iter().any(|word| line.contains(word));
        if let Some((start, sign, usual)) = server.filter(|_| !is_ended) {
            return self.start_server(&line, (*start, *sign, *usual));
        }
        if LOOKED_AT.iter().any(|one| line.starts_with(one)) {
            look_at_target(&line);
            return String::new();
        }
        if let Some(address) = line.strip_prefix(CONFORMANCE) {
            check_conformance(address);
            return String::new();
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
        let type_it = || {
            let typed = self.shell().args(["-c", &format!("exec 2>&1\n{script}")]).output();
            let typed = typed.unwrap();
            let printed = self.with_page_names(&String::from_utf8_lossy(&typed.stdout));
            (typed.status.code(), printed)
        };
        let (code, printed) = if FOLLOWERS.iter().any(|start| line.starts_with(start)) {
            patiently(|| {
                let (code, printed) = type_it();
                let is_so = is_unanswered(shown) || missing_line(shown, &printed).is_none();
                if code == Some(0) && is_so { Ok((code, printed)) } else { Err(printed) }
            })
        } else {
            type_it()
        };
        let is_failure = shown.lines.iter().any(|it| it.contains("error:"));
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

    fn start_server(&mut self, line: &str, (start, sign, usual): (&str, &str, &str)) -> String {
        let asked = line.split(" --listen ").nth(1).and_then(|rest| rest.split(' ').next());
        let asked = asked.unwrap_or(usual);
        let line = line.replace(&format!(" --listen {asked}"), "");
        let more = if start == "apron up" { " --registry-listen 127.0.0.1:0" } else { "" };
        let mut shell = self.shell();
        shell.args(["-c", &format!("exec {line} --listen 127.0.0.1:0{more}")]);
        let said = self.scratch.join(format!("said-{}", self.servers.len()));
        let server = Server::start(shell, said, sign);
        let real = |start: &str| server.rest(start).split(' ').next().unwrap().to_owned();
        match start {
            "apron up" => {
                self.addresses.push((asked.to_owned(), real("  API       https://")));
                self.addresses.push(("127.0.0.1:5000".to_owned(), real("  registry  http://")));
            }
            "apron apiserver" => {
                let address = real("Serving the Kubernetes API on https://");
                self.addresses.push((asked.to_owned(), address));
            }
            _ => self.addresses.push((asked.to_owned(), real("serving http://"))),
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

/// A target of make that is there, and whose recipe can be made.
fn look_at_target(line: &str) {
    let words = line.split(' ').skip(1);
    let made = Command::new("make").arg("--dry-run").args(words).current_dir(repository()).output();
    let made = made.unwrap();
    assert!(made.status.success() && !made.stdout.is_empty(), "{line}: {made:?}");
}

/// Asks a registry everything that its specification says.
fn check_conformance(address: &str) {
    let manifest = fs_err::read_to_string(repository().join("conformance/oci/Cargo.toml")).unwrap();
    assert!(manifest.contains("name = \"apron-conformance-oci\""), "{manifest}");
    let mut target = Target::new(address.to_owned());
    target.timeout = Duration::from_secs(600);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let ran = runtime.block_on(conformance_oci::run(&target, &Selection::default())).unwrap();
    assert_eq!(ran.summary().failed, 0, "{}", ran.to_text());
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
