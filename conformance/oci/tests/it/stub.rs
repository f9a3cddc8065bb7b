//! A registry of tokens only: it knows `/v2/`, `/token` and the beginning of uploads, and has one
//! fault on demand.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    None,
    /// Signatures are not looked at.
    AnySignature,
    /// The algorithm `none` is believed.
    NoneAlgorithm,
    /// A token for one repository is good for all.
    AnyRepository,
    /// Whoever may pull may push.
    PullPushes,
    /// Anonymous tokens may push.
    AnonymousPush,
    /// Challenges name no scope.
    NoScope,
    /// `access_token` is missing where `token` was asked for.
    OneName,
    /// Tokens are given for any password.
    AnyPassword,
}

/// Starts it; its URL.
pub(crate) async fn start(fault: Fault) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, fault, format!("http://{address}")));
        }
    });
    format!("http://{address}")
}

async fn serve(mut stream: TcpStream, fault: Fault, base: String) {
    let mut bytes = Vec::new();
    let mut text = String::new();
    while !complete(&text) {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
        text = String::from_utf8_lossy(&bytes).into_owned();
    }
    let (status, headers, body) = answer(&text, fault, &base);
    let length = body.len();
    let head = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\n");
    let reply = format!("{head}connection: close\r\n\r\n{body}");
    let _ = stream.write_all(reply.as_bytes()).await;
}

fn complete(text: &str) -> bool {
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}

fn answer(text: &str, fault: Fault, base: &str) -> (u16, String, String) {
    let mut words = text.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let authorization = text.lines().find_map(|line| line.strip_prefix("authorization: "));
    let repository = target.strip_prefix("/v2/").and_then(|t| t.strip_suffix("/blobs/uploads/"));
    if target.starts_with("/token") {
        let form = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let query = if method == "POST" { form } else { target.split_once('?').unwrap().1 };
        return token(query, authorization, method == "POST", fault);
    }
    let claims = authorization.and_then(|value| value.strip_prefix("Bearer "));
    let claims = claims.and_then(|token| verify(token, fault));
    let allowed = match (&claims, repository) {
        (Some(claims), Some(name)) => may_push(claims, name, fault),
        (claims, _) => claims.is_some(),
    };
    if allowed {
        return match repository {
            Some(name) => (202, format!("location: /v2/{name}/blobs/uploads/1\r\n"), String::new()),
            None => (200, String::new(), String::new()),
        };
    }
    let scope = repository.filter(|_| fault != Fault::NoScope);
    let scope = scope.map_or(String::new(), |n| format!(",scope=\"repository:{n}:pull,push\""));
    let challenge = format!("Bearer realm=\"{base}/token\",service=\"stub\"{scope}");
    (401, format!("www-authenticate: {challenge}\r\n"), String::new())
}

fn may_push(claims: &Value, name: &str, fault: Fault) -> bool {
    claims["access"].as_array().unwrap().iter().any(|access| {
        let here = access["name"] == name || fault == Fault::AnyRepository;
        let push = access["actions"].as_array().unwrap().contains(&json!("push"));
        here && (push || fault == Fault::PullPushes)
    })
}

fn token(
    query: &str,
    authorization: Option<&str>,
    post: bool,
    fault: Fault,
) -> (u16, String, String) {
    let right = format!("Basic {}", STANDARD.encode("ada:secret"));
    let known = if post {
        query.contains("username=ada&password=secret")
    } else {
        authorization == Some(right.as_str())
            || authorization.is_some() && fault == Fault::AnyPassword
    };
    if !known && (authorization.is_some() || post) {
        return (401, String::new(), String::new());
    }
    let decoded = query.replace("%3A", ":").replace("%2F", "/").replace("%2C", ",");
    let scopes = decoded.split('&').filter_map(|pair| pair.strip_prefix("scope=repository:"));
    let access: Vec<Value> = scopes
        .map(|scope| {
            let (name, actions) = scope.rsplit_once(':').unwrap();
            let may = |action: &&str| *action == "pull" || known || fault == Fault::AnonymousPush;
            let actions: Vec<&str> = actions.split(',').filter(may).collect();
            json!({"type": "repository", "name": name, "actions": actions})
        })
        .collect();
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", encode(&json!({"alg": "X"})), encode(&json!({"access": access})));
    let token = format!("{signed}.{}", sign(&signed));
    let body = match fault {
        Fault::OneName if !post => json!({"token": token, "expires_in": 60}),
        _ => json!({"token": token, "access_token": token, "expires_in": 60}),
    };
    (200, String::new(), body.to_string())
}

fn sign(signed: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(format!("a secret {signed}")))
}

/// The claims of a token that is believed.
fn verify(token: &str, fault: Fault) -> Option<Value> {
    let (signed, signature) = token.rsplit_once('.')?;
    let (header, claims) = signed.split_once('.')?;
    let decode = |part: &str| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok();
    let header: Value = decode(header)?;
    let none = header["alg"] == "none" && fault == Fault::NoneAlgorithm;
    if signature != sign(signed) && !none && fault != Fault::AnySignature {
        return None;
    }
    decode(claims)
}
