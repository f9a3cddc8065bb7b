//! Volumes: which files they have, and how containers see them.

use super::expansion::expand_known;
use super::fields::{field_text, resource_text};
use super::identity::{Allowances, volume_group};
use super::quantity::parse_whole;
use super::{PodSources, PodSurroundings, TokenWish, all_containers, is_label};
use crate::protocol::{ContainerMount, MountSource, VolumeFile};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::{
    ConfigMap, Container, DownwardAPIVolumeFile, EnvFromSource, EnvVar, KeyToPath, Pod, PodSpec,
    Secret, ServiceAccountTokenProjection, Volume, VolumeProjection,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// How long a token is good for, if a volume does not say.
const TOKEN_SECONDS: i64 = 3_600;
/// Permissions of files, if a volume does not say.
const MODE: i32 = 0o644;

/// What a pod refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceNames {
    /// Secrets.
    pub secrets: BTreeSet<String>,
    /// Config maps.
    pub config_maps: BTreeSet<String>,
    /// Tokens.
    pub tokens: BTreeSet<TokenWish>,
}

/// All that a pod refers to, in volumes and variables.
pub fn list_sources(spec: &PodSpec) -> SourceNames {
    let mut names = SourceNames::default();
    for volume in spec.volumes.iter().flatten() {
        names.secrets.extend(volume.secret.iter().filter_map(|one| one.secret_name.clone()));
        names.config_maps.extend(volume.config_map.iter().map(|one| one.name.clone()));
        for one in projections(volume) {
            names.secrets.extend(one.secret.iter().map(|one| one.name.clone()));
            names.config_maps.extend(one.config_map.iter().map(|one| one.name.clone()));
            names.tokens.extend(one.service_account_token.iter().map(token_wish));
        }
    }
    for container in all_containers(spec) {
        for variable in container.env.iter().flatten() {
            names.take_variable(variable);
        }
        for from in container.env_from.iter().flatten() {
            names.take_all_of(from);
        }
    }
    names
}

impl SourceNames {
    fn take_variable(&mut self, variable: &EnvVar) {
        let Some(from) = &variable.value_from else { return };
        self.secrets.extend(from.secret_key_ref.iter().map(|one| one.name.clone()));
        self.config_maps.extend(from.config_map_key_ref.iter().map(|one| one.name.clone()));
    }

    fn take_all_of(&mut self, from: &EnvFromSource) {
        self.secrets.extend(from.secret_ref.iter().map(|one| one.name.clone()));
        self.config_maps.extend(from.config_map_ref.iter().map(|one| one.name.clone()));
    }
}

fn projections(volume: &Volume) -> impl Iterator<Item = &VolumeProjection> {
    volume.projected.iter().flat_map(|one| one.sources.iter().flatten())
}

fn token_wish(wish: &ServiceAccountTokenProjection) -> TokenWish {
    TokenWish {
        audience: wish.audience.clone().filter(|audience| !audience.is_empty()),
        seconds: wish.expiration_seconds.unwrap_or(TOKEN_SECONDS),
    }
}

/// The files of a pod's volume; nothing, if it is none that has files; the error is what is missing.
pub fn volume_files(
    pod: &Pod,
    volume: &Volume,
    sources: &PodSources,
    place: &PodSurroundings,
) -> Result<Option<Vec<VolumeFile>>, String> {
    let mut files = FileList { mode: MODE, shared: volume_group(pod).is_some(), files: Vec::new() };
    if let Some(said) = &volume.secret {
        files.mode = said.default_mode.unwrap_or(MODE);
        let name = said.secret_name.as_deref().unwrap_or_default();
        let optional = said.optional == Some(true);
        files.add_secret(sources, name, said.items.as_deref(), optional)?;
    } else if let Some(said) = &volume.config_map {
        files.mode = said.default_mode.unwrap_or(MODE);
        let optional = said.optional == Some(true);
        files.add_config_map(sources, &said.name, said.items.as_deref(), optional)?;
    } else if let Some(said) = &volume.downward_api {
        files.mode = said.default_mode.unwrap_or(MODE);
        files.add_fields(pod, said.items.as_deref(), place)?;
    } else if let Some(said) = &volume.projected {
        files.mode = said.default_mode.unwrap_or(MODE);
        for one in projections(volume) {
            files.add_projection(pod, one, sources, place)?;
        }
    } else {
        return Ok(None);
    }
    Ok(Some(files.into_last_of_each_path()))
}

/// The files of a pod's volumes as they are to be now.
#[derive(Debug, Default)]
pub struct RenewedVolumes {
    /// Files by the name of their volume, for those that can be made.
    pub files: Vec<(String, Vec<VolumeFile>)>,
    /// The first volume that cannot be made, and why. A pod that runs goes on with what it has there, and must not lose
    /// the others with it: one of them has the token of its account, which ends.
    pub failure: Option<(String, String)>,
}

/// What becomes of the volumes of a pod.
pub fn renew_volumes(
    pod: &Pod,
    spec: &PodSpec,
    sources: &PodSources,
    place: &PodSurroundings,
    allowances: Allowances,
) -> RenewedVolumes {
    let mut renewed = RenewedVolumes::default();
    for volume in spec.volumes.iter().flatten() {
        let made = match refuse_volume(volume, allowances) {
            Some(why) => Err(why),
            None => volume_files(pod, volume, sources, place),
        };
        match made {
            Ok(files) => renewed.files.extend(files.map(|files| (volume.name.clone(), files))),
            Err(why) => {
                renewed.failure.get_or_insert_with(|| (volume.name.clone(), why));
            }
        }
    }
    renewed
}

struct FileList {
    mode: i32,
    /// Whether a group of the pod is to be able to read them.
    shared: bool,
    files: Vec<VolumeFile>,
}

impl FileList {
    fn add_projection(
        &mut self,
        pod: &Pod,
        one: &VolumeProjection,
        sources: &PodSources,
        place: &PodSurroundings,
    ) -> Result<(), String> {
        if let Some(said) = &one.secret {
            let optional = said.optional == Some(true);
            self.add_secret(sources, &said.name, said.items.as_deref(), optional)
        } else if let Some(said) = &one.config_map {
            let optional = said.optional == Some(true);
            self.add_config_map(sources, &said.name, said.items.as_deref(), optional)
        } else if let Some(said) = &one.downward_api {
            self.add_fields(pod, said.items.as_deref(), place)
        } else if let Some(said) = &one.service_account_token {
            let token = sources.tokens.get(&token_wish(said));
            let token = token.ok_or("there is no token for its service account yet")?;
            self.add_file(&said.path, None, token.as_bytes())
        } else {
            Err("a projected source is of a kind that is not supported here".to_owned())
        }
    }

    fn add_secret(
        &mut self,
        sources: &PodSources,
        name: &str,
        items: Option<&[KeyToPath]>,
        optional: bool,
    ) -> Result<(), String> {
        match sources.secrets.get(name) {
            Some(found) => self.add_entries(&secret_entries(found), items, optional, "secret"),
            None if optional => Ok(()),
            None => Err(format!("secret {name:?} not found")),
        }
    }

    fn add_config_map(
        &mut self,
        sources: &PodSources,
        name: &str,
        items: Option<&[KeyToPath]>,
        optional: bool,
    ) -> Result<(), String> {
        match sources.config_maps.get(name) {
            Some(found) => self.add_entries(&config_entries(found), items, optional, "config"),
            None if optional => Ok(()),
            None => Err(format!("configmap {name:?} not found")),
        }
    }

    fn add_entries(
        &mut self,
        entries: &BTreeMap<&str, &[u8]>,
        items: Option<&[KeyToPath]>,
        optional: bool,
        what: &str,
    ) -> Result<(), String> {
        let Some(items) = items.filter(|items| !items.is_empty()) else {
            let mut all = entries.iter();
            return all.try_for_each(|(name, value)| self.add_file(name, None, value));
        };
        for item in items {
            match entries.get(item.key.as_str()) {
                Some(value) => self.add_file(&item.path, item.mode, value)?,
                None if optional => {}
                None => return Err(format!("references non-existent {what} key: {}", item.key)),
            }
        }
        Ok(())
    }

    fn add_fields(
        &mut self,
        pod: &Pod,
        items: Option<&[DownwardAPIVolumeFile]>,
        place: &PodSurroundings,
    ) -> Result<(), String> {
        for item in items.unwrap_or_default() {
            let text = match (&item.field_ref, &item.resource_field_ref) {
                (Some(field), _) => field_text(pod, &field.field_path, place)?,
                (None, Some(wish)) => resource_text(pod, None, wish, place)?,
                (None, None) => return Err(format!("{} names no field", item.path)),
            };
            self.add_file(&item.path, item.mode, text.as_bytes())?;
        }
        Ok(())
    }

    fn add_file(&mut self, path: &str, mode: Option<i32>, contents: &[u8]) -> Result<(), String> {
        let is_inside = |part: &str| !part.is_empty() && part != "." && part != "..";
        if !path.split('/').all(is_inside) {
            return Err(format!("{path:?} is not a path inside of the volume"));
        }
        let mode = u32::try_from(mode.unwrap_or(self.mode)).unwrap_or(0o644) & 0o777;
        let mode = if self.shared { mode | 0o440 } else { mode };
        let contents = STANDARD.encode(contents);
        self.files.push(VolumeFile { path: path.to_owned(), mode, contents });
        Ok(())
    }

    /// What is said later of the same path is what is there.
    fn into_last_of_each_path(self) -> Vec<VolumeFile> {
        let by_path = self.files.into_iter().map(|file| (file.path.clone(), file));
        by_path.collect::<BTreeMap<_, _>>().into_values().collect()
    }
}

fn secret_entries(secret: &Secret) -> BTreeMap<&str, &[u8]> {
    let all = secret.data.iter().flatten();
    all.map(|(key, value)| (key.as_str(), value.0.as_slice())).collect()
}

fn config_entries(map: &ConfigMap) -> BTreeMap<&str, &[u8]> {
    let texts = map.data.iter().flatten().map(|(key, value)| (key.as_str(), value.as_bytes()));
    let bytes = map.binary_data.iter().flatten();
    texts.chain(bytes.map(|(key, value)| (key.as_str(), value.0.as_slice()))).collect()
}

/// Why a volume cannot be had here; nothing, if it can.
pub fn refuse_volume(volume: &Volume, allowances: Allowances) -> Option<String> {
    // Names become directories of this machine.
    if !is_label(&volume.name) {
        return Some(format!("{:?} cannot be the name of a volume", volume.name));
    }
    let has_files = volume.secret.is_some()
        || volume.config_map.is_some()
        || volume.projected.is_some()
        || volume.downward_api.is_some();
    if has_files || is_empty_directory(volume) {
        return None;
    }
    if volume.host_path.is_some() {
        let why = "paths of the machine are not allowed: apron up --allow-host-path allows them";
        return (!allowances.host_path).then(|| why.to_owned());
    }
    let kind = match serde_json::to_value(volume) {
        Ok(serde_json::Value::Object(fields)) => {
            fields.keys().find(|key| *key != "name").cloned().unwrap_or_default()
        }
        _ => String::new(),
    };
    Some(format!("volumes of type {kind} are not supported here"))
}

/// A volume that names no source is an empty directory.
fn is_empty_directory(volume: &Volume) -> bool {
    let bare = Volume { name: volume.name.clone(), ..Volume::default() };
    volume.empty_dir.is_some() || *volume == bare
}

/// What is mounted into a container, in its order. A volume that is not allowed is refused here, too: volumes were
/// looked at when the pod began, and its object may have been changed since.
pub fn list_mounts(
    spec: &PodSpec,
    container: &Container,
    environment: &BTreeMap<String, String>,
    allowances: Allowances,
) -> Result<Vec<ContainerMount>, String> {
    let volumes = spec.volumes.as_deref().unwrap_or_default();
    let mut mounts = Vec::new();
    for mount in container.volume_mounts.iter().flatten() {
        let volume = volumes.iter().find(|one| one.name == mount.name);
        let volume = volume.ok_or_else(|| {
            format!(
                "cannot find volume {:?} to mount into container {:?}",
                mount.name, container.name
            )
        })?;
        let sub_path = match mount.sub_path_expr.as_deref().filter(|path| !path.is_empty()) {
            Some(path) => {
                let lookup = |name: &str| environment.get(name).map(String::as_str);
                let missing = |name| format!("missing value for {name:?}");
                Some(expand_known(path, lookup).map_err(missing)?)
            }
            None => mount.sub_path.clone().filter(|path| !path.is_empty()),
        };
        if sub_path.iter().any(|path| path.starts_with('/') || path.split('/').any(|it| it == ".."))
        {
            return Err(format!("subPath of volume {:?} leads out of it", mount.name));
        }
        if let Some(why) = refuse_volume(volume, allowances) {
            return Err(format!("volume {:?} cannot be mounted: {why}", mount.name));
        }
        let source = mount_source(spec, volume);
        let is_ours = matches!(source, MountSource::Files { .. });
        let read_only = is_ours || mount.read_only == Some(true);
        mounts.push(ContainerMount {
            source,
            target: mount.mount_path.clone(),
            sub_path,
            read_only,
        });
    }
    // What lies inside of another mount is mounted after it.
    mounts.sort_by_key(|mount| mount.target.trim_end_matches('/').matches('/').count());
    Ok(mounts)
}

fn mount_source(spec: &PodSpec, volume: &Volume) -> MountSource {
    let name = volume.name.clone();
    if let Some(path) = &volume.host_path {
        return MountSource::Host { path: PathBuf::from(&path.path) };
    }
    if is_empty_directory(volume) {
        let said = volume.empty_dir.clone().unwrap_or_default();
        let in_memory = said.medium.as_deref() == Some("Memory");
        let size_max = said.size_limit.and_then(|limit| parse_whole(&limit.0));
        let group = spec.security_context.as_ref().and_then(|it| it.fs_group);
        let group = group.and_then(|group| u32::try_from(group).ok());
        return MountSource::Empty { volume: name, in_memory, size_max, group };
    }
    MountSource::Files { volume: name }
}
