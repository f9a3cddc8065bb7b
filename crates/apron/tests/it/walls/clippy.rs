//! The bans that clippy holds: it sees through imports, aliases and methods, where `purity` reads
//! text.

use super::{PURE, text};

/// clippy takes the nearest `clippy.toml` and merges nothing, so each pure room has a whole one.
#[test]
fn pure_rooms_have_the_bans_of_the_house_and_their_own() {
    let of = |room: &str| text(format!("crates/{room}/clippy.toml"));
    let first = of(PURE[0]);
    for room in PURE {
        assert_eq!(of(room), first, "crates/{room}/clippy.toml differs from that of {}", PURE[0]);
    }
    for line in text("clippy.toml").lines() {
        assert!(
            first.lines().any(|ours| ours == line),
            "the root's clippy.toml has the line `{line}`, which those of the pure rooms lack"
        );
    }
}

#[test]
fn pure_rooms_ban_each_way_out() {
    let toml = text(format!("crates/{}/clippy.toml", PURE[0]));
    for way in [
        "std::env::var",
        "std::fs::File",
        "std::net::TcpStream",
        "std::process::Command",
        "std::thread::spawn",
        "std::time::Instant::now",
        "std::time::SystemTime::now",
    ] {
        assert!(toml.contains(&format!("{{ path = \"{way}\", ")), "`{way}` is not banned");
    }
}
