//! Logging in and out: config files changed in place, whole or not at all.

use super::file::{DOCKER_HUB_KEY, canonical, server};
use super::{ConfigFile, Helpers};
use crate::Error;
use crate::error::Cause;
use crate::files::{self, Durability, MODE_PRIVATE, blocking};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use oci::reference::DOCKER_HUB;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Keeps a user and password for a registry (or a path in one) in a config file, or with the
/// helper the file names. Fields of the file we do not know stay.
pub async fn login(
    path: &Path,
    registry: &str,
    user: &str,
    password: &str,
    helpers: &Helpers,
) -> Result<(), Error> {
    let mut file = ConfigFile::read(path).await?.unwrap_or_default();
    let failed = |cause| Error::Credentials { registry: registry.to_owned(), cause };
    if let Some(helper) = file.helper(registry) {
        helpers.store(&helper, &server(registry), user, password).await.map_err(failed)?;
        set(&mut file, registry, json!({}));
    } else {
        let auth = STANDARD.encode(format!("{user}:{password}"));
        set(&mut file, registry, json!({ "auth": auth }));
    }
    save(path, file).await.map_err(failed)
}

/// Forgets what is kept for a registry; `false` if there was nothing.
pub async fn logout(path: &Path, registry: &str, helpers: &Helpers) -> Result<bool, Error> {
    let Some(mut file) = ConfigFile::read(path).await? else {
        return Ok(false);
    };
    let failed = |cause| Error::Credentials { registry: registry.to_owned(), cause };
    let keys = file.keys(registry);
    let helper = file.helper(registry);
    if let Some(helper) = &helper {
        helpers.erase(helper, &server(registry)).await.map_err(failed)?;
    }
    if keys.is_empty() {
        return Ok(helper.is_some());
    }
    if let Some(auths) = file.root.get_mut("auths").and_then(Value::as_object_mut) {
        for key in &keys {
            auths.shift_remove(key);
        }
    }
    save(path, file).await.map_err(failed)?;
    Ok(true)
}

fn set(file: &mut ConfigFile, registry: &str, entry: Value) {
    let old = file.keys(registry);
    let auths = file.root.entry("auths").or_insert_with(|| Value::Object(Map::new()));
    if !auths.is_object() {
        *auths = Value::Object(Map::new());
    }
    let Some(auths) = auths.as_object_mut() else {
        return;
    };
    for key in old {
        auths.shift_remove(&key);
    }
    let hub = canonical(registry) == DOCKER_HUB;
    let key = if hub { DOCKER_HUB_KEY.to_owned() } else { canonical(registry) };
    auths.insert(key, entry);
}

async fn save(path: &Path, file: ConfigFile) -> Result<(), Cause> {
    // A config that is a link stays one: its target is what is replaced.
    let path = path.to_owned();
    blocking(move || {
        let target = fs_err::canonicalize(&path).unwrap_or(path);
        fs_err::create_dir_all(files::parent(&target))?;
        let mut bytes = serde_json::to_vec_pretty(&file.root)
            .map_err(|source| Cause::Json { what: "the credentials file".to_owned(), source })?;
        bytes.push(b'\n');
        Ok(files::replace(&target, &bytes, MODE_PRIVATE, Durability::Synced)?)
    })
    .await
}
