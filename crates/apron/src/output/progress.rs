//! Progress of copies: bars on a terminal, a line per large blob elsewhere.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use oci::{Descriptor, Digest};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use store::{How, Progress};

/// Blobs smaller than this are gone before a bar could be read.
const BAR_BYTES_MIN: u64 = 1 << 20;

/// One bar per blob under way.
struct Bars {
    all: MultiProgress,
    open: Mutex<HashMap<Digest, ProgressBar>>,
}

/// One line per large blob, for logs.
struct Lines;

/// Someone to watch a copy: bars if a person is looking, lines for logs.
pub(crate) fn watcher() -> Arc<dyn Progress> {
    if !super::is_terminal() {
        return Arc::new(Lines);
    }
    Arc::new(Bars { all: MultiProgress::new(), open: Mutex::default() })
}

/// Nobody to watch, for commands that say nothing.
pub(crate) fn nobody() -> Arc<dyn Progress> {
    Arc::new(())
}

impl Progress for Lines {
    fn finished(&self, blob: &Descriptor, how: How) {
        if how == How::Copied && blob.size >= BAR_BYTES_MIN {
            let digest = blob.digest.to_string();
            super::say(format_args!("sent {} {}", super::short(&digest), super::size(blob.size)));
        }
    }
}

impl Bars {
    fn with(&self, blob: &Descriptor, act: impl FnOnce(&ProgressBar)) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = open.get(&blob.digest) {
            act(bar);
        }
    }
}

impl Progress for Bars {
    fn started(&self, blob: &Descriptor) {
        if blob.size < BAR_BYTES_MIN {
            return;
        }
        let template = "{prefix} {bar:30} {bytes:>10} / {total_bytes:10} {bytes_per_sec}";
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("━╸ ");
        let bar = self.all.add(ProgressBar::new(blob.size)).with_style(style);
        bar.set_prefix(super::short(&blob.digest.to_string()).to_owned());
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = open.insert(blob.digest.clone(), bar) {
            old.finish_and_clear();
        }
    }

    fn advanced(&self, blob: &Descriptor, bytes: u64) {
        self.with(blob, |bar| bar.inc(bytes));
    }

    fn finished(&self, blob: &Descriptor, _how: How) {
        self.with(blob, ProgressBar::finish_and_clear);
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&blob.digest);
    }
}
