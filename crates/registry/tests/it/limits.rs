//! What one client may do, and how much is kept: met limits are told as limits.

use crate::support::{Answer, World};
use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use http::Request;
use oci::{Descriptor, MediaType};
use registry::access::Peer;
use registry::auth::{Auth, Users};
use registry::budget::{Budgets, Rate, Settings as Budget};
use registry::{Options, Settings};
use std::net::IpAddr;
use std::time::Duration;

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
