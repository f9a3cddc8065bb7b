//! What one client may do, and how much is kept: met limits are told as limits.

use crate::support::{Answer, World};
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::stream;
use http::Request;
use oci::{Descriptor, MediaType};
use registry::access::Peer;
use registry::auth::{Auth, Users};
use registry::budget::{Budgets, Rate, Settings as Budget};
use registry::limits::{UPLOAD_EMPTY_AGE_MAX, UPLOADS_PER_HOLDER_MAX};
use registry::{Options, Registry, Settings};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

const FEW: Rate = Rate { burst: 2, per_second: 1 };

fn limited(budget: Budget) -> World {
    let mut world = World::new();
    let options = Options { budgets: Budgets::new(budget), ..Options::open() };
    world.router = registry::router(world.registry.clone(), options);
    world
}

/// A request from another machine.
async fn from(world: &World, last: u8, method: &str, path: &str, body: impl Into<Body>) -> Answer {
    let mut request = Request::builder().method(method).uri(path).body(body.into()).unwrap();
    request.extensions_mut().insert(Peer(IpAddr::from([192, 0, 2, last])));
    world.send(request).await
}

async fn metric(world: &World, limit: &str) -> u64 {
    let text = world.get("/metrics").await.is(200);
    let text = String::from_utf8_lossy(&text.body).into_owned();
    let line = format!("apron_registry_refusals_total{{limit=\"{limit}\"}} ");
    let found = text.lines().find_map(|it| it.strip_prefix(&line)).unwrap();
    found.parse().unwrap()
}

/// Asks until it is too much: how often it was not, and what is said then. There is one more for
/// each second that this takes.
async fn until_refused(world: &World, method: &str, path: &str, fine: u16) -> (usize, Answer) {
    for count in 0..100 {
        let answer = from(world, 1, method, path, "").await;
        if answer.status.as_u16() == 429 {
            return (count, answer.refuses(429, "TOOMANYREQUESTS"));
        }
        answer.is(fine);
    }
    panic!("{method} {path} goes on and on")
}

#[tokio::test]
async fn pulls_and_pushes_have_budgets_of_their_own() {
    let world = limited(Budget { pulls: FEW, pushes: FEW, ..Budget::default() });
    world.push("p", "v1", "x").await;
    let pull = "/v2/p/manifests/v1";
    let push = "/v2/p/blobs/uploads/";
    let (pulls, refused) = until_refused(&world, "GET", pull, 200).await;
    assert!(pulls >= 2);
    assert_eq!(refused.header("retry-after"), "1");
    // Pushing is another budget, another address has its own, and nobody counts at home.
    let (pushes, _) = until_refused(&world, "POST", push, 202).await;
    assert!(pushes >= 2);
    until_refused(&world, "DELETE", "/v2/p/manifests/none", 404).await;
    from(&world, 2, "GET", pull, "").await.is(200);
    for _ in 0..5 {
        world.get(pull).await.is(200);
    }
    assert_eq!((metric(&world, "pull").await, metric(&world, "push").await), (1, 2));
    // Health is nobody's budget.
    from(&world, 1, "GET", "/healthz", "").await.is(200);
}

#[tokio::test]
async fn tokens_have_a_budget_and_failures_are_counted() {
    let mut world = World::new();
    let path = world.directory.path().to_owned();
    Users::change(&path, |users| users.set_password("ada", "a long password")).unwrap();
    let budgets = Budgets::new(Budget { tokens: FEW, ..Budget::default() });
    let settings = registry::auth::Settings {
        address: Some("http://r.example.org".to_owned()),
        budgets: budgets.clone(),
        ..registry::auth::Settings::new(&path)
    };
    let auth = Auth::open(settings).unwrap();
    let options = Options { budgets, ..Options::guarded(auth.clone()) };
    world.router = registry::router(world.registry.clone(), options).merge(auth.routes());
    let token = "/token?scope=repository:p:pull";
    let (tokens, refused) = until_refused(&world, "GET", token, 200).await;
    assert!(tokens >= 2);
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(metric(&world, "token").await, 1);
    let wrong = [("authorization", "Basic YWRhOnNvbWV0aGluZw==")];
    // Ten at once; one more for every six seconds that hashing takes here.
    let mut guesses = 0;
    while metric(&world, "sign-in").await == 0 {
        world.call("GET", "/v2/", &wrong, Body::empty()).await;
        guesses += 1;
        assert!(guesses <= 100, "guessing goes on and on");
    }
    assert!(guesses > 10);
}

#[tokio::test]
async fn one_client_has_so_many_uploads_at_once() {
    let world = limited(Budget { uploads_at_once: 1, ..Budget::default() });
    let (one, two) = (world.upload("p").await, world.upload("p").await);
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let waiting = gate.clone();
    let slow = Body::from_stream(stream::once(async move {
        waiting.acquire().await.unwrap().forget();
        Ok::<_, std::io::Error>(Bytes::from_static(b"late"))
    }));
    let first = from(&world, 1, "PATCH", &one, slow);
    let second = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let refused = from(&world, 1, "PATCH", &two, "x").await.refuses(429, "TOOMANYREQUESTS");
        assert!(refused.headers.contains_key("retry-after"));
        from(&world, 2, "PATCH", &two, "x").await.is(202);
        gate.add_permits(1);
    };
    let (first, ()) = futures::join!(first, second);
    first.is(202);
    from(&world, 1, "PATCH", &two, "y").await.is(202);
    assert_eq!(metric(&world, "uploads").await, 1);
}

#[tokio::test]
async fn a_blob_is_as_large_as_it_may_be() {
    let world = World::with(Settings { blob_size_max: 10, ..Settings::default() });
    world.blob("p", b"ten bytes!").await;
    let large = Descriptor::of(MediaType::OCTET_STREAM, b"eleven here");
    let path = format!("/v2/p/blobs/uploads/?digest={}", large.digest);
    // Known beforehand, not a byte is read; not known, it ends where it is too much.
    let endless = || {
        Body::from_stream(stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(b"x"))))
    };
    let announced = [("content-length", "11")];
    let told = world.call("POST", &path, &announced, endless()).await;
    told.refuses(413, "SIZE_INVALID");
    world.call("POST", &path, &[], endless()).await.refuses(413, "SIZE_INVALID");
    let upload = world.upload("p").await;
    world.call("PATCH", &upload, &[], "123456").await.is(202);
    world
        .call("PATCH", &upload, &[("content-length", "5")], "78901")
        .await
        .refuses(413, "SIZE_INVALID");
    world.call("PATCH", &upload, &[], "7890").await.is(202);
    assert_eq!(metric(&world, "blob-size").await, 3);
}

#[tokio::test]
async fn a_repository_holds_as_much_as_it_may() {
    let world = World::with(Settings { quota: Some(1000), ..Settings::default() });
    let first = world.blob("p", &[b'a'; 600]).await;
    let other = [b'b'; 600];
    let descriptor = Descriptor::of(MediaType::OCTET_STREAM, &other);
    let path = |name: &str| format!("/v2/{name}/blobs/uploads/?digest={}", descriptor.digest);
    let refused = world.call("POST", &path("p"), &[], other.to_vec()).await;
    let refused = refused.refuses(507, "DENIED");
    let message = refused.json()["errors"][0]["message"].to_string();
    assert!(message.contains("1000 bytes"), "{message}");
    assert!(!world.has_file(&descriptor.digest), "what was refused is not kept");
    // The same again is nothing more, another repository has its own, and a mount counts.
    world.blob("p", &[b'a'; 600]).await;
    world.call("POST", &path("q"), &[], other.to_vec()).await.is(201);
    let mount = format!("/v2/p/blobs/uploads/?mount={}&from=q", descriptor.digest);
    world.call("POST", &mount, &[], "").await.refuses(507, "DENIED");
    let manifest = world.image("p", "small").await;
    world.put("p", "v1", &manifest).await.refuses(507, "DENIED");
    // Room is made by deleting.
    world.delete(&format!("/v2/p/blobs/{}", first.digest)).await.is(202);
    world.put("p", "v1", &manifest).await.is(201);
    assert!(metric(&world, "quota").await >= 3);
}

#[tokio::test]
async fn two_uploads_at_once_do_not_fit_where_one_does() {
    let world = World::with(Settings { quota: Some(1000), ..Settings::default() });
    let push = async |byte: u8| {
        let content = vec![byte; 600];
        let descriptor = Descriptor::of(MediaType::OCTET_STREAM, &content);
        let path = format!("/v2/p/blobs/uploads/?digest={}", descriptor.digest);
        world.call("POST", &path, &[], content).await.status.as_u16()
    };
    let mut done: Vec<u16> = futures::future::join_all((0..8).map(push)).await;
    done.sort_unstable();
    assert_eq!(done, [201, 507, 507, 507, 507, 507, 507, 507]);
}

/// A registry that asks who comes, on a clock that is told.
fn shared(clock: &Arc<AtomicU64>) -> World {
    let telling = clock.clone();
    let now = move || SystemTime::UNIX_EPOCH + Duration::from_secs(telling.load(Ordering::SeqCst));
    let mut world = World::telling(Settings::default(), now);
    let path = world.directory.path().to_owned();
    Users::change(&path, |users| {
        users.set_password("mallory", "mallory's password")?;
        users.set_password("alice", "alice's password")
    })
    .unwrap();
    let auth = Auth::open(registry::auth::Settings::new(&path)).unwrap();
    world.router = registry::router(world.registry.clone(), Options::guarded(auth));
    world
}

#[tokio::test]
async fn m4_one_user_cannot_stop_the_pushes_of_others() {
    let clock = Arc::new(AtomicU64::new(1_000_000));
    let world = shared(&clock);
    let begin = async |who: &str, password: &str| {
        let who = format!("Basic {}", STANDARD.encode(format!("{who}:{password}")));
        let path = "/v2/p/blobs/uploads/";
        world.call("POST", path, &[("authorization", &who)], Body::empty()).await
    };
    let mallory = async || begin("mallory", "mallory's password").await;
    let first = mallory().await.is(202).header("location").to_owned();
    let mut count = 1;
    let refused = loop {
        let answer = mallory().await;
        if answer.status.as_u16() != 202 {
            break answer;
        }
        count += 1;
        assert!(count <= UPLOADS_PER_HOLDER_MAX, "one user takes all places");
    };
    refused.refuses(429, "TOOMANYREQUESTS");
    begin("alice", "alice's password").await.is(202);
    // Those without a byte are over after some minutes, and their places are free.
    clock.fetch_add(UPLOAD_EMPTY_AGE_MAX.as_secs() + 1, Ordering::SeqCst);
    let who = format!("Basic {}", STANDARD.encode("mallory:mallory's password"));
    let there = world.call("GET", &first, &[("authorization", &who)], Body::empty()).await;
    there.refuses(404, "BLOB_UPLOAD_UNKNOWN");
    mallory().await.is(202);
}

#[tokio::test]
async fn m4_an_upload_with_bytes_stays_as_long_as_ever_and_counts_after_a_restart() {
    let clock = Arc::new(AtomicU64::new(1_000_000));
    let telling = clock.clone();
    let now = move || SystemTime::UNIX_EPOCH + Duration::from_secs(telling.load(Ordering::SeqCst));
    let settings = Settings { quota: Some(1000), ..Settings::default() };
    let world = World::telling(settings.clone(), now.clone());
    let (full, empty) = (world.upload("p").await, world.upload("p").await);
    world.call("PATCH", &full, &[], vec![b'x'; 600]).await.is(202);
    world.call("PATCH", &empty, &[], "").await.is(202);
    let World { directory, registry, router } = world;
    drop((registry, router));
    clock.fetch_add(3600, Ordering::SeqCst);
    crate::restart::released(directory.path());
    let registry = Registry::open_telling(directory.path(), settings, now).unwrap();
    let router = registry::router(registry.clone(), Options::open());
    let world = World { directory, registry, router };
    world.get(&empty).await.refuses(404, "BLOB_UPLOAD_UNKNOWN");
    assert_eq!(world.get(&full).await.is(204).header("range"), "0-599");
    // M9: what lies there since before counts against the quota.
    let other = world.upload("p").await;
    world.call("PATCH", &other, &[], vec![b'y'; 600]).await.refuses(507, "DENIED");
    clock.fetch_add(24 * 3600 + 1, Ordering::SeqCst);
    world.get(&full).await.refuses(404, "BLOB_UPLOAD_UNKNOWN");
    assert_eq!(staged(&world), 0);
}

/// Bytes that lie in the directory of uploads.
fn staged(world: &World) -> u64 {
    let all = fs_err::read_dir(world.directory.path().join("uploads")).unwrap();
    all.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

/// A body that announces nothing and is far longer than any quota here, but ends: a registry that takes
/// all of it is to fail a test, and not to fill the disk.
fn endless() -> Body {
    let piece = || Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 100]));
    Body::from_stream(stream::iter(std::iter::repeat_with(piece).take(10_000)))
}

#[tokio::test]
async fn m9_bytes_count_against_the_quota_as_they_arrive() {
    let world = World::with(Settings { quota: Some(1000), ..Settings::default() });
    // Nothing is announced, and it ends where the quota does.
    let upload = world.upload("p").await;
    world.call("PATCH", &upload, &[], endless()).await.refuses(507, "DENIED");
    assert_eq!(staged(&world), 0, "what was refused does not lie there");
    let unknown = format!("/v2/p/blobs/uploads/?digest=sha256:{}", "a".repeat(64));
    world.call("POST", &unknown, &[], endless()).await.refuses(507, "DENIED");
    // What other uploads have brought counts, also when the next one says beforehand.
    let (one, two) = (world.upload("p").await, world.upload("p").await);
    world.call("PATCH", &one, &[], vec![b'1'; 600]).await.is(202);
    world.call("PATCH", &two, &[], vec![b'2'; 600]).await.refuses(507, "DENIED");
    let three = world.upload("p").await;
    let announced = [("content-length", "401")];
    world.call("PATCH", &three, &announced, endless()).await.refuses(507, "DENIED");
    world.call("PATCH", &three, &[], vec![b'3'; 400]).await.is(202);
    assert_eq!(staged(&world), 1000);
    // Another repository has its own, and what is given up makes room.
    let other = world.upload("q").await;
    world.call("PATCH", &other, &[], vec![b'4'; 600]).await.is(202);
    world.delete(&one).await.is(204);
    world.blob("p", &[b'5'; 600]).await;
    let used = world.upload("p").await;
    world.call("PATCH", &used, &[], "x").await.refuses(507, "DENIED");
}

#[tokio::test]
async fn m9_the_digest_of_something_here_is_no_way_round_the_quota() {
    let world = World::with(Settings { quota: Some(1000), ..Settings::default() });
    let here = world.blob("p", &[b'a'; 600]).await;
    let path = format!("/v2/p/blobs/uploads/?digest={}", here.digest);
    world.call("POST", &path, &[], endless()).await.refuses(400, "SIZE_INVALID");
    assert_eq!(staged(&world), 0);
    // The same again is nothing more, whether it is announced or not.
    world.call("POST", &path, &[("content-length", "600")], vec![b'a'; 600]).await.is(201);
    world.call("POST", &path, &[], vec![b'a'; 600]).await.is(201);
}
