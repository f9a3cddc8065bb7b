//! Config files and helpers: looking up, logging in, logging out.

use crate::{chain, repository};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::auth::{Credential, Helpers, Keychain, login, logout};

fn basic(user: &str, password: &str) -> Credential {
    Credential::Basic { user: user.into(), password: password.into() }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap()
}

/// A helper that keeps one credential in a file beside it.
fn helpers(directory: &Path, script: &str) -> Helpers {
    let (text, path) = (directory.join("text"), directory.join("docker-credential-test"));
    fs_err::write(&text, format!("#!/bin/sh\ncd {}\n{script}\n", directory.display())).unwrap();
    // A file that is open for writing cannot be run, and helpers that other tests are just starting
    // have open what this process has open. So another process writes it.
    let mut install = std::process::Command::new("install");
    assert!(install.args(["-m", "755"]).args([&text, &path]).status().unwrap().success());
    Helpers { directory: Some(directory.to_owned()), timeout: Duration::from_secs(60) }
}

const KEEPER: &str = r#"case "$1" in
get) read server; [ -f kept ] && [ "$server" = "r.io" ] && cat kept || { echo "credentials not found in native keychain"; exit 1; } ;;
store) cat > kept ;;
erase) rm -f kept ;;
esac"#;

async fn find(keychain: &Keychain, name: &str) -> Credential {
    keychain.credential(&repository(name)).await.unwrap()
}

#[tokio::test]
async fn logging_in_and_out_keeps_what_it_does_not_know() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/config.json");
    let helpers = Helpers::default();
    login(&path, "r.io", "u", "p:with:colons", &helpers).await.unwrap();
    let mode = fs_err::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut config = read(&path);
    config["HttpHeaders"] = json!({"X": "y"});
    config["auths"]["other.io"] = json!({"auth": "dTpw", "email": "a@b"});
    fs_err::write(&path, config.to_string()).unwrap();
    login(&path, "https://r.io/v2/", "u2", "p2", &helpers).await.unwrap();
    let keychain =
        Keychain::from_files(&[directory.path().join("none"), path.clone()]).await.unwrap();
    assert_eq!(find(&keychain, "r.io/a").await, basic("u2", "p2"));
    assert_eq!(find(&keychain, "other.io/a").await, basic("u", "p"));
    assert_eq!(find(&keychain, "third.io/a").await, Credential::Anonymous);
    assert!(logout(&path, "r.io", &helpers).await.unwrap());
    assert!(!logout(&path, "r.io", &helpers).await.unwrap());
    let config = read(&path);
    assert_eq!(config["HttpHeaders"]["X"], "y");
    assert_eq!(config["auths"], json!({"other.io": {"auth": "dTpw", "email": "a@b"}}));
    assert!(!logout(&directory.path().join("none"), "r.io", &helpers).await.unwrap());
}

#[tokio::test]
async fn docker_hub_is_kept_under_dockers_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.json");
    login(&path, "docker.io", "u", "p", &Helpers::default()).await.unwrap();
    assert_eq!(read(&path)["auths"]["https://index.docker.io/v1/"]["auth"], "dTpw");
    let keychain = Keychain::from_files(&[path]).await.unwrap();
    assert_eq!(find(&keychain, "crossplane/provider").await, basic("u", "p"));
}

#[tokio::test]
async fn a_link_to_a_config_stays_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let (real, link) = (directory.path().join("real.json"), directory.path().join("link.json"));
    fs_err::write(&real, "{}").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    login(&link, "r.io", "u", "p", &Helpers::default()).await.unwrap();
    assert!(fs_err::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(read(&real)["auths"]["r.io"]["auth"], "dTpw");
}

async fn with_store(directory: &Path, key: &str) -> (PathBuf, Keychain) {
    let path = directory.join("config.json");
    let config = match key {
        "credsStore" => json!({"credsStore": "test"}),
        _ => json!({"credHelpers": {"r.io": "test"}, "auths": {"r.io": {"auth": "dTpw"}}}),
    };
    fs_err::write(&path, config.to_string()).unwrap();
    let keychain = Keychain::from_files(std::slice::from_ref(&path)).await.unwrap();
    (path, keychain)
}

#[tokio::test]
async fn a_helper_keeps_and_forgets() {
    for key in ["credsStore", "credHelpers"] {
        let directory = tempfile::tempdir().unwrap();
        let helpers = helpers(directory.path(), KEEPER);
        let (path, keychain) = with_store(directory.path(), key).await;
        let keychain = keychain.with_helpers(helpers.clone());
        assert_eq!(find(&keychain, "r.io/a").await, Credential::Anonymous);
        login(&path, "r.io", "u", "s", &helpers).await.unwrap();
        assert_eq!(read(&path)["auths"]["r.io"], json!({}));
        assert_eq!(find(&keychain, "r.io/a").await, basic("u", "s"));
        assert_eq!(find(&keychain, "other.io/a").await, Credential::Anonymous);
        assert!(logout(&path, "r.io", &helpers).await.unwrap());
        assert_eq!(find(&keychain, "r.io/a").await, Credential::Anonymous);
    }
}

#[tokio::test]
async fn a_helper_may_answer_with_a_token() {
    let directory = tempfile::tempdir().unwrap();
    let helpers = helpers(directory.path(), r#"echo '{"Username":"<token>","Secret":"t"}'"#);
    let (_, keychain) = with_store(directory.path(), "credsStore").await;
    let found = find(&keychain.with_helpers(helpers), "r.io/a").await;
    assert_eq!(found, Credential::IdentityToken("t".into()));
}

#[tokio::test]
async fn a_helper_that_fails_is_an_error_that_names_it() {
    let scripts = [
        ("echo locked; exit 1", "locked"),
        ("echo nonsense", "not valid JSON"),
        ("exec sleep 600", "no answer"),
    ];
    for (script, expected) in scripts {
        let directory = tempfile::tempdir().unwrap();
        let mut helpers = helpers(directory.path(), script);
        if expected == "no answer" {
            helpers.timeout = Duration::from_millis(500);
        }
        let (_, keychain) = with_store(directory.path(), "credsStore").await;
        let outcome = keychain.with_helpers(helpers).credential(&repository("r.io/a")).await;
        let error = chain(&outcome.unwrap_err());
        assert!(error.contains(expected) && error.contains("docker-credential-test"), "{error}");
    }
}

#[tokio::test]
async fn a_missing_helper_and_a_dangerous_name_are_errors() {
    for name in ["does-not-exist-here", "../../bin/sh"] {
        let json = json!({"credsStore": name}).to_string();
        let keychain = Keychain::from_json(json.as_bytes()).unwrap();
        assert!(keychain.credential(&repository("r.io/a")).await.is_err());
    }
}

#[tokio::test]
async fn a_kubernetes_secret_is_a_config_too() {
    let secret = br#"{"auths":{"xpkg.example.org":{"username":"u","password":"p","auth":"dTpw"}}}"#;
    let keychain = Keychain::from_json(secret).unwrap().or(Keychain::anonymous());
    assert_eq!(find(&keychain, "xpkg.example.org/a").await, basic("u", "p"));
    assert!(Keychain::from_json(b"nonsense").is_err());
    assert!(!format!("{:?}", find(&keychain, "xpkg.example.org/a").await).contains("\"p\""));
}
