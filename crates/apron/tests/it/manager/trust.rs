//! Whom to trust: signatures, credentials, certificates, and where packages really come from.

use super::Scenario;
use super::signer::{Scheme, Signer, asks, digest};
use super::stage::{Stage, certificate, condition};
use crate::registry::Served;
use crate::support::{Ran, Scratch, apron, command, until};
use base64::Engine as _;
use serde_json::{Value as Json, json};
use std::io::Write as _;
use std::process::Stdio;

pub(super) const ALL: &[Scenario] = &[
    ("a signed package is installed", a_signed_package_is_installed),
    ("an unsigned package waits for its signature", an_unsigned_package_waits_for_its_signature),
    ("nothing gets round a signature", nothing_gets_round_a_signature),
    ("no spelling gets round a signature", h6_no_spelling_gets_round_a_signature),
    ("a key that is not there is named", a_key_that_is_not_there_is_named),
    ("a bundle is a signature, too", a_bundle_is_a_signature_too),
    ("a private mirror serves revisions", a_private_mirror_serves_revisions),
    ("pull secrets open a private registry", pull_secrets_open_a_private_registry),
    ("other pull secrets are tried", other_pull_secrets_are_tried),
    ("h6 what is private stays so", h6_what_is_private_takes_credentials_of_its_own),
    ("a private package is moved with its own secret", a_private_package_is_moved),
    ("a registry is known by its certificate", a_registry_is_known_by_its_certificate),
    ("only Always follows a channel", only_always_follows_a_channel),
    ("a digest is what it is", a_digest_is_what_it_is),
];

/// Pushes a package to a place of the registry, and gives its reference.
fn push(stage: &Stage, kind: &str, name: &str, place: &str) -> String {
    let reference = stage.registry.reference(&format!("{place}:v1.0.0"));
    stage.push_as(kind, name, "v1.0.0", &reference);
    reference
}

/// An image of a repository by its bytes.
fn pinned(stage: &Stage, image: &str) -> String {
    let (repository, _) = image.rsplit_once(':').unwrap();
    format!("{repository}@{}", digest(stage, image))
}

/// What is said when nobody has signed who should have.
fn unsigned(why: &str, image: &str, config: &str) -> String {
    format!(
        "signature verification failed: {why}; sign {image} with a key that ImageConfig {config} \
         names, or change what ImageConfig {config} asks for"
    )
}

fn is_installed(stage: &Stage, kind: &str, name: &str) {
    stage.condition(kind, name, "Installed", "True", "ActivePackageRevision");
}

/// Waits until the only revision of a package is well, and gives it.
fn healthy(stage: &Stage, kind: &str, name: &str) -> Json {
    until(&format!("the revision of {name} is healthy"), || {
        let revision = stage.revisions(kind, name).pop()?.2;
        let revision = stage.package(&format!("{kind}Revision"), &revision);
        let healthy = condition(&revision, "RevisionHealthy")?;
        (healthy["status"] == "True").then_some(revision)
    })
}

fn a_signed_package_is_installed(stage: &Stage) {
    let signer = Signer::new(stage, "releases", Scheme::P256);
    signer.is_asked_for(&stage.registry.reference("signed/"));
    let package = push(stage, "Provider", "signed", "signed/one");
    signer.sign(&package);
    stage.install("Provider", "signed", &json!({"package": package}));
    is_installed(stage, "Provider", "signed");
    let revision = healthy(stage, "Provider", "signed");
    let verified = condition(&revision, "Verified").unwrap();
    assert_eq!(verified["status"], "True");
    assert_eq!(verified["reason"], "SignatureVerificationSucceeded");
    let digest = digest(stage, &package);
    let by = format!("{digest} is signed by releases, as ImageConfig releases asks");
    assert_eq!(verified["message"], by);
    let applied = json!([{"name": "releases", "reason": "VerifyImage"}]);
    assert_eq!(revision["status"]["appliedImageConfigRefs"], applied);
    let status = &stage.package("Provider", "signed")["status"];
    assert_eq!(status["appliedImageConfigRefs"], applied);
}

fn an_unsigned_package_waits_for_its_signature(stage: &Stage) {
    let signer = Signer::new(stage, "builders", Scheme::P256);
    let stranger = Signer::new(stage, "strangers", Scheme::P256);
    signer.is_asked_for(&stage.registry.reference("unsigned/"));
    let package = push(stage, "Configuration", "unsigned", "unsigned/one");
    stage.install("Configuration", "unsigned", &json!({"package": package}));
    let image = pinned(stage, &package);
    let says = |why: &str| {
        let text = unsigned(&format!("builders: {why}"), &image, "builders");
        let text = format!("cannot unpack package: {text}");
        stage.says("Configuration", "unsigned", "Installed", &text);
    };
    says("the image has no signatures");
    stranger.sign(&package);
    says("the key does not fit: the signature is another's, or what was signed was changed");
    assert_eq!(stage.revisions("Configuration", "unsigned"), []);
    signer.sign(&package);
    is_installed(stage, "Configuration", "unsigned");
    healthy(stage, "Configuration", "unsigned");
}

/// Bytes that are in the cache, that are named by digest, or that must not be asked for: all are
/// to be signed.
fn nothing_gets_round_a_signature(stage: &Stage) {
    let kind = "Configuration";
    let before = push(stage, kind, "cached", "around/cached");
    stage.install(kind, "cached", &json!({"package": before}));
    healthy(stage, kind, "cached");
    let signer = Signer::new(stage, "guards", Scheme::P256);
    signer.is_asked_for(&stage.registry.reference("around/"));
    let none = "guards: the image has no signatures";
    let refused = |name: &str, why: &str, image: &str| {
        let text = format!("cannot unpack package: {}", unsigned(why, image, "guards"));
        stage.says(kind, name, "Installed", &text);
    };
    // What is there stays, and says so.
    refused("cached", none, &pinned(stage, &before));
    let revision = stage.revisions(kind, "cached").remove(0);
    assert_eq!((revision.0, revision.1.as_str()), (1, "Active"));
    let of = "ConfigurationRevision";
    let why = unsigned(none, &pinned(stage, &before), "guards");
    stage.says(of, &revision.2, "Verified", &why);
    stage.condition(of, &revision.2, "Verified", "False", "SignatureVerificationFailed");
    stage.says(of, &revision.2, "RevisionHealthy", &format!("cannot get package: {why}"));
    // The same bytes elsewhere, by digest and from the cache only.
    let (again, never) = ("around/again", "around/never");
    let by_digest = pinned(stage, &push(stage, kind, "cached", again));
    stage.install(kind, "by-digest", &json!({"package": by_digest}));
    refused("by-digest", none, &by_digest);
    let from_cache = pinned(stage, &push(stage, kind, "cached", never));
    let spec = json!({"package": from_cache, "packagePullPolicy": "Never"});
    stage.install(kind, "from-cache", &spec);
    let silent = format!(
        "signature verification failed: {none}; its pull policy is Never, so the registry \
                 is not asked for more"
    );
    let silent = silent.strip_prefix("signature verification failed: ").unwrap();
    refused("from-cache", silent, &from_cache);
    assert_eq!(stage.revisions(kind, "by-digest"), []);
    assert_eq!(stage.revisions(kind, "from-cache"), []);
    // One signature is enough for the same bytes.
    signer.sign(&before);
    for name in ["cached", "by-digest", "from-cache"] {
        is_installed(stage, kind, name);
    }
    stage.condition(of, &revision.2, "Verified", "True", "SignatureVerificationSucceeded");
    // A key that is replaced takes its word back.
    let successor = Signer::new(stage, "successors", Scheme::P256);
    let path = "/api/v1/namespaces/crossplane-system/secrets/guards";
    let change = json!({"stringData": {"cosign.pub": successor.public()}});
    stage.change("PATCH", path, "application/merge-patch+json", &change);
    // News of a package, so that nobody has to wait for a look at it.
    stage.merge(kind, "by-digest", &json!({"spec": {"revisionHistoryLimit": 3}}));
    let other = "guards: the key does not fit: the signature is another's, or what was signed was \
                 changed";
    // There, nobody ever signed.
    assert_ne!(by_digest, pinned(stage, &before));
    refused("by-digest", none, &by_digest);
    stage.merge(kind, "cached", &json!({"spec": {"revisionHistoryLimit": 3}}));
    refused("cached", other, &pinned(stage, &before));
}

/// H6: the policy sees the place that a name leads to, however it is spelled.
fn h6_no_spelling_gets_round_a_signature(stage: &Stage) {
    let kind = "Configuration";
    let signer = Signer::new(stage, "spellers", Scheme::P256);
    signer.is_asked_for(&stage.registry.reference("spelled/"));
    let package = push(stage, kind, "spelled", "spelled/one");
    let (host, port) = package.split_once('/').unwrap().0.split_once(':').unwrap();
    let why =
        unsigned("spellers: the image has no signatures", &pinned(stage, &package), "spellers");
    for (name, registry) in [
        ("spelled-zero", format!("{host}:0{port}")),
        ("spelled-dot", format!("{host}.:{port}")),
        ("spelled-six", format!("[::ffff:{host}]:{port}")),
    ] {
        stage.install(kind, name, &json!({"package": format!("{registry}/spelled/one:v1.0.0")}));
        stage.says(kind, name, "Installed", &format!("cannot unpack package: {why}"));
        assert_eq!(stage.revisions(kind, name), []);
    }
    for (name, path) in [("spelled-up", "x/../spelled/one"), ("spelled-twice", "/spelled/one")] {
        stage.install(kind, name, &json!({"package": format!("{host}:{port}/{path}:v1.0.0")}));
        let said = stage.condition(kind, name, "Installed", "False", "UnpackingPackage");
        assert!(said.contains("is not an image reference"), "{said}");
        assert_eq!(stage.revisions(kind, name), []);
    }
}

/// H6: a host has names that no spelling tells, so signatures can be asked for everywhere. A longer
/// prefix still counts before that.
pub(super) fn h6_everything_can_be_asked_to_be_signed(stage: &mut Stage) {
    let kind = "Configuration";
    let signer = Signer::new(stage, "everybody", Scheme::P256);
    signer.is_asked_for("");
    let package = push(stage, kind, "alias", "alias/one");
    let alias = package.replacen("127.0.0.1", "localhost", 1);
    assert_ne!(alias, package);
    stage.install(kind, "alias", &json!({"package": alias}));
    let image = pinned(stage, &package).replacen("127.0.0.1", "localhost", 1);
    let why = unsigned("everybody: the image has no signatures", &image, "everybody");
    stage.says(kind, "alias", "Installed", &format!("cannot unpack package: {why}"));
    assert_eq!(stage.revisions(kind, "alias"), []);
    signer.sign(&package);
    is_installed(stage, kind, "alias");
    let (_, _, revision) = stage.revisions("Provider", "signed").pop().unwrap();
    let verified = condition(&stage.package("ProviderRevision", &revision), "Verified").unwrap();
    let by = "is signed by releases, as ImageConfig releases asks";
    assert!(verified["message"].as_str().unwrap().ends_with(by), "{verified}");
}

fn a_key_that_is_not_there_is_named(stage: &Stage) {
    let kind = "Configuration";
    let signer = Signer::new(stage, "absent", Scheme::P256);
    let package = push(stage, kind, "keyless", "keyless/one");
    signer.sign(&package);
    let prefix = stage.registry.reference("keyless/");
    stage.image_config("keyless", &asks(&prefix, &[signer.authority("no-such-key")]));
    stage.install(kind, "keyless", &json!({"package": package}));
    let image = pinned(stage, &package);
    let says = |why: &str| {
        let text = unsigned(&format!("absent: its key cannot be used: {why}"), &image, "keyless");
        stage.says(kind, "keyless", "Installed", &format!("cannot unpack package: {text}"));
    };
    let place = "Secret no-such-key in namespace crossplane-system";
    says(&format!("there is no {place}; hint: put the public key there"));
    stage.secret("no-such-key", "other.pub", "nothing");
    says(&format!("{place} has no \"cosign.pub\"; hint: put the public key there"));
    let path = "/api/v1/namespaces/crossplane-system/secrets/no-such-key";
    let fill = |text: &str| {
        let change = json!({"stringData": {"cosign.pub": text}});
        stage.change("PATCH", path, "application/merge-patch+json", &change);
    };
    fill("a secret word");
    says(&format!(
        "\"cosign.pub\" of {place} is no key in PEM; hint: it begins with -----BEGIN PUBLIC KEY-----"
    ));
    fill(&signer.public());
    is_installed(stage, kind, "keyless");
}

fn a_bundle_is_a_signature_too(stage: &Stage) {
    let signer = Signer::new(stage, "bundlers", Scheme::Ed25519);
    signer.is_asked_for(&stage.registry.reference("bundled/"));
    let package = push(stage, "Function", "bundled", "bundled/one");
    signer.sign_with_a_bundle(&package);
    stage.install("Function", "bundled", &json!({"package": package}));
    is_installed(stage, "Function", "bundled");
    let revision = healthy(stage, "Function", "bundled");
    assert_eq!(condition(&revision, "Verified").unwrap()["status"], "True");
}

/// A registry that tells nobody anything who has no credentials.
struct Private {
    served: Served,
    scratch: Scratch,
}

impl Private {
    fn start() -> Self {
        let scratch = Scratch::new();
        let words = ["registry", "user", "--data-dir", "data", "add", "ada"];
        fed(&scratch, &words).ok();
        let served = Served::start_with(&scratch, &["--private"]);
        let login = ["login", "--username", "ada", "--password-stdin", served.address()];
        fed(&scratch, &login).ok();
        Self { served, scratch }
    }

    fn push(&self, stage: &Stage, kind: &str, name: &str) -> String {
        self.push_version(stage, kind, name, "v1.0.0")
    }

    fn push_version(&self, stage: &Stage, kind: &str, name: &str, version: &str) -> String {
        let file = stage.build(kind, name, version);
        let reference = self.served.reference(&format!("team/{name}:{version}"));
        apron(&self.scratch, ["push", &reference, "-f", file.to_str().unwrap()]).ok();
        reference
    }

    /// What a Secret says that lets somebody in.
    fn credentials(&self) -> String {
        let auth = base64::engine::general_purpose::STANDARD.encode("ada:a password");
        json!({"auths": {self.served.address(): {"auth": auth}}}).to_string()
    }
}

/// Runs apron with a password on its standard input.
fn fed(scratch: &Scratch, words: &[&str]) -> Ran {
    let mut command = command(scratch);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"a password\n").unwrap();
    child.wait_with_output().unwrap().into()
}

fn a_private_mirror_serves_revisions(stage: &Stage) {
    let private = Private::start();
    let resolved = private.push(stage, "Provider", "shadow");
    let package = "registry.example.net/team/shadow:v1.0.0";
    let prefix = private.served.reference("");
    let rewrite = json!({
        "matchImages": [{"prefix": "registry.example.net/"}], "rewriteImage": {"prefix": prefix},
    });
    stage.image_config("shadow-mirror", &rewrite);
    stage.install("Provider", "shadow", &json!({"package": package}));
    let said = stage.condition("Provider", "shadow", "Installed", "False", "UnpackingPackage");
    let hint = format!(
        "(name a secret with credentials for {} in packagePullSecrets or in an ImageConfig)",
        private.served.address()
    );
    assert!(said.contains(&hint), "{said}");
    stage.secret("shadow", ".dockerconfigjson", &private.credentials());
    let runtime = json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig",
        "metadata": {"name": "shadow"},
        "spec": {"deploymentTemplate": {
            "metadata": {"labels": {"example.org/runs": "shadow"}},
            "spec": {"selector": {}, "template": {}},
        }},
    });
    stage.make("/apis/pkg.crossplane.io/v1beta1/deploymentruntimeconfigs", &runtime);
    let treat = json!({
        "matchImages": [{"prefix": prefix}],
        "registry": {"authentication": {"pullSecretRef": {"name": "shadow"}}},
        "runtime": {"configRef": {"name": "shadow"}},
    });
    stage.image_config("shadow-credentials", &treat);
    is_installed(stage, "Provider", "shadow");
    let revision = healthy(stage, "Provider", "shadow");
    // What was asked for is not what was fetched, and both are told.
    let status = &stage.package("Provider", "shadow")["status"];
    assert_eq!(status["resolvedPackage"], resolved);
    assert_eq!(revision["spec"]["image"], package);
    assert_eq!(revision["status"]["resolvedImage"], resolved);
    let named = |name: &str, reason: &str| json!({"name": name, "reason": reason});
    let fetched =
        [named("shadow-mirror", "RewriteImage"), named("shadow-credentials", "SetImagePullSecret")];
    assert_eq!(status["appliedImageConfigRefs"], json!(fetched));
    // The runtime comes from the mirror, too, with the same credentials and as configured.
    let name = revision["metadata"]["name"].as_str().unwrap();
    let path = format!("/apis/apps/v1/namespaces/crossplane-system/deployments/{name}");
    let deployment = until("the provider is run", || stage.ask(&path));
    assert_eq!(deployment["metadata"]["labels"]["example.org/runs"], "shadow");
    let pod = &deployment["spec"]["template"]["spec"];
    let image = pod["containers"][0]["image"].as_str().unwrap();
    assert!(image.starts_with(&resolved), "{image}");
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "shadow"}]));
    let run = [&fetched[..], &[named("shadow-credentials", "ConfigureRuntime")]].concat();
    until("the revision names all three", || {
        let revision = stage.package("ProviderRevision", name);
        let mut refs = revision["status"]["appliedImageConfigRefs"].as_array()?.clone();
        refs.sort_by_key(|one| run.iter().position(|known| known == one));
        (refs == run).then_some(())
    });
}

fn pull_secrets_open_a_private_registry(stage: &Stage) {
    let private = Private::start();
    let package = private.push(stage, "Configuration", "locked");
    let spec = json!({"package": package, "packagePullSecrets": [{"name": "locked"}]});
    stage.install("Configuration", "locked", &spec);
    let said = stage.condition("Configuration", "locked", "Installed", "False", "UnpackingPackage");
    let missing = "there is no Secret locked in namespace crossplane-system";
    assert!(said.contains(missing), "{said}");
    stage.secret("locked", ".dockerconfigjson", &private.credentials());
    is_installed(stage, "Configuration", "locked");
    healthy(stage, "Configuration", "locked");
}

/// Nothing but the names of the secrets changes, and it is fetched with the new ones.
fn other_pull_secrets_are_tried(stage: &Stage) {
    let private = Private::start();
    let package = private.push(stage, "Configuration", "relocked");
    let wrong = json!({"auths": {private.served.address(): {"auth": "YWRhOndyb25n"}}});
    stage.secret("wrong-key", ".dockerconfigjson", &wrong.to_string());
    stage.secret("right-key", ".dockerconfigjson", &private.credentials());
    let spec = json!({"package": package, "packagePullSecrets": [{"name": "wrong-key"}]});
    stage.install("Configuration", "relocked", &spec);
    stage.condition("Configuration", "relocked", "Installed", "False", "UnpackingPackage");
    let change = json!({"spec": {"packagePullSecrets": [{"name": "right-key"}]}});
    stage.merge("Configuration", "relocked", &change);
    is_installed(stage, "Configuration", "relocked");
    healthy(stage, "Configuration", "relocked");
}

/// What another package fetched with its credentials a moment ago is no help.
fn h6_what_is_private_takes_credentials_of_its_own(stage: &Stage) {
    let kind = "Configuration";
    let private = Private::start();
    let package = private.push(stage, kind, "close");
    stage.secret("close", ".dockerconfigjson", &private.credentials());
    let secrets = json!([{"name": "close"}]);
    stage.install(kind, "close", &json!({"package": package, "packagePullSecrets": secrets}));
    is_installed(stage, kind, "close");
    let listed = until("the lock has it", || super::dependencies::entry(stage, kind, "close"));
    let repository = private.served.reference("team/close");
    let pinned = format!("{repository}@{}", listed["digest"].as_str().unwrap());
    for (name, image) in [("pries-tag", package), ("pries-digest", pinned)] {
        stage.install(kind, name, &json!({"package": image}));
        until(&format!("{name} is told to name a secret"), || {
            let said = condition(&stage.package(kind, name), "Installed")?;
            let message = said["message"].as_str().unwrap_or_default().to_owned();
            message.contains("name a secret with credentials").then_some(())
        });
        assert_eq!(stage.revisions(kind, name), [], "{name}");
    }
}

/// Which versions there are is asked with the secret of the package that is to be moved.
fn a_private_package_is_moved(stage: &Stage) {
    let private = Private::start();
    let old = private.push_version(stage, "Provider", "moved", "v1.0.0");
    let new = private.push_version(stage, "Provider", "moved", "v1.1.0");
    stage.secret("moves", ".dockerconfigjson", &private.credentials());
    let spec = json!({"package": old, "packagePullSecrets": [{"name": "moves"}]});
    stage.install("Provider", "moved", &spec);
    is_installed(stage, "Provider", "moved");
    let source = private.served.reference("team/moved");
    let needs = json!({"dependsOn": [{"provider": source, "version": ">=v1.1.0"}]});
    let package = stage.push_package("Configuration", "mover", "v1.0.0", &needs, &[]);
    stage.install("Configuration", "mover", &json!({"package": package}));
    healthy(stage, "Configuration", "mover");
    assert_eq!(stage.package("Provider", "moved")["spec"]["package"], new);
}

fn a_registry_is_known_by_its_certificate(stage: &Stage) {
    let serve = |certificate: &std::path::Path, key: &std::path::Path| {
        let scratch = Scratch::new();
        let [certificate, key] = [certificate, key].map(|path| path.to_str().unwrap().to_owned());
        let flags = ["--tls-cert", &certificate, "--tls-key", &key];
        let served = Served::start_with(&scratch, &flags);
        let file = stage.build("Configuration", "certified", "v1.0.0");
        let reference = served.reference("team/certified:v1.0.0");
        let (file, ca) = (file.to_str().unwrap(), ["--ca-file", &certificate]);
        apron(&scratch, ["push", &reference, "-f", file].iter().chain(&ca)).ok();
        (reference, served, scratch)
    };
    let trusted = stage.scratch.join("trusted.crt");
    let (package, _served, _scratch) = serve(&trusted, &stage.scratch.join("trusted.key"));
    stage.install("Configuration", "certified", &json!({"package": package}));
    is_installed(stage, "Configuration", "certified");
    let (other, key) = certificate(&stage.scratch, "untrusted");
    let (package, _served, _scratch) = serve(&other, &key);
    stage.install("Configuration", "uncertified", &json!({"package": package}));
    let said =
        stage.condition("Configuration", "uncertified", "Installed", "False", "UnpackingPackage");
    let hint = "(give the manager the registry's certificate authority with --ca-bundle-path)";
    assert!(said.contains(hint), "{said}");
}

fn only_always_follows_a_channel(stage: &Stage) {
    let kind = "Configuration";
    let channel = stage.registry.reference("channel:stable");
    stage.push_as(kind, "channel", "v1.0.0", &channel);
    let spec = |policy: &str| json!({"package": channel, "packagePullPolicy": policy});
    stage.install(kind, "follows", &spec("Always"));
    stage.states(kind, "follows", &[(1, "Active")]);
    let other = stage.registry.reference("channel-kept:stable");
    stage.push_as(kind, "channel", "v1.0.0", &other);
    let kept = json!({"package": other, "packagePullPolicy": "IfNotPresent"});
    stage.install(kind, "keeps", &kept);
    stage.states(kind, "keeps", &[(1, "Active")]);
    for reference in [&channel, &other] {
        stage.push_as(kind, "channel", "v1.1.0", reference);
    }
    stage.states(kind, "follows", &[(1, "Inactive"), (2, "Active")]);
    // It was looked at since, and nobody asked the registry.
    let changed = stage.merge(kind, "keeps", &json!({"spec": {"revisionHistoryLimit": 7}}));
    until("it was looked at", || {
        let seen = condition(&stage.package(kind, "keeps"), "Installed")?;
        (seen["observedGeneration"] == changed["metadata"]["generation"]).then_some(())
    });
    stage.states(kind, "keeps", &[(1, "Active")]);
}

fn a_digest_is_what_it_is(stage: &Stage) {
    let kind = "Configuration";
    let tag = stage.registry.reference("exact:v1.0.0");
    stage.push_as(kind, "exact", "v1.0.0", &tag);
    let package = pinned(stage, &tag);
    // What the tag means later does not matter.
    stage.push_as(kind, "exact", "v2.0.0", &tag);
    assert_ne!(pinned(stage, &tag), package);
    stage.install(kind, "exact", &json!({"package": package, "packagePullPolicy": "Always"}));
    let revision = healthy(stage, kind, "exact");
    let digest = package.split_once("sha256:").unwrap().1;
    let name = revision["metadata"]["name"].as_str().unwrap();
    assert_eq!(name, format!("exact-{}", &digest[..12]));
}
