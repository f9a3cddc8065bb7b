//! Whom a program runs as: names of an image's own `/etc/passwd` and `/etc/group`, as numbers.
//!
//! The rules are runc's: digits are always a number, a number need not be in the files, and further
//! groups count only if no group was named.

use super::fence::read_inside;
use crate::protocol::ProcessUser;
use std::io;
use std::path::Path;

/// What is read of `/etc/passwd` and of `/etc/group`.
const ACCOUNTS_BYTES_MAX: u64 = 1 << 20;
/// What Linux takes as further groups of a process is more; no image has as many.
const GROUPS_MAX: usize = 256;
/// The largest number of a user or group, as other engines have it.
const ID_MAX: u32 = i32::MAX.unsigned_abs();

/// Why a user is not known in numbers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UserError {
    /// No such line.
    #[error("unable to find user {0}: no matching entries in passwd file")]
    User(String),
    /// No such line.
    #[error("unable to find group {0}: no matching entries in group file")]
    Group(String),
    /// Larger than numbers of users are.
    #[error("the user or group {0} is out of range")]
    Range(String),
    /// The files of the image.
    #[error("cannot read the image's /{path}: {cause}")]
    Read {
        /// Which one.
        path: &'static str,
        /// Why.
        cause: io::Error,
    },
}

/// `user`, `uid`, `user:group`, `uid:gid` and mixtures of them, and nothing for root, in the file system at
/// `rootfs`. Links in it lead to places in it.
pub fn resolve_user(rootfs: &Path, wanted: &str) -> Result<ProcessUser, UserError> {
    let (user, group) = wanted.split_once(':').unwrap_or((wanted, ""));
    let user = if user.is_empty() { "0" } else { user };
    let number = parse_id(user)?;
    let passwd = read_accounts(rootfs, "etc/passwd")?;
    let line = accounts(&passwd).find(|fields| match number {
        Some(_) => id_field(fields, 2) == number,
        None => fields.first() == Some(&user),
    });
    let uid = match (&line, number) {
        (_, Some(uid)) => uid,
        (Some(fields), None) => {
            id_field(fields, 2).ok_or_else(|| UserError::User(user.to_owned()))?
        }
        (None, None) => return Err(UserError::User(user.to_owned())),
    };
    let gid = line.as_ref().and_then(|fields| id_field(fields, 3)).unwrap_or(0);
    let groups_text = read_accounts(rootfs, "etc/group")?;
    if group.is_empty() {
        let name = line.as_ref().and_then(|fields| fields.first().copied());
        let groups = name.map(|name| further_groups(&groups_text, name)).unwrap_or_default();
        return Ok(ProcessUser { uid, gid, groups });
    }
    let gid = match parse_id(group)? {
        Some(gid) => gid,
        None => accounts(&groups_text)
            .find(|fields| fields.first() == Some(&group))
            .and_then(|fields| id_field(&fields, 2))
            .ok_or_else(|| UserError::Group(group.to_owned()))?,
    };
    Ok(ProcessUser { uid, gid, groups: Vec::new() })
}

/// Where a user is at home by the image's own `/etc/passwd`; the root directory, if it does not say so. What cannot be read
/// there says nothing.
pub fn find_home(rootfs: &Path, uid: u32) -> String {
    let passwd = read_accounts(rootfs, "etc/passwd").unwrap_or_default();
    let line = accounts(&passwd).find(|fields| id_field(fields, 2) == Some(uid));
    let home = line.and_then(|fields| fields.get(5).copied()).filter(|home| !home.is_empty());
    home.unwrap_or("/").to_owned()
}

/// The groups that list a user as a member.
fn further_groups(text: &str, user: &str) -> Vec<u32> {
    let of_user = accounts(text).filter(|fields| {
        fields.get(3).is_some_and(|members| members.split(',').any(|member| member == user))
    });
    let mut groups: Vec<u32> =
        of_user.filter_map(|fields| id_field(&fields, 2)).take(GROUPS_MAX).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// The lines' fields. Comments and empty lines are none.
fn accounts(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split(':').collect())
}

fn id_field(fields: &[&str], index: usize) -> Option<u32> {
    fields.get(index).and_then(|field| field.parse().ok()).filter(|id| *id <= ID_MAX)
}

/// A number, if it is one; one that is too large is an error and no name.
fn parse_id(text: &str) -> Result<Option<u32>, UserError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    match text.parse::<u32>() {
        Ok(id) if id <= ID_MAX => Ok(Some(id)),
        _ => Err(UserError::Range(text.to_owned())),
    }
}

/// A file of accounts, or nothing if the image has none.
fn read_accounts(rootfs: &Path, path: &'static str) -> Result<String, UserError> {
    match read_inside(rootfs, path, ACCOUNTS_BYTES_MAX) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(cause) => Err(UserError::Read { path, cause }),
    }
}
