//! An image config in the one form that Go's tools give it: known fields, in their order, without
//! empty ones. They encode a config again whenever they touch its image; written like this it
//! keeps its digest then.

use super::{ImageConfig, null_is_empty};
use crate::{Digest, json};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The time of nothing, which Go's tools write where there is none.
pub const EPOCH: &str = "0001-01-01T00:00:00Z";

/// A JSON object whose empty fields are left out.
macro_rules! object {
    ($name:ident { $($field:ident $key:literal: $type:ty,)* }) => {
        #[derive(PartialEq, Default, Serialize, Deserialize)]
        #[serde(default)]
        struct $name {
            $(
                #[serde(
                    rename = $key,
                    deserialize_with = "null_is_empty",
                    skip_serializing_if = "is_empty"
                )]
                $field: $type,
            )*
        }
    };
}

fn is_empty<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Something that is so, or is not mentioned.
#[derive(PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Flag(bool);

/// The keys of an object whose values say nothing.
type Keys = BTreeMap<String, Map<String, Value>>;

#[derive(Serialize, Deserialize)]
struct Known {
    #[serde(default, deserialize_with = "null_is_empty")]
    architecture: String,
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "is_empty")]
    author: String,
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "is_empty")]
    container: String,
    #[serde(default)]
    created: Time,
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "is_empty")]
    docker_version: String,
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "is_empty")]
    history: Vec<History>,
    #[serde(default, deserialize_with = "null_is_empty")]
    os: String,
    rootfs: RootFs,
    #[serde(default, deserialize_with = "null_is_empty")]
    config: Run,
    #[serde(
        rename = "os.version",
        default,
        deserialize_with = "null_is_empty",
        skip_serializing_if = "is_empty"
    )]
    os_version: String,
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "is_empty")]
    variant: String,
    #[serde(
        rename = "os.features",
        default,
        deserialize_with = "null_is_empty",
        skip_serializing_if = "is_empty"
    )]
    os_features: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct RootFs {
    #[serde(rename = "type")]
    kind: String,
    diff_ids: Vec<Digest>,
}

#[derive(PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct History {
    #[serde(deserialize_with = "null_is_empty", skip_serializing_if = "is_empty")]
    author: String,
    created: Time,
    #[serde(deserialize_with = "null_is_empty", skip_serializing_if = "is_empty")]
    created_by: String,
    #[serde(deserialize_with = "null_is_empty", skip_serializing_if = "is_empty")]
    comment: String,
    #[serde(deserialize_with = "null_is_empty", skip_serializing_if = "is_empty")]
    empty_layer: bool,
}

object!(Run {
    attach_stderr "AttachStderr": Flag,
    attach_stdin "AttachStdin": Flag,
    attach_stdout "AttachStdout": Flag,
    cmd "Cmd": Vec<String>,
    healthcheck "Healthcheck": Option<Health>,
    domainname "Domainname": String,
    entrypoint "Entrypoint": Vec<String>,
    env "Env": Vec<String>,
    hostname "Hostname": String,
    image "Image": String,
    labels "Labels": BTreeMap<String, String>,
    on_build "OnBuild": Vec<String>,
    open_stdin "OpenStdin": Flag,
    stdin_once "StdinOnce": Flag,
    tty "Tty": Flag,
    user "User": String,
    volumes "Volumes": Keys,
    working_dir "WorkingDir": String,
    exposed_ports "ExposedPorts": Keys,
    args_escaped "ArgsEscaped": Flag,
    network_disabled "NetworkDisabled": Flag,
    mac_address "MacAddress": String,
    stop_signal "StopSignal": String,
    shell "Shell": Vec<String>,
});

object!(Health {
    test "Test": Vec<String>,
    interval "Interval": i64,
    timeout "Timeout": i64,
    start_period "StartPeriod": i64,
    retries "Retries": i64,
});

/// A time as Go writes one it has read.
#[derive(PartialEq, Serialize)]
struct Time(String);

impl Default for Time {
    fn default() -> Self {
        Self(EPOCH.to_owned())
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(text.map_or_else(Self::default, |text| Self(rewrite_time(&text))))
    }
}

/// Nanoseconds at most, no zeros at the end of a fraction, and `Z` for no offset.
fn rewrite_time(text: &str) -> String {
    let zone = text.rfind(['Z', '+', '-']).filter(|at| *at >= "2006-01-02T15:04:05".len());
    let (time, zone) = text.split_at(zone.unwrap_or(text.len()));
    let zone = if matches!(zone, "+00:00" | "-00:00") { "Z" } else { zone };
    match time.split_once('.') {
        None => format!("{time}{zone}"),
        Some((seconds, fraction)) => {
            let fraction = fraction.get(..9).unwrap_or(fraction).trim_end_matches('0');
            let point = if fraction.is_empty() { "" } else { "." };
            format!("{seconds}{point}{fraction}{zone}")
        }
    }
}

impl ImageConfig {
    /// The config's bytes as Go's tools would write them. What they do not know is left out, as
    /// they would leave it out.
    pub fn canonical(&self) -> Result<Vec<u8>, serde_json::Error> {
        let config: Known = serde_json::from_value(serde_json::to_value(self)?)?;
        json::to_vec(&config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_is_written_as_go_writes_it() {
        let hex = Digest::of(b"x");
        let text = format!(
            r#"{{"created":"2024-05-06T07:08:09.120000000+00:00","config":{{"User":"65532","Env":["PATH=/bin"],"Cmd":null,"Entrypoint":["/bin/sh","-c","a && b"],"ArgsEscaped":false,"Labels":null,"ExposedPorts":{{"8080/tcp":{{}}}},"Healthcheck":{{"Retries":3,"Test":["CMD","x"],"StartInterval":1}}}},"history":[{{"comment":"c","created_by":"RUN <x>","created":"2024-05-06T07:08:09Z","empty_layer":true}},{{"empty_layer":false}}],"os":"linux","architecture":"arm64","variant":"v8","moby.buildkit":"x","rootfs":{{"diff_ids":["{hex}"],"type":"layers"}}}}"#
        );
        let config: ImageConfig = serde_json::from_str(&text).unwrap();
        let written = String::from_utf8(config.canonical().unwrap()).unwrap();
        let expected = format!(
            r#"{{"architecture":"arm64","created":"2024-05-06T07:08:09.12Z","history":[{{"created":"2024-05-06T07:08:09Z","created_by":"RUN \u003cx\u003e","comment":"c","empty_layer":true}},{{"created":"{EPOCH}"}}],"os":"linux","rootfs":{{"type":"layers","diff_ids":["{hex}"]}},"config":{{"Healthcheck":{{"Test":["CMD","x"],"Retries":3}},"Entrypoint":["/bin/sh","-c","a \u0026\u0026 b"],"Env":["PATH=/bin"],"User":"65532","ExposedPorts":{{"8080/tcp":{{}}}}}},"variant":"v8"}}"#
        );
        assert_eq!(written, expected);
        let again: ImageConfig = serde_json::from_str(&written).unwrap();
        assert_eq!(String::from_utf8(again.canonical().unwrap()).unwrap(), expected);
    }

    #[test]
    fn times_are_written_as_go_writes_them() {
        let check = |text, expected| assert_eq!(rewrite_time(text), expected);
        check("2024-05-06T07:08:09Z", "2024-05-06T07:08:09Z");
        check("2024-05-06T07:08:09.000Z", "2024-05-06T07:08:09Z");
        check("2024-05-06T07:08:09.1234567899+02:00", "2024-05-06T07:08:09.123456789+02:00");
        check("2024-05-06T07:08:09-00:00", "2024-05-06T07:08:09Z");
        check("é", "é");
    }
}
