//! The certificates of a package's runtime, and of the authority that signs them all.
//!
//! The authority is one Secret for the whole cluster, under upstream's name: `tls.crt` and
//! `tls.key`. It is rolled without a moment in which somebody does not trust somebody:
//!
//! ```text
//!  a third of its time left     a successor is made (next.crt), and everybody is told to trust both
//!  a quarter left               the successor takes over; everybody gets certificates signed by it
//!  until it ends                the old one (previous.crt) is still trusted
//! ```
//!
//! What a runtime serves and calls with is renewed when a third of its time is left, when the names
//! it should be good for have changed, when the authority or who is trusted has, and when the key
//! beside a certificate is not its own. An authority that does not have its own key is nobody's to
//! replace but its owner's: what it signed is in use.
//!
//! A Secret that somebody else made and put certificates into is used as it is, or not at all; it is
//! never written to. One of ours is known by its owner or by who wrote it ([`is_ours`]). Whatever
//! else is in a Secret stays there.
//!
//! Only hands can make keys; this only says which should be made.

use super::World;
use crate::control::{group, is_meant};
use crate::step::{Action, Expect, MANAGER, Make, Need, Target, Usage};
use api::object::OwnerReference;
use api::pkg::revision::Revision;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use std::time::Duration;

/// A certificate, as read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// The names it is good for.
    pub names: Vec<String>,
    /// From when, in seconds since 1970.
    pub not_before: i64,
    /// Until when.
    pub not_after: i64,
    /// Which key it is of.
    pub key: Option<String>,
    /// Which key signed it.
    pub signed_by: Option<String>,
}

impl Certificate {
    /// Whether less than this part of its time is left.
    fn has_less_than(&self, part: i64, now: i64) -> bool {
        now >= self.not_after - self.lifetime() / part
    }

    fn lifetime(&self) -> i64 {
        self.not_after.saturating_sub(self.not_before).max(0)
    }
}

/// How long certificates are good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// That of the authority.
    pub authority: Duration,
    /// Those that runtimes serve and call with.
    pub runtime: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
        Self { authority: YEAR * 10, runtime: YEAR }
    }
}

/// How the names of the Secrets end that packages have their certificates in. That is how they are
/// known where they have lost their owner.
pub const SECRETS: [&str; 2] = ["-tls-server", "-tls-client"];

/// The fields of such a Secret that runtimes read.
const FIELDS: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];
/// The fields of the authority's Secret that come and go.
const PASSING: [&str; 3] = ["next.crt", "next.key", "previous.crt"];

/// How the certificates of a runtime are.
#[derive(Debug, Default)]
pub(super) struct State {
    /// What is to be done about them first.
    pub(super) actions: Vec<Action>,
    /// Why.
    pub(super) report: Vec<String>,
    /// Tells this state from others; none before they are there.
    pub(super) fingerprint: Option<String>,
    /// When something will have to be done, in seconds since 1970.
    pub(super) due: Option<i64>,
}

/// What stops certificates from being decided about.
pub(super) enum Stop {
    Need(Vec<Need>),
    /// In a sentence.
    Trouble(String),
}

/// Decides about the certificates of a runtime whose Service has this name.
pub(super) fn decide(world: &World, service: &str) -> Result<State, Stop> {
    let spec = &world.revision.spec;
    let namespace = &world.settings.namespace;
    let served = ["", &format!(".{namespace}"), &format!(".{namespace}.svc")];
    let served: Vec<String> = served.iter().map(|end| format!("{service}{end}")).collect();
    let called = vec![caller(world)];
    let wanted: Vec<(&str, Usage, Vec<String>)> = [
        (spec.tls_server_secret_name.as_deref(), Usage::Server, served),
        (spec.tls_client_secret_name.as_deref(), Usage::Client, called),
    ]
    .into_iter()
    .filter_map(|(secret, usage, names)| Some((secret?, usage, names)))
    .collect();
    if wanted.is_empty() {
        return Ok(State::default());
    }
    let targets = wanted.iter().map(|(secret, ..)| *secret).chain([authority_name(world)]);
    let unknown: Vec<Need> = targets
        .map(|secret| secret_target(world, secret))
        .filter(|target| !world.live.contains_key(target))
        .map(Need::Object)
        .collect();
    if !unknown.is_empty() {
        return Err(Stop::Need(unknown));
    }
    let mut state = State::default();
    let Some(authority) = authority(world, &mut state)? else { return Ok(state) };
    let mut prints = String::new();
    for (secret, usage, names) in wanted {
        if let Some(owner) = other_package(world, secret) {
            return Err(Stop::Trouble(format!(
                "the Secret {secret} belongs to {owner}; give one of the two another name"
            )));
        }
        let live = found(world, secret);
        match live.filter(|live| is_lent(world, live)) {
            Some(live) => lent(world, secret, live, &mut state)?,
            None => runtime(world, &authority, secret, usage, names, &mut state),
        }
        for field in ["tls.crt", "ca.crt"] {
            prints.push_str(data(live, field).unwrap_or_default());
            prints.push('\n');
        }
    }
    if state.actions.is_empty() {
        let print = oci::Digest::of(prints.as_bytes());
        state.fingerprint = print.hex().get(..16).map(str::to_owned);
    }
    Ok(state)
}

/// Whom the certificate names that a runtime calls with. While the revision is not established,
/// that of the one before stays: it still runs, and goes on if this one is refused.
fn caller(world: &World) -> String {
    let own = &world.revision.metadata.name;
    let secret = world.revision.spec.tls_client_secret_name.as_deref();
    let text = secret.and_then(|secret| data(found(world, secret), "tls.crt"));
    let names = text.and_then(|text| world.certificates.get(text)).map(|one| &one.names);
    let is_named = |one: &&Revision| names.is_some_and(|all| all.contains(&one.metadata.name));
    let before = world.siblings.iter().find(is_named);
    let before = before.filter(|_| !world.revision.is_established());
    before.map_or(own, |before| &before.metadata.name).clone()
}

/// The package of another kind, or of another manager, that a Secret belongs to: each would have
/// certificates of its own in it, and they would take turns for ever. Where both are owners, it is
/// the first one's.
fn other_package(world: &World, secret: &str) -> Option<String> {
    let owners = found(world, secret)?["metadata"]["ownerReferences"].as_array()?;
    let is_run = |one: &&Json| matches!(one["kind"].as_str(), Some("Provider" | "Function"));
    let first = owners.iter().find(is_run)?;
    let (kind, name) = (first["kind"].as_str()?, first["name"].as_str()?);
    let is_ours = is_of(first, &world.revision.api_version, world.kind.as_str());
    (!is_ours).then(|| format!("{kind} {name}"))
}

/// Whether somebody else made a Secret, and put certificates or keys into it.
fn is_lent(world: &World, secret: &Json) -> bool {
    FIELDS.iter().any(|field| data(Some(secret), field).is_some()) && !is_ours(world, secret)
}

/// Whether a Secret is the package's: it says that the package owns it, or a revision as older
/// managers had it, or the API server knows that we wrote it. The first is left after a restore
/// from a backup, the other where somebody took the owner away.
fn is_ours(world: &World, secret: &Json) -> bool {
    let revisions = || std::iter::once(&world.revision).chain(&world.siblings);
    let is_owned = owners_of(secret).iter().any(|owner| {
        package(world).is_some_and(|package| is_reference_to(owner, package))
            || revisions().any(|one| is_meant(owner, one))
    });
    let mut written = secret["metadata"]["managedFields"].as_array().into_iter().flatten();
    is_owned || written.any(|one| one["manager"] == MANAGER)
}

/// Uses a Secret that somebody else made, as long as that can be done. What is in it is theirs to
/// renew.
fn lent(world: &World, secret: &str, live: &Json, state: &mut State) -> Result<(), Stop> {
    let live = Some(live);
    let certificate = data(live, "tls.crt").and_then(|text| world.certificates.get(text));
    let why = match certificate {
        None => "has no certificate in tls.crt",
        Some(_) if !is_pair(world, live, "tls.crt", "tls.key") => {
            "does not have the key of its certificate in tls.key"
        }
        Some(_) if data(live, "ca.crt").is_none() => "does not say in ca.crt whom to trust",
        Some(one) if world.now >= one.not_after => "has a certificate that has ended",
        Some(one) => {
            due(state, one.not_after);
            return Ok(());
        }
    };
    Err(Stop::Trouble(format!(
        "the Secret {secret} was made by somebody else and {why}; mend it, or rename or delete it \
         to have certificates made"
    )))
}

/// The authority as it signs.
struct Authority<'a> {
    certificate: &'a Certificate,
    /// Everybody to trust, as the data of a Secret.
    bundle: String,
}

/// The authority that signs, once there is one; what it takes goes into the state.
fn authority<'a>(world: &'a World, state: &mut State) -> Result<Option<Authority<'a>>, Stop> {
    let name = authority_name(world);
    let live = found(world, name);
    let (certificate, key) = (data(live, "tls.crt"), data(live, "tls.key"));
    let now = world.now;
    let (Some(text), Some(_)) = (certificate, key) else {
        state.report.push(format!("{name} has no certificate: a new authority is made"));
        state.actions.push(make_authority(world, ("tls.crt", "tls.key"), Vec::new(), &[]));
        return Ok(None);
    };
    let Some(current) = world.certificates.get(text) else {
        return Err(Stop::Trouble(format!(
            "tls.crt of Secret {name} is no certificate; mend the Secret, or delete it to have a \
             new authority made"
        )));
    };
    if now >= current.not_after {
        state.report.push(format!("the authority in {name} has ended: a new one is made"));
        state.actions.push(make_authority(world, ("tls.crt", "tls.key"), Vec::new(), &[]));
        return Ok(None);
    }
    if !is_pair(world, live, "tls.crt", "tls.key") {
        return Err(Stop::Trouble(format!(
            "tls.key of Secret {name} is not the key of its tls.crt; mend the Secret, or delete it \
             to have a new authority made"
        )));
    }
    let next = data(live, "next.crt").filter(|_| is_pair(world, live, "next.crt", "next.key"));
    let next = next.filter(|text| world.certificates.contains_key(*text));
    let previous = data(live, "previous.crt");
    let previous = previous.filter(|text| {
        world.certificates.get(*text).is_some_and(|previous| now < previous.not_after)
    });
    if next.is_some() && current.has_less_than(4, now) {
        state.report.push(format!("the successor of the authority in {name} takes over"));
        let keep =
            vec![("next.crt", "tls.crt"), ("next.key", "tls.key"), ("tls.crt", "previous.crt")];
        state.actions.push(keep_authority(world, keep));
        return Ok(None);
    }
    if next.is_none() && current.has_less_than(3, now) {
        state.report.push(format!("the authority in {name} is to end: a successor is made"));
        let mut keep = vec![("tls.crt", "tls.crt"), ("tls.key", "tls.key")];
        keep.extend(previous.map(|_| ("previous.crt", "previous.crt")));
        state.actions.push(make_authority(world, ("next.crt", "next.key"), keep, &current.names));
        return Ok(None);
    }
    let part = if next.is_some() { 4 } else { 3 };
    due(state, current.not_after - current.lifetime() / part);
    let trusted = [Some(text), next, previous];
    Ok(Some(Authority { certificate: current, bundle: bundle(trusted.into_iter().flatten()) }))
}

/// What one Secret of a runtime needs.
fn runtime(
    world: &World,
    authority: &Authority<'_>,
    secret: &str,
    usage: Usage,
    names: Vec<String>,
    state: &mut State,
) {
    let live = found(world, secret);
    let certificate = data(live, "tls.crt").filter(|_| data(live, "tls.key").is_some());
    let certificate = certificate.and_then(|text| world.certificates.get(text));
    let why = match certificate {
        None => Some("has no certificate"),
        Some(_) if !is_pair(world, live, "tls.crt", "tls.key") => Some("is of another key"),
        Some(one) if !is_good_for(one, &names) => Some("is for other names"),
        // An authority that does not say which key it has cannot be told from others.
        Some(one)
            if authority.certificate.key.is_some()
                && one.signed_by != authority.certificate.key =>
        {
            Some("was signed by another authority")
        }
        Some(one) if one.has_less_than(3, world.now) => Some("is to end"),
        Some(_) if data(live, "ca.crt") != Some(&authority.bundle) => {
            Some("does not trust the same authorities")
        }
        Some(_) => None,
    };
    let Some(why) = why else {
        if let Some(one) = certificate {
            due(state, one.not_after - one.lifetime() / 3);
        }
        own(world, secret, state);
        return;
    };
    state.report.push(format!("the certificate in {secret} is made anew: it {why}"));
    // Nobody believes a certificate longer than the one who signed it.
    let end = world.now.saturating_add(seconds(world.settings.lifetimes.runtime));
    let make = Make {
        certificate: "tls.crt",
        key: "tls.key",
        names,
        usage,
        not_before: world.now,
        not_after: end.min(authority.certificate.not_after),
        signer: Some(secret_target(world, authority_name(world))),
    };
    let mut object = secret_object(world, secret);
    let owners = owners(world, live);
    if !owners.is_empty() {
        object["metadata"]["ownerReferences"] = json!(owners);
    }
    object["data"] = json!({"ca.crt": authority.bundle});
    state.actions.push(Action::Issue {
        secret: object,
        keep: Vec::new(),
        make: Some(make),
        expect: Expect::as_found(live),
    });
}

/// Has a Secret that is otherwise as it should be belong to the package. One that belongs to
/// something that is gone goes, too, and one that belongs to nobody stays for ever.
fn own(world: &World, secret: &str, state: &mut State) {
    let live = found(world, secret);
    let owners = owners(world, live);
    if live.is_none_or(|live| owners_of(live) == owners) {
        return;
    }
    state.report.push(format!("Secret {secret} is given back to the package"));
    state.actions.push(Action::Merge {
        target: secret_target(world, secret),
        change: json!({"metadata": {"ownerReferences": owners}}),
        expect: Expect::as_found(live),
    });
}

/// The owners a Secret should have: those it has, and the package. That owns its certificates, not
/// the revision: they outlive revisions. Whatever came from a backup says who owned it by a uid
/// that nobody has any more. What somebody else keeps in a Secret must not go with the package.
fn owners(world: &World, live: Option<&Json>) -> Vec<Json> {
    let mut all = live.map(owners_of).unwrap_or_default().to_vec();
    let Some(package) = package(world) else { return all };
    let is_package = |one: &Json| is_reference_to(one, package);
    let mut is_first = true;
    all.retain(|one| !is_package(one) || std::mem::take(&mut is_first));
    if let Some(reference) = all.iter_mut().find(|one| is_package(one)) {
        reference["uid"] = json!(package.uid);
    } else if !live.is_some_and(has_more) {
        all.push(json!({
            "apiVersion": package.api_version, "kind": package.kind, "name": package.name,
            "uid": package.uid,
        }));
    }
    all
}

/// Whether a Secret has fields that runtimes do not read.
fn has_more(secret: &Json) -> bool {
    let mut fields = secret["data"].as_object().into_iter().flatten();
    fields.any(|(field, _)| !FIELDS.contains(&field.as_str()))
}

/// The package, as its revision names it. Of two that differ in their uid only, it is the one that
/// controls the revision.
fn package(world: &World) -> Option<&OwnerReference> {
    let owners = world.revision.metadata.owner_references.iter();
    let packages = owners.filter(|one| one.kind == world.kind.as_str());
    packages.max_by_key(|one| one.controller == Some(true))
}

/// Whether an owner is meant, whatever version of it and with whatever uid.
fn is_reference_to(reference: &Json, owner: &OwnerReference) -> bool {
    is_of(reference, &owner.api_version, &owner.kind) && reference["name"] == *owner.name
}

/// Whether an owner is of a kind, in whatever version.
fn is_of(reference: &Json, api_version: &str, kind: &str) -> bool {
    let its = reference["apiVersion"].as_str().unwrap_or_default();
    group(its) == group(api_version) && reference["kind"] == kind
}

fn owners_of(secret: &Json) -> &[Json] {
    secret["metadata"]["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn is_good_for(certificate: &Certificate, names: &[String]) -> bool {
    certificate.names.len() == names.len()
        && names.iter().all(|name| certificate.names.contains(name))
}

fn make_authority(
    world: &World,
    (certificate, key): (&'static str, &'static str),
    keep: Vec<(&'static str, &'static str)>,
    names: &[String],
) -> Action {
    let name = authority_name(world);
    let names = if names.is_empty() { vec![name.to_owned()] } else { names.to_vec() };
    let make = Make {
        certificate,
        key,
        names,
        usage: Usage::Authority,
        not_before: world.now,
        not_after: world.now.saturating_add(seconds(world.settings.lifetimes.authority)),
        signer: None,
    };
    let expect = Expect::as_found(found(world, name));
    let secret = authority_object(world, &keep, &[certificate, key]);
    Action::Issue { secret, keep, make: Some(make), expect }
}

fn keep_authority(world: &World, keep: Vec<(&'static str, &'static str)>) -> Action {
    let expect = Expect::as_found(found(world, authority_name(world)));
    Action::Issue { secret: authority_object(world, &keep, &[]), keep, make: None, expect }
}

/// The authority's Secret without what is neither kept nor made of that which comes and goes.
fn authority_object(world: &World, keep: &[(&str, &str)], made: &[&str]) -> Json {
    let name = authority_name(world);
    let mut object = secret_object(world, name);
    let stays = |field: &str| made.contains(&field) || keep.iter().any(|(_, to)| *to == field);
    let live = found(world, name);
    for field in PASSING.iter().filter(|field| !stays(field) && data(live, field).is_some()) {
        object["data"][field] = Json::Null;
    }
    object
}

fn authority_name(world: &World) -> &str {
    &world.settings.authority
}

fn secret_target(world: &World, name: &str) -> Target {
    world.target("v1", "Secret", name)
}

fn secret_object(world: &World, name: &str) -> Json {
    let namespace = &world.settings.namespace;
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
    })
}

fn found<'a>(world: &'a World, secret: &str) -> Option<&'a Json> {
    world.live.get(&secret_target(world, secret)).and_then(Option::as_ref)
}

/// A field of a Secret's data, if it says something.
fn data<'a>(secret: Option<&'a Json>, field: &str) -> Option<&'a str> {
    secret?.get("data")?.get(field)?.as_str().filter(|text| !text.is_empty())
}

/// Whether a Secret has a certificate and the key of just that one.
fn is_pair(world: &World, secret: Option<&Json>, certificate: &str, key: &str) -> bool {
    let pair = data(secret, certificate).zip(data(secret, key));
    pair.is_some_and(|(certificate, key)| {
        world.pairs.contains(&(certificate.to_owned(), key.to_owned()))
    })
}

/// Several certificates as one field.
fn bundle<'a>(certificates: impl Iterator<Item = &'a str>) -> String {
    let mut all = Vec::new();
    for certificate in certificates {
        // What is no base64 was not read as a certificate either, and does not come here.
        all.extend(STANDARD.decode(certificate).unwrap_or_default());
        if !all.ends_with(b"\n") {
            all.push(b'\n');
        }
    }
    STANDARD.encode(all)
}

fn due(state: &mut State, at: i64) {
    state.due = Some(state.due.map_or(at, |due| due.min(at)));
}

fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}
