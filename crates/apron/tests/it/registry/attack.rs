//! What somebody may try over the wire itself, where a client library would not let them.

use super::Served;
use crate::support::{Scratch, command};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

/// Sends bytes as they are; gives everything that comes back until the registry hangs up.
fn raw(address: &str, request: &[u8]) -> String {
    raw_for(address, request, Duration::from_secs(120))
}

/// The same where the registry may wait for more: it is not waited for longer than this.
fn raw_for(address: &str, request: &[u8], patience: Duration) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(patience)).unwrap();
    // A registry that has heard enough may hang up in the middle.
    let _ = stream.write_all(request);
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        answer.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

fn answers(text: &str) -> usize {
    text.matches("HTTP/1.1 ").count()
}

fn status(text: &str) -> u16 {
    text.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("`{text}`"))
}

fn add_ada(scratch: &Scratch) {
    let mut add = command(scratch);
    add.args(["registry", "user", "add", "ada", "--data-dir", "data"]).stdout(Stdio::null());
    let mut add = add.stdin(Stdio::piped()).spawn().unwrap();
    add.stdin.take().unwrap().write_all(b"correct horse\n").unwrap();
    assert!(add.wait().unwrap().success());
}

#[test]
fn no_request_hides_in_another() {
    let scratch = Scratch::new();
    let served = Served::start(&scratch);
    let hidden = "DELETE /v2/a/manifests/v1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    // Bodies whose end two readers could see in two places: none may be read twice.
    for head in [
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 0\r\nContent-Length: 5",
        "Content-Length: +0",
        "Content-Length: -1",
        "Content-Length: 0x0",
        "Content-Length: 0,5",
        "Content-Length: 99999999999999999999",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: identity",
        "Transfer-Encoding : chunked",
        " Transfer-Encoding: chunked",
        "Transfer-Encoding:\u{b}chunked",
    ] {
        let request = format!(
            "POST /v2/a/blobs/uploads/ HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n{hidden}"
        );
        let answer = raw(&served.address, request.as_bytes());
        assert_eq!(answers(&answer), 1, "{head}: {answer}");
        assert_eq!(status(&answer), 400, "{head}: {answer}");
    }
    // With both, the chunks count, and what follows them is not a second request's body.
    let both = "POST /v2/a/blobs/uploads/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    for chunks in ["FFFFFFFFFFFFFFFFF\r\n", "-1\r\n", "1;\r\nxx", "0x1\r\nx\r\n0\r\n\r\n"] {
        let request = format!("{both}{chunks}{hidden}");
        let answer = raw_for(&served.address, request.as_bytes(), Duration::from_secs(2));
        assert!(answers(&answer) <= 1, "{chunks:?}: {answer}");
        assert!(!answer.contains("HTTP/1.1 404"), "the hidden request was answered: {answer}");
    }
    assert_eq!(served.get("/v2/").0, 200);
}

#[test]
fn nothing_in_an_answer_comes_from_the_name_a_client_used() {
    let scratch = Scratch::new();
    add_ada(&scratch);
    let served = Served::start_with(&scratch, &["--private"]);
    let basic = "Authorization: Basic YWRhOmNvcnJlY3QgaG9yc2U=";
    let evil = "Host: evil.test\r\nX-Forwarded-Host: evil.test\r\nX-Forwarded-Proto: https\r\n\
                Forwarded: host=evil.test\r\nConnection: close";
    for (line, credentials, expected) in [
        ("GET /v2/ HTTP/1.1", "X-None: 1", 401),
        ("GET http://evil.test/v2/ HTTP/1.1", "X-None: 1", 401),
        ("POST /v2/a/blobs/uploads/ HTTP/1.1", basic, 202),
        ("GET /v2/_catalog?n=1 HTTP/1.1", basic, 200),
        ("GET /v2/a/manifests/latest HTTP/1.1", basic, 404),
        ("GET /token?scope=repository:a:pull HTTP/1.1", basic, 200),
    ] {
        let length = if line.starts_with("POST") { "Content-Length: 0\r\n" } else { "" };
        let request = format!("{line}\r\n{evil}\r\n{length}{credentials}\r\n\r\n");
        let answer = raw(&served.address, request.as_bytes());
        assert_eq!(status(&answer), expected, "{line}: {answer}");
        let token = answer.contains("\"access_token\"");
        assert!(token || !answer.contains("evil"), "{line}: {answer}");
        assert!(!answer.contains("ZXZpbC50ZXN0"), "{line}: the name got into a token: {answer}");
    }
}

#[test]
fn parts_and_pages_stay_within_bounds() {
    let scratch = Scratch::new();
    let served = Served::start(&scratch);
    let content = "0123456789".repeat(100);
    let digest = oci::Digest::of(content.as_bytes());
    let push = format!(
        "POST /v2/a/blobs/uploads/?digest={digest} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{content}",
        content.len()
    );
    assert_eq!(status(&raw(&served.address, push.as_bytes())), 201);
    let many = format!("bytes={}", "0-999,".repeat(1000));
    for (range, expected, length) in [
        (many.as_str(), 200, 1000),
        ("bytes=0-18446744073709551615", 206, 1000),
        ("bytes=-18446744073709551615", 206, 1000),
        ("bytes=999-18446744073709551614", 206, 1),
        ("bytes=18446744073709551615-", 416, 0),
        ("bytes=1000-1000", 416, 0),
        ("bytes=99999999999999999999-", 200, 1000),
        ("bytes=0-0, 5-", 200, 1000),
        ("bytes=--1", 200, 1000),
        ("Bytes 0-1/2", 200, 1000),
    ] {
        let request = format!(
            "GET /v2/a/blobs/{digest} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nRange: {range}\r\n\r\n"
        );
        let answer = raw(&served.address, request.as_bytes());
        assert_eq!(status(&answer), expected, "{range}: {answer}");
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        assert!(expected == 416 || body.len() == length, "{range}: {} bytes", body.len());
    }
    for (query, expected) in [
        ("n=18446744073709551615", 200),
        ("n=99999999999999999999", 400),
        ("n=-1", 400),
        ("n=1e9", 400),
        ("n=1&n=99999999999999999999", 200),
        ("n=5&last=%0d%0aX-Evil:%201", 200),
        ("n=5&last=%00", 200),
    ] {
        let path = format!("/v2/_catalog?{query}");
        let (found, answer) = served.get(&path);
        assert_eq!(found, expected, "{query}: {answer}");
        assert!(!answer.to_lowercase().contains("\r\nx-evil"), "{query}: {answer}");
    }
}

#[test]
fn heads_that_are_too_large_or_never_end_hold_nobody_up() {
    let scratch = Scratch::new();
    let served = Served::start(&scratch);
    for head in ["X-Many: 1\r\n".repeat(300), format!("X-Long: {}\r\n", "x".repeat(2 << 20))] {
        let request = format!("GET /v2/ HTTP/1.1\r\nHost: localhost\r\n{head}\r\n");
        let answer = raw(&served.address, request.as_bytes());
        // A connection that is reset under a client that still writes says nothing.
        assert!(answer.is_empty() || status(&answer) == 431, "{answer}");
    }
    let path = "a/".repeat(40_000);
    let long = format!("GET /v2/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let answer = raw(&served.address, long.as_bytes());
    assert!(matches!(status(&answer), 404 | 414 | 431), "{answer}");
    // Many that began and say no more; others are served all the same.
    let silent: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = TcpStream::connect(&served.address).unwrap();
            stream.write_all(b"GET /v2/ HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").unwrap();
            stream
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(served.get("/v2/").0, 200);
    }
    drop(silent);
    for method in ["TRACE", "CONNECT", "PROPFIND", "OPTIONS"] {
        let request = format!(
            "{method} /v2/a/tags/list HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        );
        let answer = raw(&served.address, request.as_bytes());
        assert!((400..500).contains(&status(&answer)), "{method}: {answer}");
    }
}

#[test]
fn passwords_are_written_down_nowhere() {
    let scratch = Scratch::new();
    add_ada(&scratch);
    let log = scratch.join("said");
    let mut program = command(&scratch);
    program.stderr(fs_err::File::create(&log).unwrap().into_parts().0);
    let served = Served::try_start_saying(program, &scratch, &["--private"]).unwrap();
    // Right and wrong ones, in every place a client may put them.
    let right = "YWRhOmNvcnJlY3QgaG9yc2U=";
    for head in [
        format!("GET /v2/ HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {right}"),
        "GET /v2/ HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic YWRhOmJhdHRlcnkgc3RhcGxl"
            .to_owned(),
        "GET /v2/ HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer battery.staple.token"
            .to_owned(),
        "GET http://ada:battery-staple@x/v2/ HTTP/1.1\r\nHost: localhost".to_owned(),
        "GET /token?account=ada&password=battery-staple HTTP/1.1\r\nHost: localhost".to_owned(),
        "GET /v2/battery-staple/tags/list?key=battery-staple HTTP/1.1\r\nHost: localhost"
            .to_owned(),
        format!(
            "PUT /v2/a/manifests/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nAuthorization: Basic {right}"
        ),
    ] {
        raw(&served.address, format!("{head}\r\nConnection: close\r\n\r\n").as_bytes());
    }
    let data = served.data.clone();
    assert!(served.stop().success());
    let mut written = vec![fs_err::read_to_string(log).unwrap()];
    for name in ["audit.log", "users.json"] {
        written.push(fs_err::read_to_string(data.join(name)).unwrap_or_default());
    }
    let written = written.concat();
    assert!(written.contains("stopped"), "{written}");
    for secret in [
        "correct horse",
        "battery staple",
        "battery.staple",
        right,
        "YWRhOmJhdHRlcnk",
        "key=battery",
        "password=battery",
        "ada:battery",
    ] {
        assert!(!written.contains(secret), "{secret}: {written}");
    }
}
