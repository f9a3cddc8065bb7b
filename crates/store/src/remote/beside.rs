//! What a registry serves beside the protocol, such as a catalog of its packages.

use super::request::Call;
use super::send::Fetched;
use super::{Client, HttpError};
use crate::error::{Cause, Error};
use http::Method;
use oci::Repository;
use reqwest::Url;

/// What a token must be good for to look at everything one may pull.
const SCOPE: &str = "registry:catalog:*";

impl Client {
    /// Reads what is at an address of a registry, a path with a query, if it has at most `limit`
    /// bytes; none if there is nothing. `repository` may be any in the registry.
    pub async fn read_beside(
        &self,
        repository: &Repository,
        address: &str,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, Error> {
        let place = repository.registry().to_owned();
        self.find_beside(repository, address, limit)
            .await
            .map_err(|cause| Error::Ask { place, cause })
    }

    async fn find_beside(
        &self,
        repository: &Repository,
        address: &str,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, Cause> {
        let base = self.base(repository).await?;
        // Public content is answered without a challenge. The base address always has one, so that
        // clients with credentials are shown what is theirs, too.
        let mut hello = Call::new(Method::GET, base.clone());
        hello.scopes = vec![SCOPE.to_owned()];
        let _ = self.send(repository, &hello).await;
        let url: Result<Url, _> = base.join(address);
        let mut call = Call::new(Method::GET, url.map_err(|_| HttpError::Url(address.to_owned()))?);
        call.scopes = vec![SCOPE.to_owned()];
        match self.fetch_whole(repository, &call, "the answer", limit).await? {
            Fetched::Found(_, bytes) => Ok(Some(bytes)),
            Fetched::Refused(response) if response.status() == http::StatusCode::NOT_FOUND => {
                Ok(None)
            }
            Fetched::Refused(response) => Err(self.refusal(&call, response).await.into()),
        }
    }
}
