//! What was written, so that it need not be read again.
//!
//! To see whether two thousand definitions still say what their package says would mean to read
//! all of them, each time anything happens. API servers count changes of what an object asks for
//! (its generation), so an object with the generation and the labels it had when it was written,
//! or last compared, is still the same.

use api::object::ObjectMeta;
use plan::step::{Packaged, Target};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Objects that are known to say what a package says.
#[derive(Clone, Debug, Default)]
pub struct Written {
    known: Arc<Mutex<BTreeMap<Target, Known>>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    /// What it was made to say.
    content: u64,
    /// What it was then.
    state: Option<String>,
    marks: Marks,
}

/// What of an object's metadata changes when somebody changes what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Marks {
    uid: Option<String>,
    generation: Option<i64>,
    labels: u64,
}

impl Marks {
    fn of(metadata: &ObjectMeta) -> Self {
        let labels = hash(&(&metadata.labels, &metadata.annotations));
        Self { uid: metadata.uid.clone(), generation: metadata.generation, labels }
    }
}

impl Written {
    fn known(&self) -> MutexGuard<'_, BTreeMap<Target, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An object was found to say, or was made to say, what a package says. `state` is what it
    /// says of being activated.
    pub fn note(
        &self,
        target: &Target,
        packaged: &Packaged,
        metadata: &ObjectMeta,
        state: Option<String>,
    ) {
        if metadata.generation.is_none() {
            return;
        }
        let known = Known { content: content(packaged), state, marks: Marks::of(metadata) };
        self.known().insert(target.clone(), known);
    }

    /// Whether an object is known to say what a package says; and what it says of being activated.
    pub fn recall(
        &self,
        target: &Target,
        packaged: &Packaged,
        metadata: &ObjectMeta,
    ) -> Option<Option<String>> {
        let known = self.known();
        let one = known.get(target)?;
        let same = one.content == content(packaged) && one.marks == Marks::of(metadata);
        same.then(|| one.state.clone())
    }

    /// An object is gone.
    pub fn forget(&self, target: &Target) {
        self.known().remove(target);
    }
}

/// What a package says of an object, whoever owns it and however it is activated.
fn content(packaged: &Packaged) -> u64 {
    let mut overlay = packaged.overlay.clone();
    if let Some(Json::Object(metadata)) = overlay.get_mut("metadata") {
        metadata.remove("ownerReferences");
    }
    hash(&(&packaged.package, packaged.document, overlay.to_string()))
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
