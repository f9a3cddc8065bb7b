//! Mirrors of other registries: from words to clients that reach them.

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::settings::Settings;
use ::registry::mirror::{Mirrors, Source, Upstream};
use ::registry::{Access, Action, Decision, Principal, Registry};
use std::path::PathBuf;
use std::time::Duration;
use store::auth::{Credential, Keychain};
use store::remote::{Client, HttpSettings, Transport, http_client};

/// How long a connection to a mirrored registry may take; somebody waits for it.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// How often a request is tried; a client that waits tries again by itself.
const TRIES: u32 = 2;
/// The pause before the second try.
const BACKOFF: Duration = Duration::from_millis(200);
/// The longest pause, whatever the other registry asks for.
const BACKOFF_MAX: Duration = Duration::from_secs(1);

/// What to mirror, and how.
pub(crate) struct Request {
    /// `prefix=address`, each.
    pub(crate) sources: Vec<String>,
    pub(crate) fresh: Duration,
    pub(crate) auth_file: Option<PathBuf>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) silence: Duration,
}

/// The mirrors that were asked for.
pub(super) async fn mirrors(
    request: &Request,
    settings: &Settings,
    registry: &Registry,
    access: &dyn Access,
) -> Outcome<Mirrors> {
    if request.sources.is_empty() {
        return Ok(Mirrors::default());
    }
    let keychain = keychain(request).await?;
    let transport = transport(request.ca_file.as_ref(), settings)?;
    let mut upstreams: Vec<Upstream> = Vec::new();
    for text in &request.sources {
        let source = Source::parse(text).map_err(|error| unusable(&error))?;
        if upstreams.iter().any(|it| it.source.prefix() == source.prefix()) {
            return Err(Failure::new(
                format!("--mirror names the prefix `{}` twice", source.prefix()),
                "give each registry a prefix of its own",
            ));
        }
        warn(&source, &keychain, access).await?;
        let client = client(request, &source, transport.clone(), keychain.clone());
        upstreams.push(Upstream { source, client, fresh: request.fresh });
    }
    Ok(Mirrors::new(registry, upstreams))
}

fn unusable(error: &::registry::mirror::SourceError) -> Failure {
    use ::registry::mirror::SourceError;
    let hint = match error {
        SourceError::Credentials(_) => {
            "others can read the command line; put them into a file for --mirror-auth-file"
        }
        _ => {
            "--mirror takes a prefix and an address, such as docker.io=https://registry-1.docker.io"
        }
    };
    Failure::new("cannot tell what to mirror", hint).because(error)
}

async fn keychain(request: &Request) -> Outcome<Keychain> {
    let Some(path) = &request.auth_file else { return Ok(Keychain::anonymous()) };
    let hint = "--mirror-auth-file takes a file as `apron login` and `docker login` write it";
    if !path.exists() {
        let what = format!("there is no credentials file {}", path.display());
        return Err(Failure::new(what, hint));
    }
    let read = Keychain::from_files(std::slice::from_ref(path)).await;
    read.map_err(|error| {
        Failure::new("cannot read the credentials for mirrored registries", hint).because(&error)
    })
}

/// Whoever may pull sees what the credentials can see; that is worth a word.
async fn warn(source: &Source, keychain: &Keychain, access: &dyn Access) -> Outcome {
    let Some(example) = source.example() else { return Ok(()) };
    let credential = keychain.credential(&example).await.map_err(|error| {
        Failure::new(
            format!("cannot use the credentials for {}", source.host()),
            "repair the file that --mirror-auth-file names",
        )
        .because(&error)
    })?;
    let open = access.decide(&Principal::anonymous(), Some(source.prefix()), Action::Pull);
    if credential != Credential::Anonymous && open == Decision::Allow {
        output::say(format_args!(
            "anybody may pull from {prefix} what the credentials for {host} can see: use --private, \
             or a rule (`apron registry user allow '*' '{prefix}/**' pull`)",
            prefix = source.prefix(),
            host = source.host(),
        ));
    }
    Ok(())
}

/// A way to other servers, with the system's certificates and some more, and the user's proxies.
pub(super) fn transport(ca_file: Option<&PathBuf>, settings: &Settings) -> Outcome<Transport> {
    let read = |path: &PathBuf| fs_err::read(path).map_err(|error| Failure::file(&error));
    let http = HttpSettings {
        ca_bundle: ca_file.map(read).transpose()?,
        proxies: settings.proxies.clone(),
        connect_timeout: CONNECT_TIME_MAX,
        ..HttpSettings::default()
    };
    http_client(&http).map_err(|error| {
        Failure::new(
            "cannot set up connections to other servers",
            "check --mirror-ca-file, --oidc-ca-file and the proxy settings",
        )
        .because(&error)
    })
}

fn client(request: &Request, source: &Source, transport: Transport, keychain: Keychain) -> Client {
    let settings = store::remote::Settings {
        user_agent: format!("apron/{}", env!("CARGO_PKG_VERSION")),
        plain_http: !source.is_secure(),
        tls_only: source.is_secure(),
        tries: TRIES,
        backoff: BACKOFF,
        backoff_max: BACKOFF_MAX,
        idle_timeout: request.silence,
        ..store::remote::Settings::default()
    };
    Client::new(transport, keychain, settings)
}
