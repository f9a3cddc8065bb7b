//! How long a push takes, with a catalog that follows the registry and without.
//!
//! `scripts/bench-catalog` runs it. `push_times DIRECTORY [PUSHES]` pushes small packages, each with a
//! kind, to a registry in the same process, by turns with a catalog and without: the catalog reads what
//! was pushed before while the next push is answered. A push is a layer, a config and a manifest.

#![expect(clippy::print_stdout, reason = "a program for people")]

use bytes::Bytes;
use catalog::Index;
use oci::layer::LayerWriter;
use oci::{Descriptor, Identifier, Manifest, MediaType, Raw, Repository, Rules};
use registry::{Options, Registry, Settings};
use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Store as _;
use store::auth::Keychain;
use store::remote::{Client, transport};

const PUSHES: usize = 300;
const ROUNDS: usize = 4;

type Failed = Box<dyn Error>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [directory, rest @ ..] = words.as_slice() else {
        return Err("usage: push_times DIRECTORY [PUSHES]".into());
    };
    let pushes = rest.first().map_or(Ok(PUSHES), |count| count.parse())?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let place = Path::new(directory).join(format!("round-{round}"));
        if round % 2 == 0 {
            without.extend(push_many(&place, pushes, false).await?);
        } else {
            with.extend(push_many(&place, pushes, true).await?);
        }
    }
    let (alone, followed) =
        (tell_times("without a catalog", without), tell_times("with one", with));
    let ratio = followed / alone;
    let verdict = if ratio < 1.05 { "met" } else { "MISSED" };
    println!("a push takes {ratio:.3} times as long with a catalog (p50); goal < 1.05: {verdict}");
    Ok(())
}

/// Prints how long pushes took; tells what half of them took at most, in ms.
fn tell_times(what: &str, mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1e3;
    println!("push {what}: p50 {:.3} ms, p99 {:.3} ms ({})", at(50), at(99), times.len());
    at(50)
}

/// Pushes packages one after the other; tells how long each took.
async fn push_many(place: &Path, count: usize, has_catalog: bool) -> Result<Vec<Duration>, Failed> {
    let registry = Registry::open(&place.join("data"), Settings::default())?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let mut following = None;
    if has_catalog {
        let index = Arc::new(Index::create(&place.join("catalog.db"))?);
        let (registry, temporary) = (registry.clone(), place.to_owned());
        let stopped = async move {
            let _ = stopped.await;
        };
        following = Some(tokio::spawn(async move {
            Box::pin(follow::follow(registry, index, temporary, stopped, |_| {})).await;
        }));
    }
    let router = registry::router(registry, Options::open());
    let settings = store::remote::Settings::default();
    let client = Client::new(transport(router), Keychain::anonymous(), settings);
    let name = Repository::parse("127.0.0.1:1/team/pushed", &Rules::weak())?;
    let remote = client.repository(name);
    let mut times = Vec::new();
    for number in 0..count {
        let (bytes, mut layer) = pack_layer(number)?;
        let config = Bytes::from_static(b"{}");
        let described = Descriptor::of(MediaType::DOCKER_CONFIG, &config);
        let begun = Instant::now();
        remote.put_blob(&layer, &bytes).await?;
        remote.put_blob(&described, &config).await?;
        layer.annotations.insert("io.crossplane.xpkg".to_owned(), "base".to_owned());
        let raw = Raw::from_manifest(&Manifest::docker(described, vec![layer]))?;
        remote.put_manifest(&Identifier::Tag(format!("v1.{number}.0")), &raw).await?;
        times.push(begun.elapsed());
    }
    // What it has not read by now would be read during the next round, which is without it.
    drop(stop);
    if let Some(following) = following {
        following.await?;
    }
    Ok(times)
}

fn pack_layer(number: usize) -> Result<(Bytes, Descriptor), Failed> {
    let group = "fruit.example.org";
    let package = format!(
        "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: provider-pushed\n  \
         annotations: {{build: '{number}'}}\n---\napiVersion: apiextensions.k8s.io/v1\n\
         kind: CustomResourceDefinition\nmetadata: {{name: plums.{group}}}\nspec:\n  group: {group}\n  \
         names: {{kind: Plum, plural: plums, singular: plum}}\n  scope: Cluster\n  versions:\n  \
         - {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}\n"
    );
    let mut writer = LayerWriter::new(Vec::new())?;
    writer.start_file("package.yaml", package.len() as u64)?;
    writer.write_all(package.as_bytes())?;
    let (bytes, written) = writer.finish()?;
    Ok((Bytes::from(bytes), written.descriptor))
}
