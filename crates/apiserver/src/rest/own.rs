//! What the server does by itself with objects, through the same doors as clients.

use std::sync::Arc;

use serde_json::Value;

use super::delete::{self, Propagation};
use super::store::{self, Change};
use super::{Request, create, follow, hosted, owner, update};
use crate::Server;
use crate::auth::User;
use crate::http::body;
use crate::http::negotiate::Form;
use crate::http::query::{FieldValidation, Query, WriteOptions};
use crate::http::status::Failure;
use crate::http::target::Target;
use crate::kind::{Kind, split_key};
use schema::object::meta_text;

/// The name under which upkeep writes, as upstream's controllers do.
const AGENT: &str = "kube-controller-manager";

/// An object the server itself wants to do something with.
pub(crate) struct Own(Request);

impl Own {
    /// The object called `name`, whether it is there or not.
    pub(crate) fn new(kind: &Arc<Kind>, namespace: Option<&str>, name: &str) -> Self {
        Self(request(kind, namespace, name))
    }

    /// One of its subresources.
    pub(crate) fn sub(mut self, name: &str) -> Self {
        self.0.target.subresource = Some(name.to_owned());
        self
    }

    /// The object under a key of the log, if its kind is served.
    pub(crate) fn at(server: &Server, key: &str) -> Option<Self> {
        let (resource, namespace, name) = split_key(key);
        let kind = server.kinds.stored_under(resource)?;
        Some(Self::new(&kind, Some(namespace).filter(|name| !name.is_empty()), name))
    }

    pub(crate) fn kind(&self) -> &Arc<Kind> {
        &self.0.kind
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.0.namespace()
    }

    pub(crate) fn name(&self) -> &str {
        self.0.name()
    }

    /// Makes it.
    pub(crate) async fn make(&self, server: &Arc<Server>, object: Value) -> Result<(), Failure> {
        let mut request = self.0.clone();
        request.target.name = None;
        create::insert(server, &request, object, &options(&self.0.agent), create::Tracked::No)
            .await?;
        self.follow(server).await;
        Ok(())
    }

    /// Deletes it, if it still has this uid.
    pub(crate) async fn remove(
        &self,
        server: &Arc<Server>,
        uid: &str,
        propagation: Propagation,
    ) -> Result<(), Failure> {
        let options = delete::Options::own(uid, propagation);
        delete::remove(server, &self.0, &options).await?;
        self.follow(server).await;
        Ok(())
    }

    /// Changes it, if it still has this uid.
    pub(crate) async fn amend(
        &self,
        server: &Arc<Server>,
        uid: &str,
        edit: impl Fn(&mut Value),
    ) -> Result<(), Failure> {
        let options = options(&self.0.agent);
        store::change(server, &self.0, false, |old| {
            if meta_text(&old, "uid") != uid {
                return Err(Failure::not_found(&self.0.kind, self.name()));
            }
            let mut new = old.clone();
            edit(&mut new);
            if new == old {
                return Ok(Change::Keep);
            }
            let new = owner::track(server, &self.0, &options, Some(&old), new);
            Ok(update::advance(new))
        })
        .await?;
        self.follow(server).await;
        Ok(())
    }

    /// Gives a pod to a node, if it still has this uid.
    pub(crate) async fn give_node(
        &self,
        server: &Arc<Server>,
        uid: &str,
        node: &str,
    ) -> Result<(), Failure> {
        hosted::give_node(server, &self.0, (uid, node), None, false).await
    }

    async fn follow(&self, server: &Arc<Server>) {
        follow(server, &self.0.kind, self.name()).await;
    }
}

/// Writes that are themselves what follows from something, or that come before everything:
/// nothing follows from them.
impl Own {
    /// The same object, written under another name.
    pub(crate) fn by(mut self, agent: &str) -> Self {
        agent.clone_into(&mut self.0.agent);
        self
    }

    /// What is there now.
    pub(crate) fn get(&self, server: &Server) -> Option<Value> {
        let entry = server.log.get(&self.0.key())?;
        store::open(&self.0.kind, &entry).ok()
    }

    /// Makes it, unless it is there already.
    pub(crate) async fn found(&self, server: &Arc<Server>, object: Value) -> Result<(), Failure> {
        let options = options(&self.0.agent);
        match create::insert(server, &self.0, object, &options, create::Tracked::No).await {
            Err(failure) if failure.code != 409 => Err(failure),
            _ => Ok(()),
        }
    }

    /// Puts another in its place.
    pub(crate) async fn replace(&self, server: &Arc<Server>, object: Value) -> Result<(), Failure> {
        store::change(server, &self.0, false, |old| Ok(Change::Remove(old))).await?;
        self.found(server, object).await
    }

    /// Makes it what `edit` says.
    pub(crate) async fn mend(
        &self,
        server: &Arc<Server>,
        edit: impl Fn(&Value) -> Value,
    ) -> Result<(), Failure> {
        let options = options(&self.0.agent);
        let changed = store::change(server, &self.0, false, |old| {
            let new = owner::track(server, &self.0, &options, Some(&old), edit(&old));
            Ok(update::advance(new))
        });
        changed.await.map(|_| ())
    }

    /// Applies a configuration, winning every conflict.
    pub(crate) async fn apply(&self, server: &Arc<Server>, config: &Value) -> Result<(), Failure> {
        let options = WriteOptions { force: true, ..options(&self.0.agent) };
        let changed = store::change(server, &self.0, false, |old| {
            let mut new = owner::applied(server, &self.0, &options, Some(&old), config)?;
            body::prune(&self.0.kind, &mut new);
            Ok(update::advance(new))
        });
        changed.await.map(|_| ())
    }
}

/// A request of the server to itself.
pub(super) fn request(kind: &Arc<Kind>, namespace: Option<&str>, name: &str) -> Request {
    Request {
        kind: Arc::clone(kind),
        user: Arc::new(User::system()),
        target: Target {
            group: kind.group.clone(),
            version: kind.version.clone(),
            resource: kind.plural.clone(),
            namespace: namespace.map(str::to_owned),
            name: Some(name.to_owned()),
            subresource: None,
        },
        warnings: super::Warnings::default(),
        missing: super::Missing::default(),
        query: Query::default(),
        form: Form::Object,
        agent: AGENT.to_owned(),
        media: String::new(),
        body: bytes::Bytes::new(),
    }
}

pub(super) fn options(manager: &str) -> WriteOptions {
    WriteOptions {
        dry_run: false,
        validation: FieldValidation::Ignore,
        manager: manager.to_owned(),
        force: false,
    }
}
