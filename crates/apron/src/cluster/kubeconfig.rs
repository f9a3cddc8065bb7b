//! From kubeconfigs to a client, for commands and for the package manager.

use crate::args::cluster::ClusterArguments;
use crate::failure::{Failure, Outcome};
use crate::settings::Settings;
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The extension of a cluster that names the registry it looks into first. It is written anew, with
/// everything else, whenever `apron up` starts, and goes wherever the kubeconfig is copied.
pub(crate) const REGISTRY: &str = "registry.apron";

/// How long a cluster may take to be reached.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long an answer may take that a person waits for.
const READ_TIME_MAX: Duration = Duration::from_secs(60);
/// A little longer than a watch lasts.
const WATCH_TIME_MAX: Duration = Duration::from_secs(310);

/// Which cluster is meant, as far as somebody said it.
#[derive(Clone, Copy)]
pub(crate) struct Choice<'a> {
    pub(crate) kubeconfig: Option<&'a Path>,
    pub(crate) context: Option<&'a str>,
}

impl<'a> From<&'a ClusterArguments> for Choice<'a> {
    fn from(arguments: &'a ClusterArguments) -> Self {
        let ClusterArguments { kubeconfig, context, .. } = arguments;
        Self { kubeconfig: kubeconfig.as_deref(), context: context.as_deref() }
    }
}

/// A way to a cluster, for somebody who waits for answers.
pub(super) struct Way {
    pub(super) client: Client,
    /// What messages call the cluster.
    pub(super) place: String,
    /// Where the registry is that the cluster looks into first.
    pub(super) registry: Option<SocketAddr>,
}

/// The way to the cluster that is meant.
pub(super) async fn for_commands(choice: Choice<'_>, settings: &Settings) -> Outcome<Way> {
    let there = there(choice, settings);
    let file = read(&there, settings)?;
    let registry = registry(&file, choice.context);
    let mut config = load(choice, file).await?;
    config.read_timeout = Some(READ_TIME_MAX);
    let place = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    Ok(Way { client: client(config)?, place, registry })
}

/// The registry that the cluster of a context looks into first, if its kubeconfig says so.
fn registry(file: &Kubeconfig, context: Option<&str>) -> Option<SocketAddr> {
    let name = context.or(file.current_context.as_deref())?;
    let context = file.contexts.iter().find(|one| one.name == name)?.context.as_ref()?;
    let cluster = file.clusters.iter().find(|one| one.name == context.cluster)?.cluster.as_ref()?;
    let said = cluster.extensions.as_ref()?.iter().find(|one| one.name == REGISTRY)?;
    said.extension["address"].as_str()?.parse().ok()
}

/// A client for somebody who watches: the next news may take as long as a watch lasts. Without a
/// kubeconfig it is for the cluster whose pod this is.
pub(crate) async fn for_watches(choice: Choice<'_>, settings: &Settings) -> Outcome<Client> {
    let there = there(choice, settings);
    if !there.is_empty() || choice.context.is_some() {
        return client(watching(load(choice, read(&there, settings)?).await?));
    }
    let mut config = Config::incluster().map_err(|error| {
        let hint = "name a kubeconfig with --kubeconfig or KUBECONFIG, or run in a pod";
        let mut failure = Failure::new("there is no cluster to manage", hint);
        failure.causes.push(nowhere(settings));
        match error {
            InClusterError::ReadEnvironmentVariable(_) => {
                failure.causes.push("this is not in a pod of a cluster".to_owned());
                failure
            }
            error => failure.because(&error),
        }
    })?;
    config.connect_timeout = Some(CONNECT_TIME_MAX);
    client(watching(config))
}

/// A server that takes a request and never answers must not leave somebody deaf for ever.
fn watching(mut config: Config) -> Config {
    config.read_timeout = Some(WATCH_TIME_MAX);
    config.reset_reader_on_write = true;
    config
}

/// The kubeconfigs that count. As kubectl has it, those of the environment that are not there do
/// not; one that somebody names must be.
fn there(choice: Choice<'_>, settings: &Settings) -> Vec<PathBuf> {
    if let Some(path) = choice.kubeconfig {
        return vec![path.to_owned()];
    }
    settings.kubeconfigs.iter().filter(|path| path.exists()).cloned().collect()
}

/// Why no kubeconfig counts.
fn nowhere(settings: &Settings) -> String {
    let looked = settings.kubeconfigs.iter().map(|path| path.display().to_string());
    match looked.collect::<Vec<_>>().as_slice() {
        [] => "neither KUBECONFIG nor HOME is set".to_owned(),
        looked => format!("{} does not exist", looked.join(" or ")),
    }
}

/// What kubeconfigs say about the cluster that is meant.
async fn load(choice: Choice<'_>, file: Kubeconfig) -> Outcome<Config> {
    let known: Vec<String> = file.contexts.iter().map(|one| one.name.clone()).collect();
    let context = choice.context.map(str::to_owned);
    let chosen = context.clone().or_else(|| file.current_context.clone());
    let options = KubeConfigOptions { context, ..Default::default() };
    let mut config =
        Config::from_custom_kubeconfig(file, &options).await.map_err(|error| match error {
            KubeconfigError::CurrentContextNotSet | KubeconfigError::LoadContext(_) => {
                unknown_context(chosen.as_deref(), &known)
            }
            error => Failure::new(
                "the kubeconfig does not say how to reach a cluster",
                "check it with `kubectl config view`, or name another with --kubeconfig",
            )
            .because(&error),
        })?;
    config.connect_timeout = Some(CONNECT_TIME_MAX);
    Ok(config)
}

/// All kubeconfigs as one.
fn read(there: &[PathBuf], settings: &Settings) -> Outcome<Kubeconfig> {
    if there.is_empty() {
        let mut failure = Failure::new(
            "there is no cluster to talk to",
            "name a kubeconfig with --kubeconfig or KUBECONFIG; `apron up` brings up a \
             control plane here, and prints its own",
        );
        failure.causes.push(nowhere(settings));
        return Err(failure);
    }
    let failed = |error| unreadable(there, &error);
    let mut all = Kubeconfig::default();
    for path in there {
        fs_err::File::open(path).map_err(|error| Failure::file(&error))?;
        let next = Kubeconfig::read_from(path).map_err(failed)?;
        all = all.merge(next).map_err(failed)?;
    }
    Ok(all)
}

fn unreadable(paths: &[PathBuf], error: &KubeconfigError) -> Failure {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let message = format!("{} cannot be read as a kubeconfig", paths.join(" and "));
    let mut failure = Failure::new(message, "check it with `kubectl config view`");
    // The rest draws a picture of the spot.
    failure.causes.extend(error.to_string().lines().next().map(str::to_owned));
    failure
}

fn unknown_context(chosen: Option<&str>, known: &[String]) -> Failure {
    let message = match chosen {
        Some(name) => format!("the kubeconfig has no context `{name}`"),
        None => "the kubeconfig has no current context".to_owned(),
    };
    let hint = match known {
        [] => "it has none at all; name another file with --kubeconfig".to_owned(),
        known => format!("choose one with --context: {}", known.join(", ")),
    };
    Failure::new(message, hint)
}

/// A client for that cluster.
fn client(config: Config) -> Outcome<Client> {
    // One TLS stack for the whole process; that it was chosen already is fine.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Client::try_from(config).map_err(|error| {
        Failure::new(
            "the credentials in the kubeconfig cannot be used",
            "check its certificates and keys, and that programs it names are installed",
        )
        .because(&error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_kubeconfig_names_the_registry_of_the_cluster_that_is_meant() {
        let cluster = |name: &str, extensions: serde_json::Value| json!({"name": name, "cluster": {"server": "https://h", "extensions": extensions}});
        let near = json!([{"name": REGISTRY, "extension": {"address": "127.0.0.1:5000"}}]);
        let other = json!([{"name": "other", "extension": {"address": "127.0.0.1:1"}}]);
        let context = |name: &str| json!({"name": name, "context": {"cluster": name, "user": "u"}});
        let file: Kubeconfig = serde_json::from_value(json!({
            "current-context": "near", "contexts": [context("near"), context("far")],
            "clusters": [cluster("near", near), cluster("far", other)],
        }))
        .unwrap();
        let found = |context| registry(&file, context).map(|it| it.to_string());
        assert_eq!(found(None).as_deref(), Some("127.0.0.1:5000"));
        assert_eq!((found(Some("far")), found(Some("nobody"))), (None, None));
    }
}
