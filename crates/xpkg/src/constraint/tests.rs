//! Constraints against what upstream was seen to do, and the laws they keep.

use super::*;
use crate::version::tests::{spelled, vectors};
use proptest::prelude::*;

#[test]
fn every_upstream_constraint_chooses_the_same_versions() {
    let vectors = vectors("semver.json");
    let versions = vectors["versions"].as_array().unwrap();
    for row in vectors["constraints"].as_array().unwrap() {
        let constraint = Constraint::parse(row["constraint"].as_str().unwrap());
        assert_eq!(constraint.is_ok(), row["ok"], "{row}");
        let Ok(constraint) = constraint else { continue };
        let matching: Vec<_> = versions
            .iter()
            .filter(|text| constraint.matches(&Version::parse(text.as_str().unwrap()).unwrap()))
            .cloned()
            .collect();
        assert_eq!(&matching, row["matches"].as_array().unwrap(), "{row}");
    }
}

#[test]
fn hard_rows_agree_with_the_original() {
    // Drawn from a differential run against Masterminds/semver v3.4.0, chosen for variety.
    let rows: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("../../testdata/semver/masterminds.json")).unwrap();
    assert!(rows.len() >= 300);
    for row in rows {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        let constraint = Constraint::parse(&text("constraint"));
        let version = Version::parse(&text("version"));
        let other = Version::parse(&text("other"));
        assert_eq!(constraint.is_ok(), row["constraint_ok"], "{row}");
        assert_eq!(version.is_ok(), row["version_ok"], "{row}");
        if let (Ok(constraint), Ok(version)) = (&constraint, &version) {
            assert_eq!(constraint.matches(version), row["matches"], "{row}");
        }
        if let (Ok(version), Ok(other)) = (&version, &other) {
            assert_eq!(version.cmp(other) as i64, row["compare"].as_i64().unwrap(), "{row}");
        }
    }
}

#[test]
fn refusals_say_what_is_wrong() {
    let check = |text: &str, expect: &str| {
        assert_eq!(Constraint::parse(text).unwrap_err().to_string(), expect);
    };
    check("", "a constraint must not be empty");
    check(">=1 || ", "a constraint must not be empty");
    check("latest", r#"improper constraint "latest""#);
    check(">=1.0.0<2", r#"improper constraint ">=1.0.0<2""#);
    check("^1.2.3-01", r#"improper version "1.2.3-01" in a constraint"#);
    check(&"1".repeat(5000), "a constraint must not be longer than 4096 bytes");
}

#[test]
fn the_shape_of_a_constraint_is_known() {
    let parse = |text: &str| Constraint::parse(text).unwrap();
    for partial in ["v1", "1.2", "=v1.2"] {
        assert!(parse(partial).is_partial_version(), "{partial}");
    }
    for whole in ["v1.2.3", "~1.2", "1.x", "1.2.*", "*", "1.2 || 2.0"] {
        assert!(!parse(whole).is_partial_version(), "{whole}");
    }
    assert_eq!(parse("v1.2.3").exact().unwrap().original(), "v1.2.3");
    assert!(parse(">=1.2.3").exact().is_none());
    assert!(parse(">=1.2.3").is_open_ended() && !parse(">=1 <2").is_open_ended());
    assert!(parse(">=1.0.0-0").admits_prereleases() && !parse(">=1").admits_prereleases());
    assert_eq!(parse(">=1.0.0-0 <2.0.0").leaky_upper_bound(), Some("2.0.0"));
    for tight in [">=1.0.0 <2.0.0", ">=1.0.0-0 <2.0.0-0", "^1.0.0-0", ">=1-0 || <2"] {
        assert_eq!(parse(tight).leaky_upper_bound(), None, "{tight}");
    }
}

#[test]
fn display_is_the_normal_form() {
    let check = |text: &str, expect: &str| {
        assert_eq!(Constraint::parse(text).unwrap().to_string(), expect);
    };
    check(" =>v1.0.0 ,<  2||  ~> 3.x", ">=v1.0.0 <2 || ~3.x");
    check("1.0 - 2.0", ">=1.0 <=2.0");
}

proptest! {
    #[test]
    fn a_version_satisfies_itself(text in spelled()) {
        let version = Version::parse(&text).unwrap();
        let full = version.to_string();
        for operator in ["", "=", ">=", "<=", "~", "^"] {
            let constraint = Constraint::parse(&format!("{operator}{full}")).unwrap();
            prop_assert!(constraint.matches(&version), "{operator}{full}");
        }
        for operator in ["!=", ">", "<"] {
            let constraint = Constraint::parse(&format!("{operator}{full}")).unwrap();
            prop_assert!(!constraint.matches(&version), "{operator}{full}");
        }
    }

    #[test]
    fn either_side_of_an_or_suffices(a in spelled(), b in spelled(), v in spelled()) {
        let version = Version::parse(&v).unwrap();
        let matches = |text: &str| Constraint::parse(text).unwrap().matches(&version);
        let either = matches(&format!("^{a} || ~{b}"));
        prop_assert_eq!(either, matches(&format!("^{a}")) || matches(&format!("~{b}")));
    }

    #[test]
    fn the_normal_form_means_the_same(a in spelled(), b in spelled(), v in spelled()) {
        let version = Version::parse(&v).unwrap();
        let constraint = Constraint::parse(&format!("=> {a} , =<{b} || {a} - {b}")).unwrap();
        let again = Constraint::parse(&constraint.to_string()).unwrap();
        prop_assert_eq!(again.to_string(), constraint.to_string());
        prop_assert_eq!(again.matches(&version), constraint.matches(&version));
    }

    #[test]
    fn no_text_makes_reading_panic(text in "[ -~é]{0,24}") {
        let _ = Constraint::parse(&text);
    }
}
