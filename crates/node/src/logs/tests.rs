use super::reader::{LogReader, ReadStep, read_log};
use super::writer::{LogWriter, Rotation};
use super::{LINE_BYTES_MAX, LOG_FILES_MAX, LogOptions, LogSource, has_log};
use futures::TryStreamExt;
use k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;
use std::path::Path;

const BIG: Rotation = Rotation { file_bytes_max: 1 << 30, files_max: 5 };

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// Everything that a reader gives without waiting.
fn read_now(reader: &mut LogReader) -> (Vec<u8>, bool) {
    let mut all = Vec::new();
    loop {
        match reader.read_step().unwrap() {
            ReadStep::Text(text) => all.extend(text),
            ReadStep::Waiting => return (all, false),
            ReadStep::Ended => return (all, true),
        }
    }
}

fn read(directory: &Path, options: LogOptions) -> Vec<u8> {
    let (text, is_ended) = read_now(&mut LogReader::new(directory, 0, options));
    assert!(is_ended);
    text
}

fn read_text(directory: &Path, options: LogOptions) -> String {
    String::from_utf8(read(directory, options)).unwrap()
}

/// A log of lines that were written a second apart.
fn write_lines(directory: &Path, rotation: Rotation, lines: &[(LogSource, &str)]) {
    let mut writer = LogWriter::open_with(directory, 0, rotation).unwrap();
    for (second, (source, line)) in lines.iter().enumerate() {
        let time = at(i64::try_from(second).unwrap());
        writer.write_at(*source, format!("{line}\n").as_bytes(), time).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_log_is_read_as_kubectl_asks() {
    use LogSource::{Stderr, Stdout};
    let directory = tempfile::tempdir().unwrap();
    let lines = [(Stdout, "one"), (Stderr, "two"), (Stdout, ""), (Stdout, "four")];
    write_lines(directory.path(), BIG, &lines);
    let check = |options: LogOptions, expected: &str| {
        assert_eq!(read_text(directory.path(), options.clone()), expected, "{options:?}");
    };
    let none = LogOptions::default();
    check(none.clone(), "one\ntwo\n\nfour\n");
    check(LogOptions { tail_lines: Some(0), ..none.clone() }, "");
    check(LogOptions { tail_lines: Some(2), ..none.clone() }, "\nfour\n");
    check(LogOptions { tail_lines: Some(99), ..none.clone() }, "one\ntwo\n\nfour\n");
    check(LogOptions { limit_bytes: Some(5), ..none.clone() }, "one\nt");
    check(LogOptions { limit_bytes: Some(0), ..none.clone() }, "");
    check(LogOptions { since: Some(at(2)), ..none.clone() }, "\nfour\n");
    check(LogOptions { since: Some(at(9)), ..none.clone() }, "");
    check(LogOptions { since: Some(at(3)), tail_lines: Some(3), ..none.clone() }, "four\n");
    check(LogOptions { source: Some(Stderr), ..none.clone() }, "two\n");
    check(LogOptions { source: Some(Stdout), tail_lines: Some(2), ..none.clone() }, "\nfour\n");
    check(LogOptions { follow: true, tail_lines: Some(1), ..none.clone() }, "four\n");
    check(
        LogOptions { timestamps: true, tail_lines: Some(2), ..none.clone() },
        "2027-01-15T08:00:02.000000000Z \n2027-01-15T08:00:03.000000000Z four\n",
    );
    check(LogOptions { timestamps: true, limit_bytes: Some(12), ..none }, "2027-01-15T0");
}

#[test]
fn a_log_that_is_not_there_is_empty() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    assert!(!has_log(&missing, 0).unwrap());
    for follow in [false, true] {
        for tail_lines in [None, Some(3)] {
            let options = LogOptions { follow, tail_lines, ..LogOptions::default() };
            assert_eq!(read(&missing, options), b"");
        }
    }
}

#[test]
fn a_long_line_is_kept_in_parts_and_read_as_one() {
    let directory = tempfile::tempdir().unwrap();
    for length in [LINE_BYTES_MAX - 1, LINE_BYTES_MAX, LINE_BYTES_MAX + 1, 3 * LINE_BYTES_MAX] {
        let path = directory.path().join(length.to_string());
        let line = "x".repeat(length);
        write_lines(&path, BIG, &[(LogSource::Stdout, "a"), (LogSource::Stdout, &line)]);
        let written = fs_err::read_to_string(path.join("0.log")).unwrap();
        let parts: Vec<&str> = written.lines().skip(1).collect();
        assert_eq!(parts.len(), length.div_ceil(LINE_BYTES_MAX), "{length}");
        assert!(parts.last().unwrap().contains(" stdout F x"));
        let options = LogOptions { tail_lines: Some(1), timestamps: true, ..LogOptions::default() };
        assert_eq!(read_text(&path, options), format!("2027-01-15T08:00:01.000000000Z {line}\n"));
    }
}

#[test]
fn what_a_program_printed_without_a_newline_is_there_when_it_ended() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = LogWriter::open(directory.path(), 0).unwrap();
    writer.write(LogSource::Stdout, b"one\nno end").unwrap();
    assert_eq!(read(directory.path(), LogOptions::default()), b"one\n");
    drop(writer);
    assert_eq!(read(directory.path(), LogOptions::default()), b"one\nno end");
    let options = LogOptions { tail_lines: Some(1), ..LogOptions::default() };
    assert_eq!(read(directory.path(), options), b"no end");
}

#[test]
fn full_files_are_followed_by_new_ones_and_the_oldest_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let lines: Vec<String> = (0..100).map(|number| format!("line {number}")).collect();
    let lines: Vec<_> = lines.iter().map(|line| (LogSource::Stdout, line.as_str())).collect();
    let small = Rotation { file_bytes_max: 200, files_max: 3 };
    write_lines(directory.path(), small, &lines);
    let files = fs_err::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|path| !path.ends_with("0.lock")).collect();
    assert_eq!(files.len(), 3, "{files:?}");
    for file in files {
        assert!(fs_err::metadata(&file).unwrap().len() <= 200);
    }
    let text = read_text(directory.path(), LogOptions::default());
    let kept: Vec<&str> = text.lines().collect();
    assert!((9..=15).contains(&kept.len()), "{kept:?}");
    assert_eq!(kept.last(), Some(&"line 99"));
    let options = LogOptions { tail_lines: Some(8), ..LogOptions::default() };
    assert_eq!(read_text(directory.path(), options).lines().next(), Some("line 92"));
}

#[test]
fn logs_of_attempts_before_the_previous_one_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    for attempt in 0..12 {
        let mut writer = LogWriter::open(directory.path(), attempt).unwrap();
        writer.write(LogSource::Stdout, format!("attempt {attempt}\n").as_bytes()).unwrap();
    }
    let kept: Vec<u32> =
        (0..12).filter(|attempt| has_log(directory.path(), *attempt).unwrap()).collect();
    assert_eq!(kept, [10, 11]);
    assert_eq!(fs_err::read_dir(directory.path()).unwrap().count(), 4);
}

#[test]
fn a_crash_within_a_record_leaves_a_log_that_can_be_read_and_gone_on_with() {
    let directory = tempfile::tempdir().unwrap();
    write_lines(directory.path(), BIG, &[(LogSource::Stdout, "one"), (LogSource::Stderr, "two")]);
    let whole = fs_err::read(directory.path().join("0.log")).unwrap();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for length in 0..whole.len() {
        fs_err::write(directory.path().join("0.log"), &whole[..length]).unwrap();
        let text = read_text(directory.path(), LogOptions::default());
        assert!("one\ntwo\n".starts_with(&text), "{length}: {text}");
        assert_eq!(text.starts_with("one\n"), length >= first, "{length}: {text}");
        let mut writer = LogWriter::open(directory.path(), 0).unwrap();
        writer.write(LogSource::Stdout, b"three\n").unwrap();
        drop(writer);
        let text = read_text(directory.path(), LogOptions::default());
        assert!(text.ends_with("three\n"), "{length}: {text}");
        let options = LogOptions { tail_lines: Some(1), ..LogOptions::default() };
        assert_eq!(read_text(directory.path(), options), "three\n");
    }
}

#[test]
fn bytes_that_are_no_log_are_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    fs_err::write(directory.path().join("0.log"), vec![0xff; 300 << 10]).unwrap();
    for tail_lines in [None, Some(5)] {
        let options = LogOptions { tail_lines, ..LogOptions::default() };
        assert_eq!(read(directory.path(), options), b"");
    }
}

#[test]
fn a_follower_waits_for_the_writer_and_ends_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = LogWriter::open(directory.path(), 0).unwrap();
    let options = LogOptions { follow: true, ..LogOptions::default() };
    let mut reader = LogReader::new(directory.path(), 0, options);
    assert_eq!(read_now(&mut reader), (Vec::new(), false));
    writer.write(LogSource::Stdout, b"one\ntw").unwrap();
    assert_eq!(read_now(&mut reader), (b"one\n".to_vec(), false));
    writer.write(LogSource::Stdout, b"o").unwrap();
    drop(writer);
    assert_eq!(read_now(&mut reader), (b"two".to_vec(), true));
}

/// Three real files of ten mebibytes, so that a follower, however slow, misses nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_written_fast_is_followed_over_all_of_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = LogWriter::open(directory.path(), 0).unwrap();
    let options = LogOptions { follow: true, ..LogOptions::default() };
    let log = read_log(directory.path(), 0, options);
    let line = "0123456789abcdef".repeat(64);
    let lines_max = 25 << 10;
    let writing = tokio::task::spawn_blocking(move || {
        for number in 0..lines_max {
            writer.write(LogSource::Stdout, format!("{number} {line}\n").as_bytes()).unwrap();
        }
    });
    let mut pending = Vec::new();
    let mut next = 0_usize;
    let mut log = log;
    while let Some(bytes) = log.try_next().await.unwrap() {
        assert!(bytes.len() <= 128 << 10);
        pending.extend_from_slice(&bytes);
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            assert!(line.starts_with(format!("{next} 0123").as_bytes()));
            next += 1;
        }
    }
    writing.await.unwrap();
    assert_eq!(next, lines_max);
    let files = fs_err::read_dir(directory.path()).unwrap().count() as u64;
    assert!((3..=LOG_FILES_MAX).contains(&(files - 1)), "{files}");
}

/// What a program wrote at once.
fn writes() -> impl Strategy<Value = Vec<(LogSource, Vec<u8>)>> {
    let source = prop_oneof![Just(LogSource::Stdout), Just(LogSource::Stderr)];
    let bytes = prop_oneof![
        4 => proptest::collection::vec(prop_oneof![3 => b'a'..=b'd', 1 => Just(b'\n')], 0..12),
        1 => (1..40_000_usize).prop_map(|length| vec![b'x'; length]),
    ];
    proptest::collection::vec((source, bytes), 0..20)
}

fn written_to(writes: &[(LogSource, Vec<u8>)], source: LogSource) -> Vec<u8> {
    writes.iter().filter(|(each, _)| *each == source).flat_map(|(_, bytes)| bytes.clone()).collect()
}

fn last_lines(text: &[u8], lines: usize) -> Vec<u8> {
    let all: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    all[all.len().saturating_sub(lines)..].concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// With one output, the log is what was written, byte for byte, and its options choose of that.
    #[test]
    fn a_log_is_what_was_written(
        writes in writes(),
        file_bytes_max in 40_u64..100_000,
        lines in 0_usize..6,
        limit in 0_u64..60_000,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let rotation = Rotation { file_bytes_max, files_max: u64::MAX };
        let mut writer = LogWriter::open_with(directory.path(), 0, rotation).unwrap();
        let follow = LogOptions { follow: true, ..LogOptions::default() };
        let mut follower = LogReader::new(directory.path(), 0, follow);
        let mut followed = Vec::new();
        for (second, (_, bytes)) in writes.iter().enumerate() {
            let time = at(i64::try_from(second).unwrap());
            writer.write_at(LogSource::Stdout, bytes, time).unwrap();
            let (text, is_ended) = read_now(&mut follower);
            prop_assert!(!is_ended);
            followed.extend(text);
        }
        writer.finish().unwrap();
        let (text, is_ended) = read_now(&mut follower);
        prop_assert!(is_ended);
        followed.extend(text);
        let all: Vec<u8> = writes.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        prop_assert_eq!(&followed, &all);
        prop_assert_eq!(&read(directory.path(), LogOptions::default()), &all);
        let tail = LogOptions { tail_lines: Some(lines as u64), ..LogOptions::default() };
        prop_assert_eq!(read(directory.path(), tail.clone()), last_lines(&all, lines));
        let cut = usize::try_from(limit).unwrap().min(all.len());
        let limited = LogOptions { limit_bytes: Some(limit), ..LogOptions::default() };
        prop_assert_eq!(&read(directory.path(), limited), &all[..cut]);
        let timed = read(directory.path(), LogOptions { timestamps: true, ..tail });
        let untimed: Vec<u8> = timed
            .split_inclusive(|byte| *byte == b'\n')
            .flat_map(|line| line[31..].to_vec())
            .collect();
        prop_assert_eq!(untimed, last_lines(&all, lines));
    }

    /// With two outputs, each can be had as it was written.
    #[test]
    fn outputs_are_told_apart(writes in writes(), file_bytes_max in 40_u64..100_000) {
        let directory = tempfile::tempdir().unwrap();
        let rotation = Rotation { file_bytes_max, files_max: u64::MAX };
        let mut writer = LogWriter::open_with(directory.path(), 0, rotation).unwrap();
        for (source, bytes) in &writes {
            writer.write(*source, bytes).unwrap();
        }
        writer.finish().unwrap();
        for source in [LogSource::Stdout, LogSource::Stderr] {
            let options = LogOptions { source: Some(source), ..LogOptions::default() };
            prop_assert_eq!(read(directory.path(), options), written_to(&writes, source));
        }
        let all = read(directory.path(), LogOptions::default());
        prop_assert_eq!(all.len(), writes.iter().map(|(_, bytes)| bytes.len()).sum::<usize>());
    }
}
