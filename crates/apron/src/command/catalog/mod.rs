//! `search` and `which`: questions to the catalog of a registry.

pub(crate) mod resolve;
pub(crate) mod search;
pub(crate) mod which;

use crate::args::registry::RegistryArguments;
use crate::cluster::kubeconfig::{self, Choice};
use crate::failure::{Failure, Outcome};
use crate::registry;
use crate::settings::Settings;
use ::catalog::http::encode as escape;
use oci::{Repository, Rules};
use serde::de::DeserializeOwned;
use store::remote::Client;

/// The largest answer that is read.
const ANSWER_SIZE_MAX: u64 = 64 << 20;
/// What to do if there is no catalog.
const NO_CATALOG: &str = "ask a registry that `apron registry serve` or `apron up` serves";

/// The catalog of a registry.
struct Catalog {
    client: Client,
    /// Any repository of the registry.
    place: Repository,
}

impl Catalog {
    /// The one that was named, or that of the control plane that was brought up here.
    async fn connect(
        host: Option<&str>,
        arguments: &RegistryArguments,
        settings: &Settings,
    ) -> Outcome<Self> {
        let host = match host {
            Some(host) => host.to_owned(),
            None => own_host(settings)?,
        };
        let place = Repository::parse(&format!("{host}/catalog"), &Rules::strict());
        let place = place.map_err(|error| {
            let hint = "name a host, such as registry.example.org or 127.0.0.1:5000";
            Failure::new(format!("`{host}` is not a registry"), hint).because(&error)
        })?;
        let client = registry::client(arguments, settings).await?;
        Ok(Self { client, place })
    }

    /// Where packages of this registry are.
    fn host(&self) -> &str {
        self.place.registry()
    }

    /// The answer to a question; none if what it is about is not there.
    async fn ask<T: DeserializeOwned>(&self, address: &str) -> Outcome<Option<T>> {
        let cannot = || format!("cannot ask {} about its packages", self.host());
        let read = self.client.read_beside(&self.place, address, ANSWER_SIZE_MAX).await;
        let read = read.map_err(|error| registry::failed(cannot(), &error))?;
        let Some(bytes) = read else { return Ok(None) };
        let parsed = serde_json::from_slice(&bytes);
        parsed.map(Some).map_err(|error| Failure::new(cannot(), NO_CATALOG).because(&error))
    }

    /// The same about something that every catalog answers.
    async fn ask_all<T: DeserializeOwned>(&self, address: &str) -> Outcome<T> {
        self.ask(address).await?.ok_or_else(|| {
            Failure::new(format!("{} has no catalog of its packages", self.host()), NO_CATALOG)
        })
    }
}

fn own_host(settings: &Settings) -> Outcome<String> {
    let choice = Choice { kubeconfig: None, context: None, impersonation: None };
    let own = kubeconfig::own_registry(choice, settings).ok().flatten();
    own.map(|own| own.address.to_string()).ok_or_else(|| {
        Failure::new(
            "it is not said which registry to ask",
            "name one with --registry HOST, or bring up a control plane with `apron up` and use \
             its kubeconfig",
        )
    })
}
