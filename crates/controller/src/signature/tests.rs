//! Signatures that openssl made, of a payload as cosign writes it
//! (`testdata/signatures.json`: `openssl dgst -sign`, `openssl pkeyutl -sign` for Ed25519).

use super::{Keys, PublicKey, weigh};
use api::pkg::{KeyReference, Verification};
use oci::Digest;
use plan::signature::{Form, Signed};
use serde_json::{Value as Json, json};

fn made() -> Json {
    serde_json::from_str(include_str!("../../testdata/signatures.json")).unwrap()
}

fn reference() -> KeyReference {
    serde_json::from_value(json!({"name": "keys", "key": "cosign.pub"})).unwrap()
}

fn asked(hash: &Json) -> Verification {
    let key = json!({"secretRef": reference(), "hashAlgorithm": hash});
    let authorities = json!([{"name": "team", "key": key}]);
    let verification = json!({"provider": "Cosign", "cosign": {"authorities": authorities}});
    serde_json::from_value(verification).unwrap()
}

fn signed(payload: &str, signature: &str) -> Vec<Signed> {
    let (payload, signature) = (payload.as_bytes().to_vec(), signature.to_owned());
    vec![Signed { payload, signature, form: Form::Simple }]
}

fn keys(text: &str) -> Keys {
    vec![(reference(), PublicKey::parse(text.as_bytes()))]
}

#[test]
fn every_kind_of_key_that_openssl_makes_is_verified() {
    let made = made();
    let payload = made["payload"].as_str().unwrap();
    let image = Digest::of(b"image");
    let all = made["signatures"].as_array().unwrap();
    assert_eq!(all.len(), 14);
    for (at, one) in all.iter().enumerate() {
        let (kind, hash) = (&one["kind"], &one["hash"]);
        let (key, signature) = (one["key"].as_str().unwrap(), one["signature"].as_str().unwrap());
        let judge = |payload: &str, signature: &str, key: &str| {
            weigh(&asked(hash), &image, &signed(payload, signature), &keys(key))
        };
        assert_eq!(judge(payload, signature, key), Ok("team".to_owned()), "{kind} {hash}");
        let other = "signature verification failed: team: the key does not fit: the signature is \
                     another's, or what was signed was changed";
        let changed = payload.replace("example.org", "example.com");
        assert_eq!(judge(&changed, signature, key).unwrap_err(), other, "{kind} {hash}");
        let stranger = all[(at + 4) % all.len()]["key"].as_str().unwrap();
        assert!(judge(payload, signature, stranger).is_err(), "{kind} {hash}");
        let elsewhere =
            weigh(&asked(hash), &Digest::of(b"other"), &signed(payload, signature), &keys(key));
        let about = format!("signature verification failed: team: what was signed is {image}");
        assert_eq!(elsewhere.unwrap_err(), about, "{kind} {hash}");
    }
}

#[test]
fn a_key_that_is_none_says_what_it_is() {
    let hint = "hint: it begins with -----BEGIN PUBLIC KEY-----";
    let said = |text: &str| PublicKey::parse(text.as_bytes()).unwrap_err();
    assert_eq!(said(""), format!("is no key in PEM; {hint}"));
    let private = "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n";
    assert_eq!(said(private), format!("holds a EC PRIVATE KEY, not a public key; {hint}"));
    let empty = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n";
    assert!(said(empty).starts_with("is no key: "), "{}", said(empty));
    let made = made();
    let one = &made["signatures"][0];
    let short = weigh(
        &asked(&json!("sha224")),
        &Digest::of(b"image"),
        &signed(made["payload"].as_str().unwrap(), one["signature"].as_str().unwrap()),
        &keys(one["key"].as_str().unwrap()),
    );
    assert!(short.unwrap_err().ends_with("hint: sign with sha256 and say so in hashAlgorithm"));
}
