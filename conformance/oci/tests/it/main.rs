//! The suite against registries in wide use: it finds exactly what is known about each.
//!
//! Debian's docker-registry comes from `scripts/setup test`, distribution 3.1.1 from
//! `scripts/peers`. A missing peer fails the test.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests may die like tests do"
)]

mod lies;
mod peer;
mod proxy;
mod stub;

use conformance_oci::{KnownFailures, Level, Outcome, Report, Selection, Target, run};
use peer::{Kind, Peer};
use stub::Fault;

/// Everything that is asked, with a seed that a failure can be repeated with.
async fn everything(target: &Target) -> Report {
    let report = run(target, &Selection::default()).await;
    report.unwrap_or_else(|error| panic!("{}: {error}", target.base_url))
}

/// The report and the list agree, line by line.
fn agree(report: &Report, list: &str) {
    let path = format!("{}/known/{list}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = fs_err::read_to_string(&path).unwrap();
    let known = KnownFailures::parse(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    let surprises = known.surprises(report);
    assert!(
        surprises.is_empty(),
        "{} surprises, where {path} says otherwise:\n{}",
        surprises.len(),
        surprises.join("\n")
    );
    assert_eq!(report.summary().failed, known.len(), "{path} lists checks that were not run");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn docker_registry_falls_short_where_it_is_known_to() {
    let peer = Peer::start(Kind::DockerRegistry, false).await;
    let report = everything(&peer.target()).await;
    agree(&report, "docker-registry-2.8.2");
    let tokens = report.not_applicable.iter().filter(|check| check.id.starts_with("token."));
    assert_eq!((report.not_applicable.len(), tokens.count()), (20, 11));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn distribution_falls_short_where_it_is_known_to() {
    let peer = Peer::start(Kind::Distribution, false).await;
    agree(&everything(&peer.target()).await, "distribution-3.1.1");
}

/// With a password nothing else fails, and the checks of authentication pass.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn docker_registry_with_a_password_is_the_same_registry() {
    let peer = Peer::start(Kind::DockerRegistry, true).await;
    let mut target = peer.target();
    target.credentials = Some(("ada".to_owned(), "secret".to_owned()));
    let report = everything(&target).await;
    agree(&report, "docker-registry-2.8.2");
    let asked = report.findings.iter().filter(|finding| finding.check.endpoint == "auth");
    assert_eq!(asked.filter(|finding| finding.passed()).count(), 9);
}

/// A registry that wants a password, and none is given: everything but a few refusals fails, and
/// each failure shows the answer.
#[tokio::test]
async fn without_the_password_the_failures_say_why() {
    let peer = Peer::start(Kind::DockerRegistry, true).await;
    let selection = Selection { level: Level::Must, filter: Some("blob.get".to_owned()) };
    let report = run(&peer.target(), &selection).await.unwrap();
    assert_eq!(report.findings.len(), 1);
    let Outcome::Fail { request, expected, got } = &report.findings[0].outcome else {
        panic!("a blob was pushed without a password")
    };
    assert!(
        request.starts_with(&format!("POST {}/v2/conformance/r", peer.base_url())),
        "{request}"
    );
    assert_eq!(expected, "status 202");
    for part in ["HTTP/1.1 401 Unauthorized", "www-authenticate: Basic", "UNAUTHORIZED"] {
        assert!(got.contains(part), "{got}");
    }
}

#[tokio::test]
async fn one_seed_makes_the_same_requests() {
    let selection = Selection { filter: Some("referrers.none".to_owned()), ..Selection::default() };
    let mut requests = Vec::new();
    for _ in 0..2 {
        let peer = Peer::start(Kind::DockerRegistry, false).await;
        let report = run(&peer.target(), &selection).await.unwrap();
        let outcome = report.findings[0].outcome.clone();
        let Outcome::Fail { request, .. } = outcome else { panic!("2.8.2 has no referrers") };
        requests.push(request.split("/v2/").nth(1).unwrap_or_default().to_owned());
    }
    assert_eq!(requests[0], requests[1]);
    assert!(requests[0].contains("/referrers/sha256:"));
}

#[tokio::test]
async fn tls_is_spoken_with_the_authority_or_without_care() {
    let peer = Peer::start(Kind::DockerRegistryTls, false).await;
    let selection = Selection { filter: Some("blob.get".to_owned()), ..Selection::default() };
    let mut target = peer.target();
    assert!(run(&target, &selection).await.unwrap_err().contains("certificate"));
    target.insecure = true;
    assert_eq!(run(&target, &selection).await.unwrap().summary().passed, 2);
    target.insecure = false;
    target.authorities = Some(peer.certificate());
    assert_eq!(run(&target, &selection).await.unwrap().summary().passed, 2);
}

#[tokio::test]
async fn a_registry_that_is_not_there_is_an_error_and_no_report() {
    let error = run(&Target::new("http://127.0.0.1:1"), &Selection::default()).await.unwrap_err();
    assert!(error.starts_with("cannot connect to 127.0.0.1:1: "), "{error}");
    let error = run(&Target::new("127.0.0.1:5000"), &Selection::default()).await.unwrap_err();
    assert_eq!(error, "'127.0.0.1:5000' does not begin with http:// or https://");
}

/// The checks of tokens, which neither peer can be asked: a registry that does all right passes
/// them, and each fault is found by the checks that are about it.
#[tokio::test]
async fn faults_with_tokens_are_found() {
    let selection = Selection { filter: Some("token.".to_owned()), ..Selection::default() };
    let faults: [(Fault, &[&str]); 9] = [
        (Fault::None, &[]),
        (Fault::AnySignature, &["token.tampered", "token.none"]),
        (Fault::NoneAlgorithm, &["token.none"]),
        (Fault::AnyRepository, &["token.other-repository"]),
        (Fault::PullPushes, &["token.pull-only", "token.anonymous-push"]),
        (Fault::AnonymousPush, &["token.anonymous-push"]),
        (Fault::NoScope, &["token.scope-named"]),
        (Fault::OneName, &["token.both-names"]),
        (Fault::AnyPassword, &["token.wrong-password"]),
    ];
    for (fault, wanted) in faults {
        let mut target = Target::new(stub::start(fault).await);
        target.credentials = Some(("ada".to_owned(), "secret".to_owned()));
        let report = run(&target, &selection).await.unwrap();
        assert_eq!(report.findings.len(), 11);
        let failed: Vec<&str> = report.failures().map(|finding| finding.check.id).collect();
        assert_eq!(failed, wanted, "{fault:?}\n{}", report.to_text());
    }
}

/// The program ends with 0, 1 or 2, as it says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_says_how_it_ended() {
    let peer = Peer::start(Kind::DockerRegistry, false).await;
    let known = concat!(env!("CARGO_MANIFEST_DIR"), "/known/docker-registry-2.8.2.txt");
    let url = peer.base_url();
    let ended = |arguments: &[&str]| {
        let program = env!("CARGO_BIN_EXE_oci-conformance");
        let output = std::process::Command::new(program).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.code(), text)
    };
    let (code, text) = ended(&[&url, "--filter", "subject.header", "--level", "must"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("FAIL subject.header.tag (must, end-7a)"), "{text}");
    let (code, text) = ended(&[&url, "--filter", "subject.header", "--expect-failures", known]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("1 passed, 7 failed"), "{text}");
    let (code, text) = ended(&[&url, "--filter", "base.get", "--output", "json"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("\"outcome\": \"pass\""), "{text}");
    assert_eq!(ended(&[&url, "--filter", "no such check"]).0, Some(2));
    assert_eq!(ended(&["http://127.0.0.1:1"]).0, Some(2));
    let (code, text) = ended(&["--list"]);
    assert_eq!((code, text.lines().count()), (Some(0), conformance_oci::checks().len()));
}
