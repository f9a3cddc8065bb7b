use super::*;

fn value(text: &str) -> String {
    let scalar = resolve(Cow::Borrowed(text), Style::Plain, None).unwrap();
    match scalar.into_value() {
        Ok(value) => format!("{value:?}"),
        Err(error) => error.to_string(),
    }
}

fn key(text: &str) -> String {
    let scalar = resolve(Cow::Borrowed(text), Style::Plain, None).unwrap();
    match scalar.into_key() {
        Ok(key) => key.into_owned(),
        Err(error) => error.to_string(),
    }
}

/// What go-yaml makes of these is in `testdata`; this table is for people.
#[test]
fn plain_scalars_mean_what_the_cluster_reads() {
    let check = |text, expected: &str| assert_eq!(value(text), expected, "{text}");
    check("on", "Bool(true)");
    check("oN", "String(\"oN\")");
    check("", "Null");
    check("~", "Null");
    check("0755", "Int(493)");
    check("0o17", "Int(15)");
    check("08", "Int(8)");
    check("1_000", "Int(1000)");
    check("-0x1f", "Int(-31)");
    check("0b-1", "Int(-1)");
    check("1.0", "Int(1)");
    check("1.5", "Float(1.5)");
    check("1e400", "String(\"1e400\")");
    check("18446744073709551615", "UInt(18446744073709551615)");
    check("18446744073709551616", "Float(1.8446744073709552e19)");
    check("-9223372036854775808", "Int(-9223372036854775808)");
    check("1:30", "String(\"1:30\")");
    check("2001-12-14", "String(\"2001-12-14\")");
    check("1.2.3", "String(\"1.2.3\")");
    check(".inf", "`.inf` is not a number JSON can carry");
    check("-.INF", "`-.inf` is not a number JSON can carry");
    check(".NaN", "`.nan` is not a number JSON can carry");
    check("<<", "String(\"<<\")");
}

#[test]
fn keys_are_spelled_as_go_prints_them() {
    let check = |text, expected: &str| assert_eq!(key(text), expected, "{text}");
    check("yes", "true");
    check("0755", "493");
    check("1.0", "1");
    check("1e6", "1e+06");
    check("123456.0", "123456");
    check("0.00001", "1e-05");
    check("16777217.0", "1.6777216e+07");
    check("3.4e39", ".inf");
    check(".nan", ".nan");
    check("~", "a mapping key cannot be null");
    check("18446744073709551615", "a mapping key cannot be an integer above 9223372036854775807");
}

#[test]
fn quotes_make_strings_and_tags_decide_over_quotes() {
    let check = |text: &'static str, tag: &str, expected| {
        let tag = format!("{YAML_TAG}{tag}");
        let scalar = resolve(Cow::Borrowed(text), Style::Quoted, Some(&tag));
        assert_eq!(scalar.map_err(|error| error.to_string()), expected, "{tag} {text}");
    };
    let quoted = resolve(Cow::Borrowed("12"), Style::Quoted, None);
    assert_eq!(quoted, Ok(Scalar::String(Cow::Borrowed("12"))));
    check("12", "int", Ok(Scalar::Int(12)));
    check("12", "float", Ok(Scalar::Float(12.0)));
    check("12", "str", Ok(Scalar::String(Cow::Borrowed("12"))));
    check("x", "int", Err("`x` is not a !!int".to_owned()));
    check("aGk=", "binary", Ok(Scalar::String(Cow::Borrowed("hi"))));
    let not_text = "the !!binary value is not base64 of UTF-8 text";
    check("/w==", "binary", Err(not_text.to_owned()));
}
