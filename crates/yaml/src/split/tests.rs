use std::io::{self, Read};

use proptest::prelude::*;

use super::*;

fn both(text: &str, limits: &Limits) -> Result<Vec<RawDocument>, String> {
    let streamed: Result<Vec<_>, _> = stream(text.as_bytes(), limits).collect();
    let borrowed: Result<Vec<_>, _> =
        documents(text, limits).map(|document| document.map(owned)).collect();
    let streamed = streamed.map_err(|error| error.to_string());
    let borrowed = borrowed.map_err(|error| error.to_string());
    assert_eq!(streamed, borrowed);
    streamed
}

fn owned(document: RawDocumentRef<'_>) -> RawDocument {
    RawDocument {
        text: document.text.to_owned(),
        line: document.line,
        offset: document.offset,
        index: document.index,
    }
}

/// Each document as `line:text`.
fn check(text: &str, expected: &[&str]) {
    let documents = both(text, &Limits::default()).unwrap();
    let shown: Vec<_> =
        documents.iter().map(|document| format!("{}:{}", document.line, document.text)).collect();
    assert_eq!(shown, expected, "{text:?}");
}

fn check_error(text: &str, limits: &Limits, expected: &str) {
    assert_eq!(both(text, limits).unwrap_err(), expected, "{text:?}");
}

#[test]
fn separators_cut_and_are_dropped() {
    check("a: 1\n", &["1:a: 1\n"]);
    check("a: 1\n---\nb: 2\n", &["1:a: 1\n", "3:b: 2\n"]);
    check("---\na: 1\n---\nb: 2\n---\n", &["2:a: 1\n", "4:b: 2\n"]);
    check("a\n---   \t\nb\n", &["1:a\n", "3:b\n"]);
    check("a\n--- # why\nb\n", &["1:a\n", "3:b\n"]);
    check("a\n---#why\nb\n", &["1:a\n", "3:b\n"]);
    check("a\n---\u{a0}\nb\n", &["1:a\n", "3:b\n"]);
}

#[test]
fn separators_cut_block_scalars_as_kubernetes_does() {
    check("a: |\n  x\n---\n  y\n", &["1:a: |\n  x\n", "4:  y\n"]);
    check("a: |\n  x\n  ---\n  y\n", &["1:a: |\n  x\n  ---\n  y\n"]);
}

#[test]
fn silent_documents_are_left_out() {
    check("", &[]);
    check("\n\n", &[]);
    check("---\n---\n---", &[]);
    check("# only\n  # comments\n\t\n...\n  ---\n", &[]);
    check("# head\n---\na\n---\n...\n", &["3:a\n"]);
    check("# kept\na\n", &["1:# kept\na\n"]);
    // Only a bare marker is silent; this one is left for the parser to judge.
    check("... \n", &["1:... \n"]);
}

#[test]
fn line_ends_and_marks_survive() {
    check("a\r\n---\r\nb\r\n", &["1:a\r\n", "3:b\r\n"]);
    check("\r\n---\r\n...\r\n", &[]);
    // Without its line feed a carriage return ends no line.
    check("...\r", &["1:...\r"]);
    check("a\n---\nb", &["1:a\n", "3:b"]);
    check("a\n---", &["1:a\n"]);
    check("\u{feff}a\n", &["1:a\n"]);
    check("\u{feff}---\na\n", &["2:a\n"]);
    check("\u{feff}", &[]);
    check("a\n\u{feff}b\n", &["1:a\n\u{feff}b\n"]);
}

#[test]
fn places_are_those_of_the_stream() {
    let documents = both("\u{feff}# é\na\n---\n# c\n---\nb\n", &Limits::default()).unwrap();
    let places: Vec<_> =
        documents.iter().map(|document| (document.line, document.offset, document.index)).collect();
    assert_eq!(places, [(1, 3, 0), (6, 22, 1)]);
}

#[test]
fn content_after_a_separator_is_refused() {
    let limits = Limits::default();
    check_error(
        "a\n--- b\n",
        &limits,
        "line 2 starts with `---`, but more than a comment follows: `b`",
    );
    check_error(
        "-----BEGIN X\n",
        &limits,
        "line 1 starts with `---`, but more than a comment follows: `--BEGIN X`",
    );
}

#[test]
fn limits_are_named() {
    let small = Limits { document_bytes_max: 4, documents_max: 2, ..Limits::default() };
    check_error(
        "a\n---\nabcd\n",
        &small,
        "document 2 at line 3 is larger than the limit of 4 bytes (document_bytes_max)",
    );
    check_error(
        "a\n---\nb\n---\n# c\nd\n",
        &Limits { document_bytes_max: 1 << 20, ..small },
        "line 5 starts more documents than the limit of 2 (documents_max)",
    );
    assert_eq!(both("abc\n---\nabc\n---\n", &small).unwrap().len(), 2);
    let error = SplitError::DocumentTooLarge { index: 2, line: 120, limit: 64 << 20 };
    insta::assert_snapshot!(
        error,
        @"document 3 at line 120 is larger than the limit of 64 MiB (document_bytes_max)"
    );
}

#[test]
fn text_that_is_not_utf8_names_its_line() {
    let failure = |bytes: &[u8]| stream(bytes, &Limits::default()).last().unwrap().unwrap_err();
    assert_eq!(failure(b"a\n---\nb\nc\xff\n").to_string(), "line 4 is not UTF-8 text");
    assert_eq!(failure(b"---\xff\n").to_string(), "line 1 is not UTF-8 text");
}

/// Yields the same byte for ever and counts what was taken.
struct Endless {
    byte: u8,
    read: usize,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.fill(self.byte);
        self.read += buffer.len();
        Ok(buffer.len())
    }
}

#[test]
fn a_line_without_end_is_read_up_to_the_limit_only() {
    for byte in *b"x -#" {
        let limits = Limits { document_bytes_max: 1 << 20, ..Limits::default() };
        let mut source = Endless { byte, read: 0 };
        let mut documents = stream(&mut source, &limits);
        assert!(documents.next().unwrap().is_err());
        assert!(documents.next().is_none(), "an error ends the iteration");
        drop(documents);
        assert!(source.read <= (1 << 20) + 2 * BUFFER_BYTES, "{}", source.read);
    }
}

#[test]
fn a_stream_that_breaks_off_keeps_its_cause() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("cable"))
        }
    }
    let error = stream(b"a\n".chain(Broken), &Limits::default()).next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "cannot read the stream after line 1");
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "cable");
}

fn lines() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("---"),
        Just("--- # c"),
        Just("--- x"),
        Just("---x"),
        Just(" ---"),
        Just("..."),
        Just("# c"),
        Just(""),
        Just("  "),
        Just("a: 1"),
        Just("  - é"),
        Just("\u{feff}"),
        Just("---\u{2003}"),
        Just("\t"),
    ];
    let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\n\n"), Just("")];
    proptest::collection::vec((line, end), 0..12)
        .prop_map(|lines| lines.into_iter().flat_map(|(line, end)| [line, end]).collect())
}

proptest! {
    #[test]
    fn both_ways_of_splitting_agree(text in lines(), bytes in 0_u64..40, count in 0_usize..5) {
        let _ = both(&text, &Limits::default());
        let limits = Limits { document_bytes_max: bytes, documents_max: count, ..Limits::default() };
        let _ = both(&text, &limits);
    }

    #[test]
    fn documents_are_verbatim_pieces_of_the_stream(text in lines()) {
        for document in documents(&text, &Limits::default()).map_while(Result::ok) {
            let start = usize::try_from(document.offset).unwrap();
            prop_assert!(text[start..].starts_with(document.text));
            let lines = text[..start].matches('\n').count() + 1;
            prop_assert_eq!(document.line as usize, lines);
        }
    }
}
