//! One line of a log file: `2026-11-19T01:02:03.000000004Z stdout F text`.

use super::LogSource;
use k8s_openapi::jiff::Timestamp;

/// A line of a log file, read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LogRecord<'line> {
    /// When it was written, as it stands there.
    pub(super) time: &'line str,
    pub(super) source: LogSource,
    /// Whether the program's line goes on in the next record of this source.
    pub(super) is_partial: bool,
    pub(super) text: &'line [u8],
}

impl LogSource {
    /// Its name in files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Appends a record with its newline.
pub(super) fn append_record(
    out: &mut Vec<u8>,
    time: Timestamp,
    source: LogSource,
    is_partial: bool,
    text: &[u8],
) {
    let tag = if is_partial { 'P' } else { 'F' };
    out.extend_from_slice(format!("{time:.9} {} {tag} ", source.name()).as_bytes());
    out.extend_from_slice(text);
    out.push(b'\n');
}

impl<'line> LogRecord<'line> {
    /// Reads a line without its newline; nothing if it is no record, as after a crash.
    pub(super) fn parse(line: &'line [u8]) -> Option<Self> {
        let mut fields = line.splitn(4, |byte| *byte == b' ');
        let time = std::str::from_utf8(fields.next()?).ok()?;
        let source = match fields.next()? {
            b"stdout" => LogSource::Stdout,
            b"stderr" => LogSource::Stderr,
            _ => return None,
        };
        // Further tags may follow the first, after colons.
        let is_partial = match fields.next()?.split(|byte| *byte == b':').next()? {
            b"P" => true,
            b"F" => false,
            _ => return None,
        };
        Some(Self { time, source, is_partial, text: fields.next()? })
    }

    /// The moment it was written.
    pub(super) fn timestamp(&self) -> Option<Timestamp> {
        self.time.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_written_as_other_runtimes_write_them() {
        let mut out = Vec::new();
        let time: Timestamp = "2026-11-19T01:02:03.000000004Z".parse().unwrap();
        append_record(&mut out, time, LogSource::Stdout, false, b"a b  c");
        append_record(&mut out, time, LogSource::Stderr, true, b"");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "2026-11-19T01:02:03.000000004Z stdout F a b  c\n2026-11-19T01:02:03.000000004Z stderr P \n"
        );
    }

    #[test]
    fn what_is_written_is_read() {
        let record = LogRecord::parse(b"2026-11-19T01:02:03.5Z stderr P:x  a b ").unwrap();
        assert_eq!(record.timestamp().unwrap().subsec_millisecond(), 500);
        assert_eq!((record.source, record.is_partial), (LogSource::Stderr, true));
        assert_eq!(record.text, b" a b ");
        for torn in
            ["", "2026", "2026 stdout", "2026 stdout F", "2026 stdin F x", "2026 stdout X x"]
        {
            assert_eq!(LogRecord::parse(torn.as_bytes()), None, "{torn}");
        }
    }
}
