//! One life of a manager: the production one, with its hands on a gate.

use crate::gate::Gate;
use crate::pack::Failure;
use crate::place::Place;
use crate::stage::ManagedKinds;
use controller::cache::Cache;
use controller::fetch::Fetcher;
use controller::{Hands, Manager, Settings, Voice};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::auth::Keychain;
use store::remote;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How often everything is looked at though nothing happened: often enough that a manager that is
/// at rest is seen to be.
pub(crate) const SYNC: Duration = Duration::from_secs(150);

/// What a manager said.
pub(crate) type Diary = Arc<Mutex<Vec<String>>>;

/// A manager at work.
pub(crate) struct Life {
    gate: Gate,
    task: JoinHandle<()>,
    _stop: watch::Sender<bool>,
}

impl Life {
    /// Starts a manager.
    pub(crate) fn begin(
        place: &Place,
        gate: Gate,
        cache: PathBuf,
        (installs_definitions, kinds): (bool, ManagedKinds),
        diary: &Diary,
    ) -> Result<Self, Failure> {
        let client = kube::Client::new(gate.clone(), "default");
        let manages_stacks = kinds == ManagedKinds::InstallObjects;
        let settings = Settings { installs_definitions, manages_stacks, ..settings() };
        let hands = hands(place, client, cache, settings, diary)?;
        let (stop, told) = watch::channel(false);
        let task = tokio::spawn(async move {
            let _ = Manager::new(hands).run(told).await;
        });
        Ok(Self { gate, task, _stop: stop })
    }

    /// Its way to the API server.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Ends it as a kill does: whatever it was doing is not finished.
    pub(crate) fn end(&self) {
        self.gate.shut();
        self.task.abort();
    }
}

/// The hands of a manager whose way to the API server is this client.
pub(crate) fn hands(
    place: &Place,
    client: kube::Client,
    cache: PathBuf,
    settings: Settings,
    diary: &Diary,
) -> Result<Hands, Failure> {
    let cache = Cache::open(cache)?;
    let spoken = remote::Settings { plain_http: true, ..remote::Settings::default() };
    let transport = remote::transport(place.registry.clone());
    let fetch = Fetcher::new(transport, spoken, Keychain::anonymous(), cache.clone());
    let clock = place.clock;
    let time = Arc::new(move || clock.text());
    Ok(Hands::new(client, fetch, cache, settings, time, voice(place, diary)))
}

/// Whatever the manager says is kept, for whoever asks what happened.
fn voice(place: &Place, diary: &Diary) -> Voice {
    let (clock, diary) = (place.clock, Arc::clone(diary));
    Arc::new(move |entry| {
        let mark = if entry.is_trouble { "!" } else { " " };
        let (who, object, said) = (entry.controller, entry.object, entry.message);
        let line = format!("{mark} {} {who} {object}: {said}", clock.text());
        diary.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    })
}

/// As the shell sets a manager up that has a cluster for itself.
pub(crate) fn settings() -> Settings {
    // Users of a simulation write objects by themselves, and want to see them moved.
    Settings {
        sync_interval: SYNC,
        moves_kept: true,
        manages_stacks: false,
        // The server here serves all groups itself, and schedules count the questions it is asked.
        is_aggregated: false,
        ..Settings::alone("sim")
    }
}
