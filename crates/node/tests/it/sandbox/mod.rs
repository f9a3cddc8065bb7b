//! Namespaces, mounts, ids and processes, with programs of busybox.

mod attacks;
mod endings;
mod limits;
pub(crate) mod stage;

use fs_err as fs;
use node::protocol::{ContainerName, MountSource};
use node::sandbox::probe_support;
use stage::{Stage, Who, empty, everybody, files, mount_of, picture, volume_file, wait_until};
use std::time::Duration;

fn is_among(lines: &[String], line: &str) -> bool {
    lines.iter().any(|other| other == line)
}

#[tokio::test]
async fn a_machine_that_runs_pods_says_so() {
    for who in everybody() {
        let stage = Stage::new(who);
        assert_eq!(probe_support(&stage.program).await, Ok(()), "{who:?}");
    }
}

#[tokio::test]
async fn a_program_runs_as_its_user_with_its_environment_and_directory() {
    for who in everybody() {
        let stage = Stage::new(who);
        let mut node = stage.spawn().await;
        node.create_pod("p", 2).await;
        let mut start = node.container("p", "c", &["sh", "-c", "id -u; id -g; pwd; hostname; umask; cat /etc/hosts /etc/hostname /etc/resolv.conf; exec env"]);
        start.process.directory = "/srv/made/here".to_owned();
        let printed = node.run(start).await;
        assert_eq!(
            printed[..5],
            ["2000", "2000", "/srv/made/here", "host-of-p", "0022"],
            "{who:?}"
        );
        for line in [
            "10.0.0.7\tbrother",
            "10.244.0.2\thost-of-p",
            "host-of-p",
            "search default.svc.cluster.local svc.cluster.local cluster.local",
            "nameserver 10.96.0.10",
            "COLOUR=blue and $green",
        ] {
            assert!(is_among(&printed, line), "{who:?}: {line} is not in {printed:#?}");
        }
        let environment: Vec<_> =
            printed.iter().skip_while(|line| *line != "options ndots:5").skip(1).collect();
        assert!(
            environment.iter().all(|line| ["PATH=", "COLOUR=", "PWD=", "SHLVL=", "OLDPWD="]
                .iter()
                .any(|name| line.starts_with(name))),
            "{who:?}: {environment:?}"
        );
    }
}

#[tokio::test]
async fn what_a_program_writes_is_in_its_layer_and_not_in_the_image() {
    for who in everybody() {
        let stage = Stage::new(who);
        let before = picture(&stage.image());
        let mut node = stage.spawn().await;
        node.create_pod("p", 2).await;
        let mut start = node.container(
            "p",
            "c",
            &[
                "sh",
                "-c",
                "echo x > /etc/passwd && echo y > /bin/new && mkdir /deep && cat /etc/passwd",
            ],
        );
        start.process.user.uid = 0;
        start.process.user.gid = 0;
        assert_eq!(node.run(start).await, ["x"], "{who:?}");
        // The next run begins anew.
        let mut again =
            node.container("p", "c", &["sh", "-c", "test ! -e /deep && cat /etc/passwd"]);
        again.container.attempt = 1;
        node.handle.start_container(again).await.unwrap();
        assert_eq!(node.exit_of("p", "c").await, (Some(0), None));
        let mut start = node.container("p", "fixed", &["sh", "-c", "touch /x /tmp/x /etc/x 2>/dev/null; ls /x /tmp/x /etc/x; echo done > /empty/x && cat /empty/x"]);
        start.read_only_root = true;
        start.mounts = vec![mount_of(empty("e", false), "/empty")];
        let printed = node.run(start).await;
        assert_eq!(
            printed.iter().filter(|line| line.contains("No such file")).count(),
            3,
            "{who:?}: {printed:?}"
        );
        assert!(is_among(&printed, "done"));
        node.handle.remove_pod("p").await.unwrap();
        assert_eq!(
            fs::read_dir(stage.state().join("pods")).unwrap().count(),
            0,
            "{who:?}: layers are left"
        );
        assert_eq!(picture(&stage.image()), before, "{who:?}: the image was changed");
    }
}

#[tokio::test]
async fn volumes_change_in_one_step() {
    for who in everybody() {
        let stage = Stage::new(who);
        let mut node = stage.spawn().await;
        node.create_pod("p", 2).await;
        let write = async |number: u32| {
            let text = number.to_string();
            let all = vec![volume_file("a", &text), volume_file("below/b", &text)];
            node.handle.write_volume("p", "v", None, all).await.unwrap();
        };
        write(0).await;
        let script = "echo reads; a=; while [ \"$a\" != 30 ]; do d=$(readlink /v/..data); \
            a=$(cat /v/$d/a 2>/dev/null); b=$(cat /v/$d/below/b 2>/dev/null); \
            [ -n \"$a\" ] && [ -n \"$b\" ] && [ \"$a\" != \"$b\" ] && echo torn $a $b; \
            cat /v/a > /dev/null || echo gone; done; cat /v/below/b; echo; touch /v/x || echo fixed";
        let mut start = node.container("p", "c", &["sh", "-c", script]);
        start.mounts = vec![mount_of(files("v"), "/v")];
        node.handle.start_container(start).await.unwrap();
        node.wait_for_line("p", "c", "reads").await;
        for number in 1..=30 {
            write(number).await;
        }
        assert_eq!(node.exit_of("p", "c").await, (Some(0), None));
        let printed: Vec<_> =
            node.printed("p", "c").into_iter().filter(|line| !line.contains("Read-only")).collect();
        let torn: Vec<_> = printed.iter().filter(|line| line.starts_with("torn")).collect();
        assert!(torn.is_empty(), "{who:?}: {torn:?}");
        assert!(is_among(&printed, "30") && is_among(&printed, "fixed"), "{who:?}: {printed:?}");
    }
}

#[tokio::test]
async fn volumes_are_mounted_as_asked() {
    for who in everybody() {
        let stage = Stage::new(who);
        fs::create_dir(stage.directory.path().join("host")).unwrap();
        fs::write(stage.directory.path().join("host/file"), "of the host").unwrap();
        let mut node = stage.spawn().await;
        node.create_pod("p", 2).await;
        node.handle.write_volume("p", "v", None, vec![volume_file("key", "value")]).await.unwrap();
        let script = "cat /one/key /var/run/all/key /host/file; echo; echo w > /disk/w; echo w > /memory/w; cat /disk/w /memory/w; \
            echo w > /deep/w && cat /disk/sub/dir/w; touch /host/new || echo fixed; ls -d /file";
        let mut start = node.container("p", "c", &["sh", "-c", script]);
        let mut single = mount_of(files("v"), "/one/key");
        single.sub_path = Some("key".to_owned());
        let mut deep = mount_of(empty("d", false), "/deep");
        deep.sub_path = Some("sub/dir".to_owned());
        let mut host =
            mount_of(MountSource::Host { path: stage.directory.path().join("host") }, "/host");
        host.read_only = true;
        let host_file =
            mount_of(MountSource::Host { path: stage.directory.path().join("host/file") }, "/file");
        start.mounts = vec![
            single,
            mount_of(files("v"), "/var/run/all"),
            mount_of(empty("d", false), "/disk"),
            mount_of(empty("m", true), "/memory"),
            deep,
            host,
            host_file,
        ];
        let printed = node.run(start).await;
        assert!(is_among(&printed, "valuevalueof the host"), "{who:?}: {printed:?}");
        assert_eq!(printed.iter().filter(|line| *line == "w").count(), 3, "{who:?}: {printed:?}");
        assert!(is_among(&printed, "fixed") && is_among(&printed, "/file"), "{who:?}: {printed:?}");
        let found =
            nix_mounts().into_iter().find(|line| line.contains(&*stage.state().to_string_lossy()));
        assert_eq!(found, None, "{who:?}: the machine sees a mount of the node");
    }
}

#[tokio::test]
async fn what_is_made_in_a_volume_of_a_group_belongs_to_the_group() {
    for who in everybody() {
        let stage = Stage::new(who);
        let mut node = stage.spawn().await;
        node.create_pod("p", 2).await;
        let script = "touch /e/f; busybox stat -c '%g %a' /e; busybox stat -c '%g' /e/f";
        let mut start = node.container("p", "c", &["sh", "-c", script]);
        let volume = "e".to_owned();
        let source =
            MountSource::Empty { volume, in_memory: false, size_max: None, group: Some(3000) };
        start.mounts = vec![mount_of(source, "/e")];
        // Without root there is one group, which is the program's.
        let group = if who == Who::Root { 3000 } else { 2000 };
        let expected = [format!("{group} 2777"), group.to_string()];
        assert_eq!(node.run(start).await, expected, "{who:?}");
    }
}

fn nix_mounts() -> Vec<String> {
    fs::read_to_string("/proc/self/mountinfo").unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn what_cannot_be_executed_is_said_as_runtimes_say_it() {
    for who in everybody() {
        let stage = Stage::new(who);
        let node = stage.spawn().await;
        node.create_pod("p", 2).await;
        for (arguments, sentence) in [
            (&["nothing"][..], "exec: \"nothing\": executable file not found in $PATH"),
            (
                &["/bin/nothing"],
                "exec: \"/bin/nothing\": stat /bin/nothing: no such file or directory",
            ),
            (&["/etc/text"], "exec: \"/etc/text\": permission denied"),
            (&["/etc"], "exec: \"/etc\": is a directory"),
            (&["foreign"], "exec /bin/foreign: exec format error"),
            (&[], "no command specified"),
        ] {
            let start = node.container("p", "c", arguments);
            let refusal = node.handle.start_container(start).await.unwrap_err();
            assert_eq!(refusal.to_string(), sentence, "{who:?}");
        }
        let mut start = node.container("p", "c", &["true"]);
        start.process.directory = "/etc/text".to_owned();
        let refusal = node.handle.start_container(start).await.unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "chdir to cwd (\"/etc/text\") failed: not a directory",
            "{who:?}"
        );
        let mut start = node.container("p", "c", &["sleep", "1000"]);
        start.mounts = vec![mount_of(files("none"), "/v")];
        let refusal = node.handle.start_container(start).await.unwrap_err().to_string();
        assert!(refusal.starts_with("cannot mount /v: "), "{who:?}: {refusal}");
    }
}

#[tokio::test]
async fn containers_of_a_pod_share_its_network_and_name_and_nothing_else() {
    for who in everybody() {
        let stage = Stage::new(who);
        let mut node = stage.spawn().await;
        node.create_pod("p", 2).await;
        let server = "touch /mine; echo ready; exec nc -l -p 80 -e echo hello";
        node.handle
            .start_container(node.container("p", "server", &["sh", "-c", server]))
            .await
            .unwrap();
        node.wait_for_line("p", "server", "ready").await;
        let client = "until nc 127.0.0.1 80 < /dev/null; do :; done; hostname; test ! -e /mine && echo files; \
            cat /proc/*/cmdline | grep -q '[r]eady' || echo processes";
        let printed = node.run_script("p", "client", client).await;
        for line in ["hello", "host-of-p", "files", "processes"] {
            assert!(is_among(&printed, line), "{who:?}: {line} is not in {printed:?}");
        }
        assert_eq!(node.exit_of("p", "server").await, (Some(0), None));
    }
}

#[tokio::test]
async fn a_program_can_be_run_in_a_container() {
    for who in everybody() {
        let stage = Stage::new(who);
        let mut node = stage.spawn().await;
        node.create_pod("p", 2).await;
        let start = node.container(
            "p",
            "c",
            &["sh", "-c", "echo mine > /tmp/mine; echo ready; exec sleep 100000"],
        );
        let name = start.container.clone();
        node.handle.start_container(start).await.unwrap();
        node.wait_for_line("p", "c", "ready").await;
        let exec = async |script: &str, limit: Duration| {
            let words = ["sh", "-c", script].map(str::to_owned).to_vec();
            node.handle.exec(&name, words, limit).await
        };
        let patience = stage::PATIENCE;
        let script = "cat /tmp/mine; id -u; echo $COLOUR; hostname; grep -E '^(Cap(Eff|Prm|Bnd)|NoNew)' /proc/self/status; \
            cat /proc/1/cmdline; exit 3";
        let result = exec(script, patience).await.unwrap();
        assert_eq!(result.code, Some(3), "{who:?}: {result:?}");
        for part in [
            "mine\n",
            "2000\n",
            "blue and $green\n",
            "host-of-p\n",
            "CapBnd:\t0000000000000000",
            "NoNewPrivs:\t1",
            "sleep",
        ] {
            assert!(result.output.contains(part), "{who:?}: {part} is not in {}", result.output);
        }
        let result = exec("echo begun; sleep 100000", Duration::from_millis(700)).await.unwrap();
        assert_eq!(result.code, None, "{who:?}: {result:?}");
        let result =
            exec("dd if=/dev/zero bs=1024 count=1000 2>/dev/null", patience).await.unwrap();
        assert_eq!((result.code, result.output.len()), (Some(0), 10 << 10), "{who:?}");
        let refusal =
            node.handle.exec(&name, vec!["nothing".to_owned()], patience).await.unwrap_err();
        assert_eq!(refusal.to_string(), "exec: \"nothing\": executable file not found in $PATH");
        let processes = exec("ls -d /proc/[0-9]*", patience).await.unwrap().output;
        assert!(processes.lines().count() <= 3, "{who:?}: what timed out still runs: {processes}");
        node.handle.remove_pod("p").await.unwrap();
        assert_eq!(node.exit_of("p", "c").await, (None, Some(9)));
        let gone = ContainerName { attempt: 0, ..name };
        assert!(node.handle.exec(&gone, vec!["true".to_owned()], patience).await.is_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_pods_begin_at_once() {
    for who in everybody() {
        let stage = Stage::new(who);
        let mut node = stage.spawn().await;
        let starts = (0..50u8).map(|number| {
            let node = &node;
            async move {
                let pod = format!("p{number}");
                node.create_pod(&pod, number + 2).await;
                let start = node.container(&pod, "c", &["sh", "-c", "hostname; exec sleep 100000"]);
                node.handle.start_container(start).await.unwrap();
                node.wait_for_line(&pod, "c", &format!("host-of-{pod}")).await;
            }
        });
        futures::future::join_all(starts).await;
        let removals = (0..50u8).map(|number| {
            let handle = node.handle.clone();
            async move { handle.remove_pod(&format!("p{number}")).await.unwrap() }
        });
        futures::future::join_all(removals).await;
        for number in 0..50u8 {
            assert_eq!(node.exit_of(&format!("p{number}"), "c").await, (None, Some(9)), "{who:?}");
        }
        wait_until("no pod is left", || {
            fs::read_dir(stage.state().join("pods")).unwrap().count() == 0
        });
    }
}
