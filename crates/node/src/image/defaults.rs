//! What an image wants to be run when a Pod does not say otherwise.

use super::PullError;
use serde::Deserialize;
use serde_json::Value;

/// What an image's config says about its program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageDefaults {
    /// The program and its first arguments (`ENTRYPOINT`).
    pub entrypoint: Vec<String>,
    /// Further arguments, or the program if there is no entrypoint (`CMD`).
    pub command: Vec<String>,
    /// The environment, in order; later entries of one name count.
    pub environment: Vec<(String, String)>,
    /// The working directory; empty if not said.
    pub directory: String,
    /// `user`, `uid`, `user:group` and so on; empty if not said.
    pub user: String,
    /// The signal that asks it to end (`SIGQUIT`, `3`), if not SIGTERM.
    pub stop_signal: Option<String>,
}

/// As Docker and OCI write it; Go writes `null` for what is empty.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct WrittenDefaults {
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    env: Option<Vec<String>>,
    working_dir: Option<String>,
    user: Option<String>,
    stop_signal: Option<String>,
}

impl ImageDefaults {
    /// Reads them from an image's config.
    pub fn from_config(config: &oci::ImageConfig) -> Result<Self, PullError> {
        let fields = Value::Object(config.config.extra.clone());
        let written: WrittenDefaults = serde_json::from_value(fields)
            .map_err(|error| PullError::Malformed(format!("its config: {error}")))?;
        let variables = written.env.unwrap_or_default();
        let environment = variables.into_iter().filter_map(|variable| {
            let (name, value) = variable.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        });
        Ok(Self {
            entrypoint: written.entrypoint.unwrap_or_default(),
            command: written.cmd.unwrap_or_default(),
            environment: environment.filter(|(name, _)| !name.is_empty()).collect(),
            directory: written.working_dir.unwrap_or_default(),
            user: written.user.unwrap_or_default(),
            stop_signal: written.stop_signal.filter(|signal| !signal.is_empty()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ImageDefaults, String> {
        let config: oci::ImageConfig = serde_json::from_str(text).unwrap();
        ImageDefaults::from_config(&config).map_err(|error| error.to_string())
    }

    #[test]
    fn what_docker_writes_is_read() {
        let defaults = read(
            r#"{"config":{"Entrypoint":["function"],"Cmd":null,"Env":["PATH=/bin","A=b=c","bad","=x"],
                "WorkingDir":"/w","User":"nonroot:nonroot","StopSignal":"SIGQUIT","Labels":{"a":"b"}}}"#,
        )
        .unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            defaults,
            ImageDefaults {
                entrypoint: vec!["function".to_owned()],
                command: Vec::new(),
                environment: vec![pair("PATH", "/bin"), pair("A", "b=c")],
                directory: "/w".to_owned(),
                user: "nonroot:nonroot".to_owned(),
                stop_signal: Some("SIGQUIT".to_owned()),
            }
        );
        assert_eq!(read("{}").unwrap(), ImageDefaults::default());
    }

    #[test]
    fn a_config_of_another_form_is_refused_with_the_reason() {
        let error = read(r#"{"config":{"Entrypoint":"one text"}}"#).unwrap_err();
        assert!(error.starts_with("the image is malformed: its config: invalid type"), "{error}");
    }
}
