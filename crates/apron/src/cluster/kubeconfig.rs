//! From kubeconfigs to a client, for commands and for the package manager.

use crate::args::cluster::{ClusterArguments, Impersonation};
use crate::failure::{Failure, Outcome};
use crate::settings::Settings;
use axum::http::{HeaderName, HeaderValue, Uri};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use serde_json::json;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::auth::Keychain;

/// The extension of a cluster that names the registry it looks into first. It is written anew, with
/// everything else, whenever `apron up` starts, and goes wherever the kubeconfig is copied.
pub(crate) const REGISTRY: &str = "registry.apron";

/// How long a cluster may take to be reached.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long an answer may take that a person waits for.
const READ_TIME_MAX: Duration = Duration::from_secs(60);
/// A little longer than a watch lasts.
const WATCH_TIME_MAX: Duration = Duration::from_secs(310);

/// The registry that a cluster looks into first.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct OwnRegistry {
    pub(crate) address: SocketAddr,
    /// A user and a password, if it asks for any.
    pub(crate) credential: Option<(String, String)>,
}

impl OwnRegistry {
    /// What requests to it carry.
    pub(crate) fn authorization(&self) -> Option<HeaderValue> {
        let (user, password) = self.credential.as_ref()?;
        let value = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        let mut value = HeaderValue::from_str(&value).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Its credential as clients of registries keep theirs, for the names it goes by here.
    pub(crate) fn keychain(&self) -> Option<Keychain> {
        let (user, password) = self.credential.as_ref()?;
        let entry = json!({"auth": STANDARD.encode(format!("{user}:{password}"))});
        let port = self.address.port();
        let auths = json!({
            self.address.to_string(): entry,
            format!("localhost:{port}"): entry,
        });
        Keychain::from_json(json!({"auths": auths}).to_string().as_bytes()).ok()
    }

    /// The extension of a cluster in a kubeconfig that tells of it.
    pub(crate) fn as_extension(&self) -> String {
        let credential = self.credential.as_ref().map(|(user, password)| {
            let (user, password) = (json!(user), json!(password));
            format!("        username: {user}\n        password: {password}\n")
        });
        format!(
            "    extensions:\n    - name: {REGISTRY}\n      extension:\n        address: {}\n{}",
            json!(self.address.to_string()),
            credential.unwrap_or_default()
        )
    }
}

/// The registry that the current context of a file names; nothing if there is no such file.
pub(crate) fn registry_of_file(path: &Path) -> Option<OwnRegistry> {
    registry(&Kubeconfig::read_from(path).ok()?, None)
}

/// The registry of the cluster that is meant, if its kubeconfig says so.
pub(crate) fn own_registry(
    choice: Choice<'_>,
    settings: &Settings,
) -> Outcome<Option<OwnRegistry>> {
    Ok(registry(&read(&there(choice, settings), settings)?, choice.context))
}

/// Which cluster is meant, as far as somebody said it.
#[derive(Clone, Copy)]
pub(crate) struct Choice<'a> {
    pub(crate) kubeconfig: Option<&'a Path>,
    pub(crate) context: Option<&'a str>,
    pub(crate) impersonation: Option<&'a Impersonation>,
}

impl<'a> From<&'a ClusterArguments> for Choice<'a> {
    fn from(arguments: &'a ClusterArguments) -> Self {
        let ClusterArguments { kubeconfig, context, .. } = arguments;
        let impersonation = Some(&arguments.impersonation);
        Self { kubeconfig: kubeconfig.as_deref(), context: context.as_deref(), impersonation }
    }
}

/// A way to a cluster, for somebody who waits for answers.
pub(super) struct Way {
    pub(super) client: Client,
    /// What messages call the cluster.
    pub(super) place: String,
    /// Where the registry is that the cluster looks into first.
    pub(super) registry: Option<OwnRegistry>,
}

/// The way to the cluster that is meant.
pub(super) async fn for_commands(choice: Choice<'_>, settings: &Settings) -> Outcome<Way> {
    let there = there(choice, settings);
    let file = read(&there, settings)?;
    let registry = registry(&file, choice.context);
    let mut config = load(choice, file, settings).await?;
    config.read_timeout = Some(READ_TIME_MAX);
    impersonate(&mut config, choice.impersonation)?;
    let place = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    Ok(Way { client: client(config)?, place, registry })
}

/// Has requests made on behalf of somebody else.
fn impersonate(config: &mut Config, impersonation: Option<&Impersonation>) -> Outcome {
    let Some(Impersonation { user: Some(user), groups, uid }) = impersonation else {
        return Ok(());
    };
    config.auth_info.impersonate = Some(user.clone());
    config.auth_info.impersonate_groups = (!groups.is_empty()).then(|| groups.clone());
    if let Some(uid) = uid {
        let value = HeaderValue::from_str(uid).map_err(|error| {
            Failure::new("cannot use --as-uid", "give a UID of plain letters").because(&error)
        })?;
        config.headers.push((HeaderName::from_static("impersonate-uid"), value));
    }
    Ok(())
}

/// The registry that the cluster of a context looks into first, if its kubeconfig says so.
fn registry(file: &Kubeconfig, context: Option<&str>) -> Option<OwnRegistry> {
    let name = context.or(file.current_context.as_deref())?;
    let cluster = cluster_of(file, name)?;
    let said = cluster.extensions.as_ref()?.iter().find(|one| one.name == REGISTRY)?;
    let text = |name: &str| said.extension[name].as_str().map(str::to_owned);
    let credential = text("username").zip(text("password"));
    Some(OwnRegistry { address: text("address")?.parse().ok()?, credential })
}

/// A client for somebody who watches: the next news may take as long as a watch lasts. Without a
/// kubeconfig it is for the cluster whose pod this is.
pub(crate) async fn for_watches(choice: Choice<'_>, settings: &Settings) -> Outcome<Client> {
    let there = there(choice, settings);
    if !there.is_empty() || choice.context.is_some() {
        return client(watching(load(choice, read(&there, settings)?, settings).await?));
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
async fn load(choice: Choice<'_>, file: Kubeconfig, settings: &Settings) -> Outcome<Config> {
    let known: Vec<String> = file.contexts.iter().map(|one| one.name.clone()).collect();
    let context = choice.context.map(str::to_owned);
    let chosen = context.clone().or_else(|| file.current_context.clone());
    let proxy = chosen.as_deref().and_then(|name| own_proxy(&file, name));
    let options = KubeConfigOptions { context, ..Default::default() };
    let mut config =
        Config::from_custom_kubeconfig(file, &options).await.map_err(|error| match error {
            KubeconfigError::CurrentContextNotSet | KubeconfigError::LoadContext(_) => {
                unknown_context(chosen.as_deref(), &known)
            }
            KubeconfigError::ParseNoProxy(error) => Failure::new(
                "NO_PROXY has an entry that cannot be read",
                "it takes names, addresses and networks (10.0.0.0/8), with a comma between each two",
            )
            .because(&error),
            error => Failure::new(
                "the kubeconfig does not say how to reach a cluster",
                "check it with `kubectl config view`, or name another with --kubeconfig",
            )
            .because(&error),
        })?;
    config.connect_timeout = Some(CONNECT_TIME_MAX);
    config.proxy_url = match proxy {
        Some(own) => Some(proxy_address(&own)?),
        None => proxy_of_environment(&config.cluster_url, settings)?,
    };
    Ok(config)
}

/// The proxy that a kubeconfig names for the cluster of a context. It is used for every address.
fn own_proxy(file: &Kubeconfig, context: &str) -> Option<String> {
    let cluster = cluster_of(file, context)?;
    cluster.proxy_url.clone().filter(|proxy| !proxy.is_empty())
}

/// The proxy that the environment has for the address of a cluster.
fn proxy_of_environment(cluster: &Uri, settings: &Settings) -> Outcome<Option<Uri>> {
    let scheme = cluster.scheme_str().unwrap_or("https");
    let host = cluster.host().unwrap_or_default();
    let proxy = settings.proxies.proxy_for(scheme, host, cluster.port_u16());
    proxy.map(proxy_address).transpose()
}

/// A proxy's address; one without a scheme is spoken to in plain HTTP, as everywhere.
fn proxy_address(text: &str) -> Outcome<Uri> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    // SOCKS of either kind: names are looked up by the proxy.
    let whole = whole.replacen("socks5h://", "socks5://", 1);
    whole.parse().map_err(|error: axum::http::uri::InvalidUri| {
        let hint = "check HTTPS_PROXY, ALL_PROXY and the kubeconfig's proxy-url, such as http://proxy.example.org:3128";
        Failure::new("the proxy's address cannot be read", hint).because(&error)
    })
}

/// The cluster of a context.
fn cluster_of<'a>(file: &'a Kubeconfig, context: &str) -> Option<&'a kube::config::Cluster> {
    let context = file.contexts.iter().find(|one| one.name == context)?.context.as_ref()?;
    file.clusters.iter().find(|one| one.name == context.cluster)?.cluster.as_ref()
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
        let found = |context| registry(&file, context).map(|it| it.address.to_string());
        assert_eq!(found(None).as_deref(), Some("127.0.0.1:5000"));
        assert_eq!((found(Some("far")), found(Some("nobody"))), (None, None));
    }

    #[test]
    fn m5_a_kubeconfig_has_the_credential_of_its_registry() {
        let credential = Some(("apron".to_owned(), "apr_\"x\": y".to_owned()));
        for credential in [credential, None] {
            let own = OwnRegistry { address: "[::1]:5000".parse().unwrap(), credential };
            let text = format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters:\n- name: a\n  \
                 cluster:\n    server: https://h\n{}contexts:\n- name: a\n  context:\n    \
                 cluster: a\n    user: u\n",
                own.as_extension()
            );
            let file: Kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
            assert!(registry(&file, None) == Some(own), "{text}");
        }
    }
}
