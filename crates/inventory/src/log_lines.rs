//! Logs as lines, however long those are, with the times at which they were written.

use futures::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};
use k8s_openapi::jiff::Timestamp;
use std::io;
use std::pin::Pin;

/// The longest line of a log that is printed as one; the rest of a longer one follows on lines of its own.
const LINE_SIZE_MAX: u32 = 1 << 20;

/// The lines of a log.
pub struct LogLines<R> {
    log: Pin<Box<R>>,
    line: Vec<u8>,
}

impl<R: AsyncBufRead> LogLines<R> {
    /// The lines of a log, from its beginning.
    pub fn new(log: R) -> Self {
        Self { log: Box::pin(log), line: Vec::new() }
    }

    /// The next line without its end; none at the end of the log.
    pub async fn read_line(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        let mut limited = self.log.as_mut().take(u64::from(LINE_SIZE_MAX));
        if limited.read_until(b'\n', &mut self.line).await? == 0 {
            return Ok(None);
        }
        Ok(Some(self.line.strip_suffix(b"\n").unwrap_or(&self.line)))
    }
}

/// How far a log was printed: up to a time, and so many of the lines that have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPosition {
    /// The time of the last line.
    pub time: Timestamp,
    lines: u64,
}

impl ReadPosition {
    /// The same with one line more.
    pub fn and(seen: Option<Self>, time: Timestamp) -> Self {
        let before = seen.filter(|seen| seen.time == time).map_or(0, |seen| seen.lines);
        Self { time, lines: before + 1 }
    }

    /// Whether a line of a log that is read again was printed; `repeated` counts those of the last time.
    pub fn has(self, time: Timestamp, repeated: &mut u64) -> bool {
        if time == self.time {
            *repeated += 1;
            return *repeated <= self.lines;
        }
        time < self.time
    }
}

/// A line apart from the time that it begins with, if it does.
pub fn split_time(line: &[u8]) -> Option<(Timestamp, &[u8])> {
    let end = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
    let (time, rest) = line.split_at_checked(end)?;
    let time = std::str::from_utf8(time).ok()?.parse().ok()?;
    Some((time, rest.strip_prefix(b" ").unwrap_or(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::io::Cursor;

    #[tokio::test]
    async fn a_log_is_read_line_by_line() {
        let long = vec![b'x'; (1 << 20) + 5];
        let text = [b"one\n\nlast of two\n", &long[..], b"\nno end"].concat();
        let mut lines = LogLines::new(Cursor::new(text));
        let mut sizes = Vec::new();
        while let Some(line) = lines.read_line().await.unwrap() {
            sizes.push(line.len());
        }
        assert_eq!(sizes, [3, 0, 11, 1 << 20, 5, 6]);
    }

    #[test]
    fn lines_of_the_same_time_are_printed_once_each() {
        let at = |seconds: i64| Timestamp::from_second(seconds).unwrap();
        let times = [1, 2, 2, 2, 3];
        for cut in 0..=times.len() {
            let seen = times[..cut]
                .iter()
                .fold(None, |seen, time| Some(ReadPosition::and(seen, at(*time))));
            let mut repeated = 0;
            let is_new = |time: &i64| !seen.is_some_and(|seen| seen.has(at(*time), &mut repeated));
            assert_eq!(times.iter().copied().filter(is_new).count(), times.len() - cut);
        }
    }

    #[test]
    fn the_time_of_a_line_is_told_from_its_text() {
        let (time, text) = split_time(b"2026-01-31T12:00:00.5Z hello there").unwrap();
        assert_eq!(
            (time.to_string().as_str(), text),
            ("2026-01-31T12:00:00.5Z", &b"hello there"[..])
        );
        let (_, text) = split_time(b"2026-01-31T12:00:00.123456789Z").unwrap();
        assert_eq!(text, b"");
        assert!(split_time(b"hello there").is_none());
        assert!(split_time(b"\xff\xfe").is_none());
    }
}
