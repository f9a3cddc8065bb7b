//! The built manual in Debian's Chromium, from the disk and without a network: on a phone and on a desk, in light
//! and dark, held to what people with other eyes need. Pictures are kept in `target/screenshots`.

use super::page_paths;
use crate::explorer::browser::{Browser, Setup};
use crate::explorer::{complaints_about, is_too_wide};
use crate::readme::repository;
use crate::support::{Scratch, patiently, peer_path};
use std::path::PathBuf;

/// Pages of every make: prose, tables, code, long lists, warnings.
const LOOKED_AT: [&str; 9] = [
    "index",
    "tutorial",
    "overview",
    "how-to/run",
    "how-to/move",
    "how-to/monitor",
    "reference/commands",
    "reference/conditions",
    "reference/kinds",
];

/// Where `scripts/docs` builds the manual, which `make test` does before the tests.
fn page_address(page: &str) -> String {
    let path = built_page(page);
    assert!(path.is_file(), "{} is not there: run `make docs`", path.display());
    format!("file://{}", path.display())
}

fn built_page(page: &str) -> PathBuf {
    let root = fs_err::canonicalize(repository()).unwrap();
    root.join("target/manual").join(format!("{page}.html"))
}

#[test]
fn the_manual_is_read_on_phones_and_desks_in_light_and_dark() {
    let scratch = Scratch::new();
    let axe = fs_err::read_to_string(peer_path("axe")).unwrap();
    let browser = Browser::start(&scratch, Setup::desktop());
    let mut complaints = Vec::new();
    for page in LOOKED_AT {
        let open = || browser.open(&page_address(page));
        let name = format!("manual-{}", page.replace('/', "-"));
        complaints.extend(complaints_about(&browser, &axe, &name, &open, None));
    }
    for (is_dark, scheme) in [(false, "default"), (true, "slate")] {
        browser.appear(1280, is_dark);
        browser.open(&page_address("index"));
        let found = browser.run("return document.body.getAttribute('data-md-color-scheme')");
        assert_eq!(found, scheme);
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn no_page_of_the_manual_is_wider_than_a_phone() {
    let scratch = Scratch::new();
    let browser = Browser::start(&scratch, Setup::desktop());
    browser.appear(360, false);
    let docs = repository().join("docs");
    for path in page_paths() {
        let page = path.strip_prefix(&docs).unwrap().with_extension("");
        let page = page.to_str().unwrap();
        browser.open(&page_address(page));
        assert!(!is_too_wide(&browser), "{page} is wider than the screen");
        // What Markdown left of its marks would be a table or a link that is none.
        let text = browser.run("return document.querySelector('article').innerText");
        let text = text.as_str().unwrap();
        for mark in ["](", "\\|", "|---"] {
            assert!(!text.contains(mark), "{page} shows {mark}");
        }
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn words_are_found_in_the_manual_without_a_network() {
    let scratch = Scratch::new();
    let browser = Browser::start(&scratch, Setup::desktop());
    browser.appear(1280, false);
    browser.open(&page_address("index"));
    browser.click(".md-search__input");
    browser.write(".md-search__input", "DefinitionsRetained");
    browser.shows(".md-search-result__meta", "matching document");
    browser.click(".md-search-result__link[href*='conditions.html?h=definitionsretained']");
    browser.comes_to("reference/conditions.html?h=definitionsretained");
    patiently(|| match browser.count("article mark") {
        0 => Err("what was looked for is not marked".to_owned()),
        _ => Ok(()),
    });
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
