//! What containers may use.

use super::stage::{Stage, everybody};

/// Whether the kernel lets a node have control groups depends on the machine; where it does not, the reason is told.
#[tokio::test]
async fn a_container_is_held_to_its_memory_or_the_node_says_why_it_is_not() {
    for who in everybody() {
        let stage = Stage::new(who);
        let mut node = stage.spawn().await;
        node.create_pod("p", 2).await;
        for attempt in 0..2 {
            let script =
                "dd if=/dev/zero of=/dev/null bs=268435456 count=1 2>/dev/null && echo had it";
            let mut start = node.container("p", "c", &["sh", "-c", script]);
            start.container.attempt = attempt;
            start.limits.memory_max = Some(64 << 20);
            node.handle.start_container(start).await.unwrap();
            let exit = node.exit_of("p", "c").await;
            let told: Vec<_> =
                node.notices.iter().filter(|it| it.starts_with("limits of memory")).collect();
            match told.as_slice() {
                [] => assert_eq!(exit, (None, Some(9)), "{who:?}"),
                [why] => {
                    println!("not tried as {who:?}: {why}");
                    assert!(why.contains(" are not enforced: "), "{why}");
                    assert_eq!(exit, (Some(0), None), "{who:?}");
                }
                more => panic!("{who:?}: it is said once: {more:?}"),
            }
        }
        let unlimited = node.container("p", "free", &["sh", "-c", "exit 4"]);
        node.handle.start_container(unlimited).await.unwrap();
        assert_eq!(node.exit_of("p", "free").await, (Some(4), None), "{who:?}");
    }
}
