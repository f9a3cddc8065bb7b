//! How many files this process may have open: each connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Of all files, the part that the connections of one server may take: there may be two servers,
/// and databases, blobs and calls to others need some, too.
const PART: usize = 3;
/// Fewer connections than this are no server.
const CONNECTIONS_MIN: usize = 16;

/// How many connections a server may have that would like so many: no more than there are files
/// for, once this process may open all that the system lets it.
pub fn connections(wanted: usize) -> usize {
    let free = raise_limit().checked_div(PART).unwrap_or_default();
    wanted.min(free.max(CONNECTIONS_MIN))
}

/// Raises the soft limit to the hard one; says what it is then.
fn raise_limit() -> usize {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // A system that refuses leaves what there is.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let current = getrlimit(Resource::Nofile).current;
    current.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M2: a server that accepts more than it has files for can do nothing any more.
    #[test]
    fn m2_the_limit_is_raised_and_connections_leave_files_for_others() {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        // Where both limits are the same already, nothing would have to be raised.
        let current = Some(maximum.unwrap_or(1 << 20).saturating_sub(1));
        setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
        let files = raise_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
        assert!(connections(usize::MAX) <= (files / PART).max(CONNECTIONS_MIN));
        assert_eq!(connections(1), 1);
    }
}
