//! One config file: its keys, its entries, its helpers.

use super::{Credential, Helpers};
use crate::Error;
use crate::error::Cause;
use crate::files::blocking;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use oci::Repository;
use oci::reference::{DOCKER_HUB, canonical_registry};
use serde_json::{Map, Value};
use std::io;
use std::path::Path;

/// What Docker calls its hub in config files.
pub(crate) const DOCKER_HUB_KEY: &str = "https://index.docker.io/v1/";

/// What Docker Hub calls itself where its images are.
const DOCKER_HUB_WIRE: &str = "registry-1.docker.io";

/// A Docker or Podman config file, unknown fields and all.
#[derive(Debug, Clone, Default)]
pub struct ConfigFile {
    pub(crate) root: Map<String, Value>,
}

impl ConfigFile {
    /// Reads a file; `None` if there is none.
    pub async fn read(path: &Path) -> Result<Option<Self>, Error> {
        let target = path.to_owned();
        let failed = |cause| Error::Open { path: path.to_owned(), cause };
        let read = blocking(move || match fs_err::read(&target) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        });
        let Some(bytes) = read.await.map_err(failed)? else {
            return Ok(None);
        };
        Self::parse(&bytes, &path.display().to_string()).map(Some)
    }

    /// Reads bytes; `origin` names them in errors.
    pub fn parse(bytes: &[u8], origin: &str) -> Result<Self, Error> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::default());
        }
        let failed = |source| Error::Open {
            path: origin.into(),
            cause: Cause::Json { what: "the credentials file".to_owned(), source },
        };
        serde_json::from_slice(bytes).map(|root| Self { root }).map_err(failed)
    }

    /// The credential for a repository: the longest key that fits, else a helper.
    pub(crate) async fn find(
        &self,
        repository: &Repository,
        helpers: &Helpers,
    ) -> Result<Option<Credential>, Cause> {
        // A helper named for the host outranks the entries, as it does for Docker.
        if let Some(helper) = self.named_helper(repository.registry()) {
            return helpers.get(&helper, &server(repository.registry())).await;
        }
        if let Some(found) = self.entry(repository)? {
            return Ok(Some(found));
        }
        match self.text("credsStore") {
            Some(helper) => helpers.get(helper, &server(repository.registry())).await,
            None => Ok(None),
        }
    }

    /// The helper that keeps the credentials of a host, if any.
    pub(crate) fn helper(&self, registry: &str) -> Option<String> {
        self.named_helper(registry).or_else(|| self.text("credsStore").map(str::to_owned))
    }

    /// The keys of `auths` that mean exactly this registry or repository.
    pub(crate) fn keys(&self, target: &str) -> Vec<String> {
        let auths = self.root.get("auths").and_then(Value::as_object);
        let keys = auths.into_iter().flat_map(Map::keys);
        keys.filter(|key| canonical(key) == canonical(target)).cloned().collect()
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.root.get(field).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    fn named_helper(&self, registry: &str) -> Option<String> {
        let helpers = self.root.get("credHelpers")?.as_object()?;
        let found = helpers.iter().find(|(host, _)| canonical(host) == canonical(registry))?;
        found.1.as_str().filter(|name| !name.is_empty()).map(str::to_owned)
    }

    fn entry(&self, repository: &Repository) -> Result<Option<Credential>, Cause> {
        let Some(auths) = self.root.get("auths").and_then(Value::as_object) else {
            return Ok(None);
        };
        let name = repository.to_string();
        let fitting = auths.iter().filter(|(key, _)| covers(&canonical(key), &name));
        let mut fitting: Vec<_> = fitting.collect();
        fitting.sort_by_key(|(key, _)| std::cmp::Reverse(canonical(key).len()));
        for (key, entry) in fitting {
            if let Some(credential) = read_entry(key, entry)? {
                return Ok(Some(credential));
            }
        }
        Ok(None)
    }
}

/// A key without scheme, version path and trailing slash, its host spelled as repositories spell
/// theirs; Docker Hub has one name.
pub(crate) fn canonical(key: &str) -> String {
    let bare = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let bare = bare.trim_end_matches('/');
    let bare = bare.strip_suffix("/v1").or_else(|| bare.strip_suffix("/v2")).unwrap_or(bare);
    let (host, path) = bare.split_once('/').map_or((bare, ""), |(host, path)| (host, path));
    let host = canonical_registry(host).unwrap_or_else(|_| host.to_owned());
    let host = if host == DOCKER_HUB_WIRE { DOCKER_HUB.to_owned() } else { host };
    if path.is_empty() { host } else { format!("{host}/{path}") }
}

/// What a helper is asked for.
pub(crate) fn server(registry: &str) -> String {
    let hub = canonical(registry) == DOCKER_HUB;
    if hub { DOCKER_HUB_KEY.to_owned() } else { registry.to_owned() }
}

/// Whether a key means the repository or something above it.
fn covers(key: &str, name: &str) -> bool {
    name.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Entries may be empty objects: Docker leaves them behind for hosts a helper keeps.
fn read_entry(key: &str, entry: &Value) -> Result<Option<Credential>, Cause> {
    let text = |field: &str| {
        entry.get(field).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    if let Some(token) = text("registrytoken") {
        return Ok(Some(Credential::Bearer(token)));
    }
    if let Some(token) = text("identitytoken") {
        return Ok(Some(Credential::IdentityToken(token)));
    }
    if let Some(auth) = text("auth") {
        return decode(&auth).map(Some).ok_or_else(|| Cause::Entry(key.to_owned()));
    }
    let basic = |(user, password)| Credential::Basic { user, password };
    Ok(text("username").zip(text("password")).map(basic))
}

fn decode(auth: &str) -> Option<Credential> {
    let bytes = STANDARD.decode(auth.trim()).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (user, password) = text.split_once(':')?;
    // Some tools pad with NUL bytes.
    let password = password.trim_end_matches('\0');
    Some(Credential::Basic { user: user.to_owned(), password: password.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use oci::Rules;

    fn basic(user: &str) -> Credential {
        Credential::Basic { user: user.to_owned(), password: "p".to_owned() }
    }

    async fn find(json: &str, repository: &str) -> Option<Credential> {
        let repository = Repository::parse(repository, &Rules::weak()).unwrap();
        let file = ConfigFile::parse(json.as_bytes(), "test").unwrap();
        file.find(&repository, &Helpers::default()).await.unwrap()
    }

    #[tokio::test]
    async fn the_longest_key_that_fits_wins() {
        // aTpw = i:p, bTpw = m:p, bzpw = o:p
        let json = r#"{"auths":{"r.io":{"auth":"aTpw"},"r.io/a":{"auth":"bTpw"},"r.io/a/b/c":{"auth":"bzpw"}}}"#;
        assert_eq!(find(json, "r.io/x").await, Some(basic("i")));
        assert_eq!(find(json, "r.io/a/b").await, Some(basic("m")));
        assert_eq!(find(json, "r.io/ab").await, Some(basic("i")));
        assert_eq!(find(json, "r.io/a/b/c").await, Some(basic("o")));
        assert_eq!(find(json, "r.io.evil.org/a").await, None);
    }

    #[tokio::test]
    async fn h6_a_host_is_known_however_it_is_spelled() {
        for key in ["https://R.io:443/v2/", "r.io.", "r.io:0443", "R.IO"] {
            let json = format!(r#"{{"auths":{{"{key}":{{"auth":"aTpw"}}}}}}"#);
            for repository in ["r.io/a", "R.io:443/a", "r.io./a"] {
                assert_eq!(find(&json, repository).await, Some(basic("i")), "{key} {repository}");
            }
            assert_eq!(find(&json, "r.io:80/a").await, None, "{key}");
        }
        let single = r#"{"auths":{"registry":{"auth":"aTpw"}}}"#;
        assert_eq!(find(single, "registry:443/a").await, Some(basic("i")));
        assert_eq!(find(single, "registry:5000/a").await, None);
    }

    #[tokio::test]
    async fn docker_hub_has_many_names() {
        for key in ["https://index.docker.io/v1/", "docker.io", "index.docker.io"] {
            let json = format!(r#"{{"auths":{{"{key}":{{"auth":"aTpw"}}}}}}"#);
            assert_eq!(find(&json, "crossplane/provider").await, Some(basic("i")), "{key}");
        }
    }

    #[tokio::test]
    async fn tokens_and_plain_fields_are_read() {
        let identity = r#"{"auths":{"https://r.io/v2/":{"auth":"aTpw","identitytoken":"t"}}}"#;
        assert_eq!(find(identity, "r.io/a").await, Some(Credential::IdentityToken("t".into())));
        let plain = r#"{"auths":{"r.io":{"username":"u","password":"p"}}}"#;
        assert_eq!(find(plain, "r.io/a").await, Some(basic("u")));
        assert_eq!(find(r#"{"auths":{"r.io":{}}}"#, "r.io/a").await, None);
    }

    #[tokio::test]
    async fn a_broken_entry_is_an_error_and_not_silence() {
        let repository = Repository::parse("r.io/a", &Rules::weak()).unwrap();
        let file = ConfigFile::parse(br#"{"auths":{"r.io":{"auth":"!"}}}"#, "test").unwrap();
        let error = file.find(&repository, &Helpers::default()).await.unwrap_err();
        assert!(error.to_string().contains("r.io"), "{error}");
    }
}
