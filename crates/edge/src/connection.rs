//! One connection, from its first byte to its end.
//!
//! A connection costs a file and memory, so it is not kept for nothing: whoever has not asked
//! anything whole by [`FIRST_TIME_MAX`] (half a request head, half a preface of HTTP/2, or nothing
//! at all) is closed, and so is a connection on which nothing was under way for
//! [`IDLE_TIME_MAX`]. What is under way is under way until its answer's last byte is taken, so a
//! watch keeps its connection for as long as it lasts.

use axum::Router;
use axum::body::Body;
use axum::http::{Extensions, Request, Response};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::Instant;
use tower::{Service, ServiceExt as _};

/// How often a connection is asked whether anybody is still there, and how long that may take.
const ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const ALIVE_TIME_MAX: Duration = Duration::from_secs(20);
/// How long a client may take to say what it wants first.
const FIRST_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a connection is kept on which nothing is under way. Clients of Kubernetes keep theirs
/// for 90 s: they are to be the ones who close them.
const IDLE_TIME_MAX: Duration = Duration::from_secs(120);
/// How long a client may take to close a connection after it was asked to.
const END_TIME_MAX: Duration = Duration::from_secs(10);

/// What a connection is served with.
pub(crate) struct Talk {
    pub(crate) router: Router,
    /// Requests at once.
    pub(crate) streams: u32,
    /// What each request carries about who is at the other end.
    pub(crate) known: Extensions,
    /// Whether the server is to stop.
    pub(crate) stop: watch::Receiver<bool>,
}

impl Talk {
    /// Serves until the client closes the connection, or does nothing with it, or the server is to
    /// stop; then what is under way may finish.
    pub(crate) async fn with<S>(mut self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let usage = Arc::new(Usage::new());
        let builder = builder(self.streams);
        let service = counted(self.router, self.known, Arc::clone(&usage));
        let service = TowerToHyperService::new(service);
        let mut connection =
            std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            // A client that hangs up is not our failure.
            _ = connection.as_mut() => return,
            () = usage.unused() => {}
            _ = self.stop.wait_for(|stop| *stop) => {}
        }
        if !usage.is_spoken() {
            return;
        }
        connection.as_mut().graceful_shutdown();
        while tokio::time::timeout(END_TIME_MAX, connection.as_mut()).await.is_err() {
            if usage.is_idle() {
                return;
            }
        }
    }
}

fn builder(streams: u32) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // hyper counts from the end of the request before.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE_TIME_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(streams)
        .keep_alive_interval(ALIVE_INTERVAL)
        .keep_alive_timeout(ALIVE_TIME_MAX);
    builder
}

/// The service of one connection, which knows what is under way.
fn counted<B>(
    router: Router,
    known: Extensions,
    usage: Arc<Usage>,
) -> impl Service<Request<B>, Response = Response<Counted>, Error = Infallible, Future: Send> + Clone
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    tower::service_fn(move |mut request: Request<B>| {
        let under_way = UnderWay::begin(&usage);
        request.extensions_mut().extend(known.clone());
        let answered = router.clone().oneshot(request);
        async move { Ok(answered.await?.map(|body| Counted { body, _under_way: under_way })) }
    })
}

/// What a connection is used for.
struct Usage {
    began: Instant,
    /// Requests whose answers are not wholly taken.
    under_way: AtomicUsize,
    /// When the last of them ended, in milliseconds after the beginning.
    ended: AtomicU64,
    /// Whether anything was asked yet.
    is_spoken: AtomicBool,
}

impl Usage {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            under_way: AtomicUsize::default(),
            ended: AtomicU64::default(),
            is_spoken: AtomicBool::default(),
        }
    }

    fn is_spoken(&self) -> bool {
        self.is_spoken.load(Ordering::Relaxed)
    }

    fn is_idle(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) == 0
    }

    /// Done when nothing has been under way for too long.
    async fn unused(&self) {
        loop {
            let time_max = if self.is_spoken() { IDLE_TIME_MAX } else { FIRST_TIME_MAX };
            let ended = Duration::from_millis(self.ended.load(Ordering::Relaxed));
            let now = Instant::now();
            let since = if self.is_idle() { self.began.checked_add(ended) } else { Some(now) };
            let end = since.and_then(|since| since.checked_add(time_max)).unwrap_or(now);
            if end <= now {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }
}

/// A request, until its answer is wholly taken or given up.
struct UnderWay(Arc<Usage>);

impl UnderWay {
    fn begin(usage: &Arc<Usage>) -> Self {
        usage.under_way.fetch_add(1, Ordering::Relaxed);
        usage.is_spoken.store(true, Ordering::Relaxed);
        Self(Arc::clone(usage))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let ended = u64::try_from(self.0.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.ended.store(ended, Ordering::Relaxed);
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An answer's body, under way until it is dropped.
struct Counted {
    body: Body,
    _under_way: UnderWay,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use futures::StreamExt as _;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::task::JoinHandle;

    /// The preface of HTTP/2, empty settings, and half of what begins a request.
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    const HALF: &[u8] = &[0, 0, 4, 1, 5, 0];

    /// A connection to a server whose `/watch` never ends, and the server's side of it.
    fn connect() -> (DuplexStream, JoinHandle<()>, watch::Sender<bool>) {
        let watching = || async {
            let first = futures::stream::iter([Ok::<_, Infallible>("news\n")]);
            Body::from_stream(first.chain(futures::stream::pending()))
        };
        let router =
            Router::new().route("/", get(|| async { "ok" })).route("/watch", get(watching));
        let (client, server) = tokio::io::duplex(64 << 10);
        let (tell, stop) = watch::channel(false);
        let talk = Talk { router, streams: 10, known: Extensions::new(), stop };
        (client, tokio::spawn(talk.with(server)), tell)
    }

    /// When the server closes, after this was said to it.
    async fn closed_after(said: &[u8]) -> u64 {
        let (mut client, serving, _tell) = connect();
        let start = Instant::now();
        client.write_all(said).await.unwrap();
        end(serving).await;
        start.elapsed().as_secs()
    }

    /// Waits for a server's end, which is a matter of minutes.
    async fn end(serving: JoinHandle<()>) {
        let ended = tokio::time::timeout(Duration::from_secs(3600), serving).await;
        ended.expect("the server closes the connection").unwrap();
    }

    /// M2: hyper begins to count when it knows which version is spoken.
    #[tokio::test(start_paused = true)]
    async fn m2_who_has_asked_nothing_whole_is_closed_soon() {
        for said in [
            &b""[..],
            b"G",
            b"GET / HTTP/1.1\r\nHost: a\r\n",
            &PREFACE[..12],
            PREFACE,
            &[PREFACE, SETTINGS].concat(),
            &[PREFACE, SETTINGS, HALF].concat(),
        ] {
            let said_text = String::from_utf8_lossy(said);
            assert_eq!(closed_after(said).await, FIRST_TIME_MAX.as_secs(), "{said_text:?}");
        }
    }

    /// M2: connections are kept for those who come back, and not for ever.
    #[tokio::test(start_paused = true)]
    async fn m2_a_connection_without_requests_is_kept_for_a_while() {
        let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        assert_eq!(closed_after(request).await, IDLE_TIME_MAX.as_secs());
        let (mut client, serving, _tell) = connect();
        let start = Instant::now();
        let mut answer = vec![0; 4096];
        for _ in 0..10 {
            client.write_all(request).await.unwrap();
            let count = client.read(&mut answer).await.unwrap();
            assert!(answer[..count].ends_with(b"ok"), "a client may come back after 90 s");
            tokio::time::sleep(Duration::from_secs(90)).await;
        }
        end(serving).await;
        assert_eq!(start.elapsed().as_secs(), 9 * 90 + IDLE_TIME_MAX.as_secs());
    }

    /// M2: a watch is under way though nothing is said for hours.
    #[tokio::test(start_paused = true)]
    async fn m2_a_watch_keeps_its_connection_until_the_server_stops() {
        let (mut client, serving, tell) = connect();
        client.write_all(b"GET /watch HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let mut answer = vec![0; 4096];
        assert_ne!(client.read(&mut answer).await.unwrap(), 0);
        tokio::time::sleep(Duration::from_secs(12 * 3600)).await;
        assert!(!serving.is_finished());
        let _ = tell.send(true);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert!(!serving.is_finished(), "what is under way may finish");
        drop(client);
        serving.await.unwrap();
    }
}
