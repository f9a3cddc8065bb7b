//! A catalog in a file, asked as that of a registry is, by its owner.

use super::{Admitted, Gate, Problem, Server};
use crate::index::{Index, Rights};
use async_trait::async_trait;
use axum::body::to_bytes;
use axum::response::IntoResponse as _;
use http::request::Parts;
use http::{Request, StatusCode};
use std::sync::Arc;

/// A catalog that is asked without a registry.
pub struct LocalCatalog(Arc<Server>);

/// The owner of a file may read everything in it.
struct FileOwner;

#[async_trait]
impl Gate for FileOwner {
    async fn admit(&self, _: &Parts) -> Result<Admitted, Problem> {
        Ok(Admitted { rights: Rights::all(), otherwise: None })
    }
}

impl LocalCatalog {
    /// A catalog to ask.
    pub fn new(index: Arc<Index>) -> Self {
        Self(Arc::new(Server::new(index, Arc::new(FileOwner))))
    }

    /// What is answered at an address, a path with a query, if it has at most `limit` bytes; none if
    /// there is nothing.
    pub async fn read(&self, address: &str, limit: usize) -> Result<Option<Vec<u8>>, Problem> {
        let Ok(request) = Request::get(address).body(()) else { return Err(Problem::path()) };
        let (parts, ()) = request.into_parts();
        let response = match self.0.clone().answer(&parts).await {
            Err(problem) if problem.status() == StatusCode::NOT_FOUND => return Ok(None),
            answered => answered?.into_response(),
        };
        let bytes = to_bytes(response.into_body(), limit).await.map_err(|_| Problem::failed())?;
        Ok(Some(bytes.to_vec()))
    }
}
