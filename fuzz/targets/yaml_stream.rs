//! YAML: a stream and a text fall into the same documents, no document makes reading panic, and
//! what is written is read back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use yaml::{DuplicateKeys, Limits, Options, parse_body, parse_with, split, write};

/// Small, so that limits are met too.
const LIMITS: Limits = Limits {
    document_bytes_max: 1 << 10,
    documents_max: 16,
    depth_max: 20,
    nodes_max: 10_000,
    aliases_max: 100,
    alias_bytes_max: 64 << 10,
};

fuzz_target!(|bytes: &[u8]| {
    let streamed: Vec<_> = split::stream(bytes, &LIMITS).collect();
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let borrowed: Vec<_> = split::documents(text, &LIMITS).collect();
    assert_eq!(streamed.len(), borrowed.len());
    for pair in streamed.iter().zip(&borrowed) {
        match pair {
            (Ok(left), Ok(right)) => {
                assert_eq!(left.text, right.text);
                let places = (left.line, left.offset, left.index);
                assert_eq!(places, (right.line, right.offset, right.index));
                let start = usize::try_from(right.offset).unwrap();
                assert_eq!(&text[start..start + right.text.len()], right.text);
            }
            (Err(left), Err(right)) => assert_eq!(left.to_string(), right.to_string()),
            (left, right) => panic!("the stream says {left:?}, the text {right:?}"),
        }
    }
    let _ = parse_body(text, &LIMITS);
    for document in borrowed.into_iter().flatten() {
        for duplicate_keys in [DuplicateKeys::Reject, DuplicateKeys::LastWins] {
            let options = Options { duplicate_keys };
            if let Ok(node) = parse_with(document.text, document.line, &LIMITS, options) {
                let written = write::to_string(&node.to_json());
                let read = parse_with(&written, 1, &Limits::default(), options).unwrap();
                assert_eq!(write::to_string(&read.to_json()), written);
            }
        }
    }
});
