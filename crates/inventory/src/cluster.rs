//! A cluster, as commands ask and change it: every failure says which cluster and what to do.

use api::meta::PackageKind;
use futures::io::AsyncBufRead;
use ground::failure::{Failure, Outcome};
use kube::Client;
use kube::api::{DeleteParams, GetParams, ListParams, LogParams, Patch, PatchParams, PostParams};
use kube::core::Request;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::error::Error as _;

/// Who wrote a field, as API servers remember it.
const MANAGER: &str = "apron";

/// A cluster that somebody chose.
pub struct Cluster {
    client: Client,
    /// What messages call it.
    place: String,
    /// The API group of packages.
    pub group: String,
}

/// One kind of object, as addresses name it.
#[derive(Clone, Debug)]
pub struct Resource {
    path: String,
    /// What messages call it.
    name: String,
}

impl Resource {
    /// A kind of the whole cluster, in a group.
    pub fn of_group(group: &str, version: &str, plural: &str) -> Self {
        Self {
            path: format!("/apis/{group}/{version}/{plural}"),
            name: format!("{plural}.{group}"),
        }
    }

    /// A kind in a group and a namespace.
    pub fn in_namespace(group: &str, version: &str, namespace: &str, plural: &str) -> Self {
        let path = format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}");
        Self { path, name: format!("{plural}.{group}") }
    }

    /// A kind of the core group, of the whole cluster.
    pub fn core_of_cluster(plural: &str) -> Self {
        Self { path: format!("/api/v1/{plural}"), name: plural.to_owned() }
    }

    /// A kind of the core group, in a namespace.
    pub fn core(namespace: &str, plural: &str) -> Self {
        Self { path: format!("/api/v1/namespaces/{namespace}/{plural}"), name: plural.to_owned() }
    }
}

#[derive(Deserialize)]
struct List<T> {
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

impl Cluster {
    /// A cluster that a client reaches.
    pub fn of(client: Client, place: String, suffix: &str) -> Self {
        Self { client, place, group: format!("pkg.{suffix}") }
    }

    /// What messages call it.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What requests are sent with.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Packages of a kind.
    pub fn packages(&self, kind: PackageKind) -> Resource {
        Resource::of_group(&self.group, "v1", &format!("{}s", lower(kind)))
    }

    /// Revisions of a kind of package.
    pub fn revisions(&self, kind: PackageKind) -> Resource {
        Resource::of_group(&self.group, "v1", &format!("{}revisions", lower(kind)))
    }

    /// All objects of a kind; nothing if the cluster does not have the kind.
    pub async fn list<T: DeserializeOwned>(&self, resource: &Resource) -> Outcome<Option<Vec<T>>> {
        self.list_chosen(resource, &ListParams::default()).await
    }

    /// The objects of a kind that have a label with this value; none if the cluster does not have the kind.
    pub async fn list_labelled(
        &self,
        resource: &Resource,
        label: &str,
        value: &str,
    ) -> Outcome<Vec<Json>> {
        let chosen = ListParams::default().labels(&format!("{label}={value}"));
        Ok(self.list_chosen(resource, &chosen).await?.unwrap_or_default())
    }

    async fn list_chosen<T: DeserializeOwned>(
        &self,
        resource: &Resource,
        chosen: &ListParams,
    ) -> Outcome<Option<Vec<T>>> {
        let request = Request::new(&resource.path).list(chosen);
        match self.send::<List<T>>(request).await {
            Ok(list) => Ok(Some(list.items)),
            Err(error) if code(&error) == Some(404) => Ok(None),
            Err(error) => Err(self.failed(format!("cannot list {}", resource.name), &error)),
        }
    }

    /// The log of a container as it comes; none if the pod is gone.
    pub async fn open_log(
        &self,
        namespace: &str,
        pod: &str,
        wished: &LogParams,
    ) -> Outcome<Option<impl AsyncBufRead + use<>>> {
        let failed =
            |error: &kube::Error| self.failed(format!("cannot read the log of {pod}"), error);
        let pods = Resource::core(namespace, "pods");
        let request = Request::new(&pods.path).logs(pod, wished);
        let request = request.map_err(|error| failed(&kube::Error::BuildRequest(error)))?;
        match self.client.request_stream(request).await {
            Ok(log) => Ok(Some(log)),
            Err(error) if code(&error) == Some(404) => Ok(None),
            Err(error) => Err(failed(&error)),
        }
    }

    /// An object; nothing if there is none, or if the cluster does not have the kind.
    pub async fn get<T: DeserializeOwned>(
        &self,
        resource: &Resource,
        name: &str,
    ) -> Outcome<Option<T>> {
        let request = Request::new(&resource.path).get(name, &GetParams::default());
        match self.send(request).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if code(&error) == Some(404) => Ok(None),
            Err(error) => {
                Err(self.failed(format!("cannot read {}", named(resource, name)), &error))
            }
        }
    }

    /// Makes an object; nothing if there is one of that name.
    pub async fn create(
        &self,
        resource: &Resource,
        name: &str,
        object: &Json,
    ) -> Outcome<Option<Json>> {
        let options =
            PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        let request =
            Request::new(&resource.path).create(&options, object.to_string().into_bytes());
        match self.send(request).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if code(&error) == Some(409) => Ok(None),
            Err(error) => {
                Err(self.failed(format!("cannot create {}", named(resource, name)), &error))
            }
        }
    }

    /// Makes an object say this, and leaves alone what it says besides.
    pub async fn apply(&self, resource: &Resource, name: &str, object: &Json) -> Outcome {
        let options = PatchParams::apply(MANAGER).force();
        let request = Request::new(&resource.path).patch(name, &options, &Patch::Apply(object));
        let failed = |error| self.failed(format!("cannot apply {}", named(resource, name)), &error);
        self.send::<Json>(request).await.map(|_| ()).map_err(failed)
    }

    /// Changes the fields that a patch names, and no others.
    pub async fn merge(&self, resource: &Resource, name: &str, patch: &Json) -> Outcome<Json> {
        let options =
            PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let request = Request::new(&resource.path).patch(name, &options, &Patch::Merge(patch));
        let failed =
            |error| self.failed(format!("cannot change {}", named(resource, name)), &error);
        self.send(request).await.map_err(failed)
    }

    /// Asks for an object to be deleted; false if it was not there.
    pub async fn delete(&self, resource: &Resource, name: &str) -> Outcome<bool> {
        let request = Request::new(&resource.path).delete(name, &DeleteParams::background());
        match self.send::<Json>(request).await {
            Ok(_) => Ok(true),
            Err(error) if code(&error) == Some(404) => Ok(false),
            Err(error) => {
                Err(self.failed(format!("cannot delete {}", named(resource, name)), &error))
            }
        }
    }

    async fn send<T: DeserializeOwned>(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<T, kube::Error> {
        self.client.request(request.map_err(kube::Error::BuildRequest)?).await
    }

    /// That the cluster does not have the kinds that packages are made of.
    pub fn without_packages(&self) -> Failure {
        let message = format!("the cluster at {} has no package manager", self.place);
        let hint = "install it with `apron manager install`, or choose another cluster with \
                    --context or --kubeconfig";
        let mut failure = Failure::new(message, hint);
        failure.causes.push(format!("it does not know the API group {}", self.group));
        failure
    }

    fn failed(&self, what: String, error: &kube::Error) -> Failure {
        let place = &self.place;
        let kube::Error::Api(status) = error else {
            let hint = "check that the cluster runs and can be reached from here, or choose \
                        another with --context or --kubeconfig";
            let failure = Failure::new(format!("{what}: no answer from {place}"), hint);
            // Its own words only name the layer that failed.
            return match error.source() {
                Some(source) => failure.because(source),
                None => failure.because(error),
            };
        };
        let hint = match status.code {
            401 => "the credentials in the kubeconfig are not valid there; get new ones",
            403 => "ask an administrator of the cluster for this right",
            409 => "somebody else changed it at the same time; run the command again",
            422 => "change what the line above names, and run the command again",
            429 | 500..=599 => "the cluster is in trouble or busy; run the command again later",
            _ => "the line above is the cluster's answer; change what it names",
        };
        let mut failure = Failure::new(what, hint);
        failure.causes.push(match status.message.trim() {
            "" => format!("{place} answers with {} {}", status.code, status.reason),
            message => message.to_owned(),
        });
        failure
    }
}

fn named(resource: &Resource, name: &str) -> String {
    format!("{}/{name}", resource.name)
}

fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// A kind as people write it.
pub fn lower(kind: PackageKind) -> String {
    kind.as_str().to_lowercase()
}
