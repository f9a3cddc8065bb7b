use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::Value as Json;

use super::*;
use crate::{ParseErrorKind, Position, Value};

fn check(yaml: &str, json: &str) {
    let node = parse(yaml, 1, &Limits::default());
    let shown = node.map(|node| node.to_json().to_string());
    assert_eq!(shown.as_deref(), Ok(json), "{yaml:?}");
}

/// The error, with its hint on a second line.
fn failure(yaml: &str) -> String {
    let error = parse(yaml, 1, &Limits::default()).unwrap_err();
    match &error.hint {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    }
}

fn kind(yaml: &str, limits: &Limits) -> ParseErrorKind {
    parse(yaml, 1, limits).unwrap_err().kind
}

fn limit(name: &'static str) -> ParseErrorKind {
    ParseErrorKind::Limit { name }
}

#[test]
fn documents_become_trees() {
    check("", "null");
    check("# nothing\n", "null");
    check("a: 1\nb: [x, {z: yes}]\n", r#"{"a":1,"b":["x",{"z":true}]}"#);
    check("%YAML 1.1\n---\non: 0755\n...\n# end\n", r#"{"true":493}"#);
    check("a: |\n  x\n  y\nb: >-\n  x\n  y\n", r#"{"a":"x\ny\n","b":"x y"}"#);
    check("a: &x {b: 1}\nc: *x\n", r#"{"a":{"b":1},"c":{"b":1}}"#);
}

#[test]
fn plain_strings_are_borrowed_from_the_text() {
    let node = parse("a: plain\nb: 'quoted'\n", 1, &Limits::default()).unwrap();
    for entry in node.entries() {
        assert!(matches!(&entry.key, Cow::Borrowed(_)));
        assert!(matches!(&entry.value.value, Value::String(Cow::Borrowed(_))));
    }
}

#[test]
fn positions_are_those_of_the_stream() {
    let node = parse("é: x\nb:\n  - {c: d}\n", 41, &Limits::default()).unwrap();
    let place = |line, column| Position { line, column };
    assert_eq!(node.position, place(41, 1));
    assert_eq!(node.get("é").unwrap().position, place(41, 4));
    assert_eq!(node.entry("b").unwrap().position, place(42, 1));
    let item = &node.get("b").unwrap().items()[0];
    assert_eq!(item.position, place(43, 5));
    assert_eq!(item.get("c").unwrap().position, place(43, 9));
    assert_eq!(parse("", 7, &Limits::default()).unwrap().position, place(7, 1));
}

#[test]
fn a_copy_stands_where_its_alias_stands() {
    let node = parse("a: &x\n  b: 1\nc: *x\n", 1, &Limits::default()).unwrap();
    let copy = node.get("c").unwrap();
    assert_eq!(copy.position, Position { line: 3, column: 4 });
    assert_eq!(copy.get("b").unwrap().position, Position { line: 2, column: 6 });
}

#[test]
fn mistakes_are_explained() {
    insta::assert_snapshot!(failure("a:\n\tb: 1\n"), @"
    line 2, column 1: found a tab where indentation is expected; YAML is indented with spaces
    hint: replace the tab with spaces
    ");
    insta::assert_snapshot!(failure("\ta: 1\n"), @"
    line 1, column 1: found a tab where indentation is expected; YAML is indented with spaces
    hint: replace the tab with spaces
    ");
    insta::assert_snapshot!(failure("a:\n  b: 1\n\tc: 2\n"), @"
    line 3, column 1: found a tab where indentation is expected; YAML is indented with spaces
    hint: replace the tab with spaces
    ");
    insta::assert_snapshot!(failure("a: b: c\n"), @"
    line 1, column 5: a mapping value is not allowed here
    hint: check the indentation, and quote values that contain a colon and a space
    ");
    insta::assert_snapshot!(failure("a: @b\n"), @"
    line 1, column 4: a value cannot start with `@`
    hint: quote the value
    ");
    insta::assert_snapshot!(failure("a: \"b\n"), @r"
    line 2, column 1: a quoted string is not closed, or goes on in a line that is not indented
    hint: add the closing quote, or indent the line
    ");
    insta::assert_snapshot!(failure("a: *b\n"), @"
    line 1, column 4: the alias refers to an anchor that is not defined above it
    hint: define the anchor with & before using it with *, or quote the text if it is none
    ");
    insta::assert_snapshot!(failure("a: &b [*b]\n"), @"line 1, column 8: the alias refers to a value that contains the alias itself");
    insta::assert_snapshot!(failure("a: .inf\n"), @"
    line 1, column 4: `.inf` is not a number JSON can carry
    hint: quote it if it is meant as text
    ");
    insta::assert_snapshot!(failure("~: 1\n"), @"
    line 1, column 1: a mapping key cannot be null
    hint: quote the key if it is meant as text
    ");
    insta::assert_snapshot!(failure("{a: 1}: 1\n"), @"
    line 1, column 1: a mapping or sequence cannot be a mapping key
    hint: quote the key if braces or brackets are part of its text
    ");
    insta::assert_snapshot!(failure("a: 1\n...\nb: 2\n"), @"
    line 3, column 1: content follows the end of the document and would be ignored
    hint: start a new document with a line that holds only `---`
    ");
    insta::assert_snapshot!(failure("  a: 1\nb: 2\n"), @"
    line 2, column 1: this does not belong to the value above it
    hint: check the indentation, and the space after a colon
    ");
    insta::assert_snapshot!(failure("%YAML 1.2\n---\na: 1\n"), @"
    line 2, column 1: Kubernetes tools read YAML 1.1, not YAML 1.2
    hint: remove the %YAML line
    ");
    insta::assert_snapshot!(failure("%FOO\n---\na: 1\n"), @"line 1, column 1: only the directives %YAML and %TAG are known");
    insta::assert_snapshot!(failure("a: \"\\/\"\n"), @r#"
    line 1, column 4: the escape `\/` is unknown to Kubernetes tools
    hint: write the character itself
    "#);
    insta::assert_snapshot!(failure("a: x\u{2028}y\n"), @"
    line 1, column 4: the text contains the character U+2028, which ends the line for Kubernetes tools
    hint: remove it, or write it as an escape in double quotes
    ");
    insta::assert_snapshot!(failure("a: &x.y 1\n"), @"
    line 1, column 4: Kubernetes tools cannot read the name of the anchor `x.y`
    hint: use letters, digits, `-` and `_` only
    ");
}

#[test]
fn duplicate_keys_name_both_places() {
    insta::assert_snapshot!(failure("a: 1\nb: 2\na: 3\n"), @"
    line 3, column 1: the key `a` is already set at line 1, column 1
    hint: remove one of the two
    ");
    insta::assert_snapshot!(failure("yes: 1\ntrue: 2\n"), @"
    line 2, column 1: the key `true` is already set at line 1, column 1
    hint: remove one of the two
    ");
    let many: Vec<String> = (0..100).map(|at| format!("k{}: {at}", at % 99)).collect();
    let many = many.join("\n");
    let first = Position { line: 1, column: 1 };
    assert_eq!(kind(&many, &Limits::default()), ParseErrorKind::DuplicateKey { first });
    let options = Options { duplicate_keys: DuplicateKeys::LastWins };
    let node = parse_with(&many, 1, &Limits::default(), options).unwrap();
    assert_eq!(node.entries().len(), 99);
    assert_eq!(node.get("k0").unwrap().to_json(), 99);
}

#[test]
fn merged_keys_give_way_to_written_ones() {
    check("a: {<<: {x: 1, z: 2}, x: 3}\n", r#"{"a":{"x":3,"z":2}}"#);
    check("a: {<<: [{x: 1}, {x: 2, z: 2}]}\n", r#"{"a":{"x":1,"z":2}}"#);
    check("a: {\"<<\": {x: 1}}\n", r#"{"a":{"<<":{"x":1}}}"#);
    insta::assert_snapshot!(failure("a:\n  x: 3\n  <<: {x: 1}\n"), @"
    line 2, column 3: the key `x` stands before a merge key `<<` that sets it as well, at line 3, column 8; readers disagree on which one counts
    hint: move `<<` to the top of its mapping
    ");
    insta::assert_snapshot!(failure("a: {<<: 1}\n"), @r#"
    line 1, column 9: the merge key `<<` needs a mapping, or a list of mappings, as its value
    hint: quote the key as "<<" if it is meant as text
    "#);
    insta::assert_snapshot!(failure("l: &l [{x: 1}]\na: {<<: *l}\n"), @r#"
    line 2, column 9: the merge key `<<` needs a mapping, or a list of mappings, as its value
    hint: quote the key as "<<" if it is meant as text
    "#);
}

#[test]
fn limits_are_met_early_and_named() {
    let small = Limits { depth_max: 3, nodes_max: 20, aliases_max: 2, ..Limits::default() };
    assert_eq!(kind("[[[[1]]]]", &small), limit("depth_max"));
    assert_eq!(kind("a: {b: {c: {d: 1}}}", &small), limit("depth_max"));
    assert_eq!(kind("a: &x [[1]]\nb: [[*x]]\n", &small), limit("depth_max"));
    assert!(parse("a: &x [1]\nb: [*x]\n", 1, &small).is_ok());
    assert_eq!(kind("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", &small), limit("nodes_max"));
    assert_eq!(kind("[&x [1,1,1,1,1,1], *x, *x]", &small), limit("nodes_max"));
    assert_eq!(kind("[&x 1, *x, *x, *x]", &small), limit("aliases_max"));
    // Nested anchors must not copy one text once per level.
    let text = Limits { alias_bytes_max: 8, ..Limits::default() };
    assert_eq!(kind("[&x abcde, *x, *x]", &text), limit("alias_bytes_max"));
    assert_eq!(kind("&a [&b [&c [abc]]]", &text), limit("alias_bytes_max"));
    assert_eq!(kind("[&x {k: abcd}, *x, *x]", &text), limit("alias_bytes_max"));
    insta::assert_snapshot!(parse("[[[[1]]]]", 5, &small).unwrap_err(), @"line 5, column 4: collections are nested deeper than the limit of 3 (depth_max)");
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut bomb = vec!["a0: &a0 [x,x,x,x,x,x,x,x,x]".to_owned()];
    for at in 1..40 {
        let aliases = vec![format!("*a{}", at - 1); 9].join(",");
        bomb.push(format!("a{at}: &a{at} [{aliases}]"));
    }
    assert_eq!(kind(&bomb.join("\n"), &Limits::default()), limit("nodes_max"));
}

/// A document that expands to about this many times ten nodes.
fn expanding(times: usize) -> String {
    format!("a: &a [1,1,1,1,1,1,1,1,1]\nb: [{}]\n", vec!["*a"; times].join(","))
}

/// M7, and C1 of the issue on the letter: what aliases repeat counts over all documents.
#[test]
fn m7_documents_of_a_stream_count_together() {
    let limits = Limits::default();
    let mut total = Total::new(u64::MAX);
    let options = Options::default();
    let text = expanding(80);
    let mut refused = 0;
    for _ in 0..2000 {
        if let Err(error) = parse_counted(&text, 1, &limits, options, &mut total) {
            assert!(error.is_of_stream(), "{error}");
            refused += 1;
        }
    }
    assert!(refused > 500, "{refused}");
    assert!(total.nodes() < 2_000_000, "{}", total.nodes());
    // By itself each is fine, and few are.
    assert!(parse(&text, 1, &limits).is_ok());
    let mut total = Total::new(u64::MAX);
    for _ in 0..10 {
        parse_counted(&text, 1, &limits, options, &mut total).unwrap();
    }
}

#[test]
fn m7_a_stream_of_many_nodes_allows_fewer_aliases() {
    let (limits, options) = (Limits::default(), Options::default());
    let text = expanding(20);
    let mut total = Total::new(u64::MAX);
    total.add_plain(5_000_000, 50_000_000);
    for _ in 0..1000 {
        parse_counted(&text, 1, &limits, options, &mut total).unwrap();
    }
    let mut total = Total::new(1000);
    total.add_plain(990, 50_000_000);
    let error = parse_counted(&text, 1, &limits, options, &mut total).unwrap_err();
    assert_eq!(error.kind, limit("package_nodes_max"));
}

/// M7: anchors within anchors keep what is innermost once for each.
#[test]
fn m7_what_is_kept_for_anchors_counts_too() {
    let text = format!("{}1{}", "&a [".repeat(99), ",1,1,1,1,1,1,1,1]".repeat(99));
    let mut total = Total::new(u64::MAX);
    let mut refused = false;
    for _ in 0..500 {
        let parsed = parse_counted(&text, 1, &Limits::default(), Options::default(), &mut total);
        refused |= parsed.is_err_and(|error| error.is_of_stream());
    }
    assert!(refused && total.nodes() < 5_000_000, "{}", total.nodes());
}

#[test]
fn documents_that_copy_nothing_are_told_apart() {
    let plain = |text| parse_plain(text, 1, &Limits::default(), Options::default());
    assert_eq!(plain("a: [1, '&x', '*x']\n").unwrap().unwrap().1, 6);
    assert!(plain("a: &x 1\n").unwrap().is_none());
    assert!(plain("a: &x 1\nb: *x\nc: [").unwrap().is_none());
    assert!(plain("a: *x\n").is_err());
    assert!(plain("a: [").is_err());
}

#[test]
fn many_merge_keys_take_no_quadratic_time() {
    let text = "<<: {a: 1}\n".repeat(100_000);
    assert_eq!(parse(&text, 1, &Limits::default()).unwrap().entries().len(), 1);
}

#[test]
fn depth_never_endangers_the_stack() {
    let limits = Limits { depth_max: usize::MAX, ..Limits::default() };
    for open in ["[", "- ", "{a: ", "[{a: "] {
        assert_eq!(kind(&open.repeat(100_000), &limits), limit("depth_max"), "{open}");
    }
    let text = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    let node = parse(&text, 1, &limits).unwrap();
    assert!(node.to_json().is_array());
}

/// Texts that go-yaml and this parser read differently, reviewed one by one.
const DIFFERENT: &[(&str, &[&str])] = &[
    (
        "bytes that are no text cannot be carried by JSON; Go silently replaces them",
        &["a: !!binary 18446744073709551615\n", "a: !!binary 0x1f\n", "a: !!binary /w==\n"],
    ),
    (
        "Kubernetes' line reader adds the missing line break before go-yaml sees the text",
        &[
            "a: |\n  x",
            "a: |1\n  x",
            "a: |2\n  x",
            "a: |+\n  x",
            "a: |1+\n  x",
            "a: |2+\n  x",
            "a: >\n  x",
            "a: >1\n  x",
            "a: >2\n  x",
            "a: >+\n  x",
            "a: >1+\n  x",
            "a: >2+\n  x",
        ],
    ),
    (
        "go-yaml reads the first document and ignores the rest; we ignore nothing",
        &[
            "a: 1\n---\nb: 2\n",
            "a: 1\n...\nb: 2\n",
            "a: 1\n--- x\n",
            "\"a\":1\n",
            "'a':1\n",
            "\"\":1\n",
            "{a: 1}}\n",
            "[1]]\n",
            "  a: 1\nb: 2\n",
        ],
    ),
    (
        "granit refuses tabs at the start of lines in quotes and braces, which only confuse",
        &["a: \"x\n\ty\"\n", "a: 'x\n\ty'\n", "a: {\n\tb: 1\n}\n"],
    ),
    (
        "a colon that one version of YAML takes for the key's is refused",
        &["{m:}\n", "{m:, n: 1}\n", "[2:]\n", "[a:, b]\n"],
    ),
    ("a comment needs a space before it; granit insists", &["a: \"x\"# y\n", "[#c\n1]\n"]),
    ("line breaks of YAML 1.1 only are refused rather than folded", &["a: x\u{85}  y\n"]),
    ("granit reads a key that starts with a colon; harmless", &["{:a}\n"]),
    ("a lone end marker is an empty document to us; the splitter leaves it out anyway", &["...\n"]),
];

#[test]
fn go_yaml_reads_the_same() {
    let rows: Vec<Json> =
        serde_json::from_str(include_str!("../../testdata/scalars.json")).unwrap();
    let options = Options { duplicate_keys: DuplicateKeys::LastWins };
    let mut different = Vec::new();
    for row in &rows {
        let yaml = row["yaml"].as_str().unwrap();
        let equal = match parse_with(yaml, 1, &Limits::default(), options) {
            Ok(node) => row["error"] == false && same(&node.to_json(), &row["json"]),
            Err(_) => row["error"] == true,
        };
        if !equal {
            different.push(yaml);
        }
    }
    let mut reviewed: Vec<_> = DIFFERENT.iter().flat_map(|(_, texts)| *texts).copied().collect();
    reviewed.sort_unstable();
    different.sort_unstable();
    assert_eq!(different, reviewed);
}

/// Equality of JSON where a number is its value, however it is written.
fn same(ours: &Json, theirs: &Json) -> bool {
    match (ours, theirs) {
        (Json::Number(a), Json::Number(b)) if a.is_f64() || b.is_f64() => a.as_f64() == b.as_f64(),
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => ours == theirs,
    }
}

proptest! {
    #[test]
    fn parsing_never_panics(text in any::<String>()) {
        let _ = parse(&text, 1, &Limits::default());
    }

    #[test]
    fn parsing_yaml_like_text_never_panics(
        pieces in proptest::collection::vec(
            proptest::sample::select(vec![
                "a", ": ", "- ", "\n", "  ", "[", "]", "{", "}", ", ", "&a ", "*a", "<<: ", "|\n",
                ">-\n", "'", "\"", "\\u", "\\", "!!int ", "? ", "# ", "%YAML 1.1", "---\n", "...\n",
                "\t", "\u{85}", "\u{2028}", "\r\n", "é", "0x1", "\u{feff}", "d800", "~",
            ]),
            0..40,
        ),
    ) {
        let text: String = pieces.concat();
        for duplicate_keys in [DuplicateKeys::Reject, DuplicateKeys::LastWins] {
            let read = parse_with(&text, u32::MAX, &Limits::default(), Options { duplicate_keys });
            if let Ok(node) = read {
                let _ = node.to_json();
            }
        }
    }

    #[test]
    fn json_is_read_as_itself(words in proptest::collection::vec("[ -~é😀\n\t]{0,12}", 0..6)) {
        let json: Json = words.iter().map(|word| Json::from(word.as_str())).collect();
        let text = json.to_string();
        let node = parse(&text, 1, &Limits::default()).unwrap();
        prop_assert_eq!(node.to_json(), json);
    }
}

#[test]
fn a_body_is_its_first_document_and_tells_of_keys_set_twice() {
    let body = |text: &str| {
        let (node, repeated) = parse_body(text, &Limits::default()).unwrap();
        let said: Vec<_> = repeated.iter().map(ToString::to_string).collect();
        (node.to_json().to_string(), said.join("; "))
    };
    let check = |text: &str, json: &str, said: &str| {
        assert_eq!(body(text), (json.to_owned(), said.to_owned()), "{text}");
    };
    check("a: 1\n---\nb: [\n", r#"{"a":1}"#, "");
    check("a: 1\n...\nb: [\n", r#"{"a":1}"#, "");
    check("---\n---\na: 1\n", "null", "");
    check("a: 1\na:\n  b: 2\n", r#"{"a":{"b":2}}"#, "line 3: key \"a\" already set in map");
    let twice = "line 2: key 5 already set in map; line 4: key true already set in map";
    check("5: 1\n5: 2\non: 2\non: 3\n", r#"{"5":2,"true":3}"#, twice);
    check("a: 1\n<<: {a: 2}\n", r#"{"a":2}"#, "line 2: key \"a\" already set in map");
}

#[test]
fn mistakes_are_also_known_in_the_words_of_go() {
    let check = |text: &str, said: &str| {
        let error = parse_body(text, &Limits::default()).unwrap_err();
        assert_eq!(error.in_go_words(), said, "{text}");
    };
    check("a: b: c\n", "yaml: mapping values are not allowed in this context");
    check("a: 1\n  b: 2\n", "yaml: line 2: mapping values are not allowed in this context");
    check("\tx: 1\n", "yaml: found character that cannot start any token");
    check("a: @x\n", "yaml: found character that cannot start any token");
    check("a: \"x\n", "yaml: line 2: found unexpected end of stream");
    check("a: 1\nb\n", "yaml: line 3: could not find expected ':'");
}
