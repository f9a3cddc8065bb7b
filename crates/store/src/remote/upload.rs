//! Blobs to a registry: an upload session, the bytes, the digest that closes it.

use super::lead::next_upload;
use super::request::{Call, Payload, shown};
use super::{Body, HttpError, Remote, text, token};
use crate::Source;
use crate::error::Cause;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{Method, Response, StatusCode};
use oci::{Descriptor, Digest, Repository};
use reqwest::Url;

impl Remote {
    /// Sends a blob. A session that breaks is given up and another begun, with the source opened
    /// again.
    pub(crate) async fn upload(
        &self,
        descriptor: &Descriptor,
        source: &dyn Source,
    ) -> Result<(), Cause> {
        let mut session = self.session(&descriptor.digest);
        let mut tries = 1;
        loop {
            let outcome = self.attempt(descriptor, source, session.take()).await;
            let asked = match &outcome {
                Err(Cause::Http(error)) if is_worth_repeating(error) => error.retry_after(),
                _ => return outcome,
            };
            if tries >= self.client.inner.settings.tries {
                return outcome;
            }
            let why = outcome.as_ref().err().map(ToString::to_string).unwrap_or_default();
            self.client.wait_to_retry(self.repository.registry(), tries, asked, &why).await;
            tries += 1;
            // The answer may have been lost rather than the upload.
            if self.arrived(&descriptor.digest).await {
                return Ok(());
            }
        }
    }

    /// Takes a blob over from another repository of the registry.
    pub(crate) async fn mount(&self, digest: &Digest, from: &Repository) -> Result<bool, Cause> {
        let mut call = self.push(Method::POST, "blobs/uploads/").await?;
        call.url
            .query_pairs_mut()
            .append_pair("mount", &digest.to_string())
            .append_pair("from", from.path());
        call.scopes.push(token::scope(from, "pull"));
        let response = match self.send(&call).await {
            Ok(response) => response,
            // A token server may refuse the neighbour's scope; then we send the bytes.
            Err(Cause::Http(error)) if matches!(*error, HttpError::Unauthorized { .. }) => {
                return Ok(false);
            }
            Err(cause) => return Err(cause),
        };
        match response.status() {
            StatusCode::CREATED => Ok(true),
            StatusCode::ACCEPTED => {
                // A session that leads astray is not used; another is asked for.
                if let Ok(location) = location(&call, &response) {
                    self.keep_session(digest, location);
                }
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    async fn attempt(
        &self,
        descriptor: &Descriptor,
        source: &dyn Source,
        session: Option<Url>,
    ) -> Result<(), Cause> {
        let mut url = match session {
            Some(url) => url,
            None => self.begin().await?,
        };
        if descriptor.size > 0 {
            url = self.transmit(url, descriptor, source).await?;
        }
        self.close(url, &descriptor.digest).await
    }

    /// Whether a blob is there, asked once: the upload itself is what is repeated.
    async fn arrived(&self, digest: &Digest) -> bool {
        let Ok(mut call) = self.pull(Method::HEAD, &format!("blobs/{digest}")).await else {
            return false;
        };
        call.retry = false;
        let answer = self.send(&call).await;
        answer.is_ok_and(|response| response.status().is_success())
    }

    async fn begin(&self) -> Result<Url, Cause> {
        let mut call = self.push(Method::POST, "blobs/uploads/").await?;
        call.retry = false;
        let response = self.send(&call).await?;
        match response.status() {
            StatusCode::ACCEPTED | StatusCode::CREATED => Ok(location(&call, &response)?),
            _ => self.refuse(&call, response).await,
        }
    }

    async fn transmit(
        &self,
        url: Url,
        descriptor: &Descriptor,
        source: &dyn Source,
    ) -> Result<Url, Cause> {
        let plain = self.push_to(Method::PATCH, url);
        let mut call = Call {
            method: plain.method,
            url: plain.url,
            headers: plain.headers,
            payload: Payload::Stream(source, descriptor),
            scopes: plain.scopes,
            retry: false,
            for_token: false,
        };
        call.header(CONTENT_TYPE, "application/octet-stream")?;
        let response = self.send(&call).await?;
        match response.status() {
            StatusCode::ACCEPTED
            | StatusCode::NO_CONTENT
            | StatusCode::CREATED
            | StatusCode::OK => {
                // Some registries go on under the same address without saying so.
                match location(&call, &response) {
                    Err(HttpError::Answer { .. }) => Ok(call.url),
                    next => Ok(next?),
                }
            }
            _ => self.refuse(&call, response).await,
        }
    }

    async fn close(&self, mut url: Url, digest: &Digest) -> Result<(), Cause> {
        url.query_pairs_mut().append_pair("digest", &digest.to_string());
        let mut call = self.push_to(Method::PUT, url);
        call.retry = false;
        call.header(CONTENT_TYPE, "application/octet-stream")?;
        let response = self.send(&call).await?;
        match response.status() {
            StatusCode::CREATED
            | StatusCode::ACCEPTED
            | StatusCode::NO_CONTENT
            | StatusCode::OK => Ok(()),
            _ => self.refuse(&call, response).await,
        }
    }
}

/// Where to go on; relative to where we are.
fn location(call: &Call<'_>, response: &Response<Body>) -> Result<Url, HttpError> {
    let text = text(response.headers(), LOCATION.as_str());
    let missing = || HttpError::Answer { url: shown(&call.url), what: "Location" };
    if text.is_empty() {
        return Err(missing());
    }
    next_upload(&call.url, call.url.join(text).map_err(|_| missing())?)
}

/// Besides what is always worth a second try: a session the registry has lost.
fn is_worth_repeating(error: &HttpError) -> bool {
    let lost = matches!(
        error,
        HttpError::Status { status: StatusCode::NOT_FOUND | StatusCode::RANGE_NOT_SATISFIABLE, .. }
    );
    lost || error.is_transient()
}
