//! Tokens end with what they were had for, and wrong keys are nobody else's trouble.

use crate::support::{Answer, World};
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use registry::Options;
use registry::access::Peer;
use registry::auth::users::Bound;
use registry::auth::{Actions, Auth, Mode, Settings, Users};
use std::net::IpAddr;

const PUSH: &str = "/v2/team/p/blobs/uploads/";
const TOKEN: &str = "/token?scope=repository:team/p:pull,push";

fn guarded(world: World) -> World {
    let directory = world.directory.path();
    let address = Some("https://registry.test".to_owned());
    let settings = Settings { mode: Mode::Private, address, ..Settings::new(directory) };
    let auth = Auth::open(settings).unwrap();
    let options = Options::guarded(auth.clone());
    let router = registry::router(world.registry.clone(), options).merge(auth.routes());
    World { router, ..world }
}

async fn ask(world: &World, method: &str, path: &str, who: &str) -> Answer {
    world.call(method, path, &[("authorization", who)], Body::empty()).await
}

fn basic(name: &str, secret: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{secret}")))
}

async fn token(world: &World, who: &str) -> String {
    let answer = ask(world, "GET", TOKEN, who).await.is(200).json();
    format!("Bearer {}", answer["token"].as_str().unwrap())
}

fn change(world: &World, change: impl FnOnce(&mut Users)) {
    let done = Users::change(world.directory.path(), |users| {
        change(users);
        Ok(())
    });
    done.unwrap();
}

#[tokio::test]
async fn m3_a_token_gets_nobody_another_token() {
    let world = World::new();
    change(&world, |users| users.set_password("alice", "alice's password").unwrap());
    let world = guarded(world);
    let first = token(&world, &basic("alice", "alice's password")).await;
    ask(&world, "POST", PUSH, &first).await.is(202);
    ask(&world, "GET", TOKEN, &first).await.refuses(401, "UNAUTHORIZED");
    let form = format!("grant_type=refresh_token&refresh_token={}", &first["Bearer ".len()..]);
    world.call("POST", "/token", &[], form).await.refuses(401, "UNAUTHORIZED");
    // Nor to somebody who has no name.
    let nobody = world.get(TOKEN).await.is(200).json();
    let nobody = format!("Bearer {}", nobody["token"].as_str().unwrap());
    ask(&world, "GET", "/v2/", &nobody).await.is(200);
    ask(&world, "GET", TOKEN, &nobody).await.refuses(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn m3_tokens_end_at_once_with_the_key_the_password_or_the_user() {
    type Change = fn(&mut Users);
    let ends: [(&str, bool, Change); 7] = [
        ("the key is removed", true, |users| {
            users.users.get_mut("ci").unwrap().keys.remove("main");
        }),
        ("the key is over", true, |users| {
            users.users.get_mut("ci").unwrap().keys.get_mut("main").unwrap().expires = Some(1);
        }),
        ("another key has its label", true, |users| {
            users.add_key("ci", "main").unwrap();
        }),
        ("the key is somebody else's", true, |users| {
            let keys = std::mem::take(&mut users.users.get_mut("ci").unwrap().keys);
            users.users.entry("other".to_owned()).or_default().keys = keys;
        }),
        ("the user is removed", true, |users| {
            users.users.remove("ci");
        }),
        ("the password is another", false, |users| {
            users.set_password("ci", "another password").unwrap();
        }),
        ("the user is removed and comes back", false, |users| {
            users.users.remove("ci");
            users.set_password("ci", "the same password").unwrap();
        }),
    ];
    for (what, by_key, end) in ends {
        let world = World::new();
        let mut key = String::new();
        change(&world, |users| {
            users.set_password("ci", "the same password").unwrap();
            key = users.add_key("ci", "main").unwrap();
        });
        let world = guarded(world);
        let secret = if by_key { key.as_str() } else { "the same password" };
        let bearer = token(&world, &basic("ci", secret)).await;
        ask(&world, "POST", PUSH, &bearer).await.is(202);
        // What does not concern it leaves it alone.
        change(&world, |users| {
            users.add_key("ci", "second").unwrap();
            users.set_password("bob", "bob's password").unwrap();
        });
        ask(&world, "POST", PUSH, &bearer).await.is(202);
        change(&world, end);
        let refused = ask(&world, "POST", PUSH, &bearer).await;
        assert_eq!(refused.status.as_u16(), 401, "{what}");
    }
}

#[tokio::test]
async fn m3_a_key_that_is_narrowed_narrows_its_tokens() {
    let world = World::new();
    let mut key = String::new();
    change(&world, |users| key = users.add_key("ci", "main").unwrap());
    let world = guarded(world);
    let bearer = token(&world, &format!("Bearer {key}")).await;
    ask(&world, "POST", PUSH, &bearer).await.is(202);
    change(&world, |users| {
        let key = users.users.get_mut("ci").unwrap().keys.get_mut("main").unwrap();
        key.bound = Bound { repositories: None, actions: Some(Actions::PULL) };
    });
    ask(&world, "POST", PUSH, &bearer).await.refuses(403, "DENIED");
}

#[tokio::test]
async fn m3_a_token_says_when_it_ends() {
    let world = World::new();
    let mut key = String::new();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let end = now.as_secs() + 200;
    change(&world, |users| {
        key = users.add_bound_key("ci", "main", Some(end), Bound::default()).unwrap();
    });
    let world = guarded(world);
    let answer = ask(&world, "GET", TOKEN, &format!("Bearer {key}")).await.is(200).json();
    assert!(answer["expires_in"].as_u64().unwrap() <= 200, "{answer}");
}

#[tokio::test]
async fn l3_wrong_keys_keep_nobody_out_who_has_a_right_one() {
    let world = World::new();
    let mut key = String::new();
    change(&world, |users| {
        key = users.add_key("ci", "main").unwrap();
        users.set_password("alice", "alice's password").unwrap();
    });
    let world = guarded(world);
    let from = async |who: &str| {
        let request = Request::get("/v2/").header("authorization", who);
        let mut request = request.body(Body::empty()).unwrap();
        request.extensions_mut().insert(Peer(IpAddr::from([192, 0, 2, 1])));
        world.send(request).await.status.as_u16()
    };
    let mut slowed = 0;
    for number in 0..1000 {
        let wrong = format!("apr_{number}");
        let who = [format!("Bearer {wrong}"), basic("ci", &wrong), basic("alice", &key)];
        slowed += usize::from(from(&who[number % 3]).await == 429);
    }
    assert!(slowed > 500, "whoever tries on and on is told to wait");
    assert_eq!(from(&format!("Bearer {key}")).await, 200);
    assert_eq!(from(&basic("ci", &key)).await, 200);
    assert_eq!(from(&basic("alice", "alice's password")).await, 200);
}
