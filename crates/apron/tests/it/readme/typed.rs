//! The README, typed as printed from top to bottom, by a reader who has this machine and no network:
//! what it calls `registry.example.org` is the registry of the control plane that it starts first,
//! and ports are any that are free. Each command is played, or its place in the table of what is not
//! says why.

use super::{Shown, assert_shown, commands, repository};
use crate::registry::Served;
use crate::support::{Ran, Scratch, command, until};
use conformance_oci::{Selection, Target};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Commands that are too large to be typed within a test: these are looked at, not run.
const LOOKED_AT: [&str; 5] = ["make demo", "make test", "make docs", "make install", "make dist"];

/// A server that ends with the test.
pub(crate) struct Server {
    child: Child,
    said: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts one, and waits until it has said something.
    pub(crate) fn start(mut command: Command, said: PathBuf, sign: &str) -> Self {
        let file = fs_err::File::create(&said).unwrap();
        let copy = file.try_clone().unwrap();
        command.stdout(Stdio::from(file.into_file())).stderr(Stdio::from(copy.into_file()));
        let mut server = Self { child: command.spawn().unwrap(), said };
        until(&format!("it says `{sign}`"), || {
            let text = server.text();
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended with {ended:?} after it said:\n{text}");
            text.lines().any(|line| line.starts_with(sign)).then_some(())
        });
        server
    }

    pub(crate) fn text(&self) -> String {
        fs_err::read_to_string(&self.said).unwrap()
    }

    /// What follows in the line that begins so.
    pub(crate) fn rest(&self, start: &str) -> String {
        let text = self.text();
        let rest = text.lines().find_map(|line| line.strip_prefix(start));
        rest.unwrap_or_else(|| panic!("`{start}` is not in\n{text}")).to_owned()
    }
}

/// The reader, the directory where they are, and what runs.
struct Reader {
    scratch: Scratch,
    place: PathBuf,
    /// The control plane, its kubeconfig and its registry.
    plane: Option<(Server, String, String)>,
    /// The registry of their own.
    served: Option<Served>,
    played: usize,
}

impl Reader {
    fn new() -> Self {
        let scratch = Scratch::new();
        let place = scratch.path().to_owned();
        let reader = Self { scratch, place, plane: None, served: None, played: 0 };
        reader.scratch.copy_package_from(&repository().join("examples"), "examples");
        reader
    }

    /// The binary, where the reader is and with the kubeconfig they were told to export.
    fn apron(&self) -> Command {
        let mut command = command(&self.scratch);
        command.current_dir(&self.place);
        if let Some((_, kubeconfig, _)) = &self.plane {
            command.env("KUBECONFIG", kubeconfig);
        }
        command
    }

    fn run(&self, words: &str) -> Ran {
        self.apron().args(split_words(words)).output().unwrap().into()
    }

    fn registry(&self) -> &str {
        self.plane.as_ref().map(|(_, _, registry)| registry.as_str()).unwrap()
    }

    /// Types one line.
    fn type_line(&mut self, shown: &Shown) {
        let line = shown.command.as_str();
        self.played += 1;
        if LOOKED_AT.iter().any(|one| line.starts_with(one)) {
            look_at(line);
        } else if line.starts_with("cargo run -p apron-conformance-oci -- ") {
            self.check_conformance();
        } else if line == "apron up examples/platform" {
            self.start_plane(shown);
        } else if let Some(rest) = line.strip_prefix("apron registry serve") {
            self.serve_registry(rest);
        } else if let Some(words) = line.strip_prefix("apron apiserver ") {
            self.serve_api(words);
        } else if line == "apron lint" {
            lint_mistakes(shown);
        } else if let Some(words) = line.strip_prefix("apron ") {
            self.type_command(words, shown);
        } else {
            panic!("nothing says how `{line}` is typed: add it to readme/typed.rs");
        }
    }

    fn start_plane(&mut self, shown: &Shown) {
        let mut command = self.apron();
        command.args(["up", "examples/platform"]);
        command.args(["--listen", "127.0.0.1:0", "--registry-listen", "127.0.0.1:0"]);
        let said = self.scratch.join("up.txt");
        let server = Server::start(command, said, "ready after ");
        let kubeconfig = server.rest("  kubectl   export KUBECONFIG=");
        let registry = server.rest("  registry  http://");
        let api = server.rest("  API       https://");
        let home = self.scratch.path().display().to_string();
        let text = server.text().replace(&registry, "127.0.0.1:5000");
        let text = text.replace(&api, "127.0.0.1:6443").replace(&home, "~");
        assert_shown(shown, &text);
        self.plane = Some((server, kubeconfig, registry));
        self.stand_in_for_the_world();
    }

    /// The function that packages of `apron init` need comes from a registry elsewhere.
    fn stand_in_for_the_world(&self) {
        let metadata = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata:\n  \
                        name: function-auto-ready\n";
        self.scratch.write("world/crossplane.yaml", metadata);
        self.run("build world -o world.xpkg").ok();
        let name = "xpkg.crossplane.io/crossplane-contrib/function-auto-ready:v0.2.0";
        self.run(&format!("push -f world.xpkg {}/{name}", self.registry())).ok();
    }

    /// A command that ends, held against what the page shows of it.
    fn type_command(&mut self, words: &str, shown: &Shown) {
        let (words, next) = words.split_once(" && cd ").unwrap_or((words, ""));
        // Clusters know the registry by its name; clients of this machine by its address.
        let own = format!("{}/registry.example.org/", self.registry());
        let is_for_clusters = words.starts_with("install ") || words.starts_with("manager ");
        let typed = if is_for_clusters {
            words.replace("--wait 2m", "--wait 15m")
        } else {
            words.replace("registry.example.org/", &own)
        };
        let ran = self.run(&typed).ok();
        assert_shown(shown, &ran.all().replace(&own, "registry.example.org/"));
        self.place = self.place.join(next);
    }

    fn serve_registry(&mut self, rest: &str) {
        let words: Vec<&str> = rest.split_whitespace().collect();
        if let Some(mirror) = words.iter().position(|word| *word == "--mirror") {
            let scratch = Scratch::new();
            let served = Served::start_with(&scratch, &words[mirror..]);
            assert_eq!(served.get("/v2/").0, 200);
            return;
        }
        assert_eq!(words, ["--data-dir", "packages"]);
        let served = Served::start_in(&self.scratch, "packages");
        let there = served.reference("team/my-platform:v0.1.0");
        self.run(&format!("push {there}")).ok();
        self.served = Some(served);
    }

    fn check_conformance(&self) {
        let manifest = repository().join("conformance/oci/Cargo.toml");
        let manifest = fs_err::read_to_string(manifest).unwrap();
        assert!(manifest.contains("name = \"apron-conformance-oci\""), "{manifest}");
        let mut target = Target::new(format!("http://{}", self.served.as_ref().unwrap().address()));
        target.timeout = Duration::from_secs(600);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let ran = runtime.block_on(conformance_oci::run(&target, &Selection::default())).unwrap();
        assert_eq!(ran.summary().failed, 0, "{}", ran.to_text());
    }

    fn serve_api(&self, words: &str) {
        let mut command = self.apron();
        command.arg("apiserver").args(split_words(words)).args(["--listen", "127.0.0.1:0"]);
        let kubeconfig = self.place.join("control-plane/kubeconfig");
        let _server = Server::start(command, self.scratch.join("api.txt"), "");
        let kubectl = crate::support::peer_path("kubectl");
        until("the API server answers", || {
            let mut ask = Command::new(&kubectl);
            ask.env_clear().env("HOME", self.scratch.path()).env("KUBECONFIG", &kubeconfig);
            let answer = ask.args(["get", "--raw", "/readyz"]).output().unwrap();
            (answer.status.success() && answer.stdout == b"ok").then_some(())
        });
    }

    /// Types what the page has in the middle of a sentence.
    fn type_inline(&self, page: &str, line: &str, words: &str, input: &str) -> Ran {
        assert!(page.contains(&format!("`{line}`")), "the page does not say `{line}`");
        let mut command = self.apron();
        command.current_dir(self.scratch.path()).args(split_words(words));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap().into()
    }
}

/// The page does not show the file with the mistakes.
fn lint_mistakes(shown: &Shown) {
    let scratch = Scratch::new();
    scratch.write("crossplane.yaml", super::MISTAKES);
    assert_shown(shown, &crate::support::apron(&scratch, ["lint"]).failed());
}

/// Words as a shell reads them, as far as pages need it: quotes keep what they hold.
fn split_words(line: &str) -> Vec<String> {
    let quoted = line.split('\'').enumerate();
    let words = quoted.flat_map(|(position, part)| match position % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

/// A target of make that is there, and whose recipe can be made.
fn look_at(line: &str) {
    let words = line.split(' ').skip(1);
    let made = Command::new("make").arg("--dry-run").args(words).current_dir(repository()).output();
    let made = made.unwrap();
    assert!(made.status.success() && !made.stdout.is_empty(), "{line}: {made:?}");
}

#[test]
fn the_readme_is_typed_from_top_to_bottom() {
    let page = fs_err::read_to_string(repository().join("README.md")).unwrap();
    let mut reader = Reader::new();
    let lines = commands(&page);
    assert!(lines.len() >= 17, "{} commands are found", lines.len());
    for shown in &lines {
        reader.type_line(shown);
    }
    assert_eq!(reader.played, lines.len());
    // What stands in sentences about the registry: its first user closes it, and a robot gets a key.
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let served = reader.served.as_ref().unwrap();
    reader.place = reader.scratch.join("my-platform");
    let there = served.reference("team/my-platform:v0.2.0");
    reader.run(&format!("push {there}")).ok();
    let add = "apron registry user add NAME --data-dir packages";
    let words = "registry user add ada --data-dir packages";
    reader.type_inline(&page, add, words, "ada's password\n").ok();
    let refused = reader.run(&format!("push {}", served.reference("team/my-platform:v0.3.0")));
    assert!(refused.failed().contains("hint:"));
    let key = "apron registry user key ci --data-dir packages --repositories 'team/**' \
               --actions pull,push --expires 90";
    let given = reader.type_inline(&page, key, &key["apron ".len()..], "").ok();
    assert!(given.stdout.contains("apr_"), "{}", given.all());
    let which = format!("which App --registry {}", served.address());
    let found = reader.type_inline(&page, "apron which Bucket --registry HOST", &which, "");
    assert!(found.all().contains("App"), "{}", found.all());
}
