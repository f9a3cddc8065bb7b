//! A panic costs the request it happened in: its client is told, and everybody else is served.
//!
//! Locks of this room are taken whether or not somebody panicked while holding them: what is
//! changed under one is either one step, or read again from the log. Where the panic happened is
//! the panic hook's to say.

use std::panic::AssertUnwindSafe;

use axum::body::Body;
use futures::FutureExt as _;
use http::Response;

use super::refuse;
use super::status::Failure;

/// What upstream says.
const MESSAGE: &str = "This request caused apiserver to panic. Look in the logs for details.";

/// The answer, or a refusal if there was a panic on the way to it.
pub(super) async fn contain(answered: impl Future<Output = Response<Body>>) -> Response<Body> {
    match AssertUnwindSafe(answered).catch_unwind().await {
        Ok(response) => response,
        Err(_) => refuse(&Failure::new(500, "InternalError", MESSAGE)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use serde_json::{Value, json};

    use super::*;
    use crate::log::Log;
    use crate::testing::{Still, ask};
    use crate::world::World;
    use crate::{Options, Server};

    /// A world whose dice break when they are thrown at the wrong moment.
    #[derive(Default)]
    struct Brittle {
        still: Still,
        breaks: AtomicBool,
    }

    impl World for Brittle {
        fn now(&self) -> u64 {
            self.still.now()
        }

        fn random(&self) -> u64 {
            assert!(!self.breaks.load(Ordering::SeqCst), "the dice broke");
            self.still.random()
        }
    }

    /// H2, the second half: whatever panics, the next request is answered.
    #[tokio::test]
    async fn h2_a_panic_costs_the_request_it_happened_in_and_no_other() {
        let world = Arc::new(Brittle::default());
        let server = Server::new(Log::in_memory(), Options::default(), Arc::clone(&world) as _);
        server.furnish().await.unwrap();
        let maps = "/api/v1/namespaces/default/configmaps";
        let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        for round in 0..3 {
            world.breaks.store(true, Ordering::SeqCst);
            let refused = ask(&server, "POST", maps, map("broken")).await;
            assert_eq!(refused["kind"], "Status");
            assert_eq!(
                (&refused["code"], &refused["reason"]),
                (&json!(500), &json!("InternalError"))
            );
            assert_eq!(refused["message"], MESSAGE);
            world.breaks.store(false, Ordering::SeqCst);
            let made = ask(&server, "POST", maps, map(&format!("fine-{round}"))).await;
            assert_eq!(made["kind"], "ConfigMap", "{made}");
        }
        let all = ask(&server, "GET", maps, Value::Null).await;
        assert_eq!(all["items"].as_array().unwrap().len(), 3);
    }
}
