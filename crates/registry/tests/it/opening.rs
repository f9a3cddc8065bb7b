//! Registries that ask nobody: what they answer to, and when that ends.

use crate::support::World;
use axum::body::Body;
use registry::auth::{Auth, Mode, Settings, Users};
use registry::hosts::Hosts;
use registry::{Options, Registry};

const PUSH: &str = "/v2/team/p/blobs/uploads/";

fn serve(world: World, change: impl FnOnce(&mut Settings)) -> World {
    let mut settings = Settings::new(world.directory.path());
    settings.address = Some("http://127.0.0.1:5000".to_owned());
    change(&mut settings);
    let auth = Auth::open(settings).unwrap();
    let hosts = Hosts::of("127.0.0.1:5000".parse().unwrap(), &[]);
    let options = Options { hosts, ..Options::guarded(auth.clone()) };
    let router = registry::router(world.registry.clone(), options).merge(auth.routes());
    World { router, ..world }
}

fn add_user(world: &World) {
    let path = world.directory.path();
    Users::change(path, |users| users.set_password("ada", "ada's password")).unwrap();
}

#[tokio::test]
async fn c3_the_first_user_closes_an_open_registry_at_once() {
    let world = serve(World::new(), |settings| settings.open_without_users = true);
    world.call("POST", PUSH, &[], Body::empty()).await.is(202);
    // Whoever has credentials for some other time is let in all the same.
    let stale = [("authorization", "Basic eDp5")];
    world.call("POST", PUSH, &stale, Body::empty()).await.is(202);
    world.get("/token").await.is(404);
    add_user(&world);
    world.call("POST", PUSH, &[], Body::empty()).await.refuses(401, "UNAUTHORIZED");
    world.call("POST", PUSH, &stale, Body::empty()).await.refuses(401, "UNAUTHORIZED");
    // What opened it once does not open it again.
    fs_err::remove_file(world.directory.path().join("users.json")).unwrap();
    world.call("POST", PUSH, &[], Body::empty()).await.refuses(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn c3_a_registry_that_was_told_to_ask_is_never_open() {
    let world = serve(World::new(), |settings| settings.mode = Mode::Private);
    world.call("POST", PUSH, &[], Body::empty()).await.refuses(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn c5_tokens_are_had_where_the_client_called() {
    let world = World::new();
    add_user(&world);
    let names = Hosts::of("127.0.0.1:5000".parse().unwrap(), &["registry.test".to_owned()]);
    let world = serve(world, |settings| settings.names = Some(names));
    let realm = async |host: &str| {
        let headers = [("host", host)];
        let answer = world.call("POST", PUSH, &headers, Body::empty()).await.is(401);
        answer.header("www-authenticate").to_owned()
    };
    let told = realm("localhost:5000").await;
    assert!(told.starts_with("Bearer realm=\"http://localhost:5000/token\","), "{told}");
    assert!(told.contains("service=\"127.0.0.1:5000\""), "{told}");
    assert!(
        realm("registry.test").await.starts_with("Bearer realm=\"http://registry.test/token\"")
    );
    // What is no name of its own, or none at all, is not repeated.
    for host in ["evil.example.org", "a\",realm=\"http://evil.example.org"] {
        let told = realm(host).await;
        assert!(told.starts_with("Bearer realm=\"http://127.0.0.1:5000/token\","), "{told}");
    }
    let wrong = [("host", "localhost:5000"), ("authorization", "Bearer rubbish")];
    let answer = world.call("GET", "/v2/", &wrong, Body::empty()).await.is(401);
    assert!(answer.header("www-authenticate").contains("http://localhost:5000/token"));
}

#[tokio::test]
async fn m5_an_open_registry_does_not_answer_to_foreign_names() {
    let world = serve(World::new(), |settings| settings.open_without_users = true);
    world.push("p", "v1", "x").await;
    let evil = [("host", "evil.example.org"), ("origin", "http://evil.example.org")];
    for (method, path) in [
        ("DELETE", "/v2/p/manifests/v1"),
        ("GET", "/v2/p/manifests/v1"),
        ("GET", "/v2/_catalog"),
        ("POST", PUSH),
        ("GET", "/metrics"),
    ] {
        world.call(method, path, &evil, Body::empty()).await.refuses(421, "DENIED");
    }
    world.call("GET", "/healthz", &evil, Body::empty()).await.is(200);
    let own = [("host", "localhost:5000")];
    world.call("GET", "/v2/p/manifests/v1", &own, Body::empty()).await.is(200);
    // HTTP/2 has the name in the target.
    let target = "http://evil.example.org/v2/p/manifests/v1";
    world.get(target).await.refuses(421, "DENIED");
    // One that asks who comes needs no such care.
    add_user(&world);
    world.call("GET", "/v2/p/manifests/v1", &evil, Body::empty()).await.is(200);
}

#[tokio::test]
async fn m5_some_answer_to_their_own_names_whoever_asks() {
    let world = World::new();
    let options = |registry: &Registry| {
        let hosts = Hosts::of("127.0.0.1:5000".parse().unwrap(), &[]).always();
        let auth = Auth::open(Settings::new(world.directory.path())).unwrap();
        registry::router(registry.clone(), Options { hosts, ..Options::guarded(auth) })
    };
    let router = options(&world.registry);
    let world = World { router, ..world };
    let evil = [("host", "evil.example.org")];
    world.call("GET", "/v2/", &evil, Body::empty()).await.refuses(421, "DENIED");
    world.call("GET", "/v2/", &[("host", "localhost")], Body::empty()).await.is(401);
}
