//! Certificates come, are renewed, and outlive their authority.

use super::*;
use insta::assert_snapshot;

/// A provider with all its certificates.
fn prepared() -> World {
    let mut world = world();
    settle(&mut world);
    world
}

fn later(world: &mut World, days: i64) -> String {
    world.now += days * DAY;
    settle(world)
}

fn data<'a>(world: &'a World, secret: &str, field: &str) -> Option<&'a str> {
    live(world, "Secret", secret)?["data"][field].as_str()
}

/// What a Secret trusts, in the order of making.
fn trusts(world: &World, secret: &str) -> String {
    let bundle = STANDARD.decode(data(world, secret, "ca.crt").unwrap()).unwrap();
    String::from_utf8(bundle).unwrap().trim().replace('\n', ", ")
}

#[test]
fn certificates_are_renewed_when_a_third_of_their_time_is_left() {
    let mut world = prepared();
    let before = data(&world, "p-tls-server", "tls.crt").unwrap().to_owned();
    assert_eq!(later(&mut world, 243), "");
    assert_snapshot!(later(&mut world, 1), @r"
    issue p-tls-server tls.crt Server for p p.crossplane-system p.crossplane-system.svc, 365 days
    issue p-tls-client tls.crt Client for p-1, 365 days
    # the certificate in p-tls-server is made anew: it is to end
    # the certificate in p-tls-client is made anew: it is to end
    # Package revision is not healthy yet
    # again in 2189 days
    ");
    assert_ne!(data(&world, "p-tls-server", "tls.crt").unwrap(), before);
    assert_eq!(settle(&mut world), "");
}

#[test]
fn certificates_are_renewed_when_the_service_is_called_otherwise() {
    let mut world = prepared();
    let config = json!({
        "metadata": {"name": "default"},
        "spec": {"serviceTemplate": {"metadata": {"name": "other"}}},
    });
    world.runtime_configs = vec![serde_json::from_value(config).unwrap()];
    assert_snapshot!(settle(&mut world), @r"
    create Service other
    issue p-tls-server tls.crt Server for other other.crossplane-system other.crossplane-system.svc, 365 days
    # Service other is made
    # the certificate in p-tls-server is made anew: it is for other names
    # Package revision is not healthy yet
    # again in 243 days
    ");
}

#[test]
fn the_authority_is_rolled_without_a_moment_of_distrust() {
    let mut world = prepared();
    let mut told = Vec::new();
    let mut day = 0;
    let mut trusted = trusts(&world, "p-tls-server");
    let mut signer = String::new();
    // Ten years, ten days at a time: whatever signs was trusted before it signs.
    while day < 3700 {
        world.now += 10 * DAY;
        day += 10;
        for _ in 0..8 {
            let what = act(&mut world);
            let is_settled = what.lines().all(|line| line.starts_with('#'));
            let text = data(&world, "p-tls-server", "tls.crt").unwrap();
            let signed_by = world.certificates[text].signed_by.clone().unwrap();
            if signed_by != signer {
                let certificate = signed_by.replace("key", "certificate");
                assert!(trusted.contains(&certificate), "{signed_by} was not trusted: {trusted}");
                told.push(format!("day {day}: signed by {signed_by}"));
                signer = signed_by;
            }
            let now = trusts(&world, "p-tls-server");
            if now != trusted {
                told.push(format!("day {day}: trusted {now}"));
                trusted = now;
            }
            if is_settled {
                break;
            }
        }
    }
    assert_snapshot!(told.join("\n"), @r"
    day 10: signed by key 0
    day 2440: trusted certificate 0, certificate 21
    day 2740: signed by key 21
    day 2740: trusted certificate 21, certificate 0
    day 3650: trusted certificate 21
    ");
}

#[test]
fn an_authority_that_has_ended_is_replaced() {
    let mut world = prepared();
    assert_snapshot!(later(&mut world, 4000), @r"
    issue crossplane-root-ca tls.crt Authority for crossplane-root-ca, 3650 days
    # the authority in crossplane-root-ca has ended: a new one is made
    # Package revision is not healthy yet
    issue p-tls-server tls.crt Server for p p.crossplane-system p.crossplane-system.svc, 365 days
    issue p-tls-client tls.crt Client for p-1, 365 days
    # the certificate in p-tls-server is made anew: it was signed by another authority
    # the certificate in p-tls-client is made anew: it was signed by another authority
    # Package revision is not healthy yet
    # again in 2433 days
    ");
}

#[test]
fn a_secret_that_lost_its_key_gets_a_new_one() {
    let mut world = prepared();
    let mut secret = live(&world, "Secret", "p-tls-client").unwrap().clone();
    secret["data"]["tls.key"] = json!("");
    put(&mut world, secret, MANAGER);
    assert_snapshot!(settle(&mut world), @r"
    issue p-tls-client tls.crt Client for p-1, 365 days
    # the certificate in p-tls-client is made anew: it has no certificate
    # Package revision is not healthy yet
    # again in 243 days
    ");
}

/// Puts something else into a field of a Secret.
fn spoil(world: &mut World, secret: &str, field: &str, value: &str) {
    let mut secret = live(world, "Secret", secret).unwrap().clone();
    secret["data"][field] = json!(value);
    put(world, secret, MANAGER);
}

#[test]
fn a_certificate_with_the_key_of_another_is_made_anew() {
    let mut world = prepared();
    let other = data(&world, "p-tls-client", "tls.key").unwrap().to_owned();
    spoil(&mut world, "p-tls-server", "tls.key", &other);
    assert_snapshot!(settle(&mut world), @r"
    issue p-tls-server tls.crt Server for p p.crossplane-system p.crossplane-system.svc, 365 days
    # the certificate in p-tls-server is made anew: it is of another key
    # Package revision is not healthy yet
    # again in 243 days
    ");
    spoil(&mut world, "p-tls-client", "tls.key", "bm9uc2Vuc2U=");
    assert!(settle(&mut world).contains("issue p-tls-client"));
}

#[test]
fn an_authority_with_the_key_of_another_signs_nothing() {
    let mut world = prepared();
    let other = data(&world, "p-tls-client", "tls.key").unwrap().to_owned();
    spoil(&mut world, "crossplane-root-ca", "tls.key", &other);
    spoil(&mut world, "p-tls-client", "tls.crt", "");
    let told = settle(&mut world);
    let why = "tls.key of Secret crossplane-root-ca is not the key of its tls.crt; mend the Secret, \
               or delete it to have a new authority made";
    assert!(told.contains(why) && !told.contains("issue"), "{told}");
}

#[test]
fn a_successor_with_the_key_of_another_is_made_anew() {
    let mut world = prepared();
    later(&mut world, 2440);
    assert!(data(&world, "crossplane-root-ca", "next.key").is_some());
    let other = data(&world, "p-tls-client", "tls.key").unwrap().to_owned();
    spoil(&mut world, "crossplane-root-ca", "next.key", &other);
    let told = settle(&mut world);
    assert!(
        told.contains("issue crossplane-root-ca tls.crt=tls.crt tls.key=tls.key next.crt"),
        "{told}"
    );
}

#[test]
fn an_authority_that_cannot_be_read_is_not_overwritten() {
    let mut world = prepared();
    let mut secret = live(&world, "Secret", "crossplane-root-ca").unwrap().clone();
    secret["data"]["tls.crt"] = json!("bm9uc2Vuc2U=");
    put(&mut world, secret, MANAGER);
    assert_snapshot!(settle(&mut world), @r"
    event Warning SyncPackage: pre establish runtime hook failed for package: tls.crt of Secret crossplane-root-ca is no certificate; mend the Secret, or delete it to have a new authority made
    status RuntimeHealthy=False UnhealthyPackageRevision (pre establish runtime hook failed for package: tls.crt of Secret crossplane-root-ca is no certificate; mend the Secret, or delete it to have a new authority made), tlsServerSecretName p-tls-server, tlsClientSecretName p-tls-client
    # pre establish runtime hook failed for package: tls.crt of Secret crossplane-root-ca is no certificate; mend the Secret, or delete it to have a new authority made
    ");
}

#[test]
fn the_deployment_follows_its_certificates() {
    let mut world = prepared();
    established(&mut world, true);
    settle(&mut world);
    available(&mut world, "p-1", true, "");
    settle(&mut world);
    let print = |world: &World| {
        let deployment = live(world, "Deployment", "p-1").unwrap();
        let annotations = &deployment["spec"]["template"]["metadata"]["annotations"];
        annotations["pkg.crossplane.io/certificates"].as_str().unwrap().to_owned()
    };
    let before = print(&world);
    let told = later(&mut world, 244);
    assert_ne!(print(&world), before);
    assert!(!told.contains("RuntimeHealthy"), "it stays healthy all the while: {told}");
}

#[test]
fn certificates_belong_to_the_package() {
    let world = prepared();
    let owners = &live(&world, "Secret", "p-tls-server").unwrap()["metadata"]["ownerReferences"];
    assert_eq!(owners[0]["kind"], "Provider");
    assert!(owners[0]["controller"].is_null());
    assert!(
        live(&world, "Secret", "crossplane-root-ca").unwrap()["metadata"]["ownerReferences"]
            .is_null()
    );
}

/// Gives a Secret these owners.
fn give(world: &mut World, secret: &str, owners: Json) {
    let mut secret = live(world, "Secret", secret).unwrap().clone();
    secret["metadata"]["ownerReferences"] = owners;
    put(world, secret, MANAGER);
}

#[test]
fn a_secret_from_a_backup_belongs_to_the_package_of_now() {
    let mut world = prepared();
    let before = live(&world, "Secret", "p-tls-server").unwrap()["data"].clone();
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "mine", "uid": "uid-mine"});
    let of = |uid: &str| {
        let api_version = "pkg.crossplane.io/v1";
        json!({"apiVersion": api_version, "kind": "Provider", "name": "p", "uid": uid})
    };
    give(&mut world, "p-tls-server", json!([of("uid-old"), other, of("uid-older")]));
    assert_snapshot!(settle(&mut world), @r#"
    merge Secret p-tls-server {"metadata":{"ownerReferences":[{"apiVersion":"pkg.crossplane.io/v1","kind":"Provider","name":"p","uid":"uid-p"},{"apiVersion":"v1","kind":"ConfigMap","name":"mine","uid":"uid-mine"}]}}
    # Secret p-tls-server is given back to the package
    # Package revision is not healthy yet
    # again in 243 days
    "#);
    assert_eq!(live(&world, "Secret", "p-tls-server").unwrap()["data"], before);
}

#[test]
fn a_secret_without_an_owner_is_given_back() {
    let mut world = prepared();
    for owners in [json!([]), Json::Null] {
        give(&mut world, "p-tls-client", owners);
        let told = settle(&mut world);
        assert!(told.starts_with("merge Secret p-tls-client") && !told.contains("issue"), "{told}");
    }
}

#[test]
fn a_secret_whose_owner_is_of_another_version_stays_as_it_is() {
    let mut world = prepared();
    let owner = json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "Provider", "name": "p",
        "uid": "uid-p", "controller": true,
    });
    give(&mut world, "p-tls-client", json!([owner]));
    assert_eq!(settle(&mut world), "");
}

#[test]
fn a_certificate_that_is_made_anew_has_no_owner_of_old() {
    let mut world = prepared();
    let secret = live(&world, "Secret", "p-tls-client").unwrap();
    let mut owner = secret["metadata"]["ownerReferences"][0].clone();
    owner["uid"] = json!("uid-old");
    give(&mut world, "p-tls-client", json!([owner]));
    let told = later(&mut world, 244);
    assert!(told.contains("issue p-tls-client") && !told.contains("merge"), "{told}");
    let owners = &live(&world, "Secret", "p-tls-client").unwrap()["metadata"]["ownerReferences"];
    assert_eq!((owners.as_array().unwrap().len(), &owners[0]["uid"]), (1, &json!("uid-p")));
}

/// A Secret that a person made.
fn put_theirs(world: &mut World, name: &str, data: &Json) {
    let metadata = json!({"name": name, "namespace": NAMESPACE});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data});
    put(world, secret, "kubectl-create");
}

#[test]
fn what_somebody_keeps_in_a_secret_is_never_lost() {
    let mut world = world();
    put_theirs(&mut world, "p-tls-server", &json!({"password": "aHVudGVyMg=="}));
    settle(&mut world);
    assert!(data(&world, "p-tls-server", "tls.crt").is_some());
    later(&mut world, 244);
    let secret = live(&world, "Secret", "p-tls-server").unwrap();
    assert_eq!(secret["data"]["password"], "aHVudGVyMg==");
    // It would go with the package.
    assert!(secret["metadata"]["ownerReferences"].is_null());
    spoil(&mut world, "p-tls-client", "token", "bWluZQ==");
    spoil(&mut world, "p-tls-client", "tls.key", "");
    settle(&mut world);
    assert_eq!(data(&world, "p-tls-client", "token"), Some("bWluZQ=="));
    let secret = live(&world, "Secret", "p-tls-client").unwrap();
    assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], "uid-p");
}

#[test]
fn an_empty_secret_becomes_that_of_the_package() {
    let mut world = world();
    put_theirs(&mut world, "p-tls-server", &Json::Null);
    settle(&mut world);
    let secret = live(&world, "Secret", "p-tls-server").unwrap();
    assert_eq!(secret["metadata"]["ownerReferences"][0]["name"], "p");
}

#[test]
fn certificates_that_somebody_else_made_are_used_as_they_are() {
    let mut world = world();
    let certificate = Certificate { not_after: NOW + 30 * DAY, ..Certificate::default() };
    world.certificates.insert("theirs".to_owned(), certificate);
    world.pairs.insert(("theirs".to_owned(), "key".to_owned()));
    let fields = json!({"tls.crt": "theirs", "tls.key": "key", "ca.crt": "them", "more": "x"});
    put_theirs(&mut world, "p-tls-server", &fields);
    let told = settle(&mut world);
    assert!(
        told.contains("issue p-tls-client") && !told.contains("p-tls-server tls.crt"),
        "{told}"
    );
    let secret = live(&world, "Secret", "p-tls-server").unwrap();
    assert_eq!((&secret["data"], secret["metadata"].get("ownerReferences")), (&fields, None));
    assert!(act(&mut world).contains("# again in 30 days"));
    established(&mut world, true);
    assert!(settle(&mut world).contains("create Deployment p-1"));
}

#[test]
fn certificates_that_somebody_else_made_and_that_are_of_no_use_are_told_of() {
    for (fields, why) in [
        (json!({"ca.crt": "them"}), "has no certificate in tls.crt"),
        (json!({"tls.crt": "bm8="}), "has no certificate in tls.crt"),
        (
            json!({"tls.crt": "theirs", "tls.key": "other", "ca.crt": "them"}),
            "does not have the key of its certificate in tls.key",
        ),
        (json!({"tls.crt": "theirs", "tls.key": "key"}), "does not say in ca.crt whom to trust"),
        (
            json!({"tls.crt": "over", "tls.key": "key", "ca.crt": "them"}),
            "has a certificate that has ended",
        ),
    ] {
        let mut world = world();
        for (name, not_after) in [("theirs", NOW + DAY), ("over", NOW)] {
            let certificate = Certificate { not_after, ..Certificate::default() };
            world.certificates.insert(name.to_owned(), certificate);
            world.pairs.insert((name.to_owned(), "key".to_owned()));
        }
        put_theirs(&mut world, "p-tls-server", &fields);
        let told = settle(&mut world);
        let said = format!(
            "the Secret p-tls-server was made by somebody else and {why}; mend it, or rename or \
             delete it to have certificates made"
        );
        assert!(told.contains(&said), "{told}");
        assert_eq!(live(&world, "Secret", "p-tls-server").unwrap()["data"], fields);
    }
}

#[test]
fn a_secret_from_a_backup_is_known_by_its_owner() {
    let mut world = prepared();
    let owner = |kind: &str, name: &str| json!([{"apiVersion": "pkg.crossplane.io/v1", "kind": kind, "name": name, "uid": "old"}]);
    for (owners, is_ours) in [
        (owner("Provider", "p"), true),
        (owner("ProviderRevision", "p-1"), true),
        (owner("Provider", "q"), false),
        (Json::Null, false),
    ] {
        let mut secret = live(&world, "Secret", "p-tls-client").unwrap().clone();
        secret["data"]["tls.key"] = json!("");
        secret["metadata"]["ownerReferences"] = owners.clone();
        put(&mut world, secret, "velero");
        assert_eq!(settle(&mut world).contains("issue p-tls-client"), is_ours, "{owners}");
    }
}

#[test]
fn what_somebody_keeps_beside_the_authority_is_never_lost() {
    let mut world = prepared();
    spoil(&mut world, "crossplane-root-ca", "notes", "bWluZQ==");
    for _ in 0..15 {
        later(&mut world, 244);
        assert_eq!(data(&world, "crossplane-root-ca", "notes"), Some("bWluZQ=="));
    }
    assert_eq!(data(&world, "crossplane-root-ca", "next.key"), None);
}

#[test]
fn two_kinds_of_one_name_do_not_take_turns() {
    let mut world = prepared();
    let mut secret = live(&world, "Secret", "p-tls-server").unwrap().clone();
    secret["metadata"]["ownerReferences"][0]["kind"] = json!("Function");
    put(&mut world, secret, "apron");
    let told = act(&mut world);
    let why = "the Secret p-tls-server belongs to Function p; give one of the two another name";
    assert!(told.contains(why) && !told.contains("issue"), "{told}");
}
