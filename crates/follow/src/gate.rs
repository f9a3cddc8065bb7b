//! The registry's rules for its catalog: users who may pull a repository may read what its packages say.

use async_trait::async_trait;
use axum::http::StatusCode;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use catalog::Rights;
use catalog::http::{Admitted, Gate, Problem};
use registry::access::{NotAdmitted, Refused};
use registry::{Action, Decision, Name, Options};

/// The rules of a registry, for its catalog.
pub struct RegistryGate(pub Options);

#[async_trait]
impl Gate for RegistryGate {
    async fn admit(&self, request: &Parts) -> Result<Admitted, Problem> {
        let who = self.0.admit(request).await.map_err(refused)?;
        let access = self.0.access.clone();
        let otherwise = match access.decide(&who, None, Action::Look) {
            Decision::Challenge(challenge) => Some(unauthorized(&challenge)),
            _ => None,
        };
        let rights = Rights::when(move |repository| {
            let may = |name| access.decide(&who, Some(&name), Action::List) == Decision::Allow;
            Name::parse(repository).is_some_and(may)
        });
        Ok(Admitted { rights, otherwise })
    }

    fn knows_users(&self) -> bool {
        !self.0.access.is_open()
    }
}

fn refused(not_admitted: NotAdmitted) -> Problem {
    match not_admitted {
        NotAdmitted::Host => Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "this registry does not answer to that name",
            "use its address, or allow the name where it is served (--allowed-host)",
        ),
        NotAdmitted::Refused(Refused::Challenge(challenge)) => unauthorized(&challenge),
        NotAdmitted::Refused(Refused::Wait(seconds)) | NotAdmitted::TooOften(seconds) => {
            let hint = format!("try again in {seconds} s");
            let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many requests", hint);
            problem.header(RETRY_AFTER, &seconds.to_string())
        }
    }
}

fn unauthorized(challenge: &str) -> Problem {
    let hint = "sign in with a name and a password, or with a token for registry:catalog:*";
    let problem = Problem::new(StatusCode::UNAUTHORIZED, "who asks is not known", hint);
    problem.header(WWW_AUTHENTICATE, challenge)
}
