//! What the environment has to say, read once.
//!
//! No other file reads the environment; rooms get these as values.

use std::ffi::OsString;
use std::path::PathBuf;
use store::remote::Proxies;

/// Everything that is not an argument.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    /// Where credentials are looked for, first hit counts.
    pub(crate) auth_files: Vec<PathBuf>,
    /// Where `login` writes.
    pub(crate) auth_file_for_login: Option<PathBuf>,
    /// Proxies, as `curl`, `kubectl` and others read them.
    pub(crate) proxies: Proxies,
    /// Where temporary files may be put.
    pub(crate) temporary: PathBuf,
    /// Where programs are looked for.
    pub(crate) path: OsString,
    /// Where programs keep what is the user's.
    pub(crate) data_home: Option<PathBuf>,
    /// Kubeconfigs, merged as kubectl does: the first that says something counts.
    pub(crate) kubeconfigs: Vec<PathBuf>,
}

impl Settings {
    /// Reads the environment.
    pub(crate) fn from_environment() -> Self {
        Self::from(&variable)
    }

    /// Reads an environment given as a function.
    pub(crate) fn from(variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let path = |name: &str| variable(name).map(PathBuf::from);
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        // Lower case wins, as with curl; upper-case HTTP_PROXY could be set by a CGI request.
        let either = |lower: &str| text(lower).or_else(|| text(&lower.to_uppercase()));
        let home = path("HOME");
        let data_home = path("XDG_DATA_HOME").or_else(|| Some(home.as_ref()?.join(".local/share")));
        let home_kubeconfig = home.as_ref().map(|home| home.join(".kube/config"));
        let docker = path("DOCKER_CONFIG").or_else(|| Some(home.clone()?.join(".docker")));
        let docker = docker.map(|directory| directory.join("config.json"));
        let explicit = path("REGISTRY_AUTH_FILE");
        let podman = path("XDG_RUNTIME_DIR").map(|run| run.join("containers/auth.json"));
        let podman_home = path("XDG_CONFIG_HOME")
            .or_else(|| Some(home?.join(".config")))
            .map(|config| config.join("containers/auth.json"));
        let kubeconfigs = match variable("KUBECONFIG") {
            Some(list) => {
                std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect()
            }
            None => home_kubeconfig.into_iter().collect(),
        };
        let login = explicit.clone().or_else(|| docker.clone());
        Self {
            auth_files: [explicit, docker, podman, podman_home].into_iter().flatten().collect(),
            auth_file_for_login: login,
            proxies: Proxies {
                http: either("http_proxy"),
                https: either("https_proxy"),
                all: either("all_proxy"),
                none: either("no_proxy"),
            },
            temporary: std::env::temp_dir(),
            path: variable("PATH").unwrap_or_default(),
            data_home,
            kubeconfigs,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_looked_for_where_docker_and_podman_keep_them() {
        let variable = |name: &str| match name {
            "HOME" => Some("/home/ada".into()),
            "XDG_RUNTIME_DIR" => Some("/run/user/1".into()),
            _ => None,
        };
        let settings = Settings::from(&variable);
        let files: Vec<_> = settings.auth_files.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(
            files,
            [
                "/home/ada/.docker/config.json",
                "/run/user/1/containers/auth.json",
                "/home/ada/.config/containers/auth.json",
            ]
        );
        assert_eq!(settings.auth_file_for_login.unwrap(), PathBuf::from(files[0]));
    }

    #[test]
    fn kubeconfigs_are_looked_for_where_kubectl_does() {
        let home = |name: &str| (name == "HOME").then(|| "/home/ada".into());
        let found = Settings::from(&home).kubeconfigs;
        assert_eq!(found, [PathBuf::from("/home/ada/.kube/config")]);
        let both = |name: &str| match name {
            "KUBECONFIG" => Some("/a::/b".into()),
            other => home(other),
        };
        let found = Settings::from(&both).kubeconfigs;
        assert_eq!(found, [PathBuf::from("/a"), PathBuf::from("/b")]);
    }

    #[test]
    fn proxies_are_read_in_both_spellings() {
        let variable = |name: &str| match name {
            "https_proxy" => Some("http://small:1".into()),
            "HTTPS_PROXY" => Some("http://large:1".into()),
            "NO_PROXY" => Some("localhost".into()),
            _ => None,
        };
        let proxy = Settings::from(&variable).proxies;
        assert_eq!(proxy.https.as_deref(), Some("http://small:1"));
        assert_eq!(proxy.none.as_deref(), Some("localhost"));
    }
}
