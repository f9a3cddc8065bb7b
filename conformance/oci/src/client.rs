//! The suite's hand towards one registry: requests are built here, and signed if need be.

use crate::auth::Challenge;
use crate::exchange::{Exchange, Failure, Verdict, describe};
use crate::target::{Target, Url, encode};
use crate::tls::Connector;
use crate::wire::{self, Message};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How the registry wants to be told who we are.
#[derive(Debug, Clone)]
pub(crate) enum Scheme {
    /// Nothing is sent.
    Open,
    /// The password with every request.
    Basic,
    /// A token for each repository, from the realm of the challenge.
    Bearer(Challenge),
}

/// How one request shows who we are.
#[derive(Debug, Clone)]
enum Identity {
    Usual,
    Nobody,
    Given(String),
}

/// A registry, with the tokens it has given us.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) base: Url,
    pub(crate) scheme: Scheme,
    pub(crate) credentials: Option<(String, String)>,
    connector: Connector,
    patience: Duration,
    tokens: Mutex<HashMap<String, String>>,
}

impl Client {
    /// Reaches the registry once, to learn how it wants to be spoken to.
    pub(crate) async fn new(target: &Target) -> Result<Self, String> {
        let base = Url::parse(target.base_url.trim_end_matches('/'))?;
        if base.target != "/" {
            let rest = &base.target;
            return Err(format!("'{}' has a path: '{rest}'", target.base_url));
        }
        let connector = Connector::new(target.insecure, target.authorities.as_deref())?;
        let mut client = Self {
            base,
            scheme: Scheme::Open,
            credentials: target.credentials.clone(),
            connector,
            patience: target.timeout / 2,
            tokens: Mutex::default(),
        };
        let probe = client.get("/v2/").anonymously().send().await.map_err(|f| f.got)?;
        if client.credentials.is_some() {
            let challenge = probe.header("www-authenticate").map(Challenge::parse);
            client.scheme = match challenge {
                Some(Ok(challenge)) if challenge.scheme == "bearer" => Scheme::Bearer(challenge),
                _ => Scheme::Basic,
            };
        }
        Ok(client)
    }

    pub(crate) fn request(&self, method: &'static str, target: &str) -> Request<'_> {
        let url = Url { origin: self.base.origin.clone(), target: target.to_owned() };
        self.request_url(method, url)
    }

    pub(crate) fn request_url(&self, method: &'static str, url: Url) -> Request<'_> {
        let message =
            Message { method, url, headers: Vec::new(), body: Vec::new(), chunked: false };
        Request { client: self, message, scopes: Vec::new(), identity: Identity::Usual }
    }

    pub(crate) fn get(&self, target: &str) -> Request<'_> {
        self.request("GET", target)
    }

    /// The value of `Authorization` for the credentials, or for others.
    pub(crate) fn basic(user: &str, password: &str) -> String {
        format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
    }

    async fn authorization(&self, scopes: &[String]) -> Verdict<Option<String>> {
        match (&self.scheme, &self.credentials) {
            (Scheme::Basic, Some((user, password))) => Ok(Some(Self::basic(user, password))),
            (Scheme::Bearer(challenge), _) => {
                let key = scopes.join(" ");
                let known = self.lock().get(&key).cloned();
                if let Some(token) = known {
                    return Ok(Some(format!("Bearer {token}")));
                }
                let answer = self.token(challenge, scopes).send().await?.expect(&[200])?;
                let body = answer.json()?;
                let token = body.get("token").or_else(|| body.get("access_token"));
                let token = token.and_then(serde_json::Value::as_str);
                let token = token.ok_or_else(|| answer.fail("a field 'token'"))?;
                self.lock().insert(key, token.to_owned());
                Ok(Some(format!("Bearer {token}")))
            }
            _ => Ok(None),
        }
    }

    /// The request for a token, with the password if there is one.
    pub(crate) fn token(&self, challenge: &Challenge, scopes: &[String]) -> Request<'_> {
        let realm = challenge.parameter("realm").unwrap_or_default();
        let mut url = self.base.join(realm).unwrap_or_else(|_| self.base.clone());
        if let Some(service) = challenge.parameter("service") {
            url = url.with_query(&format!("service={}", encode(service)));
        }
        for scope in scopes {
            url = url.with_query(&format!("scope={}", encode(scope)));
        }
        let request = self.request_url("GET", url);
        match &self.credentials {
            Some((user, password)) => request.authorized(Self::basic(user, password)),
            None => request.anonymously(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn once(&self, message: &Message) -> Verdict<Exchange> {
        let broken = |got: String| Failure {
            request: describe(message),
            expected: "an HTTP answer".to_owned(),
            got,
        };
        let exchange = wire::exchange(&self.connector, message);
        match tokio::time::timeout(self.patience, exchange).await {
            Ok(Ok(answer)) => Ok(Exchange { message: message.clone(), answer }),
            Ok(Err(error)) => Err(broken(error)),
            Err(_) => Err(broken(format!("no complete answer within {:?}", self.patience))),
        }
    }
}

/// A request being built.
#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct Request<'c> {
    client: &'c Client,
    message: Message,
    scopes: Vec<String>,
    identity: Identity,
}

impl Request<'_> {
    pub(crate) fn url(&self) -> &Url {
        &self.message.url
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.message.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.message.body = body.into();
        self
    }

    /// Sends the body without saying how long it is.
    pub(crate) fn chunked(mut self) -> Self {
        self.message.chunked = true;
        self
    }

    /// One more thing that a token must allow.
    pub(crate) fn scope(mut self, scope: String) -> Self {
        self.scopes.push(scope);
        self
    }

    pub(crate) fn anonymously(mut self) -> Self {
        self.identity = Identity::Nobody;
        self
    }

    pub(crate) fn authorized(mut self, value: String) -> Self {
        self.identity = Identity::Given(value);
        self
    }

    /// Sends it. A registry that asks for patience (429) is given some.
    pub(crate) async fn send(self) -> Verdict<Exchange> {
        let client = self.client;
        let ours = self.message.url.origin == client.base.origin;
        let mut refreshed = false;
        let mut waited = 0;
        loop {
            let mut message = self.message.clone();
            let authorization = match &self.identity {
                Identity::Usual if ours => Box::pin(client.authorization(&self.scopes)).await?,
                Identity::Given(value) => Some(value.clone()),
                _ => None,
            };
            if let Some(value) = authorization {
                message.headers.push(("authorization".to_owned(), value));
            }
            let exchange = client.once(&message).await?;
            let usual = matches!(self.identity, Identity::Usual);
            if exchange.status() == 429 && waited < 3 {
                let wait = exchange.header("retry-after").and_then(|text| text.parse().ok());
                tokio::time::sleep(Duration::from_secs(wait.unwrap_or(1).clamp(1, 5))).await;
                waited += 1;
            } else if exchange.status() == 401
                && usual
                && !refreshed
                && matches!(client.scheme, Scheme::Bearer(_))
            {
                // The token may have grown old.
                client.lock().remove(&self.scopes.join(" "));
                refreshed = true;
            } else {
                return Ok(exchange);
            }
        }
    }
}
