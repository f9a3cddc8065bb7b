//! One request with its answer, and what can be demanded of it.
//!
//! Every demand that is not met becomes a [`Failure`] that carries the request line, what was
//! wanted, and the answer itself: status, headers, first bytes.

use crate::wire::{Answer, Message};
use serde_json::Value;
use std::fmt::Write as _;

/// What was asked, what was wanted, and what came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) request: String,
    pub(crate) expected: String,
    pub(crate) got: String,
}

/// What a step of a check comes to.
pub(crate) type Verdict<T = ()> = Result<T, Failure>;

/// One request with its answer.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) message: Message,
    pub(crate) answer: Answer,
}

/// The request line and the headers that matter; a password or token is not among them.
pub(crate) fn describe(message: &Message) -> String {
    let mut text =
        format!("{} http{}://", message.method, if message.url.origin.tls { "s" } else { "" });
    let _ = write!(text, "{}{}", message.url.origin.authority(), message.url.target);
    for (name, value) in &message.headers {
        let shown = if name == "authorization" {
            value.split(' ').next().unwrap_or_default().to_owned() + " …"
        } else {
            value.clone()
        };
        let _ = write!(text, "\n{name}: {shown}");
    }
    if message.chunked {
        let _ = write!(text, "\ntransfer-encoding: chunked");
    }
    let form = message.headers.iter().any(|(_, value)| value.ends_with("x-www-form-urlencoded"));
    if form {
        let _ = write!(text, "\na form with the password");
    } else if !message.body.is_empty() {
        let _ = write!(text, "\n{}", excerpt(&message.body));
    }
    text
}

/// The first bytes of a body, readable.
pub(crate) fn excerpt(body: &[u8]) -> String {
    const SHOWN: usize = 300;
    let start = &body[..body.len().min(SHOWN)];
    let text = String::from_utf8_lossy(start);
    let unreadable = text.chars().any(|c| c == '\u{fffd}' || (c.is_control() && c != '\n'));
    let shown = if unreadable {
        format!("0x{}", hex::encode(&start[..start.len().min(32)]))
    } else {
        format!("{:?}", text.trim_end())
    };
    let dots = if body.len() > SHOWN || unreadable { "…" } else { "" };
    format!("body ({} bytes): {shown}{dots}", body.len())
}

impl Exchange {
    pub(crate) fn status(&self) -> u16 {
        self.answer.status
    }

    /// The failure of this exchange to be what was expected.
    pub(crate) fn fail(&self, expected: impl Into<String>) -> Failure {
        Failure { request: describe(&self.message), expected: expected.into(), got: self.seen() }
    }

    /// The same, with a sentence about what is wrong before the answer itself.
    pub(crate) fn fail_because(
        &self,
        expected: impl Into<String>,
        wrong: impl Into<String>,
    ) -> Failure {
        let got = format!("{}\n{}", wrong.into(), self.seen());
        Failure { got, ..self.fail(expected) }
    }

    fn seen(&self) -> String {
        let mut text = format!("HTTP/1.1 {} {}", self.answer.status, self.answer.reason);
        for (name, value) in &self.answer.headers {
            let _ = write!(text, "\n{name}: {value}");
        }
        let _ = write!(text, "\n{}", excerpt(&self.answer.body));
        if self.answer.excess > 0 {
            let _ = write!(text, "\nand {} bytes after the end of it", self.answer.excess);
        }
        text
    }

    /// The status is one of these.
    pub(crate) fn expect(self, allowed: &[u16]) -> Verdict<Self> {
        if allowed.contains(&self.answer.status) {
            return Ok(self);
        }
        let list: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        Err(self.fail(format!("status {}", list.join(" or "))))
    }

    /// The status is some 4xx: a refusal, neither success nor a fault of the server.
    pub(crate) fn refused(self) -> Verdict<Self> {
        if (400..500).contains(&self.answer.status) {
            return Ok(self);
        }
        Err(self.fail("a refusal: status 4xx"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.answer.header(name)
    }

    /// The header is there.
    pub(crate) fn need(&self, name: &str) -> Verdict<&str> {
        self.header(name).ok_or_else(|| self.fail(format!("a header '{name}'")))
    }

    /// The header is there with this value.
    pub(crate) fn need_value(&self, name: &str, value: &str) -> Verdict {
        if self.header(name) == Some(value) {
            return Ok(());
        }
        Err(self.fail(format!("the header '{name}: {value}'")))
    }

    /// The header has this value if it is there at all.
    pub(crate) fn need_value_if_present(&self, name: &str, value: &str) -> Verdict {
        if self.header(name).is_none_or(|found| found == value) {
            return Ok(());
        }
        Err(self.fail(format!("no header '{name}', or '{name}: {value}'")))
    }

    /// The body is exactly this, `Content-Length` agrees, and nothing follows.
    pub(crate) fn need_body(&self, body: &[u8]) -> Verdict {
        if self.answer.body != body {
            return Err(self.fail(format!("exactly the bytes that were pushed: {}", excerpt(body))));
        }
        self.need_value_if_present("content-length", &body.len().to_string())?;
        self.need_nothing_more()
    }

    /// No body at all, as after `HEAD`.
    pub(crate) fn need_no_body(&self) -> Verdict {
        if !self.answer.body.is_empty() {
            return Err(self.fail("no body"));
        }
        self.need_nothing_more()
    }

    fn need_nothing_more(&self) -> Verdict {
        if self.answer.excess > 0 {
            return Err(self.fail("nothing after the end of the answer"));
        }
        Ok(())
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Verdict<Value> {
        serde_json::from_slice(&self.answer.body)
            .map_err(|error| self.fail_because("a JSON body", error.to_string()))
    }

    /// The codes of an error body that has the form the specification gives it.
    pub(crate) fn error_codes(&self) -> Verdict<Vec<String>> {
        const FORM: &str =
            r#"an error body {"errors":[{"code":"UPPER_CASE","message":"…","detail":…}]}"#;
        let body = self.json()?;
        let errors = body.get("errors").and_then(Value::as_array);
        let errors = errors.filter(|list| !list.is_empty());
        let errors = errors.ok_or_else(|| self.fail(FORM))?;
        let mut codes = Vec::new();
        for error in errors {
            let code = error.get("code").and_then(Value::as_str).unwrap_or_default();
            let upper = |c: char| c.is_ascii_uppercase() || c == '_';
            let message = error.get("message").is_none_or(Value::is_string);
            if code.is_empty() || !code.chars().all(upper) || !message {
                return Err(self.fail(FORM));
            }
            codes.push(code.to_owned());
        }
        Ok(codes)
    }

    /// A refusal whose body names one of these codes first.
    pub(crate) fn need_code(&self, allowed: &[&str]) -> Verdict {
        let expected = format!("status 4xx with the error code {}", allowed.join(" or "));
        if !(400..500).contains(&self.answer.status) {
            return Err(self.fail(expected));
        }
        let codes = self.error_codes()?;
        if codes.iter().any(|code| allowed.contains(&code.as_str())) {
            return Ok(());
        }
        Err(self.fail(expected))
    }
}
