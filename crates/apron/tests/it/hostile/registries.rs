//! Registries made to do harm: sockets that stall, lie, flood and go in circles.

use super::craft::{GOOD, Image, gz, gz_mebibytes, package_layer};
use super::{bounded, refused};
use crate::support::Scratch;
use oci::Digest;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
/// `ada:secret`, as a credentials file has it.
/// Far more than it takes on a busy machine, and far less than for ever.
const IN_TIME: Duration = Duration::from_secs(150);
const ADA: &str = "YWRhOnNlY3JldA==";

/// A request as it came: the first line and the headers, in lower case.
struct Request {
    path: String,
    headers: String,
}

/// A registry in a thread; its threads end with the test binary.
struct Server {
    address: String,
    log: Arc<Mutex<Vec<Request>>>,
}

/// What a client is given: the connection to write to. It is closed when the answer returns.
type Answer = dyn Fn(&Request, &mut TcpStream) -> std::io::Result<()> + Send + Sync;

impl Server {
    fn start(
        answer: impl Fn(&Request, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::start_knowing(|_| answer)
    }

    /// Starts a server whose answers know its address.
    fn start_knowing<A>(make: impl FnOnce(String) -> A) -> Self
    where
        A: Fn(&Request, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answer: Arc<Answer> = Arc::new(make(address.clone()));
        let log = Arc::new(Mutex::new(Vec::new()));
        let entries = Arc::clone(&log);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, entries) = (Arc::clone(&answer), Arc::clone(&entries));
                std::thread::spawn(move || converse(stream, &*answer, &entries));
            }
        });
        Self { address, log }
    }

    fn reference(&self) -> String {
        format!("{}/a:v1", self.address)
    }

    fn requests(&self) -> usize {
        self.log.lock().unwrap().len()
    }
}

fn converse(mut stream: TcpStream, answer: &Answer, log: &Mutex<Vec<Request>>) {
    let mut head = String::new();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while reader.read_line(&mut head).is_ok_and(|count| count > 2) {}
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let request = Request { path: path.clone(), headers: head.to_lowercase() };
    log.lock().unwrap().push(Request { path, headers: request.headers.clone() });
    // A client that has heard enough hangs up; that is for the test to judge.
    let _ = answer(&request, &mut stream);
}

fn send(
    stream: &mut TcpStream,
    status: &str,
    headers: &str,
    body: impl AsRef<[u8]>,
) -> std::io::Result<()> {
    let body = body.as_ref();
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n"
    )?;
    stream.write_all(body)
}

/// Says nothing until the client hangs up.
fn stall(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.read_to_end(&mut Vec::new()).map(drop)
}

/// Answers as an honest registry with this image would.
fn honest(image: &Image, request: &Request, stream: &mut TcpStream) -> std::io::Result<()> {
    let raw = image.raw();
    let blob = |blob: &Vec<u8>| request.path.ends_with(&Digest::of(blob).to_string());
    if request.path.contains("/manifests/") {
        send(stream, "200 OK", &format!("Content-Type: {MANIFEST}\r\n"), raw)
    } else if let Some(blob) = image.blobs().into_iter().find(blob) {
        send(stream, "200 OK", "", blob)
    } else if request.path == "/v2/" {
        send(stream, "200 OK", "", "{}")
    } else {
        send(stream, "404 Not Found", "", "")
    }
}

/// Inspects what the registry has; it must be refused with these words.
#[track_caller]
fn refused_by(server: &Server, words: &[&str]) -> String {
    refused_within("120", server, words)
}

/// The same, with so many seconds of patience.
#[track_caller]
fn refused_within(seconds: &str, server: &Server, words: &[&str]) -> String {
    let scratch = Scratch::new();
    let reference = server.reference();
    refused(&scratch, ["inspect", "--plain-http", "--timeout", seconds, &reference], words)
}

#[test]
fn an_honest_registry_is_read() {
    let server = Server::start(|request, stream| honest(&Image::good(), request, stream));
    let scratch = Scratch::new();
    let shown = bounded(&scratch, ["inspect", &server.reference()]).ok();
    assert!(shown.stdout.contains("small"), "{}", shown.stdout);
}

#[test]
fn registries_that_fall_silent_are_given_up_in_time() {
    let blobs = |request: &Request| request.path.contains("/blobs/");
    let servers = [
        ("before the headers", Server::start(|_, stream| stall(stream))),
        (
            "within the headers",
            Server::start(|_, stream| {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le")?;
                stall(stream)
            }),
        ),
        (
            "within a manifest",
            Server::start(|_, stream| {
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: {MANIFEST}\r\nContent-Length: 900\r\n\r\n{{"
                );
                stream.write_all(head.as_bytes())?;
                stall(stream)
            }),
        ),
        (
            "within a blob",
            Server::start(move |request, stream| {
                if !blobs(request) {
                    return honest(&Image::good(), request, stream);
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n\x1f")?;
                stall(stream)
            }),
        ),
        (
            "never, but says little",
            Server::start(|_, stream| {
                stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
                loop {
                    stream.write_all(b"X-Slow: loris\r\n")?;
                    std::thread::sleep(Duration::from_millis(300));
                }
            }),
        ),
    ];
    std::thread::scope(|scope| {
        for (name, server) in &servers {
            scope.spawn(move || {
                let start = Instant::now();
                let said = refused_within("2", server, &["--timeout"]);
                assert!(said.contains("nothing for 2 seconds"), "{name}: {said}");
                assert!(start.elapsed() < IN_TIME, "{name}: {:?}", start.elapsed());
                assert!(server.requests() <= 6, "{name}: {} requests", server.requests());
            });
        }
    });
}

#[test]
fn a_silent_registry_is_given_up_in_time_whatever_it_speaks() {
    // Without --plain-http the scheme has to be found out first.
    let server = Server::start(|_, stream| stall(stream));
    let scratch = Scratch::new();
    let start = Instant::now();
    let words = ["inspect", "--timeout", "1", &server.reference()];
    let said = refused(&scratch, words, &["nothing for 1 second"]);
    assert!(!said.contains("1 seconds"), "{said}");
    assert!(start.elapsed() < IN_TIME, "{:?}", start.elapsed());
}

#[test]
fn floods_are_cut_off() {
    let headers = Server::start(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
        loop {
            stream.write_all(&b"X-Flood: yes\r\n".repeat(1000))?;
        }
    });
    refused_by(&headers, &["cannot read"]);
    let line = Server::start(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nX-Line: ")?;
        loop {
            stream.write_all(&[b'x'; 1 << 13])?;
        }
    });
    refused_by(&line, &["cannot read"]);
    let chunks = |head: &'static str| {
        Server::start(move |_, stream| {
            write!(stream, "{head}Transfer-Encoding: chunked\r\n\r\n")?;
            let chunk = [b"10000\r\n".to_vec(), vec![b'['; 1 << 16], b"\r\n".to_vec()].concat();
            loop {
                stream.write_all(&chunk)?;
            }
        })
    };
    refused_by(
        &chunks("HTTP/1.1 200 OK\r\n"),
        &["the manifest has more than the 4194304 bytes allowed"],
    );
    let said = refused_by(&chunks("HTTP/1.1 418 Teapot\r\n"), &["418"]);
    assert!(said.len() < 2000, "{said}");
    let error = Server::start(|_, stream| {
        let body = format!(
            r#"{{"errors":[{{"code":"X","message":"{}\u001b[2J"}}]}}"#,
            "x".repeat(10 << 20)
        );
        send(stream, "403 Forbidden", "", body)
    });
    let said = refused_by(&error, &["403"]);
    assert!(said.len() < 2000 && !said.contains('\u{1b}'), "{said}");
    let continued = Server::start(|_, stream| {
        loop {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    refused_by(&continued, &["cannot read"]);
}

#[test]
fn redirects_in_circles_end() {
    let server = Server::start_knowing(|address| {
        let count = std::sync::atomic::AtomicUsize::new(0);
        move |_: &Request, stream: &mut TcpStream| {
            let count = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            send(stream, "307 Moved", &format!("Location: http://{address}/{count}\r\n"), "")
        }
    });
    refused_by(&server, &["redirects more than 5 times"]);
    assert!(server.requests() <= 8, "{}", server.requests());
    for target in ["file:///etc/passwd", "ftp://127.0.0.1/x", "http://", "//", "\u{7f}"] {
        let server = Server::start(move |_, stream| {
            send(stream, "302 Found", &format!("Location: {target}\r\n"), "")
        });
        let said = refused_by(&server, &[]);
        assert!(!said.contains("root:"), "{said}");
    }
}

/// A credentials file that knows `ada` at this address.
fn credentials(scratch: &Scratch, address: &str) -> String {
    let file = json!({ "auths": { address: { "auth": ADA } } });
    scratch.write("auth.json", file.to_string()).display().to_string()
}

#[test]
fn another_host_never_sees_the_credentials() {
    let other = Server::start(|request, stream| honest(&Image::good(), request, stream));
    let target = other.address.clone();
    let server = Server::start(move |request, stream| {
        if !request.headers.contains("authorization: basic") {
            send(stream, "401 Unauthorized", "WWW-Authenticate: Basic realm=x\r\n", "")
        } else if request.path == "/v2/" {
            send(stream, "200 OK", "", "")
        } else {
            let location = format!("Location: http://{target}{}\r\n", request.path);
            send(stream, "307 Moved", &location, "")
        }
    });
    let scratch = Scratch::new();
    let file = credentials(&scratch, &server.address);
    let words = ["inspect", "--plain-http", "--auth-file", &file, &server.reference()];
    bounded(&scratch, words).ok();
    let log = other.log.lock().unwrap();
    assert_eq!(log.len(), 2);
    for request in &*log {
        assert!(!request.headers.contains("authorization"), "{}", request.headers);
    }
}

#[test]
fn a_401_for_ever_is_an_error_soon() {
    let challenge = "WWW-Authenticate: Basic realm=x\r\n";
    let server = Server::start(move |_, stream| send(stream, "401 Unauthorized", challenge, ""));
    refused_by(&server, &["refuses access without valid credentials", "apron login"]);
    let scratch = Scratch::new();
    let file = credentials(&scratch, &server.address);
    let reference = server.reference();
    let words = ["inspect", "--plain-http", "--auth-file", &file, &reference];
    refused(&scratch, words, &["refuses access without valid credentials", "apron login"]);
    let words = ["push", "--plain-http", "--auth-file", &file, &reference, "-f", "good.xpkg"];
    Image::good().xpkg(&scratch, "good.xpkg");
    refused(&scratch, words, &["apron login"]);
    assert!(server.requests() < 20, "{}", server.requests());
    for challenge in [
        "",
        "WWW-Authenticate: Bearer\r\n",
        "WWW-Authenticate: Negotiate\r\n",
        "WWW-Authenticate: \u{1b}[2J=,\r\n",
    ] {
        let server =
            Server::start(move |_, stream| send(stream, "401 Unauthorized", challenge, ""));
        refused_by(&server, &[]);
    }
}

/// A registry that wants a token, and a token server that answers like this.
fn with_token(
    token: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
) -> Server {
    Server::start_knowing(|address| {
        move |request: &Request, stream: &mut TcpStream| {
            if request.path.starts_with("/token") {
                return token(stream);
            }
            let challenge = format!(
                "WWW-Authenticate: Bearer realm=\"http://{address}/token\",service=\"s\"\r\n"
            );
            send(stream, "401 Unauthorized", &challenge, "")
        }
    })
}

#[test]
fn token_servers_that_lie_are_not_believed() {
    let token = |text: String| with_token(move |stream| send(stream, "200 OK", "", &text));
    for text in [
        String::new(),
        "garbage".to_owned(),
        "<html>".repeat(100_000),
        "{}".to_owned(),
        r#"{"token":""}"#.to_owned(),
        r#"{"token":"a\r\nX-Injected: yes"}"#.to_owned(),
        r#"{"token":7}"#.to_owned(),
        "[".repeat(100_000),
        format!(r#"{{"token":"{}"}}"#, "x".repeat(10 << 20)),
        format!(r#"{{"token":"{}"}}"#, "x".repeat(60 << 10)),
        r#"{"token":"good","expires_in":18446744073709551615}"#.to_owned(),
    ] {
        let server = token(text);
        refused_by(&server, &[]);
        assert!(server.requests() <= 6, "{}", server.requests());
    }
    let again = with_token(|stream| {
        send(
            stream,
            "401 Unauthorized",
            "WWW-Authenticate: Bearer realm=\"http://127.0.0.1:1/\"\r\n",
            "",
        )
    });
    refused_by(&again, &["apron login"]);
    let round = with_token(|stream| send(stream, "307 Moved", "Location: /token?again\r\n", ""));
    refused_by(&round, &["redirects more than"]);
    for realm in ["file:///etc/passwd", "", "http://", "\\\"", "http://169.254.0.1:99999/"] {
        let server = Server::start(move |_, stream| {
            send(
                stream,
                "401 Unauthorized",
                &format!("WWW-Authenticate: Bearer realm=\"{realm}\"\r\n"),
                "",
            )
        });
        refused_by(&server, &[]);
    }
}

fn page_number(request: &Request) -> usize {
    request.path.rsplit('=').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// A link to a page that was not there before.
fn next_page(request: &Request) -> String {
    format!("Link: </v2/a/tags/list?x={}>; rel=\"next\"\r\n", page_number(request) + 1)
}

#[test]
fn a_missing_tag_with_endless_others_is_explained_in_time() {
    let missing = |request: &Request, stream: &mut TcpStream| {
        let found = request.path.contains("/tags/");
        (!found).then(|| send(stream, "404 Not Found", "", ""))
    };
    // Small pages without end.
    let endless = Server::start(move |request, stream| {
        if let Some(done) = missing(request, stream) {
            return done;
        }
        send(stream, "200 OK", &next_page(request), r#"{"tags":["v2"]}"#)
    });
    let start = Instant::now();
    refused_by(&endless, &["does not exist"]);
    assert!(start.elapsed() < IN_TIME, "{:?}", start.elapsed());
    // Large pages without end.
    let page = |number: usize| {
        let tags: Vec<String> =
            (0..100_000).map(|tag| format!("v{number}-{tag}-{}", "x".repeat(100))).collect();
        json!({ "tags": tags }).to_string()
    };
    let page = page(0);
    let large = Server::start(move |request, stream| {
        if let Some(done) = missing(request, stream) {
            return done;
        }
        let page = page.replace("v0-", &format!("v{}-", page_number(request)));
        send(stream, "200 OK", &next_page(request), page)
    });
    let start = Instant::now();
    refused_by(&large, &["does not exist"]);
    assert!(start.elapsed() < IN_TIME, "{:?}", start.elapsed());
    // Slow pages.
    let slow = Server::start(move |request, stream| {
        if let Some(done) = missing(request, stream) {
            return done;
        }
        std::thread::sleep(Duration::from_millis(900));
        send(stream, "200 OK", &next_page(request), r#"{"tags":["v2"]}"#)
    });
    let start = Instant::now();
    refused_by(&slow, &["does not exist"]);
    assert!(start.elapsed() < IN_TIME, "{:?}", start.elapsed());
    // Tags that are no tags.
    let odd = Server::start(move |request, stream| {
        if let Some(done) = missing(request, stream) {
            return done;
        }
        let tags = json!({ "tags": ["v3", "x".repeat(1 << 20), "\u{1b}[2J\nhint: no"] });
        send(stream, "200 OK", "", tags.to_string())
    });
    let said = refused_by(&odd, &["the repository has v3"]);
    assert!(said.len() < 1000, "{} bytes", said.len());
}

/// What is sent in place of a blob, headers included.
type Lie = Box<dyn Fn(&[u8]) -> Vec<u8> + Send + Sync>;

/// A registry whose answers for blobs are these bytes, as they are.
fn with_blob(image: Image, answer: impl Fn(&[u8]) -> Vec<u8> + Send + Sync + 'static) -> Server {
    Server::start(move |request, stream| {
        if !request.path.contains("/blobs/") {
            return honest(&image, request, stream);
        }
        stream.write_all(&answer(&image.layers[0].0))
    })
}

fn chunked(bytes: &[u8]) -> Vec<u8> {
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    let size = format!("{:x}\r\n", bytes.len());
    [&head[..], size.as_bytes(), bytes, b"\r\n0\r\n\r\n"].concat()
}

fn whole(length: usize, headers: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n"
    );
    [head.as_bytes(), bytes].concat()
}

#[test]
fn lies_about_blobs_are_found_out() {
    let cases: Vec<(&str, Lie, &str)> = vec![
        (
            "longer, in chunks",
            Box::new(|blob| chunked(&[blob, b"more"].concat())),
            "bytes instead of",
        ),
        (
            "other bytes",
            Box::new(|blob| whole(blob.len(), "", &vec![7; blob.len()])),
            "instead of sha256:",
        ),
        (
            "shorter than it says",
            Box::new(|blob| whole(blob.len(), "", &blob[..50])),
            "cannot read",
        ),
        ("shorter", Box::new(|blob| whole(50, "", &blob[..50])), "cannot read"),
        (
            "longer",
            Box::new(|blob| whole(blob.len() + 4, "", &[blob, b"more"].concat())),
            "bytes instead of",
        ),
        ("says it is huge", Box::new(|blob| whole(1 << 40, "", blob)), ""),
        (
            "no number",
            Box::new(|blob| [b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", blob].concat()),
            "cannot read",
        ),
        (
            "two lengths",
            Box::new(|blob| whole(blob.len(), "Content-Length: 3\r\n", blob)),
            "cannot read",
        ),
        (
            "gzip encoding",
            Box::new(|blob| {
                let bytes = gz(blob);
                whole(bytes.len(), "Content-Encoding: gzip\r\n", &bytes)
            }),
            "cannot read",
        ),
        ("no HTTP", Box::new(|_| b"SSH-2.0-OpenSSH\r\n".to_vec()), "cannot read"),
        ("a page", Box::new(|_| whole(6, "Content-Type: text/html\r\n", b"<html>")), "cannot read"),
    ];
    std::thread::scope(|scope| {
        for (name, answer, word) in cases {
            scope.spawn(move || {
                let server = with_blob(Image::good(), answer);
                let scratch = Scratch::new();
                let reference = server.reference();
                let ran = bounded(&scratch, ["inspect", "--plain-http", &reference]);
                // All bytes were there and right; how the connection ends does not matter.
                if word.is_empty() && ran.code == Some(0) {
                    return;
                }
                let said = refused_by(&server, &[word]);
                assert!(server.requests() < 20, "{name}: {said}");
                let words = ["pull", "--plain-http", &reference, "-f", "x.xpkg"];
                refused(&scratch, words, &[]);
                assert_eq!(fs_err::read_dir(scratch.path()).unwrap().count(), 0, "{name}");
            });
        }
    });
}

#[test]
fn a_bomb_from_a_registry_is_refused() {
    let layer = gz_mebibytes(0, 1 << 10);
    let server =
        Server::start(move |request, stream| honest(&Image::base(layer.clone()), request, stream));
    refused_by(&server, &["cannot be read as a package"]);
    let truncated = package_layer(GOOD.repeat(50))[..60].to_vec();
    let server = Server::start(move |request, stream| {
        honest(&Image::base(truncated.clone()), request, stream)
    });
    refused_by(&server, &["cannot be read as a package"]);
}

#[test]
fn lies_about_manifests_are_found_out() {
    let manifest = |headers: String, body: Vec<u8>| {
        Server::start(move |request, stream| {
            if request.path.contains("/manifests/") {
                return send(stream, "200 OK", &headers, &body);
            }
            honest(&Image::good(), request, stream)
        })
    };
    let raw = Image::good().raw();
    let typed = |media_type: &str| format!("Content-Type: {media_type}\r\n");
    let lie = format!("{}Docker-Content-Digest: {}\r\n", typed(MANIFEST), Digest::of(b"other"));
    refused_by(&manifest(lie, raw.clone()), &["instead of"]);
    let index = "application/vnd.oci.image.index.v1+json";
    refused_by(&manifest(typed(index), raw.clone()), &["served as"]);
    refused_by(
        &manifest(typed("text/html"), b"<html>welcome</html>".to_vec()),
        &["not valid JSON"],
    );
    refused_by(&manifest(typed("image/png"), raw.clone()), &["image/png"]);
    let bomb = gz_mebibytes(b'[', 512);
    let encoded = format!("{}Content-Encoding: gzip\r\n", typed(MANIFEST));
    refused_by(&manifest(encoded, bomb), &["cannot read"]);
    refused_by(&manifest(typed(MANIFEST), vec![b' '; (4 << 20) + 1]), &["4194304 bytes"]);
    let both = br#"{"schemaVersion":2,"layers":[],"manifests":[]}"#.to_vec();
    refused_by(&manifest(typed(MANIFEST), both), &["ambiguous"]);
    // What is asked for by digest must have it, whatever the header says.
    let digest = Digest::of(b"other");
    let lie = format!("{}Docker-Content-Digest: {digest}\r\n", typed(MANIFEST));
    let server = manifest(lie, raw);
    let reference = format!("{}/a@{digest}", server.address);
    let scratch = Scratch::new();
    refused(&scratch, ["inspect", "--plain-http", &reference], &["instead of"]);
}

#[test]
fn an_index_that_lists_itself_comes_to_an_end() {
    // A digest cannot be in its own content, so the registry lies about one of them.
    let index = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{ "mediaType": "application/vnd.oci.image.index.v1+json", "size": 1,
            "digest": Digest::of(b"itself").to_string(), "platform": { "os": "linux", "architecture": "amd64" } }],
    });
    let server = Server::start(move |_, stream| {
        let media_type = "Content-Type: application/vnd.oci.image.index.v1+json\r\n";
        send(stream, "200 OK", media_type, index.to_string())
    });
    refused_by(&server, &["instead of"]);
    assert!(server.requests() < 6, "{}", server.requests());
}
