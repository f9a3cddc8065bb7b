//! Ways through the explorer that begin elsewhere: with nothing there, with a name to be said, with a
//! package that is very large, with two versions to compare.

use super::browser::{Browser, ENTER, Setup, TAB};
use super::{compare_both_ways, complaints_about, serve};
use crate::registry::Served;
use crate::support::{Scratch, apron, command, generated_corpus, patiently, peer_path};
use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The most that a page of it may weigh.
const PAGE_SIZE_MAX: usize = 100_000;

#[test]
fn two_versions_are_compared_with_scripts_and_without_a_complaint() {
    let scratch = Scratch::new();
    let served = serve(&scratch);
    let home = format!("http://{}", served.address());
    let browser = Browser::start(&scratch, Setup::desktop());
    browser.open(&format!("{home}/p/platform/provider-harbour?view=versions"));
    compare_both_ways(&browser);
    browser.click(".copy [data-copy]");
    browser.shows(".copy [data-copy]", "ed");
    // From what changed to the kind it is about.
    browser.click(".changes.bad h3 a");
    browser.comes_to("/crd/buckets.storage.harbour.example.org");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Gives the focus to an element by the keyboard.
fn tab_to(browser: &Browser, css: &str) {
    const STOPS_MAX: usize = 80;
    let is_there = format!("return document.activeElement.matches(\"{css}\")");
    for _ in 0..STOPS_MAX {
        if browser.run(&is_there) == true {
            return;
        }
        browser.press(&[TAB]);
    }
    panic!("{css} is not among the first {STOPS_MAX} stops of the page");
}

#[test]
fn versions_are_chosen_and_compared_by_keyboard() {
    let scratch = Scratch::new();
    let served = serve(&scratch);
    let home = format!("http://{}", served.address());
    let browser = Browser::start(&scratch, Setup::desktop());
    browser.open(&format!("{home}/p/platform/provider-harbour"));
    tab_to(&browser, ".picker summary");
    browser.press(&[ENTER]);
    patiently(|| match browser.count(".picker[open]") {
        1 => Ok(()),
        _ => Err("the versions do not open".to_owned()),
    });
    tab_to(&browser, ".picker a[href$='@v0.1.0']");
    browser.press(&[ENTER]);
    browser.comes_to("@v0.1.0");
    browser.shows(".ways", "provider-harbour:v0.1.0");
    browser.open(&format!("{home}/diff/platform/provider-harbour"));
    browser.shows(".changes.bad", "spec.forProvider.depth");
    // The newest against itself.
    tab_to(&browser, "select[name=from]");
    browser.press(&["v", "0", ".", "2"]);
    patiently(|| match browser.run("return document.querySelector('select[name=from]').value") {
        value if value == "v0.2.0" => Ok(()),
        value => Err(format!("{value} is chosen")),
    });
    tab_to(&browser, ".choice button");
    browser.press(&[ENTER]);
    browser.comes_to("from=v0.2.0&to=v0.2.0");
    browser.shows("h2", "Nothing changed");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// A registry with one package of as many kinds as the largest provider has.
fn serve_large(scratch: &Scratch) -> Served {
    let served = Served::start(scratch);
    let directory = scratch.copy_package_from(&generated_corpus(), "large");
    let metadata = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\n\
                    metadata: {name: provider-large}\n";
    fs_err::write(directory.join("crossplane.yaml"), metadata).unwrap();
    apron(scratch, ["build", "large", "-o", "large.xpkg"]).ok();
    let place = served.reference("team/provider-large:v1.0.0");
    apron(scratch, ["push", "-f", "large.xpkg", &place]).ok();
    patiently(|| {
        let (_, answer) = served.get("/api/v1/packages");
        answer.contains("\"state\":\"read\"").then_some(()).ok_or(answer)
    });
    served
}

#[test]
fn a_package_of_2065_kinds_is_opened_and_searched_as_any_other() {
    let scratch = Scratch::new();
    let served = serve_large(&scratch);
    let home = format!("http://{}", served.address());
    let axe = fs_err::read_to_string(peer_path("axe")).unwrap();
    let browser = Browser::start(&scratch, Setup::desktop());
    let package = "/p/team/provider-large";
    for path in ["/", "/kinds", package, &format!("{package}?view=kinds&page=21")] {
        let begun = Instant::now();
        let (status, page) = served.get(path);
        assert!(status == 200 && page.len() < PAGE_SIZE_MAX, "{path}: {status}, {}", page.len());
        // How fast it should be is for benchmarks; this is for a page that hangs.
        assert!(begun.elapsed() < Duration::from_secs(60), "{path}: {:?}", begun.elapsed());
    }
    browser.open(&format!("{home}{package}"));
    assert_eq!(browser.text("h1"), "provider-large");
    browser.click("a[href$='?view=kinds']");
    browser.shows("p[role=status]", "2,065 kinds");
    // The last kind of the last page, by way of the filter.
    browser.open(&format!("{home}{package}?view=kinds&page=21"));
    let last = browser.text("tbody tr:last-child td:first-child a");
    let place = "return document.querySelector('tbody tr:last-child td:first-child a')\
                 .getAttribute('href')";
    let place = browser.run(place).as_str().unwrap().to_owned();
    browser.write("#filter", &format!("{last}{ENTER}"));
    browser.comes_to("filter=");
    browser.click(&format!("a[href='{place}']"));
    browser.comes_to(&place);
    assert!(browser.text("h1").starts_with(&last));
    browser.open(&home);
    browser.write("#look", &last);
    browser.shows("#look-hints", &last);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    for (name, path) in
        [("large", package.to_owned()), ("large-kinds", format!("{package}?view=kinds"))]
    {
        let open = || browser.open(&format!("{home}{path}"));
        let complaints = complaints_about(&browser, &axe, name, &open, None);
        assert_eq!(complaints, Vec::<String>::new());
    }
}

#[test]
fn where_nothing_is_shown_people_are_told_what_to_do() {
    let scratch = Scratch::new();
    let axe = fs_err::read_to_string(peer_path("axe")).unwrap();
    let browser = Browser::start(&scratch, Setup::desktop());
    let empty = Served::start_in(&scratch, "empty");
    // A registry whose packages are for signed-in users.
    let users = ["registry", "user", "--data-dir", "named", "add", "ada"];
    let mut program = command(&scratch);
    let mut adding =
        program.args(users).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    adding.stdin.take().unwrap().write_all(b"ada's password\n").unwrap();
    assert!(adding.wait().unwrap().success());
    let allow = ["registry", "user", "--data-dir", "named", "allow", "ada", "**", "pull,push"];
    apron(&scratch, allow).ok();
    let named = Served::start_in(&scratch, "named");
    let mut complaints = Vec::new();
    for (name, path) in
        [("empty-home", "/"), ("empty-kinds", "/kinds"), ("empty-search", "/search")]
    {
        let open = || browser.open(&format!("http://{}{path}", empty.address()));
        complaints.extend(complaints_about(&browser, &axe, name, &open, None));
    }
    browser.open(&format!("http://{}/", empty.address()));
    browser.shows(".empty", "No packages yet");
    // A browser asks for a name before it shows this page: here it is as users without one see it, on
    // a page of the same registry that is not there.
    let (status, answer) = named.get("/sign-in");
    let (head, page) = answer.split_once("\r\n\r\n").unwrap();
    assert!(status == 401 && head.to_lowercase().contains("www-authenticate: basic"), "{head}");
    let open = || {
        browser.open(&format!("http://{}/assets/none", named.address()));
        browser.show_document(page);
        browser.shows("h1", "Sign in");
        patiently(|| match browser.run("return document.styleSheets.length") {
            count if count == 1 => Ok(()),
            count => Err(format!("{count} style sheets are there")),
        });
    };
    complaints.extend(complaints_about(&browser, &axe, "sign-in", &open, Some("404")));
    assert_eq!(complaints, Vec::<String>::new());
}
