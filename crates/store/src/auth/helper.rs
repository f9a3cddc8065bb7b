//! Credential helpers: `docker-credential-NAME get|store|erase`, spoken over pipes.

use super::Credential;
use crate::error::Cause;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

const OUTPUT_SIZE_MAX: u64 = 1 << 20;

/// How credential helpers are run.
#[derive(Debug, Clone)]
pub struct Helpers {
    /// Where to look for them; the system's search path if `None`.
    pub directory: Option<PathBuf>,
    /// How long one may take.
    pub timeout: Duration,
}

impl Default for Helpers {
    fn default() -> Self {
        Self { directory: None, timeout: Duration::from_secs(30) }
    }
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    #[serde(rename = "ServerURL", default)]
    server_url: String,
    username: String,
    secret: String,
}

impl Helpers {
    /// Asks a helper; `None` if it does not know the server.
    pub(crate) async fn get(&self, name: &str, server: &str) -> Result<Option<Credential>, Cause> {
        let output = self.run(name, "get", server.as_bytes()).await?;
        if !output.success {
            // The protocol has no code for this; the words are part of it.
            let said = String::from_utf8_lossy(&output.text).to_lowercase();
            let unknown = said.contains("credentials not found") || said.contains("not found in");
            return if unknown { Ok(None) } else { Err(failed(name, &output.text)) };
        }
        let answer: Answer = serde_json::from_slice(&output.text).map_err(|source| {
            Cause::Json { what: format!("the answer of `{}`", program(name)), source }
        })?;
        Ok(Some(match answer.username.as_str() {
            "<token>" => Credential::IdentityToken(answer.secret),
            _ => Credential::Basic { user: answer.username, password: answer.secret },
        }))
    }

    /// Has a helper keep a credential.
    pub(crate) async fn store(
        &self,
        name: &str,
        server: &str,
        user: &str,
        password: &str,
    ) -> Result<(), Cause> {
        let answer = Answer {
            server_url: server.to_owned(),
            username: user.to_owned(),
            secret: password.to_owned(),
        };
        let json = serde_json::to_vec(&answer)
            .map_err(|source| Cause::Json { what: "the credential".to_owned(), source })?;
        let output = self.run(name, "store", &json).await?;
        if output.success { Ok(()) } else { Err(failed(name, &output.text)) }
    }

    /// Has a helper forget a credential.
    pub(crate) async fn erase(&self, name: &str, server: &str) -> Result<(), Cause> {
        let output = self.run(name, "erase", server.as_bytes()).await?;
        if output.success { Ok(()) } else { Err(failed(name, &output.text)) }
    }

    async fn run(&self, name: &str, verb: &str, input: &[u8]) -> Result<Output, Cause> {
        let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if !name.bytes().all(safe) {
            return Err(failed(name, b"its name may only have letters, digits, `-`, `_` and `.`"));
        }
        let program = match &self.directory {
            Some(directory) => directory.join(program(name)),
            None => program(name).into(),
        };
        match tokio::time::timeout(self.timeout, converse(program, verb, input)).await {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(error)) => Err(failed(name, error.to_string().as_bytes())),
            Err(_) => Err(failed(name, format!("no answer within {:?}", self.timeout).as_bytes())),
        }
    }
}

struct Output {
    success: bool,
    text: Vec<u8>,
}

async fn converse(program: PathBuf, verb: &str, input: &[u8]) -> std::io::Result<Output> {
    let mut child = Command::new(program)
        .arg(verb)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A helper may answer without reading; that is its business.
        let _ = stdin.write_all(input).await;
    }
    let mut text = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(OUTPUT_SIZE_MAX).read_to_end(&mut text).await?;
    }
    let success = child.wait().await?.success();
    Ok(Output { success, text })
}

fn program(name: &str) -> String {
    format!("docker-credential-{name}")
}

fn failed(name: &str, message: &[u8]) -> Cause {
    Cause::Helper {
        helper: program(name),
        message: String::from_utf8_lossy(message).trim().to_owned(),
    }
}
