use super::super::{find_home, resolve_user};
use std::path::Path;

const PASSWD: &str = "# comment\nroot:x:0:0:root:/root:/bin/sh\n\nnonroot:x:65532:65532:nonroot:/home:\n\
                      app:x:1000:100::/:\n2000:x:7:7::/:\nbroken\n";
const GROUP: &str =
    "root:x:0:\nnonroot:x:65532:\nwheel:x:10:root,app\nvideo:x:44:app\napp:x:1001:\n";

fn resolve(rootfs: &Path, wanted: &str) -> Result<(u32, u32, Vec<u32>), String> {
    let user = resolve_user(rootfs, wanted).map_err(|error| error.to_string())?;
    Ok((user.uid, user.gid, user.groups))
}

#[test]
fn users_and_groups_are_found_by_name_and_number() {
    let rootfs = tempfile::tempdir().unwrap();
    fs_err::create_dir(rootfs.path().join("etc")).unwrap();
    fs_err::write(rootfs.path().join("etc/passwd"), PASSWD).unwrap();
    fs_err::write(rootfs.path().join("etc/group"), GROUP).unwrap();
    let check = |wanted: &str, uid: u32, gid: u32, groups: &[u32]| {
        assert_eq!(resolve(rootfs.path(), wanted), Ok((uid, gid, groups.to_vec())), "{wanted}");
    };
    check("", 0, 0, &[10]);
    check("root", 0, 0, &[10]);
    check("nonroot:nonroot", 65532, 65532, &[]);
    check("nonroot", 65532, 65532, &[]);
    check("65532", 65532, 65532, &[]);
    check("app", 1000, 100, &[10, 44]);
    check("1000", 1000, 100, &[10, 44]);
    check("app:app", 1000, 1001, &[]);
    check("app:5", 1000, 5, &[]);
    check("app:", 1000, 100, &[10, 44]);
    check("2000:2000", 2000, 2000, &[]);
    check("2000", 2000, 0, &[]);
    let refused = |wanted: &str, expected: &str| {
        assert_eq!(resolve(rootfs.path(), wanted).unwrap_err(), expected);
    };
    refused("nobody", "unable to find user nobody: no matching entries in passwd file");
    refused("broken", "unable to find user broken: no matching entries in passwd file");
    refused("app:none", "unable to find group none: no matching entries in group file");
    refused("4294967296", "the user or group 4294967296 is out of range");
    refused("0:2147483648", "the user or group 2147483648 is out of range");
    refused("-1", "unable to find user -1: no matching entries in passwd file");
}

#[test]
fn numbers_need_no_files_and_names_do() {
    let rootfs = tempfile::tempdir().unwrap();
    assert_eq!(resolve(rootfs.path(), "65532:65532"), Ok((65532, 65532, Vec::new())));
    assert_eq!(resolve(rootfs.path(), ""), Ok((0, 0, Vec::new())));
    assert!(resolve(rootfs.path(), "nonroot").is_err());
}

#[test]
fn an_images_links_lead_to_its_own_files() {
    let rootfs = tempfile::tempdir().unwrap();
    let outside = tempfile::NamedTempFile::new().unwrap();
    fs_err::write(outside.path(), "evil:x:0:0:::\n").unwrap();
    fs_err::create_dir_all(rootfs.path().join("usr/etc")).unwrap();
    fs_err::write(rootfs.path().join("usr/etc/passwd"), "good:x:5:6:::\n").unwrap();
    std::os::unix::fs::symlink("/usr/etc", rootfs.path().join("etc")).unwrap();
    assert_eq!(resolve(rootfs.path(), "good"), Ok((5, 6, Vec::new())));
    fs_err::remove_file(rootfs.path().join("usr/etc/passwd")).unwrap();
    std::os::unix::fs::symlink(outside.path(), rootfs.path().join("usr/etc/passwd")).unwrap();
    assert!(resolve(rootfs.path(), "evil").is_err());
}

#[test]
fn files_of_accounts_that_are_none_are_refused() {
    let rootfs = tempfile::tempdir().unwrap();
    let etc = rootfs.path().join("etc");
    fs_err::create_dir(&etc).unwrap();
    let passwd = etc.join("passwd");
    rustix::fs::mkfifoat(rustix::fs::CWD, &passwd, rustix::fs::Mode::RWXU).unwrap();
    let expected = "cannot read the image's /etc/passwd: it is not a regular file";
    assert_eq!(resolve(rootfs.path(), "x").unwrap_err(), expected);
    fs_err::remove_file(&passwd).unwrap();
    fs_err::File::create(&passwd).unwrap().set_len(10 << 30).unwrap();
    let expected = "cannot read the image's /etc/passwd: it has more than 1048576 bytes";
    assert_eq!(resolve(rootfs.path(), "x").unwrap_err(), expected);
}

#[test]
fn a_user_is_at_home_where_the_image_says_or_at_the_root() {
    let rootfs = tempfile::tempdir().unwrap();
    assert_eq!(find_home(rootfs.path(), 0), "/", "no accounts");
    fs_err::create_dir(rootfs.path().join("etc")).unwrap();
    fs_err::write(rootfs.path().join("etc/passwd"), PASSWD).unwrap();
    let homes = [0, 65532, 7, 2000, 4].map(|uid| find_home(rootfs.path(), uid));
    assert_eq!(homes, ["/root", "/home", "/", "/", "/"]);
}
