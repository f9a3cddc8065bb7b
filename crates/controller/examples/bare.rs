//! Creates every object of a directory of YAML files, and does nothing else: the limit that
//! installing a package of them is held against (`scripts/bench-manager`).
//!
//! `bare KUBECONFIG DIRECTORY TOGETHER` reads the files first, says `ready`, waits for a line on
//! its standard input, creates the objects with the client that the manager has, so many at once,
//! and prints the seconds that took.

#![expect(clippy::print_stdout, reason = "a program for people")]

use futures::{StreamExt as _, TryStreamExt as _};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::error::Error;
use std::io::BufRead as _;
use std::path::PathBuf;
use std::time::Instant;

/// Where objects of a kind go: only kinds without a namespace, whose plural is regular.
fn path(object: &serde_json::Value) -> String {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    format!("/apis/{}/{}s", text("apiVersion"), text("kind").to_lowercase())
}

fn read(file: &PathBuf) -> Result<(String, Vec<u8>), Box<dyn Error>> {
    let text = fs_err::read_to_string(file)?;
    let object = yaml::parse(&text, 1, &yaml::Limits::default())?.to_json();
    Ok((path(&object), object.to_string().into_bytes()))
}

async fn create(client: &Client, path: &str, body: Vec<u8>) -> Result<(), Box<dyn Error>> {
    let request =
        http::Request::post(path).header("content-type", "application/json").body(body)?;
    client.request_text(request).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [kubeconfig, directory, together] = words.as_slice() else {
        return Err("usage: bare KUBECONFIG DIRECTORY TOGETHER".into());
    };
    let together: usize = together.parse()?;
    let mut files: Vec<PathBuf> = fs_err::read_dir(directory)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_, std::io::Error>>()?;
    files.sort();
    let objects = files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    println!("ready");
    std::io::stdin().lock().read_line(&mut String::new())?;
    let start = Instant::now();
    let client = &client;
    let creates =
        objects.into_iter().map(|(path, body)| async move { create(client, &path, body).await });
    futures::stream::iter(creates).buffer_unordered(together).try_collect::<()>().await?;
    println!("{:.3}", start.elapsed().as_secs_f64());
    Ok(())
}
