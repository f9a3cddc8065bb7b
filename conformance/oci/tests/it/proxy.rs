//! A proxy that lies: what comes from a registry is changed on the way, and the check that is
//! about it must notice.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One answer on its way: the method of its request, its head as text, its body.
pub(crate) struct Answer {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Removes a header.
    pub(crate) fn drop(&mut self, name: &str) {
        let keep = |line: &&str| !line.to_lowercase().starts_with(&format!("{name}:"));
        self.head = self.head.split("\r\n").filter(keep).collect::<Vec<_>>().join("\r\n");
    }

    /// Adds a header line at the end.
    pub(crate) fn add(&mut self, line: &str) {
        self.head = format!("{}\r\n{line}", self.head);
    }

    /// Changes the status if it is this one.
    pub(crate) fn status(&mut self, from: &str, to: &str) {
        if self.head.starts_with(&format!("HTTP/1.1 {from}")) {
            self.head = self.head.replacen(from, to, 1);
        }
    }

    /// Replaces the body, and its length.
    pub(crate) fn say(&mut self, body: impl Into<Vec<u8>>) {
        self.body = body.into();
        self.drop("content-length");
        self.drop("transfer-encoding");
        self.add(&format!("Content-Length: {}", self.body.len()));
    }
}

/// A lie: how answers are changed.
pub(crate) type Lie = fn(&mut Answer);

/// Starts a proxy before the registry at this port; its URL.
pub(crate) async fn start(port: u16, lie: Lie) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(carry(client, port, lie));
        }
    });
    format!("http://{address}")
}

async fn carry(client: TcpStream, port: u16, lie: Lie) {
    let registry = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_registry, mut to_registry) = registry.into_split();
    let mut first = vec![0; 4096];
    let read = from_client.read(&mut first).await.unwrap_or(0);
    let opening = String::from_utf8_lossy(&first[..read]).into_owned();
    let mut words = opening.split(' ').map(ToOwned::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let request = tokio::spawn(async move {
        let _ = to_registry.write_all(&first[..read]).await;
        let _ = tokio::io::copy(&mut from_client, &mut to_registry).await;
    });
    let mut bytes = Vec::new();
    let _ = from_registry.read_to_end(&mut bytes).await;
    request.abort();
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut answer = Answer { method, target, head, body: bytes[end + 4..].to_vec() };
    lie(&mut answer);
    // At once: who looks for more than was announced does not look for long.
    let mut bytes = format!("{}\r\n\r\n", answer.head).into_bytes();
    bytes.extend(answer.body);
    let _ = to_client.write_all(&bytes).await;
}
