//! Views: every repository as an OCI image layout that other tools read in place.
//!
//! The database is the truth; a view is a picture of it, drawn at most once a second by a thread
//! of its own. Every repository counts its changes, and knows which of them the picture shows, so that a crash loses nothing: what is behind is drawn at the next start.

use super::alone::Alone;
use super::content::files::{Files, layout_mark, sync_directory};
use super::metadata::{Behind, Metadata};
use super::{private, rebuild};
use crate::error::{Error, OpenError};
use crate::limits::VIEW_INTERVAL;
use crate::name::Name;
use oci::{Descriptor, Index};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The annotation that holds a tag.
pub(super) const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// The annotation that tells which change a view shows.
const GENERATION: &str = "org.crossplane.apron.generation";
/// A view that took long to draw is drawn that much less often.
const PATIENCE: u32 = 20;

enum Message {
    Changed,
    Flush(oneshot::Sender<()>),
}

/// The hand that draws the views.
pub(super) struct Views {
    sender: Sender<Message>,
}

struct Artist {
    files: Files,
    metadata: Arc<dyn Metadata>,
    /// The directory is in use until the last drawing is done and the database is let go.
    _alone: Arc<Alone>,
}

impl Views {
    pub(super) fn start(
        files: &Files,
        metadata: &Arc<dyn Metadata>,
        alone: &Arc<Alone>,
    ) -> Result<Self, OpenError> {
        let (sender, receiver) = channel();
        let artist =
            Artist { files: files.clone(), metadata: metadata.clone(), _alone: alone.clone() };
        std::thread::Builder::new()
            .name("registry-views".to_owned())
            .spawn(move || artist.work(&receiver))?;
        Ok(Self { sender })
    }

    /// Some repository changed.
    pub(super) fn changed(&self) {
        let _ = self.sender.send(Message::Changed);
    }

    /// Waits until all views are up to date.
    pub(super) async fn flush(&self) {
        let (done, waiting) = oneshot::channel();
        if self.sender.send(Message::Flush(done)).is_ok() {
            let _ = waiting.await;
        }
    }
}

impl Artist {
    /// Draws until the registry is closed.
    fn work(&self, receiver: &Receiver<Message>) {
        self.draw_missing_lists();
        let mut pause = self.draw_all();
        while let Ok(first) = receiver.recv() {
            let Some(waiting) = gather(receiver, first, pause) else { return };
            pause = self.draw_all();
            for done in waiting {
                let _ = done.send(());
            }
        }
    }

    /// Draws what is behind; gives the pause to make before the next time. What fails stays
    /// behind and is tried again.
    fn draw_all(&self) -> Duration {
        let start = Instant::now();
        for behind in self.metadata.behind().unwrap_or_default() {
            // What panics stays behind like what fails; the hand goes on with the others.
            let drawn = catch_unwind(AssertUnwindSafe(|| self.draw(&behind)));
            if matches!(drawn, Ok(Ok(()))) {
                // If this is lost, the view is drawn once more than needed.
                let _ = self.metadata.note_view(&behind);
            }
        }
        VIEW_INTERVAL.max(start.elapsed().saturating_mul(PATIENCE))
    }

    fn draw(&self, behind: &Behind) -> Result<(), Error> {
        let mut index = Index::oci(self.descriptors(&behind.repository)?);
        index.annotations.insert(GENERATION.to_owned(), behind.generation.to_string());
        let bytes = serde_json::to_vec(&index).map_err(io::Error::other)?;
        let directory = self.files.view(&behind.repository);
        prepare(&directory, &behind.repository)?;
        // First what the repository has, then what needs it.
        self.draw_held(&behind.repository)?;
        Ok(Files::replace(&directory.join("index.json"), &bytes)?)
    }

    /// Writes down which blobs the repository has: manifests may name others, which are not its.
    fn draw_held(&self, name: &Name) -> Result<(), Error> {
        let mut text = String::new();
        for digest in self.metadata.held(name)? {
            text.push_str(&digest.to_string());
            text.push('\n');
        }
        Ok(Files::replace(&self.files.held(name), text.as_bytes())?)
    }

    /// Views of earlier versions have no such list; they get one at the start.
    fn draw_missing_lists(&self) {
        let mut views = Vec::new();
        let _ = rebuild::find_views(&self.files.repositories(), "", &mut views);
        for (name, _) in views.iter().filter(|(name, _)| !self.files.held(name).exists()) {
            let _ = self.draw_held(name);
        }
    }

    fn descriptors(&self, name: &Name) -> Result<Vec<Descriptor>, Error> {
        let shown = self.metadata.shown(name)?.into_iter().map(|mut it| {
            it.descriptor.annotations.extend(it.tag.map(|tag| (REF_NAME.to_owned(), tag)));
            it.descriptor
        });
        Ok(shown.collect())
    }
}

/// Waits out the pause, gathering who wants to hear when it is over; somebody who waits ends it.
/// `None` if the registry was closed.
fn gather(
    receiver: &Receiver<Message>,
    first: Message,
    pause: Duration,
) -> Option<Vec<oneshot::Sender<()>>> {
    let now = Instant::now();
    let end = now.checked_add(pause).unwrap_or(now);
    let mut next = Some(first);
    let mut waiting = Vec::new();
    loop {
        match next.take() {
            Some(Message::Flush(done)) => waiting.push(done),
            Some(Message::Changed) | None => {}
        }
        let left = end.saturating_duration_since(Instant::now());
        let left = if waiting.is_empty() { left } else { Duration::ZERO };
        match receiver.recv_timeout(left) {
            Ok(message) => next = Some(message),
            Err(RecvTimeoutError::Timeout) => return Some(waiting),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// Makes the parts of a view that never change.
fn prepare(directory: &Path, name: &Name) -> io::Result<()> {
    let link = directory.join("blobs");
    if link.is_symlink() {
        return Ok(());
    }
    private::make_directory(directory)?;
    Files::replace(&directory.join("oci-layout"), layout_mark())?;
    // The directories above are new as well; a name is on the disk when its directory is.
    let components = name.as_str().split('/').count();
    let above = directory.ancestors().skip(1).take(components.saturating_add(1));
    above.into_iter().try_for_each(sync_directory)?;
    // Out of `_layout`, the name's components and `repos`.
    let depth = components.saturating_add(2);
    let target: PathBuf =
        std::iter::repeat_n("..", depth).chain(std::iter::once("blobs")).collect();
    match fs_err::os::unix::fs::symlink(target, link) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
