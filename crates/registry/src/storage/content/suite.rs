//! The laws of content, and every kind of it held to them.

use super::files::Files;
use super::memory::Memory;
use super::{Content, Written};
use crate::error::Error;
use bytes::Bytes;
use oci::{Algorithm, Digest};

/// Runs a law over every kind.
fn hold(law: fn(&dyn Content)) {
    law(&Memory::default());
    let directory = tempfile::tempdir().unwrap();
    let files = Files::new(directory.path());
    files.prepare().unwrap();
    law(&files);
}

fn pieces(texts: &[&'static str]) -> Vec<Bytes> {
    texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect()
}

fn read(content: &dyn Content, digest: &Digest) -> Option<Vec<u8>> {
    content.open(digest).unwrap().map(|source| source.read_all().unwrap())
}

#[test]
fn an_upload_is_taken_up_where_it_was_flushed_and_gets_its_digest() {
    hold(|it| {
        let staged = it.stage("u", 0).unwrap();
        staged.write(&pieces(&["one ", "two "]), 0).unwrap();
        staged.flush(8, Written::Something).unwrap();
        staged.flush_name().unwrap();
        staged.write(&pieces(&["never acknowledged"]), 8).unwrap();
        drop(staged);
        assert_eq!(it.staged().unwrap(), ["u"]);
        let staged = it.stage("u", 8).unwrap();
        let along = staged.source();
        assert_eq!(along.read_all().unwrap(), b"one two ");
        staged.write(&pieces(&["three, and a refused tail"]), 8).unwrap();
        staged.flush(13, Written::Something).unwrap();
        let digest = Digest::of(b"one two three");
        assert_eq!(along.hash(Algorithm::Sha256, 13).unwrap(), digest);
        it.adopt("u", &digest).unwrap();
        assert_eq!(it.staged().unwrap(), Vec::<String>::new());
        assert_eq!(read(it, &digest).unwrap(), b"one two three");
        assert_eq!(along.read_all().unwrap(), b"one two three", "who read along goes on");
    });
}

#[test]
fn an_upload_shorter_than_what_was_acknowledged_is_unknown() {
    hold(|it| {
        it.stage("u", 0).unwrap().write(&pieces(&["abc"]), 0).unwrap();
        assert!(matches!(it.stage("u", 4), Err(Error::UploadUnknown)));
        it.unstage("u").unwrap();
        it.unstage("u").unwrap();
        assert!(matches!(it.stage("u", 1), Err(Error::UploadUnknown)));
    });
}

#[test]
fn bytes_are_found_by_digest_until_they_are_removed() {
    hold(|it| {
        let (small, large) = (Digest::of(b"x"), Digest::of(b"yy"));
        assert!(it.open(&small).unwrap().is_none());
        it.put("1", &small, b"x").unwrap();
        it.put("2", &small, b"x").unwrap();
        it.put("3", &large, b"yy").unwrap();
        let mut listed = it.list(Algorithm::Sha256).unwrap();
        listed.sort();
        let mut expected = vec![small.clone(), large.clone()];
        expected.sort();
        assert_eq!(listed, expected);
        assert_eq!(it.list(Algorithm::Sha512).unwrap(), []);
        let open = it.open(&large).unwrap().unwrap();
        it.remove(&large).unwrap();
        it.remove(&large).unwrap();
        assert!(it.open(&large).unwrap().is_none());
        assert_eq!(open.read_all().unwrap(), b"yy", "who reads goes on");
        it.quarantine(&small).unwrap();
        assert!(it.open(&small).unwrap().is_none());
        assert_eq!(it.list(Algorithm::Sha256).unwrap(), []);
        assert!(it.space().unwrap() > 0);
    });
}

#[test]
fn parts_are_read_and_what_is_not_there_is_an_error() {
    hold(|it| {
        let digest = Digest::of(b"0123456789");
        it.put("1", &digest, b"0123456789").unwrap();
        let source = it.open(&digest).unwrap().unwrap();
        let mut buffer = [0; 4];
        source.read_exact_at(&mut buffer, 6).unwrap();
        assert_eq!(&buffer, b"6789");
        assert!(source.read_exact_at(&mut buffer, 7).is_err());
        assert!(source.read_exact_at(&mut buffer, 100).is_err());
        assert!(source.read_ready(&mut buffer, 8) <= 2);
        assert_eq!(source.size().unwrap(), 10);
    });
}
