//! A catalog of made-up packages on a port of this machine, for tools that try an API by its document.
//!
//! `serve FILE…` reads each `package.yaml` as a version of `team/package`, prints its address, and
//! answers everybody until it is killed. `scripts/fuzz-api` runs it.

#![expect(clippy::print_stdout, reason = "a program for people")]

use async_trait::async_trait;
use bytes::Bytes;
use catalog::http::{Admitted, Gate, Problem, router};
use catalog::{Head, Index, Rights};
use http::request::Parts;
use oci::layer::LayerWriter;
use oci::{Descriptor, Identifier, Manifest, MediaType, Raw};
use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use store::{Memory, Store as _};

struct Anybody;

#[async_trait]
impl Gate for Anybody {
    async fn admit(&self, _: &Parts) -> Result<Admitted, Problem> {
        Ok(Admitted { rights: Rights::all(), otherwise: None })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let index = Arc::new(Index::create(&directory.path().join("catalog.db"))?);
    let memory = Memory::new();
    let mut heads = Vec::new();
    for (number, path) in std::env::args().skip(1).enumerate() {
        let raw = pack_image(&memory, Path::new(&path)).await?;
        let tags = vec![format!("v1.{number}.0")];
        heads.push(Head { digest: raw.digest.to_string(), tags, is_damaged: false });
    }
    for digest in index.settle("team/package", &heads)? {
        let outcome = catalog::read(&memory, &digest.parse()?, directory.path()).await?;
        index.learn(&digest, &outcome)?;
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, router(index, Arc::new(Anybody))).await?;
    Ok(())
}

async fn pack_image(memory: &Memory, path: &Path) -> Result<Raw, Box<dyn Error>> {
    let text = fs_err::read(path)?;
    let mut writer = LayerWriter::new(Vec::new())?;
    writer.start_file("package.yaml", text.len() as u64)?;
    writer.write_all(&text)?;
    let (bytes, written) = writer.finish()?;
    let mut layer = written.descriptor;
    memory.put_blob(&layer, &Bytes::from(bytes)).await?;
    layer.annotations.insert("io.crossplane.xpkg".to_owned(), "base".to_owned());
    let config = Bytes::from_static(b"{}");
    let described = Descriptor::of(MediaType::DOCKER_CONFIG, &config);
    memory.put_blob(&described, &config).await?;
    let raw = Raw::from_manifest(&Manifest::docker(described, vec![layer]))?;
    memory.put_manifest(&Identifier::Digest(raw.digest.clone()), &raw).await?;
    Ok(raw)
}
