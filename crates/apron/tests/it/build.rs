//! Building: what goes in, what stays out, and that nothing else matters.

use crate::support::{Scratch, apron, apron_as, command, command_at, peer, program};
use std::path::Path;
use std::process::Command;

const META: &str =
    "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: mine\n";

fn composition(name: &str) -> String {
    format!(
        "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata:\n  name: {name}\nspec:\n  compositeTypeRef:\n    apiVersion: example.org/v1\n    kind: X\n  futureField:\n    kept: [1, 2.50, 0x1F, yes]\n"
    )
}

/// The stream inside a package.
fn stream(scratch: &Scratch, package: &str) -> String {
    apron(scratch, ["extract", package, "-o", "stream.gz"]).ok();
    let out = Command::new("gzip").arg("-dc").arg(scratch.join("stream.gz")).output().unwrap();
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn objects_keep_every_letter_the_author_wrote() {
    let scratch = Scratch::new();
    let composition = format!("# why this exists\n{}  # a trailing thought\n", composition("a"));
    scratch.write("src/crossplane.yaml", format!("---\n{META}...\n---\n# nothing here\n---\n"));
    scratch.write("src/z/composition.yml", &composition);
    scratch.write(
        "src/a.yaml",
        format!(
            "\u{feff}{}---\n{}",
            composition.replace(": a\n", ": b\n"),
            composition.replace(": a\n", ": c\n").trim_end()
        ),
    );
    apron(&scratch, ["build", "src", "-o", "p.xpkg"]).ok();
    let b = composition.replace(": a\n", ": b\n");
    let c = composition.replace(": a\n", ": c\n");
    assert_eq!(
        stream(&scratch, "p.xpkg"),
        format!("---\n{META}...\n---\n{b}---\n{}\n---\n{composition}", c.trim_end())
    );
}

#[test]
fn what_goes_in_is_yaml_below_the_root_and_nothing_else() {
    let scratch = Scratch::new();
    scratch.write("src/crossplane.yaml", META);
    scratch.write("src/in.yaml", composition("in"));
    scratch.write("src/deep/er/in.yml", composition("deep"));
    scratch.write("src/examples-of-old/in.yaml", composition("not-an-example"));
    scratch.write(
        "src/examples/claim.yaml",
        "apiVersion: example.org/v1\nkind: X\nmetadata: {name: x}\n",
    );
    scratch.write("src/out.json", "{}");
    scratch.write("src/empty.yaml", "");
    scratch.write("src/comment.yaml", "# only words\n");
    scratch.write("src/ignored/a.yaml", "kind: Nonsense");
    scratch.write("src/kind-config.yaml", "kind: Nonsense");
    scratch.write("outside/secret.yaml", "kind: Secret");
    let link = |target: &str, name: &str| {
        fs_err::os::unix::fs::symlink(scratch.join(target), scratch.join(name)).unwrap();
    };
    link("outside/secret.yaml", "src/link.yaml");
    link("outside", "src/linked");
    let words = ["build", "src", "-o", "p.xpkg", "--ignore", "ignored/,./kind-*.yaml"];
    apron(&scratch, words).ok();
    let text = stream(&scratch, "p.xpkg");
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  name: ")).collect();
    assert_eq!(names, ["mine", "deep", "not-an-example", "in"]);
    let shown = apron(&scratch, ["inspect", "p.xpkg"]).ok().stdout;
    assert!(shown.contains("examples  "), "{shown}");
}

#[test]
fn the_same_input_gives_the_same_bytes_however_it_lies_on_the_disk() {
    let scratch = Scratch::new();
    let names = ["b", "a", "c/d", "c/a", "c-a"];
    let write = |root: &str, names: &mut dyn Iterator<Item = &&str>| {
        scratch.write(&format!("{root}/crossplane.yaml"), META);
        for name in names {
            scratch.write(&format!("{root}/{name}.yaml"), composition(&name.replace('/', ".")));
        }
        scratch.write(&format!("{root}/examples/e.yaml"), "apiVersion: v1\nkind: Secret\n");
    };
    write("one", &mut names.iter());
    write("two/three", &mut names.iter().rev());
    program(&scratch, "find", ["two", "-exec", "touch", "-d", "2001-01-01", "{}", "+"]).ok();
    program(&scratch, "chmod", ["-R", "a+rwx", "two"]).ok();
    apron(&scratch, ["build", "one", "-o", "one.xpkg"]).ok();
    let elsewhere = command(&scratch)
        .current_dir(scratch.join("two/three"))
        .args(["build", "-o", "../../two.xpkg"])
        .output();
    assert!(elsewhere.unwrap().status.success());
    let masked = format!(
        "umask 077 && TZ=Asia/Tokyo RAYON_NUM_THREADS=1 exec {} build one -o three.xpkg",
        env!("CARGO_BIN_EXE_apron")
    );
    let masked = command_at(&scratch, Path::new("sh")).args(["-c", &masked]).output();
    assert!(masked.unwrap().status.success());
    let bytes = |name: &str| fs_err::read(scratch.join(name)).unwrap();
    assert!(bytes("one.xpkg") == bytes("two.xpkg"));
    assert!(bytes("one.xpkg") == bytes("three.xpkg"));
}

#[test]
fn the_file_is_named_as_upstream_names_it() {
    let scratch = Scratch::new();
    scratch.copy_package("provider-nop");
    peer(&scratch, "crossplane", ["xpkg", "build", "-f", "provider-nop"]).ok();
    let named = |scratch: &Scratch| -> String {
        let entries = fs_err::read_dir(scratch.join("provider-nop")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.into_iter().find(|name| name.ends_with(".xpkg")).unwrap()
    };
    // The name upstream gave it is the one we derive from the file's own image.
    let theirs = named(&scratch);
    let file = scratch.join("provider-nop").join(&theirs);
    let digest = plain_digest(&scratch, &file);
    assert_eq!(theirs, format!("provider-nop-{}.xpkg", &digest[..12]));
    fs_err::remove_file(&file).unwrap();
    apron(&scratch, ["build", "provider-nop"]).ok();
    let ours = named(&scratch);
    let digest = plain_digest(&scratch, &scratch.join("provider-nop").join(&ours));
    assert_eq!(ours, format!("provider-nop-{}.xpkg", &digest[..12]));
}

/// The digest of the image in a file as crane sees it, which knows nothing of annotations.
fn plain_digest(scratch: &Scratch, file: &Path) -> String {
    let digest = peer(scratch, "crane", ["digest", "--tarball", file.to_str().unwrap()]).ok();
    digest.stdout.trim().trim_start_matches("sha256:").to_owned()
}

#[test]
fn the_runtime_comes_out_of_a_container_engine() {
    let scratch = Scratch::new();
    scratch.copy_package("provider-nop");
    scratch.write("root/usr/local/bin/provider", "x");
    program(&scratch, "tar", ["-C", "root", "-cf", "root.tar", "."]).ok();
    let append = ["append", "-f", "root.tar", "-t", "example.org/team/runtime:v1", "-o", "r.tar"];
    peer(&scratch, "crane", append).ok();
    let place = scratch.path().display();
    let storage = format!(
        "[storage]\ndriver = \"vfs\"\ngraphroot = \"{place}/graph\"\nrunroot = \"{place}/run\"\n"
    );
    let storage = scratch.write("storage.conf", storage);
    let podman = |words: &[&str]| {
        let mut command = command_at(&scratch, Path::new("podman"));
        command.env("CONTAINERS_STORAGE_CONF", &storage).args(words).output().unwrap()
    };
    assert!(podman(&["load", "-i", "r.tar"]).status.success());
    let built = command(&scratch)
        .env("CONTAINERS_STORAGE_CONF", &storage)
        .args(["build", "provider-nop", "-o", "p.xpkg"])
        .args(["--embed-runtime-image", "example.org/team/runtime:v1"])
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
    let shown = apron(&scratch, ["inspect", "p.xpkg", "-o", "json"]).ok().stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["image"]["layers"].as_array().unwrap().len(), 2);
    let missing = command(&scratch)
        .env("CONTAINERS_STORAGE_CONF", &storage)
        .args(["build", "provider-nop", "--embed-runtime-image", "example.org/no/such:v1"])
        .output()
        .unwrap();
    let words = String::from_utf8(missing.stderr).unwrap();
    assert!(words.contains("podman says:") && words.contains("hint:"), "{words}");
}

#[test]
fn x42_the_readme_is_shown_to_people_and_to_programs() {
    let scratch = Scratch::new();
    let readme = "# Mine\n\nWhat it does.\n";
    let meta = serde_json::json!({
        "apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Configuration",
        "metadata": {"name": "mine", "annotations": {"meta.crossplane.io/readme": readme}},
    });
    scratch.write("src/crossplane.yaml", meta.to_string());
    apron(&scratch, ["build", "src", "-o", "p.xpkg"]).ok();
    let shown = apron(&scratch, ["inspect", "p.xpkg"]).ok().stdout;
    assert!(shown.contains("\nreadme\n  # Mine\n  \n  What it does.\n"), "{shown}");
    let shown = apron(&scratch, ["inspect", "p.xpkg", "-o", "json"]).ok().stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["package"]["readme"], readme.trim_end());
}

#[test]
fn warnings_fail_only_when_told_to() {
    let scratch = Scratch::new();
    scratch.write("src/crossplane.yaml", META);
    scratch.write("src/c.yaml", composition("c"));
    let lenient = apron(&scratch, ["build", "src", "-o", "p.xpkg"]).ok();
    assert!(lenient.stderr.contains("warning:"), "{}", lenient.stderr);
    let strict = apron(&scratch, ["build", "src", "-o", "q.xpkg", "--strict"]).failed();
    assert!(strict.contains("1 warning; nothing was written"), "{strict}");
    assert!(!scratch.join("q.xpkg").exists());
    apron(&scratch, ["lint", "src"]).ok();
    apron(&scratch, ["lint", "--strict", "src"]).failed();
}

/// The findings of a run, each without its hint.
fn findings(said: &str) -> Vec<&str> {
    said.lines().filter(|line| line.contains("ning: ") && line.ends_with(']')).collect()
}

#[test]
fn nothing_is_left_out_of_a_package_without_a_word() {
    use std::os::unix::ffi::OsStrExt;
    let scratch = Scratch::new();
    scratch.write("src/crossplane.yaml", META);
    scratch.write("outside/a.yaml", composition("a"));
    scratch.write("src/b.txt", composition("b"));
    let link = |target: &str, name: &str| {
        fs_err::os::unix::fs::symlink(target, scratch.join(name)).unwrap();
    };
    link("../outside/a.yaml", "src/a.yaml");
    link("b.txt", "src/b.yaml");
    link("../outside", "src/directory");
    link("nowhere", "src/gone.yaml");
    link("b.txt", "src/b-again.txt");
    link("b.txt", "src/ignored.yaml");
    let deep = vec!["d"; 65].join("/");
    scratch.write(&format!("src/{deep}/c.yaml"), composition("c"));
    scratch.write("src/examples/e.yaml", "apiVersion: v1\nkind: Secret\n");
    link("e.yaml", "src/examples/f.yaml");
    let odd = scratch.join("src").join(std::ffi::OsStr::from_bytes(b"\xff.yaml"));
    fs_err::write(odd, composition("d")).unwrap();
    let expected = [
        "a.yaml: warning: is a link, and links are not followed [file-skipped]".to_owned(),
        "b.yaml: warning: is a link, and links are not followed [file-skipped]".to_owned(),
        format!("{deep}: warning: lies too deep, and its files are not read [file-skipped]"),
        "directory: warning: is a link to a directory, and such links are not followed [file-skipped]".to_owned(),
        "examples/f.yaml: warning: is a link, and links are not followed [file-skipped]".to_owned(),
        "gone.yaml: warning: is a link that leads to no file [file-skipped]".to_owned(),
        "\u{fffd}.yaml: warning: has a name that is not UTF-8, and is not read [file-skipped]".to_owned(),
    ];
    let ignore = ["--ignore", "ignored.yaml"];
    let built = apron(&scratch, ["build", "src", "-o", "p.xpkg"].iter().chain(&ignore)).ok();
    assert_eq!(findings(&built.stderr), expected);
    let mut checking = command(&scratch);
    checking.current_dir(scratch.join("src")).arg("lint").args(ignore);
    let linted = String::from_utf8(checking.output().unwrap().stdout).unwrap();
    assert_eq!(findings(&linted), expected);
    apron(&scratch, ["build", "src", "--strict"].iter().chain(&ignore)).failed();
}

#[test]
fn links_to_files_inside_the_root_are_followed_when_asked() {
    let scratch = Scratch::new();
    scratch.write("src/store/meta", META);
    scratch.write("src/store/a", composition("a"));
    scratch.write("store/b", composition("b"));
    let link = |target: &str, name: &str| {
        fs_err::os::unix::fs::symlink(target, scratch.join(name)).unwrap();
    };
    link("store/meta", "src/crossplane.yaml");
    link("store/a", "src/a.yaml");
    link("../store/b", "src/b.yaml");
    let refused = apron(&scratch, ["build", "src"]).failed();
    let why = "crossplane.yaml: error: is a link, and links are not followed [metadata-place]";
    assert!(refused.contains(why) && !refused.contains("has no metadata"), "{refused}");
    apron(&scratch, ["lint", "src"]).failed();
    let names = |words: &[&str]| {
        let words = ["build", "-o", "p.xpkg", "src"].iter().chain(words);
        let built = apron(&scratch, words).ok();
        let text = stream(&scratch, "p.xpkg");
        let names = text.lines().filter_map(|line| line.strip_prefix("  name: "));
        (names.collect::<Vec<_>>().join(" "), built.stderr)
    };
    let (found, said) = names(&["--follow-links"]);
    assert_eq!(found, "mine a");
    assert!(said.contains("b.yaml: warning: is a link that leads out of the package"), "{said}");
    assert_eq!(names(&["--follow-links=store"]).0, "mine a b");
}

#[test]
fn metadata_is_in_crossplane_yaml_at_the_root_unless_another_file_is_named() {
    let scratch = Scratch::new();
    scratch.write("src/sub/mine.yaml", META);
    scratch.write("src/a.yaml", composition("a"));
    for verb in ["build", "lint"] {
        let said = apron(&scratch, [verb, "src"]).failed();
        let why = "sub/mine.yaml:1:1: error: package metadata belongs in crossplane.yaml [metadata-place]";
        assert!(said.contains(why), "{said}");
        assert!(said.contains("hint: move it there, or name this file: --metadata sub/mine.yaml"));
    }
    apron(&scratch, ["lint", "src", "--metadata", "./sub/mine.yaml"]).ok();
    apron(&scratch, ["build", "src", "--metadata", "sub/mine.yaml", "-o", "p.xpkg"]).ok();
    assert!(stream(&scratch, "p.xpkg").starts_with(&format!("---\n{META}---\n")));
    let elsewhere = apron(&scratch, ["lint", "src", "--metadata", "a.yaml"]).failed();
    assert!(elsewhere.contains("package metadata belongs in a.yaml"), "{elsewhere}");
    // Upstream takes it from anywhere, and so do its words.
    apron_as(&scratch, "crossplane", ["xpkg", "build", "-f", "src", "-o", "q.xpkg"]).ok();
}
