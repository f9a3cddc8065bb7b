//! Package directories made to do harm.

use super::craft::{GOOD, Image, package_layer};
use super::{bounded, refused};
use crate::support::{Ran, Scratch, command, command_at};
use std::os::unix::fs::symlink;
use std::process::Command;

/// A directory with a package nobody objects to.
fn good(scratch: &Scratch) {
    scratch.write("package/crossplane.yaml", GOOD);
}

#[test]
fn what_is_no_regular_file_is_neither_read_nor_waited_for() {
    let scratch = Scratch::new();
    good(&scratch);
    let honest = bounded(&scratch, ["build", "package", "-o", "honest.xpkg"]).ok();
    let fifo = scratch.join("package/pipe.yaml");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    symlink(".", scratch.join("package/loop")).unwrap();
    symlink("loop.yaml", scratch.join("package/loop.yaml")).unwrap();
    symlink("/etc/passwd", scratch.join("package/secret.yaml")).unwrap();
    symlink("/", scratch.join("package/root")).unwrap();
    symlink("/dev/zero", scratch.join("package/zero.yaml")).unwrap();
    fs_err::create_dir(scratch.join("package/directory.yaml")).unwrap();
    let built = bounded(&scratch, ["build", "package", "-o", "odd.xpkg"]).ok();
    assert_eq!(built.stdout.replace("odd", "honest"), honest.stdout);
    let bytes = |name: &str| fs_err::read(scratch.join(name)).unwrap();
    assert_eq!(bytes("odd.xpkg"), bytes("honest.xpkg"));
}

#[test]
fn a_directory_without_metadata_to_read_is_refused() {
    let scratch = Scratch::new();
    fs_err::create_dir_all(scratch.join("package/crossplane.yaml")).unwrap();
    refused(&scratch, ["build", "package"], &["no YAML files"]);
    scratch.write("package/other.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n");
    refused(&scratch, ["build", "package"], &["nothing was written"]);
    fs_err::remove_dir(scratch.join("package/crossplane.yaml")).unwrap();
    symlink("/etc/passwd", scratch.join("package/crossplane.yaml")).unwrap();
    refused(&scratch, ["build", "package"], &["nothing was written"]);
}

#[test]
fn a_file_that_may_not_be_read_is_named() {
    let scratch = Scratch::new();
    good(&scratch);
    let secret = scratch.write("package/secret.yaml", "a: b\n");
    // Root reads everything, so somebody else has to try.
    for (path, mode) in [(scratch.path().to_owned(), "755"), (secret, "000")] {
        assert!(Command::new("chmod").arg(mode).arg(path).status().unwrap().success());
    }
    let program = scratch.join("apron");
    // Not copied by this process: programs that other tests are just starting would have it open
    // for writing too, and such a file cannot be run.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_apron")).arg(&program).status();
    assert!(copied.unwrap().success());
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let mut command = command_at(&scratch, "setpriv".as_ref());
    let command = command.args(nobody).arg(program).args(["lint", "package"]);
    let ran: Ran = command.output().unwrap().into();
    let said = ran.failed();
    assert!(said.contains("secret.yaml") && said.contains("ermission denied"), "{said}");
    assert!(said.trim_end().lines().last().unwrap().starts_with("hint: "), "{said}");
}

#[test]
fn files_larger_than_any_package_are_refused_before_they_are_read() {
    let scratch = Scratch::new();
    good(&scratch);
    let line = "a: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n";
    scratch.write("package/large.yaml", line.repeat((70 << 20) / line.len()));
    refused(&scratch, ["build", "package"], &["large.yaml", "document_bytes_max"]);
    let comment = "#xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n";
    scratch.write("package/large.yaml", comment.repeat((70 << 20) / comment.len()));
    bounded(&scratch, ["build", "package"]);
    // A hole costs nothing to make.
    let file = fs_err::File::create(scratch.join("package/large.yaml")).unwrap();
    file.file().set_len(1 << 40).unwrap();
    for verb in ["build", "lint", "inspect"] {
        refused(&scratch, [verb, "package"], &["large.yaml", "package_bytes_max"]);
    }
    fs_err::remove_file(scratch.join("package/large.yaml")).unwrap();
    let file = fs_err::File::create(scratch.write("package/examples/large.yaml", "")).unwrap();
    file.file().set_len(1 << 40).unwrap();
    refused(&scratch, ["build", "package"], &["large.yaml", "package_bytes_max"]);
}

/// What a terminal could take for a command, or a reader for another line.
const ESCAPES: &str =
    "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{8}\u{8}\rfine\nhint: rm -rf /\u{202e}";

/// Whether a text has nothing in it but what we wrote ourselves: lines and plain colours.
#[track_caller]
fn assert_harmless(said: &str) {
    let mut rest = said.to_owned();
    for own in ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[33m", "\u{1b}[36m"] {
        rest = rest.replace(own, "");
    }
    let odd = |it: char| it.is_control() && it != '\n' || it == '\u{202e}';
    assert!(!rest.contains(odd), "{rest:?}");
}

#[test]
fn names_and_texts_cannot_speak_to_the_terminal() {
    let scratch = Scratch::new();
    let run = |words: &[&str]| {
        // As on a terminal: nothing is stripped.
        let ran = command(&scratch).env("CLICOLOR_FORCE", "1").args(words).output().unwrap();
        let said = Ran::from(ran);
        assert!(matches!(said.code, Some(0 | 1)), "{said:?}");
        assert_harmless(&said.all());
        assert!(!said.stderr.lines().any(|line| line.starts_with("hint: rm")), "{}", said.stderr);
        said
    };
    good(&scratch);
    let escaped = ESCAPES.chars().map(|it| match it {
        ' '..='~' => it.to_string(),
        _ => format!("\\u{:04x}", u32::from(it)),
    });
    let quoted = format!("\"{}\"", escaped.collect::<String>());
    scratch.write(&format!("package/{}.yaml", ESCAPES.replace('/', "")), "a: [\n");
    run(&["build", "package"]).failed();
    run(&["lint", "package"]).failed();
    run(&["inspect", "package"]);
    run(&["inspect", &format!("./{ESCAPES}.xpkg")]).failed();
    run(&["inspect", ESCAPES]).failed();
    run(&["build", ESCAPES]).failed();
    run(&["push", ESCAPES]).failed();
    run(&["push", "127.0.0.1:1/a:v1", "-f", ESCAPES]).failed();
    run(&["copy", "a", ESCAPES]).failed();
    let text = format!(
        "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: {quoted}\n  \
         annotations:\n    meta.crossplane.io/description: {quoted}\n    meta.crossplane.io/maintainer: {quoted}\n    \
         meta.crossplane.io/license: {quoted}\nspec:\n  crossplane:\n    version: {quoted}\n  dependsOn:\n  \
         - provider: {quoted}\n    version: {quoted}\n---\napiVersion: {quoted}\nkind: {quoted}\nmetadata:\n  name: {quoted}\n"
    );
    scratch.write("other/crossplane.yaml", &text);
    run(&["build", "other"]);
    Image::base(package_layer(&text)).xpkg(&scratch, "odd.xpkg");
    for words in [
        &["inspect", "odd.xpkg"][..],
        &["inspect", "-o", "tree", "odd.xpkg"],
        &["lint", "odd.xpkg"],
    ] {
        run(words);
    }
    // Programs get the text as it is, in the escapes of their format.
    let json = run(&["inspect", "-o", "json", "odd.xpkg"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["package"]["description"], ESCAPES);
}
