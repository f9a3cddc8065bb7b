//! Packages out of Git: a real `git`, a real server of its own, and repositories made to do harm.

use crate::support::{Ran, Scratch, apron, command, command_at};
use serde_json::Value as Json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const METADATA: &str =
    "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: app\n";

/// `git http-backend` behind a listener, for everything below a directory.
pub(crate) struct GitServer {
    pub(crate) address: String,
    root: PathBuf,
    scratch: Scratch,
}

impl GitServer {
    pub(crate) fn start() -> Self {
        let scratch = Scratch::new();
        let root = scratch.join("served");
        fs_err::create_dir_all(&root).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let served = root.clone();
        // It ends with the process; a listener cannot be told to.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = served.clone();
                std::thread::spawn(move || answer(stream, &served));
            }
        });
        Self { address, root, scratch }
    }

    /// Runs git in the work tree of a repository.
    fn git(&self, repository: &str, words: &[&str]) -> Ran {
        let mut git = command_at(&self.scratch, Path::new("git"));
        git.current_dir(self.scratch.join(repository));
        for who in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{who}_NAME"), "a")
                .env(format!("GIT_{who}_EMAIL"), "a@example.org");
        }
        git.args(words).output().unwrap().into()
    }

    /// Makes a repository, whose work tree has these files, and serves it.
    pub(crate) fn make(&self, repository: &str, files: &[(&str, &str)]) -> String {
        fs_err::create_dir_all(self.scratch.join(repository)).unwrap();
        self.git(repository, &["init", "--quiet", "--initial-branch=main"]).ok();
        let bare = self.root.join(format!("{repository}.git"));
        fs_err::create_dir_all(bare.parent().unwrap()).unwrap();
        let bare = bare.display().to_string();
        self.git(repository, &["init", "--quiet", "--bare", "--initial-branch=main", &bare]).ok();
        self.git(repository, &["remote", "add", "origin", &bare]).ok();
        self.commit(repository, files)
    }

    /// Commits files and publishes them; gives the commit.
    pub(crate) fn commit(&self, repository: &str, files: &[(&str, &str)]) -> String {
        for (name, text) in files {
            self.scratch.write(&format!("{repository}/{name}"), text);
            self.git(repository, &["add", name]).ok();
        }
        self.git(repository, &["commit", "--quiet", "-m", "x"]).ok();
        self.publish(repository)
    }

    fn publish(&self, repository: &str) -> String {
        self.git(repository, &["push", "--quiet", "--follow-tags", "origin", "HEAD:main"]).ok();
        self.git(repository, &["rev-parse", "HEAD"]).ok().stdout.trim().to_owned()
    }

    /// How a package of a repository is named.
    pub(crate) fn source(&self, rest: &str) -> String {
        format!("git+http://{}/{rest}", self.address)
    }
}

/// Answers one request, as a web server with CGI does.
fn answer(mut stream: TcpStream, root: &Path) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap_or_default();
    let mut words = line.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut backend = Command::new("git");
    backend.arg("http-backend").env("GIT_PROJECT_ROOT", root).env("GIT_HTTP_EXPORT_ALL", "1");
    backend.env("REQUEST_METHOD", method).env("PATH_INFO", path).env("QUERY_STRING", query);
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).unwrap_or_default() < 3 {
            break;
        }
        let (name, value) = header.trim_end().split_once(": ").unwrap_or((header.trim_end(), ""));
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or_default(),
            "content-type" => drop(backend.env("CONTENT_TYPE", value)),
            "content-encoding" => drop(backend.env("HTTP_CONTENT_ENCODING", value)),
            "git-protocol" => drop(backend.env("GIT_PROTOCOL", value)),
            _ => {}
        }
    }
    if let Some(elsewhere) = target.strip_prefix("/moved/") {
        let head = format!("HTTP/1.1 302 Found\r\nLocation: /team/{elsewhere}\r\n");
        let _ = write!(stream, "{head}Content-Length: 0\r\nConnection: close\r\n\r\n");
        return;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap_or_default();
    backend.env("CONTENT_LENGTH", length.to_string());
    let mut child = backend.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(&body);
    let output = child.wait_with_output().unwrap().stdout;
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(output.len());
    let head = String::from_utf8_lossy(&output[..end]).into_owned();
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let _ = write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\n{head}\r\n\r\n");
    let _ = stream.write_all(output.get(end + 4..).unwrap_or_default());
}

/// A composition that differs by its name.
pub(crate) fn composition(name: &str) -> String {
    format!(
        "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata:\n  name: {name}\n\
         spec:\n  compositeTypeRef:\n    apiVersion: e.example.org/v1\n    kind: XApp\n  \
         mode: Pipeline\n  pipeline: []\n"
    )
}

fn built(scratch: &Scratch, words: &[&str]) -> (Json, String) {
    let ran = apron(scratch, [&["build"], words, &["--output", "json"]].concat()).ok();
    (serde_json::from_str(&ran.stdout).unwrap(), ran.stderr)
}

#[test]
fn a_package_is_built_from_git_as_from_its_directory() {
    let server = GitServer::start();
    let one = composition("one");
    let files = [
        ("packages/app/crossplane.yaml", METADATA),
        ("packages/app/apis/one.yaml", one.as_str()),
        ("packages/app/examples/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
        ("packages/app/main.go", "package main\n"),
        ("README.md", "# no part of it\n"),
    ];
    server.make("team/platform", &files);
    server.git("team/platform", &["tag", "-a", "-m", "x", "v1.0.0"]).ok();
    let commit = server.publish("team/platform");
    let scratch = Scratch::new();
    let directory = server.scratch.join("team/platform/packages/app");
    let (here, _) = built(&scratch, &[directory.to_str().unwrap(), "-o", "here.xpkg"]);
    for name in ["", "@main", "@v1.0.0", &format!("@{commit}")] {
        let source = server.source(&format!("team/platform.git//packages/app{name}"));
        let (there, _) = built(&scratch, &[&source, "-o", "there.xpkg"]);
        assert_eq!(there["digest"], here["digest"], "{source}");
        assert_eq!(there["commit"], commit.as_str(), "{source}");
    }
    // A branch moves, a commit does not; and nobody's submodule is fetched.
    let module = format!("160000,{commit},packages/app/module");
    server.git("team/platform", &["update-index", "--add", "--cacheinfo", &module]).ok();
    let two = composition("two");
    server.commit("team/platform", &[("packages/app/apis/two.yaml", &two)]);
    let source = |name: &str| server.source(&format!("team/platform.git//packages/app@{name}"));
    let (moved, said) = built(&scratch, &[&source("main"), "-o", "there.xpkg"]);
    assert_eq!(moved["objects"], 2);
    assert!(said.contains("the submodule module is not followed"), "{said}");
    let (stays, _) = built(&scratch, &[&source(&commit), "-o", "there.xpkg"]);
    assert_eq!(stays["digest"], here["digest"]);
    // Without -o it lies where somebody is, not where it was built.
    let text = apron(&scratch, ["build", &source(&commit)]).ok().stdout;
    assert!(text.contains(&format!("  commit  {commit}")), "{text}");
    let file = text.lines().find_map(|line| line.strip_prefix("  file    ")).unwrap();
    assert!(scratch.join(file).is_file() && !file.contains('/'), "{text}");
}

#[test]
fn what_git_could_be_made_to_do_is_refused() {
    let server = GitServer::start();
    server.make("team/sound", &[("crossplane.yaml", METADATA)]);
    let scratch = Scratch::new();
    let mark = scratch.join("made");
    let touch = format!("touch {}", mark.display());
    let refused = |source: &str, expect: &str| {
        let said = apron(&scratch, ["build", source, "-o", "p.xpkg"]).failed();
        assert!(said.contains("hint:") && said.contains(expect), "{source}: {said}");
        assert!(!mark.exists() && !scratch.join("p.xpkg").exists(), "{source}");
    };
    let is_none = "is not a package in Git";
    refused(&format!("git+ext::sh -c '{touch}'"), is_none);
    refused(
        &format!("git+http://{}/team/sound.git@--upload-pack={touch}", server.address),
        is_none,
    );
    refused("git+file:///etc@main", is_none);
    refused("git+ssh://127.0.0.1/a@main", is_none);
    refused("git+http://example.org/a@main", is_none);
    refused("git+https://user:password@example.org/a@main", is_none);
    refused(&server.source("team/sound.git//../..@main"), is_none);
    refused(&server.source("team/sound.git@nowhere"), "cannot fetch nowhere");
    refused(&server.source("team/none.git@main"), "cannot fetch main");
    refused(&server.source("team/sound.git//packages@main"), "no such directory");
    refused(&server.source("moved/sound.git@main"), "cannot fetch main");
    let absent = "0123456789abcdef0123456789abcdef01234567";
    refused(&server.source(&format!("team/sound.git@{absent}")), "cannot fetch 0123");
    // A user's own configuration takes no part.
    let evil =
        format!("[core]\n\tsshCommand = {touch}\n\tfsmonitor = {touch}\n[url \"ext::{touch}\"]\n");
    scratch.write(".gitconfig", format!("{evil}\tinsteadOf = http://{}/\n", server.address));
    apron(&scratch, ["build", &server.source("team/sound.git@main"), "-o", "p.xpkg"]).ok();
    assert!(!mark.exists());
    // Without git there is a word about it.
    let mut without = command(&scratch);
    without.env("PATH", "/nowhere").args(["build", &server.source("team/sound.git@main")]);
    let said = Ran::from(without.output().unwrap()).failed();
    assert!(said.contains("there is no `git` on the PATH"), "{said}");
}

#[test]
fn a_repository_that_is_small_and_has_a_billion_files_is_refused() {
    let server = GitServer::start();
    server.make("team/bomb", &[("crossplane.yaml", METADATA)]);
    let repository = "team/bomb";
    let make_tree = |kind: &str, mode: &str, object: &str, end: &str| {
        let lines: Vec<String> =
            (0..10).map(|n| format!("{mode} {kind} {object}\td{n}{end}\n")).collect();
        let lines = lines.concat();
        let list = server.scratch.write("lines", lines);
        let words = format!("git mktree < {}", list.display());
        let mut shell = command_at(&server.scratch, Path::new("sh"));
        shell.current_dir(server.scratch.join(repository)).args(["-c", &words]);
        Ran::from(shell.output().unwrap()).ok().stdout.trim().to_owned()
    };
    let object = server.git(repository, &["rev-parse", "HEAD:crossplane.yaml"]).ok();
    let mut tree = make_tree("blob", "100644", object.stdout.trim(), ".yaml");
    for _ in 0..8 {
        tree = make_tree("tree", "040000", &tree, "");
    }
    let commit = server.git(repository, &["commit-tree", "-m", "x", &tree]).ok().stdout;
    server.git(repository, &["reset", "--soft", commit.trim()]).ok();
    server.git(repository, &["push", "--quiet", "--force", "origin", "HEAD:main"]).ok();
    let scratch = Scratch::new();
    let said = apron(&scratch, ["build", &server.source("team/bomb.git@main")]).failed();
    assert!(said.contains("it has more than 100000 files"), "{said}");
}
