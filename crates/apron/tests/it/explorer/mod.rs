//! The explorer in a real browser: with scripts and without, by mouse and by keyboard, held to
//! what people with other eyes and hands need.

pub(crate) mod browser;
mod flows;
mod plane;

use crate::registry::Served;
use crate::support::{Scratch, apron, patiently, peer_path};
use browser::{Browser, ENTER, Setup, TAB, keep_picture};
use serde_json::Value as Json;
use std::path::Path;

const README: &str = "# Harbour\n\n\
    Buckets and records of the **Harbour** cloud.\n\n\
    <script>document.title = 'taken over'</script>\n\n\
    ![pixel](https://tracker.example.org/pixel.png) and [a link](https://example.org/harbour), \
    but [not this](javascript:document.title='taken-over').\n\n\
    | region | where |\n|---|---|\n| lisbon | by the sea |\n\n\
    ```yaml\nkind: Bucket\nmetadata:\n  name: photos-of-everything-that-ever-happened-in-the-harbour-of-lisbon\n```\n";

/// A registry with the packages of the example.
fn serve(scratch: &Scratch) -> Served {
    let served = Served::start(scratch);
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/platform");
    let push = |directory: &str, place: &str| {
        let file = format!("{}.xpkg", place.replace(['/', ':'], "-"));
        apron(scratch, ["build", directory, "-o", &file]).ok();
        apron(scratch, ["push", "-f", &file, &served.reference(place)]).ok();
    };
    let provider = scratch.copy_package_from(&examples.join("provider"), "provider");
    add_annotations(&provider.join("crossplane.yaml"));
    push("provider", "platform/provider-harbour:v0.1.0");
    let definition = provider.join("crds/storage.harbour.example.org_buckets.yaml");
    let text = fs_err::read_to_string(&definition).unwrap();
    let text = text.replace("A Bucket of", "A bucket, second edition, of");
    let added = "required: [region, depth]\n                properties:\n                  \
                 depth: {type: integer, description: How deep it lies.}\n";
    let fields = "required: [region]\n                properties:\n";
    fs_err::write(&definition, text.replace(fields, added)).unwrap();
    push("provider", "platform/provider-harbour:v0.2.0");
    scratch.copy_package_from(&examples.join("function"), "function");
    push("function", "platform/function-moor:v0.1.0");
    scratch.copy_package_from(&examples.join("configuration"), "configuration");
    push("configuration", "platform/platform:v0.1.0");
    patiently(|| {
        let (_, answer) = served.get("/api/v1/packages");
        let count = answer.matches("\"state\":\"read\"").count();
        (count == 3).then_some(()).ok_or(answer)
    });
    served
}

/// A README, an icon and a category for a package that has none.
fn add_annotations(metadata: &Path) {
    let text = fs_err::read_to_string(metadata).unwrap();
    let readme: Vec<String> = README.lines().map(|line| format!("      {line}\n")).collect();
    let readme = readme.concat();
    let icon = "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCA4IDgiPjxjaXJjbGUgY3g9IjQiIGN5PSI0IiByPSI0IiBmaWxsPSIjMTI3M2FhIi8+PC9zdmc+";
    let added = format!(
        "  annotations:\n    meta.crossplane.io/category: storage\n    \
         meta.crossplane.io/iconURI: {icon}\n    meta.crossplane.io/readme: |\n{readme}"
    );
    fs_err::write(metadata, text.replacen("  annotations:\n", &added, 1)).unwrap();
}

/// Every page there is.
const PAGES: [(&str, &str); 20] = [
    ("home", "/"),
    ("home-filtered", "/?type=Provider"),
    ("search", "/search?q=bucket"),
    ("search-narrowed", "/search?q=harbour&type=Provider&group=storage.harbour.example.org"),
    ("search-nothing", "/search?q=nothing-at-all"),
    ("kinds", "/kinds"),
    ("group", "/group/storage.harbour.example.org"),
    ("package", "/p/platform/provider-harbour"),
    ("package-kinds", "/p/platform/provider-harbour?view=kinds"),
    ("package-needs", "/p/platform/platform?view=needs"),
    ("package-permissions", "/p/platform/provider-harbour?view=permissions"),
    ("package-readme", "/p/platform/provider-harbour?view=readme"),
    ("search-fields", "/search?q=forProvider.region"),
    ("diff", "/diff/platform/provider-harbour"),
    ("diff-nothing", "/diff/platform/platform"),
    ("api", "/api"),
    ("package-versions", "/p/platform/provider-harbour?view=versions"),
    ("kind", "/crd/buckets.storage.harbour.example.org"),
    ("kind-filtered", "/crd/buckets.storage.harbour.example.org?filter=region"),
    ("absent", "/p/no/such"),
];

#[test]
fn people_find_their_way_from_a_word_to_a_package_and_a_field() {
    let scratch = Scratch::new();
    let served = serve(&scratch);
    let home = format!("http://{}", served.address());
    let browser = Browser::start(&scratch, Setup::desktop());
    browser.open(&home);
    assert_eq!(browser.text("h1"), "Which package brings this kind?");
    // Suggestions come while words are typed.
    browser.write("#look", "buck");
    browser.shows("#look-hints", "buckets.storage.harbour.example.org");
    browser.click("#look-hints a[href='/crd/buckets.storage.harbour.example.org']");
    browser.comes_to("/crd/buckets.storage.harbour.example.org");
    assert!(browser.text("h1").starts_with("Bucket"));
    // A link to a field leads there, and what it is in opens.
    browser
        .open(&format!("{home}/crd/buckets.storage.harbour.example.org#spec.forProvider.region"));
    browser.shows("[id='spec.forProvider.region']", "region");
    // Which package brings it.
    browser.click(".definers a[href='/p/platform/provider-harbour']");
    browser.comes_to("/p/platform/provider-harbour");
    assert_eq!(browser.text("h1"), "provider-harbour");
    // Its README is text: nothing ran, nothing was fetched.
    assert!(browser.text(".prose").contains("Buckets and records of the Harbour cloud."));
    assert_eq!(browser.count(".prose img") + browser.count(".prose script"), 0);
    assert_eq!(browser.count(".prose a"), 1);
    assert!(!browser.run("return document.title").as_str().unwrap().contains("taken"));
    // The command is copied, or selected where a browser does not let it be.
    browser.click(".ways details[open] [data-copy]");
    browser.shows(".ways details[open] [data-copy]", "ed");
    // Another version.
    browser.click(".picker summary");
    browser.click(".picker a[href$='@v0.1.0']");
    browser.comes_to("@v0.1.0");
    assert!(browser.text(".ways").contains("provider-harbour:v0.1.0"));
    // Light and dark, and the choice stays.
    browser.click("#theme");
    let chosen = browser.run("return document.documentElement.dataset.theme");
    browser.open(&home);
    assert_eq!(browser.run("return document.documentElement.dataset.theme"), chosen);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn everything_can_be_reached_without_scripts() {
    let scratch = Scratch::new();
    let served = serve(&scratch);
    let home = format!("http://{}", served.address());
    let browser = Browser::start(&scratch, Setup { has_scripts: false, ..Setup::desktop() });
    browser.open(&home);
    // Nothing is offered that would not work.
    assert_eq!(browser.count("#theme:not([hidden])"), 0);
    browser.write("#look", "bucket\u{e007}");
    browser.comes_to("/search?q=bucket");
    browser.click("a[href='/crd/buckets.storage.harbour.example.org']");
    browser.comes_to("/crd/buckets.storage.harbour.example.org");
    browser.write("#filter", "region\u{e007}");
    browser.comes_to("filter=region");
    browser.shows(".fields", "region");
    assert_eq!(browser.count("[id='spec.forProvider.region']"), 1);
    browser.click(".definers a[href='/p/platform/provider-harbour']");
    browser.comes_to("/p/platform/provider-harbour");
    browser.click(".picker summary");
    browser.click(".picker a[href$='@v0.1.0']");
    browser.comes_to("@v0.1.0");
    browser.click(".tabs a[href$='view=versions']");
    browser.comes_to("view=versions");
    browser.shows("table", "v0.2.0");
    // What changed between two versions, and the other way round.
    compare_both_ways(&browser);
    // A field leads to its place in the schema.
    browser.open(&format!("{home}/search?q=forProvider.region"));
    browser.click("td a[href*='field=spec.forProvider.region']");
    browser.comes_to("/crd/buckets.storage.harbour.example.org/v1alpha1");
    browser.open(&format!("{home}/?type=Function"));
    assert_eq!(browser.count(".card"), 1);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    browser.open(&format!("{home}/p/no/such"));
    browser.shows("h1", "Not found");
}

/// From a package's versions to what changed between two of them, and the other way round.
fn compare_both_ways(browser: &Browser) {
    browser.click("a[href='/diff/platform/provider-harbour?from=v0.1.0&to=v0.2.0']");
    browser.shows("h1", "What changed in provider-harbour");
    browser.shows(".changes.bad", "spec.forProvider.depth");
    browser.click("select[name=from] option[value='v0.2.0']");
    browser.click("select[name=to] option[value='v0.1.0']");
    browser.click(".choice button");
    browser.comes_to("from=v0.2.0&to=v0.1.0");
    browser.shows(".changes.bad", "spec.forProvider.depth removed");
}

#[test]
fn the_keyboard_alone_is_enough() {
    const DOWN: &str = "\u{e015}";
    const ESCAPE: &str = "\u{e00c}";
    let scratch = Scratch::new();
    let served = serve(&scratch);
    let home = format!("http://{}", served.address());
    let browser = Browser::start(&scratch, Setup::desktop());
    browser.open(&home);
    let focus =
        || browser.run("return document.activeElement.className || document.activeElement.id");
    // The first stop skips what is the same on every page.
    browser.press(&[TAB]);
    assert_eq!(focus(), "skip");
    browser.press(&[ENTER]);
    browser.comes_to("#content");
    // A stroke leads to the search; arrows to what it suggests.
    browser.press(&["/"]);
    assert_eq!(focus(), "find");
    browser.press(&["b", "u", "c", "k"]);
    browser.shows("#find-hints", "Bucket");
    browser.press(&[ESCAPE]);
    patiently(|| match browser.count("#find-hints:not([hidden])") {
        0 => Ok(()),
        _ => Err("suggestions stay".to_owned()),
    });
    browser.press(&["e"]);
    browser.shows("#find-hints", "Bucket");
    browser.press(&[DOWN]);
    patiently(|| match browser.run("return document.activeElement.tagName") {
        Json::String(name) if name == "A" => Ok(()),
        other => Err(format!("{other} has the focus")),
    });
    browser.press(&[ENTER]);
    browser.comes_to("/crd/buckets.storage.harbour.example.org");
    // A field of the tree is opened and closed.
    let is_open = || {
        browser
            .run("return document.getElementById('spec').firstElementChild.nextElementSibling.open")
    };
    browser.run("document.querySelector('[id=spec] summary').focus()");
    let before = is_open();
    browser.press(&[ENTER]);
    patiently(|| if is_open() == before { Err("it does not move".to_owned()) } else { Ok(()) });
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Whether a page has to be moved sideways.
pub(crate) fn is_too_wide(browser: &Browser) -> bool {
    let script =
        "return document.documentElement.scrollWidth > document.documentElement.clientWidth";
    browser.run(script) == true
}

/// Findings of axe that are serious or critical.
fn barriers(browser: &Browser, axe: &str) -> Vec<String> {
    let script = format!(
        "{axe}; const done = arguments[arguments.length - 1];
         const preload = location.protocol !== 'file:';
         axe.run(document, {{resultTypes: ['violations'], preload}}).then(
           found => done(found.violations.map(it => [it.impact, it.id, it.nodes.map(n => n.html).slice(0, 3)])),
           error => done([['serious', String(error), []]]));"
    );
    let found = browser.run_async(&script);
    let is_serious = |it: &&Json| it[0] == "serious" || it[0] == "critical";
    found.as_array().unwrap().iter().filter(is_serious).map(Json::to_string).collect()
}

/// What is wrong with a page in both lights, wide and narrow; pictures of it are kept. A browser writes
/// down that a page is not there, or not for the asker, which is no complaint where it is expected.
pub(crate) fn complaints_about(
    browser: &Browser,
    axe: &str,
    name: &str,
    open: &dyn Fn(),
    expected: Option<&str>,
) -> Vec<String> {
    let mut complaints = Vec::new();
    for (width, is_dark) in [(1280, false), (1280, true), (360, false), (360, true)] {
        browser.appear(width, is_dark);
        open();
        let shade = if is_dark { "dark" } else { "light" };
        let place = format!("{name}-{width}-{shade}");
        if is_too_wide(browser) {
            complaints.push(format!("{place} is wider than the screen"));
        }
        let found = barriers(browser, axe);
        complaints.extend(found.into_iter().map(|it| format!("{place}: {it}")));
        keep_picture(&place, &browser.picture(true));
        if place == "package-1280-light" && std::env::var_os("APRON_UPDATE").is_some() {
            let shown = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/explorer.png");
            fs_err::write(shown, browser.picture(false)).unwrap();
        }
        let said = browser.complaints().into_iter();
        let said = said.filter(|text| expected.is_none_or(|expected| !text.contains(expected)));
        complaints.extend(said.map(|text| format!("{place}: {text}")));
    }
    complaints
}

#[test]
fn every_page_is_open_to_everybody_in_light_and_dark_wide_and_narrow() {
    let scratch = Scratch::new();
    let served = serve(&scratch);
    let axe = fs_err::read_to_string(peer_path("axe")).unwrap();
    let browser = Browser::start(&scratch, Setup::desktop());
    let mut complaints = Vec::new();
    for (name, path) in PAGES {
        let open = || browser.open(&format!("http://{}{path}", served.address()));
        let expected = (name == "absent").then_some("404");
        complaints.extend(complaints_about(&browser, &axe, name, &open, expected));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
