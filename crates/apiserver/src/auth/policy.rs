//! The index of roles and bindings: who holds which rules, without looking at every
//! binding for every request.
//!
//! It follows the log: whoever asks first brings it up to the version the log has now, so
//! that an answer is never older than the request. A binding that was taken away is gone
//! for the next request.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

use super::User;
use super::ask::Attributes;
use super::rule::{Rule, together};
use crate::log::Log;
use schema::object::metadata;

/// The group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";
/// The group whose members may do everything.
pub const MASTERS: &str = "system:masters";
/// The most events taken from the log at once.
const CHUNK: usize = 1024;

/// A role, as far as decisions need it.
#[derive(Debug, Clone, PartialEq)]
pub struct Role {
    /// What it allows.
    pub rules: Vec<Rule>,
    /// Its labels, by which others gather it.
    pub labels: serde_json::Map<String, Value>,
    /// Which roles it gathers.
    pub gathers: Option<Vec<Value>>,
}

/// A binding, as far as decisions need it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Binding {
    namespace: String,
    name: String,
    role: RoleRef,
    subjects: Vec<Subject>,
}

/// What a binding refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleRef {
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Subject {
    kind: String,
    namespace: String,
    name: String,
}

/// Whom a binding is for, as users are known by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Holder {
    User(String),
    Group(String),
}

/// Namespace and name; what is cluster-wide has no namespace.
type Place = (String, String);

#[derive(Debug, Default)]
struct State {
    version: u64,
    /// The version of the last change to a cluster-wide role.
    gathered: u64,
    roles: HashMap<Place, Arc<Role>>,
    bindings: BTreeMap<Place, Arc<Binding>>,
    holders: HashMap<Holder, BTreeSet<Place>>,
}

/// The index.
#[derive(Debug, Default)]
pub struct Policy {
    state: RwLock<State>,
}

/// What was decided, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it may be done.
    pub allowed: bool,
    /// By which binding, or what kept a binding from counting.
    pub reason: String,
}

/// The rules someone holds, and what could not be found out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// The rules.
    pub rules: Vec<Rule>,
    /// Roles that are missing.
    pub missing: Vec<RoleRef>,
}

impl Policy {
    /// Decides.
    pub fn authorize(&self, log: &Log, asked: &Attributes<'_>) -> Verdict {
        if asked.user.groups.iter().any(|group| group == MASTERS) {
            return Verdict { allowed: true, reason: String::new() };
        }
        self.with(log, |state| state.authorize(asked))
    }

    /// All rules a user holds in a namespace, or everywhere if it is empty.
    pub fn held(&self, log: &Log, user: &User, namespace: &str) -> Held {
        self.with(log, |state| {
            let mut held = Held::default();
            for binding in state.bindings_of(user, namespace) {
                match state.role(binding) {
                    Some(role) => held.rules.extend(role.rules.iter().cloned()),
                    None => held.missing.push(binding.role.clone()),
                }
            }
            held
        })
    }

    /// A role by its namespace (none for a cluster-wide one) and name.
    pub fn role(&self, log: &Log, namespace: &str, name: &str) -> Option<Arc<Role>> {
        self.with(log, |state| state.roles.get(&(namespace.to_owned(), name.to_owned())).cloned())
    }

    /// All cluster-wide roles in the order of their names, and the version of the last
    /// change to any of them.
    pub fn cluster_roles(&self, log: &Log) -> (u64, BTreeMap<String, Arc<Role>>) {
        self.with(log, |state| {
            let wide = state.roles.iter().filter(|((namespace, _), _)| namespace.is_empty());
            let roles = wide.map(|((_, name), role)| (name.clone(), Arc::clone(role)));
            (state.gathered, roles.collect())
        })
    }

    /// The version of the last change to a cluster-wide role.
    pub fn gathered(&self, log: &Log) -> u64 {
        self.with(log, |state| state.gathered)
    }

    fn with<T>(&self, log: &Log, look: impl FnOnce(&State) -> T) -> T {
        let version = log.version();
        {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            if state.version >= version {
                return look(&state);
            }
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.follow(log, version);
        look(&state)
    }
}

impl State {
    /// Takes in what happened up to `version` at least.
    fn follow(&mut self, log: &Log, version: u64) {
        while self.version < version {
            if self.version == 0 {
                self.load(log);
                continue;
            }
            let Ok((events, up_to)) = log.after(self.version, "", CHUNK) else {
                *self = Self::default();
                continue;
            };
            for event in events {
                self.take(&event.key, event.value.as_deref(), event.version);
            }
            self.version = up_to;
        }
    }

    /// Reads everything. What happens meanwhile is taken again by `follow`, to the same end.
    fn load(&mut self, log: &Log) {
        let version = log.version();
        for plural in ["clusterroles", "roles", "clusterrolebindings", "rolebindings"] {
            let Ok(snapshot) = log.list(&format!("{plural}.{GROUP}/"), None) else { continue };
            for (key, entry) in snapshot.entries {
                self.take(&key, Some(&entry.value), entry.version);
            }
        }
        self.version = version;
    }

    fn take(&mut self, key: &str, value: Option<&[u8]>, version: u64) {
        let mut parts = key.splitn(3, '/');
        let (Some(kind), Some(namespace), Some(name)) = (parts.next(), parts.next(), parts.next())
        else {
            return;
        };
        let Some(plural) = kind.strip_suffix(GROUP) else { return };
        let place = (namespace.to_owned(), name.to_owned());
        let object: Option<Value> = value.and_then(|text| serde_json::from_slice(text).ok());
        match plural {
            "clusterroles." => {
                self.gathered = version;
                self.set_role(place, object.as_ref());
            }
            "roles." => self.set_role(place, object.as_ref()),
            "clusterrolebindings." | "rolebindings." => self.set_binding(place, object.as_ref()),
            _ => {}
        }
    }

    fn set_role(&mut self, place: Place, object: Option<&Value>) {
        let Some(object) = object else {
            self.roles.remove(&place);
            return;
        };
        let labels = metadata(object).get("labels").and_then(Value::as_object);
        let gathers = object.pointer("/aggregationRule/clusterRoleSelectors");
        let role = Role {
            rules: Rule::read_all(object),
            labels: labels.cloned().unwrap_or_default(),
            gathers: gathers.and_then(Value::as_array).cloned(),
        };
        self.roles.insert(place, Arc::new(role));
    }

    fn set_binding(&mut self, place: Place, object: Option<&Value>) {
        if let Some(old) = self.bindings.remove(&place) {
            for holder in old.holders() {
                if let Some(places) = self.holders.get_mut(&holder) {
                    places.remove(&place);
                    if places.is_empty() {
                        self.holders.remove(&holder);
                    }
                }
            }
        }
        let Some(object) = object else { return };
        let binding = Binding::read(&place, object);
        for holder in binding.holders() {
            self.holders.entry(holder).or_default().insert(place.clone());
        }
        self.bindings.insert(place, Arc::new(binding));
    }

    /// The bindings that count for a user in a namespace: the cluster-wide ones first, then
    /// those of the namespace, in the order of their names.
    fn bindings_of<'a>(
        &'a self,
        user: &User,
        namespace: &str,
    ) -> impl Iterator<Item = &'a Arc<Binding>> {
        let mut places: BTreeSet<&Place> = BTreeSet::new();
        let groups = user.groups.iter().map(|group| Holder::Group(group.clone()));
        for holder in std::iter::once(Holder::User(user.name.clone())).chain(groups) {
            let Some(held) = self.holders.get(&holder) else { continue };
            for wanted in ["", namespace] {
                let from = (wanted.to_owned(), String::new());
                places.extend(held.range(from..).take_while(|place| place.0 == wanted));
            }
        }
        places.into_iter().filter_map(|place| self.bindings.get(place))
    }

    fn role(&self, binding: &Binding) -> Option<&Arc<Role>> {
        let namespace = match binding.role.kind.as_str() {
            "Role" => binding.namespace.clone(),
            _ => String::new(),
        };
        self.roles.get(&(namespace, binding.role.name.clone()))
    }

    fn authorize(&self, asked: &Attributes<'_>) -> Verdict {
        let namespace = asked.resource.as_ref().map_or("", |it| it.namespace.as_str());
        let mut missing: Vec<String> = Vec::new();
        for binding in self.bindings_of(asked.user, namespace) {
            let Some(role) = self.role(binding) else {
                let said = binding.role.not_found(&binding.role.kind.to_lowercase());
                if !missing.contains(&said) {
                    missing.push(said);
                }
                continue;
            };
            if role.rules.iter().any(|rule| rule.allows(asked)) {
                let reason = format!("RBAC: allowed by {}", binding.describe(asked.user));
                return Verdict { allowed: true, reason };
            }
        }
        let reason = match missing.as_slice() {
            [] => String::new(),
            missing => format!("RBAC: {}", together(missing)),
        };
        Verdict { allowed: false, reason }
    }
}

impl RoleRef {
    /// What a binding's object refers to.
    pub fn read(binding: &Value) -> Self {
        let text = |field: &str| {
            let found = binding.pointer(&format!("/roleRef/{field}"));
            found.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        Self { kind: text("kind"), name: text("name") }
    }

    /// `clusterrole.rbac.authorization.k8s.io "x" not found`.
    pub fn not_found(&self, word: &str) -> String {
        format!("{word}.{GROUP} {:?} not found", self.name)
    }
}

impl Binding {
    fn read((namespace, name): &Place, object: &Value) -> Self {
        let subjects = object.get("subjects").and_then(Value::as_array);
        let read = |subject: &Value| {
            let text =
                |field| subject.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
            Subject { kind: text("kind"), namespace: text("namespace"), name: text("name") }
        };
        Self {
            namespace: namespace.clone(),
            name: name.clone(),
            role: RoleRef::read(object),
            subjects: subjects.into_iter().flatten().map(read).collect(),
        }
    }

    fn holders(&self) -> impl Iterator<Item = Holder> {
        self.subjects.iter().filter_map(|subject| subject.holder(&self.namespace))
    }

    /// `RoleBinding "b/ns" of Role "r" to User "u"`, with the subject that counts for `user`.
    fn describe(&self, user: &User) -> String {
        let counts = |subject: &&Subject| match subject.holder(&self.namespace) {
            Some(Holder::User(name)) => name == user.name,
            Some(Holder::Group(name)) => user.groups.contains(&name),
            None => false,
        };
        let subject = self.subjects.iter().find(counts);
        let subject = subject.map(|it| it.describe(&self.namespace)).unwrap_or_default();
        let RoleRef { kind, name } = &self.role;
        if self.namespace.is_empty() {
            return format!("ClusterRoleBinding {:?} of {kind} {name:?} to {subject}", self.name);
        }
        let place = format!("{}/{}", self.name, self.namespace);
        format!("RoleBinding {place:?} of {kind} {name:?} to {subject}")
    }
}

impl Subject {
    /// Service accounts without a namespace are those of the binding's.
    fn place<'a>(&'a self, namespace: &'a str) -> &'a str {
        if self.namespace.is_empty() { namespace } else { &self.namespace }
    }

    fn holder(&self, namespace: &str) -> Option<Holder> {
        match self.kind.as_str() {
            "User" => Some(Holder::User(self.name.clone())),
            "Group" => Some(Holder::Group(self.name.clone())),
            "ServiceAccount" => {
                let namespace = Some(self.place(namespace)).filter(|place| !place.is_empty())?;
                Some(Holder::User(super::service_account(namespace, &self.name)))
            }
            _ => None,
        }
    }

    fn describe(&self, namespace: &str) -> String {
        let name = match self.kind.as_str() {
            "ServiceAccount" => format!("{}/{}", self.name, self.place(namespace)),
            _ => self.name.clone(),
        };
        format!("{} {name:?}", self.kind)
    }
}
