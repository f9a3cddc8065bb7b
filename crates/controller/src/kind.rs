//! What the loop needs to know of a kind of object.

use crate::Hands;
use crate::cluster;
use crate::forbidden::Subject;
pub use crate::learnt::Learnt;
use kube::core::DynamicObject;
use kube::core::PartialObjectMeta;
use plan::step::{Need, Refusal, Step};
use tokio::sync::broadcast;

/// A kind of object that is looked after. It gathers what decides about one object, lets `plan`
/// decide, and finds out what `plan` asks for; it makes no choices itself.
pub trait Kind: Send + Sync + 'static {
    /// Everything that decides about one object.
    type World: Send + Sync;

    /// What logs and metrics call it.
    fn name(&self) -> String;

    /// Which objects are watched, and whom news of them concerns.
    fn watches(&self, hands: &Hands) -> Vec<Watch>;

    /// Keys to look at besides those that watches wake, as they come.
    fn calls(&self, _: &Hands) -> Option<broadcast::Receiver<String>> {
        None
    }

    /// Whom a key names, and the condition of it that tells what keeps it from being looked at; none
    /// where there is no such condition.
    fn subject(&self, _: &Hands, _: &str) -> Option<Subject> {
        None
    }

    /// What is known about an object; nothing if it is not there.
    fn gather(
        &self,
        hands: &Hands,
        key: &str,
    ) -> impl Future<Output = Result<Option<Self::World>, cluster::Error>> + Send;

    /// What should become of it.
    fn step(&self, world: &Self::World) -> Step;

    /// Finds something out and puts it into the world.
    fn learn(
        &self,
        hands: &Hands,
        world: &mut Self::World,
        need: Need,
    ) -> impl Future<Output = Result<Learnt, cluster::Error>> + Send;

    /// Tells the world what the API server would not do.
    fn refuse(&self, world: &mut Self::World, refusals: Vec<Refusal>);
}

/// Objects that are watched.
pub struct Watch {
    /// The version of their API.
    pub api_version: String,
    /// Their kind.
    pub kind: String,
    /// Only those in this namespace.
    pub namespace: Option<String>,
    /// Whether changes of its status are no news.
    pub is_for_content: bool,
    /// Whom news of one concerns.
    pub wakes: Box<dyn Fn(&Meta) -> Wakes + Send + Sync>,
}

/// What watches see of an object.
pub type Meta = PartialObjectMeta<DynamicObject>;

/// Whom news concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wakes {
    /// The object itself, which is of the kind that is looked after.
    Itself,
    /// These.
    These(Vec<String>),
    /// All of the kind.
    Everyone,
}

impl Watch {
    /// Watches the kind that is looked after.
    pub fn itself(api_version: &str, kind: &str) -> Self {
        Self::new(api_version, kind, |_| Wakes::Itself)
    }

    /// Watches something that concerns everyone.
    pub fn for_everyone(api_version: &str, kind: &str) -> Self {
        Self::new(api_version, kind, |_| Wakes::Everyone)
    }

    /// Watches objects with a label that names whom they concern.
    pub fn by_label(api_version: &str, kind: &str, label: &'static str) -> Self {
        Self::new(api_version, kind, move |meta| {
            let labels = meta.metadata.labels.as_ref();
            Wakes::These(labels.and_then(|labels| labels.get(label)).into_iter().cloned().collect())
        })
    }

    /// Watches objects that objects of a kind own.
    pub fn by_owner(api_version: &str, kind: &str, owner: &str) -> Self {
        let owner = owner.to_owned();
        Self::new(api_version, kind, move |meta| {
            let owners = meta.metadata.owner_references.iter().flatten();
            let owners = owners.filter(|one| one.kind == owner);
            Wakes::These(owners.map(|one| one.name.clone()).collect())
        })
    }

    /// Watches objects of a kind.
    pub fn new(
        api_version: &str,
        kind: &str,
        wakes: impl Fn(&Meta) -> Wakes + Send + Sync + 'static,
    ) -> Self {
        let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
        Self { api_version, kind, namespace: None, is_for_content: false, wakes: Box::new(wakes) }
    }

    /// Only what is asked for of objects, their labels and owners: changes of their status are no
    /// news.
    #[must_use]
    pub fn for_content(mut self) -> Self {
        self.is_for_content = true;
        self
    }

    /// Only in a namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }
}
