//! What a check works with: repositories nobody else uses, contents nobody else has, uploads.

use crate::client::{Client, Request};
use crate::content::Manifest;
use crate::digest::Algorithm;
use crate::exchange::{Exchange, Verdict};
use crate::random::Random;
use crate::target::Url;
use std::sync::{Mutex, PoisonError};

/// The surroundings of one running check.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) client: std::sync::Arc<Client>,
    prefix: String,
    random: Mutex<Random>,
}

/// Some bytes and their digest.
#[derive(Debug, Clone)]
pub(crate) struct Blob {
    pub(crate) bytes: Vec<u8>,
    pub(crate) digest: String,
}

impl Blob {
    pub(crate) fn new(bytes: impl Into<Vec<u8>>, algorithm: Algorithm) -> Self {
        let bytes = bytes.into();
        let digest = algorithm.digest(&bytes);
        Self { bytes, digest }
    }
}

impl Context {
    pub(crate) fn new(
        client: std::sync::Arc<Client>,
        prefix: &str,
        seed: u64,
        id: &'static str,
    ) -> Self {
        Self { client, prefix: prefix.to_owned(), random: Mutex::new(Random::new(seed, id)) }
    }

    pub(crate) fn with_random<T>(&self, use_it: impl FnOnce(&mut Random) -> T) -> T {
        use_it(&mut self.random.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A repository that nothing was ever pushed to.
    pub(crate) fn repo(&self) -> Repo<'_> {
        let name = format!("{}/r{}", self.prefix, self.with_random(Random::suffix));
        Repo { client: &self.client, name }
    }

    /// Random bytes, so that no other check has pushed them.
    pub(crate) fn blob(&self, length: usize, algorithm: Algorithm) -> Blob {
        Blob::new(self.with_random(|random| random.bytes(length)), algorithm)
    }

    /// The digest of something that nobody has.
    pub(crate) fn unknown(&self, algorithm: Algorithm) -> String {
        self.blob(64, algorithm).digest
    }
}

/// One repository.
#[derive(Debug, Clone)]
pub(crate) struct Repo<'c> {
    pub(crate) client: &'c Client,
    pub(crate) name: String,
}

impl<'c> Repo<'c> {
    /// A repository whose name is this one's and more.
    pub(crate) fn below(&self, rest: &str) -> Self {
        Self { client: self.client, name: format!("{}/{rest}", self.name) }
    }

    /// A request to `/v2/<name>/<rest>`.
    pub(crate) fn request(&self, method: &'static str, rest: &str) -> Request<'c> {
        let target = format!("/v2/{}/{rest}", self.name);
        self.client.request(method, &target).scope(self.scope())
    }

    fn scope(&self) -> String {
        format!("repository:{}:pull,push,delete", self.name)
    }

    pub(crate) fn get(&self, rest: &str) -> Request<'c> {
        self.request("GET", rest)
    }

    pub(crate) fn head(&self, rest: &str) -> Request<'c> {
        self.request("HEAD", rest)
    }

    pub(crate) fn delete(&self, rest: &str) -> Request<'c> {
        self.request("DELETE", rest)
    }

    pub(crate) fn get_blob(&self, digest: &str) -> Request<'c> {
        self.get(&format!("blobs/{digest}"))
    }

    /// A request for a manifest, with every media type the suite knows in `Accept`.
    pub(crate) fn get_manifest(&self, reference: &str) -> Request<'c> {
        self.get(&format!("manifests/{reference}")).header("accept", crate::content::ACCEPT)
    }

    pub(crate) fn head_manifest(&self, reference: &str) -> Request<'c> {
        self.head(&format!("manifests/{reference}")).header("accept", crate::content::ACCEPT)
    }

    pub(crate) fn put_manifest(&self, reference: &str, manifest: &Manifest) -> Request<'c> {
        self.request("PUT", &format!("manifests/{reference}"))
            .header("content-type", &manifest.media_type)
            .body(manifest.bytes.clone())
    }

    /// Pushes the manifest; the blobs must be there already.
    pub(crate) async fn push(&self, reference: &str, manifest: &Manifest) -> Verdict<Exchange> {
        self.put_manifest(reference, manifest).send().await?.expect(&[201])
    }

    /// Begins an upload.
    pub(crate) async fn start(&self) -> Verdict<Upload<'c>> {
        self.start_with("blobs/uploads/").await
    }

    pub(crate) async fn start_with(&self, rest: &str) -> Verdict<Upload<'c>> {
        let begun = self.request("POST", rest).send().await?.expect(&[202])?;
        Upload::of(self, begun)
    }

    /// Pushes a blob the plain way: POST, then PUT with everything.
    pub(crate) async fn push_blob(&self, blob: &Blob) -> Verdict<Exchange> {
        let upload = self.start().await?;
        upload.put(&blob.digest, &blob.bytes, None).await?.expect(&[201])
    }

    /// The blob is here, with these bytes.
    pub(crate) async fn need_blob(&self, blob: &Blob) -> Verdict<Exchange> {
        let found = self.get_blob(&blob.digest).send().await?.expect(&[200])?;
        found.need_body(&blob.bytes)?;
        Ok(found)
    }

    /// The blob is not here.
    pub(crate) async fn need_no_blob(&self, digest: &str) -> Verdict {
        let rest = format!("blobs/{digest}");
        self.head(&rest).send().await?.expect(&[404])?;
        self.get(&rest).send().await?.expect(&[404]).map(drop)
    }

    /// The manifest is here under this reference, with these bytes.
    pub(crate) async fn need_manifest(
        &self,
        reference: &str,
        manifest: &Manifest,
    ) -> Verdict<Exchange> {
        let found = self.get_manifest(reference).send().await?.expect(&[200])?;
        found.need_body(&manifest.bytes)?;
        Ok(found)
    }

    /// No manifest is here under this reference.
    pub(crate) async fn need_no_manifest(&self, reference: &str) -> Verdict {
        self.head_manifest(reference).send().await?.expect(&[404])?;
        self.get_manifest(reference).send().await?.expect(&[404]).map(drop)
    }
}

/// An upload session: wherever the registry last said it is.
#[derive(Debug, Clone)]
pub(crate) struct Upload<'c> {
    client: &'c Client,
    scope: String,
    pub(crate) url: Url,
    /// The answer that began it.
    pub(crate) begun: Exchange,
}

impl<'c> Upload<'c> {
    /// The session that this answer is about.
    pub(crate) fn of(repo: &Repo<'c>, begun: Exchange) -> Verdict<Self> {
        let url = location(&begun)?;
        Ok(Self { client: repo.client, scope: repo.scope(), url, begun })
    }

    pub(crate) fn request(&self, method: &'static str) -> Request<'c> {
        self.client.request_url(method, self.url.clone()).scope(self.scope.clone())
    }

    /// The smallest chunk the registry wants, and never less than 16 bytes.
    pub(crate) fn chunk(&self) -> usize {
        let wanted = self.begun.header("oci-chunk-min-length");
        wanted.and_then(|text| text.parse().ok()).unwrap_or(0).max(16)
    }

    /// Sends bytes; with a position, as a chunk with `Content-Range`.
    pub(crate) async fn patch(&self, bytes: &[u8], position: Option<usize>) -> Verdict<Exchange> {
        ranged(self.request("PATCH"), bytes, position).send().await
    }

    /// Sends bytes that must be taken, and follows the new location.
    pub(crate) async fn append(
        &mut self,
        bytes: &[u8],
        position: Option<usize>,
    ) -> Verdict<Exchange> {
        let taken = self.patch(bytes, position).await?.expect(&[202])?;
        self.url = location(&taken)?;
        Ok(taken)
    }

    /// Ends the upload, with the last bytes of it.
    pub(crate) async fn put(
        &self,
        digest: &str,
        bytes: &[u8],
        position: Option<usize>,
    ) -> Verdict<Exchange> {
        let url = self.url.with_query(&format!("digest={digest}"));
        let request = self.client.request_url("PUT", url).scope(self.scope.clone());
        ranged(request, bytes, position).send().await
    }

    /// Asks how far the upload is, and follows the location.
    pub(crate) async fn ask(&mut self) -> Verdict<Exchange> {
        let told = self.request("GET").send().await?.expect(&[204])?;
        if told.header("location").is_some() {
            self.url = location(&told)?;
        }
        Ok(told)
    }
}

fn ranged<'c>(request: Request<'c>, bytes: &[u8], position: Option<usize>) -> Request<'c> {
    let request = request.header("content-type", "application/octet-stream").body(bytes);
    match position {
        Some(from) if !bytes.is_empty() => {
            request.header("content-range", &format!("{from}-{}", from + bytes.len() - 1))
        }
        _ => request,
    }
}

/// The place that `Location` names, relative or absolute.
pub(crate) fn location(exchange: &Exchange) -> Verdict<Url> {
    let text = exchange.need("location")?;
    let joined = exchange.message.url.join(text);
    joined.map_err(|wrong| exchange.fail_because("a 'location' that can be followed", wrong))
}
