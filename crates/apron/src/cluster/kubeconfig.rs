//! From kubeconfigs to a client.

use crate::args::cluster::ClusterArguments;
use crate::failure::{Failure, Outcome};
use crate::settings::Settings;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use std::path::PathBuf;
use std::time::Duration;

/// How long a cluster may take to be reached.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long an answer may take.
const READ_TIME_MAX: Duration = Duration::from_secs(60);

/// What the kubeconfigs say about the cluster that is meant.
pub(super) async fn load(arguments: &ClusterArguments, settings: &Settings) -> Outcome<Config> {
    let file = read(arguments, settings)?;
    let known: Vec<String> = file.contexts.iter().map(|one| one.name.clone()).collect();
    let options = KubeConfigOptions { context: arguments.context.clone(), ..Default::default() };
    let chosen = arguments.context.clone().or_else(|| file.current_context.clone());
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
    config.read_timeout = Some(READ_TIME_MAX);
    Ok(config)
}

/// All kubeconfigs as one.
fn read(arguments: &ClusterArguments, settings: &Settings) -> Outcome<Kubeconfig> {
    if let Some(path) = &arguments.kubeconfig {
        fs_err::File::open(path).map_err(|error| Failure::file(&error))?;
        return Kubeconfig::read_from(path)
            .map_err(|error| unreadable(std::slice::from_ref(path), &error));
    }
    // As kubectl has it, files that are not there count for nothing.
    let there: Vec<PathBuf> =
        settings.kubeconfigs.iter().filter(|path| path.exists()).cloned().collect();
    if there.is_empty() {
        let looked: Vec<String> =
            settings.kubeconfigs.iter().map(|path| path.display().to_string()).collect();
        let mut failure = Failure::new(
            "there is no cluster to talk to",
            "name a kubeconfig with --kubeconfig or KUBECONFIG; `apron up` brings up a \
             control plane here, and prints its own",
        );
        failure.causes.push(match looked.as_slice() {
            [] => "neither KUBECONFIG nor HOME is set".to_owned(),
            looked => format!("{} does not exist", looked.join(" or ")),
        });
        return Err(failure);
    }
    let failed = |error| unreadable(&there, &error);
    let mut all = Kubeconfig::default();
    for path in &there {
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
pub(super) fn client(config: Config) -> Outcome<Client> {
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
