//! Which ids of this machine stand behind those in containers.

use fs_err as fs;
use std::io;

/// Where the ids of containers begin on this machine if root runs the node: 0 in a container is this one outside.
pub const FIRST_SHIFTED_ID: u32 = 2_000_000;

/// How many ids a container has then.
pub const SHIFTED_IDS: u32 = 65_536;

/// Whether this process can give containers the range of ids that begins with [`FIRST_SHIFTED_ID`]. Otherwise each
/// container has one id, which is that of this process.
pub fn has_shifted_ids() -> io::Result<bool> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(false);
    }
    Ok(maps_range(&fs::read_to_string("/proc/self/uid_map")?)
        && maps_range(&fs::read_to_string("/proc/self/gid_map")?))
}

/// Whether this is the machine's own user namespace, where overlays need no attributes of users.
pub(super) fn is_initial_user_namespace() -> io::Result<bool> {
    let map = fs::read_to_string("/proc/self/uid_map")?;
    Ok(map.split_whitespace().eq(["0", "0", "4294967295"]))
}

fn maps_range(map: &str) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map_while(|word| word.parse::<u64>().ok());
        let (Some(inside), Some(_), Some(count)) = (numbers.next(), numbers.next(), numbers.next())
        else {
            return false;
        };
        let end = u64::from(FIRST_SHIFTED_ID).saturating_add(u64::from(SHIFTED_IDS));
        inside <= u64::from(FIRST_SHIFTED_ID) && inside.saturating_add(count) >= end
    })
}

/// How ids of a container become ids of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum ContainerIds {
    /// All of them, shifted.
    Shifted,
    /// The container's one id is the node's only one.
    Single,
}

impl ContainerIds {
    /// Finds out which it is here.
    pub(super) fn detect() -> io::Result<Self> {
        Ok(if has_shifted_ids()? { Self::Shifted } else { Self::Single })
    }

    /// The id outside of the container.
    pub(super) fn outside(self, id: u32) -> u32 {
        match self {
            Self::Shifted => FIRST_SHIFTED_ID.saturating_add(id.min(SHIFTED_IDS.saturating_sub(1))),
            Self::Single => 0,
        }
    }

    /// The line for `uid_map` or `gid_map` of a container whose program has this id.
    pub(super) fn map_line(self, id: u32) -> Result<String, String> {
        match self {
            Self::Shifted if id >= SHIFTED_IDS => Err(format!(
                "id {id} is beyond what a container has here, 0 to {}",
                SHIFTED_IDS.saturating_sub(1)
            )),
            Self::Shifted => Ok(format!("0 {FIRST_SHIFTED_ID} {SHIFTED_IDS}\n")),
            Self::Single => Ok(format!("{id} 0 1\n")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_shifted_only_if_all_of_it_is_mapped() {
        assert!(maps_range("         0          0 4294967295\n"));
        assert!(maps_range("0 100000 1000\n2000000 300000 65536\n"));
        assert!(!maps_range("0 1000 1\n"));
        assert!(!maps_range("2000000 300000 65535\n"));
        assert!(!maps_range("2000001 300000 65536\n"));
        assert!(!maps_range("nonsense\n"));
    }

    #[test]
    fn an_id_beyond_the_range_is_refused() {
        assert_eq!(ContainerIds::Shifted.map_line(65_535).as_deref(), Ok("0 2000000 65536\n"));
        assert!(ContainerIds::Shifted.map_line(65_536).is_err());
        assert_eq!(ContainerIds::Single.map_line(1_000_680_000).as_deref(), Ok("1000680000 0 1\n"));
    }
}
