//! Signatures as cosign writes them, and what becomes of them.

use super::{Doubt, Form, Signed, bundle, claims, judge, tag};
use api::pkg::Verification;
use insta::assert_snapshot;
use oci::Digest;
use serde_json::{Value as Json, json};

fn image() -> Digest {
    Digest::of(b"image")
}

fn payload(digest: &str) -> Vec<u8> {
    let payload = json!({
        "critical": {
            "identity": {"docker-reference": "example.org/p"},
            "image": {"docker-manifest-digest": digest},
            "type": "cosign container image signature",
        },
        "optional": {"team": "a"},
    });
    payload.to_string().into_bytes()
}

fn signed(by: &str, payload: Vec<u8>) -> Signed {
    Signed { payload, signature: by.to_owned(), form: Form::Simple }
}

fn authorities(all: &Json) -> Verification {
    let verification = json!({"provider": "Cosign", "cosign": {"authorities": all}});
    serde_json::from_value(verification).unwrap()
}

fn key(name: &str) -> Json {
    let secret = json!({"name": "keys", "key": name});
    json!({"name": name, "key": {"secretRef": secret, "hashAlgorithm": " SHA256 "}})
}

/// Whoever's name is written beside a payload signed it.
fn told(all: &Json, signatures: &[Signed]) -> String {
    let fits = |signer: &super::Signer, signed: &Signed| {
        let fits = signed.signature == signer.key.key;
        fits.then_some(()).ok_or(Doubt::Key("it is another's".to_owned()))
    };
    match judge(&authorities(all), &image(), signatures, fits) {
        Ok((name, claims)) => format!("accepted by {name}: {claims:?}"),
        Err(why) => why,
    }
}

#[test]
fn signatures_are_beside_the_image() {
    let digest = image();
    assert_eq!(tag(&digest), format!("sha256-{}.sig", digest.hex()));
}

#[test]
fn the_first_authority_whose_key_fits_accepts() {
    let good = || signed("b", payload(&image().to_string()));
    let both = json!([key("a"), key("b")]);
    let lines = [
        told(&both, &[signed("x", payload("sha256:0")), good()]),
        told(&json!([key("a")]), &[good()]),
        told(&both, &[]),
        told(&both, &[signed("b", payload(&Digest::of(b"other").to_string()))]),
        told(&both, &[signed("b", b"{}".to_vec())]),
        told(&both, &[signed("b", b"no json".to_vec())]),
        told(&json!([]), &[good()]),
    ];
    assert_snapshot!(lines.join("\n"), @r#"
    accepted by b: {"team": String("a")}
    signature verification failed: a: the key does not fit: it is another's
    signature verification failed: a: the image has no signatures; b: the image has no signatures
    signature verification failed: a: the key does not fit: it is another's; b: what was signed is sha256:d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa
    signature verification failed: a: the key does not fit: it is another's; b: what was signed cannot be read: its type is null
    signature verification failed: a: the key does not fit: it is another's; b: what was signed cannot be read: expected ident at line 1 column 2
    signature verification failed: nobody is trusted; hint: name authorities
    "#);
}

#[test]
fn what_cannot_be_verified_is_refused_with_a_word() {
    let keyless = json!({"name": "c", "keyless": {"identities": [{"issuer": "i"}]}});
    let mut odd = key("d");
    odd["key"]["hashAlgorithm"] = json!("md5");
    let mut attested = key("e");
    attested["attestations"] = json!([{"name": "x", "predicateType": "slsaprovenance"}]);
    let all = json!([keyless, odd, attested, {"name": "f"}]);
    let good = [signed("d", payload(&image().to_string()))];
    assert_snapshot!(told(&all, &good), @r#"
    signature verification failed: c: keyless signatures cannot be verified, because that takes a transparency log; hint: name a key in spec.verification.cosign.authorities; d: "md5" is not a hash; hint: use sha224, sha256, sha384 or sha512; e: attestations cannot be verified; hint: leave out attestations, and have the image itself signed; f: it has no key; hint: set key.secretRef
    "#);
    // Somebody who can be asked is asked, whoever else cannot.
    let mixed = json!([keyless, key("d")]);
    assert_eq!(told(&mixed, &good), r#"accepted by d: {"team": String("a")}"#);
    // A key is enough, whoever is named beside it.
    let mut both = key("d");
    both["keyless"] = keyless["keyless"].clone();
    assert_eq!(told(&json!([both]), &good), r#"accepted by d: {"team": String("a")}"#);
}

#[test]
fn a_payload_is_about_exactly_one_image() {
    let short = &image().to_string()[..20];
    let about = |digest: &str| claims(&signed("a", payload(digest)), &image());
    for wrong in ["", "sha256:", short, "latest"] {
        assert!(about(wrong).is_err(), "{wrong}");
    }
    assert!(about(&image().to_string()).is_ok());
}

fn statement(kind: &str, hex: &str) -> Vec<u8> {
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"digest": {"sha256": hex}}],
        "predicateType": kind, "predicate": {},
    });
    statement.to_string().into_bytes()
}

#[test]
fn a_bundle_is_signed_in_its_envelope() {
    use base64::Engine as _;
    let encode = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let of = "application/vnd.in-toto+json";
    let written = |kind: &str, hex: &str| {
        let payload = statement(kind, hex);
        let envelope = json!({
            "payload": encode(&payload), "payloadType": of, "signatures": [{"sig": "b"}],
        });
        json!({"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "dsseEnvelope": envelope})
    };
    let read = |one: &Json| bundle(one.to_string().as_bytes()).unwrap();
    let sign = "https://sigstore.dev/cosign/sign/v1";
    let good = read(&written(sign, image().hex()));
    let payload = statement(sign, image().hex());
    let mut message = format!("DSSEv1 28 {of} {} ", payload.len()).into_bytes();
    message.extend(payload);
    assert_eq!(good[0].message(), message);
    let all = json!([key("b")]);
    let lines = [
        told(&all, &good),
        told(&all, &read(&written(sign, Digest::of(b"other").hex()))),
        told(&all, &read(&written("https://slsa.dev/provenance/v1", image().hex()))),
    ];
    assert_snapshot!(lines.join("\n"), @r#"
    accepted by b: {}
    signature verification failed: b: what was signed is sha256:d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa
    signature verification failed: b: what was signed cannot be read: it is a statement of type "https://slsa.dev/provenance/v1", no signature
    "#);
    assert_eq!(read(&json!({"messageSignature": {"signature": "b"}})), []);
    assert!(bundle(b"no json").is_err());
}
