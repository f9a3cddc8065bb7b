//! Every store through the one suite, and registries that misbehave.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests may die like tests do"
)]

mod copying;
mod credentials;
mod directory;
mod misbehaving;
mod registry;
mod stub;
mod tarballs;
mod uploads;

use oci::{Identifier, Repository, Rules};

/// A suite's fault with all its causes, for a test to die of.
fn hold(outcome: Result<(), store::suite::Fault>) {
    if let Err(fault) = outcome {
        panic!("{}", chain(&fault));
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut current = error.source();
    while let Some(each) = current {
        text = format!("{text}: {each}");
        current = each.source();
    }
    text
}

fn tag(name: &str) -> Identifier {
    Identifier::Tag(name.to_owned())
}

fn repository(text: &str) -> Repository {
    Repository::parse(text, &Rules::weak()).unwrap()
}

#[tokio::test]
async fn memory_obeys_the_laws() {
    hold(store::suite::run(&store::Memory::new()).await);
}
