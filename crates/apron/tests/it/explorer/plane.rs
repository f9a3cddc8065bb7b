//! The control plane of `apron up` and of a kubeconfig, in a browser.

use super::browser::{Browser, Setup, keep_picture};
use super::{barriers, is_too_wide};
use crate::registry::ask;
use crate::support::{Scratch, command, patiently, peer_path};
use crate::up::{Up, example};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

#[test]
fn a_control_plane_is_shown_to_those_with_its_pass_and_changes_by_itself() {
    let scratch = Scratch::new();
    let mut up = Up::start(&scratch, &[&example(), "--in-memory"]);
    let opened = up.told("  explorer  ");
    up.told("ready after ");
    let place = opened.split('/').nth(2).unwrap().to_owned();
    // Without the pass there is nothing to see.
    let wrong = "/plane?pass=0123456789abcdef0123456789abcdef";
    for path in ["/plane", "/plane/news", "/plane/configuration/platform", wrong] {
        let (status, answer) =
            ask(&place, &format!("GET {path} HTTP/1.0\r\nHost: {place}\r\n\r\n"), b"").unwrap();
        assert_eq!(status, 403, "{path}: {answer}");
        assert!(!answer.contains("platform"), "{path}");
    }
    let browser = Browser::start(&scratch, Setup::desktop());
    browser.open(&opened);
    browser.shows("h1", "Which package brings this kind?");
    assert!(!browser.address().contains("pass"), "the pass does not stay in the address");
    browser.click("nav a[href='/plane']");
    browser.shows("h1", "3 of 3 packages healthy");
    browser.shows("[data-pulse]", "live");
    assert_eq!((browser.count(".row"), browser.count(".graph .node")), (3, 3));
    hold_to_everybody(&browser, &format!("http://{place}"));
    browser.open(&format!("http://{place}/plane"));
    // What changes is there without another load.
    browser.shows("[data-pulse]", "live");
    browser.run("window.isTheSame = true");
    up.say(&["uninstall", "platform", "--delete-objects"]).ok();
    browser.shows("h1", "2 of 2 packages healthy");
    assert_eq!(browser.run("return window.isTheSame"), true);
    browser.shows("#news", "2 of 2 packages healthy");
    // What is installed leads to the page of the catalog about it.
    browser.click(".row a[href='/plane/provider/platform-provider-harbour']");
    browser.shows("h1", "platform-provider-harbour");
    browser.shows("table", "active");
    browser.click("aside a[href^='/p/']");
    browser.shows("h1", "provider-harbour");
    browser.open(&format!("http://{place}/plane"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
    explorer_of_a_kubeconfig_shows_the_same(&scratch, &up.kubeconfig.display().to_string());
    // A page that waits for news does not keep the control plane from stopping.
    up.stop();
}

/// Both pages in light and dark, wide and narrow.
fn hold_to_everybody(browser: &Browser, home: &str) {
    let axe = fs_err::read_to_string(peer_path("axe")).unwrap();
    for (name, path) in
        [("plane", "/plane"), ("plane-package", "/plane/provider/platform-provider-harbour")]
    {
        for (width, is_dark) in [(1280, false), (1280, true), (360, false), (360, true)] {
            browser.appear(width, is_dark);
            browser.open(&format!("{home}{path}"));
            let shade = if is_dark { "dark" } else { "light" };
            let place = format!("{name}-{width}-{shade}");
            keep_picture(&place, &browser.picture(true));
            assert!(!is_too_wide(browser), "{place} is wider than the screen");
            assert_eq!(barriers(browser, &axe), Vec::<String>::new(), "{place}");
        }
    }
    browser.appear(1280, false);
}

/// `apron explorer`, and the address it printed.
fn start_explorer(scratch: &Scratch, kubeconfig: &str, more: &[&str]) -> (Child, String) {
    let mut child = command(scratch)
        .args(["explorer", "--kubeconfig", kubeconfig])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, line.trim().rsplit(' ').next().unwrap().to_owned())
}

fn explorer_of_a_kubeconfig_shows_the_same(scratch: &Scratch, kubeconfig: &str) {
    let (child, address) = start_explorer(scratch, kubeconfig, &[]);
    let browser = Browser::start(scratch, Setup { has_scripts: false, ..Setup::desktop() });
    browser.open(&address);
    browser.comes_to("/plane");
    browser.shows("h1", "2 of 2 packages healthy");
    assert_eq!(browser.count("nav a[href='/kinds']"), 0);
    browser.click(".row a[href='/plane/provider/platform-provider-harbour']");
    browser.shows("h1", "platform-provider-harbour");
    drop(browser);
    end_politely(child);
    let (child, address) = start_explorer(scratch, kubeconfig, &["--without-pass"]);
    assert!(!address.contains("pass"), "{address}");
    let place = address.split('/').nth(2).unwrap();
    let question = |host: &str| format!("GET /plane HTTP/1.0\r\nHost: {host}\r\n\r\n");
    assert_eq!(ask(place, &question(place), b"").unwrap().0, 200);
    assert_eq!(ask(place, &question("evil.example.org"), b"").unwrap().0, 421);
    end_politely(child);
}

fn end_politely(mut child: Child) {
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").arg(&id).status().unwrap().success());
    patiently(|| match child.try_wait().unwrap() {
        Some(ended) if ended.success() => Ok(()),
        other => Err(format!("{other:?}")),
    });
}

#[test]
fn a_cluster_that_does_not_answer_or_an_open_door_is_refused_at_once() {
    let scratch = Scratch::new();
    let missing = scratch.join("none").display().to_string();
    let words = ["explorer", "--kubeconfig", &missing];
    let refused = crate::support::apron(&scratch, words).failed();
    assert!(refused.contains("hint:"), "{refused}");
    let words = ["explorer", "--listen", "0.0.0.0:0", "--without-pass"];
    let refused = crate::support::apron(&scratch, words).failed();
    assert!(refused.contains("can be reached from other machines"), "{refused}");
}
