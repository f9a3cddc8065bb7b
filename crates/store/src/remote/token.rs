//! Tokens: fetched when a registry asks for them, kept until shortly before they expire.

use super::challenge::Challenge;
use super::lead::may_be_realm;
use super::recent::Recent;
use super::request::{Call, Payload, shown};
use super::{Client, HttpError};
use crate::auth::Credential;
use crate::error::Cause;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use http::{Method, StatusCode};
use oci::Repository;
use reqwest::Url;
use serde::Deserialize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const TOKEN_SIZE_MAX: u64 = 1 << 20;
/// The specification's life of a token that does not say.
const LIFE_DEFAULT: u64 = 60;
const LIFE_MAX: u64 = 24 * 60 * 60;
const CLIENT_ID: &str = "apron";
/// Repositories whose challenges are kept, and tokens.
const KNOWN_MAX: usize = 512;
/// Bytes of each that are kept.
const KNOWN_SIZE_MAX: usize = 2 << 20;
/// How long it is remembered what a registry asks for.
const CHALLENGE_AGE_MAX: Duration = Duration::from_secs(60 * 60);

/// What has been learned about registries so far.
#[derive(Default)]
pub(crate) struct Tokens {
    known: Mutex<Known>,
    /// One fetch at a time: four uploads that start together need one token, not four.
    fetching: tokio::sync::Mutex<()>,
}

/// What is known of repositories. Names are cheap to make up, and whoever mirrors is asked for any.
struct Known {
    challenges: Recent<Challenge>,
    tokens: Recent<HeaderValue>,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            challenges: Recent::new(KNOWN_MAX, KNOWN_SIZE_MAX),
            tokens: Recent::new(KNOWN_MAX, KNOWN_SIZE_MAX),
        }
    }
}

impl Tokens {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn valid(&self, key: &str) -> Option<HeaderValue> {
        self.known().tokens.get(key, Instant::now())
    }

    fn challenge(&self, repository: &Repository) -> Option<Challenge> {
        self.known().challenges.get(&id(repository), Instant::now())
    }

    fn keep_challenge(&self, repository: &Repository, challenge: Challenge) {
        let (size, expires) = (challenge.size(), Instant::now() + CHALLENGE_AGE_MAX);
        self.known().challenges.keep(id(repository), challenge, size, expires);
    }
}

/// What a token should be good for.
pub(crate) fn scope(repository: &Repository, actions: &str) -> String {
    format!("repository:{}:{actions}", repository.path())
}

impl Client {
    /// What to send with a request, as far as the registry has told us what it wants.
    pub(crate) async fn authorization(
        &self,
        repository: &Repository,
        scopes: &[String],
    ) -> Result<Option<HeaderValue>, Cause> {
        let challenge = self.inner.tokens.challenge(repository);
        match challenge {
            None => Ok(None),
            Some(challenge) => self.answer(repository, scopes, &challenge, None).await,
        }
    }

    /// Answers a 401; `rejected` is what the registry did not accept.
    pub(crate) async fn authorise(
        &self,
        repository: &Repository,
        scopes: &[String],
        headers: &HeaderMap,
        rejected: Option<HeaderValue>,
    ) -> Result<Option<HeaderValue>, Cause> {
        let registry = repository.registry().to_owned();
        let Some(challenge) = Challenge::choose(headers) else {
            let header = super::text(headers, WWW_AUTHENTICATE.as_str()).to_owned();
            return Err(HttpError::Challenge { registry, header }.into());
        };
        // The scopes it asked for belong to this request only.
        let kept = match &challenge {
            Challenge::Bearer { realm, service, .. } => Challenge::Bearer {
                realm: realm.clone(),
                service: service.clone(),
                scopes: Vec::new(),
            },
            Challenge::Basic => Challenge::Basic,
        };
        self.inner.tokens.keep_challenge(repository, kept);
        self.answer(repository, scopes, &challenge, rejected).await
    }

    async fn answer(
        &self,
        repository: &Repository,
        scopes: &[String],
        challenge: &Challenge,
        rejected: Option<HeaderValue>,
    ) -> Result<Option<HeaderValue>, Cause> {
        match challenge {
            // Showing the same password again will not help.
            Challenge::Basic => {
                let header = self.basic(repository).await?;
                Ok(header.filter(|header| rejected.as_ref() != Some(header)))
            }
            Challenge::Bearer { realm, service, scopes: asked } => {
                let wanted = merge(scopes, asked);
                let ask = Ask { realm, service: service.as_deref(), scopes: &wanted };
                self.bearer(repository, scopes, &ask, rejected.as_ref()).await.map(Some)
            }
        }
    }

    async fn credential(&self, repository: &Repository) -> Result<Credential, Cause> {
        self.inner.keychain.credential(repository).await.map_err(crate::Error::into_cause)
    }

    async fn basic(&self, repository: &Repository) -> Result<Option<HeaderValue>, Cause> {
        Ok(match self.credential(repository).await? {
            Credential::Basic { user, password } => Some(basic_header(&user, &password)?),
            Credential::Bearer(token) => Some(bearer_header(&token)?),
            Credential::Anonymous | Credential::IdentityToken(_) => None,
        })
    }

    async fn bearer(
        &self,
        repository: &Repository,
        scopes: &[String],
        ask: &Ask<'_>,
        rejected: Option<&HeaderValue>,
    ) -> Result<HeaderValue, Cause> {
        let key = format!("{} {}", id(repository), scopes.join(" "));
        let kept = || self.inner.tokens.valid(&key).filter(|kept| Some(kept) != rejected);
        if let Some(kept) = kept() {
            return Ok(kept);
        }
        let _fetching = self.inner.tokens.fetching.lock().await;
        // Another task may have fetched it while this one waited.
        if let Some(kept) = kept() {
            return Ok(kept);
        }
        let (text, life) = match self.credential(repository).await? {
            Credential::Bearer(token) => (token, Duration::from_secs(LIFE_MAX)),
            credential => self.fetch(repository, ask, &credential).await?,
        };
        let header = bearer_header(&text)?;
        // A tenth of its life is the margin for clocks and long ways.
        let expires = Instant::now() + life - life / 10;
        self.inner.tokens.known().tokens.keep(key, header.clone(), header.len(), expires);
        Ok(header)
    }

    async fn fetch(
        &self,
        repository: &Repository,
        ask: &Ask<'_>,
        credential: &Credential,
    ) -> Result<(String, Duration), Cause> {
        let url = ask.url(repository, &self.base(repository).await?)?;
        let mut call = Call::new(Method::GET, url);
        call.for_token = true;
        let mut authorization = None;
        match credential {
            Credential::Basic { user, password } => {
                authorization = Some(basic_header(user, password)?);
                call.url.query_pairs_mut().append_pair("account", user);
                ask.query(&mut call.url);
            }
            Credential::IdentityToken(token) => {
                call.method = Method::POST;
                call.header(CONTENT_TYPE, "application/x-www-form-urlencoded")?;
                call.payload = Payload::Bytes(ask.form(token).into());
            }
            Credential::Anonymous | Credential::Bearer(_) => ask.query(&mut call.url),
        }
        let response = self.fetch_patiently(&call, authorization).await?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST => {
                let message = self.message(response).await;
                let registry = repository.registry().to_owned();
                return Err(HttpError::Unauthorized { registry, message }.into());
            }
            _ => return Err(self.refusal(&call, response).await.into()),
        }
        let bytes = self.read(&call, response.into_body(), "the token", TOKEN_SIZE_MAX).await?;
        let answer: Answer = serde_json::from_slice(&bytes).map_err(|source| Cause::Json {
            what: "the token server's answer".to_owned(),
            source,
        })?;
        let life = answer.expires_in.unwrap_or(LIFE_DEFAULT).clamp(LIFE_DEFAULT, LIFE_MAX);
        let text = answer.token.or(answer.access_token).filter(|text| !text.is_empty());
        let text =
            text.ok_or_else(|| HttpError::Answer { url: shown(&call.url), what: "token" })?;
        Ok((text, Duration::from_secs(life)))
    }

    /// Token servers are tried as often as registries.
    async fn fetch_patiently(
        &self,
        call: &Call<'_>,
        authorization: Option<HeaderValue>,
    ) -> Result<http::Response<super::Body>, Cause> {
        let mut tries = 1;
        loop {
            let outcome = self.follow(call, authorization.clone()).await;
            let transient = match &outcome {
                Ok(response) => super::error::is_transient(response.status()),
                Err(Cause::Http(error)) => error.is_transient(),
                Err(_) => false,
            };
            if !transient || tries >= self.inner.settings.tries {
                return outcome;
            }
            self.wait_to_retry(&super::send::host(&call.url), tries, None, "gave no token").await;
            tries += 1;
        }
    }
}

#[derive(Deserialize)]
struct Answer {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

/// What to ask a token server.
struct Ask<'ask> {
    realm: &'ask str,
    service: Option<&'ask str>,
    scopes: &'ask [String],
}

impl Ask<'_> {
    /// The server's address, if it may be asked, with credentials or without.
    fn url(&self, repository: &Repository, registry: &Url) -> Result<Url, HttpError> {
        let refused = || HttpError::Realm {
            registry: repository.registry().to_owned(),
            realm: self.realm.to_owned(),
        };
        let url = Url::parse(self.realm).map_err(|_| refused())?;
        if may_be_realm(registry, &url) { Ok(url) } else { Err(refused()) }
    }

    fn query(&self, url: &mut Url) {
        let mut pairs = url.query_pairs_mut();
        if let Some(service) = self.service {
            pairs.append_pair("service", service);
        }
        for scope in self.scopes {
            pairs.append_pair("scope", scope);
        }
    }

    fn form(&self, token: &str) -> String {
        // A URL's query has the encoding a form has.
        let Ok(mut url) = Url::parse("http://form/") else {
            return String::new();
        };
        url.query_pairs_mut()
            .append_pair("grant_type", "refresh_token")
            .append_pair("service", self.service.unwrap_or_default())
            .append_pair("client_id", CLIENT_ID)
            .append_pair("scope", &self.scopes.join(" "))
            .append_pair("refresh_token", token);
        url.query().unwrap_or_default().to_owned()
    }
}

/// Credentials may differ by repository, so what was learned is kept by repository.
fn id(repository: &Repository) -> String {
    repository.to_string()
}

/// Our scopes, and those the registry asked for that ours do not cover.
fn merge(ours: &[String], asked: &[String]) -> Vec<String> {
    let mut all = ours.to_vec();
    for scope in asked.iter().filter(|scope| !scope.is_empty()) {
        if !all.iter().any(|each| covers(each, scope)) {
            all.push(scope.clone());
        }
    }
    all
}

fn covers(wide: &str, narrow: &str) -> bool {
    match (wide.rsplit_once(':'), narrow.rsplit_once(':')) {
        (Some((wide_name, wide)), Some((narrow_name, narrow))) => {
            let has = |action| wide.split(',').any(|each| each == action);
            wide_name == narrow_name && narrow.split(',').all(has)
        }
        _ => wide == narrow,
    }
}

fn basic_header(user: &str, password: &str) -> Result<HeaderValue, HttpError> {
    let text = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
    HeaderValue::from_str(&text).map_err(|_| HttpError::Url("the password".to_owned()))
}

fn bearer_header(token: &str) -> Result<HeaderValue, HttpError> {
    let what = "token";
    HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| HttpError::Answer { url: "the token server".to_owned(), what })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that nobody has, asked for one after the other.
    #[test]
    fn l1_what_is_learned_of_registries_does_not_grow_without_end() {
        let tokens = Tokens::default();
        let later = Instant::now() + Duration::from_secs(60);
        let header = bearer_header(&"x".repeat(3000)).unwrap();
        for number in 0..2000 {
            let name = format!("r.example.org/none/{number}");
            let repository = Repository::parse(&name, &oci::Rules::weak()).unwrap();
            let realm = "https://r.example.org/token".to_owned();
            let challenge = Challenge::Bearer { realm, service: None, scopes: Vec::new() };
            tokens.keep_challenge(&repository, challenge);
            tokens.known().tokens.keep(name, header.clone(), header.len(), later);
            assert!(tokens.challenge(&repository).is_some());
        }
        let known = tokens.known();
        assert!(known.challenges.len() <= KNOWN_MAX && known.tokens.len() <= KNOWN_MAX);
    }

    #[test]
    fn scopes_are_merged_without_repeating_themselves() {
        let own = |text: &str| text.to_owned();
        let ours = [own("repository:a:pull,push")];
        assert_eq!(merge(&ours, &[own("repository:a:pull")]), ours);
        assert_eq!(merge(&ours, &[own("repository:a:push,pull"), own("")]), ours);
        assert_eq!(
            merge(&ours, &[own("repository:a:delete")]),
            [own("repository:a:pull,push"), own("repository:a:delete")]
        );
    }
}
