//! Authentication: challenges, passwords, tokens. Asked only where credentials were given.

use crate::auth::Challenge;
use crate::check::{Entry, table};
use crate::client::{Client, Scheme};
use crate::content::image;
use crate::context::{Context, Repo};
use crate::digest::Algorithm;
use crate::exchange::{Exchange, Failure, Verdict};
use crate::target::{Url, encode};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

pub(super) fn entries() -> Vec<Entry> {
    [challenges(), tokens()].concat()
}

fn challenges() -> Vec<Entry> {
    table! {
        one "auth" Must "auth.challenge" (Credentials) => challenge,
            "RFC 9110 11.6.1: 401 MUST have WWW-Authenticate, well-formed, with a realm";
        one "auth" Should "auth.challenge.code" (Credentials) => challenge_code,
            "Error codes: UNAUTHORIZED: authentication required";
        one "auth" Must "auth.push-refused" (Credentials) => push_refused,
            "Without credentials nothing is pushed: POST and PUT are answered with 401 and a challenge";
        one "auth" Must "auth.delete-refused" (Credentials) => delete_refused,
            "Without credentials nothing is deleted: 401, and the manifest is still there";
        one "auth" Must "auth.wrong-password" (Credentials) => wrong_password,
            "RFC 9110 15.5.2: a wrong password is refused with 401";
        one "auth" Must "auth.unknown-user" (Credentials) => unknown_user,
            "RFC 9110 15.5.2: an unknown user is refused with 401";
        one "auth" Must "auth.malformed" (Credentials) => malformed,
            "RFC 7617 2: an Authorization that cannot be read is refused with 400 or 401, never 5xx";
        one "auth" Should "auth.basic-everywhere" (Credentials) => basic_everywhere,
            "Clients that saw no Bearer challenge send the password with every request: it is accepted";
        one "auth" Must "auth.head" (Credentials) => head,
            "RFC 9110 9.3.2: HEAD without credentials has the status and challenge of GET";
    }
}

fn tokens() -> Vec<Entry> {
    table! {
        one "auth" Must "token.fields" (Tokens) => fields,
            "Docker token authentication: the answer has token, and expires_in of 60 s or more if present";
        one "auth" Should "token.both-names" (Tokens) => both_names,
            "Docker token authentication: token and access_token are both there, and the same";
        one "auth" Must "token.scope-named" (Tokens) => scope_named,
            "Docker token authentication: the challenge of a push names the scope it needs";
        one "auth" Must "token.other-repository" (Tokens) => other_repository,
            "A token for one repository does not push to another: 401 or 403";
        one "auth" Must "token.pull-only" (Tokens) => pull_only,
            "A token for pull does not push: 401 or 403";
        one "auth" Must "token.ungranted-scope" (Tokens) => ungranted_scope,
            "Docker token authentication: a scope that cannot be granted is left out, not an error";
        one "auth" Must "token.anonymous-push" (Tokens) => anonymous_push,
            "An anonymous token, if given at all, does not push";
        one "auth" Must "token.tampered" (Tokens) => tampered,
            "RFC 7515: a token whose content was changed is refused with 401";
        one "auth" Must "token.none" (Tokens) => none_algorithm,
            "RFC 8725 3.2: a token with the algorithm none is refused with 401";
        one "auth" Should "token.post" (Tokens) => post,
            "Docker OAuth2 token authentication: POST with grant_type=password gives access_token";
        one "auth" Must "token.wrong-password" (Tokens) => token_wrong_password,
            "Docker token authentication: a wrong password gets no token: 401";
    }
}

fn credentials(context: &Context) -> (String, String) {
    context.client.credentials.clone().unwrap_or_default()
}

/// The challenge of a 401.
fn challenged(answer: &Exchange) -> Verdict<Challenge> {
    let text = answer.need("www-authenticate")?;
    Challenge::parse(text)
        .map_err(|wrong| answer.fail_because("a well-formed 'www-authenticate'", wrong))
}

async fn challenge(context: &Context) -> Verdict {
    let answer = context.client.get("/v2/").anonymously().send().await?.expect(&[401])?;
    let challenge = challenged(&answer)?;
    if !matches!(challenge.scheme.as_str(), "basic" | "bearer") {
        return Err(answer.fail("the scheme Basic or Bearer"));
    }
    Ok(())
}

async fn challenge_code(context: &Context) -> Verdict {
    let answer = context.client.get("/v2/").anonymously().send().await?.expect(&[401])?;
    answer.need_code(&["UNAUTHORIZED"])
}

async fn push_refused(context: &Context) -> Verdict {
    let (repo, item) = (context.repo(), image(context, Algorithm::Sha256));
    let post = repo.request("POST", "blobs/uploads/").anonymously().send().await?.expect(&[401])?;
    challenged(&post)?;
    let put = repo.put_manifest("latest", &item.root).anonymously().send().await?;
    challenged(&put.expect(&[401])?).map(drop)
}

async fn delete_refused(context: &Context) -> Verdict {
    let (repo, item) = (context.repo(), image(context, Algorithm::Sha256));
    item.push_as(&repo, "latest").await?;
    let rest = format!("manifests/{}", item.root.digest);
    challenged(&repo.delete(&rest).anonymously().send().await?.expect(&[401])?)?;
    repo.need_manifest("latest", &item.root).await.map(drop)
}

async fn wrong_password(context: &Context) -> Verdict {
    let wrong = Client::basic(&credentials(context).0, "not-the-password");
    context.client.get("/v2/").authorized(wrong).send().await?.expect(&[401]).map(drop)
}

async fn unknown_user(context: &Context) -> Verdict {
    let wrong = Client::basic("nobody-of-that-name", &credentials(context).1);
    context.client.get("/v2/").authorized(wrong).send().await?.expect(&[401]).map(drop)
}

async fn malformed(context: &Context) -> Verdict {
    for value in ["Basic", "Basic !!!", "Basic bm8tY29sb24=", "Bearer", "Bearer a.b", "Nonsense x"]
    {
        let request = context.client.get("/v2/").authorized(value.to_owned());
        request.send().await?.expect(&[400, 401])?;
    }
    Ok(())
}

async fn basic_everywhere(context: &Context) -> Verdict {
    let (repo, item) = (context.repo(), image(context, Algorithm::Sha256));
    item.push_as(&repo, "latest").await?;
    let (user, password) = credentials(context);
    let basic = Client::basic(&user, &password);
    let blob = format!("blobs/{}", item.blobs[0].digest);
    for (method, rest, wanted) in [
        ("GET", "manifests/latest", 200),
        ("HEAD", &blob, 200),
        ("GET", "tags/list", 200),
        ("POST", "blobs/uploads/", 202),
    ] {
        let request = repo.request(method, rest).header("accept", crate::content::ACCEPT);
        request.authorized(basic.clone()).send().await?.expect(&[wanted])?;
    }
    context.client.get("/v2/").authorized(basic).send().await?.expect(&[200]).map(drop)
}

async fn head(context: &Context) -> Verdict {
    let rest = "manifests/latest";
    let repo = context.repo();
    let get = repo.get(rest).anonymously().send().await?;
    let head = repo.head(rest).anonymously().send().await?.expect(&[get.status()])?;
    if get.header("www-authenticate").is_some() {
        challenged(&head)?;
    }
    head.need_no_body()
}

/// The answer of the token endpoint for a scope.
async fn token_answer(context: &Context, scope: String) -> Verdict<Exchange> {
    let Scheme::Bearer(challenge) = &context.client.scheme else {
        return Err(Failure {
            request: "GET /v2/".to_owned(),
            expected: "a Bearer challenge".to_owned(),
            got: "none".to_owned(),
        });
    };
    context.client.token(challenge, &[scope]).send().await
}

async fn token(context: &Context, scope: String) -> Verdict<String> {
    let answer = token_answer(context, scope).await?.expect(&[200])?;
    let body = answer.json()?;
    let token = body["token"].as_str().or_else(|| body["access_token"].as_str());
    token.map(ToOwned::to_owned).ok_or_else(|| answer.fail("a field 'token'"))
}

fn scope(repo: &Repo<'_>, actions: &str) -> String {
    format!("repository:{}:{actions}", repo.name)
}

/// Begins an upload with this token.
async fn post_with(repo: &Repo<'_>, token: &str) -> Verdict<Exchange> {
    let request = repo.request("POST", "blobs/uploads/");
    request.authorized(format!("Bearer {token}")).send().await
}

async fn fields(context: &Context) -> Verdict {
    let answer = token_answer(context, scope(&context.repo(), "pull")).await?.expect(&[200])?;
    let body = answer.json()?;
    let named = body["token"].as_str().or_else(|| body["access_token"].as_str());
    let long = body.get("expires_in").is_none_or(|life| life.as_u64().is_some_and(|s| s >= 60));
    if named.is_none_or(str::is_empty) || !long {
        return Err(answer.fail("\"token\", and \"expires_in\" of 60 or more if present"));
    }
    Ok(())
}

async fn both_names(context: &Context) -> Verdict {
    let answer = token_answer(context, scope(&context.repo(), "pull")).await?.expect(&[200])?;
    let body = answer.json()?;
    if !body["token"].is_string() || body["token"] != body["access_token"] {
        return Err(answer.fail("\"token\" and \"access_token\" with the same value"));
    }
    Ok(())
}

async fn scope_named(context: &Context) -> Verdict {
    let repo = context.repo();
    let answer = repo.request("POST", "blobs/uploads/").anonymously().send().await?;
    let answer = answer.expect(&[401])?;
    let challenge = challenged(&answer)?;
    let scope = challenge.parameter("scope").unwrap_or_default();
    let actions = scope.strip_prefix(&format!("repository:{}:", repo.name)).unwrap_or_default();
    if !actions.split(',').any(|action| action == "push" || action == "*") {
        return Err(answer.fail(format!("scope=\"repository:{}:pull,push\"", repo.name)));
    }
    Ok(())
}

async fn other_repository(context: &Context) -> Verdict {
    let (repo, other) = (context.repo(), context.repo());
    let token = token(context, scope(&repo, "pull,push")).await?;
    post_with(&repo, &token).await?.expect(&[202])?;
    post_with(&other, &token).await?.expect(&[401, 403]).map(drop)
}

async fn pull_only(context: &Context) -> Verdict {
    let repo = context.repo();
    let token = token(context, scope(&repo, "pull")).await?;
    post_with(&repo, &token).await?.expect(&[401, 403]).map(drop)
}

async fn ungranted_scope(context: &Context) -> Verdict {
    let asked = "repository:nobody/owns-this:nonsense".to_owned();
    token_answer(context, asked).await?.expect(&[200]).map(drop)
}

async fn anonymous_push(context: &Context) -> Verdict {
    let repo = context.repo();
    let Scheme::Bearer(challenge) = &context.client.scheme else { return Ok(()) };
    let request = context.client.token(challenge, &[scope(&repo, "pull,push")]).anonymously();
    let answer = request.send().await?.expect(&[200, 401, 403])?;
    if answer.status() != 200 {
        return Ok(());
    }
    let body = answer.json()?;
    let token = body["token"].as_str().or_else(|| body["access_token"].as_str());
    let token = token.ok_or_else(|| answer.fail("a field 'token'"))?;
    post_with(&repo, token).await?.expect(&[401, 403]).map(drop)
}

/// Changes the claims of a JSON web token; a token of another form gets another end.
fn forge(token: &str, header: Option<Value>, repo: &Repo<'_>) -> String {
    let parts: Vec<&str> = token.split('.').collect();
    let [old_header, claims, signature] = parts[..] else {
        return format!("{token}x");
    };
    let decoded = URL_SAFE_NO_PAD.decode(claims).unwrap_or_default();
    let mut claims: Value = serde_json::from_slice(&decoded).unwrap_or_else(|_| json!({}));
    claims["access"] =
        json!([{"type": "repository", "name": repo.name, "actions": ["pull", "push", "delete"]}]);
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    match header {
        Some(header) => format!("{}.{}.", encode(&header), encode(&claims)),
        None => format!("{old_header}.{}.{signature}", encode(&claims)),
    }
}

async fn forged(context: &Context, header: Option<Value>) -> Verdict {
    let repo = context.repo();
    let honest = token(context, scope(&repo, "pull,push")).await?;
    post_with(&repo, &honest).await?.expect(&[202])?;
    let other = context.repo();
    post_with(&other, &forge(&honest, header, &other)).await?.expect(&[401]).map(drop)
}

async fn tampered(context: &Context) -> Verdict {
    forged(context, None).await
}

async fn none_algorithm(context: &Context) -> Verdict {
    for name in ["none", "None", "HS256"] {
        forged(context, Some(json!({"alg": name, "typ": "JWT"}))).await?;
    }
    Ok(())
}

async fn post(context: &Context) -> Verdict {
    let Scheme::Bearer(challenge) = &context.client.scheme else { return Ok(()) };
    let repo = context.repo();
    let url = context.client.token(challenge, &[]).url().clone();
    let place = url.target.split('?').next().unwrap_or_default().to_owned();
    let (user, password) = credentials(context);
    let service = challenge.parameter("service").unwrap_or_default();
    let form = [
        ("grant_type", "password"),
        ("username", &user),
        ("password", &password),
        ("service", service),
        ("client_id", "oci-conformance"),
        ("scope", &scope(&repo, "pull,push")),
    ]
    .map(|(name, value)| format!("{name}={}", encode(value)))
    .join("&");
    let request = context.client.request_url("POST", Url { target: place, ..url });
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let answer = request.anonymously().body(form).send().await?.expect(&[200])?;
    let body = answer.json()?;
    let token = body["access_token"].as_str();
    let token = token.ok_or_else(|| answer.fail("a field 'access_token'"))?;
    post_with(&repo, token).await?.expect(&[202]).map(drop)
}

async fn token_wrong_password(context: &Context) -> Verdict {
    let Scheme::Bearer(challenge) = &context.client.scheme else { return Ok(()) };
    let asked = [scope(&context.repo(), "pull,push")];
    let wrong = Client::basic(&credentials(context).0, "not-the-password");
    let request = context.client.token(challenge, &asked).authorized(wrong);
    request.send().await?.expect(&[401]).map(drop)
}
