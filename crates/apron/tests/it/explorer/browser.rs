//! Debian's Chromium, driven over `WebDriver`: JSON over HTTP, and nothing between.

use crate::support::{Scratch, free_port, patiently};
use base64::Engine as _;
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The key under which `WebDriver` names elements.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// Keys, as `WebDriver` writes them.
pub(crate) const TAB: &str = "\u{e004}";
pub(crate) const ENTER: &str = "\u{e007}";
/// How long one command of the driver may take on a busy machine.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(300);
/// How often a browser that does not come up is started.
const STARTS_MAX: usize = 5;

/// How a browser is set up.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) is_dark: bool,
    pub(crate) has_scripts: bool,
}

impl Setup {
    pub(crate) fn desktop() -> Self {
        Self { width: 1280, height: 1000, is_dark: false, has_scripts: true }
    }
}

/// A driver and its browser; both end with it.
pub(crate) struct Browser {
    driver: Child,
    base: String,
    session: String,
    client: reqwest::Client,
    runtime: tokio::runtime::Runtime,
    profile: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let url = format!("{}/session/{}", self.base, self.session);
        let client = &self.client;
        let _ = self
            .runtime
            .block_on(async { client.delete(url).timeout(Duration::from_secs(20)).send().await });
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

impl Browser {
    pub(crate) fn start(scratch: &Scratch, setup: Setup) -> Self {
        let mut why = String::new();
        for _ in 0..STARTS_MAX {
            match Self::try_start(scratch, setup) {
                Ok(browser) => return browser,
                Err(error) => why = error,
            }
        }
        panic!("Chromium does not start: {why}; `scripts/setup test` installs it");
    }

    fn try_start(scratch: &Scratch, setup: Setup) -> Result<Self, String> {
        let port = free_port();
        let driver = Command::new("chromedriver")
            .arg(format!("--port={port}"))
            .env("HOME", scratch.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("chromedriver: {error}"))?;
        let client = reqwest::Client::builder().no_proxy().timeout(COMMAND_TIME_MAX).build();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let mut browser = Self {
            driver,
            base: format!("http://127.0.0.1:{port}"),
            session: String::new(),
            client: client.unwrap(),
            runtime: runtime.unwrap(),
            profile: tempfile::tempdir().unwrap(),
        };
        patiently(|| {
            if browser.driver.try_wait().unwrap().is_some() {
                return Ok(());
            }
            browser.send("GET", "/status", None).map(|_| ())
        });
        let wanted = wanted(setup, browser.profile.path());
        let made = browser.send("POST", "/session", Some(&wanted))?;
        made["sessionId"].as_str().ok_or("no session")?.clone_into(&mut browser.session);
        Ok(browser)
    }

    /// One command of the driver, and its value.
    fn send(&self, method: &str, path: &str, body: Option<&Json>) -> Result<Json, String> {
        let url = format!("{}{path}", self.base);
        let request = match (method, body) {
            ("POST", body) => self.client.post(url).body(body.unwrap_or(&json!({})).to_string()),
            _ => self.client.get(url),
        };
        let request = request.header("content-type", "application/json");
        let answer = self.runtime.block_on(async { request.send().await?.text().await });
        let answer = answer.map_err(|error| error.to_string())?;
        let answer: Json = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
        match answer["value"]["error"].as_str() {
            Some(error) => Err(format!("{error}: {}", answer["value"]["message"])),
            None => Ok(answer["value"].clone()),
        }
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Json>) -> Result<Json, String> {
        self.send(method, &format!("/session/{}{path}", self.session), body)
    }

    #[track_caller]
    pub(crate) fn open(&self, url: &str) {
        self.ask("POST", "/url", Some(&json!({"url": url}))).unwrap();
    }

    pub(crate) fn address(&self) -> String {
        self.ask("GET", "/url", None).unwrap().as_str().unwrap().to_owned()
    }

    /// An element that is there, or comes.
    #[track_caller]
    fn find(&self, css: &str) -> String {
        patiently(|| {
            let found = self.ask(
                "POST",
                "/element",
                Some(&json!({"using": "css selector", "value": css})),
            )?;
            found[ELEMENT].as_str().map(str::to_owned).ok_or_else(|| format!("no {css}"))
        })
    }

    pub(crate) fn count(&self, css: &str) -> usize {
        let wanted = json!({"using": "css selector", "value": css});
        self.ask("POST", "/elements", Some(&wanted)).unwrap().as_array().unwrap().len()
    }

    #[track_caller]
    pub(crate) fn text(&self, css: &str) -> String {
        patiently(|| {
            let element = self.find(css);
            let text = self.ask("GET", &format!("/element/{element}/text"), None)?;
            Ok(text.as_str().unwrap_or_default().to_owned())
        })
    }

    #[track_caller]
    pub(crate) fn click(&self, css: &str) {
        patiently(|| {
            let element = self.find(css);
            self.ask("POST", &format!("/element/{element}/click"), None).map(|_| ())
        });
    }

    #[track_caller]
    pub(crate) fn write(&self, css: &str, text: &str) {
        patiently(|| {
            let element = self.find(css);
            let keys = json!({"text": text});
            self.ask("POST", &format!("/element/{element}/value"), Some(&keys)).map(|_| ())
        });
    }

    /// Presses keys wherever the focus is.
    pub(crate) fn press(&self, keys: &[&str]) {
        let strokes: Vec<Json> = keys
            .iter()
            .flat_map(|key| {
                [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
            })
            .collect();
        let actions = json!({"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]});
        self.ask("POST", "/actions", Some(&actions)).unwrap();
    }

    /// What a function in the page returns.
    #[track_caller]
    pub(crate) fn run(&self, script: &str) -> Json {
        self.ask("POST", "/execute/sync", Some(&json!({"script": script, "args": []}))).unwrap()
    }

    /// What a function in the page gives to the function that it is given.
    #[track_caller]
    pub(crate) fn run_async(&self, script: &str) -> Json {
        let time = json!({"script": 240_000});
        self.ask("POST", "/timeouts", Some(&time)).unwrap();
        self.ask("POST", "/execute/async", Some(&json!({"script": script, "args": []}))).unwrap()
    }

    /// Waits until an address has this in it.
    #[track_caller]
    pub(crate) fn comes_to(&self, part: &str) {
        patiently(|| match self.address() {
            address if address.contains(part) => Ok(()),
            address => Err(format!("{address} instead of {part}")),
        });
    }

    /// Waits until an element's text has this in it.
    #[track_caller]
    pub(crate) fn shows(&self, css: &str, part: &str) {
        patiently(|| match self.text(css) {
            text if text.contains(part) => Ok(()),
            text => Err(format!("{css} has `{text}`, and not `{part}`")),
        });
    }

    /// What the console said since the last time: violations of the policy are there, too.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = self.ask("POST", "/se/log", Some(&json!({"type": "browser"}))).unwrap();
        let is_bad = |entry: &&Json| entry["level"] == "SEVERE" || entry["level"] == "WARNING";
        let told = log.as_array().unwrap().iter().filter(is_bad);
        told.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Colours and width from now on.
    pub(crate) fn appear(&self, width: u32, is_dark: bool) {
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.command("Emulation.setEmulatedMedia", &json!({"features": features}));
        let size =
            json!({"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 500});
        self.command("Emulation.setDeviceMetricsOverride", &size);
    }

    fn command(&self, name: &str, parameters: &Json) -> Json {
        let body = json!({"cmd": name, "params": parameters});
        self.ask("POST", "/goog/cdp/execute", Some(&body)).unwrap()
    }

    /// Puts a document in the place of the one that is open, with the rules of the latter.
    pub(crate) fn show_document(&self, html: &str) {
        let tree = self.command("Page.getFrameTree", &json!({}));
        let frame = &tree["frameTree"]["frame"]["id"];
        self.command("Page.setDocumentContent", &json!({"frameId": frame, "html": html}));
    }

    /// The page as a picture, from top to bottom.
    pub(crate) fn picture(&self, is_whole: bool) -> Vec<u8> {
        let options = json!({"format": "png", "captureBeyondViewport": is_whole});
        let taken = self.command("Page.captureScreenshot", &options);
        let data = taken["data"].as_str().unwrap();
        base64::engine::general_purpose::STANDARD.decode(data).unwrap()
    }
}

/// What a new session should be like.
fn wanted(setup: Setup, profile: &Path) -> Json {
    let mut arguments = vec![
        "--headless=new".to_owned(),
        "--no-sandbox".to_owned(),
        "--disable-dev-shm-usage".to_owned(),
        "--disable-gpu".to_owned(),
        "--disable-quic".to_owned(),
        "--no-first-run".to_owned(),
        "--no-proxy-server".to_owned(),
        "--disable-background-networking".to_owned(),
        "--disable-component-update".to_owned(),
        "--disable-sync".to_owned(),
        "--hide-scrollbars".to_owned(),
        format!("--user-data-dir={}", profile.display()),
        format!("--window-size={},{}", setup.width, setup.height),
    ];
    if setup.is_dark {
        arguments.push("--blink-settings=preferredColorScheme=0".to_owned());
    }
    let mut options = json!({"args": arguments});
    if !setup.has_scripts {
        options["prefs"] = json!({"profile.managed_default_content_settings.javascript": 2});
    }
    json!({"capabilities": {"alwaysMatch": {
        "browserName": "chrome",
        "goog:chromeOptions": options,
        "goog:loggingPrefs": {"browser": "ALL"},
        "timeouts": {"pageLoad": 240_000, "script": 240_000},
    }}})
}

/// Where pictures of this run are kept.
pub(crate) fn keep_picture(name: &str, picture: &[u8]) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    let directory = target.join("screenshots");
    fs_err::create_dir_all(&directory).unwrap();
    let path = directory.join(format!("{name}.png"));
    fs_err::write(&path, picture).unwrap();
    path
}
