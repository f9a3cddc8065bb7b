//! The control plane of `apron up` and of a kubeconfig, in a browser.

use super::browser::{Browser, Setup, keep_picture};
use super::barriers;
use crate::registry::ask;
use crate::support::{Scratch, command, patiently, peer_path};
use crate::up::{Up, example};
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

#[test]
fn a_control_plane_is_shown_to_those_with_its_pass_and_changes_by_itself() {
    let scratch = Scratch::new();
    let mut up = Up::start(&scratch, &[&example(), "--in-memory"]);
    let opened = up.told("  explorer  ");
    up.told("ready after ");
    let registry = opened.split('/').nth(2).unwrap().to_owned();
    // Without the pass there is nothing to see.
    for path in ["/", "/kinds", "/plane", "/plane/changes", "/?pass=0123456789abcdef0123456789abcdef"] {
        let (status, answer) =
            ask(&registry, &format!("GET {path} HTTP/1.0\r\nHost: {registry}\r\n\r\n"), b"").unwrap();
        assert_eq!(status, 401, "{path}: {answer}");
        assert!(!answer.contains("harbour"), "{path}");
    }
    let axe = fs_err::read_to_string(peer_path("axe")).unwrap();
    let browser = Browser::start(&scratch, Setup::desktop());
    browser.open(&opened);
    assert_eq!(browser.count(".card"), 3);
    assert!(!browser.address().contains("pass"), "the pass does not stay in the address");
    browser.click("nav a[href='/plane']");
    browser.shows("h1", "3 of 3 packages healthy");
    assert_eq!(browser.count(".row"), 3);
    assert_eq!(browser.count(".graph .node"), 3);
    for is_dark in [false, true] {
        browser.appear(1280, is_dark);
        assert_eq!(barriers(&browser, &axe), Vec::<String>::new());
        let shade = if is_dark { "dark" } else { "light" };
        keep_picture(&format!("plane-1280-{shade}"), &browser.picture(true));
    }
    // What changes is there without another load.
    up.say(&["uninstall", "platform", "--delete-objects"]).ok();
    browser.shows("h1", "2 of 2 packages healthy");
    browser.click(".row a[href='/plane/provider/platform-provider-harbour']");
    browser.shows("h1", "platform-provider-harbour");
    browser.shows("table", "active");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // An open page does not keep the control plane from stopping.
    let kubeconfig = up.kubeconfig.clone();
    explorer_of_a_kubeconfig_shows_the_same(&scratch, &kubeconfig.display().to_string());
    up.stop();
}

fn explorer_of_a_kubeconfig_shows_the_same(scratch: &Scratch, kubeconfig: &str) {
    let mut child = command(scratch)
        .args(["explorer", "--kubeconfig", kubeconfig])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().rsplit(' ').next().unwrap().to_owned();
    let browser = Browser::start(scratch, Setup::desktop());
    browser.open(&address);
    browser.comes_to("/plane");
    browser.shows("h1", "2 of 2 packages healthy");
    assert_eq!(browser.count("nav a[href='/kinds']"), 0);
    drop(browser);
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").arg(&id).status().unwrap().success());
    patiently(|| match child.try_wait().unwrap() {
        Some(ended) if ended.success() => Ok(()),
        other => Err(format!("{other:?}")),
    });
}
