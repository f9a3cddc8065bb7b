//! A registry that knows its users, met by everybody's clients.

#![expect(clippy::unwrap_used, reason = "helpers of tests may die like tests do")]

use crate::registry::{Served, ask, package};
use crate::support::{Ran, Scratch, apron, command, peer, program, until};
use std::io::Write as _;
use std::process::Stdio;

/// Runs apron with something on its standard input.
fn apron_with(scratch: &Scratch, input: &str, arguments: &[&str]) -> Ran {
    let mut command = command(scratch);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

fn user(scratch: &Scratch, words: &[&str]) -> Ran {
    let words = [&["registry", "user", "--data-dir", "data"], words].concat();
    apron_with(scratch, "ada's password\n", &words)
}

#[test]
fn every_client_signs_in() {
    let scratch = Scratch::new();
    let file = package(&scratch);
    assert_eq!(user(&scratch, &["add", "ada"]).ok().stdout, "added ada to data\n");
    let key = user(&scratch, &["key", "robot"]).ok().stdout.trim().to_owned();
    user(&scratch, &["allow", "ada", "secret/**", "pull,push"]).ok();
    let served = Served::start(&scratch);
    let (there, secret) = (served.reference("team/nop:v1.0.0"), served.reference("secret/nop:v1"));
    // Nobody pushes without a name, and apron says so.
    apron(&scratch, ["push", "-f", file, &there]).failed();
    let login = ["login", "--username", "ada", "--password-stdin", served.address()];
    apron_with(&scratch, "wrong password\n", &login).failed();
    apron_with(&scratch, "ada's password\n", &login).ok();
    apron(&scratch, ["push", "-f", file, &there]).ok();
    apron(&scratch, ["push", "-f", file, &secret]).ok();
    apron(&scratch, ["pull", &secret, "-f", "secret.xpkg"]).ok();
    // crane finds the same credentials.
    let copied = served.reference("team/copied:v1");
    peer(&scratch, "crane", ["copy", &secret, &copied]).ok();
    let catalog = peer(&scratch, "crane", ["catalog", served.address()]).ok().stdout;
    assert_eq!(catalog, "secret/nop\nteam/copied\nteam/nop\n");
    // Without them, what is public can be pulled, and what is not cannot.
    apron(&scratch, ["logout", served.address()]).ok();
    apron(&scratch, ["pull", &there, "-f", "public.xpkg"]).ok();
    apron(&scratch, ["pull", &secret, "-f", "no.xpkg"]).failed();
    peer(&scratch, "crane", ["validate", "--remote", &copied]).ok();
    let login = ["auth", "login", served.address(), "-u", "robot", "-p", &key];
    peer(&scratch, "crane", login).ok();
    let catalog = peer(&scratch, "crane", ["catalog", served.address()]).ok().stdout;
    assert_eq!(catalog, "team/copied\nteam/nop\n");
    assert_ne!(peer(&scratch, "crane", ["digest", &secret]).code, Some(0));
    let skopeo = |credentials: &str, to: &str| {
        let (archive, there) = (format!("docker-archive:{file}"), format!("docker://{to}"));
        let flags = ["--insecure-policy", "copy", "--dest-tls-verify=false", "--dest-creds"];
        program(&scratch, "skopeo", flags.iter().chain(&[credentials, &archive, &there]))
    };
    skopeo("ada:ada's password", &served.reference("secret/skopeo:v1")).ok();
    skopeo(&format!("robot:{key}"), &served.reference("team/skopeo:v1")).ok();
    assert_ne!(skopeo("ada:wrong", &served.reference("team/skopeo:v2")).code, Some(0));
    // It is written a moment after the answer.
    let log = until("the pushes are in the log", || {
        let log = fs_err::read_to_string(scratch.join("data/audit.log")).ok()?;
        let all = log.contains("\"who\":\"ada\"") && log.contains("\"peer\":\"127.0.0.1\"");
        all.then_some(log)
    });
    assert!(!log.contains("password") && !log.contains(&key), "{log}");
}

#[test]
fn users_come_and_go_while_the_registry_runs() {
    let scratch = Scratch::new();
    user(&scratch, &["add", "ada"]).ok();
    let served = Served::start_with(&scratch, &["--private"]);
    assert_eq!(served.get("/v2/team/nop/tags/list").0, 401);
    let key = user(&scratch, &["key", "robot", "--label", "ci"]).ok().stdout.trim().to_owned();
    let head = format!("GET /v2/ HTTP/1.0\r\nAuthorization: Bearer {key}\r\n\r\n");
    let until = |status: u16| {
        let mut answers = (0..5000).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            ask(served.address(), &head, b"").unwrap().0
        });
        assert!(answers.any(|answer| answer == status), "never {status}");
    };
    until(200);
    let list = user(&scratch, &["list"]).ok().stdout;
    assert!(list.contains("robot") && list.contains("ci") && !list.contains(&key), "{list}");
    user(&scratch, &["remove", "robot"]).ok();
    until(401);
    user(&scratch, &["remove", "robot"]).failed();
    // What was somebody's does not become everybody's when they leave.
    user(&scratch, &["allow", "eve", "eve/**", "pull"]).ok();
    user(&scratch, &["key", "eve"]).ok();
    user(&scratch, &["remove", "eve"]).ok();
    assert!(user(&scratch, &["list"]).ok().stdout.contains("eve/**"));
    user(&scratch, &["forbid", "eve", "eve/**"]).ok();
    user(&scratch, &["forbid", "eve", "eve/**"]).failed();
    user(&scratch, &["add", "no:body"]).failed();
    user(&scratch, &["allow", "ada", "Team", "pull"]).failed();
    user(&scratch, &["allow", "ada", "team/*", "fly"]).failed();
}

/// C3 of the letter: as the manual has it.
#[test]
fn c3_the_first_user_closes_a_registry_that_runs() {
    let scratch = Scratch::new();
    let file = package(&scratch);
    let served = Served::start(&scratch);
    let there = served.reference("team/nop:v1.0.0");
    apron(&scratch, ["push", "-f", file, &there]).ok();
    let said = apron_with(&scratch, "ada's password\n", &["registry", "user", "add", "ada"]);
    let said = said.failed();
    assert!(said.contains("--data-dir"), "{said}");
    assert_eq!(user(&scratch, &["add", "ada"]).ok().stdout, "added ada to data\n");
    let other = served.reference("team/nop:v2.0.0");
    apron(&scratch, ["push", "-f", file, &other]).failed();
    // C5: whoever calls it by another name of this machine is sent there for tokens.
    let port = served.address().rsplit_once(':').unwrap().1;
    let local = format!("localhost:{port}");
    let login = ["login", "--username", "ada", "--password-stdin", local.as_str()];
    apron_with(&scratch, "ada's password\n", &login).ok();
    apron(&scratch, ["push", "-f", file, &format!("{local}/team/nop:v2.0.0")]).ok();
}

/// M5: a page whose name was made to mean this machine.
#[test]
fn m5_an_open_registry_answers_to_its_own_names_only() {
    let scratch = Scratch::new();
    let served = Served::start_with(&scratch, &["--allowed-host", "registry.test"]);
    let ask = |headers: &str| {
        let head = format!("DELETE /v2/p/manifests/v1 HTTP/1.0\r\n{headers}\r\n");
        ask(served.address(), &head, b"").unwrap().0
    };
    for host in ["localhost", "127.0.0.1:1", "registry.test", served.address()] {
        assert_eq!(ask(&format!("Host: {host}\r\n")), 404, "{host}");
    }
    for headers in [
        "Host: evil.example.org\r\n",
        "Host: evil.example.org\r\nOrigin: http://evil.example.org\r\n",
        "Host: localhost\r\nOrigin: http://evil.example.org\r\n",
    ] {
        assert_eq!(ask(headers), 421, "{headers}");
    }
}

#[test]
fn nobody_listens_to_the_world_without_users() {
    let scratch = Scratch::new();
    let serve = ["registry", "serve", "--listen", "0.0.0.0:0", "--data-dir", "data"];
    let said = apron(&scratch, serve).failed();
    assert!(said.contains("this registry has no users"), "{said}");
}
