//! The environment of a container's program: what the image says, what Services there are, and
//! what the pod says, in this order, the last one winning.

use super::expansion::expand_references;
use super::fields::{field_text, resource_text};
use super::{PodSources, PodSurroundings};
use k8s_openapi::api::core::v1::{Container, EnvFromSource, EnvVarSource, Pod};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddrV4};

/// A Service as the environment tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedService {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: IpAddr,
    /// Its ports: name, number, protocol.
    pub ports: Vec<(Option<String>, u16, String)>,
}

/// The API server as a Service of this name is told of in each pod.
pub fn api_service(api: SocketAddrV4) -> NamedService {
    NamedService {
        name: "kubernetes".to_owned(),
        address: IpAddr::V4(*api.ip()),
        ports: vec![(Some("https".to_owned()), api.port(), "TCP".to_owned())],
    }
}

/// The variables that tell of Services (`NAME_SERVICE_HOST`, `NAME_PORT_80_TCP_ADDR`).
pub fn service_variables(services: &[NamedService]) -> BTreeMap<String, String> {
    let mut told = BTreeMap::new();
    for service in services {
        let prefix = variable_name(&service.name);
        let Some((_, first, _)) = service.ports.first() else { continue };
        let host = match service.address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        told.insert(format!("{prefix}_SERVICE_HOST"), service.address.to_string());
        told.insert(format!("{prefix}_SERVICE_PORT"), first.to_string());
        for (at, (name, port, protocol)) in service.ports.iter().enumerate() {
            if let Some(name) = name.as_ref().filter(|name| !name.is_empty()) {
                let name = format!("{prefix}_SERVICE_PORT_{}", variable_name(name));
                told.insert(name, port.to_string());
            }
            let scheme = protocol.to_lowercase();
            let address = format!("{scheme}://{host}:{port}");
            if at == 0 {
                told.insert(format!("{prefix}_PORT"), address.clone());
            }
            let of_port = format!("{prefix}_PORT_{port}_{}", protocol.to_uppercase());
            told.insert(format!("{of_port}_PROTO"), scheme);
            told.insert(format!("{of_port}_PORT"), port.to_string());
            told.insert(format!("{of_port}_ADDR"), service.address.to_string());
            told.insert(of_port, address);
        }
    }
    told
}

fn variable_name(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}

/// All of a container's environment, but what the image says; the error is what is not there.
pub fn pod_variables(
    pod: &Pod,
    container: &Container,
    sources: &PodSources,
    place: &PodSurroundings,
) -> Result<BTreeMap<String, String>, String> {
    let links = pod.spec.as_ref().and_then(|spec| spec.enable_service_links).unwrap_or(true);
    let mut services = if links { sources.services.clone() } else { Vec::new() };
    services.retain(|one| one.name != "kubernetes");
    services.push(api_service(place.api));
    let of_services = service_variables(&services);
    let mut told = BTreeMap::new();
    for from in container.env_from.iter().flatten() {
        take_all(pod, from, sources, &mut told)?;
    }
    for variable in container.env.iter().flatten() {
        let said = variable.value.as_deref().unwrap_or_default();
        let value = match &variable.value_from {
            _ if !said.is_empty() => {
                let known = |name: &str| told.get(name).or_else(|| of_services.get(name));
                Some(expand_references(said, |name| known(name).map(String::as_str)))
            }
            Some(from) => look_up(pod, container, from, sources, place)?,
            None => Some(String::new()),
        };
        if let Some(value) = value {
            told.insert(variable.name.clone(), value);
        }
    }
    for (name, value) in of_services {
        told.entry(name).or_insert(value);
    }
    Ok(told)
}

/// Takes in each entry of a config map or a secret.
fn take_all(
    pod: &Pod,
    from: &EnvFromSource,
    sources: &PodSources,
    told: &mut BTreeMap<String, String>,
) -> Result<(), String> {
    let prefix = from.prefix.as_deref().unwrap_or_default();
    let entries = if let Some(wish) = &from.config_map_ref {
        match sources.config_maps.get(&wish.name) {
            Some(found) => found.data.clone().unwrap_or_default(),
            None if wish.optional == Some(true) => BTreeMap::new(),
            None => return Err(format!("configmap {:?} not found", wish.name)),
        }
    } else if let Some(wish) = &from.secret_ref {
        match sources.secrets.get(&wish.name) {
            Some(found) => {
                let all = found.data.iter().flatten();
                all.map(|(key, value)| (key.clone(), as_text(&value.0))).collect()
            }
            None if wish.optional == Some(true) => BTreeMap::new(),
            None => return Err(format!("secret {:?} not found", wish.name)),
        }
    } else {
        return Err(format!("{}: envFrom names nothing", super::pod_title(pod)));
    };
    let is_name = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
    let named = entries.into_iter().map(|(key, value)| (format!("{prefix}{key}"), value));
    told.extend(named.filter(|(name, _)| is_name(name)));
    Ok(())
}

fn as_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The value that a variable refers to; nothing, if it is not there and need not be.
fn look_up(
    pod: &Pod,
    container: &Container,
    from: &EnvVarSource,
    sources: &PodSources,
    place: &PodSurroundings,
) -> Result<Option<String>, String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    if let Some(wish) = &from.field_ref {
        return field_text(pod, &wish.field_path, place).map(Some);
    }
    if let Some(wish) = &from.resource_field_ref {
        return resource_text(pod, Some(container), wish, place).map(Some);
    }
    let (kind, what, name, key, optional, object, value) = if let Some(wish) = &from.secret_key_ref
    {
        let found = sources.secrets.get(&wish.name);
        let value = found.and_then(|one| one.data.as_ref()?.get(&wish.key));
        let value = value.map(|bytes| as_text(&bytes.0));
        ("Secret", "secret", &wish.name, &wish.key, wish.optional, found.is_some(), value)
    } else if let Some(wish) = &from.config_map_key_ref {
        let found = sources.config_maps.get(&wish.name);
        let value = found.and_then(|one| one.data.as_ref()?.get(&wish.key)).cloned();
        ("ConfigMap", "configmap", &wish.name, &wish.key, wish.optional, found.is_some(), value)
    } else {
        return Err("a variable's valueFrom names nothing that apron knows".to_owned());
    };
    match value {
        Some(value) => Ok(Some(value)),
        None if optional == Some(true) => Ok(None),
        None if object => Err(format!("couldn't find key {key} in {kind} {namespace}/{name}")),
        None => Err(format!("{what} {name:?} not found")),
    }
}
