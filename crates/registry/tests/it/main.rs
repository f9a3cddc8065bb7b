//! The registry through its service, without a socket: every endpoint, the store's own suite,
//! collection beside pushes, and what a restart finds.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may die like tests do")]

mod access;
mod blobs;
mod collecting;
mod hostile;
mod limits;
mod lists;
mod manifests;
mod memory;
mod mirrors;
mod opening;
mod restart;
mod robots;
mod security;
mod support;
mod tokens;
mod uploads;

use oci::{Repository, Rules};
use registry::Settings;
use std::time::SystemTime;
use store::auth::Keychain;
use store::remote::{Client, transport};
use support::World;

fn client(world: &World) -> Client {
    Client::new(
        transport(world.router.clone()),
        Keychain::default(),
        store::remote::Settings::default(),
    )
}

#[tokio::test]
async fn a_repository_obeys_the_laws_of_a_store() {
    for world in [World::new(), World::in_memory(Settings::default(), SystemTime::now)] {
        let repository = Repository::parse("127.0.0.1:1/team/package", &Rules::weak()).unwrap();
        let remote = client(&world).repository(repository);
        if let Err(fault) = store::suite::run(&remote).await {
            panic!("{fault}: {:?}", std::error::Error::source(&fault));
        }
    }
}
