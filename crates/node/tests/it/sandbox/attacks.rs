//! Programs that try what they must not be able to do. Each is run as a user and as root of its container.

use super::stage::{Running, Stage, empty, everybody, files, mount_of, volume_file};
use fs_err as fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Runs a script as a user and as root of a container, and answers with what both print.
async fn run_as_both(node: &mut Running<'_>, pod: &str, script: &str) -> Vec<(u32, Vec<String>)> {
    let mut all = Vec::new();
    for id in [2000, 0] {
        let mut start = node.container(pod, &format!("as-{id}"), &["sh", "-c", script]);
        start.process.user.uid = id;
        start.process.user.gid = id;
        all.push((id, node.run(start).await));
    }
    all
}

#[tokio::test]
async fn a_program_has_no_rights_and_gets_none() {
    for who in everybody() {
        let stage = Stage::new(who);
        // A program that root owns and that would make its caller root.
        fs::set_permissions(stage.image().join("bin/busybox"), PermissionsExt::from_mode(0o4755))
            .unwrap();
        let mut node = stage.spawn().await;
        node.create_pod("p", 2).await;
        let script = "grep -E '^(Cap|NoNewPrivs|Uid)' /proc/self/status; \
            mkdir -p /tmp/m; \
            mount -t tmpfs none /tmp/m 2>/dev/null && echo GOT mount; \
            mount -o remount,rw /proc/sys 2>/dev/null && echo GOT remount; \
            umount /proc/sys 2>/dev/null && echo GOT umount; \
            umount /etc/hosts 2>/dev/null && echo GOT umount hosts; \
            unshare -U true 2>/dev/null && echo GOT user namespace; \
            unshare -Ur true 2>/dev/null && echo GOT root; \
            unshare -m true 2>/dev/null && echo GOT mount namespace; \
            unshare -n true 2>/dev/null && echo GOT network namespace; \
            chroot / true 2>/dev/null && echo GOT chroot; \
            mknod /tmp/disk b 254 0 2>/dev/null && echo GOT device; \
            hostname other 2>/dev/null && echo GOT hostname; \
            echo 1 2>/dev/null > /proc/sys/kernel/panic && echo GOT sysctl; \
            echo x 2>/dev/null > /proc/sysrq-trigger && echo GOT sysrq; \
            echo 5 2>/dev/null > /proc/sys/user/max_user_namespaces && echo GOT namespaces; \
            cat /proc/kcore 2>/dev/null | grep -q . && echo GOT kcore; \
            cat /proc/keys 2>/dev/null | grep -q . && echo GOT keys; \
            true";
        for (id, printed) in run_as_both(&mut node, "p", script).await {
            let got: Vec<_> = printed.iter().filter(|line| line.starts_with("GOT")).collect();
            assert!(got.is_empty(), "{who:?} as {id}: {got:?}");
            for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
                let line = format!("{set}:\t0000000000000000");
                assert!(printed.contains(&line), "{who:?} as {id}: {line} is not in {printed:?}");
            }
            assert!(printed.contains(&"NoNewPrivs:\t1".to_owned()), "{printed:?}");
            assert!(printed.contains(&format!("Uid:\t{id}\t{id}\t{id}\t{id}")), "{printed:?}");
        }
    }
}

#[tokio::test]
async fn a_program_cannot_have_processes_without_end() {
    for who in everybody() {
        let stage = Stage::new(who);
        let mut node = stage.spawn().await;
        node.create_pod("p", 2).await;
        let script = "(ulimit -p unlimited) 2>/dev/null && echo GOT more; grep '^Max processes' /proc/self/limits";
        for (id, printed) in run_as_both(&mut node, "p", script).await {
            assert_eq!(printed.len(), 1, "{who:?} as {id}: {printed:?}");
            let line = &printed[0];
            let numbers: Vec<u32> =
                line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            assert_eq!(numbers.len(), 2, "{who:?} as {id}: {line}");
            assert!(numbers.iter().all(|most| *most <= 4096), "{who:?} as {id}: {line}");
        }
    }
}

/// Says of calls whether they are refused: 1 is `EPERM`.
const TRY_CALLS: &str = r#"
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
static void try(const char *name, long result) { printf("%s %d\n", name, result < 0 ? errno : 0); }
int main(void) {
    char key[] = "apron";
    try("keyctl", syscall(SYS_keyctl, 0, -3, 1));
    try("add_key", syscall(SYS_add_key, "user", key, key, 5, -3));
    try("request_key", syscall(SYS_request_key, "user", key, 0, 0));
    try("vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
    try("io_uring", syscall(SYS_io_uring_setup, 1, 0));
    try("bpf", syscall(SYS_bpf, 0, 0, 0));
    try("inet", socket(AF_INET, SOCK_STREAM, 0));
}
"#;

#[tokio::test]
async fn a_program_is_refused_calls_that_lead_out_of_namespaces() {
    for who in everybody() {
        let stage = Stage::new(who);
        let source = stage.directory.path().join("try.c");
        fs::write(&source, TRY_CALLS).unwrap();
        let program = stage.directory.path().join("image/bin/try");
        let mut compiler = std::process::Command::new("cc");
        let built = compiler.arg("-static").arg("-o").arg(program).arg(source).status().unwrap();
        assert!(built.success());
        let mut node = stage.spawn().await;
        node.create_pod("p", 2).await;
        let expected = "keyctl 1|add_key 1|request_key 1|vsock 1|io_uring 1|bpf 1|inet 0";
        for (id, printed) in run_as_both(&mut node, "p", "try").await {
            assert_eq!(printed.join("|"), expected, "{who:?} as {id}");
        }
    }
}

#[tokio::test]
async fn a_program_sees_neither_files_nor_processes_of_the_machine() {
    for who in everybody() {
        let stage = Stage::new(who);
        let secret = stage.directory.path().join("secret");
        fs::write(&secret, "of the machine").unwrap();
        fs::set_permissions(&secret, PermissionsExt::from_mode(0o666)).unwrap();
        let mut node = stage.spawn().await;
        for (pod, number) in [("victim", 2), ("thief", 3)] {
            node.create_pod(pod, number).await;
        }
        node.handle
            .write_volume("victim", "v", None, vec![volume_file("key", "password")])
            .await
            .unwrap();
        let mut victim = node.container(
            "victim",
            "c",
            &["sh", "-c", "echo mine > /e/x; echo ready; exec sleep 100000"],
        );
        victim.mounts = vec![mount_of(files("v"), "/v"), mount_of(empty("e", true), "/e")];
        node.handle.start_container(victim).await.unwrap();
        node.wait_for_line("victim", "c", "ready").await;
        let place = stage.directory.path().display();
        let script = format!(
            "for root in '' /.. /proc/1/root /proc/1/cwd /proc/self/root/.. /proc/self/cwd/../..; do \
               cat $root{place}/secret 2>/dev/null && echo GOT secret by $root; \
               ls $root{place} 2>/dev/null && echo GOT state by $root; done; \
             for p in /proc/[0-9]*; do \
               grep -l password $p/root/v/key 2>/dev/null && echo GOT $p; \
               cat $p/environ > /dev/null 2>&1; cat $p/cmdline | grep -q '[1]00000' && echo GOT process; done; \
             grep -q {place} /proc/self/mountinfo && grep {place} /proc/self/mountinfo | grep -v -E 'lowerdir|/(names|memory)/' && echo GOT mount; \
             ls -d /proc/[0-9]* | grep -c . ; ls -l /proc/self/fd | grep -v -E ' [012] -> (pipe:|/dev/null)| -> /proc/[0-9]+/fd' ; true"
        );
        for (id, printed) in run_as_both(&mut node, "thief", &script).await {
            let got: Vec<_> = printed
                .iter()
                .filter(|line| line.starts_with("GOT") || line.contains("of the machine"))
                .collect();
            assert!(got.is_empty(), "{who:?} as {id}: {got:?}");
            // A program has the empty input and two pipes; ls has the directory besides.
            let odd: Vec<_> = printed.iter().filter(|line| line.contains("->")).collect();
            assert!(odd.is_empty(), "{who:?} as {id}: {odd:?}");
            let count: usize = printed.iter().find_map(|line| line.parse().ok()).unwrap();
            assert!(count <= 4, "{who:?} as {id}: sees {count} processes");
        }
    }
}

#[tokio::test]
async fn links_in_volumes_do_not_lead_out_of_them() {
    for who in everybody() {
        let stage = Stage::new(who);
        let mut node = stage.spawn().await;
        node.create_pod("p", 2).await;
        let make = "ln -s / /e/root; ln -s ../../../../../../../.. /e/up; ln -s /proc/self/root /e/magic; echo made";
        let mut start = node.container("p", "maker", &["sh", "-c", make]);
        start.mounts = vec![mount_of(empty("e", false), "/e")];
        assert_eq!(node.run(start).await, ["made"]);
        for path in
            ["root", "root/etc", "up", "up/etc/passwd", "magic", "magic/etc", "../..", "a/../../.."]
        {
            let mut start = node.container("p", "user", &["sh", "-c", "ls /m; sleep 100000"]);
            let mut mount = mount_of(empty("e", false), "/m");
            mount.sub_path = Some(path.to_owned());
            start.mounts = vec![mount];
            let refusal = node.handle.start_container(start).await.expect_err(path).to_string();
            assert!(refusal.starts_with("cannot mount /m: "), "{who:?}: {path}: {refusal}");
        }
        // A target that is a link of the image is followed in the image.
        std::os::unix::fs::symlink(
            "/../../../../../../../../tmp/out",
            stage.image().join("target"),
        )
        .unwrap();
        let before = fs::read_dir("/tmp")
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name() == "out")
            .count();
        let mut start =
            node.container("p", "linked", &["sh", "-c", "echo x > /target/x && cat /tmp/out/x"]);
        start.mounts = vec![mount_of(empty("e", false), "/tmp/out")];
        assert_eq!(node.run(start).await, ["x"], "{who:?}");
        let after = fs::read_dir("/tmp")
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name() == "out")
            .count();
        assert_eq!(before, after);
    }
}

#[tokio::test]
async fn a_program_does_not_reach_loopback_of_the_machine() {
    for who in everybody() {
        let stage = Stage::new(who);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let name = format!("apron-{port}");
        let hidden = SocketAddr::from_abstract_name(&name).unwrap();
        let _abstract = UnixListener::bind_addr(&hidden).unwrap();
        let mut node = stage.spawn().await;
        node.create_pod("p", 2).await;
        let script = format!(
            "for to in 127.0.0.1 10.244.0.1 0.0.0.0 127.0.0.2; do nc -w 2 $to {port} < /dev/null && echo GOT $to; done; \
             grep -q {name} /proc/net/unix && echo GOT abstract socket; echo tried"
        );
        for (id, printed) in run_as_both(&mut node, "p", &script).await {
            assert!(printed.contains(&"tried".to_owned()));
            let got: Vec<_> = printed.iter().filter(|line| line.starts_with("GOT")).collect();
            assert!(got.is_empty(), "{who:?} as {id}: {got:?}");
        }
        assert!(listener.accept().is_err(), "{who:?}: there was a connection");
    }
}
