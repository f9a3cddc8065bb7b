//! From arguments and settings to a client that reaches registries.

use crate::args::registry::RegistryArguments;
use crate::cluster::kubeconfig::{self, Choice};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::settings::Settings;
use oci::{Reference, ReferenceError, Rules};
use std::path::{Path, PathBuf};
use store::auth::Keychain;
use store::remote::{Client, HttpSettings, Retry, RetryWatch, Transport, http_client};
use store::{Advice, Error};

/// Parses a reference as people write it: a missing registry is the default one, a missing tag
/// is `latest`.
pub(crate) fn reference(text: &str, registry: &RegistryArguments) -> Outcome<Reference> {
    let rules = Rules::weak().any_digest().default_registry(&registry.default_registry);
    Reference::parse(text, &rules).map_err(|error| bad_reference(text, &error))
}

/// Parses a reference that must leave nothing unsaid.
pub(crate) fn strict_reference(text: &str) -> Outcome<Reference> {
    Reference::parse(text, &Rules::strict()).map_err(|error| bad_reference(text, &error))
}

fn bad_reference(text: &str, error: &ReferenceError) -> Failure {
    let hint = match error {
        ReferenceError::Digest { .. } | ReferenceError::TwoDigests(_) => {
            "a digest reference looks like registry.example.org/team/package@sha256:… with 64 digits"
        }
        _ => {
            "a reference looks like registry.example.org/team/package:v1.0.0 (`apron help references`)"
        }
    };
    Failure::new(format!("`{text}` is not a reference to a package"), hint).because(error)
}

/// A client with the user's credentials, certificates and proxies.
pub(crate) async fn client(arguments: &RegistryArguments, settings: &Settings) -> Outcome<Client> {
    client_with(keychain(arguments, settings).await?, arguments, settings)
}

/// The user's credentials.
pub(crate) async fn keychain(
    arguments: &RegistryArguments,
    settings: &Settings,
) -> Outcome<Keychain> {
    let failed = |error| {
        Failure::new(
            "cannot read the stored credentials",
            "repair or remove the file, then log in again with `apron login`",
        )
        .because(&error)
    };
    let named: Vec<PathBuf> = arguments.auth_file.iter().cloned().collect();
    let named = Keychain::from_files(&named).await.map_err(failed)?;
    let stored = Keychain::from_files(&settings.auth_files).await.map_err(failed)?;
    // A control plane that was brought up here tells its credential anew each time; what somebody
    // stored for the same address once is older.
    Ok(named.or(own_keychain(settings)).or(stored))
}

/// The credential of the registry that the kubeconfig in effect names, if there is one.
fn own_keychain(settings: &Settings) -> Keychain {
    let choice = Choice { kubeconfig: None, context: None, impersonation: None };
    let own = kubeconfig::own_registry(choice, settings).ok().flatten();
    own.and_then(|own| own.keychain()).unwrap_or_default()
}

/// A client with credentials at hand.
pub(crate) fn client_with(
    keychain: Keychain,
    arguments: &RegistryArguments,
    settings: &Settings,
) -> Outcome<Client> {
    Ok(Client::new(transport(arguments, settings)?, keychain, remote(arguments)))
}

/// The way to registries, with the user's certificates and proxies.
pub(crate) fn transport(arguments: &RegistryArguments, settings: &Settings) -> Outcome<Transport> {
    http_client(&http_settings(arguments, settings)?).map_err(|error| {
        Failure::new(
            "cannot set up the connection to the registry",
            "check --ca-file, --client-cert, --client-key and the proxy settings",
        )
        .because(&error)
    })
}

fn tell_retry(retry: &Retry) {
    let Retry { registry, why, pause, tries, tries_max } = retry;
    let pause = pause.as_secs_f32();
    let place = if why.contains(registry) { String::new() } else { format!("{registry}: ") };
    output::warn(format_args!(
        "{place}{why}; trying again in {pause:.1} s (try {} of {tries_max})",
        tries + 1
    ));
}

/// How to talk to registries.
pub(crate) fn remote(arguments: &RegistryArguments) -> store::remote::Settings {
    store::remote::Settings {
        user_agent: format!("apron/{}", env!("CARGO_PKG_VERSION")),
        plain_http: arguments.plain_http,
        idle_timeout: arguments.silence(),
        retries: if arguments.quiet { RetryWatch::default() } else { RetryWatch::new(tell_retry) },
        ..store::remote::Settings::default()
    }
}

/// The credentials files to ask, first hit counts.
pub(crate) fn auth_files(explicit: Option<&Path>, settings: &Settings) -> Vec<PathBuf> {
    explicit.map(Path::to_owned).into_iter().chain(settings.auth_files.clone()).collect()
}

fn http_settings(arguments: &RegistryArguments, settings: &Settings) -> Outcome<HttpSettings> {
    let read = |path: &Path| fs_err::read(path).map_err(|error| Failure::file(&error));
    let ca_bundle = arguments.ca_file.as_deref().map(read).transpose()?;
    let identity = match (&arguments.client_cert, &arguments.client_key) {
        (Some(certificate), Some(key)) => {
            Some([read(certificate)?, b"\n".to_vec(), read(key)?].concat())
        }
        _ => None,
    };
    Ok(HttpSettings {
        ca_bundle,
        identity,
        insecure: arguments.insecure,
        proxies: settings.proxies.clone(),
        ..HttpSettings::default()
    })
}

/// A failure of a store, with advice that fits its kind.
pub(crate) fn failed(message: impl Into<String>, error: &Error) -> Failure {
    let hint = match error.advice() {
        Advice::Unauthorized { registry } => {
            format!("log in with `apron login {registry}`, and check that the name is right")
        }
        Advice::Forbidden => {
            "check that your credentials may do this, and that files and directories are accessible"
                .to_owned()
        }
        Advice::NotFound => {
            "check the name and the tag; `apron inspect` shows what is there".to_owned()
        }
        Advice::Unreachable { host } => format!(
            "check that {host} is spelled right and reachable from here (proxies are read from HTTPS_PROXY and NO_PROXY)"
        ),
        Advice::Tls => {
            "trust the certificate authority that signed the registry's certificate with --ca-file (a self-signed certificate must not be an authority itself), or use --plain-http if the registry does not speak TLS"
                .to_owned()
        }
        Advice::RateLimited => {
            "wait a while, or log in with `apron login`: registries allow more to those they know"
                .to_owned()
        }
        Advice::Corrupt => {
            "the content was refused; fetch or build it again from a source you trust".to_owned()
        }
        Advice::Timeout => {
            "try again, or allow more silence with --timeout SECONDS".to_owned()
        }
        Advice::TooLarge => "this is larger than any package should be; check the name".to_owned(),
        Advice::Other => "the lines above say why; fix that and run the command again".to_owned(),
    };
    Failure::new(message, hint).because(error)
}
