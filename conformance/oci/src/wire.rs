//! A small HTTP/1.1 client that hides nothing.
//!
//! One request to a connection, the request target sent byte for byte, no redirects, no
//! decompression, no retries. It reads what the framing says and then looks whether the server
//! said more (a body after `HEAD`, bytes after `Content-Length`).

use crate::target::Url;
use crate::tls::Connector;
use std::fmt::Write as _;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// No answer of a registry under test is larger than this.
const LIMIT: usize = 64 << 20;

/// One request, complete.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) method: &'static str,
    pub(crate) url: Url,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Send the body with `Transfer-Encoding: chunked` in place of `Content-Length`.
    pub(crate) chunked: bool,
}

/// One answer, complete.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) reason: String,
    /// In the order they came; names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Bytes that came after the end of the body.
    pub(crate) excess: usize,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Either kind of connection.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Sends the request and reads the answer. The error is a sentence for people.
pub(crate) async fn exchange(connector: &Connector, message: &Message) -> Result<Answer, String> {
    let origin = &message.url.origin;
    let connected = TcpStream::connect((origin.host.as_str(), origin.port)).await;
    let tcp =
        connected.map_err(|error| format!("cannot connect to {}: {error}", origin.authority()))?;
    let _ = tcp.set_nodelay(true);
    let stream: Box<dyn Stream> = if origin.tls {
        Box::new(connector.connect(&origin.host, tcp).await?)
    } else {
        Box::new(tcp)
    };
    let (mut reader, mut writer) = tokio::io::split(stream);
    let head = head(message);
    // A server may answer and hang up before it has read all (413, 416): a write error matters
    // only if no answer comes.
    let write = async {
        writer.write_all(head.as_bytes()).await?;
        if message.chunked {
            for part in message.body.chunks(16 << 10) {
                writer.write_all(format!("{:x}\r\n", part.len()).as_bytes()).await?;
                writer.write_all(part).await?;
                writer.write_all(b"\r\n").await?;
            }
            writer.write_all(b"0\r\n\r\n").await?;
        } else {
            writer.write_all(&message.body).await?;
        }
        writer.flush().await
    };
    let read = read_answer(&mut reader, message.method == "HEAD");
    tokio::pin!(read);
    let written = tokio::select! {
        written = write => written,
        answer = &mut read => return answer,
    };
    match (read.await, written) {
        (Err(error), Err(cause)) => Err(format!("{error} (writing the request: {cause})")),
        (answer, _) => answer,
    }
}

fn head(message: &Message) -> String {
    let mut head = format!(
        "{} {} HTTP/1.1\r\nhost: {}\r\nuser-agent: oci-conformance\r\nconnection: close\r\n",
        message.method,
        message.url.target,
        message.url.origin.authority()
    );
    for (name, value) in &message.headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    if message.chunked {
        head.push_str("transfer-encoding: chunked\r\n");
    } else if !message.body.is_empty() || matches!(message.method, "POST" | "PUT" | "PATCH") {
        let _ = write!(head, "content-length: {}\r\n", message.body.len());
    }
    head.push_str("\r\n");
    head
}

/// Bytes read so far, and the rest of the connection.
struct Source<'r, R> {
    reader: &'r mut R,
    buffer: Vec<u8>,
    ended: bool,
}

impl<R: AsyncRead + Unpin> Source<'_, R> {
    /// Reads some more; false at the end of the connection.
    async fn more(&mut self) -> Result<bool, String> {
        if self.buffer.len() > LIMIT {
            return Err(format!("the answer is larger than {LIMIT} bytes"));
        }
        match self.reader.read_buf(&mut self.buffer).await {
            Ok(0) => self.ended = true,
            Ok(_) => {}
            // TLS without close_notify: the framing decides whether something is missing.
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => self.ended = true,
            Err(error) => return Err(format!("the connection broke: {error}")),
        }
        Ok(!self.ended)
    }

    /// Takes everything up to and including the mark.
    async fn until(&mut self, mark: &[u8], what: &str) -> Result<Vec<u8>, String> {
        let mut from = 0;
        loop {
            if let Some(at) = find(&self.buffer[from..], mark) {
                return Ok(self.buffer.drain(..from + at + mark.len()).collect());
            }
            from = self.buffer.len().saturating_sub(mark.len());
            if !self.more().await? {
                let seen = String::from_utf8_lossy(&self.buffer[..self.buffer.len().min(200)]);
                return Err(format!("the connection ended within {what}; so far: {seen:?}"));
            }
        }
    }

    async fn exactly(&mut self, length: usize, what: &str) -> Result<Vec<u8>, String> {
        if length > LIMIT {
            return Err(format!("{what} of {length} bytes is announced, more than {LIMIT}"));
        }
        while self.buffer.len() < length {
            if !self.more().await? {
                let got = self.buffer.len();
                return Err(format!("{what} of {length} bytes ended after {got}"));
            }
        }
        Ok(self.buffer.drain(..length).collect())
    }

    async fn chunks(&mut self) -> Result<Vec<u8>, String> {
        let mut body = Vec::new();
        loop {
            let line = self.until(b"\r\n", "a chunk size").await?;
            let line = String::from_utf8_lossy(&line).trim().to_owned();
            let size = line.split(';').next().unwrap_or_default().trim().to_owned();
            let size = usize::from_str_radix(&size, 16)
                .map_err(|_| format!("'{size}' is no chunk size"))?;
            if size == 0 {
                while self.until(b"\r\n", "the trailers").await?.len() > 2 {}
                return Ok(body);
            }
            body.extend(self.exactly(size, "a chunk").await?);
            self.until(b"\r\n", "a chunk's end").await?;
        }
    }

    /// What comes after the end, if the server closes as it was asked to.
    async fn excess(&mut self) -> usize {
        let rest = async { while self.more().await.unwrap_or(false) {} };
        let _ = tokio::time::timeout(Duration::from_millis(100), rest).await;
        self.buffer.len()
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

async fn read_answer<R: AsyncRead + Unpin>(reader: &mut R, head: bool) -> Result<Answer, String> {
    let mut source = Source { reader, buffer: Vec::new(), ended: false };
    let mut answer = loop {
        let bytes = source.until(b"\r\n\r\n", "the headers").await?;
        let answer = parse_head(&String::from_utf8_lossy(&bytes))?;
        if answer.status >= 200 {
            break answer;
        }
    };
    if head || answer.status == 204 || answer.status == 304 {
        answer.excess = source.excess().await;
        return Ok(answer);
    }
    answer.body = match body(&mut source, &answer).await {
        Ok(body) => body,
        Err(error) => return Err(broken(&error, &answer, &source.buffer)),
    };
    answer.excess = source.excess().await;
    Ok(answer)
}

/// Reads the body as the headers frame it.
async fn body<R: AsyncRead + Unpin>(
    source: &mut Source<'_, R>,
    answer: &Answer,
) -> Result<Vec<u8>, String> {
    let encoding = answer.header("transfer-encoding").unwrap_or_default();
    if encoding.to_ascii_lowercase().contains("chunked") {
        return source.chunks().await;
    }
    if let Some(length) = answer.header("content-length") {
        let length =
            length.parse().map_err(|_| format!("'content-length: {length}' is no number"))?;
        return source.exactly(length, "a body").await;
    }
    while source.more().await? {}
    Ok(std::mem::take(&mut source.buffer))
}

/// A framing error together with as much of the answer as there is.
fn broken(error: &str, answer: &Answer, rest: &[u8]) -> String {
    let mut text = format!("{error}\nHTTP/1.1 {} {}", answer.status, answer.reason);
    for (name, value) in &answer.headers {
        let _ = write!(text, "\n{name}: {value}");
    }
    let start = String::from_utf8_lossy(&rest[..rest.len().min(200)]);
    let _ = write!(text, "\nso far: {start:?}");
    text
}

fn parse_head(text: &str) -> Result<Answer, String> {
    let mut lines = text.trim_end().split("\r\n");
    let first = lines.next().unwrap_or_default();
    let mut parts = first.splitn(3, ' ');
    let version = parts.next().unwrap_or_default();
    let status = parts.next().and_then(|code| code.parse().ok());
    let (true, Some(status)) = (version.starts_with("HTTP/1."), status) else {
        return Err(format!("'{first}' is no HTTP/1.1 status line"));
    };
    let mut answer =
        Answer { status, reason: parts.next().unwrap_or_default().to_owned(), ..Answer::default() };
    for line in lines {
        let (name, value) =
            line.split_once(':').ok_or_else(|| format!("'{line}' is no header line"))?;
        answer.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::read_answer;

    #[tokio::test]
    async fn framing_is_read_to_the_letter() {
        let mut text: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n\
            Transfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n1\r\nd\r\n0\r\nt: u\r\n\r\n";
        let answer = read_answer(&mut text, false).await.unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, &b"abcd"[..]));
        assert_eq!(answer.header("a"), Some("b"));

        let mut text: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabcd";
        let answer = read_answer(&mut text, false).await.unwrap();
        assert_eq!((answer.body.as_slice(), answer.excess), (&b"ab"[..], 2));

        let mut text: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nab";
        assert_eq!(read_answer(&mut text, true).await.unwrap().excess, 2);

        let mut text: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab";
        let error = read_answer(&mut text, false).await.unwrap_err();
        assert_eq!(
            error,
            "a body of 9 bytes ended after 2\nHTTP/1.1 200 OK\ncontent-length: 9\nso far: \"ab\""
        );
        let mut text: &[u8] = b"SSH-2.0\r\n\r\n";
        assert!(read_answer(&mut text, false).await.unwrap_err().contains("no HTTP/1.1"));
    }
}
