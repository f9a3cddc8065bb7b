//! Ranges, of both kinds: `Range: bytes=a-b` asks for a part, `Content-Range: a-b` names a chunk.

/// What a `Range` header asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Everything: there is no header, or one we need not understand.
    Whole,
    /// From the first to the last byte, both included.
    Part(u64, u64),
    /// Bytes that are not there.
    Unsatisfiable,
}

/// Reads a `Range` header for content of this size.
pub(super) fn wanted(header: &str, size: u64) -> Wanted {
    let Some(spec) = header.strip_prefix("bytes=") else { return Wanted::Whole };
    let Some((first, last)) = spec.split_once('-') else { return Wanted::Whole };
    match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last && first < size => {
            Wanted::Part(first, last.min(size.saturating_sub(1)))
        }
        (Ok(_), Ok(_)) => Wanted::Unsatisfiable,
        (Ok(first), Err(_)) if last.trim().is_empty() && first < size => {
            Wanted::Part(first, size.saturating_sub(1))
        }
        (Ok(_), Err(_)) if last.trim().is_empty() => Wanted::Unsatisfiable,
        (Err(_), Ok(count)) if first.trim().is_empty() => match count.min(size) {
            0 => Wanted::Unsatisfiable,
            count => Wanted::Part(size.saturating_sub(count), size.saturating_sub(1)),
        },
        // Several ranges, or none: a server may answer with everything.
        _ => Wanted::Whole,
    }
}

/// Reads the `Content-Range` of a chunk: its first byte and its length. Clients write it with
/// and without `bytes`, and with the total behind.
pub(super) fn chunk(header: &str) -> Option<(u64, u64)> {
    let spec = header.strip_prefix("bytes").unwrap_or(header).trim_start_matches(['=', ' ']);
    let spec = spec.split('/').next()?;
    let (first, last) = spec.trim().split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    Some((first, last.checked_sub(first)?.checked_add(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        let check = |header: &str, expected| assert_eq!(wanted(header, 100), expected, "{header}");
        check("", Wanted::Whole);
        check("bytes=0-9", Wanted::Part(0, 9));
        check("bytes=90-", Wanted::Part(90, 99));
        check("bytes=-10", Wanted::Part(90, 99));
        check("bytes=-1000", Wanted::Part(0, 99));
        check("bytes=90-1000", Wanted::Part(90, 99));
        check("bytes=100-", Wanted::Unsatisfiable);
        check("bytes=5000-10000", Wanted::Unsatisfiable);
        check("bytes=50-0", Wanted::Unsatisfiable);
        check("bytes=-0", Wanted::Unsatisfiable);
        check("bytes=0-1,5-6", Wanted::Whole);
        check("lines=1-2", Wanted::Whole);
        assert_eq!(wanted("bytes=0-0", 0), Wanted::Unsatisfiable);
    }

    #[test]
    fn chunks_are_read() {
        assert_eq!(chunk("0-9"), Some((0, 10)));
        assert_eq!(chunk("bytes 10-19/20"), Some((10, 10)));
        assert_eq!(chunk("bytes=10-19"), Some((10, 10)));
        for bad in ["", "10", "19-10", "a-b", "-5", "0-18446744073709551615"] {
            assert_eq!(chunk(bad), None, "{bad}");
        }
    }
}
