//! Threads that talk to clients, each with the connections it was given.
//!
//! Threads that share their work wake each other to look for some whenever there may be enough
//! for two. For answers as short as a registry's that costs more than the answer. A hand has its
//! connections for itself and wakes nobody; what takes long is done on threads for that anyway.

use std::thread::JoinHandle;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// All of them; none means that connections stay where they were accepted.
pub(crate) struct Hands {
    all: Vec<Hand>,
    next: usize,
}

struct Hand {
    runtime: Handle,
    /// Its end, and the thread that waits for it.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Hands {
    /// So many, or as many of them as the system gives.
    pub(crate) fn new(count: usize) -> Self {
        Self { all: (0..count).filter_map(|_| Hand::new().ok()).collect(), next: 0 }
    }

    /// Gives a connection to one of them, each in turn.
    pub(crate) fn give<F>(
        &mut self,
        stream: TcpStream,
        talk: impl FnOnce(TcpStream) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.next = self.next.wrapping_add(1).checked_rem(self.all.len()).unwrap_or_default();
        let Some(hand) = self.all.get(self.next) else {
            tokio::spawn(talk(stream));
            return;
        };
        // Whoever waits for a stream's bytes must be on the thread that is told of them.
        let Ok(stream) = stream.into_std() else { return };
        hand.runtime.spawn(async move {
            if let Ok(stream) = TcpStream::from_std(stream) {
                talk(stream).await;
            }
        });
    }
}

impl Hand {
    fn new() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let work = move || {
            let _ = runtime.block_on(ended);
        };
        let thread = std::thread::Builder::new().name("hand".to_owned()).spawn(work)?;
        Ok(Self { runtime: handle, end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    #[tokio::test(flavor = "multi_thread")]
    async fn connections_are_served_by_hands_or_where_they_came_in() {
        for (count, named) in [(0, false), (1, true), (3, true)] {
            let (mut hands, listener) =
                (Hands::new(count), TcpListener::bind("127.0.0.1:0").await.unwrap());
            let address = listener.local_addr().unwrap();
            for _ in 0..5 {
                let mut client = TcpStream::connect(address).await.unwrap();
                let (stream, _) = listener.accept().await.unwrap();
                hands.give(stream, move |mut stream| async move {
                    let mine = std::thread::current().name() == Some("hand");
                    let mut byte = [0];
                    stream.read_exact(&mut byte).await.unwrap();
                    stream.write_all(&[byte[0], u8::from(mine)]).await.unwrap();
                });
                client.write_all(&[7]).await.unwrap();
                let mut answer = [0; 2];
                client.read_exact(&mut answer).await.unwrap();
                assert_eq!(answer, [7, u8::from(named)], "{count} hands");
            }
        }
    }
}
