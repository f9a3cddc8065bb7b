//! A word that opens the explorer of a control plane on this machine.
//!
//! A control plane has one user, whose key is in the kubeconfig. Its explorer is opened with a *pass*:
//! a word in the printed address that becomes a cookie, is made from that key, opens nothing but
//! pages, and leads back to no key.

use ::http::header::{COOKIE, LOCATION, SET_COOKIE, WWW_AUTHENTICATE};
use ::http::request::Parts;
use ::http::{HeaderMap, HeaderValue, StatusCode};
use async_trait::async_trait;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use catalog::Rights;
use catalog::http::{Admitted, Gate, Problem, Query};
use oci::Digest;
use std::net::SocketAddr;
use std::sync::Arc;

/// Digits of a pass.
const PASS_LENGTH: usize = 32;

/// A word that opens the explorer of a control plane.
#[derive(Clone)]
pub struct Pass {
    word: Arc<str>,
    /// Cookies of one machine do not know ports: each control plane has a name of its own.
    cookie: Arc<str>,
}

impl Pass {
    /// The pass that belongs to a key.
    pub fn from_key(key: &str, address: SocketAddr) -> Self {
        let digest = Digest::of(format!("explorer pass of {key}").as_bytes());
        let word = digest.hex().get(..PASS_LENGTH).unwrap_or_default().into();
        Self { word, cookie: format!("apron-explorer-{}", address.port()).into() }
    }

    /// The address to open.
    pub fn address(&self, registry: SocketAddr) -> String {
        format!("http://{registry}/?pass={}", self.word)
    }

    /// A gate that also admits those who show the pass.
    pub(crate) fn guard_gate(&self, gate: Arc<dyn Gate>) -> Arc<dyn Gate> {
        Arc::new(PassGate { gate, pass: self.clone() })
    }

    /// Pages that take the pass in an address for a cookie.
    pub(crate) fn greet_holders(self, pages: Router) -> Router {
        pages.layer(from_fn(move |request: Request, next: Next| {
            let pass = self.clone();
            async move {
                match pass.welcome(&request) {
                    Some(response) => response,
                    None => next.run(request).await,
                }
            }
        }))
    }

    /// Turns the pass in an address into a cookie, and leads to the same page without it.
    fn welcome(&self, request: &Request) -> Option<Response> {
        let query = Query::parse(request.uri().query());
        let shown = query.get("pass")?;
        if !is_same(shown, &self.word) {
            return None;
        }
        let cookie = format!(
            "{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000",
            self.cookie, self.word
        );
        let mut response = StatusCode::SEE_OTHER.into_response();
        let headers = response.headers_mut();
        headers.insert(SET_COOKIE, cookie.parse().ok()?);
        headers.insert(LOCATION, HeaderValue::from_static("/"));
        Some(response)
    }

    /// Whether a request brings the cookie of the pass.
    pub(crate) fn is_shown(&self, headers: &HeaderMap) -> bool {
        let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            values.flat_map(|value| value.split(';')).filter_map(|it| it.split_once('='));
        pairs.any(|(name, value)| name.trim() == &*self.cookie && is_same(value.trim(), &self.word))
    }
}

/// Whether two words are the same, in a time that does not tell where they differ.
fn is_same(one: &str, other: &str) -> bool {
    let differs = |sum: u8, (a, b): (u8, u8)| sum | (a ^ b);
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, differs) == 0
}

/// A gate, and the pass.
struct PassGate {
    gate: Arc<dyn Gate>,
    pass: Pass,
}

#[async_trait]
impl Gate for PassGate {
    async fn admit(&self, request: &Parts) -> Result<Admitted, Problem> {
        let admitted = self.gate.admit(request).await?;
        if self.pass.is_shown(&request.headers) {
            return Ok(Admitted { rights: Rights::all(), otherwise: None });
        }
        let otherwise = admitted.otherwise.map(|_| sign_in());
        Ok(Admitted { otherwise, ..admitted })
    }

    fn knows_users(&self) -> bool {
        self.gate.knows_users()
    }
}

/// What those are told who do not show the pass where nothing else will do.
pub(crate) fn pass_wanted() -> Problem {
    let hint = "open the address that was printed when it started: it ends with a pass";
    Problem::new(StatusCode::FORBIDDEN, "the control plane is shown to those with its pass", hint)
}

fn sign_in() -> Problem {
    let hint = "open the address that `apron up` prints, or sign in as apron with what \
                `apron registry password` prints";
    let problem = Problem::new(StatusCode::UNAUTHORIZED, "who asks is not known", hint);
    problem.header(WWW_AUTHENTICATE, "Basic realm=\"apron\", charset=\"UTF-8\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn pass() -> Pass {
        Pass::from_key("apr_secret", SocketAddr::from(([127, 0, 0, 1], 5000)))
    }

    #[test]
    fn a_pass_is_made_from_the_key_and_does_not_tell_it() {
        let address = pass().address(SocketAddr::from(([127, 0, 0, 1], 5000)));
        let word = address.strip_prefix("http://127.0.0.1:5000/?pass=").unwrap();
        assert_eq!(word.len(), PASS_LENGTH);
        assert!(!address.contains("secret"));
        let other = Pass::from_key("apr_other", SocketAddr::from(([127, 0, 0, 1], 5000)));
        assert_ne!(other.word, pass().word);
    }

    #[test]
    fn an_address_with_the_pass_becomes_a_cookie_and_leads_nowhere_else() {
        let ask = |query: &str| {
            let request = Request::get(format!("/kinds?{query}")).body(Body::empty()).unwrap();
            pass().welcome(&request)
        };
        let answer = ask(&format!("pass={}&next=https://evil.example.org", pass().word)).unwrap();
        assert_eq!(answer.headers()[LOCATION], "/");
        let cookie = answer.headers()[SET_COOKIE].to_str().unwrap();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        assert!(ask("pass=").is_none() && ask("pass=wrong").is_none() && ask("").is_none());
        let mut headers = HeaderMap::new();
        assert!(!pass().is_shown(&headers));
        headers
            .insert(COOKIE, format!("a=b; {}", cookie.split(';').next().unwrap()).parse().unwrap());
        assert!(pass().is_shown(&headers));
        headers.insert(COOKIE, "apron-explorer-5000=wrong".parse().unwrap());
        assert!(!pass().is_shown(&headers));
    }
}
